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

// Counts steps; looks at the clock every few of them and asks for the cancel flag a hundred times a second.
class Stop {
 public:
  // `every`: steps between two looks; 1 where a step is long.
  explicit Stop(const Limits& limits, std::int64_t every = 64)
      : limits_(limits), every_(every), began_(Clock::now()), next_question_(began_) {}

  // Counts one step and says whether to go on.
  bool go_on() {
    if (ended_ != Ended::kComplete) return false;
    if (steps_ >= limits_.steps) return end(Ended::kBudget);
    if (++steps_ % every_ == 0) look();
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
    const Clock::time_point now = Clock::now();
    if (std::chrono::duration<double>(now - began_).count() > limits_.seconds) end(Ended::kDeadline);
    if (!limits_.cancelled || now < next_question_) return;
    next_question_ = now + std::chrono::milliseconds(10);
    if (limits_.cancelled()) end(Ended::kCancelled);
  }

  Limits limits_;
  std::int64_t every_;
  Clock::time_point began_, next_question_;
  Ended ended_ = Ended::kComplete;
  std::int64_t steps_ = 0;
};

}  // namespace modelplan
