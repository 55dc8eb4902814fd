// Local search over orders: changes the tie-break of the search a little at a time. A changed order is kept if the
// search, with a little more than one node per buffer, places at least as many buffers as before.
#pragma once

#include "array.hpp"
#include "order.hpp"
#include "packing_search.hpp"

namespace modelplan::solver {

template <class Coord>
class LocalSearch {
 public:
  // Searches of different variants begin with different ways to choose a section.
  LocalSearch(const PackingInstance& instance, std::uint64_t seed, int variant)
      : instance_(instance), random_(seed), variant_(variant) {}

  // Looks for a placement of at most `height` bytes until the meter is exhausted; goes on where it left off.
  Verdict run(PackingSearch<Coord>& search, Bytes height, Meter& meter);
  // Goes on from the order that another one has come to, with its own random numbers.
  void follow(const LocalSearch& leader);
  std::int64_t nodes() const { return nodes_; }  // of the last run

 private:
  void start();
  void perturb(const PackingSearch<Coord>& search);
  Verdict evaluate(PackingSearch<Coord>& search, Bytes height, Meter& meter);

  const PackingInstance& instance_;
  Random random_;
  PaddedArray<double> keys_, trial_;
  Pick pick_ = Pick::kLowestTop;
  bool mirrored_ = false;
  Bytes height_ = -1;  // of the last run
  Id missing_ = 0;     // buffers that the best trial of this start could not place
  int idle_ = 0;       // trials since it last improved
  int variant_;
  int starts_ = 0;
  std::int64_t nodes_ = 0;
};

extern template class LocalSearch<std::int32_t>;
extern template class LocalSearch<std::int64_t>;

}  // namespace modelplan::solver
