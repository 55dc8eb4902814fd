"""A C++ file that runs a model on a device and compares its outputs with the expected ones."""

import zlib
from collections.abc import Iterator

from modelplan.answers.proof_outcomes import SelfTest
from modelplan.outputs.firmware.kernels_guard import guard_of
from modelplan.outputs.firmware.tflm_sources import (
    comment,
    model_kinds,
    own_operators,
    resolver_calls,
    resolver_methods,
)
from modelplan.runtimes.tflm.abi import ABIS
from modelplan.runtimes.tflm.kernels import ALL
from modelplan.runtimes.tflm.kernels.own_kernels import library_of
from modelplan.runtimes.tflm.planner import ALIGNMENT

#: Bytes of the model in one line.
_IN_LINE = 20

_BEFORE_MODEL = """\
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_log.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

#ifndef MODELPLAN_SELF_TEST_PLACE
#define MODELPLAN_SELF_TEST_PLACE
#endif
#ifdef MODELPLAN_SELF_TEST_MODEL
extern const unsigned char MODELPLAN_SELF_TEST_MODEL[];
#endif

namespace {
"""
_FUNCTIONS = """\
// The bytes before and behind the arena show whether anything is written there.
struct GuardedArena {
  std::uint8_t before[kAlignment];
  std::uint8_t bytes[kArenaBytes];
  std::uint8_t behind[kAlignment];
};
alignas(kAlignment) MODELPLAN_SELF_TEST_PLACE GuardedArena guarded;

std::uint32_t Crc32(const void* data, std::size_t size) {
  const std::uint8_t* at = static_cast<const std::uint8_t*>(data);
  std::uint32_t crc = 0xffffffffu;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= at[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

std::uint64_t Next(std::uint64_t& state) {  // splitmix64
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

template <typename T>
std::size_t Put(void* at, T value) {
  std::memcpy(at, &value, sizeof(value));
  return sizeof(value);
}

void Fill(TfLiteTensor* tensor, std::uint32_t run, std::uint32_t input) {
  std::uint64_t state = kSeed * 0x100000001b3u + (static_cast<std::uint64_t>(run) << 32) + input;
  std::uint8_t* data = static_cast<std::uint8_t*>(tensor->data.data);
  Next(state);
  for (std::size_t at = 0; at < tensor->bytes;) {
    const std::uint64_t z = Next(state);
    switch (tensor->type) {
      case kTfLiteFloat32:
        at += Put(data + at, static_cast<float>(static_cast<std::int32_t>(z >> 40)) / 8388608.0f - 1.0f);
        break;
      case kTfLiteInt16:
        at += Put(data + at, static_cast<std::uint16_t>(z >> 48));
        break;
      case kTfLiteInt32:
        at += Put(data + at, static_cast<std::uint32_t>(z >> 61));
        break;
      case kTfLiteInt64:
        at += Put(data + at, z >> 61);
        break;
      case kTfLiteBool:
        at += Put(data + at, static_cast<std::uint8_t>(z >> 63));
        break;
      default:
        at += Put(data + at, static_cast<std::uint8_t>(z >> 56));
    }
  }
}

float Element(const TfLiteTensor* tensor, std::size_t index) {
  const std::uint8_t* data = static_cast<const std::uint8_t*>(tensor->data.data);
  float real;
  std::int16_t wide;
  switch (tensor->type) {
    case kTfLiteFloat32:
      std::memcpy(&real, data + 4 * index, sizeof(real));
      return real;
    case kTfLiteInt16:
      std::memcpy(&wide, data + 2 * index, sizeof(wide));
      return wide;
    case kTfLiteInt8:
      return static_cast<std::int8_t>(data[index]);
    default:
      return data[index];
  }
}

bool IsExpected(const TfLiteTensor* tensor, const Expected& expected) {
  if (expected.means == nullptr) return Crc32(tensor->data.data, tensor->bytes) == expected.crc;
  for (std::size_t first = 0; first < expected.count; first += expected.block) {
    const std::size_t rest = expected.count - first;
    const std::size_t count = rest < expected.block ? rest : expected.block;
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += Element(tensor, first + i);
    const float off = sum / static_cast<float>(count) - expected.means[first / expected.block];
    if (!(std::fabs(off) <= expected.tolerance)) return false;
  }
  return true;
}

// An interpreter whose tensors can be seen while it runs.
class VisibleInterpreter : public tflite::MicroInterpreter {
 public:
  using tflite::MicroInterpreter::MicroInterpreter;
  const void* Data(int tensor) const { return context().GetEvalTensor(&context(), tensor)->data.data; }
};

// Judges what each operator of the main graph has written, right after it ran.
class OperatorJudge : public tflite::MicroProfilerInterface {
 public:
  void Start(const VisibleInterpreter* interpreter, int run) {
    interpreter_ = interpreter;
    run_ = run;
    depth_ = op_ = row_ = 0;
    first_wrong_ = -1;
  }
  std::uint32_t BeginEvent(const char*) override { return depth_++; }
  void EndEvent(std::uint32_t) override {
    if (--depth_ != 0 || interpreter_ == nullptr) return;
    for (; row_ < kWrites && kWritten[row_].op == op_; ++row_) {
      const std::uint32_t crc = Crc32(interpreter_->Data(kWritten[row_].tensor), kWritten[row_].bytes);
      if (crc != kWritten[row_].crc[run_] && first_wrong_ < 0) first_wrong_ = op_;
    }
    ++op_;
  }
  int first_wrong() const { return first_wrong_; }
  int operators() const { return op_; }

 private:
  const VisibleInterpreter* interpreter_ = nullptr;
  int run_ = 0;
  int depth_ = 0;
  int op_ = 0;
  int row_ = 0;
  int first_wrong_ = -1;
};

bool IsAligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0; }

int failures;

void Judge(bool passed, const char* what, int index) {
  if (!passed) ++failures;
  MicroPrintf("  %s %d: %s", what, index, passed ? "ok" : "FAIL");
}

void Run(VisibleInterpreter& interpreter, OperatorJudge& judge, int run) {
  for (int i = 0; i < kInputs; ++i) Fill(interpreter.input(i), run, i);
  judge.Start(&interpreter, run);
  const bool invoked = interpreter.Invoke() == kTfLiteOk;
  Judge(invoked, "run", run);
  if (judge.first_wrong() >= 0) Judge(false, "  first wrong operator", judge.first_wrong());
  if (kWrites > 0 && judge.operators() == 0) MicroPrintf("    operators not seen: TF_LITE_STRIP_ERROR_STRINGS");
  for (int i = 0; invoked && i < kOutputs; ++i) {
    Judge(IsExpected(interpreter.output(i), kExpected[run][i]), "  output", i);
  }
}

void TestOutputs(VisibleInterpreter& interpreter, OperatorJudge& judge) {
  const bool complete = interpreter.inputs_size() == kInputs && interpreter.outputs_size() == kOutputs;
  Judge(complete, "inputs and outputs", kInputs + kOutputs);
  if (!complete) return;
  for (int i = 0; i < kInputs; ++i) Judge(IsAligned(interpreter.input(i)->data.data), "alignment of input", i);
  for (int i = 0; i < kOutputs; ++i) Judge(IsAligned(interpreter.output(i)->data.data), "alignment of output", i);
  for (int run = 0; run < kRuns; ++run) Run(interpreter, judge, run);
}

bool GuardsStand() {
  for (std::size_t i = 0; i < kAlignment; ++i) {
    if (guarded.before[i] != 0xa5 || guarded.behind[i] != 0xa5) return false;
  }
  return true;
}

void TestModel(const void* model) {
  std::memset(guarded.before, 0xa5, sizeof(guarded.before));
  std::memset(guarded.behind, 0xa5, sizeof(guarded.behind));
  Judge(Crc32(model, kModelBytes) == kModelCrc, "model of bytes", kModelBytes);
  Judge(IsAligned(model), "alignment of the model to", kAlignment);
  Judge(IsAligned(guarded.bytes), "alignment of the arena to", kAlignment);
  static OpResolver resolver;
  if (AddOps(resolver) != kTfLiteOk) return Judge(false, "operators", kOperators);
  tflite::MicroAllocator* allocator = tflite::MicroAllocator::Create(guarded.bytes, kArenaBytes);
  tflite::MicroResourceVariables* variables =
      kVariables ? tflite::MicroResourceVariables::Create(allocator, kVariables) : nullptr;
  static OperatorJudge judge;
  VisibleInterpreter interpreter(tflite::GetModel(model), resolver, allocator, variables, &judge);
  const bool allocated = interpreter.AllocateTensors() == kTfLiteOk;
  Judge(allocated, "arena of bytes", kArenaBytes);
  if (allocated) TestOutputs(interpreter, judge);
  Judge(GuardsStand(), "bytes around the arena", 2 * kAlignment);
}

}  // namespace

extern "C" int modelplan_self_test(void) {
  failures = 0;
  MicroPrintf("modelplan self-test");
  TestModel(MODELPLAN_SELF_TEST_MODEL);
  MicroPrintf(failures ? "FAIL" : "PASS");
  return failures != 0;
}

#ifdef MODELPLAN_SELF_TEST_MAIN
int main() { return modelplan_self_test(); }
#endif
"""

