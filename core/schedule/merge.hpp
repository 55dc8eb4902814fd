// Interleaves the orders of independent parts of a graph so that the joint peak is least. Each order is cut where its
// live bytes are lowest (a valley); the pieces run in the order of how far each falls from its hill (its peak)
// to the valley at its end. Applied wherever the graph splits in series or in parallel.
#pragma once

#include "array.hpp"
#include "schedule/schedule_instance.hpp"
#include "stopping.hpp"

namespace modelplan::schedule {

// A valid order. Least peak when the graph is an in-tree (each result read by one operator) without in-place
// overwrites; elsewhere series and parallel parts are merged the same way, with classes that parts share held fixed,
// and a part that splits no further takes the better of the list and depth-first rules. Cost: O(depth * (operators log
// operators + edges)). Source: J. W. H. Liu, An application of generalized tree pebbling to sparse matrix
// factorization, SIAM J. Algebraic Discrete Methods 8 (1987); for falling parts H. Abdel-Wahab and T. Kameda,
// Operations Research 26 (1978).
Array<int> merge_order(const ScheduleInstance& instance, Meter& meter);

}  // namespace modelplan::schedule
