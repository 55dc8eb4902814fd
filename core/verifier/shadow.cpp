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

// Bytes [start, end) from where a piece begins that are not what they should be, with what they hold.
struct Other {
  std::int64_t start, end;
  std::optional<Piece> found;  // none: nothing was written up to `end`
};

// What values are put together from, where they are: of many pieces a tensor gets a value of its own, as joins of joins
// would have twice as many at each step, and values are taken apart where they differ.
class Parts {
 public:
  void put_together(std::int64_t value, std::vector<Piece>&& pieces) { of_[value] = std::move(pieces); }

  // The first bytes of `found` that are not those of `wanted`, which is as long.
  std::optional<Other> first_other(const Piece& found, const Piece& wanted, int depth = 0) {
    if (found.value == wanted.value && found.start == wanted.start) return std::nullopt;
    const bool of_found = of_.contains(found.value) && (found.value >= wanted.value || !of_.contains(wanted.value));
    const auto parts = of_.find(of_found ? found.value : wanted.value);
    if (parts == of_.end() || depth == kDeepest || steps_-- <= 0) return Other{0, found.length, found};
    const std::int64_t begin = of_found ? found.start : wanted.start;
    std::int64_t from = -begin;
    for (const Piece& part : parts->second) {
      const std::int64_t low = std::max<std::int64_t>(from, 0), high = std::min(from + part.length, found.length);
      if (low < high) {
        const Piece inner = cut(part, low - from, high - low);
        const auto other = of_found ? first_other(inner, cut(wanted, low, high - low), depth + 1)
                                    : first_other(cut(found, low, high - low), inner, depth + 1);
        if (other) return Other{low + other->start, low + other->end, other->found};
      }
      from += part.length;
    }
    return std::nullopt;
  }

 private:
  // Behind these bytes count as others.
  static constexpr int kDeepest = 2'000;
  std::int64_t steps_ = 1'000'000;
  std::map<std::int64_t, std::vector<Piece>> of_;
};

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

  // The first bytes from `address` on that are not those of `wanted`, by their addresses.
  std::optional<Other> other_than(const Piece& wanted, std::int64_t address, Parts& parts) const {
    const std::int64_t end = address + wanted.length;
    auto it = pieces_.upper_bound(address);
    if (it != pieces_.begin() && std::prev(it)->first + std::prev(it)->second.length > address) --it;
    for (std::int64_t from = address; from < end; ++it) {
      if (it == pieces_.end() || it->first > from) return Other{from, end, std::nullopt};
      const std::int64_t to = std::min(it->first + it->second.length, end);
      const Piece found = cut(it->second, from - it->first, to - from);
      if (const auto other = parts.first_other(found, cut(wanted, from - address, to - from)))
        return Other{from + other->start, from + other->end, other->found};
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
  Machine(const Run& run, std::size_t most_pieces)
      : run_(run), most_pieces_(most_pieces), content_(run.size.size()), written_(run.size.size(), false) {}

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
    if (known && move > first && pieces.size() <= most_pieces_) return pieces;
    std::vector<Piece> own = fresh(run_.write_step[write], run_.write_tensor[write]);
    if (known && move > first) parts_.put_together(own[0].value, std::move(pieces));
    return own;
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
  std::optional<Fault> check(std::int64_t t, std::int64_t number, std::int64_t step) {
    if (!written_[as_index(t)]) return Fault{Fault::kUnwrittenTensor, number, step, t};
    if (run_.planned[as_index(t)] == 0) return std::nullopt;
    std::int64_t address = run_.address[as_index(t)];
    for (const Piece& piece : content_[as_index(t)]) {
      if (const auto other = shadow_.other_than(piece, address, parts_)) {
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
  std::size_t most_pieces_;
  Shadow shadow_;
  Parts parts_;
  std::vector<std::pair<std::int64_t, std::int64_t>> writers_;  // by value: (step, tensor)
  std::vector<std::vector<Piece>> content_;                     // by tensor
  std::vector<bool> written_;
};

}  // namespace

std::optional<Fault> replay(const Run& run, std::int64_t runs, std::size_t most_pieces) {
  Machine machine(run, most_pieces);
  for (std::int64_t number = 0; number < runs; ++number)
    if (const auto fault = machine.perform(number)) return fault;
  return std::nullopt;
}

}  // namespace modelplan::verifier
