#include "schedule/schedule_instance.hpp"

#include <functional>
#include <limits>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>

namespace modelplan::schedule {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("schedule: " + what); }

int index(std::int64_t value, std::int64_t limit, const char* what) {
  if (value < 0 || value >= limit)
    refuse(std::string(what) + " " + std::to_string(value) + " is not in [0, " + std::to_string(limit) + ")");
  return static_cast<int>(value);
}

Array<std::pair<int, int>> pairs(Ints ptr, Ints items, std::size_t rows, std::int64_t limit, const char* what) {
  if (ptr.size() != rows + 1 || ptr.front() != 0 || ptr.back() != static_cast<std::int64_t>(items.size()))
    refuse(std::string("the row pointers of ") + what + " do not match its entries");
  Array<std::pair<int, int>> out;
  out.reserve(items.size());
  for (std::size_t r = 0; r < rows; ++r) {
    if (ptr[r] > ptr[r + 1]) refuse(std::string("the row pointers of ") + what + " fall");
    for (std::int64_t i = ptr[r]; i < ptr[r + 1]; ++i)
      out.emplace_back(static_cast<int>(r), index(items[i], limit, what));
  }
  return out;
}

void check_bytes(Ints sizes, Bytes& total, const char* what) {
  for (const Bytes size : sizes) {
    if (size < 0) refuse(std::string("negative ") + what);
    if (size > std::numeric_limits<Bytes>::max() / 4 - total) refuse("the sizes together overflow");
    total += size;
  }
}

Array<char> flags(Ints column, std::size_t rows, const char* what) {
  if (column.size() != rows) refuse(std::string(what) + " needs one entry for each class");
  Array<char> out;
  for (const std::int64_t value : column) out.push_back(static_cast<char>(index(value, 2, what)));
  return out;
}

Array<int> topological_order(const ScheduleInstance& g) {
  Array<int> waiting(g.ops);
  std::priority_queue<int, Array<int>, std::greater<>> ready;
  for (int v = 0; v < g.ops; ++v) {
    waiting[v] = static_cast<int>(g.preds[v].size());
    if (g.preds[v].empty()) ready.push(v);
  }
  Array<int> order;
  while (!ready.empty()) {
    const int v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const int s : g.succs[v])
      if (--waiting[s] == 0) ready.push(s);
  }
  return order;
}

Array<char> reached(const Rows& next, int ops, int from) {
  Array<char> seen(ops, 0);
  Array<int> stack{from};
  while (!stack.empty()) {
    const int v = stack.back();
    stack.pop_back();
    for (const int s : next[v])
      if (std::exchange(seen[s], 1) == 0) stack.push_back(s);
  }
  return seen;
}

bool reaches_one(const Rows& next, int ops, int from, View<const int> targets) {
  const auto seen = reached(next, ops, from);
  return std::any_of(targets.begin(), targets.end(), [&](int t) { return seen[t] != 0; });
}

void check_shared_class(const ScheduleInstance& g, int c) {
  const auto name = "class " + std::to_string(c);
  for (const int w : g.writers[c])
    if (g.to_end[c] == 0 && !g.readers[c].empty() && !reaches_one(g.succs, g.ops, w, g.readers[c]))
      refuse(name + ": writer " + std::to_string(w) + " may run after the last reader");
  if (g.from_start[c] != 0) return;
  for (const int r : g.readers[c])
    if (!reaches_one(g.preds, g.ops, r, g.writers[c]))
      refuse(name + ": reader " + std::to_string(r) + " may run before any writer");
}

void check_classes(const ScheduleInstance& g) {
  for (int c = 0; c < g.classes; ++c) {
    for (const int w : g.writers[c])
      if (g.readers.has(c, w)) refuse("op " + std::to_string(w) + " both writes and reads class " + std::to_string(c));
    if (g.writers[c].empty() && g.from_start[c] == 0 && !g.readers[c].empty())
      refuse("class " + std::to_string(c) + " is read but never written");
    if (g.writers[c].size() > 1 || g.from_start[c] != 0) check_shared_class(g, c);
  }
}

