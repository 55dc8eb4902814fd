// A table of visited sets of operators: bitset, live bytes, label and the way back. A 64-bit key finds a set, a full
// compare confirms it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "array.hpp"
#include "schedule/schedule_instance.hpp"

namespace modelplan::schedule {

// The key of one operator; the key of a set is the exclusive or over its members.
inline std::uint64_t op_key(int op) {
  std::uint64_t x = (static_cast<std::uint64_t>(op) + 1) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

struct State {
  std::uint64_t key = 0;
  Bytes bytes = 0;
  Bytes label = 0;  // the least peak of an order known to lead here
  Bytes bound = 0;  // what every completion is known to need
  int parent = -1;
  int depth = 0;
  std::uint32_t path_at = 0;  // the operators that lead here from the parent
  std::uint32_t path_size = 0;
};

class StateTable {
 public:
  explicit StateTable(int ops);

  void clear();
  std::size_t size() const { return states_.size(); }
  std::size_t memory() const;
  State& operator[](int s) { return states_[s]; }
  const State& operator[](int s) const { return states_[s]; }
  View<const std::uint64_t> bits(int s) const { return {block_of(s), words_}; }
  // The operators that lead here from the first state.
  Array<int> path_to(int s) const;
  std::size_t words() const { return words_; }

  // The state of this set, or -1.
  int find(std::uint64_t key, View<const std::uint64_t> bits) const;
  // Adds a set that is not in the table.
  int add(const State& state, View<const std::uint64_t> bits);
  void set_path(int s, View<const int> path);

 private:
  static constexpr std::size_t kBlock = 4096;

  std::uint64_t* block_of(int s) const { return blocks_[s / kBlock].get() + as_size(s) % kBlock * words_; }
  void put_in_slot(int s);
  void grow();

  std::size_t words_;
  Array<State> states_;
  Array<std::unique_ptr<std::uint64_t[]>> blocks_;
  Array<int> slots_;
  Array<int> paths_;
};

}  // namespace modelplan::schedule
