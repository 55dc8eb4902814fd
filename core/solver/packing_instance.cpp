#include "packing_instance.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

namespace modelplan::solver {
namespace {

constexpr Bytes kLargest = std::numeric_limits<Bytes>::max() / 8;

[[noreturn]] void refuse(const char* what, std::size_t index, const std::string& found) {
  throw std::invalid_argument(std::string(what) + " " + std::to_string(index) + ": " + found);
}

void check_lengths(const Problem& p) {
  const std::size_t n = p.count();
  for (const Ints& column : {p.start, p.end, p.alignment, p.pin})
    if (column.size() != n) throw std::invalid_argument("the columns of the buffers differ in length");
  if (p.below.size() != p.above.size() || p.below.size() != p.bytes.size())
    throw std::invalid_argument("the columns of the overlaps differ in length");
  if (!p.left.empty()) throw std::invalid_argument("the solver knows no conflicts beyond lifetimes");
  if (n > as_size(std::numeric_limits<Id>::max()) / 4)
    throw std::invalid_argument("too many buffers: " + std::to_string(n));
}

void check_buffers(const Problem& p) {
  Bytes room = kLargest;  // what the sum of all sizes, paddings and pins may still take
  for (std::size_t i = 0; i < p.count(); ++i) {
    if (p.size[i] < 0) refuse("buffer", i, "negative size " + std::to_string(p.size[i]));
    if (p.start[i] >= p.end[i]) refuse("buffer", i, "lifetime is empty, start must be below end");
    const Bytes alignment = p.alignment[i], pin = p.pin[i];
    if (alignment < 1) refuse("buffer", i, "alignment below 1: " + std::to_string(alignment));
    if (pin < -1) refuse("buffer", i, "negative pin " + std::to_string(pin));
    if (pin > 0 && pin % alignment != 0) refuse("buffer", i, "pin is no multiple of its alignment");
    for (const Bytes part : {p.size[i], alignment, alignment, std::max<Bytes>(pin, 0)}) {
      if (part > room) refuse("buffer", i, "the sum of all sizes overflows");
      room -= part;
    }
  }
}

void check_facts(const Problem& p) {
  const auto n = static_cast<std::int64_t>(p.count());
  for (std::size_t k = 0; k < p.below.size(); ++k) {
    const std::int64_t below = p.below[k], above = p.above[k];
    if (below < 0 || below >= n || above < 0 || above >= n || below == above)
      refuse("overlap", k, "it must name two different buffers");
    if (p.bytes[k] < 0) refuse("overlap", k, "negative bytes");
  }
}

// Builds the instance step by step; each method states what it adds.
class Preparation {
 public:
  Preparation(const Problem& problem, const Rules& rules, Poller& poller)
      : p_(problem), rules_(rules), poller_(poller) {}

  PackingInstance run() {
    make_items();
    sort_items();
    round_sizes();
    attach_facts();
    choose_unit();
    sum_loads();
    if (rules_.twins) chain_twins();
    if (out_.pinned) compare_pins();
    return std::move(out_);
  }

 private:
  // One item per buffer of positive size, with its sections. An end before the next start closes a section.
  void make_items() {
    Array<std::pair<Bytes, Id>> starts, ends;
    for (std::size_t i = 0; i < p_.count(); ++i) {
      poller_.count();
      if (p_.size[i] == 0) {
        out_.apart.push_back(static_cast<Id>(i));
        continue;
      }
      const auto item = static_cast<Id>(out_.items.size());
      starts.emplace_back(p_.start[i], item);
      ends.emplace_back(p_.end[i], item);
      out_.items.push_back(
          {.original = static_cast<Id>(i), .size = p_.size[i], .alignment = p_.alignment[i], .pin = p_.pin[i]});
    }
    std::sort(starts.begin(), starts.end(), poller_.counted(std::less<>()));
    std::sort(ends.begin(), ends.end(), poller_.counted(std::less<>()));
    Id section = 0;
    bool grown = false;
    std::size_t next = 0;
    for (const auto& [time, item] : ends) {
      poller_.count();
      for (; next < starts.size() && starts[next].first < time; ++next, grown = true)
        out_.items[starts[next].second].first = section;
      if (grown) ++section;
      grown = false;
      out_.items[item].last = section;
    }
    out_.load.assign(section, 0);
  }