_EXPECTED = """\
// What an output has to be: its CRC-32, or the mean of every `block` of its `count` elements up to `tolerance`.
struct Expected {
  std::uint32_t crc;
  const float* means;
  std::size_t count;
  std::size_t block;
  float tolerance;
};
"""
_WRITTEN = """\
// What an operator of the main graph writes: the CRC-32 of a tensor in each run.
struct Written {
  int op;
  int tensor;
  std::size_t bytes;
  std::uint32_t crc[kRuns];
};
"""


def render(self_test: SelfTest) -> str:
    """The whole file: what it is, the model, the operators, the expected outputs, and the test."""
    methods, own = resolver_methods(self_test.model)
    main, pointer = self_test.model.subgraphs[0], ABIS[self_test.arena.abi].pointer
    guard = guard_of(self_test.kernels, model_kinds(self_test.model))
    return f"""\
{_opening(self_test)}{guard.macros()}{guard.symbols()}
{_BEFORE_MODEL}
static_assert(sizeof(void*) == {pointer}, "sized for addresses of {pointer} bytes");

{_facts(self_test)}
// Operators of the model{own_operators(own)}.
constexpr int kOperators = {max(len(methods) + len(own), 1)};
using OpResolver = tflite::MicroMutableOpResolver<kOperators>;

TfLiteStatus AddOps(OpResolver& resolver) {{
{guard.check("return kTfLiteError;")}{resolver_calls(methods)}  return kTfLiteOk;
}}

{_EXPECTED}constexpr int kInputs = {len(main.inputs)};
constexpr int kOutputs = {len(main.outputs)};
constexpr int kRuns = {len(self_test.runs)};

{_WRITTEN}{"".join(_tables(self_test))}
{_FUNCTIONS}"""


