"""What each runtime does with memory, one row of facts for each."""

from __future__ import annotations

from dataclasses import replace

from modelplan.errors import ModelError, RequestError
from modelplan.runtimes.tflm.kernels import Call, Operand, scratch_sizes
from modelplan.types import Graph, Kind, Op, Runtime, Tensor

RUNTIMES: dict[str, Runtime] = {
    r.name: r
    for r in (
        Runtime(
            "tflm",
            alignment=16,
            pad="tensor",
            state="separate",
            allocator="tflm-greedy",
            source="tflite-micro, micro_allocator.cc (MicroArenaBufferAlignment) and micro_allocation_info.cc;"
            " memory_helpers.cc TfLiteTypeSizeOf: 4-bit values are unpacked",
            scratch=True,
            unpacked=("int4",),
        ),
        Runtime(
            "litert",
            alignment=64,
            pad="arena",
            state="separate",
            allocator="tflite-arena",
            source="LiteRT, tflite/util.h kDefaultTensorAlignment, arena_planner.cc: inputs are never freed",
            inputs="live",
        ),
        Runtime(
            "ort",
            alignment=256,
            pad="tensor",
            state="separate",
            allocator="onnxruntime",
            source="onnxruntime, framework/allocator.h kAllocAlignment, execution_frame.cc; inputs are the caller's,"
            " outputs are allocated apart from the plan (allocation_planner.cc kAllocateOutput)",
            inputs="live",
            outputs="apart",
        ),
        Runtime(
            "executorch",
            alignment=16,
            pad="tensor",
            state="arena",
            allocator="executorch-greedy",
            source="ExecuTorch, exir/tensor.py ALIGNMENT, exir/memory_planning.py",
        ),
        Runtime(
            "generic",
            alignment=16,
            pad="tensor",
            state="arena",
            allocator="tflite-greedy-by-size",
            source="no runtime in particular: 16-byte alignment, every tensor padded",
        ),
    )
}

_BY_FORMAT = {"tflite": "tflm", "onnx": "ort"}


def as_stored(graph: Graph, runtime: Runtime) -> Graph:
    """The graph with the data types that its values have in the runtime's memory; constants stay as in the file."""
    wide = {t for t in graph.tensors if t.dtype in runtime.unpacked and t.kind is not Kind.CONSTANT}
    if not wide:
        return graph
    return replace(graph, tensors=tuple(replace(t, dtype="int8") if t in wide else t for t in graph.tensors))


def kernel_scratch(graph: Graph, op: Op, runtime: Runtime) -> tuple[int, ...]:
    """Bytes of each working buffer that the kernel of `op` asks the runtime's arena for.

    Raises:
        RequestError: no such kernel library.
        ModelError: the operator lacks an operand that its kernel needs.
    """
    if not runtime.scratch or graph.format != "tflite":
        return ()

    def operands(indices: tuple[int, ...]) -> tuple[Operand | None, ...]:
        return tuple(_operand(graph.tensors[t]) if t >= 0 else None for t in indices)

    options = {name: value for name, value in op.attributes if isinstance(value, int | str)}
    call = Call(op.kind.removeprefix("CUSTOM:"), operands(op.inputs), operands(op.outputs), options)
    try:
        return scratch_sizes(call, runtime.kernels)
    except (ValueError, IndexError, KeyError) as problem:
        raise ModelError(f"{graph.name}: {op.kind}: {problem}") from None


def _operand(tensor: Tensor) -> Operand:
    return Operand(tensor.dtype, tensor.shape, tensor.kind is Kind.CONSTANT)


def runtime(name: str | None, file_format: str) -> Runtime:
    """The row called `name`, or the usual one for a file format.

    Raises:
        RequestError: there is no such row; the message lists the names.
    """
    name = name or _BY_FORMAT[file_format]
    if name not in RUNTIMES:
        raise RequestError(f"no runtime {name!r}; there are: {', '.join(RUNTIMES)}")
    return RUNTIMES[name]
