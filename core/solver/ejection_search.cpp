#include "ejection_search.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "random.hpp"

namespace modelplan::solver {
namespace {

constexpr int kMoves = 2;           // random moves after each ejection
constexpr Id kChunk = 16;           // buffers of a chunk at first,
constexpr Id kPlaces = 2 * kChunk;  // and at most
constexpr Id kOutside = -1;         // in place of a place
constexpr Id kVectorWidth = 24;     // sections looked at in the time of one buffer
constexpr int kDigit = 6;           // bits of an offset that are sorted by at once
constexpr std::int32_t kMostTrials = 1 << 30;

// Coord: coordinates; the narrower, the more sections are looked at together.
template <class Coord>
class alignas(kCacheLines) Search final : public EjectionSearch {
 public:
  Search(const PackingInstance& instance, std::uint64_t seed) : instance_(instance), random_(seed) {
    for (const Item& item : instance_.items) boxes_.push_back({item.first, item.last, static_cast<Coord>(item.size)});
  }

  Verdict run(Bytes height, Meter& meter) override;
  Array<Bytes> offsets() const override {
    Array<Bytes> found;
    for (std::size_t i = 0; i < boxes_.size(); ++i) found.push_back(end_[i] - boxes_[i].size);
    return found;
  }

 private:
  struct Box {
    Id first, last;  // sections
    Coord size;
  };
  struct Chunk {  // a stretch of the order
    PaddedArray<Id> items;
    PaddedArray<Coord> below, above;  // per section: the height of the stack on the floor before it, of that behind it
    bool changed = false;             // since the buffers were settled
  };
  struct Edge {  // where the cost of an offset changes
    Coord at;
    std::int32_t change;
  };
  struct Spot {
    Coord offset;
    std::int64_t cost;  // of the buffers in the way
  };

  void start(Bytes height);
  void step(Meter& meter);
  void move_one(Meter& meter);
  Spot cheapest_spot(Id item, Meter& meter);
  std::int64_t find_edges(Id item);
  void sort_edges(std::int64_t count);
  void eject(Id item, Coord offset);
  void take_out(Id item);
  void insert(Id item, Coord offset);
  void number(Id chunk);
  void balance();
  void settle(Meter& meter);

