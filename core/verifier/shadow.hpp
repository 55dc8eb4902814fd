// The verifier's replay: a shadow of the arena says which value each byte holds. Shares no code with what it checks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace modelplan::verifier {

// One run, steps counted from 0; the columns of reads, writes and scratch are in order of their steps.
struct Run {
  using Column = std::span<const std::int64_t>;
  std::int64_t steps;
  // By tensor: its bytes, and its address if `planned` is not 0.
  Column size, address, planned;
  // Tensors that the caller writes before the run and reads after it, and those that keep their values between runs.
  Column inputs, outputs, states;
  Column read_step, read_tensor;
  Column write_step, write_tensor;
  // Rows of bytes [start, end) that a step fills with junk.
  Column scratch_step, scratch_start, scratch_end;
  // Rows in order of the write to which they belong: what it writes is `length` bytes of `source` from byte `start` on,
  // row after row. A write without rows, or from a tensor that nothing wrote, makes a value of its own.
  Column move_write, move_source, move_start, move_length;
};

// The step of what the caller and the next run do, beside those from 0 on.
constexpr std::int64_t kStart = -1, kCaller = -2, kNextRun = -3;

// A read that does not find its own bytes: `step` of run `run` reads `tensor`.
struct Fault {
  enum Kind : std::int64_t { kUnwrittenTensor, kUnwrittenBytes, kOtherValue };
  Kind kind;
  std::int64_t run, step, tensor;
  // The bytes [start, end) that are not its own; whose they are: `by_tensor` -1 stands for scratch of `by_step`.
  std::int64_t start = 0, end = 0, by_step = kStart, by_tensor = -1;
};

// The first fault of `runs` runs one after the other. A tensor whose moves bring more than `most_pieces` pieces counts
// as one, taken apart where it shares bytes. Time O(n log n) for n pieces of tensors that are written or read.
std::optional<Fault> replay(const Run& run, std::int64_t runs, std::size_t most_pieces);

}  // namespace modelplan::verifier
