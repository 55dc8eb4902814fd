"""C++ for firmware: the arena's size and operators, a BufferPlan that pins every buffer, and the model as an array."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from modelplan.outputs.firmware.kernels_guard import KernelsGuard, guard_of
from modelplan.outputs.report import printable
from modelplan.runtimes.tflm.abi import ABIS
from modelplan.runtimes.tflm.arena import Arena
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.kernels import ALL
from modelplan.runtimes.tflm.kernels.own_kernels import library_of
from modelplan.runtimes.tflm.metadata import INTERFACE, read_interface
from modelplan.runtimes.tflm.planner import ALIGNMENT, Request

#: Methods of MicroMutableOpResolver whose names do not follow from the operator's.
_METHODS = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "AddUnidirectionalSequenceLSTM",
    "CUMSUM": "AddCumSum",
    "ethos-u": "AddEthosU",
    "TFLM_DECODE": "AddDecode",
    "TFLite_Detection_PostProcess": "AddDetectionPostprocess",
}


def arena_header(
    model: FileModel,
    parts: Arena,
    kernels: str,
    added: Sequence[str] = (),
    namespace: str = "modelplan",
    declared: str = "",
    abi: str = "",
) -> str:
    """Size and alignment of the arena, the model's hash, and the operators its resolver needs.

    Where the arena is for one kernel library, a program with another one does not build, or `AddOps` returns an error:
    see `kernels_guard.py`. `added` are operators
    that a rewrite added to the model; a comment names them. `declared` are more lines of the namespace.
    `abi` is the one that was asked for, which may stand for several.
    """
    size, digest = parts.size(), hashlib.sha256(model.data).hexdigest()
    pointer, include_guard = ABIS[parts.abi].pointer, f"{namespace.upper()}_ARENA_H_"
    guard = guard_of(kernels, model_kinds(model))
    built = "enough for all kernel libraries" if library_of(kernels) == ALL else f"{library_of(kernels)} kernels"
    return f"""\
// Made by modelplan for a model of {len(model.data)} bytes; ABI {abi or parts.abi}, {built}.
#ifndef {include_guard}
#define {include_guard}
{guard.macros()}
#include <cstddef>

#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"

namespace {namespace} {{
{declared}{_converted(model)}
// Head {parts.head} bytes, tail {parts.tail} bytes; {parts.planning} bytes until the plan stands.
inline constexpr std::size_t kTensorArenaBytes = {size};
inline constexpr std::size_t kTensorArenaAlignment = {ALIGNMENT};
inline constexpr char kModelSha256[] = "{digest}";

static_assert(kTensorArenaBytes % kTensorArenaAlignment == 0, "the arena ends on its alignment");
static_assert(sizeof(void*) == {pointer}, "sized for addresses of {pointer} bytes");

{guard.symbols()}{_resolver(model, added, guard)}
}}  // namespace {namespace}

#endif  // {include_guard}
"""


def _resolver(model: FileModel, added: Sequence[str], guard: KernelsGuard) -> str:
    """The type of a resolver for the model's operators, and the function that fills it."""
    resolver, own = resolver_methods(model)
    custom = own_operators(own)
    custom += f"; the rewrite added {', '.join(added)}" if added else ""
    if "WHILE" in added:
        custom += ".\n// Call MicroInterpreter::Reset before the inputs are set, never between them and Invoke"
    return f"""\
// Operators of the model{custom}.
using OpResolver = tflite::MicroMutableOpResolver<{max(len(resolver) + len(own), 1)}>;

inline TfLiteStatus AddOps(OpResolver& resolver) {{
{guard.check("return kTfLiteError;")}{resolver_calls(resolver)}  return kTfLiteOk;
}}
"""


def _converted(model: FileModel) -> str:
    """For each input and output that the program converts its scale and zero point."""
    lines: list[str] = []
    if INTERFACE.encode() not in model.data:
        return ""
    for row in read_interface(model.data):
        name = f"k{row.side.capitalize()}{row.position}"
        into = f"round(value / {name}Scale) + {name}ZeroPoint, half away from zero and clamped"
        back = f"(code - {name}ZeroPoint) * {name}Scale"
        twin = "128 less" if row.after == "int8" else "128 more"
        how = (into if row.side == "input" else back) if row.before == "float32" else f"codes {twin} than those"
        lines += [
            f"// {row.side} {row.position} {comment(row.name)} is {row.after} where the model has {row.before}: {how}",
            f"inline constexpr float {name}Scale = {row.scale:.9g}f;",
            f"inline constexpr int {name}ZeroPoint = {row.zero_point};",
        ]
    return "\n".join(["", *lines]) + "\n" if lines else ""


def resolver_calls(methods: Sequence[str]) -> str:
    """Statements that register the operators, each by its method, with `resolver`."""
    lines = (f"  if (resolver.{method}() != kTfLiteOk) return kTfLiteError;\n" for method in methods)
    return "".join(lines) or "  (void)resolver;\n"


def model_kinds(model: FileModel) -> set[str]:
    """The operators of a model, without custom ones."""
    return {op.kind for subgraph in model.subgraphs for op in subgraph.ops if not op.custom}


