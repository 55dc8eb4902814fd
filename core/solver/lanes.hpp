// One or two threads for one call of the solver.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace modelplan::solver {

// The caller's thread is lane 0. Lane 1, where there is one, is another thread, which sleeps between the runs.
class Lanes {
 public:
  using Work = std::function<void(std::size_t lane)>;

  explicit Lanes(bool two);
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  ~Lanes();

  std::size_t count() const { return other_.joinable() ? 2 : 1; }
  // Calls work(0) here and, at the same time, work(1) on the other thread; returns once both have ended. Throws what
  // they threw, that of lane 0 first.
  void run(const Work& work);

 private:
  enum class State { kIdle, kAsked, kClosing };
  void enter(State next);
  void wake(State next);
  State wait_while(State present);
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  const Work* work_ = nullptr;
  std::exception_ptr error_;  // of lane 1
  std::thread other_;
};

}  // namespace modelplan::solver
