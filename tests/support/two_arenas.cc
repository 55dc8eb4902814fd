// Runs a .tflite file on TensorFlow Lite Micro with one arena or with two at the addresses of two memories, and prints
// one JSON object: whether it was built and run, the addresses of an input and of an output, and a digest of all
// outputs.
//
//   two_arenas MODEL one ADDRESS BYTES
//   two_arenas MODEL two ADDRESS BYTES ADDRESS BYTES     (what is kept, then tensors and scratch)
#include <sys/mman.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "python/tflite_micro/python_ops_resolver.h"
#include "tensorflow/lite/micro/debug_log.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" void DebugLog(const char* format, va_list args) { vfprintf(stderr, format, args); }

extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return vsnprintf(buffer, size, format, args);
}

namespace {

constexpr size_t kPage = 4096;

// A memory at a fixed address whose bytes outside of the arena are watched.
struct Memory {
  Memory(uintptr_t address, size_t size) : bytes(size), start(reinterpret_cast<uint8_t*>(address)) {
    whole = (size + 2 * kPage - 1) / kPage * kPage + kPage;
    void* got = mmap(start - kPage, whole + kPage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != start - kPage) {
      printf("{\"built\": false, \"error\": \"address %#zx is taken\"}\n", static_cast<size_t>(address));
      exit(3);
    }
    memset(start - kPage, 0xA5, whole + kPage);
    memset(start, 0, bytes);
  }
  bool Overrun() const {
    for (size_t i = 0; i < kPage; ++i)
      if (start[-1 - static_cast<ptrdiff_t>(i)] != 0xA5) return true;
    for (size_t i = bytes; i < whole; ++i)
      if (start[i] != 0xA5) return true;
    return false;
  }
  size_t bytes, whole;
  uint8_t* start;
};

std::vector<uint8_t> Read(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) exit(2);
  fseek(file, 0, SEEK_END);
  std::vector<uint8_t> data(ftell(file) + 16);
  rewind(file);
  const size_t got = fread(data.data(), 1, data.size(), file);
  data.resize(got);
  fclose(file);
  return data;
}

}  // namespace

int main(int argc, char** argv) {
  const bool two = argc == 7 && !strcmp(argv[2], "two");
  if (!two && !(argc == 5 && !strcmp(argv[2], "one"))) return 2;
  const std::vector<uint8_t> file = Read(argv[1]);
  const tflite::Model* model = tflite::GetModel(file.data());
  Memory first(strtoull(argv[3], nullptr, 0), strtoull(argv[4], nullptr, 0));
  Memory* second = two ? new Memory(strtoull(argv[5], nullptr, 0), strtoull(argv[6], nullptr, 0)) : nullptr;
  tflite::MicroAllocator* allocator =
      two ? tflite::MicroAllocator::Create(first.start, first.bytes, second->start, second->bytes)
          : tflite::MicroAllocator::Create(first.start, first.bytes);
  tflite::PythonOpsResolver resolver;
  tflite::MicroInterpreter interpreter(model, resolver, allocator);
  if (interpreter.AllocateTensors() != kTfLiteOk) {
    printf("{\"built\": false}\n");
    return 1;
  }
  uint64_t digest = 1469598103934665603ull, state = 1;  // FNV-1a of outputs; inputs by a linear congruence
  for (int run = 0; run < 3; ++run) {
    for (size_t i = 0; i < interpreter.inputs_size(); ++i) {
      TfLiteTensor* input = interpreter.input(i);
      for (size_t b = 0; b < input->bytes; ++b) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        input->data.uint8[b] = static_cast<uint8_t>(state >> 56);
      }
    }
    if (interpreter.Invoke() != kTfLiteOk) {
      printf("{\"built\": true, \"ok\": false}\n");
      return 1;
    }
    for (size_t i = 0; i < interpreter.outputs_size(); ++i)
      for (size_t b = 0; b < interpreter.output(i)->bytes; ++b)
        digest = (digest ^ interpreter.output(i)->data.uint8[b]) * 1099511628211ull;
  }
  printf(
      "{\"built\": true, \"ok\": true, \"overrun\": %s, \"used\": %zu, \"input\": %zu, \"output\": %zu, \"digest\": "
      "\"%016llx\"}\n",
      first.Overrun() || (second && second->Overrun()) ? "true" : "false", interpreter.arena_used_bytes(),
      reinterpret_cast<size_t>(interpreter.input(0)->data.raw),
      reinterpret_cast<size_t>(interpreter.output(0)->data.raw), static_cast<unsigned long long>(digest));
  return 0;
}
