// Runs several .tflite files in one arena of TensorFlow Lite Micro, or each in an arena of its own, and prints one JSON
// object: bytes of head and tail, and a digest of every output of every run.
//
//   shared_memory ARENA [options] MODEL...
//     --separate     each model in an arena of ARENA bytes of its own; otherwise all on one MicroAllocator
//     --rounds N     how often all models run, in the order of their arguments or of --order
//     --order A,B    the order of running, by the numbers of the arguments
//     --pipe A:I=B:J output I of model A is input J of model B (numbers of arguments)
//     --nest A:B     model B runs as a whole before and after each operator of model A
//     --probe        print nothing but "yes" if all models are built and run
//
// Compiled with -DPLAN_HEADER="FILE", the header that `modelplan together` writes gives every address.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "python/tflite_micro/python_ops_resolver.h"
#include "tensorflow/lite/micro/debug_log.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

#ifdef PLAN_HEADER
#include PLAN_HEADER
#endif

extern "C" void DebugLog(const char* format, va_list args) { vfprintf(stderr, format, args); }

extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return vsnprintf(buffer, size, format, args);
}

namespace {

// The head of an allocator is private; an explicit instantiation may name it.
template <size_t tflite::MicroAllocator::* M>
struct Window {
  friend size_t HeadOf(const tflite::MicroAllocator& allocator) { return allocator.*M; }
};
template struct Window<&tflite::MicroAllocator::max_head_buffer_usage_>;
size_t HeadOf(const tflite::MicroAllocator& allocator);

struct Digest {
  uint64_t value = 1469598103934665603ull;  // FNV-1a
  void Add(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) value = (value ^ static_cast<const uint8_t*>(data)[i]) * 1099511628211ull;
  }
};

struct Arena {
  explicit Arena(size_t size) : bytes(size), memory(size + 2 * kGuard + 16, 0xA5) {
    const auto begin = (reinterpret_cast<uintptr_t>(memory.data()) + kGuard + 15) & ~uintptr_t{15};
    start = reinterpret_cast<uint8_t*>(begin);
    memset(start, 0, bytes);
  }
  bool Overrun() const {
    for (size_t i = 1; i <= kGuard; ++i)
      if (start[-static_cast<ptrdiff_t>(i)] != 0xA5 || start[bytes + i - 1] != 0xA5) return true;
    return false;
  }
  static constexpr size_t kGuard = 64;
  size_t bytes;
  std::vector<uint8_t> memory;
  uint8_t* start;
};

struct Pipe {
  int from, output, to, input;
};

struct Runner;

// Runs another model before and after every operator.
class Interrupt : public tflite::MicroProfilerInterface {
 public:
  uint32_t BeginEvent(const char*) override;
  void EndEvent(uint32_t) override;
  Runner* runner = nullptr;
  std::vector<int> models;
};

int CountVariables(const tflite::Model* model) {
  std::vector<std::string> seen;
  for (const auto* graph : *model->subgraphs()) {
    if (!graph->operators()) continue;
    for (const auto* op : *graph->operators()) {
      const auto* code = model->operator_codes()->Get(op->opcode_index());
      if (code->builtin_code() != tflite::BuiltinOperator_VAR_HANDLE) continue;
      const auto* options = op->builtin_options_as_VarHandleOptions();
      std::string name;
      if (options && options->container()) name += options->container()->c_str();
      name += '\n';
      if (options && options->shared_name()) name += options->shared_name()->c_str();
      bool known = false;
      for (const auto& other : seen) known |= other == name;
      if (!known) seen.push_back(name);
    }
  }
  return static_cast<int>(seen.size());
}

void Fill(TfLiteTensor* tensor, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  auto next = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  for (size_t i = 0; i < tensor->bytes; ++i) tensor->data.uint8[i] = static_cast<uint8_t>(next() >> 24);
  if (tensor->type == kTfLiteFloat32)
    for (size_t i = 0; i < tensor->bytes / 4; ++i)
      tensor->data.f[i] = static_cast<float>(static_cast<int32_t>(next() >> 40)) / 8388608.0f - 1.0f;
  if (tensor->type == kTfLiteInt32)
    for (size_t i = 0; i < tensor->bytes / 4; ++i) tensor->data.i32[i] = static_cast<int32_t>(next() >> 61);
  if (tensor->type == kTfLiteBool)
    for (size_t i = 0; i < tensor->bytes; ++i) tensor->data.uint8[i] = static_cast<uint8_t>(next() >> 63);
}

struct Runner {
  std::vector<tflite::MicroInterpreter*> models;
  std::vector<Pipe> pipes;
  std::vector<int> runs;
  std::string rows;
  size_t copied = 0;
  bool ok = true;

  // One run: inputs, Invoke, a digest of each output.
  void Run(int index) {
    tflite::MicroInterpreter* model = models[index];
    for (size_t i = 0; i < model->inputs_size(); ++i) {
      const Pipe* source = nullptr;
      for (const auto& pipe : pipes)
        if (pipe.to == index && pipe.input == static_cast<int>(i)) source = &pipe;
      if (source == nullptr) {
        Fill(model->input(i), 1000003ull * index + 101ull * runs[index] + i + 1);
        continue;
      }
      TfLiteTensor* from = models[source->from]->output(source->output);
      if (from->data.raw != model->input(i)->data.raw) {
        memmove(model->input(i)->data.raw, from->data.raw, from->bytes);
        copied += from->bytes;
      }
    }
    ok &= model->Invoke() == kTfLiteOk;
    ++runs[index];
    Digest digest;
    for (size_t i = 0; i < model->outputs_size(); ++i) digest.Add(model->output(i)->data.raw, model->output(i)->bytes);
    char text[64];
    snprintf(text, sizeof(text), "%s[%d, \"%016llx\"]", rows.empty() ? "" : ", ", index,
             static_cast<unsigned long long>(digest.value));
    rows += text;
  }
};

