// Runs a model with memory for what TFLM_DECODE unpacks: MODEL ARENA REGION. Prints the bytes used of the arena and a
// digest of the outputs, or nothing where it does not run; REGION 0 gives no such memory.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "python/tflite_micro/python_ops_resolver.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" void DebugLog(const char*, va_list) {}
extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return std::vsnprintf(buffer, size, format, args);
}

namespace {

alignas(16) unsigned char model_bytes[1 << 20];
alignas(16) unsigned char region[1 << 20];
alignas(16) unsigned char arena[4 << 20];

int Fail() { return 1; }

}  // namespace

int main(int, char** words) {
  FILE* file = std::fopen(words[1], "rb");
  if (file == nullptr || std::fread(model_bytes, 1, sizeof(model_bytes), file) == 0) return Fail();
  const size_t arena_size = std::strtoul(words[2], nullptr, 0);
  const tflite::MicroContext::AlternateMemoryRegion regions[] = {{region, std::strtoul(words[3], nullptr, 0)}};
  static tflite::PythonOpsResolver resolver;
  tflite::MicroAllocator* allocator = tflite::MicroAllocator::Create(arena, arena_size);
  tflite::MicroInterpreter interpreter(tflite::GetModel(model_bytes), resolver, allocator);
  if (regions[0].bytes && interpreter.SetDecompressionMemory(regions, 1) != kTfLiteOk) return Fail();
  if (interpreter.AllocateTensors() != kTfLiteOk) return Fail();
  unsigned digest = 1;
  for (int run = 0; run < 3; ++run) {
    for (size_t i = 0; i < interpreter.inputs_size(); ++i) {
      TfLiteTensor* tensor = interpreter.input(i);
      unsigned char* at = static_cast<unsigned char*>(tensor->data.data);
      for (size_t n = 0; n < tensor->bytes; ++n) at[n] = (unsigned char)((n + run) * 2654435761u >> 13);
    }
    if (interpreter.Invoke() != kTfLiteOk) return Fail();
    for (size_t i = 0; i < interpreter.outputs_size(); ++i) {
      const TfLiteTensor* tensor = interpreter.output(i);
      const unsigned char* at = static_cast<const unsigned char*>(tensor->data.data);
      for (size_t n = 0; n < tensor->bytes; ++n) digest = (digest ^ at[n]) * 16777619u;
    }
  }
  std::printf("%lu %u\n", (unsigned long)interpreter.arena_used_bytes(), digest);
  return 0;
}
