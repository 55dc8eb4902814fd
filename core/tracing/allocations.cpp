// A library to load before libc (LD_PRELOAD): counts what a process allocates with an alignment and gives back.
//
// ONNX Runtime asks for all its buffers this way; numpy and the interpreter do not. With `trace_begin` it also notes
// each call, and each reading of the clock, which a profiling session does before and after every kernel.

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace {

struct Event {
  char what;
  void* at;
  std::size_t bytes;
};

struct Trace {
  std::mutex lock;
  std::unordered_map<void*, std::size_t> blocks;
  std::vector<Event> events;
  long long live = 0;
  long long peak = 0;
  bool noting = false;
};

// Never destroyed: free is called until the very end.
Trace& trace() {
  static auto* only = new Trace;
  return *only;
}

thread_local bool inside = false;

void note(char what, void* at, std::size_t bytes) {
  if (inside) return;
  inside = true;
  {
    Trace& t = trace();
    const std::lock_guard<std::mutex> hold(t.lock);
    bool known = true;
    if (what == 'a') {
      t.blocks[at] = bytes;
      t.live += static_cast<long long>(bytes);
      if (t.live > t.peak) t.peak = t.live;
    } else if (what == 'f') {
      const auto found = t.blocks.find(at);
      known = found != t.blocks.end();
      if (known) {
        t.live -= static_cast<long long>(found->second);
        t.blocks.erase(found);
      }
    }
    if (known && t.noting) t.events.push_back({what, at, bytes});
  }
  inside = false;
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int posix_memalign(void** at, std::size_t alignment, std::size_t bytes) {
  static const auto real = next<int (*)(void**, std::size_t, std::size_t)>("posix_memalign");
  const int status = real(at, alignment, bytes);
  if (status == 0) note('a', *at, bytes);
  return status;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  static const auto real = next<void* (*)(std::size_t, std::size_t)>("aligned_alloc");
  void* at = real(alignment, bytes);
  if (at) note('a', at, bytes);
  return at;
}

void free(void* at) {
  static const auto real = next<void (*)(void*)>("free");
  if (at) note('f', at, 0);
  real(at);
}

long profiler_clock() asm("_ZNSt6chrono3_V212system_clock3nowEv");
long profiler_clock() {
  static const auto real = next<long (*)()>("_ZNSt6chrono3_V212system_clock3nowEv");
  note('t', nullptr, 0);
  return real();
}

// Bytes that are allocated now.
long long trace_live() {
  const std::lock_guard<std::mutex> hold(trace().lock);
  return trace().live;
}

// The most bytes that were allocated at once since the last call.
long long trace_peak() {
  const std::lock_guard<std::mutex> hold(trace().lock);
  const long long peak = trace().peak;
  trace().peak = trace().live;
  return peak;
}

// From here on each call is noted.
void trace_begin() {
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
