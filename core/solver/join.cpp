#include "join.hpp"

#include <algorithm>
#include <numeric>

namespace modelplan::solver {
namespace {

constexpr std::size_t kFew = 16;  // buffers at a seam that are compared one by one

// Per seam, the outer ones included: whether the sections beside it have no byte to spare.
Array<char> full_seams(const PackingInstance& instance, Bytes height) {
  Array<char> full(instance.load.size() + 1, 1);
  for (std::size_t s = 0; s < instance.load.size(); ++s)
    if (instance.load[s] != height / instance.unit) full[s] = full[s + 1] = 0;
  return full;
}

}  // namespace

std::uint64_t Joins::lifetime(const Piece& piece) {
  return static_cast<std::uint64_t>(piece.begin) << 32 | static_cast<std::uint64_t>(piece.end);
}

bool Joins::apply_to(const PackingInstance& instance, Bytes height) {
  if (instance.items.empty() || !instance.is_plain() || !instance.even_pads || instance.items.front().pad > 0)
    return false;
  const Array<char> full = full_seams(instance, height);
  return 4 * std::count(full.begin(), full.end(), 1) >= std::ssize(full);
}

Joins::Joins(const PackingInstance& instance, Bytes height, Meter& meter)
    : full_(full_seams(instance, height)),
      section_(full_.size()),
      begins_(full_.size()),
      ends_(full_.size()),
      is_touched_(full_.size()),
      items_(instance.count()) {
  std::iota(section_.begin(), section_.end(), 0);
  Poller poller(meter.signal());
  for (const Item& item : instance.items) {
    poller.count();
    add(item.first, item.last, item.size);
  }
  for (Id i = 0; i < instance.count(); ++i) {
    poller.count();
    if (pieces_[i].begin_place >= 0) join_alike(i);
  }
  for (Id seam = instance.sections(); seam >= 0; --seam) touch(seam);
  join_touched(meter);
  for (bool more = true; more && !meter.exhausted();) {
    more = false;
    for (Id seam = 0; seam < std::ssize(full_); ++seam)
      if (full_[seam] && split(seam)) {
        more = true;
        join_touched(meter);
      }
  }
}

void Joins::join_touched(Meter& meter) {
  while (!touched_.empty() && !meter.exhausted()) {
    const Id seam = touched_.back();
    touched_.pop_back();
    is_touched_[seam] = 0;
    meter.add(8);
    if (full_[seam] && !join_across(seam)) join_pinwheel(seam);
  }
}

// Takes apart one buffer and the one or two across the seam that are as large together, if that is the only way in
// which these can fit.
bool Joins::split(Id seam) {
  const Array<Id>&ends = ends_[seam], &begins = begins_[seam];
  if (ends.size() < 2 || begins.size() < 2 || ends.size() + begins.size() > kFew) return false;
  Array<Group> groups;
  for (const Id piece : ends) collect(piece, begins, groups);
  for (const Id piece : begins) collect(piece, ends, groups);
  for (const Group& group : groups) {
    const auto rivals = [&](const Group& other) {
      return other != group && std::ranges::any_of(other, [&](Id piece) {
               return piece >= 0 && std::ranges::find(group, piece) != group.end();
             });
    };
    if (std::ranges::none_of(groups, rivals)) return separate(group, seam);
  }
  return false;
}

// Adds the ways in which one or two of `across` are as large as `piece`.
void Joins::collect(Id piece, const Array<Id>& across, Array<Group>& groups) const {
  const auto size = [this](Id i) { return pieces_[i].size; };
  for (std::size_t a = 0; a < across.size(); ++a) {
    if (size(across[a]) == size(piece)) groups.push_back({std::min(piece, across[a]), std::max(piece, across[a]), -1});
    for (std::size_t b = a + 1; b < across.size(); ++b)
      if (size(across[a]) + size(across[b]) == size(piece)) groups.push_back({piece, across[a], across[b]});
  }
}

bool Joins::separate(const Group& group, Id seam) {
  const auto apart = static_cast<Id>(full_.size());
  full_.push_back(1);
  section_.push_back(section_[seam]);
  ends_.emplace_back();
  begins_.emplace_back();
  is_touched_.push_back(0);
  for (const Id piece : group) {
    if (piece < 0) continue;
    take_out(piece);
    (pieces_[piece].end == seam ? pieces_[piece].end : pieces_[piece].begin) = apart;
    put_in(piece);
    join_alike(piece);
  }
  touch(seam);
  return true;
}

void Joins::touch(Id seam) {
  if (is_touched_[seam]) return;
  is_touched_[seam] = 1;
  touched_.push_back(seam);
}

Id Joins::add(Id begin, Id end, Bytes size) {
  const auto piece = static_cast<Id>(pieces_.size());
  pieces_.push_back({begin, end, size, 0, 0});
  put_in(piece);
  return piece;
}

void Joins::put_in(Id piece) {
  Piece& own = pieces_[piece];
  own.begin_place = static_cast<Id>(begins_[own.begin].size());
  own.end_place = static_cast<Id>(ends_[own.end].size());
  begins_[own.begin].push_back(piece);
  ends_[own.end].push_back(piece);
  ++alive_;
  touch(own.begin);
  touch(own.end);
}

void Joins::join(View<const PlacedPiece> parts, Id begin, Id end, Bytes size) {
  for (const PlacedPiece& part : parts) {
    take_out(part.piece);
    parts_.push_back({part.piece, -1, part.offset});
  }
  const auto whole = static_cast<Id>(pieces_.size());
  for (std::size_t k = parts_.size() - parts.size(); k < parts_.size(); ++k) parts_[k].whole = whole;
  join_alike(add(begin, end, size));
}

void Joins::take_out(Id piece) {
  const Piece own = pieces_[piece];
  const auto remove = [&](Array<Id>& list, Id place, Id Piece::* places) {
    list[place] = list.back();
    pieces_[list[place]].*places = place;
    list.pop_back();
  };
  remove(begins_[own.begin], own.begin_place, &Piece::begin_place);
  remove(ends_[own.end], own.end_place, &Piece::end_place);
  pieces_[piece].begin_place = -1;
  --alive_;
  touch(own.begin);
  touch(own.end);
  if (const auto found = alike_.find(lifetime(own)); found != alike_.end() && found->second == piece)
    alike_.erase(found);
}

// Joins a piece to another of the same lifetime, if there is one and both seams are full. In the space between two such
// pieces everything begins and ends with them, so the one may slide to the other:
//
//   |  a  |      |  a  |
//   |--+--|      |-----|
//   |  |  |  ->  |  b  |
//   |--+--|      |--+--|
//   |  b  |      |  |  |
void Joins::join_alike(Id piece) {
  const Piece own = pieces_[piece];
  if (!full_[own.begin] || !full_[own.end]) return;
  const auto [found, fresh] = alike_.try_emplace(lifetime(own), piece);
  if (fresh) return;
  const PlacedPiece both[] = {{found->second, 0}, {piece, pieces_[found->second].size}};
  join(both, own.begin, own.end, both[1].offset + own.size);
}

// One ends where one begins: they take the same bytes.
bool Joins::join_across(Id seam) {
  if (ends_[seam].size() != 1 || begins_[seam].size() != 1) return false;
  const Id left = ends_[seam][0], right = begins_[seam][0];
  const PlacedPiece both[] = {{left, 0}, {right, 0}};
  join(both, pieces_[left].begin, pieces_[right].end, pieces_[left].size);
  return true;
}

// Tries the seam on either side of the core.
bool Joins::join_pinwheel(Id seam) {
  const Array<Id>&ends = ends_[seam], &begins = begins_[seam];
  if (ends.size() == 1 && begins.size() == 2)
    return try_pinwheel(ends[0], begins[0], begins[1]) || try_pinwheel(ends[0], begins[1], begins[0]);
  if (ends.size() == 2 && begins.size() == 1)
    for (const Id core : {ends[0], ends[1]}) {
      const Id other = pieces_[core].begin;
      if (!full_[other] || ends_[other].size() != 1 || begins_[other].size() != 2) continue;
      const Id upper = begins_[other][0] == core ? begins_[other][1] : begins_[other][0];
      if (try_pinwheel(ends_[other][0], core, upper)) return true;
    }
  return false;
}

// `left` ends at the seam, `core` and `right` begin there. At the end of the core are two more, one that ends with it
// and lies on the other side of it than `right` (they are alive together), and one that begins.
bool Joins::try_pinwheel(Id left, Id core, Id right) {
  const Id end = pieces_[core].end;
  if (!full_[end] || ends_[end].size() != 2 || begins_[end].size() != 1) return false;
  const Id lower = ends_[end][0] == core ? ends_[end][1] : ends_[end][0], last = begins_[end][0];
  const Piece &p = pieces_[left], &c = pieces_[core], &q = pieces_[right], &r = pieces_[lower], &s = pieces_[last];
  if (p.begin != r.begin || q.end != s.end) return false;
  const PlacedPiece pinwheel[] = {{left, r.size}, {core, r.size}, {right, r.size + c.size}, {lower, 0}, {last, 0}};
  join(pinwheel, p.begin, q.end, p.size + r.size);
  return true;
}

PackingInstance Joins::remainder(const Rules& rules, Poller& poller) const {
  Array<Bytes> size, start, end;
  for (const Piece& piece : pieces_) {
    if (piece.begin_place < 0) continue;
    size.push_back(piece.size);
    start.push_back(section_[piece.begin]);
    end.push_back(piece.end);
  }
  const Array<Bytes> alignment(size.size(), 1), pin(size.size(), -1);
  return prepare({.size = size, .start = start, .end = end, .alignment = alignment, .pin = pin}, rules, poller);
}

Array<Bytes> Joins::expand(const PackingInstance& remainder, View<const Bytes> offsets) const {
  const Array<Bytes> remaining = remainder.caller_offsets(offsets);
  Array<Bytes> all(pieces_.size());
  for (std::size_t i = 0, next = 0; i < pieces_.size(); ++i)
    if (pieces_[i].begin_place >= 0) all[i] = remaining[next++];
  for (std::size_t k = parts_.size(); k-- > 0;) all[parts_[k].piece] = all[parts_[k].whole] + parts_[k].offset;
  all.resize(items_);
  return all;
}

}  // namespace modelplan::solver
