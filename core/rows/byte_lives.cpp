#include "byte_lives.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace modelplan::rows {
namespace {

using Life = std::pair<std::int64_t, std::int64_t>;  // from a step to before another

// The lives of the bytes of one group between each two cuts, in the order of the accesses.
Array<Array<Life>> lives_between(const Array<Bytes>& cuts, View<const Access> accesses) {
  Array<Array<Life>> lives(cuts.size() - 1);
  const auto index = [&](Bytes at) { return std::ranges::lower_bound(cuts, at) - cuts.begin(); };
  for (const Access& access : accesses)
    for (auto i = index(access.lo), end = index(access.hi); i < end; ++i) {
      Array<Life>& own = lives[as_size(i)];
      if (access.writes)
        own.push_back({access.step, access.step + 1});
      else if (!own.empty())
        own.back().second = access.step + 1;
      else
        own.push_back({-1, access.step + 1});
    }
  return lives;
}

// Adds the longest runs of bytes of each life of a group.
void add_runs(std::size_t group, const Array<Bytes>& cuts, Array<Array<Life>>& lives, Array<LiveBytes>& out) {
  Array<std::pair<Life, Bytes>> begun, going;  // by life, with the first byte
  const std::size_t from = out.size();
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    Array<Life> now = i < lives.size() ? std::move(lives[i]) : Array<Life>{};
    std::ranges::sort(now);
    now.erase(std::unique(now.begin(), now.end()), now.end());
    going.clear();
    std::size_t k = 0;
    for (const Life& life : now) {
      for (; k < begun.size() && begun[k].first < life; ++k)
        out.push_back({group, begun[k].second, cuts[i], begun[k].first.first, begun[k].first.second});
      const bool goes_on = k < begun.size() && begun[k].first == life;
      going.push_back({life, goes_on ? begun[k++].second : cuts[i]});
    }
    for (; k < begun.size(); ++k)
      out.push_back({group, begun[k].second, cuts[i], begun[k].first.first, begun[k].first.second});
    std::swap(begun, going);
  }
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(from), out.end(), [](const LiveBytes& a, const LiveBytes& b) {
    return std::tie(a.lo, a.hi, a.start, a.end) < std::tie(b.lo, b.hi, b.start, b.end);
  });
}

// Runs by group and step, in the order in which the pairs come first.
class RunsAt {
 public:
  void add(std::size_t group, std::int64_t step, std::size_t run) {
    const auto [at, is_new] = index_.emplace(key(group, step), runs_.size());
    if (is_new) runs_.push_back({group, step, {}});
    runs_[at->second].runs.push_back(run);
  }
  const Array<std::size_t>& at(std::size_t group, std::int64_t step) const {
    static const Array<std::size_t> none;
    const auto found = index_.find(key(group, step));
    return found == index_.end() ? none : runs_[found->second].runs;
  }
  struct Row {
    std::size_t group;
    std::int64_t step;
    Array<std::size_t> runs;
  };
  const Array<Row>& rows() const { return runs_; }

 private:
  static std::uint64_t key(std::size_t group, std::int64_t step) {
    return (static_cast<std::uint64_t>(group) << 32) ^ static_cast<std::uint64_t>(step + 1);
  }
  std::unordered_map<std::uint64_t, std::size_t> index_;
  Array<Row> runs_;
};

}  // namespace

Array<LiveBytes> byte_lives(Array<Access> accesses) {
  std::ranges::stable_sort(accesses, {}, &Access::group);
  Array<LiveBytes> out;
  for (auto at = accesses.begin(); at != accesses.end();) {
    const auto end = std::find_if(at, accesses.end(), [&](const Access& a) { return a.group != at->group; });
    Array<Bytes> cuts;
    for (auto a = at; a != end; ++a) cuts.insert(cuts.end(), {a->lo, a->hi});
    std::ranges::sort(cuts);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    auto lives = lives_between(cuts, {at, end});
    add_runs(at->group, cuts, lives, out);
    at = end;
  }
  return out;
}

