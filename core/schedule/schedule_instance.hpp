// The scheduling instance: operators, the storage classes they write and read, and what ties their order.
//
// A class is alive after a set S of executed operators when some writer is in S (or it is alive from the start) and
// some reader is not in S (or it is alive to the end). Live bytes are therefore submodular on the sets closed under
// predecessors, which is what the bound and the rules of the search rest on. Searches go from set to set; the *label*
// of a set is the least peak of an order that is known to lead to it.
#pragma once

#include <cstdint>

#include "array.hpp"
#include "schedule/rows.hpp"

namespace modelplan::schedule {

// Operator `op` may write class `to` over class `from` when `from` dies there: `bytes` need not be found twice.
struct Overwrite {
  int op = 0;
  int from = 0;
  int to = 0;
  Bytes bytes = 0;
};

// The input, in flat columns that the caller owns. Rows are in CSR form: row r is [ptr[r], ptr[r + 1]).
struct ScheduleColumns {
  std::int64_t ops = 0;
  Ints sizes;                   // per class
  Ints writer_ptr, writer_ops;  // per class
  Ints reader_ptr, reader_ops;  // per class
  Ints from_start, to_end;      // per class, 0 or 1
  Ints scratch;                 // per op
  Ints edge_from, edge_to;      // `edge_from[i]` runs before `edge_to[i]`
  Ints overwrite_op, overwrite_from, overwrite_to, overwrite_bytes;
};

struct ScheduleInstance {
  int ops = 0;
  int classes = 0;
  Bytes base = 0;  // alive throughout, in no class
  Array<Bytes> size;
  Array<char> from_start, to_end;
  Array<Bytes> scratch;
  Rows writers, readers;  // class -> ops
  Rows writes, reads;     // op -> classes
  Rows preds, succs;      // op -> ops
  Array<Overwrite> overwrites;
  Rows overwrites_of;      // op -> overwrites
  Array<int> topological;  // the smallest ready operator first

  bool dies_unread(int c) const { return readers[c].empty() && to_end[c] == 0; }
};

// Checks the columns and builds the instance. A class with one writer makes its readers depend on it; one with several,
// or one alive from the start, says nothing about the order, so its edges must be given.
// Throws std::invalid_argument on an index out of range, a negative size, a cycle, an operator that writes and reads
// the same class, a reader of something never written, a writer that may come after the last reader, or an invalid
// overwrite.
ScheduleInstance make_instance(const ScheduleColumns& columns);

// Fills the rows and the topological order from links that are known to be sound; all precedences are among the edges.
struct Links {
  Array<std::pair<int, int>> writers, readers, edges;
};
void link(ScheduleInstance& instance, Links links);

}  // namespace modelplan::schedule
