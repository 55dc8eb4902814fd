"""TFLM's whole arena: the head that is planned, the tail by row, and the least arena that allocates and runs.

TFLM's allocations are performed one by one with the sizes of its structures on the target: what the interpreter
keeps at the end of the arena, what kernels keep and hold for a moment while they prepare, what the planner works
with, and the planned head. The least arena is the largest sum of both ends at any moment; for small models that is
while TFLM prepares, not when it runs.

Source: tflite-micro, micro_allocator.cc, single_arena_buffer_allocator.cc, micro_interpreter.cc,
micro_interpreter_graph.cc, recording_micro_allocator.cc; the kernels' part is in `kernels`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from math import prod

import numpy as np

from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.abi import ABIS, Abi, Struct, StructLayout, find_abis, layout
from modelplan.runtimes.tflm.arena_memory import ArenaMemory, each_alone
from modelplan.runtimes.tflm.file import FileModel, FileSubgraph, FileTensor, SameFile
from modelplan.runtimes.tflm.kernels import KernelSet, find_libraries, is_group, most_scratch, preparation
from modelplan.runtimes.tflm.kernels.preparation import (
    EVAL_TENSOR,
    KEEP,
    QUANTIZATION,
    SCRATCH,
    TEMPORARY,
    TENSOR,
    PreparationEvent,
)
from modelplan.runtimes.tflm.lut_weights import metadata_damage
from modelplan.runtimes.tflm.performing import Taken
from modelplan.runtimes.tflm.preparing import prepared_model
from modelplan.runtimes.tflm.refused_operators import AT_TENSOR, LONGEST_NAME, Refused, missing_kernel

__all__ = ["ABIS", "RELEASE", "VERSION", "Arena", "ArenaRow", "arena", "most_planned", "planned", "refusals"]

#: The release whose sources the tables follow, and the wheel whose figures `wheel` gives.
RELEASE = "TFLM of August 2026 (90b983c)"
VERSION = "0.dev20261023182759"

EVAL_TENSORS = "TfLiteEvalTensor data"
TENSORS = "Persistent TfLiteTensor data"
QUANTIZATIONS = "Persistent TfLiteTensor quantization data"
BUFFERS = "Persistent buffer data"
VARIABLES = "TfLiteTensor variable buffer data"
NODES = "NodeAndRegistration struct"
OPTIONS = "Builtin operator data"
HANDLES = "Scratch buffer handles"
OWN = "Interpreter's own"
COMPRESSED = "Persistent compression data"
MARGIN = "Margin for custom operators"
_ROWS = (EVAL_TENSORS, TENSORS, QUANTIZATIONS, BUFFERS, VARIABLES, NODES, OPTIONS, HANDLES, COMPRESSED, OWN, MARGIN)

_ALLOCATOR: Struct = ("pointer*2", "pointer*5", "pointer", "int")
#: The allocators of two arenas, where there are two.
_PERSISTENT: Struct = ("pointer*4",)
_NON_PERSISTENT: Struct = ("pointer*5", "pointer", "int", "bool")
_PLANNER: Struct = ("pointer", "int*2", "pointer*4", "int*2", "pointer", "bool")
_MICRO_ALLOCATOR: Struct = ("pointer", "pointer*4", "bool", "size", "pointer", "size")
_OPTIONS_ALLOCATOR: Struct = ("pointer*2",)
_RESOURCES: Struct = ("pointer", "int*2")
_RESOURCE: Struct = ("pointer*3", "size", "int8")
_NODE: Struct = (("pointer*6", "int"), "pointer")
_REQUEST: Struct = ("size", "int*2")
_PLANNED: Struct = ("size", "pointer", "int*2", "int32", "bool")

#: CompressionTensorData and LookupTableData, for each compressed tensor.
_COMPRESSED: tuple[Struct, Struct] = (("int8", "pointer"), ("pointer", "int8*2"))

#: Requests for which room is always kept.
_SPARE_REQUESTS = 12

#: Arenas that are remembered.
_REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class ArenaRow:
    """One part of the tail: TFLM's name for it, bytes used with alignment, allocations, and how far to trust it.

    `asked` are the bytes without alignment, TFLM's "requested": a structure of another size shows there at once, and in
    `used` only where it needs another multiple of the alignment.
    """

    name: str
    used: int
    count: int
    trust: str
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Arena:
    """Head and tail of the arena; `rows` add up to the tail.

    `least` is the smallest arena, a multiple of 16 bytes at an address that is one, that TFLM allocates and runs with;
    `planning` is what it needs until the plan stands. `front` is the most that lies in front at any moment: the arena
    for all that is not kept, where `MicroAllocator::Create` is given two. `kept` is what of the tail is each operator's
    own, in the order of subgraphs and files: node, options, what its kernel keeps, unaligned, on that of several
    ABIs where this is most. `refusals` say what keeps TFLM from running the model at all: the sums are then those of
    the operators up to where their kernels give up. `guessed` are the kinds of custom operators for which a margin
    stands in for sizes that nobody has stated.
    """

    head: int
    scratch: int
    planning: int
    least: int
    rows: tuple[ArenaRow, ...]
    refusals: tuple[Refused, ...]
    abi: str
    kernels: str
    front: int = 0
    kept: tuple[int, ...] = ()
    guessed: tuple[str, ...] = ()

    @property
    def tail(self) -> int:
        """Bytes that stay for the life of the interpreter."""
        return sum(row.used for row in self.rows)

    @property
    def total(self) -> int:
        """What TFLM will report as its arena use."""
        return self.head + self.tail

    @property
    def exact(self) -> bool:
        """Whether no part is estimated."""
        return all(row.trust == "exact" for row in self.rows)

    def size(self, margin: int = 0) -> int:
        """The number for `tensor_arena`, an array aligned to 16 bytes: the least arena and a margin, rounded up."""
        return planner.padded(self.least + margin)


def arena(model: FileModel, abi: int | str = "64", kernels: str = "reference", head: int | None = None) -> Arena:
    """What the model's arena holds on a target, with the offline plan that the file carries.

    `abi` is a name of `abi.ABIS`; `32` and `64` stand for several, as "all" does for kernel libraries. The largest of
    their arenas is given; a library that refuses the model counts only where all do. `head` takes the place of the head
    that TFLM's planner makes, where a planner of the firmware's own gives every address.

    Raises:
        RequestError: no such ABI or kernel library.
        ModelError: the offline plan in the file does not fit the model, or subgraphs call each other in a circle.
    """
    return largest_arena(each_arena(model, abi, kernels, head))


def each_arena(model: FileModel, abi: int | str, kernels: str, head: int | None = None) -> list[Arena]:
    """The arena with each of the builds that `arena` takes the largest of.

    Raises:
        RequestError: no such ABI or kernel library.
        ModelError: the offline plan in the file does not fit the model, or subgraphs call each other in a circle.
    """
    return [_remembered(SameFile(model), model.plan, _Build(*build), head) for build in builds(abi, kernels)]


@dataclass(frozen=True, slots=True, eq=False)
class _Build:
    """An ABI and a kernel library as a key: equal where they are the same objects."""

    abi: Abi
    library: KernelSet

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Build):
            return NotImplemented
        return self.abi == other.abi and self.library is other.library

    def __hash__(self) -> int:
        return hash((self.abi, id(self.library)))


@lru_cache(maxsize=_REMEMBERED)
def _remembered(file: SameFile, _plan: tuple[int, ...] | None, build: _Build, head: int | None) -> Arena:
    """The arena of a build, which questions about the same file ask for again; its plan is part of the key."""
    return Interpreter(file.model, build.abi, build.library).arena(head)


def largest_arena(arenas: Sequence[Arena]) -> Arena:
    """The arena of a model that is enough for several builds of TFLM, but for those that refuse it where others do not.

    What is refused is what all of them refuse.
    """
    counted = [candidate for candidate in arenas if not candidate.refusals] or arenas
    largest = max(counted, key=lambda candidate: candidate.least)
    front = max(candidate.front for candidate in counted)
    kept = tuple(map(max, zip(*(candidate.kept for candidate in counted), strict=True)))
    return replace(
        largest, front=front, kept=kept, refusals=_common_refusals([candidate.refusals for candidate in arenas])
    )


def builds(abi: int | str, kernels: str) -> Iterator[tuple[Abi, KernelSet]]:
    """Each kernel library with each ABI of those named that it is for; where none is for any, each with all of them."""
    abis, libraries = find_abis(abi), find_libraries(kernels)
    suited = [(target, library) for library in libraries for target in abis if target.name in library.abis]
    yield from suited or ((target, library) for library in libraries for target in abis)


def planned(
    model: FileModel, abi: int | str = "64", kernels: str = "reference"
) -> tuple[tuple[planner.Request, ...], list[int]]:
    """What TFLM's own planner is given for the model, in its order, and the offset that it gives each.

    Of several ABIs and libraries it is for those whose arena is the largest.

    Raises:
        RequestError: no such ABI or kernel library.
        ModelError: the offline plan in the file does not fit the model, or subgraphs call each other in a circle.
    """
    arenas = [Interpreter(model, *build) for build in builds(abi, kernels)]
    rows = max(arenas, key=lambda interpreter: interpreter.arena().least).planned
    return rows, planner.greedy_offsets(rows, planner.read_plan(model))


def most_planned(model: FileModel, abi: int | str, kernels: str) -> tuple[planner.Request, ...]:
    """What TFLM plans for the model at most: with several libraries each operator has scratch for every one.

    Raises:
        RequestError: no such ABI or kernel library.
        ModelError: subgraphs call each other in a circle.
    """
    each = [Interpreter(model, *build).planned for build in builds(abi, kernels)]
    if not is_group(kernels):
        return max(each, key=lambda rows: sum(row.size for row in rows))
    sizes = [_scratch_by_operator(rows) for rows in each]
    tensors = [row for row in each[0] if not row.scratch]
    scratch: list[planner.Request] = []
    for op in sorted(set().union(*sizes)):
        row = next(row for rows in each for row in rows if row.scratch and row.op == op)
        scratch += [row._replace(size=size) for size in most_scratch(by_operator.get(op, ()) for by_operator in sizes)]
    return (*tensors, *scratch)


def _scratch_by_operator(rows: Sequence[planner.Request]) -> dict[tuple[int, int], list[int]]:
    """The bytes of each operator's scratch, by (subgraph, operator)."""
    sizes: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        if row.scratch:
            sizes.setdefault(row.op, []).append(row.size)
    return sizes


