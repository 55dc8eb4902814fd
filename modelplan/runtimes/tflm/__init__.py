"""TensorFlow Lite Micro: what it does with memory; beside it what its planner and its arena do, byte for byte."""

from __future__ import annotations

from functools import lru_cache

from modelplan.model import Graph, InPlace, KernelLibrary, Kind, Op, Requirement, Runtime, Sharing, Tensor
from modelplan.runtimes.tflm.kernels import LIBRARIES, LIBRARY_GROUPS, Call, Operand, scratch_sizes, shared_leads


def _in_place(kinds: str, dtypes: str, operands: tuple[int, ...] = (0,)) -> dict[str, InPlace]:
    return dict.fromkeys(kinds.split(), InPlace(operands, frozenset(dtypes.split())))


_FRONT_TO_BACK = """
CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED MAX_POOL_2D AVERAGE_POOL_2D CONCATENATION PAD PADV2 SLICE
"""

_SHARING = Sharing(
    proved={
        **_in_place("RELU RELU6 HARD_SWISH ABS RSQRT ELU L2_NORMALIZATION", "float32 int8"),
        **_in_place("LOGISTIC TANH LEAKY_RELU SOFTMAX", "float32 int16 int8"),
        **_in_place("PRELU", "float32 int8"),
        **_in_place("NEG EXP SQRT SQUARE LOG SIN COS FLOOR CEIL ROUND LOG_SOFTMAX CUMSUM", "float32"),
        **_in_place("ADD SUB MUL", "float32 int16 int8", (0, 1)),
        **_in_place("MAXIMUM MINIMUM", "float32 int8", (0, 1)),
        **_in_place("DIV FLOOR_DIV FLOOR_MOD SQUARED_DIFFERENCE", "float32", (0, 1)),
        **_in_place("LOGICAL_AND LOGICAL_OR", "bool", (0, 1)),
        **_in_place("LOGICAL_NOT", "bool"),
        **_in_place("EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL", "int8", (0, 1)),
    },
    front_to_back={
        **dict.fromkeys(_FRONT_TO_BACK.split(), frozenset({"float32", "int16", "int8"})),
        "TRANSPOSE_CONV": frozenset({"int16", "int8"}),
        "QUANTIZE": frozenset({"float32", "int32", "int16", "int8", "uint8"}),
        "DEQUANTIZE": frozenset({"int8"}),
    },
    source="tflite-micro reference kernels, each executed through an offline plan: tests/e2e/test_in_place.py",
)


def _scratch(graph: Graph, op: Op, library: str) -> tuple[int, ...]:
    """Bytes of each working buffer that the kernel of `op` asks the arena for."""
    if graph.format != "tflite":
        return ()
    inputs, outputs = (tuple(graph.tensors[t] if t >= 0 else None for t in ts) for ts in (op.inputs, op.outputs))
    operands = (tuple(_operand(tensor) if tensor else None for tensor in side) for side in (inputs, outputs))
    options = tuple((name, value) for name, value in op.attributes if isinstance(value, int | str))
    return _sizes(op.kind, options, *operands, library)


@lru_cache(maxsize=4096)
def _sizes(
    kind: str,
    options: tuple[tuple[str, int | str], ...],
    inputs: tuple[Operand | None, ...],
    outputs: tuple[Operand | None, ...],
    library: str,
) -> tuple[int, ...]:
    """The same for all operators alike: searches over networks ask for many that are."""
    return scratch_sizes(Call(kind.removeprefix("CUSTOM:"), inputs, outputs, dict(options)), library)


def _operand(tensor: Tensor) -> Operand:
    return Operand(tensor.dtype, tensor.shape, tensor.kind is Kind.CONSTANT, compressed=tensor.compressed)


def _required(content: bytes, name: str, abi: str, library: str) -> Requirement:
    """The arena that must be declared for a .tflite file."""
    from modelplan.runtimes.tflm.declaration import required_arena  # here, so that a table's problem does not wait

    return required_arena(content, name, abi, library)


def _kept(content: bytes, name: str, abi: str, library: str) -> tuple[int, ...]:
    """The bytes that TFLM keeps for each operator of a .tflite file."""
    from modelplan.runtimes.tflm.declaration import kept_by_operator  # here for the same reason

    return kept_by_operator(content, name, abi, library)


TFLM = Runtime(
    "tflm",
    alignment=16,
    pad="tensor",
    state="separate",
    allocator="tflm-greedy",
    source="tflite-micro, micro_allocator.cc (MicroArenaBufferAlignment) and micro_allocation_info.cc;"
    " memory_helpers.cc TfLiteTypeSizeOf: 4-bit values are unpacked",
    scratch=_scratch,
    unpacked=("int4",),
    sharing=_SHARING,
    libraries=(
        *(
            KernelLibrary(
                name,
                f"what is enough and right with each of {', '.join(libraries)}",
                sequential=shared is not None,
                leads=shared or {},
                aligned=frozenset[str]().union(*(LIBRARIES[library].aligned for library in libraries)),
            )
            for name, libraries in LIBRARY_GROUPS.items()
            for shared in [shared_leads([LIBRARIES[library] for library in libraries])]
        ),
        *(
            KernelLibrary(
                k.name,
                f"{k.note} ({k.release})",
                sequential=k.leads is not None,
                plain_loops=k.plain,
                leads=k.leads or {},
                aligned=k.aligned,
            )
            for k in LIBRARIES.values()
        ),
    ),
    default_for="tflite",
    requires=_required,
    keeps=_kept,
    offline_plans=True,
    runs=("tflite",),
    own_kernels=True,
)
