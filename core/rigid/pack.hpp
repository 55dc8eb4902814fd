// Packing of rigid groups: buffers at fixed distances from each other, each with a life of its own.
//
//   address                        group A: three buffers, which die one after the other
//      ^   +-----+
//      |   |  A3 |-----------+      group B: buffers that are born one after the other, and slide into
//      |   |  A2 |-----+             the place that A leaves, at one distance for all
//      |   |  A1 |   +-+---- B1
//      +----------------------------> step
//
// Two groups may stand at a distance if no two of their buffers that live together share a byte, but for what an
// overlap or a meeting allows. A buffer outside all groups is a group of its own.
#pragma once

#include <cstdint>

#include "../problem.hpp"
#include "../stopping.hpp"
#include "packer.hpp"

namespace modelplan::rigid {

// The lowest packing found; without offsets where pins, alignments or the groups themselves exclude every one.
struct Packed {
  Array<std::int64_t> offsets;
  std::int64_t bound = 0, tries = 0;
  Ended ended = Ended::kBudget;
};

struct Options {
  std::int64_t tries = 0, enough = 0;  // `enough` is a height that ends the search
  std::uint64_t seed = 0;
  double seconds = 0;  // 0: no limit
  Cancelled cancelled;
};

// A packing that was found before: the bases of all units, none where there is none, and what no packing goes below.
struct Known {
  Array<std::int64_t> bases = {};
  std::int64_t bound = 0;
};

// Searches of a problem, which all begin with the distances that are forbidden, first fit of the groups, and a bound.
class PackingSearch {
 public:
  PackingSearch(const Problem& problem, std::uint64_t seed);
  PackingSearch(const PackingSearch&) = delete;  // the packer looks at the units
  PackingSearch& operator=(const PackingSearch&) = delete;
  std::uint64_t seed() const { return seed_; }

  // Complete search among few groups, orders for first fit that a local search improves, then complete search of all
  // and constraint search. A try takes time linear in the forbidden distances, of which there are at most as many as
  // pairs of buffers that live together. The options have the seed of this. A search from a known packing never ends
  // above it.
  Packed pack(const Options& options, const Known& known = {});

 private:
  Units units_;
  Packer packer_;
  std::uint64_t seed_;
  std::int64_t bound_ = 0;
  Array<std::int64_t> bases_;  // of first fit
};

inline Packed pack(const Problem& problem, const Options& options) {
  return PackingSearch(problem, options.seed).pack(options);
}

}  // namespace modelplan::rigid