def refusals(model: FileModel, abi: int | str = "32", kernels: str = "reference") -> tuple[Refused, ...]:
    """Why TFLM would not run the model: each operator that it refuses on all of the ABIs and with all libraries.

    Raises:
        RequestError: no such ABI or kernel library.
    """
    return _common_refusals([tuple(Interpreter(model, *build).refused()) for build in builds(abi, kernels)])


def _common_refusals(refusals_by_build: Sequence[tuple[Refused, ...]]) -> tuple[Refused, ...]:
    """The operators refused on all of these ABIs, each with the first reason."""
    labels = [{refused.label for refused in other} for other in refusals_by_build]
    return tuple(refusal for refusal in refusals_by_build[0] if all(refusal.label in other for other in labels))


class Interpreter:
    """TFLM's interpreter for one model, target and kernel library, as far as memory goes.

    `regions` counts the memories that the application gives for what is unpacked. A model with metadata of compressed
    weights needs a build with USE_TFLM_COMPRESSION: one without reads the indices as weights.
    """

    def __init__(self, model: FileModel, abi: Abi, library: KernelSet, regions: int = 0) -> None:
        self.model, self.library, self.regions = model, library, regions
        self.abi = replace(abi, compression=True) if model.compressed else abi
        self.prepared = prepared_model(model, library.name, later=abi.later)

    def arena(self, head: int | None = None) -> Arena:
        """Performs TFLM's allocations in its order."""
        memory = ArenaMemory(self.abi)
        take_allocator(memory)
        head, planning = self.allocate(memory, head)
        return Arena(
            head,
            self.scratch_bytes,
            planning,
            planner.padded(memory.need),
            tuple(rows_of(memory, self.estimated)),
            tuple(self.refused()),
            self.abi.name,
            self.library.name,
            planner.padded(memory.highest),
            tuple(self._kept_by_operators()),
            self.guessed,
        )

    def allocate(
        self, memory: ArenaMemory, head: int | None = None, reserved: int = 0, *, greedy: bool = True
    ) -> tuple[int, int]:
        """Takes what the interpreter takes from an allocator; returns its head, and the bytes until its plan stands.

        `reserved` is the head that the allocator already has for other models; `greedy` says that the planner is TFLM's
        own, which works in the arena.
        """
        rows, offsets = self.planned, planner.read_plan(self.model)
        if head is None:
            head = planner.head_bytes(rows, planner.greedy_offsets(rows, offsets))
        self._take_own(memory)
        self._take_kernels(memory)
        self._take_plan(memory, len(rows) if greedy else 0, offsets)
        planning = memory.need
        memory.resize(max(head, reserved))
        _take_interface(memory, self.model.subgraphs[0], self.abi)
        return head, planning

    @cached_property
    def planned(self) -> tuple[planner.Request, ...]:
        """What TFLM plans for the model, in its order."""
        sizes = {number: _nbytes(self.model.tensors[number], shape) for number, shape in self.prepared.shapes.items()}
        return planner.requests_with(self.model, self._scratch(), sizes)

    def _scratch(self) -> Iterator[tuple[int, int, int]]:
        """(subgraph, operator, bytes) of each request for scratch."""
        asked = [[event.bytes(self.abi) for event in taken.scratch] for taken in self.prepared.taken]
        asking = np.flatnonzero(np.array([bool(sizes) for sizes in asked], dtype=bool)[self.prepared.numbers])
        for operator in asking.tolist():
            for size in asked[self.prepared.numbers[operator]]:
                yield *self._place(operator), size

    def _place(self, operator: int) -> tuple[int, int]:
        """The subgraph of an operator that is numbered over all subgraphs, and its number there."""
        for number, subgraph in enumerate(self.model.subgraphs):
            if operator < len(subgraph.ops):
                return number, operator
            operator -= len(subgraph.ops)
        raise AssertionError(operator)

    @property
    def scratch_bytes(self) -> int:
        """The head that scratch alone would need."""
        rows = [row for row in self.planned if row.scratch]
        return planner.head_bytes(rows, planner.greedy_offsets(rows))

    @property
    def estimated(self) -> str:
        """How far to trust what is counted for operators that are not TFLM's."""
        if guessed := self.guessed:
            return f"estimated: ample for {', '.join(guessed)}, for which there are no sizes"
        stated = sorted({taken.kind for taken in self.prepared.taken if not taken.exact})
        return f"estimated: as you state it for {', '.join(stated)}"

    def refused(self) -> Iterator[Refused]:
        """What TFLM would not run, or what cannot be told here.

        A file that carries a plan was made for a TFLM that has kernels for its custom operators: these count with a
        margin.
        """
        if damage := metadata_damage(self.model):
            yield Refused("metadata", -1, "COMPRESSION_METADATA", f"of compressed weights, {damage}")
        for number, tensor in self.model.misread:
            yield Refused(AT_TENSOR, number, repr(tensor.name[:LONGEST_NAME]), tensor.misread)
        for operator, reason in self.prepared.refusals.items():
            subgraph, index = self._place(operator)
            where = f"subgraph {subgraph} op" if len(self.model.subgraphs) > 1 else "op"
            op = self.model.subgraphs[subgraph].ops[index]
            if operator not in self.prepared.unknown:
                yield Refused(where, index, op.kind, reason, op.custom)
            elif not self.carries_plan:
                yield Refused(where, index, op.kind, missing_kernel(op.kind), op.custom)

    @property
    def carries_plan(self) -> bool:
        """Whether the file says where TFLM is to put its tensors."""
        return planner.read_plan(self.model) is not None

    @property
    def guessed(self) -> tuple[str, ...]:
        """The kinds of operators for which a margin stands in for a kernel that nobody has stated."""
        if not self.prepared.unknown:
            return ()
        kinds = {self.model.subgraphs[s].ops[i].kind for s, i in map(self._place, self.prepared.unknown)}
        return tuple(sorted(kinds))

    def _take_own(self, memory: ArenaMemory) -> None:
        """The interpreter's objects and tables, before it looks at operators."""
        variables = len(self.prepared.variables.names)
        if variables:
            memory.keep(BUFFERS, layout(_RESOURCES, self.abi).size)
            memory.keep(BUFFERS, layout(_RESOURCE, self.abi).size * variables)
        if self.regions:
            memory.keep(BUFFERS, self.abi.pointer * self.regions)
        memory.keep_struct(OWN, _OPTIONS_ALLOCATOR)
        memory.resize(layout(_REQUEST, self.abi).size * _SPARE_REQUESTS)
        per_subgraph: Struct = ("pointer*3",) if self.abi.compression else ("pointer*2",)
        memory.keep_struct(OWN, per_subgraph, len(self.model.subgraphs))
        self._take_compressed(memory)
        for subgraph in self.model.subgraphs:
            memory.keep_struct(EVAL_TENSORS, EVAL_TENSOR, len(subgraph.tensors))
        for subgraph in self.model.subgraphs:
            memory.keep_struct(NODES, _NODE, len(subgraph.ops))

    def _take_compressed(self, memory: ArenaMemory) -> None:
        """The tables of compressed tensors, one of each subgraph that has any."""
        lists = self.model.luts.subgraphs if self.model.luts else ()
        for subgraph, luts in zip(self.model.subgraphs, lists, strict=False):
            for number in range(len(luts)):
                for struct in _COMPRESSED:
                    memory.keep_struct(COMPRESSED, struct)
                if not number:
                    memory.keep_struct(COMPRESSED, ("pointer",), len(subgraph.tensors))

    def _take_kernels(self, memory: ArenaMemory) -> None:
        """Parsed options of all operators, then what they keep from Init, then what happens in Prepare."""
        taken, numbers = self.prepared.taken, self.prepared.numbers.tolist()
        options = [layout(self._options(kernel), self.abi) for kernel in taken]
        memory.keep_all(OPTIONS, [options[number] for number in numbers if options[number].size])
        initial = [[StructLayout(size, planner.ALIGNMENT) for size in self._sizes(kernel.initial)] for kernel in taken]
        memory.keep_all(BUFFERS, [size for number in numbers for size in initial[number]])
        request = layout(_REQUEST, self.abi).size
        requests = np.array([len(kernel.scratch) for kernel in taken], dtype=np.int64)[self.prepared.numbers].cumsum()
        acts = [partial(self._prepare, kernel) for kernel in taken]
        if self.abi not in self.prepared.alone:
            self.prepared.alone[self.abi] = each_alone(acts, self.abi)
        alone = self.prepared.alone[self.abi]
        memory.perform(acts, alone, self.prepared.numbers, request * (requests + _SPARE_REQUESTS))

    def _options(self, taken: Taken) -> Struct:
        """The structure of an operator's parsed options."""
        more = dict(self.abi.options).get(taken.kind, ())
        return (*taken.options, *more) if taken.options else ()

    def _sizes(self, events: Iterable[PreparationEvent]) -> list[int]:
        return [event.bytes(self.abi) for event in events if event.happens(self.abi)]

    def _prepare(self, taken: Taken, memory: ArenaMemory) -> None:
        """What one operator takes in Prepare."""
        for event in taken.events:
            if event.sort == TEMPORARY:
                memory.hold(event.bytes(self.abi), layout(event.struct, self.abi).alignment)
            elif event.sort != SCRATCH and event.happens(self.abi):
                memory.keep(MARGIN if event.sort == preparation.MARGIN else BUFFERS, event.bytes(self.abi))

    def _kept_by_operators(self) -> list[int]:
        """For each operator the bytes of its node and its persistent buffers, without alignment."""
        own = [
            layout(_NODE, self.abi).size
            + layout(self._options(taken), self.abi).size
            + sum(self._sizes(taken.initial))
            + sum(self._sizes(event for event in taken.events if event.sort in (KEEP, preparation.MARGIN)))
            for taken in self.prepared.taken
        ]
        kept_by_operators: list[int] = np.array(own, dtype=np.int64)[self.prepared.numbers].tolist()
        return kept_by_operators

    def _take_plan(self, memory: ArenaMemory, buffers: int, offsets: tuple[int, ...] | None) -> None:
        """Handles of scratch, the planner's tables for so many buffers beside the whole tail, and variables."""
        scratch = self.prepared.requests
        if scratch:
            memory.keep_struct(HANDLES, ("pointer",), scratch)
        memory.hold(self.abi.pointer * len(self.model.subgraphs), self.abi.pointer)
        size, alignment = layout(_PLANNED, self.abi)
        memory.hold(size * (len(self.model.tensors) + scratch), alignment)
        for subgraph in self.model.subgraphs:
            for number, tensor in enumerate(subgraph.tensors):
                # TFLM looks the offset up by the number inside the subgraph, whichever subgraph it is.
                if tensor.variable and (offsets is None or offsets[number] == planner.ONLINE):
                    memory.keep(VARIABLES, tensor.nbytes)
        memory.plan(buffers)


