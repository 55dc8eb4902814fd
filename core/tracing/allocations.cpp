// A library to load before libc (LD_PRELOAD): counts what a process allocates and gives back, from `trace_count` on.
//
// Blocks with an alignment are counted apart: ONNX Runtime asks for all its buffers so, and for its own bookkeeping
// without. With `trace_begin` it also notes each call for an aligned block, and each reading of the clock, which a
// profiling session does before and after every kernel.

#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace {

struct Event {
  char what;
  void* at;
  std::size_t bytes;
};

struct Block {
  void* at;
  std::size_t bytes;
  bool aligned;
};

// The blocks that are allocated, by address: a table of twice as many places at least, in which a block lies at the
// first free place from its own on. A map of the standard library allocates for each, which doubles a session's start.
class Blocks {
 public:
  void add(const Block& block) {
    if (2 * (count_ + 1) > places_.size()) grow();
    std::size_t place = own(block.at);
    while (places_[place].at && places_[place].at != block.at) place = next(place);
    count_ += !places_[place].at;
    places_[place] = block;
  }

  // Takes a block out; false where there is none. Those behind it that it kept from their places move up.
  bool take(void* at, Block& taken) {
    if (places_.empty()) return false;
    std::size_t hole = own(at);
    while (places_[hole].at != at) {
      if (!places_[hole].at) return false;
      hole = next(hole);
    }
    taken = places_[hole];
    for (std::size_t place = next(hole); places_[place].at; place = next(place)) {
      const std::size_t mask = places_.size() - 1;
      if (((place - own(places_[place].at)) & mask) < ((place - hole) & mask)) continue;
      places_[hole] = places_[place];
      hole = place;
    }
    places_[hole] = {};
    --count_;
    return true;
  }

 private:
  std::size_t own(const void* at) const {
    return (reinterpret_cast<std::uintptr_t>(at) * 0x9E3779B97F4A7C15u >> 20) & (places_.size() - 1);
  }
  std::size_t next(std::size_t place) const { return (place + 1) & (places_.size() - 1); }

  void grow() {
    const std::vector<Block> before =
        std::exchange(places_, std::vector<Block>(places_.empty() ? 1 << 16 : 2 * places_.size()));
    count_ = 0;
    for (const Block& block : before)
      if (block.at) add(block);
  }

  std::vector<Block> places_;
  std::size_t count_ = 0;
};

struct Count {
  long long live = 0;
  long long peak = 0;

  void add(long long bytes) {
    live += bytes;
    if (live > peak) peak = live;
  }
};

struct Trace {
  std::mutex lock;
  Blocks blocks;
  std::vector<Event> events;
  Count aligned;
  Count heap;
  bool noting = false;
};

// Never destroyed: free is called until the very end.
Trace& trace() {
  static auto* only = new Trace;
  return *only;
}

thread_local bool inside = false;
bool counting = false;

// Calls note(trace) where calls are counted and this is none that noting one makes itself.
template <class Note>
void counted(const Note& note) {
  if (!counting || inside) return;
  inside = true;
  {
    Trace& t = trace();
    const std::lock_guard<std::mutex> hold(t.lock);
    note(t);
  }
  inside = false;
}

void note_block(void* at, std::size_t bytes, bool aligned) {
  if (!at) return;
  counted([&](Trace& t) {
    t.blocks.add({at, bytes, aligned});
    t.heap.add(static_cast<long long>(bytes));
    if (aligned) t.aligned.add(static_cast<long long>(bytes));
    if (aligned && t.noting) t.events.push_back({'a', at, bytes});
  });
}

void forget_block(void* at) {
  if (!at) return;
  counted([&](Trace& t) {
    Block block;
    if (!t.blocks.take(at, block)) return;
    t.heap.add(-static_cast<long long>(block.bytes));
    if (block.aligned) t.aligned.add(-static_cast<long long>(block.bytes));
    if (block.aligned && t.noting) t.events.push_back({'f', at, 0});
  });
}

