#include "lanes.hpp"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace modelplan::solver {
namespace {

// As long as it lives, a thread may not start to run on the processor of the caller. The kernel of a virtual machine
// takes a processor that sleeps for a busy one; without this it would start the thread here, to wait for milliseconds.
class Elsewhere {
 public:
#ifdef __linux__
  explicit Elsewhere(std::thread& thread) : thread_(thread.native_handle()) {
    const int here = sched_getcpu();
    if (here < 0 || pthread_getaffinity_np(thread_, sizeof before_, &before_) != 0) return;
    cpu_set_t others = before_;
    CPU_CLR(here, &others);
    moved_ = CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread_, sizeof others, &others) == 0;
  }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;
  ~Elsewhere() {
    if (moved_) pthread_setaffinity_np(thread_, sizeof before_, &before_);
  }

 private:
  pthread_t thread_;
  cpu_set_t before_;
  bool moved_ = false;
#else
  explicit Elsewhere(std::thread&) {}
#endif
};

}  // namespace

void Lanes::Desk::tell(State next) {
  {
    const std::lock_guard lock(mutex);
    state = next;
  }
  changed.notify_all();
}

Lanes::Desk::State Lanes::Desk::wait_while(State present) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return state != present; });
  return state;
}

Lanes::Lanes(bool two) {
  if (!two) return;
  desk_ = std::make_shared<Desk>();
  other_ = std::thread(serve, desk_);
}

Lanes::~Lanes() {
  if (!other_.joinable()) return;
  desk_->tell(Desk::State::kClosing);
  other_.detach();
}

void Lanes::serve(const std::shared_ptr<Desk>& desk) {
  while (desk->wait_while(Desk::State::kIdle) == Desk::State::kAsked) {
    try {
      (*desk->work)(1);
    } catch (...) {
      desk->error = std::current_exception();
    }
    desk->tell(Desk::State::kIdle);
  }
}

void Lanes::run(const Work& work) {
  if (!other_.joinable()) return work(0);
  desk_->work = &work;
  desk_->error = nullptr;
  {
    const Elsewhere elsewhere(other_);
    desk_->tell(Desk::State::kAsked);
  }
  try {
    work(0);
  } catch (...) {
    desk_->wait_while(Desk::State::kAsked);
    throw;
  }
  desk_->wait_while(Desk::State::kAsked);
  if (desk_->error) std::rethrow_exception(desk_->error);
}

}  // namespace modelplan::solver
