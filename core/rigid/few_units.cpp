#include "few_units.hpp"

#include <algorithm>
#include <limits>

#include "exact_search.hpp"

namespace modelplan::rigid {

FewUnits::FewUnits(Packer& packer, const StopSignal& signal)
    : packer_(packer), signal_(signal), order_(packer.used()), pairs_(1) {
  for (const std::size_t u : order_) pairs_ += static_cast<std::int64_t>(packer.neighbours(u).size());
  pairs_ = 1 + pairs_ / 2;
  std::ranges::stable_sort(order_, std::ranges::greater(), [&](std::size_t u) { return packer.unit(u).high; });
}

std::int64_t FewUnits::lower(Array<std::int64_t>& bases, std::int64_t& bound, std::int64_t enough, std::int64_t tries) {
  constexpr std::int64_t kShares = 4;  // of the work: what one limit may take
  std::int64_t height = packer_.height(bases), hoped = bound;
  Array<std::int64_t> at = bases;
  work_ = left_ = tries * pairs_;
  std::int64_t share = work_ / kShares;
  while (height > std::max(bound, enough) && left_ > 0) {
    if (hoped >= height) share = left_;
    const std::int64_t limit = std::min(hoped + (height - hoped) / 2, height - 1);
    const std::int64_t before = share;
    ExactSearch exact(packer_.units(), {order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(few_)}, signal_);
    bool reached = exact.fit(at, limit, share);
    left_ -= before - share;
    if (!reached) {
      hoped = first_height(limit + 1);
      if (share > 0) bound = hoped;
    } else {
      left_ -= pairs_;
      const std::int64_t found = packer_.place_behind(order_, few_, at);
      if (found < height) {
        height = found;
        bases = packer_.bases();
      }
      reached = !add_one_above(limit, packer_.bases());
      if (!reached) continue;
    }
    at = bases;
    share = std::min(work_ / kShares, left_);
  }
  return height;
}

// The first height from `at` on at which some unit can end.
std::int64_t FewUnits::first_height(std::int64_t at) const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t u : order_) {
    const Unit& unit = packer_.unit(u);
    const std::int64_t end = unit.high + (unit.pin != Unit::kFree ? unit.pin : unit.from(at - unit.high));
    if (end >= at) first = std::min(first, end);
  }
  return first;
}

// Makes the largest of the units that end above a limit one of the few; whether there is one.
bool FewUnits::add_one_above(std::int64_t limit, const Array<std::int64_t>& bases) {
  const auto others = order_.begin() + static_cast<std::ptrdiff_t>(few_);
  const auto above =
      std::find_if(others, order_.end(), [&](std::size_t u) { return bases[u] + packer_.unit(u).high > limit; });
  if (above == order_.end()) return false;
  std::rotate(others, above, above + 1);
  ++few_;
  return true;
}

}  // namespace modelplan::rigid
