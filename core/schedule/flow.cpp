#include "schedule/flow.hpp"

#include <algorithm>

namespace modelplan::schedule {

void FlowNetwork::reset(int nodes) {
  arcs_.clear();
  first_.assign(nodes + 2, -1);
}

int FlowNetwork::add_node() {
  first_.push_back(-1);
  return static_cast<int>(first_.size()) - 1;
}

int FlowNetwork::add_arc(int from, int to, std::int64_t capacity) {
  const int arc = static_cast<int>(arcs_.size());
  arcs_.push_back({to, first_[from], capacity});
  first_[from] = arc;
  arcs_.push_back({from, first_[to], 0});
  first_[to] = arc + 1;
  return arc;
}

bool FlowNetwork::level_nodes() {
  level_.assign(first_.size(), -1);
  level_[kSource] = 0;
  queue_.assign(1, kSource);
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    const int node = queue_[head];
    for (int a = first_[node]; a >= 0; a = arcs_[a].next) {
      const Arc& arc = arcs_[a];
      ++visits_;
      if (arc.room == 0 || level_[arc.to] >= 0) continue;
      level_[arc.to] = level_[node] + 1;
      if (arc.to == kSink) return true;
      queue_.push_back(arc.to);
    }
  }
  return false;
}

// One augmenting path of the level graph, found without recursion; 0 when the phase is over.
std::int64_t FlowNetwork::augment() {
  path_.clear();
  int node = kSource;
  while (node != kSink) {
    int& a = next_try_[node];
    while (a >= 0) {
      const Arc& arc = arcs_[a];
      ++visits_;
      if (arc.room > 0 && level_[arc.to] == level_[node] + 1) break;
      a = arc.next;
    }
    if (a >= 0) {
      path_.push_back(a);
      node = arcs_[a].to;
      continue;
    }
    if (path_.empty()) return 0;
    node = arcs_[path_.back() ^ 1U].to;
    path_.pop_back();
    int& dead = next_try_[node];
    dead = arcs_[dead].next;
  }
  std::int64_t most = kUnbounded;
  for (const int a : path_) most = std::min(most, arcs_[a].room);
  for (const int a : path_) {
    arcs_[a].room -= most;
    arcs_[a ^ 1U].room += most;
  }
  return most;
}

std::int64_t FlowNetwork::maximise() {
  std::int64_t total = 0;
  while (level_nodes()) {
    next_try_ = first_;
    while (const std::int64_t found = augment()) total += found;
  }
  return total;
}

Array<char> FlowNetwork::largest_source_side() const {
  Array<char> side(first_.size(), 1);
  Array<int> stack{kSink};
  side[kSink] = 0;
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    for (int a = first_[node]; a >= 0; a = arcs_[a].next) {
      const Arc& arc = arcs_[a];
      const bool reaches = arcs_[a ^ 1U].room > 0;
      if (!reaches || side[arc.to] == 0) continue;
      side[arc.to] = 0;
      stack.push_back(arc.to);
    }
  }
  return side;
}

}  // namespace modelplan::schedule
