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

void Lanes::Shared::tell(State next) {
  {
    const std::lock_guard lock(mutex);
    state = next;
  }
  changed.notify_all();
}

Lanes::Shared::State Lanes::Shared::wait_while(State present) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return state != present; });
  return state;
}

Lanes::Lanes(bool two) {
  if (!two) return;
  shared_ = std::make_shared<Shared>();
  other_ = std::thread(serve, shared_);
}

Lanes::~Lanes() {
  if (!other_.joinable()) return;
  shared_->tell(Shared::State::kClosing);
  other_.detach();
}

void Lanes::serve(const std::shared_ptr<Shared>& shared) {
  while (shared->wait_while(Shared::State::kIdle) == Shared::State::kAsked) {
    try {
      (*shared->work)(1);
    } catch (...) {
      shared->error = std::current_exception();
    }
    shared->tell(Shared::State::kIdle);
  }
}

void Lanes::run(const Work& work) {
  if (!other_.joinable()) return work(0);
  shared_->work = &work;
  shared_->error = nullptr;
  {
    const OffThisProcessor kept_off(other_);
    shared_->tell(Shared::State::kAsked);
  }
  try {
    work(0);
  } catch (...) {
    shared_->wait_while(Shared::State::kAsked);
    throw;
  }
  shared_->wait_while(Shared::State::kAsked);
  if (shared_->error) std::rethrow_exception(shared_->error);
}

}  // namespace modelplan::solver