def _facts(self_test: SelfTest) -> str:
    """The sizes and the model, each of which a build may say otherwise by a macro."""
    data = self_test.model.data
    lines = (data[at : at + _IN_LINE] for at in range(0, len(data), _IN_LINE))
    numbers = "".join("    " + ",".join(map(str, line)) + ",\n" for line in lines)
    return f"""\
#ifdef MODELPLAN_SELF_TEST_ARENA_BYTES
constexpr std::size_t kArenaBytes = MODELPLAN_SELF_TEST_ARENA_BYTES;
#else
constexpr std::size_t kArenaBytes = {self_test.arena.size()};
#endif
constexpr std::size_t kAlignment = {ALIGNMENT};
constexpr int kVariables = {self_test.variables};
constexpr std::uint64_t kSeed = {self_test.seed}u;
constexpr std::size_t kModelBytes = {len(data)};
constexpr std::uint32_t kModelCrc = {zlib.crc32(data):#010x}u;

#ifndef MODELPLAN_SELF_TEST_MODEL
alignas(kAlignment) const unsigned char model_bytes[] = {{
{numbers}}};
#define MODELPLAN_SELF_TEST_MODEL model_bytes
#endif
"""


def _opening(self_test: SelfTest) -> str:
    """What the file is, where its expectations come from, and how it is built, as comments."""
    model, kernels = self_test.model, self_test.kernels
    built = "enough for all kernel libraries" if library_of(kernels) == ALL else f"{library_of(kernels)} kernels"
    name, original = comment(model.name), comment(self_test.original)
    lines = [
        f"Made by modelplan: a self-test of {name}, {len(model.data)} bytes; ABI {self_test.arena.abi}, {built}.",
        "",
        "It allocates the model in an arena of the planned size and runs it several times in a row on inputs that it",
        "makes. It judges the model's bytes, alignment, the arena, the bytes around it and every output, prints a line",
        "for each by MicroPrintf, and PASS or FAIL at the end.",
        "",
        f"The expected outputs were executed by {self_test.executed_by},",
        f"on {original} without an offline plan.",
        "No kernel of CMSIS-NN or ESP-NN was executed for them: that is what this test does on your device.",
        *_judgement(self_test),
        "A kernel that computes something else fails without the plan too. The test of an unplanned file comes by",
        "  modelplan verify model.tflite --against model.tflite --self-test FILE.cc",
        "",
        "Compile it with the TFLM and the kernels of the firmware, and call modelplan_self_test(): 0 is PASS, 1 FAIL.",
        "  MODELPLAN_SELF_TEST_MAIN         adds a main() that does so",
        "  MODELPLAN_SELF_TEST_MODEL=name   takes the array that the firmware has instead of the copy below",
        "  MODELPLAN_SELF_TEST_PLACE=...    an attribute for the arena, such as the section of its memory",
        "  MODELPLAN_SELF_TEST_ARENA_BYTES  another size of the arena",
    ]
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def _judgement(self_test: SelfTest) -> list[str]:
    """How outputs are compared."""
    inexact = next((expected for run in self_test.runs for expected in run if expected.means), None)
    if inexact is None and not self_test.written:
        return ["They must be bit-equal. Results of operators are not compared: the plan keeps parts of tensors."]
    if inexact is None:
        return [
            "They and the results of every operator of the main graph must be bit-equal: kernels for integers compute",
            "the same on every processor. In builds with TF_LITE_STRIP_ERROR_STRINGS operators are not seen.",
        ]
    return [
        "The model computes in floating point, where processors and compilers round differently: outputs may be off by",
        f"{inexact.tolerance:.3g} on average over {inexact.block} elements. Faults that change less are not seen.",
    ]