  void sort_items() {
    const auto before = [](const Item& a, const Item& b) {
      if (a.first != b.first) return a.first < b.first;
      if (a.last != b.last) return a.last > b.last;
      if (a.size != b.size) return a.size > b.size;
      return a.original < b.original;
    };
    std::sort(out_.items.begin(), out_.items.end(), poller_.counted(before));
    out_.starts.assign(out_.load.size() + 1, out_.count());
    for (Id i = out_.count() - 1; i >= 0; --i) out_.starts[out_.items[i].first] = i;
    for (std::size_t s = out_.load.size(); s-- > 0;) out_.starts[s] = std::min(out_.starts[s], out_.starts[s + 1]);
    for (const Item& item : out_.items) {
      poller_.count();
      out_.width += item.last - item.first;
      out_.aligned |= item.alignment > 1;
      out_.pinned |= item.pin >= 0;
    }
  }

  // Offsets of an item and of all its neighbours are multiples of g, so its size may be rounded up to g:
  //   |## size ##|pad|
  //   0          .   g ...        the next offset above it is here at the earliest
  void round_sizes() {
    if (!out_.aligned || !rules_.stacked_sizes) return;
    const Array<Array<Bytes>> table = step_table();
    for (Item& item : out_.items) {
      poller_.count();
      const Bytes step = range_step(table, as_size(item.first), as_size(item.last));
      const Bytes rounded = round_up(item.size, step);
      item.pad = rounded - item.size;
      item.size = rounded;
    }
  }

  // Level k, entry s: greatest common divisor of all possible offsets in sections [s, s + 2^k).
  Array<Array<Bytes>> step_table() {
    Array<Array<Bytes>> table(1, common_steps());
    for (std::size_t span = 1; 2 * span <= out_.load.size(); span *= 2) {
      const Array<Bytes>& half = table.back();
      Array<Bytes> level(half.size() - span);
      for (std::size_t s = 0; s < level.size(); ++s) {
        poller_.count();
        level[s] = std::gcd(half[s], half[s + span]);
      }
      table.push_back(std::move(level));
    }
    return table;
  }

  Array<Bytes> common_steps() {
    Array<Bytes> step(out_.load.size(), 0);
    Bytes everywhere = 0;  // long items count as if they were alive throughout: coarser, but never wrong
    for (const Item& item : out_.items) {
      const Bytes own = item.pin >= 0 ? item.pin : item.alignment;
      poller_.count(std::min(item.last - item.first, kLongRange));
      if (item.last - item.first > kLongRange)
        everywhere = std::gcd(everywhere, own);
      else
        for (Id s = item.first; s < item.last; ++s) step[s] = std::gcd(step[s], own);
    }
    for (Bytes& s : step) s = std::gcd(s, everywhere);
    return step;
  }

  static Bytes range_step(const Array<Array<Bytes>>& table, std::size_t begin, std::size_t end) {
    std::size_t level = 0;
    while (std::size_t{2} << level <= end - begin) ++level;
    return std::gcd(table[level][begin], table[level][end - (std::size_t{1} << level)]);
  }

