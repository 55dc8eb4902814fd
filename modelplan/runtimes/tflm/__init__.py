"""TensorFlow Lite Micro: what it does with memory; beside it what its planner and its arena do, byte for byte."""

from functools import lru_cache

from modelplan.model import Graph, InPlace, KernelLibrary, Kind, Op, Requirement, Runtime, Sharing, Tensor
from modelplan.ops import facts
from modelplan.runtimes.tflm.kernels import (
    LIBRARIES,
    LIBRARY_GROUPS,
    Call,
    Operand,
    reference,
    scratch_sizes,
    shared_leads,
)

_SHARING = Sharing(
    proved={
        kind: InPlace(facts("tflite", kind).overwrite, frozenset(kernel.in_place))
        for kind, kernel in reference.OPERATORS.items()
        if kernel.in_place
    },
    front_to_back={
        kind: frozenset(kernel.front_to_back) for kind, kernel in reference.OPERATORS.items() if kernel.front_to_back
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
