// Ejection search: looks for a placement under a given height by keeping a part of the buffers placed under it.
// A random buffer outside is put where nothing is in its way, or else where the buffers in its way have been hardest to
// place least often; those go outside. Which buffer lies on which is fixed, not their offsets: each placed buffer may
// still move between `low` and the height less what lies on it.
//
//   height ----------------
//          | above |           the buffers on top, pushed up
//          :       :
//          |  own  |           anywhere between
//          :       :
//          |  low  |           the buffers below, pushed down
//   floor  ----------------
#pragma once

#include <memory>

#include "packing_instance.hpp"
#include "stopping.hpp"

namespace modelplan::solver {

class EjectionSearch {
 public:
  virtual ~EjectionSearch() = default;

  // Looks for a placement of at most `height` bytes, at least the bound, until the meter is exhausted; goes on where it
  // left off. Proves nothing. A step looks at the neighbours of a few buffers, and stacks again what may have moved.
  virtual Verdict run(Bytes height, Meter& meter) = 0;
  virtual Array<Bytes> offsets() const = 0;  // after kFeasible; units
};

// For instances without alignments, pins and facts, and heights of at most `most` bytes. Memory: linear in the buffers
// and, for every 16 of them, in the sections.
std::unique_ptr<EjectionSearch> make_ejection_search(const PackingInstance& instance, Bytes most, std::uint64_t seed);

}  // namespace modelplan::solver