def resolver_methods(model: FileModel) -> tuple[list[str], list[str]]:
    """Methods to call, and the names of the custom operators that the application registers itself by AddCustom."""
    ops = {op.kind: op.custom for subgraph in model.subgraphs for op in subgraph.ops}
    known = [_method(kind) for kind, custom in ops.items() if not custom or kind in _METHODS]
    own = sorted(comment(kind) for kind, custom in ops.items() if custom and kind not in _METHODS)
    return sorted(known), own


def own_operators(names: Sequence[str]) -> str:
    """A remark on the custom operators that the application registers itself; empty without any."""
    return f"; add these custom ones yourself: {', '.join(names)}" if names else ""


def comment(text: str) -> str:
    """A name out of a file as part of a comment: it must neither end the line nor continue it."""
    return printable(text).replace("\\", "/")


def _method(kind: str) -> str:
    if kind in _METHODS:
        return _METHODS[kind]
    words = "".join(word.capitalize() for word in kind.split("_"))
    return "Add" + re.sub(r"(\d)d(?![a-z])", r"\1D", words)


def shim_header(model: FileModel, rows: Sequence[Request], places: Sequence[int], head: int) -> str:
    """A BufferPlan for NonPersistentMemoryPlannerShim: one offset for each buffer in TFLM's order, scratch last."""
    lines = "".join(
        f"        {at},  // {_label(model, row)}\n" for row, at in zip(rows, places, strict=True)
    )  # fmt: skip
    return f"""\
// Made by modelplan: every buffer of the non-persistent arena at a fixed place, {head} bytes in all.
// Give tflite::NonPersistentMemoryPlannerShim(modelplan::buffer_plan()) to tflite::MicroAllocator::Create, for the
// model that was planned, without other offline plan, and with the same kernels.
#ifndef MODELPLAN_BUFFER_PLAN_H_
#define MODELPLAN_BUFFER_PLAN_H_

#include <cstdint>

#include "tensorflow/lite/micro/memory_planner/memory_plan_struct.h"

namespace modelplan {{

// The layout of tflite::BufferPlan: a count, then that many offsets.
struct FixedBufferPlan {{
  std::int32_t buffer_count;
  std::int32_t offsets[{max(len(rows), 1)}];
}};

inline constexpr FixedBufferPlan modelplan_buffer_plan = {{
    {len(rows)},
    {{
{lines}    }}}};

static_assert(sizeof(tflite::BufferDescriptor) == sizeof(std::int32_t), "one offset for each buffer");
static_assert(alignof(tflite::BufferPlan) == alignof(FixedBufferPlan), "BufferPlan is a count and offsets");

inline const tflite::BufferPlan* buffer_plan() {{
  return reinterpret_cast<const tflite::BufferPlan*>(&modelplan_buffer_plan);
}}

}}  // namespace modelplan

#endif  // MODELPLAN_BUFFER_PLAN_H_
"""


def _label(model: FileModel, row: Request) -> str:
    if row.scratch:
        return f"scratch of op {row.op[1]} in subgraph {row.op[0]}"
    return f"tensor {row.tensor} {comment(model.tensors[row.tensor].name)}"


_BYTES_OF_A_LINE = 16
#: Words that are no name of a namespace.
_RESERVED = frozenset(("main", "model", "std", "tflite", "int", "float", "double", "new", "default", "class", "auto"))


def namespace_of(path: str) -> str:
    """The C++ namespace for the file `path`: its stem with every other character replaced.

    >>> namespace_of("out/person-detect.cc"), namespace_of("8bit.cc"), namespace_of("model.cc")
    ('person_detect', 'model_8bit', 'model_model')
    """
    name = re.sub(r"\W", "_", Path(path).stem, flags=re.ASCII).strip("_").lower() or "model"
    return name if not name[0].isdigit() and name not in _RESERVED else f"model_{name}"


def model_header(
    path: str, model: FileModel, parts: Arena, kernels: str, added: Sequence[str] = (), abi: str = ""
) -> str:
    """The header beside the source `path`: the arena, the operators, and the array's declaration."""
    declared = """
// The model; it may stay in flash.
extern const unsigned char kModel[];
extern const std::size_t kModelBytes;
"""
    return arena_header(model, parts, kernels, added, namespace_of(path), declared, abi)


def model_source(path: str, model: FileModel) -> str:
    """The source `path`, which holds the bytes of the model; its header is the file of the same name with .h."""
    data, name = model.data, namespace_of(path)
    lines = (data[at : at + _BYTES_OF_A_LINE] for at in range(0, len(data), _BYTES_OF_A_LINE))
    numbers = "\n".join("    " + " ".join(f"0x{byte:02x}," for byte in line) for line in lines)
    return f"""\
// Made by modelplan: {comment(model.name)}, {len(data)} bytes.
#include "{Path(path).with_suffix(".h").name}"

namespace {name} {{

alignas({ALIGNMENT}) const unsigned char kModel[] = {{
{numbers}
}};
const std::size_t kModelBytes = sizeof(kModel);

}}  // namespace {name}
"""
