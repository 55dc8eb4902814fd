// The live-bytes model: what is alive after a set of executed operators, kept up to date as operators come and go.
// Cost: O(degree of the operator) for each call.
#pragma once

#include <span>
#include <vector>

#include "schedule/instance.hpp"

namespace modelplan::schedule {

class Live {
 public:
  explicit Live(const Instance& instance);

  Bytes bytes() const { return bytes_; }
  bool done(int op) const { return done_[static_cast<std::size_t>(op)] != 0; }
  bool alive(int c) const;
  // Readers of class c that have not run.
  int readers_left(int c) const { return left_[static_cast<std::size_t>(c)]; }
  // The operators whose predecessors have all run, in no particular order.
  std::span<const int> ready() const { return ready_; }
  bool is_ready(int op) const { return place_[static_cast<std::size_t>(op)] >= 0; }

  // Bytes in use while `op` runs next.
  Bytes transient(int op) const;
  // Live bytes once `op` has run next.
  Bytes after(int op) const;
  void add(int op);     // `op` is ready
  void remove(int op);  // no successor of `op` has run

 private:
  bool written(int c) const { return written_[static_cast<std::size_t>(c)] > 0; }
  bool dies_at_next_reader(int c) const;
  Bytes credit(int op) const;
  void make_ready(int op);
  void drop_ready(int op);

  const Instance* g_;
  Bytes bytes_;
  std::vector<int> written_;  // writers that have run, plus one if alive from the start
  std::vector<int> left_;
  std::vector<int> waiting_;  // predecessors that have not run
  std::vector<int> ready_, place_;
  std::vector<char> done_;
};

// The highest transient of an order of all operators.
Bytes peak_of(const Instance& instance, std::span<const int> order);

// The transient of each step.
std::vector<Bytes> profile_of(const Instance& instance, std::span<const int> order);

}  // namespace modelplan::schedule
