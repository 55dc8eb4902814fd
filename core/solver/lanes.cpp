#include "lanes.hpp"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace modelplan::solver {
namespace {

// Keeps a thread off the processor of the caller as long as this object lives. The kernel of a virtual machine takes a
// processor that sleeps for a busy one; without this it would wake the thread here, to wait for milliseconds.
class OffThisProcessor {
 public:
#ifdef __linux__
  explicit OffThisProcessor(std::thread& thread) : thread_(thread.native_handle()) {
    const int here = sched_getcpu();
    if (here < 0 || pthread_getaffinity_np(thread_, sizeof before_, &before_) != 0) return;
    cpu_set_t others = before_;
    CPU_CLR(here, &others);
    moved_ = CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread_, sizeof others, &others) == 0;
  }
  OffThisProcessor(const OffThisProcessor&) = delete;
  OffThisProcessor& operator=(const OffThisProcessor&) = delete;
  ~OffThisProcessor() {
    if (moved_) pthread_setaffinity_np(thread_, sizeof before_, &before_);
  }

 private:
  pthread_t thread_;
  cpu_set_t before_;
  bool moved_ = false;
#else
  explicit OffThisProcessor(std::thread&) {}
#endif
};

}  // namespace

void Lanes::enter(State next) {
  {
    const std::lock_guard lock(mutex_);
    state_ = next;
  }
  changed_.notify_all();
}

void Lanes::wake(State next) {
  const OffThisProcessor kept_off(other_);
  enter(next);
}

Lanes::State Lanes::wait_while(State present) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ != present; });
  return state_;
}

Lanes::Lanes(bool two) {
  if (two) other_ = std::thread([this] { serve(); });
}

Lanes::~Lanes() {
  if (!other_.joinable()) return;
  wake(State::kClosing);
  other_.join();
}

void Lanes::serve() {
  while (wait_while(State::kIdle) == State::kAsked) {
    try {
      (*work_)(1);
    } catch (...) {
      error_ = std::current_exception();
    }
    enter(State::kIdle);
  }
}

void Lanes::run(const Work& work) {
  if (!other_.joinable()) return work(0);
  work_ = &work;
  error_ = nullptr;
  wake(State::kAsked);
  try {
    work(0);
  } catch (...) {
    wait_while(State::kAsked);
    throw;
  }
  wait_while(State::kAsked);
  if (error_) std::rethrow_exception(error_);
}

}  // namespace modelplan::solver
