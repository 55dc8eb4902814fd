// Counts the work of a solve in steps, so that equal budgets give equal answers; seconds and the cancel flag stop it
// too. A step is one elementary act: an operator run, undone or tried, or four arcs of a flow network visited.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>

namespace modelplan::schedule {

enum class Stop { none, steps, seconds, cancelled, memory };

class Meter {
 public:
  using Clock = std::chrono::steady_clock;

  std::int64_t budget = std::numeric_limits<std::int64_t>::max();
  Clock::time_point deadline = Clock::time_point::max();
  const std::atomic<bool>* cancel = nullptr;
  // Called now and then with the steps so far; false asks to stop.
  std::function<bool(std::int64_t)> progress;

  std::int64_t steps() const { return steps_; }
  Stop stop() const { return stop_; }
  bool stopped() const { return stop_ != Stop::none; }
  std::int64_t left() const { return budget > steps_ ? budget - steps_ : 0; }

  // Lends at most `steps` to one piece of work; the meter goes on afterwards.
  class Slice {
   public:
    Slice(Meter& meter, std::int64_t steps) : meter_(&meter), budget_(meter.budget) {
      if (steps < meter.left()) meter.budget = meter.steps_ + steps;
    }
    Slice(const Slice&) = delete;
    Slice& operator=(const Slice&) = delete;
    ~Slice() {
      meter_->budget = budget_;
      if (meter_->stop_ == Stop::steps && meter_->steps_ < budget_) meter_->stop_ = Stop::none;
    }

   private:
    Meter* meter_;
    std::int64_t budget_;
  };

  // False once the work must end; every later call is false too.
  bool spend(std::int64_t steps) {
    steps_ += steps;
    if (stop_ == Stop::none && steps_ >= budget) stop_ = Stop::steps;
    if (stop_ == Stop::none && steps_ >= next_look_) look();
    return stop_ == Stop::none;
  }

 private:
  void look() {
    next_look_ = steps_ + kLookEvery;
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) stop_ = Stop::cancelled;
    if (Clock::now() >= deadline) stop_ = Stop::seconds;
    if (progress && !progress(steps_)) stop_ = Stop::cancelled;
  }

  static constexpr std::int64_t kLookEvery = 1 << 16;
  std::int64_t steps_ = 0;
  std::int64_t next_look_ = kLookEvery;
  Stop stop_ = Stop::none;
};

}  // namespace modelplan::schedule