void check_overwrite(const ScheduleInstance& g, const Overwrite& k) {
  const auto name = "overwrite of op " + std::to_string(k.op);
  if (!g.reads.has(k.op, k.from)) refuse(name + ": the op does not read class " + std::to_string(k.from));
  if (!g.writes.has(k.op, k.to)) refuse(name + ": the op does not write class " + std::to_string(k.to));
  const Bytes most = std::min(g.size[k.from], g.size[k.to]);
  if (k.bytes < 0 || k.bytes > most) refuse(name + ": more bytes than both classes hold");
}

void add_overwrites(ScheduleInstance& g, const ScheduleColumns& in) {
  const std::size_t count = in.overwrite_op.size();
  if (in.overwrite_from.size() != count || in.overwrite_to.size() != count || in.overwrite_bytes.size() != count)
    refuse("the overwrite columns differ in length");
  Array<std::pair<int, int>> of;
  for (std::size_t i = 0; i < count; ++i) {
    g.overwrites.push_back({index(in.overwrite_op[i], g.ops, "overwrite op"),
                            index(in.overwrite_from[i], g.classes, "overwrite class"),
                            index(in.overwrite_to[i], g.classes, "overwrite class"), in.overwrite_bytes[i]});
    check_overwrite(g, g.overwrites.back());
    of.emplace_back(g.overwrites.back().op, static_cast<int>(i));
  }
  g.overwrites_of = Rows(g.ops, std::move(of));
}

// The readers of a class with one writer run after it, unless it holds something from the start.
void add_implied_edges(const ScheduleInstance& g, Links& links) {
  Array<int> writer(g.classes, -1), writers(g.classes, 0);
  for (const auto& [c, w] : links.writers) {
    if (writer[c] != w) ++writers[c];
    writer[c] = w;
  }
  for (const auto& [c, r] : links.readers)
    if (writers[c] == 1 && g.from_start[c] == 0 && writer[c] != r) links.edges.emplace_back(writer[c], r);
}

Array<std::pair<int, int>> swapped(const Array<std::pair<int, int>>& entries) {
  Array<std::pair<int, int>> out;
  out.reserve(entries.size());
  for (const auto& [a, b] : entries) out.emplace_back(b, a);
  return out;
}

}  // namespace

void link(ScheduleInstance& g, Links links) {
  g.writes = Rows(g.ops, swapped(links.writers));
  g.reads = Rows(g.ops, swapped(links.readers));
  g.writers = Rows(g.classes, std::move(links.writers));
  g.readers = Rows(g.classes, std::move(links.readers));
  g.preds = Rows(g.ops, swapped(links.edges));
  g.succs = Rows(g.ops, std::move(links.edges));
  g.topological = topological_order(g);
}

ScheduleInstance make_instance(const ScheduleColumns& in) {
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 4;
  if (in.ops < 0 || in.ops > most) refuse("too many ops");
  if (static_cast<std::int64_t>(in.sizes.size()) > most) refuse("too many classes");
  ScheduleInstance g;
  g.ops = static_cast<int>(in.ops);
  g.classes = static_cast<int>(in.sizes.size());
  g.size.assign(in.sizes.begin(), in.sizes.end());
  g.scratch.assign(in.scratch.begin(), in.scratch.end());
  if (g.scratch.size() != as_size(g.ops)) refuse("scratch needs one entry for each op");
  Bytes total = 0;
  check_bytes(g.size, total, "size");
  check_bytes(g.scratch, total, "scratch");
  g.from_start = flags(in.from_start, g.size.size(), "from_start");
  g.to_end = flags(in.to_end, g.size.size(), "to_end");
  Links links{pairs(in.writer_ptr, in.writer_ops, g.size.size(), g.ops, "writers"),
              pairs(in.reader_ptr, in.reader_ops, g.size.size(), g.ops, "readers"),
              {}};
  if (in.edge_from.size() != in.edge_to.size()) refuse("the edge columns differ in length");
  for (std::size_t i = 0; i < in.edge_from.size(); ++i)
    links.edges.emplace_back(index(in.edge_from[i], g.ops, "edge"), index(in.edge_to[i], g.ops, "edge"));
  add_implied_edges(g, links);
  link(g, std::move(links));
  if (g.topological.size() != as_size(g.ops)) refuse("the ops form a cycle");
  check_classes(g);
  add_overwrites(g, in);
  return g;
}

}  // namespace modelplan::schedule