  void attach_facts() {
    if (p_.below.empty()) return;
    Array<Id> item_of(p_.count(), -1);
    for (Id i = 0; i < out_.count(); ++i) item_of[out_.items[i].original] = i;
    Array<Array<Fact>> facts(out_.items.size());
    for (std::size_t k = 0; k < p_.below.size(); ++k) {
      poller_.count();
      const Id below = item_of[p_.below[k]];
      const Id above = item_of[p_.above[k]];
      if (below >= 0 && above >= 0 && alive_together(below, above)) add_fact(facts, below, above, p_.bytes[k]);
    }
    out_.fact_begin.assign(1, 0);
    for (const Array<Fact>& own : facts) {
      out_.facts.insert(out_.facts.end(), own.begin(), own.end());
      out_.fact_begin.push_back(out_.facts.size());
    }
  }

  bool alive_together(Id a, Id b) const {
    const Item &x = out_.items[a], &y = out_.items[b];
    return std::max(x.first, y.first) < std::min(x.last, y.last);
  }

  // below.offset + real size - bytes <= above.offset. A distance below 0 (more bytes than `below` has) is taken for 0:
  // still a placement, but nothing is proved by not finding one.
  void add_fact(Array<Array<Fact>>& facts, Id below, Id above, Bytes bytes) {
    const Bytes real = out_.items[below].size - out_.items[below].pad;
    const Bytes distance = std::max<Bytes>(real - bytes, 0);
    out_.restricted |= bytes > real;
    Fact& low = fact_between(facts[below], above, below);
    low.under = std::min(low.under, distance);
    Fact& high = fact_between(facts[above], below, above);
    high.over = std::min(high.over, distance);
    const Bytes shared = std::min(out_.items[below].size - distance, out_.items[above].size);
    const Bytes saving = std::max(low.saving, shared);
    low.saving = high.saving = saving;
  }

  Fact& fact_between(Array<Fact>& own, Id other, Id self) const {
    for (Fact& fact : own)
      if (fact.other == other) return fact;
    own.push_back({other, out_.items[self].size, out_.items[other].size, 0});
    return own.back();
  }

  // In a packing pushed down as far as it goes every offset is a sum of sizes, distances and roundings.
  void choose_unit() {
    Bytes unit = 0;
    for (const Item& item : out_.items) {
      poller_.count();
      unit = std::gcd(std::gcd(unit, item.size), std::max<Bytes>(item.pin, 0));
    }
    for (const Fact& fact : out_.facts) unit = std::gcd(std::gcd(unit, fact.under), fact.over);
    for (Bytes before = -1; before != unit;) {  // alignments that divide the unit hold by themselves
      before = unit;
      for (const Item& item : out_.items)
        if (unit % item.alignment != 0) unit = std::gcd(unit, item.alignment);
    }
    if (!rules_.unit_scaling || unit == 0) unit = 1;
    out_.unit = unit;
    out_.aligned = false;
    for (Item& item : out_.items) {
      poller_.count();
      item.size /= unit;
      item.alignment = unit % item.alignment == 0 ? 1 : item.alignment / unit;
      if (item.pin >= 0) item.pin /= unit;
      out_.aligned |= item.alignment > 1;
    }
    for (Fact& fact : out_.facts) {
      fact.under /= unit;
      fact.over /= unit;
      fact.saving /= unit;
    }
  }

  // Members of a section occupy at least the sum of their sizes less what each pair may share (Bonferroni).
  void sum_loads() {
    Array<Bytes>& load = out_.load;
    out_.top_pad.assign(load.size(), 0);
    Array<Bytes> change(load.size() + 1, 0);
    for (const Item& item : out_.items) {
      poller_.count();
      change[item.first] += item.size;
      change[item.last] -= item.size;
    }
    for (Id i = 0; i < out_.count() && out_.has_facts(); ++i) subtract_savings(i, change);
    std::partial_sum(change.begin(), change.end() - 1, load.begin());
    spread_pads();
    for (std::size_t s = 0; s < load.size(); ++s)
      out_.bound = std::max(out_.bound, load[s] * out_.unit - out_.top_pad[s]);
    for (const Item& item : out_.items)
      out_.bound = std::max(out_.bound, (std::max<Bytes>(item.pin, 0) + item.size) * out_.unit - item.pad);
  }