def _tables(self_test: SelfTest) -> Iterator[str]:
    """The expected outputs: arrays of means, then a row for each output of each run."""
    main = self_test.model.subgraphs[0]
    counts = [main.tensors[t].elements for t in main.outputs]
    rows = []
    for number, run in enumerate(self_test.runs):
        for i, expected in enumerate(run):
            if expected.means:
                yield f"constexpr float kMeans{number}_{i}[] = {{{', '.join(map(_float, expected.means))}}};\n"
            means = f"kMeans{number}_{i}" if expected.means else "nullptr"
            rows.append(
                f"{{{expected.crc:#010x}u, {means}, {counts[i]}, {expected.block}, {_float(expected.tolerance)}}}"
            )
    each = len(counts)
    yield from _written(self_test)
    lines = [", ".join(rows[at : at + each]) for at in range(0, len(rows), each)]
    table = "".join(f"    {{{line}}},\n" for line in lines)
    yield f"constexpr Expected kExpected[kRuns][kOutputs] = {{\n{table}}};\n"


def _written(self_test: SelfTest) -> Iterator[str]:
    """What operators write, in their order."""
    rows = [
        f"    {{{write.op}, {write.tensor}, {write.nbytes}, {{{', '.join(f'{crc:#010x}u' for crc in write.crcs)}}}}},\n"
        for write in self_test.written
    ]
    yield f"constexpr int kWrites = {len(rows)};\n"
    yield "constexpr Written kWritten[] = {\n" + ("".join(rows) or "    {},\n") + "};\n"


def _float(value: float) -> str:
    return f"{value:.9g}" + ("f" if set(f"{value:.9g}") & {".", "e"} else ".0f")