  const PackingInstance& instance_;
  Random random_;
  Bytes bytes_ = -1;                  // the height of the last run,
  Coord height_ = 0;                  // and in units
  PaddedArray<Box> boxes_;            // the buffers
  PaddedArray<Chunk> chunks_;         // placed buffers, each behind those below it
  PaddedArray<Id> place_;             // of a placed buffer in the order: chunk * kPlaces + place in the chunk
  PaddedArray<Id> outside_;           // the other buffers
  PaddedArray<Coord> end_, latest_;   // of placed buffers: the lowest end and the highest offset
  PaddedArray<std::int32_t> trials_;  // how often a buffer had to eject others, plus one
  PaddedArray<Coord> top_;            // per section, while the placed buffers are settled
  PaddedArray<Edge> edges_, sorted_;
  PaddedArray<Id> order_, later_;  // while buffers are inserted
};

template <class Coord>
void Search<Coord>::start(Bytes height) {
  bytes_ = height;
  height_ = static_cast<Coord>(height / instance_.unit);
  chunks_.assign((std::ssize(instance_.items) + kChunk - 1) / kChunk, {});
  place_.assign(instance_.items.size(), kOutside);
  outside_.resize(instance_.items.size());
  std::iota(outside_.begin(), outside_.end(), 0);
  end_.assign(instance_.items.size(), 0);
  latest_.assign(instance_.items.size(), height_);
  trials_.assign(instance_.items.size(), 1);
  for (Chunk& chunk : chunks_) {
    chunk.below.assign(instance_.load.size(), 0);
    chunk.above.assign(instance_.load.size(), 0);
  }
  edges_.resize(2 * instance_.items.size());
  sorted_.resize(2 * instance_.items.size());
}

template <class Coord>
Verdict Search<Coord>::run(Bytes height, Meter& meter) {
  if (height != bytes_) start(height);
  while (!outside_.empty()) {
    if (meter.exhausted()) return Verdict::kUnknown;
    step(meter);
  }
  settle(meter);
  return Verdict::kFeasible;
}

template <class Coord>
void Search<Coord>::step(Meter& meter) {
  std::swap(outside_.back(), outside_[random_.below(std::ssize(outside_))]);
  const Id item = outside_.back();
  outside_.pop_back();
  const Spot spot = cheapest_spot(item, meter);
  if (spot.cost > 0) {
    trials_[item] = std::min(trials_[item] + 1, kMostTrials);
    eject(item, spot.offset);
  }
  insert(item, spot.offset);
  for (int k = 0; spot.cost > 0 && k < kMoves; ++k) move_one(meter);
}

// Takes a random buffer out and puts it where nothing is in its way, at least where it was.
template <class Coord>
void Search<Coord>::move_one(Meter& meter) {
  Id item = 0;
  do item = static_cast<Id>(random_.below(instance_.count()));
  while (place_[item] == kOutside);
  take_out(item);
  insert(item, cheapest_spot(item, meter).offset);
}

// Another buffer is in the way of [offset, offset + size) if it can neither end below nor begin above. Fills in where
// the cost of the offsets changes, in no order; gives the number of changes.
template <class Coord>
std::int64_t Search<Coord>::find_edges(Id item) {
  const Box own = boxes_[item];
  const auto past = static_cast<Coord>(height_ - own.size + 1);
  std::int64_t count = 0;
  for (Id other = 0; other < instance_.starts[own.last]; ++other) {
    const Coord begin = std::max<Coord>(static_cast<Coord>(latest_[other] - own.size + 1), 0);
    const Coord end = std::min(end_[other], past);
    edges_[count] = {begin, trials_[other]};
    edges_[count + 1] = {end, -trials_[other]};
    count += 2 * ((begin < end) & (boxes_[other].last > own.first));
  }
  return count;
}

// Sorts the first edges by their offsets: by a few bits at a time, since they are many and the offsets small.
template <class Coord>
void Search<Coord>::sort_edges(std::int64_t count) {
  const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(height_)));
  const int rounds = (bits + kDigit - 1) / kDigit, digit = (bits + rounds - 1) / rounds;
  std::uint32_t places[1 << kDigit];
  for (int shift = 0; shift < bits; shift += digit) {
    const auto place = [&](const Edge& edge) -> std::uint32_t& {
      return places[(static_cast<std::uint64_t>(edge.at) >> shift) & ((1u << digit) - 1)];
    };
    std::fill_n(places, 1 << digit, 0);
    for (std::int64_t k = 0; k < count; ++k) ++place(edges_[k]);
    std::exclusive_scan(places, places + (1 << digit), places, 0u);
    for (std::int64_t k = 0; k < count; ++k) sorted_[place(edges_[k])++] = edges_[k];
    edges_.swap(sorted_);
  }
}

// Settles the placed buffers. Gives a random one of the offsets with the least cost.
template <class Coord>
typename Search<Coord>::Spot Search<Coord>::cheapest_spot(Id item, Meter& meter) {
  settle(meter);
  const std::int64_t count = find_edges(item);
  sort_edges(count);
  meter.add(instance_.starts[boxes_[item].last] + 4 * count);
  Spot best{0, std::numeric_limits<std::int64_t>::max()};
  std::int64_t cost = 0, choices = 0;
  Coord from = 0;
  const auto offer = [&](Coord to) {  // the offsets in [from, to) cost the same
    if (from >= to || cost > best.cost) return;
    if (cost < best.cost) choices = 0;
    choices += to - from;
    const std::int64_t pick = random_.below(choices);
    if (pick < to - from) best.offset = static_cast<Coord>(from + pick);
    best.cost = cost;
  };
  for (std::int64_t k = 0; k < count; ++k) {
    offer(edges_[k].at);
    from = edges_[k].at;
    cost += edges_[k].change;
  }
  offer(static_cast<Coord>(height_ - boxes_[item].size + 1));
  return best;
}

// What is in the way of `item` at `offset` goes outside.
template <class Coord>
void Search<Coord>::eject(Id item, Coord offset) {
  const Box own = boxes_[item];
  for (Id other = 0; other < instance_.starts[own.last]; ++other) {
    if (boxes_[other].last <= own.first || end_[other] <= offset || latest_[other] >= offset + own.size) continue;
    take_out(other);
    outside_.push_back(other);
  }
}

// A buffer that is not placed is in nobody's way.
template <class Coord>
void Search<Coord>::take_out(Id item) {
  const Id chunk = place_[item] / kPlaces;
  PaddedArray<Id>& items = chunks_[chunk].items;
  items.erase(items.begin() + place_[item] % kPlaces);
  number(chunk);
  place_[item] = kOutside;
  end_[item] = 0;
  latest_[item] = height_;
}

// Writes down the places of the buffers of a chunk that has changed.
template <class Coord>
void Search<Coord>::number(Id chunk) {
  Id place = chunk * kPlaces;
  for (const Id item : chunks_[chunk].items) place_[item] = place++;
  chunks_[chunk].changed = true;
}

