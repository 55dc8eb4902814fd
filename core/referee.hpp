// The referee's sweep: do two buffers that are alive together share a byte? Shares no code with what it checks.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace modelplan::referee {

// Rows (below, above, bytes): `below` may reach `bytes` into the start of `above`.
// Rows (first, second, least, most): the two may share bytes where first.offset - second.offset lies in [least, most].
struct Allowed {
  std::span<const std::int64_t> below, above, bytes;
  std::span<const std::int64_t> first, second, least, most;
};

// The first clash in order of time as {earlier, later} buffer indices, or {-1, -1}.
// Time O(n log n) without allowed overlaps, memory O(n). Buffers of zero size never clash.
std::pair<std::int64_t, std::int64_t> find_clash(std::span<const std::int64_t> size,
                                                 std::span<const std::int64_t> start, std::span<const std::int64_t> end,
                                                 std::span<const std::int64_t> offset, const Allowed& allowed);

}  // namespace modelplan::referee