  void subtract_savings(Id i, Array<Bytes>& change) const {
    const Item& item = out_.items[i];
    for (std::size_t k = out_.fact_begin[i]; k < out_.fact_begin[i + 1]; ++k) {
      const Fact& fact = out_.facts[k];
      if (fact.other < i) continue;
      const Item& other = out_.items[fact.other];
      change[std::max(item.first, other.first)] -= fact.saving;
      change[std::min(item.last, other.last)] += fact.saving;
    }
  }

  void spread_pads() {
    Bytes largest = 0;
    for (const Item& item : out_.items) {
      largest = std::max(largest, item.pad);
      out_.even_pads &= item.pad == out_.items.front().pad;
    }
    if (largest == 0) return;
    if (out_.width > kPreciseWidth) {
      std::fill(out_.top_pad.begin(), out_.top_pad.end(), largest);
      return;
    }
    for (const Item& item : out_.items) {
      poller_.count(item.last - item.first);
      for (Id s = item.first; s < item.last; ++s) out_.top_pad[s] = std::max(out_.top_pad[s], item.pad);
    }
  }

  // Equal neighbours in the sort order; exchanging the offsets of two of them changes nothing.
  void chain_twins() {
    const auto plain = [&](Id i) {
      return out_.items[i].pin < 0 && (!out_.has_facts() || out_.fact_begin[i] == out_.fact_begin[i + 1]);
    };
    for (Id i = 0; i + 1 < out_.count(); ++i) {
      poller_.count();
      Item& a = out_.items[i];
      const Item& b = out_.items[i + 1];
      if (a.first == b.first && a.last == b.last && a.size == b.size && a.pad == b.pad && a.alignment == b.alignment &&
          plain(i) && plain(i + 1))
        a.twin = i + 1;
    }
  }

  // Sets pins_clash when two pinned buffers exclude each other.
  void compare_pins() {
    Array<Id> alive;  // pinned items whose sections are not over yet
    for (Id i = 0; i < out_.count(); ++i) {
      const Item& item = out_.items[i];
      if (item.pin < 0) continue;
      std::erase_if(alive, [&](Id j) { return out_.items[j].last <= item.first; });
      poller_.count(std::ssize(alive));
      for (const Id j : alive) {
        const Bytes other = out_.items[j].pin;
        if (item.pin + out_.distance(i, j) > other && other + out_.distance(j, i) > item.pin) out_.pins_clash = true;
      }
      alive.push_back(i);
    }
  }

  static constexpr Id kLongRange = 4096;                  // sections; see common_steps
  static constexpr std::int64_t kPreciseWidth = 1 << 26;  // above this pads are bounded globally

  const Problem& p_;
  const Rules& rules_;
  Poller& poller_;
  PackingInstance out_;
};

}  // namespace

Bytes PackingInstance::height(View<const Bytes> offsets) const {
  Bytes highest = 0;
  for (Id i = 0; i < count(); ++i) highest = std::max(highest, top(i, offsets[i]));
  return highest;
}

Array<Bytes> PackingInstance::caller_offsets(View<const Bytes> offsets) const {
  Array<Bytes> found(items.size() + apart.size(), 0);
  for (Id i = 0; i < count(); ++i) found[items[i].original] = offsets[i] * unit;
  return found;
}

Bytes PackingInstance::next_height(Bytes height) const {
  if (!even_pads || items.empty()) return height + 1;
  const Bytes pad = items.front().pad;
  return (height + pad) / unit * unit + unit - pad;
}

void validate(const Problem& problem) {
  check_lengths(problem);
  check_buffers(problem);
  check_facts(problem);
}

PackingInstance prepare(const Problem& problem, const Rules& rules, Poller& poller) {
  return Preparation(problem, rules, poller).run();
}

}  // namespace modelplan::solver
