// A small explicit generator (SplitMix64: Steele, Lea, Flood, OOPSLA 2014), the same on every machine.
#pragma once

#include <cstdint>

namespace modelplan::solver {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // Uniform in [0, below), below > 0.
  std::int64_t below(std::int64_t below) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(below));
  }

 private:
  std::uint64_t state_;
};

}  // namespace modelplan::solver
