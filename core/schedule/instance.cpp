#include "schedule/instance.hpp"

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

std::vector<std::pair<int, int>> pairs(const std::vector<std::int64_t>& ptr, const std::vector<std::int64_t>& items,
                                       std::size_t rows, std::int64_t limit, const char* what) {
  if (ptr.size() != rows + 1 || ptr.front() != 0 || ptr.back() != static_cast<std::int64_t>(items.size()))
    refuse(std::string("the row pointers of ") + what + " do not match its entries");
  std::vector<std::pair<int, int>> out;
  out.reserve(items.size());
  for (std::size_t r = 0; r < rows; ++r) {
    if (ptr[r] > ptr[r + 1]) refuse(std::string("the row pointers of ") + what + " fall");
    for (std::int64_t i = ptr[r]; i < ptr[r + 1]; ++i)
      out.emplace_back(static_cast<int>(r), index(items[static_cast<std::size_t>(i)], limit, what));
  }
  return out;
}

void check_bytes(const std::vector<Bytes>& sizes, Bytes& total, const char* what) {
  for (const Bytes size : sizes) {
    if (size < 0) refuse(std::string("negative ") + what);
    if (size > std::numeric_limits<Bytes>::max() / 4 - total) refuse("the sizes together overflow");
    total += size;
  }
}

std::vector<char> flags(const std::vector<std::int64_t>& column, std::size_t rows, const char* what) {
  if (column.size() != rows) refuse(std::string(what) + " needs one entry for each class");
  std::vector<char> out;
  for (const std::int64_t value : column) out.push_back(static_cast<char>(index(value, 2, what)));
  return out;
}

std::vector<int> topological_order(const Instance& g) {
  std::vector<int> waiting(static_cast<std::size_t>(g.ops));
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int v = 0; v < g.ops; ++v) {
    waiting[static_cast<std::size_t>(v)] = static_cast<int>(g.preds[v].size());
    if (g.preds[v].empty()) ready.push(v);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const int s : g.succs[v])
      if (--waiting[static_cast<std::size_t>(s)] == 0) ready.push(s);
  }
  return order;
}

std::vector<char> reached(const Rows& next, int ops, int from) {
  std::vector<char> seen(static_cast<std::size_t>(ops), 0);
  std::vector<int> stack{from};
  while (!stack.empty()) {
    const int v = stack.back();
    stack.pop_back();
    for (const int s : next[v])
      if (std::exchange(seen[static_cast<std::size_t>(s)], 1) == 0) stack.push_back(s);
  }
  return seen;
}

bool reaches_one(const Rows& next, int ops, int from, std::span<const int> targets) {
  const auto seen = reached(next, ops, from);
  return std::any_of(targets.begin(), targets.end(), [&](int t) { return seen[static_cast<std::size_t>(t)] != 0; });
}

void check_shared_class(const Instance& g, int c) {
  const auto name = "class " + std::to_string(c);
  for (const int w : g.writers[c])
    if (g.to_end[static_cast<std::size_t>(c)] == 0 && !g.readers[c].empty() &&
        !reaches_one(g.succs, g.ops, w, g.readers[c]))
      refuse(name + ": writer " + std::to_string(w) + " may run after the last reader");
  if (g.from_start[static_cast<std::size_t>(c)] != 0) return;
  for (const int r : g.readers[c])
    if (!reaches_one(g.preds, g.ops, r, g.writers[c]))
      refuse(name + ": reader " + std::to_string(r) + " may run before any writer");
}

void check_classes(const Instance& g) {
  for (int c = 0; c < g.classes; ++c) {
    for (const int w : g.writers[c])
      if (g.readers.has(c, w)) refuse("op " + std::to_string(w) + " both writes and reads class " + std::to_string(c));
    if (g.writers[c].empty() && g.from_start[static_cast<std::size_t>(c)] == 0 && !g.readers[c].empty())
      refuse("class " + std::to_string(c) + " is read but never written");
    if (g.writers[c].size() > 1 || g.from_start[static_cast<std::size_t>(c)] != 0) check_shared_class(g, c);
  }
}

