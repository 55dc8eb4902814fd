// The verifier's sweep: which tensors share bytes while both are alive? Shares no code with what it checks.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace modelplan::verifier {

// One row for each value of a tensor: bytes [start, end), alive from step `first` to step `last`, both included.
// Tensors of one class hold the same bytes.
struct Lives {
  std::span<const std::int64_t> start, end, first, last, cls;
};

// Rows (over, by, step): a value of class `by` that begins at `step` may lie over one of class `over` that ends there.
struct Overwrites {
  std::span<const std::int64_t> over, by, step;
};

// The first two lives that share bytes and must not, in order of time, as {earlier, later}; {-1, -1} if there are none.
// Time O(n log n) besides pairs that do share bytes, memory O(n). Every life has at least one byte.
std::pair<std::int64_t, std::int64_t> find_shared_bytes(const Lives& lives, const Overwrites& overwrites);

}  // namespace modelplan::verifier