// Behind all its neighbours that end at `offset` or below and before the others. Where these do not stand in this
// order, what ends at `offset` or below goes first: what lies below one of these is one of these.
template <class Coord>
void Search<Coord>::insert(Id item, Coord offset) {
  const Box own = boxes_[item];
  Id from = std::numeric_limits<Id>::max(), to = 0;  // the first neighbour above, behind the last one below
  for (Id other = 0; other < instance_.starts[own.last]; ++other) {
    const bool meets = boxes_[other].last > own.first, below = end_[other] <= offset;
    to = std::max(to, meets & below ? place_[other] + 1 : 0);
    from = std::min(from, meets & !below ? place_[other] : std::numeric_limits<Id>::max());
  }
  from = std::min(from, to);
  const Id last = to / kPlaces;
  order_.clear();
  later_.clear();
  for (Id c = from / kPlaces; c <= last; ++c)
    for (const Id other : chunks_[c].items)
      if (place_[other] >= from && place_[other] < to) (end_[other] <= offset ? order_ : later_).push_back(other);
  order_.push_back(item);
  order_.insert(order_.end(), later_.begin(), later_.end());
  auto next = order_.begin();
  for (Id c = from / kPlaces; c <= last; ++c) {
    Id at = c * kPlaces;
    for (Id& other : chunks_[c].items)
      if (at++; at > from && at <= to) other = *next++;
    if (c < last) number(c);
  }
  PaddedArray<Id>& items = chunks_[last].items;
  items.insert(items.begin() + to % kPlaces, *next);
  number(last);
  if (std::ssize(items) == kPlaces) balance();
}

// Deals the placed buffers out to the chunks anew, in their order.
template <class Coord>
void Search<Coord>::balance() {
  order_.clear();
  for (const Chunk& chunk : chunks_) order_.insert(order_.end(), chunk.items.begin(), chunk.items.end());
  const std::ptrdiff_t count = std::ssize(order_), chunks = std::ssize(chunks_);
  for (Id c = 0; c < chunks; ++c) {
    chunks_[c].items.assign(order_.begin() + c * count / chunks, order_.begin() + (c + 1) * count / chunks);
    number(c);
  }
}

// Computes how far the placed buffers may move, where that has changed.
template <class Coord>
void Search<Coord>::settle(Meter& meter) {
  std::int64_t looks = 0;
  const auto stack = [&](const Box& box) {  // puts it on what lies below it; gives its top
    Coord* const top = top_.data() + box.first;
    const Id width = box.last - box.first;
    Coord highest = 0;
    for (Id s = 0; s < width; ++s) highest = std::max(highest, top[s]);
    const auto end = static_cast<Coord>(highest + box.size);
    std::fill_n(top, width, end);
    looks += 1 + width / kVectorWidth;
    return end;
  };
  bool carry = false;
  const std::int64_t count = std::ssize(chunks_);
  for (std::int64_t c = 0; c < count; ++c) {
    const Chunk& chunk = chunks_[c];
    if (!chunk.changed && !carry) continue;
    if (!carry) top_ = chunk.below;
    for (const Id item : chunk.items) end_[item] = stack(boxes_[item]);
    if (c + 1 == count) break;
    carry = top_ != chunks_[c + 1].below;
    if (carry) chunks_[c + 1].below = top_;
  }
  carry = false;
  for (std::int64_t c = count; c-- > 0;) {
    Chunk& chunk = chunks_[c];
    if (!chunk.changed && !carry) continue;
    chunk.changed = false;
    if (!carry) top_ = chunk.above;
    std::for_each(chunk.items.rbegin(), chunk.items.rend(),
                  [&](Id item) { latest_[item] = static_cast<Coord>(height_ - stack(boxes_[item])); });
    if (c == 0) break;
    carry = top_ != chunks_[c - 1].above;
    if (carry) chunks_[c - 1].above = top_;
  }
  meter.add(looks);
}

}  // namespace

std::unique_ptr<EjectionSearch> make_ejection_search(const PackingInstance& instance, Bytes most, std::uint64_t seed) {
  const Bytes units = most / instance.unit;
  if (units < std::numeric_limits<std::int16_t>::max()) return std::make_unique<Search<std::int16_t>>(instance, seed);
  if (units < std::numeric_limits<std::int32_t>::max()) return std::make_unique<Search<std::int32_t>>(instance, seed);
  return std::make_unique<Search<std::int64_t>>(instance, seed);
}

}  // namespace modelplan::solver
