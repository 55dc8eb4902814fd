// When to stop: a deadline and a cancel flag shared by all work, and what each piece of work has used.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace modelplan::solver {

class Stop {
 public:
  Stop(double seconds, const std::atomic<bool>* cancel)
      : cancel_(cancel), timed_(seconds > 0), deadline_(Clock::now() + to_duration(seconds)) {}

  // Reads the clock and the flags; once true, always true. May be called from several threads.
  bool poll() const {
    if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed))
      cancelled_.store(true, std::memory_order_relaxed);
    if (timed_ && Clock::now() >= deadline_) late_.store(true, std::memory_order_relaxed);
    return stopped();
  }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  bool stopped() const { return cancelled() || late_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::duration to_duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds < 1e8 ? seconds : 1e8));
  }

  const std::atomic<bool>* cancel_;
  bool timed_;
  Clock::time_point deadline_;
  mutable std::atomic<bool> cancelled_{false}, late_{false};
};

struct Interrupted {};

// Polls a Stop during work that has no best of its own to keep; throws Interrupted once the Stop is reached.
class Pulse {
 public:
  explicit Pulse(const Stop& stop) : stop_(&stop) {}

  void beat(std::int64_t work = 1) {
    left_ -= work;
    if (left_ < 0) look();
  }
  // A comparison that beats, so that a long sort can be left.
  template <class Before>
  auto watched(Before before) {
    return [this, before](const auto& a, const auto& b) {
      beat();
      return before(a, b);
    };
  }

 private:
  static constexpr std::int64_t kLookEvery = 1 << 15;
  void look() {
    left_ = kLookEvery;
    if (stop_->poll()) throw Interrupted();
  }

  const Stop* stop_;
  std::int64_t left_ = kLookEvery;
};

// Counts work (buffers looked at) against a limit and polls a Stop every few microseconds of it.
class Meter {
 public:
  // `abandon`, when given, stops this piece of work alone.
  Meter(const Stop& stop, std::int64_t limit, const std::atomic<bool>* abandon = nullptr)
      : stop_(&stop), abandon_(abandon), limit_(limit) {}

  void add(std::int64_t work) {
    used_ += work;
    if (used_ >= next_poll_) look();
  }
  bool exhausted() const { return used_ >= limit_ || stopped_; }
  std::int64_t used() const { return used_; }
  bool stopped() const { return stopped_; }
  const Stop& stop() const { return *stop_; }

 private:
  static constexpr std::int64_t kPollEvery = 1 << 16;
  void look() {
    next_poll_ = used_ + kPollEvery;
    stopped_ = stop_->poll() || (abandon_ != nullptr && abandon_->load(std::memory_order_relaxed));
  }

  const Stop* stop_;
  const std::atomic<bool>* abandon_;
  std::int64_t limit_, used_ = 0, next_poll_ = kPollEvery;
  bool stopped_ = false;
};

}  // namespace modelplan::solver
