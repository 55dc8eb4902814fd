// The learned choice of the point that a major backtrack returns to: gradient-boosted trees score what could be taken
// back. All numbers are whole, so a score is the same on every machine.
#pragma once

#include <array>
#include <cstdint>

#include "problem.hpp"

namespace modelplan::telamalloc {

// What the trees know of one decision that could be taken back. Thousandths unless said otherwise.
enum class Feature : std::uint8_t {
  kSize,        // of the capacity
  kDuration,    // of the time between the first start and the last end
  kContention,  // the greatest load in the lifetime, of the capacity
  kOffset,      // of the capacity
  kPhase,       // its number
  kSamePhase,   // 1 when the failure is in the same phase, else 0
  kDepth,       // decisions before it, of all that are to be made
  kDistance,    // number of decisions between it and the failure
  kReturns,     // number of earlier returns to this depth
  kTried,       // number of buffers tried at this point
  kCulprit,     // 0: took no part in the failure; 1: the latest that did; 2: the one before, ...
  kCulprits,    // number of decisions that took part
  kBlame,       // number of failures of this search that the buffer took part in
  kMeets,       // of the buffers that failed, those alive with it
  kCount
};
constexpr auto kFeatures = static_cast<std::size_t>(Feature::kCount);
using Features = std::array<std::int64_t, kFeatures>;

// A row of the table of trees, in preorder: where the feature is at most the threshold the next row goes on, else the
// row `above`, counted in the whole table. A leaf has feature -1 and its score as threshold.
struct TreeNode {
  std::int64_t tree, feature, threshold, above;
};

// Trees whose scores add up.
class Trees {
 public:
  Trees() = default;
  // Throws std::invalid_argument naming the first row that makes no sense.
  explicit Trees(Array<TreeNode> nodes);

  bool empty() const { return roots_.empty(); }
  std::int64_t score(const Features& features) const;

 private:
  Array<TreeNode> nodes_;
  Array<std::size_t> roots_;
};

// The decisions of a search as the trees see them.
class PolicyView {
 public:
  PolicyView(const Problem& problem, std::int64_t capacity, View<const std::size_t> phase);

  // One decision in the order in which they were made.
  struct Decision {
    std::size_t buffer;
    std::int64_t offset, returns, tried;
  };
  // A failure behind the last decision: its culprits rising, and the buffers that could not be placed.
  struct Failure {
    View<const std::size_t> culprits, failed;
    std::size_t to_place;  // decisions that a whole plan takes
  };

  // The features of every decision, and the blame of the culprits counted.
  Array<Features> features(View<const Decision> decisions, const Failure& failure);

 private:
  const Problem& problem_;
  Array<Features> still_;  // what never changes
  Array<std::int64_t> blame_;
};

}  // namespace modelplan::telamalloc