uint32_t Interrupt::BeginEvent(const char*) {
  for (int model : models) runner->Run(model);
  return 0;
}

void Interrupt::EndEvent(uint32_t) {
  for (int model : models) runner->Run(model);
}

uint8_t* ReadFile(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(2);
  }
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  uint8_t* data = static_cast<uint8_t*>(aligned_alloc(64, (static_cast<size_t>(size) + 127) & ~size_t{63}));
  if (fread(data, 1, size, file) != static_cast<size_t>(size)) exit(2);
  fclose(file);
  return data;
}

}  // namespace

int main(int argc, char** argv) {
  size_t bytes = argc > 1 ? strtoul(argv[1], nullptr, 0) : 0;
  bool separate = false, probe = false;
  int rounds = 1;
  Runner runner;
  std::vector<std::pair<int, int>> nested;
  std::vector<const char*> paths;
  std::vector<int> order;
  for (int i = 2; i < argc; ++i) {
    int a, b, c, d;
    if (!strcmp(argv[i], "--separate"))
      separate = true;
    else if (!strcmp(argv[i], "--probe"))
      probe = true;
    else if (!strcmp(argv[i], "--order"))
      for (const char* at = argv[++i]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : nullptr)
        order.push_back(atoi(at));
    else if (!strcmp(argv[i], "--rounds"))
      rounds = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--pipe") && sscanf(argv[++i], "%d:%d=%d:%d", &a, &b, &c, &d) == 4)
      runner.pipes.push_back({a, b, c, d});
    else if (!strcmp(argv[i], "--nest") && sscanf(argv[++i], "%d:%d", &a, &b) == 2)
      nested.push_back({a, b});
    else
      paths.push_back(argv[i]);
  }
  if (!bytes || paths.empty()) return 2;
  for (size_t i = 0; order.size() < paths.size(); ++i) order.push_back(static_cast<int>(i));

  static tflite::PythonOpsResolver resolver;
  std::vector<Arena*> arenas;
  std::vector<tflite::MicroAllocator*> allocators;
  std::vector<Interrupt*> interrupts;
#ifdef PLAN_HEADER
  static modelplan::SharedMemoryPlanner planner;
#endif
  for (size_t i = 0; i < paths.size(); ++i) {
    if (separate || i == 0) {
      arenas.push_back(new Arena(bytes));
#ifdef PLAN_HEADER
      tflite::MicroAllocator* made = separate ? tflite::MicroAllocator::Create(arenas.back()->start, bytes)
                                              : tflite::MicroAllocator::Create(arenas.back()->start, bytes, &planner);
#else
      tflite::MicroAllocator* made = tflite::MicroAllocator::Create(arenas.back()->start, bytes);
#endif
      allocators.push_back(made);
    }
    tflite::MicroAllocator* allocator = allocators.back();
    const tflite::Model* model = tflite::GetModel(ReadFile(paths[i]));
    const int variables = CountVariables(model);
    auto* table = variables ? tflite::MicroResourceVariables::Create(allocator, variables) : nullptr;
    auto* interrupt = new Interrupt();
    interrupt->runner = &runner;
    for (const auto& pair : nested)
      if (pair.first == static_cast<int>(i)) interrupt->models.push_back(pair.second);
    auto* made = new tflite::MicroInterpreter(model, resolver, allocator, table,
                                              interrupt->models.empty() ? nullptr : interrupt);
    if (made->AllocateTensors() != kTfLiteOk) {
      printf("%s\n", probe ? "no" : "{\"built\": false}");
      return 1;
    }
    runner.models.push_back(made);
    runner.runs.push_back(0);
  }
  // What earlier models left behind must not pass for a right answer.
  for (size_t i = 0; i < allocators.size(); ++i) memset(arenas[i]->start, 0xA5, HeadOf(*allocators[i]));

  std::string late;
  for (int round = 0; round < rounds; ++round) {
    for (int i : order) {
      bool inner = false;
      for (const auto& pair : nested) inner |= pair.second == i;
      if (!inner) runner.Run(i);
    }
    for (size_t i = 0; i < paths.size(); ++i) {
      Digest digest;
      for (size_t k = 0; k < runner.models[i]->outputs_size(); ++k)
        digest.Add(runner.models[i]->output(k)->data.raw, runner.models[i]->output(k)->bytes);
      char text[64];
      snprintf(text, sizeof(text), "%s\"%016llx\"", late.empty() ? "" : ", ",
               static_cast<unsigned long long>(digest.value));
      late += text;
    }
  }
  bool overrun = false;
  for (const auto* arena : arenas) overrun |= arena->Overrun();
  if (probe) {
    printf("%s\n", runner.ok && !overrun ? "yes" : "no");
    return 0;
  }
  size_t used = 0, head = 0;
  for (const auto* allocator : allocators) {
    used += allocator->used_bytes();
    head += HeadOf(*allocator);
  }
  printf("{\"built\": true, \"ok\": %s, \"overrun\": %s, \"used\": %lu, \"head\": %lu, \"copied\": %lu,\n",
         runner.ok ? "true" : "false", overrun ? "true" : "false", static_cast<unsigned long>(used),
         static_cast<unsigned long>(head), static_cast<unsigned long>(runner.copied));
  printf(" \"runs\": [%s],\n \"late\": [%s]}\n", runner.rows.c_str(), late.c_str());
  return 0;
}
