// A load for each of a row of places, and for each step at which a buffer starts: where is it largest?
#pragma once

#include "segment_tree.hpp"
#include "sorting.hpp"

namespace modelplan {

// The largest load of some places and the first place that has it.
struct Peak {
  std::int64_t load = -1;
  std::int32_t place = 0;

  static Peak joined(const Peak& left, const Peak& right) { return right.load > left.load ? right : left; }
  Peak plus(std::int64_t amount) const { return {load + amount, place}; }
};

using LoadTree = SegmentTree<Peak>;

inline LoadTree load_tree(View<const std::int64_t> loads) {
  Array<Peak> peaks;
  for (const std::int64_t load : loads) peaks.push_back({load, static_cast<std::int32_t>(peaks.size())});
  return LoadTree(peaks);
}

// How much is alive at each step. Kept at the distinct starts alone: between two starts the sum can only fall, so its
// maximum is at one of them.
class StepLoads {
 public:
  explicit StepLoads(Ints start)
      : steps_(distinct(Array<std::int64_t>(start.begin(), start.end()))),
        loads_(load_tree(Array<std::int64_t>(steps_.size(), 0))) {}

  void add(std::int64_t from, std::int64_t until, std::int64_t amount) {
    loads_.add(count_below(steps_, from), count_below(steps_, until), amount);
  }
  std::int64_t most() const { return steps_.empty() ? 0 : loads_.all().load; }
  // The most within [from, until), in which some buffer starts.
  std::int64_t most(std::int64_t from, std::int64_t until) const {
    return loads_.join(count_below(steps_, from), count_below(steps_, until)).load;
  }
  // The first step at which most() is reached; there must be at least one start.
  std::int64_t first_peak() const { return steps_[loads_.all().place]; }

 private:
  Array<std::int64_t> steps_;
  LoadTree loads_;
};

// The greatest load in the lifetime of each buffer. Time O(n log n).
inline Array<std::int64_t> peak_loads(Ints size, Ints start, Ints end) {
  StepLoads loads(start);
  for (std::size_t b = 0; b < size.size(); ++b) loads.add(start[b], end[b], size[b]);
  Array<std::int64_t> peaks;
  for (std::size_t b = 0; b < size.size(); ++b) peaks.push_back(loads.most(start[b], end[b]));
  return peaks;
}

}  // namespace modelplan
