// The numbers of Python's random.Random(seed).randint, so that searches written in Python can be replayed.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace modelplan {

// Mersenne Twister MT19937 (Matsumoto and Nishimura, ACM TOMACS 8(1), 1998) with the initialisation by array (2002)
// that Python uses for integer seeds; integers below n by rejection of bit_length(n) bits.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed) {
    fill(19650218U);
    std::size_t i = 1;
    for (std::size_t k = 0; k < kWords; ++k) {
      state_[i] = (state_[i] ^ (mixed(i) * 1664525U)) + seed;
      i = advance(i);
    }
    for (std::size_t k = 0; k < kWords - 1; ++k) {
      state_[i] = (state_[i] ^ (mixed(i) * 1566083941U)) - static_cast<std::uint32_t>(i);
      i = advance(i);
    }
    state_[0] = 0x80000000U;
  }

  // Uniform in [0, last]; last < 2^32 - 1.
  std::uint64_t up_to(std::uint64_t last) {
    const std::uint64_t count = last + 1;
    const int drop = 32 - static_cast<int>(std::bit_width(count));
    std::uint64_t drawn = next() >> drop;
    while (drawn >= count) drawn = next() >> drop;
    return drawn;
  }

 private:
  static constexpr std::size_t kWords = 624, kShift = 397;

  void fill(std::uint32_t seed) {
    state_[0] = seed;
    for (std::size_t i = 1; i < kWords; ++i)
      state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30U)) + static_cast<std::uint32_t>(i);
  }

  std::uint32_t mixed(std::size_t i) const { return state_[i - 1] ^ (state_[i - 1] >> 30U); }

  std::size_t advance(std::size_t i) {
    if (++i < kWords) return i;
    state_[0] = state_[kWords - 1];
    return 1;
  }

  void refill() {
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint32_t joined = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
      const std::uint32_t twist = (joined & 1U) != 0 ? 0x9908b0dfU : 0U;
      state_[i] = state_[(i + kShift) % kWords] ^ (joined >> 1U) ^ twist;
    }
    used_ = 0;
  }

  std::uint32_t next() {
    if (used_ == kWords) refill();
    std::uint32_t word = state_[used_++];
    word ^= word >> 11U;
    word ^= (word << 7U) & 0x9d2c5680U;
    word ^= (word << 15U) & 0xefc60000U;
    return word ^ (word >> 18U);
  }

  std::array<std::uint32_t, kWords> state_{};
  std::size_t used_ = kWords;
};

}  // namespace modelplan
