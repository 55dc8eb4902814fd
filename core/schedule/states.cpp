#include "schedule/states.hpp"

#include <algorithm>

namespace modelplan::schedule {
namespace {

constexpr std::size_t kFirstSlots = 256;

}  // namespace

StateTable::StateTable(int ops) : words_((as_size(ops) + 63) / 64), slots_(kFirstSlots, -1) {}

void StateTable::clear() {
  states_.clear();
  paths_.clear();
  if (slots_.size() > kFirstSlots * 64)
    slots_ = Array<int>(kFirstSlots, -1);
  else
    std::fill(slots_.begin(), slots_.end(), -1);
}

std::size_t StateTable::memory() const {
  return states_.capacity() * sizeof(State) + blocks_.size() * kBlock * words_ * sizeof(std::uint64_t) +
         slots_.capacity() * sizeof(int) + paths_.capacity() * sizeof(int);
}

Array<int> StateTable::path_to(int s) const {
  Array<int> chain, path;
  for (; s > 0; s = states_[s].parent) chain.push_back(s);
  for (std::size_t i = chain.size(); i-- > 0;) {
    const State& state = states_[chain[i]];
    const auto part = View<const int>(paths_).subspan(state.path_at, state.path_size);
    path.insert(path.end(), part.begin(), part.end());
  }
  return path;
}

int StateTable::find(std::uint64_t key, View<const std::uint64_t> bits) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = key & mask;; at = (at + 1) & mask) {
    const int s = slots_[at];
    if (s < 0) return -1;
    if (states_[s].key == key && std::equal(bits.begin(), bits.end(), block_of(s))) return s;
  }
}

int StateTable::add(const State& state, View<const std::uint64_t> bits) {
  if ((states_.size() + 1) * 2 > slots_.size()) grow();
  const int s = static_cast<int>(states_.size());
  states_.push_back(state);
  if (states_.size() > blocks_.size() * kBlock) blocks_.push_back(std::make_unique<std::uint64_t[]>(kBlock * words_));
  std::copy(bits.begin(), bits.end(), block_of(s));
  put_in_slot(s);
  return s;
}

void StateTable::set_path(int s, View<const int> path) {
  State& state = states_[s];
  state.path_at = static_cast<std::uint32_t>(paths_.size());
  state.path_size = static_cast<std::uint32_t>(path.size());
  paths_.insert(paths_.end(), path.begin(), path.end());
}

void StateTable::put_in_slot(int s) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = states_[s].key & mask;
  while (slots_[at] >= 0) at = (at + 1) & mask;
  slots_[at] = s;
}

void StateTable::grow() {
  slots_.assign(slots_.size() * 2, -1);
  for (int s = 0; s < std::ssize(states_); ++s) put_in_slot(s);
}

}  // namespace modelplan::schedule