void check_credit(const Instance& g, const Credit& k) {
  const auto name = "credit of op " + std::to_string(k.op);
  if (!g.reads.has(k.op, k.from)) refuse(name + ": the op does not read class " + std::to_string(k.from));
  if (!g.writes.has(k.op, k.to)) refuse(name + ": the op does not write class " + std::to_string(k.to));
  const Bytes most = std::min(g.size[static_cast<std::size_t>(k.from)], g.size[static_cast<std::size_t>(k.to)]);
  if (k.bytes < 0 || k.bytes > most) refuse(name + ": more bytes than both classes hold");
}

void add_credits(Instance& g, const Columns& in) {
  const std::size_t count = in.credit_op.size();
  if (in.credit_from.size() != count || in.credit_to.size() != count || in.credit_bytes.size() != count)
    refuse("the credit columns differ in length");
  std::vector<std::pair<int, int>> of;
  for (std::size_t i = 0; i < count; ++i) {
    g.credits.push_back({index(in.credit_op[i], g.ops, "credit op"),
                         index(in.credit_from[i], g.classes, "credit class"),
                         index(in.credit_to[i], g.classes, "credit class"), in.credit_bytes[i]});
    check_credit(g, g.credits.back());
    of.emplace_back(g.credits.back().op, static_cast<int>(i));
  }
  g.credits_of = Rows(g.ops, std::move(of));
}

// The readers of a class with one writer run after it, unless it holds something from the start.
void add_implied_edges(const Instance& g, Links& links) {
  std::vector<int> writer(static_cast<std::size_t>(g.classes), -1), writers(static_cast<std::size_t>(g.classes), 0);
  for (const auto& [c, w] : links.writers) {
    if (writer[static_cast<std::size_t>(c)] != w) ++writers[static_cast<std::size_t>(c)];
    writer[static_cast<std::size_t>(c)] = w;
  }
  for (const auto& [c, r] : links.readers)
    if (writers[static_cast<std::size_t>(c)] == 1 && g.from_start[static_cast<std::size_t>(c)] == 0 &&
        writer[static_cast<std::size_t>(c)] != r)
      links.edges.emplace_back(writer[static_cast<std::size_t>(c)], r);
}

std::vector<std::pair<int, int>> swapped(const std::vector<std::pair<int, int>>& entries) {
  std::vector<std::pair<int, int>> out;
  out.reserve(entries.size());
  for (const auto& [a, b] : entries) out.emplace_back(b, a);
  return out;
}

}  // namespace

void link(Instance& g, Links links) {
  g.writes = Rows(g.ops, swapped(links.writers));
  g.reads = Rows(g.ops, swapped(links.readers));
  g.writers = Rows(g.classes, std::move(links.writers));
  g.readers = Rows(g.classes, std::move(links.readers));
  g.preds = Rows(g.ops, swapped(links.edges));
  g.succs = Rows(g.ops, std::move(links.edges));
  g.topological = topological_order(g);
}

Instance make_instance(const Columns& in) {
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 4;
  if (in.ops < 0 || in.ops > most) refuse("too many ops");
  if (static_cast<std::int64_t>(in.sizes.size()) > most) refuse("too many classes");
  Instance g;
  g.ops = static_cast<int>(in.ops);
  g.classes = static_cast<int>(in.sizes.size());
  g.size = in.sizes;
  g.scratch = in.scratch;
  if (g.scratch.size() != static_cast<std::size_t>(g.ops)) refuse("scratch needs one entry for each op");
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
  if (g.topological.size() != static_cast<std::size_t>(g.ops)) refuse("the ops form a cycle");
  check_classes(g);
  add_credits(g, in);
  return g;
}

}  // namespace modelplan::schedule