Array<Meeting> meetings_of(const Array<LiveBytes>& lives, std::size_t groups, const Array<AllowedOverlap>& overlaps) {
  RunsAt born, dying;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const LiveBytes& run = lives[i];
    born.add(run.group, run.start, i);
    if (run.end - run.start > 1) dying.add(run.group, run.end - 1, i);
  }
  Array<Meeting> meetings;
  const auto add = [&](std::size_t a, std::size_t b, Bytes least, Bytes most) {
    meetings.push_back({static_cast<std::int64_t>(groups + a), static_cast<std::int64_t>(groups + b), least, most});
  };
  const auto by_place = [&](Array<std::size_t> runs) {
    std::ranges::stable_sort(runs, {}, [&](std::size_t run) { return lives[run].lo; });
    return runs;
  };
  for (const RunsAt::Row& row : born.rows()) {
    const Array<std::size_t> olds = by_place(dying.at(row.group, row.step));
    std::size_t from = 0;
    for (const std::size_t a : by_place(row.runs)) {
      while (from < olds.size() && lives[olds[from]].hi <= lives[a].lo) ++from;
      for (std::size_t k = from; k < olds.size() && lives[olds[k]].lo < lives[a].hi; ++k) {
        const Bytes distance = lives[a].lo - lives[olds[k]].lo;
        add(a, olds[k], distance, distance);
      }
    }
  }
  for (const AllowedOverlap& allowed : overlaps)
    for (const std::size_t a : born.at(allowed.by, allowed.step))
      for (const std::size_t b : dying.at(allowed.over, allowed.step)) {
        const Bytes most = allowed.bound + lives[a].lo - lives[b].lo, least = lives[a].lo - lives[a].hi;
        if (least < most) add(a, b, allowed.exact ? most : least, most);
      }
  return meetings;
}

Array<std::pair<std::size_t, std::size_t>> dead_runs_apart(const Array<LiveBytes>& runs,
                                                           const Array<std::int64_t>& steps,
                                                           const Array<LiveBytes>& values) {
  Array<Array<std::size_t>> of_group;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].group >= of_group.size()) of_group.resize(runs[i].group + 1);
    of_group[runs[i].group].push_back(i);
  }
  Array<std::size_t> by_step(steps.size());
  std::iota(by_step.begin(), by_step.end(), std::size_t{0});
  const auto step_of = [&](std::size_t own) { return steps[own]; };
  std::ranges::stable_sort(by_step, {}, step_of);
  Array<std::pair<std::size_t, std::size_t>> found;
  for (const LiveBytes& value : values) {
    if (value.group >= of_group.size()) continue;
    const auto end = std::ranges::lower_bound(by_step, value.end, {}, step_of);
    for (auto own = std::ranges::lower_bound(by_step, value.start, {}, step_of); own < end; ++own)
      for (const std::size_t i : of_group[value.group]) {
        const LiveBytes& run = runs[i];
        const bool dead = steps[*own] < run.start || run.end <= steps[*own];
        if (dead && run.lo < value.hi && value.lo < run.hi) found.push_back({*own, i});
      }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Bytes lasting_bytes(const Array<LiveBytes>& lives) {
  Array<std::pair<std::int64_t, Bytes>> changes;
  for (const LiveBytes& run : lives)
    if (run.end - run.start > 1) {
      changes.push_back({run.start, run.hi - run.lo});
      changes.push_back({run.end - 1, run.lo - run.hi});
    }
  std::ranges::sort(changes);  // at one step deaths come first
  Bytes most = 0, alive = 0;
  for (const auto& [step, bytes] : changes) most = std::max(most, alive += bytes);
  return most;
}

GroupProblem::GroupProblem(const Array<LiveBytes>& lives, const Array<std::int64_t>& group_alignment,
                           const Array<AllowedOverlap>& overlaps)
    : alignment(group_alignment) {
  const std::size_t groups = group_alignment.size(), count = groups + lives.size();
  for (std::size_t g = 0; g < groups; ++g) {
    size.push_back(0), start.push_back(0), end.push_back(1);
    group.push_back(static_cast<std::int64_t>(g)), delta.push_back(0);
  }
  for (const LiveBytes& run : lives) {
    size.push_back(run.hi - run.lo), start.push_back(run.start + 1), end.push_back(run.end + 1);
    group.push_back(static_cast<std::int64_t>(run.group)), delta.push_back(run.lo);
  }
  alignment.resize(count, 1);
  pin.assign(count, -1);
  for (std::size_t b = 0; b < count; ++b) member.push_back(static_cast<std::int64_t>(b));
  for (const Meeting& meeting : meetings_of(lives, groups, overlaps)) {
    first.push_back(meeting.first), second.push_back(meeting.second);
    least.push_back(meeting.least), most.push_back(meeting.most);
  }
}

Problem GroupProblem::problem() const {
  return {.size = size,
          .start = start,
          .end = end,
          .alignment = alignment,
          .pin = pin,
          .left = left,
          .right = right,
          .member = member,
          .group = group,
          .delta = delta,
          .first = first,
          .second = second,
          .least = least,
          .most = most};
}

}  // namespace modelplan::rows