void note_clock() {
  counted([](Trace& t) {
    if (t.noting) t.events.push_back({'t', nullptr, 0});
  });
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// What dlsym itself asks for before the real functions are known; never given back.
alignas(std::max_align_t) char early[1 << 16];
std::size_t early_used = 0;

void* early_block(std::size_t bytes) {
  const std::size_t step = alignof(std::max_align_t);
  const std::size_t rounded = (bytes + step - 1) / step * step;
  if (rounded > sizeof early - early_used) return nullptr;
  void* at = early + early_used;
  early_used += rounded;
  return at;
}

bool is_early(const void* at) { return at >= early && at < early + sizeof early; }

using Malloc = void* (*)(std::size_t);
using Calloc = void* (*)(std::size_t, std::size_t);
using Realloc = void* (*)(void*, std::size_t);
using Free = void (*)(void*);
using Align = void* (*)(std::size_t, std::size_t);

struct Real {
  Malloc malloc = nullptr;
  Calloc calloc = nullptr;
  Realloc realloc = nullptr;
  Free free = nullptr;
  Align aligned_alloc = nullptr;
  int (*posix_memalign)(void**, std::size_t, std::size_t) = nullptr;
  bool ready = false;
};

Real functions;
bool looking = false;

// The functions of libc; null while they are being looked up.
Real* real() {
  if (functions.ready) return &functions;
  if (looking) return nullptr;
  looking = true;
  functions.malloc = next<Malloc>("malloc");
  functions.calloc = next<Calloc>("calloc");
  functions.realloc = next<Realloc>("realloc");
  functions.free = next<Free>("free");
  functions.aligned_alloc = next<Align>("aligned_alloc");
  functions.posix_memalign = next<int (*)(void**, std::size_t, std::size_t)>("posix_memalign");
  functions.ready = true;
  looking = false;
  return &functions;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  Real* libc = real();
  if (!libc) return early_block(bytes);
  void* at = libc->malloc(bytes);
  note_block(at, bytes, false);
  return at;
}

void* calloc(std::size_t count, std::size_t bytes) {
  Real* libc = real();
  if (!libc) return early_block(count * bytes);  // static memory is zero
  void* at = libc->calloc(count, bytes);
  note_block(at, count * bytes, false);
  return at;
}

void* realloc(void* before, std::size_t bytes) {
  Real* libc = real();
  if (!libc || is_early(before)) {
    void* at = malloc(bytes);
    const std::size_t kept = before ? static_cast<std::size_t>(early + sizeof early - static_cast<char*>(before)) : 0;
    if (at && before) std::memcpy(at, before, kept < bytes ? kept : bytes);
    return at;
  }
  forget_block(before);  // before another thread can be given the same address
  void* at = libc->realloc(before, bytes);
  note_block(at, bytes, false);
  return at;
}

int posix_memalign(void** at, std::size_t alignment, std::size_t bytes) {
  Real* libc = real();
  if (!libc) return ENOMEM;
  const int status = libc->posix_memalign(at, alignment, bytes);
  if (status == 0) note_block(*at, bytes, true);
  return status;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  Real* libc = real();
  if (!libc) return nullptr;
  void* at = libc->aligned_alloc(alignment, bytes);
  note_block(at, bytes, true);
  return at;
}

void free(void* at) {
  if (is_early(at)) return;
  Real* libc = real();
  if (!libc) return;
  forget_block(at);
  libc->free(at);
}

long profiler_clock() asm("_ZNSt6chrono3_V212system_clock3nowEv");
long profiler_clock() {
  static const auto real_clock = next<long (*)()>("_ZNSt6chrono3_V212system_clock3nowEv");
  note_clock();
  return real_clock();
}

// From here on blocks are counted; those of before are not known.
void trace_count() {
  trace();
  counting = true;
}

// Bytes that are allocated now: in aligned blocks, or with `all` in all blocks of the heap.
long long trace_live(int all) {
  const std::lock_guard<std::mutex> hold(trace().lock);
  return all ? trace().heap.live : trace().aligned.live;
}

// The most bytes that were allocated at once since `trace_restart`, the same way.
long long trace_peak(int all) {
  const std::lock_guard<std::mutex> hold(trace().lock);
  return all ? trace().heap.peak : trace().aligned.peak;
}

// Peaks count from here on.
void trace_restart() {
  const std::lock_guard<std::mutex> hold(trace().lock);
  for (Count* count : {&trace().aligned, &trace().heap}) count->peak = count->live;
}

// From here on each call is noted, and blocks are counted.
void trace_begin() {
  trace_count();
  const std::lock_guard<std::mutex> hold(trace().lock);
  trace().events.clear();
  trace().noting = true;
}

// Writes what was noted to a file, one call a line: a (allocated), f (freed) or t (clock), address, bytes.
void trace_end(const char* path) {
  inside = true;  // writing a file allocates, which would wait for the lock
  std::vector<Event> noted;
  {
    const std::lock_guard<std::mutex> hold(trace().lock);
    trace().noting = false;
    noted.swap(trace().events);
  }
  std::FILE* out = std::fopen(path, "w");
  if (out) {
    for (const Event& e : noted) std::fprintf(out, "%c %p %zu\n", e.what, e.at, e.bytes);
    std::fclose(out);
  }
  inside = false;
}
}
