#include "allocators/telamalloc_policy.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "load_tree.hpp"

namespace modelplan::telamalloc {
namespace {

std::int64_t& at(Features& features, Feature which) { return features[static_cast<std::size_t>(which)]; }

// Without overflow, and 0 of nothing.
std::int64_t thousandths(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<std::int64_t>(1000.0 * static_cast<double>(part) / static_cast<double>(whole)) : 0;
}

}  // namespace

Trees::Trees(Array<TreeNode> nodes) : nodes_(std::move(nodes)) {
  const std::int64_t count = std::ssize(nodes_);
  for (std::int64_t row = 0; row < count; ++row) {
    const TreeNode& node = nodes_[row];
    if (row == 0 || node.tree != nodes_[row - 1].tree) roots_.push_back(as_size(row));
    const bool leaf = node.feature == -1;
    const bool known = leaf || (node.feature >= 0 && node.feature < static_cast<std::int64_t>(kFeatures));
    // Both ways lead on in the same tree, so every walk ends in a leaf.
    const bool inside = leaf || (row + 1 < count && nodes_[row + 1].tree == node.tree && node.above > row &&
                                 node.above < count && nodes_[node.above].tree == node.tree);
    if (!known || !inside) throw std::invalid_argument("row " + std::to_string(row) + " of the trees makes no sense");
  }
}

std::int64_t Trees::score(const Features& features) const {
  std::int64_t sum = 0;
  for (const std::size_t root : roots_) {
    std::size_t row = root;
    while (nodes_[row].feature >= 0)
      row = features[as_size(nodes_[row].feature)] <= nodes_[row].threshold ? row + 1 : as_size(nodes_[row].above);
    sum += nodes_[row].threshold;
  }
  return sum;
}

PolicyView::PolicyView(const Problem& problem, std::int64_t capacity, View<const std::size_t> phase)
    : problem_(problem), still_(problem.count(), Features{}), blame_(problem.count(), 0) {
  if (problem.count() == 0) return;
  const auto first = *std::min_element(problem.start.begin(), problem.start.end());
  const auto last = *std::max_element(problem.end.begin(), problem.end.end());
  const Array<std::int64_t> contention = peak_loads(problem.size, problem.start, problem.end);
  for (std::size_t b = 0; b < problem.count(); ++b) {
    at(still_[b], Feature::kSize) = thousandths(problem.size[b], capacity);
    at(still_[b], Feature::kDuration) = thousandths(problem.end[b] - problem.start[b], last - first);
    at(still_[b], Feature::kContention) = thousandths(contention[b], capacity);
    at(still_[b], Feature::kPhase) = static_cast<std::int64_t>(phase[b]);
  }
}

Array<Features> PolicyView::features(View<const Decision> decisions, const Failure& failure) {
  Array<Features> found;
  for (std::size_t depth = 0; depth < decisions.size(); ++depth) {
    const Decision& decision = decisions[depth];
    Features own = still_[decision.buffer];
    at(own, Feature::kDepth) =
        thousandths(static_cast<std::int64_t>(depth), static_cast<std::int64_t>(failure.to_place));
    at(own, Feature::kDistance) = static_cast<std::int64_t>(decisions.size() - depth);
    at(own, Feature::kReturns) = decision.returns;
    at(own, Feature::kTried) = decision.tried;
    at(own, Feature::kCulprits) = std::ssize(failure.culprits);
    std::int64_t meets = 0;
    for (const std::size_t b : failure.failed) {
      meets += meet_in_time(problem_, b, decision.buffer);
      if (at(still_[b], Feature::kPhase) == at(own, Feature::kPhase)) at(own, Feature::kSamePhase) = 1;
    }
    at(own, Feature::kMeets) = thousandths(meets, std::ssize(failure.failed));
    found.push_back(own);
  }
  for (std::size_t k = 0; k < failure.culprits.size(); ++k) {
    const std::size_t depth = failure.culprits[k];
    at(found[depth], Feature::kCulprit) = static_cast<std::int64_t>(failure.culprits.size() - k);
    ++blame_[decisions[depth].buffer];
  }
  for (std::size_t depth = 0; depth < decisions.size(); ++depth)
    at(found[depth], Feature::kBlame) = blame_[decisions[depth].buffer];
  return found;
}

}  // namespace modelplan::telamalloc
