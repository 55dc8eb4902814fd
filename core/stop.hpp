// When a search has to stop: steps make it repeatable, seconds and a cancel flag are extra stops.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>

namespace modelplan {

// Why a search ended. "Infeasible" is a proof; the last three say that the question stays open.
enum class Ended : std::int64_t { kComplete, kInfeasible, kBudget, kDeadline, kCancelled };

struct Limits {
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  std::function<bool()> cancelled;  // asked now and then; may be empty
};

// Counts steps; the clock and the cancel flag are looked at only every 1,024 steps.
class Stop {
 public:
  explicit Stop(const Limits& limits) : limits_(limits), began_(Clock::now()) {}

  // Counts one step and says whether to go on.
  bool go_on() {
    if (ended_ != Ended::kComplete) return false;
    if (steps_ >= limits_.steps) return end(Ended::kBudget);
    if ((++steps_ & 1023) == 0) look();
    return ended_ == Ended::kComplete;
  }

  Ended ended() const { return ended_; }
  std::int64_t steps() const { return steps_; }
  std::int64_t left() const { return limits_.steps - steps_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool end(Ended why) {
    ended_ = why;
    return false;
  }

  void look() {
    if (std::chrono::duration<double>(Clock::now() - began_).count() > limits_.seconds) end(Ended::kDeadline);
    if (limits_.cancelled && limits_.cancelled()) end(Ended::kCancelled);
  }

  Limits limits_;
  Clock::time_point began_;
  Ended ended_ = Ended::kComplete;
  std::int64_t steps_ = 0;
};

}  // namespace modelplan
