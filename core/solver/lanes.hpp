// One or two threads for one call of the solver.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
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
  // What the threads share. The other one is woken to end but not waited for: that would take longer than a short
  // solve.
  struct Shared {
    enum class State { kIdle, kAsked, kClosing };
    void tell(State next);
    State wait_while(State present);

    std::mutex mutex;
    std::condition_variable changed;
    State state = State::kIdle;
    const Work* work = nullptr;
    std::exception_ptr error;  // of lane 1
  };
  static void serve(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  std::thread other_;
};

}  // namespace modelplan::solver
