// idealloc's boxing: jobs are packed into ever larger boxes of few sizes until a plain interval colouring does the
// rest; the order that falls out is then placed by first fit.
//
// Source: Lamprakos et al., Futureproof Static Memory Planning, 2025, arXiv 2504.04874, which follows Buchsbaum,
// Karloff, Kenyon, Reingold and Thorup, OPT versus LOAD in dynamic storage allocation, STOC 2003.
#pragma once

#include <cstdint>
#include <random>

#include "problem.hpp"
#include "stopping.hpp"

namespace modelplan::idealloc {

// One job, alive strictly between birth and death, or a box of such.
struct Item {
  std::int64_t birth, death, size;
  Array<std::size_t> inside;  // items of the pool; empty for a job
};

using Ids = Array<std::size_t>;

// What every boxing of one problem starts from.
struct Start {
  double epsilon = 0;  // of `rogue`
  double mu = 0;       // of the last boxing, whose boxes have the size of the largest job over mu
};

// All items ever made; the first ones are the jobs.
class Boxing {
 public:
  Boxing(Array<Item> jobs, std::uint64_t seed) : pool_(std::move(jobs)), random_(seed) {}

  const Item& item(std::size_t id) const { return pool_[id]; }

  // Theorem 2: boxes jobs of like size, `height` of them at most alive at once in each box of `size` bytes.
  Ids theorem2(Ids jobs, std::int64_t height, double epsilon, std::int64_t size);

  // Corollary 15: the same for jobs of any size up to `size`, by geometric classes.
  Ids corollary15(const Ids& jobs, double size, double epsilon);

  // Theorem 16, first phase: boxes the small ones among `jobs` again and again while that is safe.
  Ids rogue(Ids jobs, double epsilon);

  // The whole of Theorem 16: `rogue`, then boxes of one size (Corollary 17); the jobs' loose offsets by unboxing. What
  // the original leaves to hash maps and threads is drawn: the order of jobs and boxes alike in time, and of the sizes
  // in a box.
  Array<std::int64_t> loose_offsets(Ids jobs, const Start& start);

  // The epsilon whose `rogue` leaves the least spread of sizes, and the mu that goes with it.
  Start best_start(const Ids& jobs);

 private:
  struct Rest;  // what Theorem 2 still has to do
  class Peel;   // the strips of Lemma 1

  Rest whole_of(Ids jobs);
  Rest with_a_cut(Rest rest);
  void sort_by_birth(Ids& items) const;
  void sort_by_death(Ids& items) const;
  Ids divide(const Rest& rest, Array<Ids>& within) const;
  void lemma1(Ids live, std::int64_t height, double epsilon, std::int64_t size, Ids& boxes, Ids& unresolved);
  void split_live(Ids live, const Array<std::int64_t>& points, Array<Ids>& groups) const;
  Array<std::int64_t> box_rows(const Ids& jobs, std::int64_t height, std::int64_t size, const Rest& rest, Ids& boxes);
  void box_strip(const Ids& strip, std::int64_t height, std::int64_t size, Ids& boxes);
  template <class Items>
  void shuffle(Items& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random_() % i]);
  }
  std::size_t add_box(Ids inside, std::int64_t size);
  std::int64_t random_point(const Ids& jobs);
  void unbox(const Ids& items, std::int64_t start, Array<std::int64_t>& offsets);
  Array<Ids> rows(Ids items) const;
  double spread(const Ids& items) const;
  std::int64_t largest(const Ids& items) const;
  std::int64_t smallest(const Ids& items) const;

  Array<Item> pool_;
  std::mt19937_64 random_;
};

struct Result {
  Array<std::int64_t> offsets;
  std::int64_t height = 0;
  std::int64_t tries = 0;   // boxings done; 0 when the prelude had the answer
  std::int64_t boxed = -1;  // the lowest height of a boxing; -1 without one
  double epsilon = 0;
  Ended ended = Ended::kComplete;
};

// The bootstrap (size, then duration descending, first fit), then one boxing per step of `limits` while the height is
// above `target`. The same seed gives the same answer. Time O(n log n) for each boxing and O(n log n + n k log k) for
// each placement, memory O(n + facts): conflicts are never listed.
Result place(const Problem& problem, std::int64_t target, std::uint64_t seed, const Limits& limits);

}  // namespace modelplan::idealloc
