// The lowest packing by complete search among few units, around which first fit finds room for the others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../stopping.hpp"
#include "packer.hpp"

namespace modelplan::rigid {

// Looks for a packing of a few units below a limit by complete search, and for places of all others around them by
// first fit. Where one of those stands above the limit, it becomes one of the few. Where the few have no packing below
// the limit, no packing of all is below it: mostly a tenth of the units proves so.
//
// The limit lies half way between the height and what no packing seems to go below. Work is counted; the same work
// gives the same answer on every machine.
class FewUnits {
 public:
  FewUnits(Packer& packer, const StopSignal& signal);

  // Lowers a packing and raises the bound, until both are the same, the packing is low enough, or the tries are made: a
  // try takes as long as a look at each pair, or a first fit of all. The height.
  std::int64_t lower(Array<std::int64_t>& bases, std::int64_t& bound, std::int64_t enough, std::int64_t tries);

  // That the last call made.
  std::int64_t tries() const { return (work_ - left_) / pairs_; }

 private:
  std::int64_t first_height(std::int64_t at) const;
  bool add_one_above(std::int64_t limit, const Array<std::int64_t>& bases);

  Packer& packer_;
  const StopSignal& signal_;
  Array<std::size_t> order_;  // the few, then the others, the large ones first
  std::size_t few_ = 0;
  std::int64_t pairs_, work_ = 0, left_ = 0;  // in looks at a pair
};

}  // namespace modelplan::rigid
