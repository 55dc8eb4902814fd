// When work has to stop. Steps make an answer repeatable; a deadline and a cancelled call stop it too.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "verdict.hpp"

namespace modelplan {

constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;  // steps; sums of two do not overflow

using Cancelled = std::function<bool(std::int64_t steps)>;

struct Limits {
  std::int64_t steps = kUnlimited;
  double seconds = std::numeric_limits<double>::infinity();
  Cancelled cancelled;  // asked up to a hundred times a second, with the steps so far; may be empty
};

// The deadline and the cancel flag of one call, shared by all its work and its threads.
class StopSignal {
 public:
  explicit StopSignal(double seconds = std::numeric_limits<double>::infinity(), Cancelled cancelled = {})
      : cancelled_(std::move(cancelled)), began_(Clock::now()), seconds_(seconds) {}

  // Reads the clock and asks for the flag; once true, always true.
  bool poll(std::int64_t steps = 0) const {
    const double now = std::chrono::duration<double>(Clock::now() - began_).count();
    if (cancelled_ && now >= next_question_.load(std::memory_order_relaxed)) {
      next_question_.store(now + kBetweenQuestions, std::memory_order_relaxed);
      if (cancelled_(steps)) was_cancelled_.store(true, std::memory_order_relaxed);
    }
    if (now >= seconds_) late_.store(true, std::memory_order_relaxed);
    return stopped();
  }
  bool cancelled() const { return was_cancelled_.load(std::memory_order_relaxed); }
  bool stopped() const { return cancelled() || late_.load(std::memory_order_relaxed); }
  // Seconds until the deadline, infinity where there is none.
  double left() const { return seconds_ - std::chrono::duration<double>(Clock::now() - began_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kBetweenQuestions = 0.01;  // seconds

  Cancelled cancelled_;
  Clock::time_point began_;
  double seconds_;
  mutable std::atomic<double> next_question_{0};
  mutable std::atomic<bool> was_cancelled_{false}, late_{false};
};

// Counts the steps of one piece of work against a budget, and polls a signal every few of them.
class Meter {
 public:
  static constexpr std::int64_t kPollEvery = 1 << 16;

  // `abandoned`, when given, stops this piece of work alone.
  Meter(const StopSignal& signal, std::int64_t budget, std::int64_t poll_every = kPollEvery,
        const std::atomic<bool>* abandoned = nullptr)
      : signal_(&signal), abandoned_(abandoned), budget_(budget), poll_every_(poll_every), next_poll_(poll_every) {}

  // Counts steps that were done.
  void add(std::int64_t steps) {
    used_ += steps;
    if (used_ >= next_poll_) poll();
  }

  // Counts steps that were done; false once the work has to end.
  bool spend(std::int64_t steps) {
    add(steps);
    if (ended_ == Ended::kComplete && used_ >= budget_) ended_ = Ended::kBudget;
    return ended_ == Ended::kComplete;
  }

  // Counts the step that comes next; false if it may not be done.
  bool take() {
    if (ended_ == Ended::kComplete && used_ >= budget_) ended_ = Ended::kBudget;
    if (ended_ == Ended::kComplete) add(1);
    return ended_ == Ended::kComplete;
  }

  bool exhausted() const { return used_ >= budget_ || ended_ != Ended::kComplete; }
  // kComplete while nothing was refused: kBudget comes from spend() and take() only.
  Ended ended() const { return ended_; }
  bool stopped() const { return ended_ != Ended::kComplete; }
  std::int64_t used() const { return used_; }
  std::int64_t left() const { return budget_ > used_ ? budget_ - used_ : 0; }
  const StopSignal& signal() const { return *signal_; }

  // Lends at most `steps` to one part of the work; afterwards the meter goes on.
  class Slice {
   public:
    Slice(Meter& meter, std::int64_t steps) : meter_(&meter), budget_(meter.budget_) {
      if (steps < meter.left()) meter.budget_ = meter.used_ + steps;
    }
    Slice(const Slice&) = delete;
    Slice& operator=(const Slice&) = delete;
    ~Slice() {
      meter_->budget_ = budget_;
      if (meter_->ended_ == Ended::kBudget && meter_->used_ < budget_) meter_->ended_ = Ended::kComplete;
    }

   private:
    Meter* meter_;
    std::int64_t budget_;
  };

 private:
  void poll() {
    next_poll_ = used_ + poll_every_;
    const bool abandoned = abandoned_ != nullptr && abandoned_->load(std::memory_order_relaxed);
    if (!signal_->poll(used_) && !abandoned) return;
    ended_ = abandoned || signal_->cancelled() ? Ended::kCancelled : Ended::kDeadline;
  }

  const StopSignal* signal_;
  const std::atomic<bool>* abandoned_;
  std::int64_t budget_, poll_every_, next_poll_, used_ = 0;
  Ended ended_ = Ended::kComplete;
};

struct OwnSignal {
  StopSignal own_signal;
};

// A meter with a signal of its own, for a search whose steps are long.
class LimitedMeter : OwnSignal, public Meter {
 public:
  explicit LimitedMeter(const Limits& limits, std::int64_t poll_every = 64)
      : OwnSignal{StopSignal(limits.seconds, limits.cancelled)}, Meter(own_signal, limits.steps, poll_every) {}
};

struct Interrupted {};

// Polls a signal during work that leaves nothing of use when it is broken off; throws Interrupted to stop it.
class Poller {
 public:
  explicit Poller(const StopSignal& signal) : signal_(&signal) {}

  void count(std::int64_t work = 1) {
    left_ -= work;
    if (left_ < 0) poll();
  }
  // A comparison that counts itself, so that a long sort can be left.
  template <class Before>
  auto counted(Before before) {
    return [this, before](const auto& a, const auto& b) {
      count();
      return before(a, b);
    };
  }

 private:
  static constexpr std::int64_t kPollEvery = 1 << 15;
  void poll() {
    left_ = kPollEvery;
    if (signal_->poll()) throw Interrupted();
  }

  const StopSignal* signal_;
  std::int64_t left_ = kPollEvery;
};

}  // namespace modelplan
