#include "shadow.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace modelplan::verifier {
namespace {

std::size_t as_index(std::int64_t i) { return static_cast<std::size_t>(i); }

// `length` bytes of value `value`, from its byte `start` on.
struct Piece {
  std::int64_t value, start, length;
};

// The part of a piece from its byte `from` on.
Piece cut(const Piece& piece, std::int64_t from, std::int64_t length) {
  return {piece.value, piece.start + from, length};
}

// Disjoint intervals of the arena with the values in them.
class Shadow {
 public:
  // Puts `piece` at `address`, cutting what was there.
  void write(std::int64_t address, const Piece& piece) {
    if (piece.length == 0) return;
    const std::int64_t end = address + piece.length;
    split(address);
    split(end);
    pieces_.erase(pieces_.lower_bound(address), pieces_.lower_bound(end));
    pieces_.emplace(address, piece);
  }

  // Bytes [first, second) from `address` on that hold something else than `wanted`, with what they hold.
  struct Other {
    std::int64_t start, end;
    std::optional<Piece> found;  // none: nothing was written up to `end`
  };
  std::optional<Other> other_than(const Piece& wanted, std::int64_t address) const {
    const std::int64_t end = address + wanted.length;
    auto it = pieces_.upper_bound(address);
    if (it != pieces_.begin() && std::prev(it)->first + std::prev(it)->second.length > address) --it;
    for (std::int64_t from = address; from < end; ++it) {
      if (it == pieces_.end() || it->first > from) return Other{from, end, std::nullopt};
      const std::int64_t to = std::min(it->first + it->second.length, end);
      const Piece found = cut(it->second, from - it->first, to - from);
      if (found.value != wanted.value || found.start != wanted.start + from - address) return Other{from, to, found};
      from = to;
    }
    return std::nullopt;
  }

 private:
  // Makes an interval end where it reaches across `address`, and another begin there.
  void split(std::int64_t address) {
    auto it = pieces_.lower_bound(address);
    if (it == pieces_.begin()) return;
    --it;
    const std::int64_t before = address - it->first, after = it->second.length - before;
    if (after <= 0) return;
    pieces_.emplace(address, cut(it->second, before, after));
    it->second.length = before;
  }

  std::map<std::int64_t, Piece> pieces_;
};

class Machine {
 public:
  explicit Machine(const Run& run) : run_(run), content_(run.size.size()), written_(run.size.size(), false) {}

  std::optional<Fault> perform(std::int64_t number) {
    if (number == 0)
      for (const std::int64_t t : run_.states) store(t, fresh(kStart, t));
    for (const std::int64_t t : run_.inputs) store(t, fresh(kCaller, t));
    std::size_t read = 0, write = 0, scratch = 0, move = 0;
    for (std::int64_t step = 0; step < run_.steps; ++step) {
      for (; read < run_.read_step.size() && run_.read_step[read] == step; ++read)
        if (const auto fault = check(run_.read_tensor[read], number, step)) return fault;
      const std::size_t first = write;
      std::vector<std::vector<Piece>> results;
      for (; write < run_.write_step.size() && run_.write_step[write] == step; ++write)
        results.push_back(result(write, move));
      for (; scratch < run_.scratch_step.size() && run_.scratch_step[scratch] == step; ++scratch) {
        const std::int64_t start = run_.scratch_start[scratch];
        shadow_.write(start, {value_of(step, -1), 0, run_.scratch_end[scratch] - start});
      }
      for (std::size_t i = first; i < write; ++i) store(run_.write_tensor[i], std::move(results[i - first]));
    }
    for (const std::int64_t t : run_.outputs)
      if (const auto fault = check(t, number, kCaller)) return fault;
    for (const std::int64_t t : run_.states)
      if (const auto fault = check(t, number, kNextRun)) return fault;
    return std::nullopt;
  }

 private:
  std::int64_t value_of(std::int64_t step, std::int64_t tensor) {
    writers_.emplace_back(step, tensor);
    return std::ssize(writers_) - 1;
  }

  std::vector<Piece> fresh(std::int64_t step, std::int64_t t) {
    return {{value_of(step, t), 0, run_.size[as_index(t)]}};
  }

  // What a write leaves: the bytes that its moves bring, or a value of its own. `move` goes on behind its rows.
  std::vector<Piece> result(std::size_t write, std::size_t& move) {
    std::vector<Piece> pieces;
    const std::size_t first = move;
    bool known = true;
    for (; move < run_.move_write.size() && as_index(run_.move_write[move]) == write; ++move) {
      known = known && written_[as_index(run_.move_source[move])];
      if (known) take(run_.move_source[move], run_.move_start[move], run_.move_length[move], pieces);
    }
    if (known && move > first) return pieces;
    return fresh(run_.write_step[write], run_.write_tensor[write]);
  }

  // Adds bytes [start, start + length) of what tensor `t` holds.
  void take(std::int64_t t, std::int64_t start, std::int64_t length, std::vector<Piece>& pieces) const {
    std::int64_t from = 0;
    for (const Piece& piece : content_[as_index(t)]) {
      const std::int64_t low = std::max(start, from), high = std::min(start + length, from + piece.length);
      if (low < high) pieces.push_back(cut(piece, low - from, high - low));
      from += piece.length;
    }
  }

  void store(std::int64_t t, std::vector<Piece>&& pieces) {
    if (run_.planned[as_index(t)] != 0) {
      std::int64_t address = run_.address[as_index(t)];
      for (const Piece& piece : pieces) {
        shadow_.write(address, piece);
        address += piece.length;
      }
    }
    content_[as_index(t)] = std::move(pieces);
    written_[as_index(t)] = true;
  }

  // Checks that every byte of a tensor is what was last written to it.
  std::optional<Fault> check(std::int64_t t, std::int64_t number, std::int64_t step) const {
    if (!written_[as_index(t)]) return Fault{Fault::kUnwrittenTensor, number, step, t};
    if (run_.planned[as_index(t)] == 0) return std::nullopt;
    std::int64_t address = run_.address[as_index(t)];
    for (const Piece& piece : content_[as_index(t)]) {
      if (const auto other = shadow_.other_than(piece, address)) {
        if (!other->found) {
          const std::int64_t end = run_.address[as_index(t)] + run_.size[as_index(t)];
          return Fault{Fault::kUnwrittenBytes, number, step, t, other->start, end};
        }
        const auto& [writer, tensor] = writers_[as_index(other->found->value)];
        return Fault{Fault::kOtherValue, number, step, t, other->start, other->end, writer, tensor};
      }
      address += piece.length;
    }
    return std::nullopt;
  }

  const Run& run_;
  Shadow shadow_;
  std::vector<std::pair<std::int64_t, std::int64_t>> writers_;  // by value: (step, tensor)
  std::vector<std::vector<Piece>> content_;                     // by tensor
  std::vector<bool> written_;
};

}  // namespace

std::optional<Fault> replay(const Run& run, std::int64_t runs) {
  Machine machine(run);
  for (std::int64_t number = 0; number < runs; ++number)
    if (const auto fault = machine.perform(number)) return fault;
  return std::nullopt;
}

}  // namespace modelplan::verifier
