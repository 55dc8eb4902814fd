// The scheduling instance: operators, the storage classes they write and read, and what ties their order.
//
// A class is alive after a set S of executed operators when some writer is in S (or it is alive from the start) and
// some reader is not in S (or it is alive to the end). Live bytes are therefore submodular on the sets closed under
// predecessors, which is what the bound and the rules of the search rest on.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/rows.hpp"

namespace modelplan::schedule {

using Bytes = std::int64_t;

// Operator `op` may write class `to` over class `from` when `from` dies there: `bytes` need not be found twice.
struct Credit {
  int op = 0;
  int from = 0;
  int to = 0;
  Bytes bytes = 0;
};

// What the caller knows, in flat columns. Rows are in CSR form: row r is [ptr[r], ptr[r + 1]).
struct Columns {
  std::int64_t ops = 0;
  std::vector<Bytes> sizes;                          // per class
  std::vector<std::int64_t> writer_ptr, writer_ops;  // per class
  std::vector<std::int64_t> reader_ptr, reader_ops;  // per class
  std::vector<std::int64_t> from_start, to_end;      // per class, 0 or 1
  std::vector<Bytes> scratch;                        // per op
  std::vector<std::int64_t> edge_from, edge_to;      // `edge_from[i]` runs before `edge_to[i]`
  std::vector<std::int64_t> credit_op, credit_from, credit_to;
  std::vector<Bytes> credit_bytes;
};

struct Instance {
  int ops = 0;
  int classes = 0;
  Bytes base = 0;  // alive throughout, in no class
  std::vector<Bytes> size;
  std::vector<char> from_start, to_end;
  std::vector<Bytes> scratch;
  Rows writers, readers;  // class -> ops
  Rows writes, reads;     // op -> classes
  Rows preds, succs;      // op -> ops
  std::vector<Credit> credits;
  Rows credits_of;               // op -> credits
  std::vector<int> topological;  // the smallest ready operator first

  bool dies_unread(int c) const { return readers[c].empty() && to_end[static_cast<std::size_t>(c)] == 0; }
};

// Checks the columns and builds the instance. A class with one writer makes its readers depend on it; one with several,
// or one alive from the start, says nothing about the order, so its edges must be given.
// Throws std::invalid_argument on an index out of range, a negative size, a cycle, an operator that writes and reads
// the same class, a reader of something never written, a writer that may come after the last reader, or an invalid
// credit.
Instance make_instance(const Columns& columns);

// Fills the rows and the topological order from links that are known to be sound; all precedences are among the edges.
struct Links {
  std::vector<std::pair<int, int>> writers, readers, edges;
};
void link(Instance& instance, Links links);

}  // namespace modelplan::schedule
