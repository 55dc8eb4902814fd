"""A C++ header for several models in one arena of TFLM: a planner that gives every buffer of each model its place."""

import hashlib
import re
from collections.abc import Iterator

from modelplan.answers.shared_plan import ModelPart, SharedPlan, TflmArenas
from modelplan.outputs.firmware.kernels_guard import guard_of
from modelplan.outputs.firmware.tflm_sources import model_kinds
from modelplan.outputs.report import printable
from modelplan.primitives.errors import RequestError
from modelplan.runtimes.tflm.abi import ABIS
from modelplan.runtimes.tflm.kernels.own_kernels import library_of
from modelplan.runtimes.tflm.planner import ALIGNMENT, padded

_GUIDE = """\
//
//   alignas(modelplan::kSharedArenaAlignment) static uint8_t arena[modelplan::kSharedArenaBytes];
//   static modelplan::SharedMemoryPlanner planner;
//   auto* allocator = tflite::MicroAllocator::Create(arena, sizeof(arena), &planner);
//
// Then, for each model in the order of kSharedModels, a MicroInterpreter on this allocator, and its AllocateTensors,
// once. All of them before the first input is written: allocating writes over the front of the arena.
"""
_BEGIN = """\
#ifndef MODELPLAN_SHARED_MEMORY_H_
#define MODELPLAN_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/compatibility.h"
#include "tensorflow/lite/micro/memory_planner/micro_memory_planner.h"
#include "tensorflow/lite/micro/micro_log.h"

namespace modelplan {

// One buffer: the bytes that TFLM asks for, and where they are.
struct SharedBuffer {
  std::int32_t size;
  std::int32_t offset;
};

struct SharedModel {
  const char* name;
  const char* sha256;
  const SharedBuffer* buffers;
  int count;
};
"""
_PLANNER = """\
// Gives every buffer its place, scratch too; refuses a model that is not the one whose turn it is to be allocated.
class SharedMemoryPlanner : public tflite::MicroMemoryPlanner {
 public:
  TfLiteStatus Init(unsigned char*, int) override {
@CHECK@    ++model_;
    count_ = 0;
    return model_ < kModels ? kTfLiteOk : kTfLiteError;
  }
  TfLiteStatus AddBuffer(int size, int, int) override {
    if (model_ < 0 || model_ >= kModels || count_ >= kSharedModels[model_].count ||
        kSharedModels[model_].buffers[count_].size != size) {
      MicroPrintf("modelplan: buffer %d of %d bytes is not in the plan", count_, size);
      return kTfLiteError;
    }
    ++count_;
    return kTfLiteOk;
  }
  // An offset that the model file carries: the plan here is newer.
  TfLiteStatus AddBuffer(int size, int first, int last, int) override { return AddBuffer(size, first, last); }
  std::size_t GetMaximumMemorySize() override { return kSharedHeadBytes; }
  int GetBufferCount() override { return count_; }
  TfLiteStatus GetOffsetForBuffer(int index, int* offset) override {
    if (index < 0 || index >= count_ || count_ != kSharedModels[model_].count) {
      MicroPrintf("modelplan: %d buffers, not as many as in the plan", count_);
      return kTfLiteError;
    }
    *offset = kSharedModels[model_].buffers[index].offset;
    return kTfLiteOk;
  }
  bool preserves_all_tensors() const override { return false; }

 private:
  static constexpr int kModels = static_cast<int>(sizeof(kSharedModels) / sizeof(kSharedModels[0]));
  int model_ = -1;
  int count_ = 0;

  TF_LITE_REMOVE_VIRTUAL_DELETE
};

}  // namespace modelplan

#endif  // MODELPLAN_SHARED_MEMORY_H_
"""


def shared_header(shared_plan: SharedPlan, arenas: TflmArenas) -> str:
    """The size of the arena, the models as they are to be allocated, and the planner for MicroAllocator::Create.

    Raises:
        RequestError: the plan is for no one kernel library.
    """
    if arenas.libraries:
        raise RequestError("--header pins scratch, which differs by library; name the kernel library by --kernels")
    words = (re.sub("[^0-9A-Za-z]", "_", part.name) for part in shared_plan.parts)
    names = [f"{number}_{word}" for number, word in enumerate(words)]  # no two equal
    models = "".join(_entry(part, name) for part, name in zip(shared_plan.parts, names, strict=True))
    tables = "\n".join(_table(shared_plan, number, name) for number, name in enumerate(names))
    pointer = ABIS[arenas.pinned.abi].pointer
    kinds = set().union(*(model_kinds(part.file) for part in shared_plan.parts if part.file))
    guard = guard_of(arenas.pinned.kernels, kinds)
    planner = _PLANNER.replace("@CHECK@", guard.check("return kTfLiteError;"))
    library = library_of(arenas.pinned.kernels)
    return f"""\
// Made by modelplan for {len(names)} models in one arena; ABI {arenas.asked_abi}, {library} kernels.
{_GUIDE}{_promises(shared_plan)}{_BEGIN}{guard.macros()}{guard.symbols()}
// Head {arenas.pinned.head} bytes, tail {arenas.pinned.tail} bytes.
inline constexpr std::size_t kSharedArenaBytes = {arenas.pinned.least};
inline constexpr std::size_t kSharedArenaAlignment = {ALIGNMENT};
inline constexpr std::size_t kSharedHeadBytes = {padded(shared_plan.height)};

static_assert(sizeof(void*) == {pointer}, "sized for addresses of {pointer} bytes");

{tables}
inline constexpr SharedModel kSharedModels[] = {{
{models}}};

{planner}"""


def _comment(text: str) -> str:
    """A name as part of a comment or text: it must neither end the line nor the text."""
    return printable(text).replace("\\", "/").replace('"', "'").replace("*/", "* /")


def _promises(shared_plan: SharedPlan) -> str:
    """What the plan takes for granted, in lines of comment."""
    relation = shared_plan.relation
    names = [_comment(name) for name in relation.names]
    pairs = [f"{names[a]} and {names[b]}" for a, b in sorted(relation.turns)]
    lines = [f"Never active at the same time: {pair}." for pair in pairs]
    for pipe in relation.pipes:
        a, b = pipe.source, pipe.target
        out, given = (_comment(shared_plan.parts[p.model].graph.tensors[p.tensor].name) for p in (a, b))
        lines.append(f"Output {out} of {names[a.model]} is input {given} of {names[b.model]}: do not copy it.")
    for unit in relation.units:
        if len(unit) > 1:
            lines.append(f"In each round: {', then '.join(names[m] for m in unit)}.")
            lines.append("Inputs that no model hands on are written when the models before have run.")
    return "".join(f"// {line}\n" for line in lines)


def _entry(part: ModelPart, name: str) -> str:
    assert part.file is not None
    digest = hashlib.sha256(part.file.data).hexdigest()
    return f'    {{"{_comment(part.name)}", "{digest}",\n     kBuffers{name}, {len(part.rows)}}},\n'


def _table(shared_plan: SharedPlan, number: int, name: str) -> str:
    """The buffers of one model."""
    lines = "".join(_lines(shared_plan, number)) or "    {0, 0},\n"
    return f"inline constexpr SharedBuffer kBuffers{name}[] = {{\n{lines}}};\n"


def _lines(shared_plan: SharedPlan, number: int) -> Iterator[str]:
    part = shared_plan.parts[number]
    assert part.file is not None
    for row, place in zip(part.rows, shared_plan.places_of(number), strict=True):
        label = f"scratch of op {row.op[1]}" if row.scratch else part.file.tensors[row.tensor].name
        yield f"    {{{row.size}, {place}}},  // {_comment(label)}\n"
