// The numbers of Python's random.Random.randint, so that searches written in Python can be replayed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <stdexcept>

#include "array.hpp"

namespace modelplan {

class PythonRandom {
 public:
  // `words` are those of getstate() right after seeding.
  explicit PythonRandom(Ints words) {
    if (words.size() != std::mt19937::state_size) throw std::invalid_argument("no state of Python's generator");
    GivenState state{words};
    twister_.seed(state);
  }

  // Uniform in [0, last], by rejection of numbers of as many bits as last + 1 has; last < 2^32 - 1.
  std::uint64_t up_to(std::uint64_t last) {
    const std::uint64_t count = last + 1;
    const int drop = 32 - static_cast<int>(std::bit_width(count));
    std::uint64_t drawn = twister_() >> drop;
    while (drawn >= count) drawn = twister_() >> drop;
    return drawn;
  }

 private:
  // What the standard library takes for a seed sequence.
  struct GivenState {
    using result_type = std::uint32_t;
    template <class Word>
    void generate(Word begin, Word) const {
      std::ranges::transform(words, begin, [](std::int64_t word) { return static_cast<result_type>(word); });
    }
    Ints words;
  };

  std::mt19937 twister_;
};

}  // namespace modelplan