def take_allocator(memory: ArenaMemory, *, greedy: bool = True, apart: bool = False) -> None:
    """The allocator's own objects, once for all models on it; `greedy`: with TFLM's own planner among them.

    `apart`: what is kept has an arena of its own.
    """
    recording = memory.abi.recording
    if apart:
        memory.keep_struct(OWN, _PERSISTENT)
        memory.keep_struct(OWN, _NON_PERSISTENT)
    else:
        memory.keep_struct(OWN, (*_ALLOCATOR, "size*4") if recording else _ALLOCATOR)
    if greedy:
        memory.keep_struct(OWN, _PLANNER)
    records: Struct = ("pointer", f"size*{3 * (8 if memory.abi.compression else 7)}")
    memory.keep_struct(OWN, (_MICRO_ALLOCATOR, *records) if recording else _MICRO_ALLOCATOR)


def rows_of(memory: ArenaMemory, estimated: str) -> Iterator[ArenaRow]:
    """The tail by row; `estimated` says how far to trust a margin."""
    for name in _ROWS:
        if name in memory.used:
            trust = estimated if name == MARGIN else "exact"
            yield ArenaRow(name, memory.used[name], memory.counts[name], trust, memory.asked[name])


def _take_interface(memory: ArenaMemory, subgraph: FileSubgraph, abi: Abi) -> None:
    """The interpreter's tensors for inputs and outputs, with their quantisation."""
    for interface in (subgraph.inputs, subgraph.outputs):
        memory.keep(BUFFERS, abi.pointer * len(interface))
        for t in interface:
            memory.keep_struct(TENSORS, TENSOR)
            if scales := subgraph.tensors[t].quantization.scales:
                memory.keep_struct(QUANTIZATIONS, QUANTIZATION)
                memory.keep(QUANTIZATIONS, 4 * (1 + scales), 4)


def _nbytes(tensor: FileTensor, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor with another shape."""
    if not tensor.elements:
        raise ModelError(f"tensor {tensor.name!r} of shape {list(tensor.shape)} gets shape {list(shape)}")
    return tensor.nbytes // tensor.elements * prod(shape)
