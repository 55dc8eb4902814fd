"""What a runtime does with memory, as facts; what a model file needs on one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal

from modelplan.model.graph import Graph, Op
from modelplan.model.session_need import SessionMemory
from modelplan.primitives.errors import did_you_mean
from modelplan.primitives.lazy_records import dataclass

Padding = Literal["tensor", "arena"]


#: Bytes of each working buffer that the kernel of an operator asks for: graph, operator, kernel library.
ScratchSizes = Callable[[Graph, Op, str], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class InPlace:
    """Kernels that may write output 0 over one of `operands`, by number, for `dtypes` (none listed: every type)."""

    operands: tuple[int, ...]
    dtypes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which tensors a runtime lets share memory, by operator kind.

    What the runtime does by itself, mode `runtime`: `views` (the output keeps the bytes of the input) and `overwrites`
    (the output takes the bytes of one of these operands). With `at_graph_ends` graph inputs and outputs take part, with
    `sole_reader` only operands that one operator reads, with `same_shape` only tensors of equal shape, and from
    `least_bytes` up. A runtime with `overwrites` is planned in mode `safe` unless the caller names a mode, one without
    in mode `views`.

    What a plan may ask of it in mode `safe`, because its kernels were executed so with equal results: `proved` is the
    output over an operand; `front_to_back`, by data types of the operand, is the output running into operand 0, or
    into any operand of a join. Neither of these two is a part of the other; what stands in `overwrites` alone is not
    overwritten in mode `safe`.
    """

    views: frozenset[str] = frozenset()
    overwrites: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    at_graph_ends: bool = False
    sole_reader: bool = False
    same_shape: bool = False
    least_bytes: int = 0
    proved: Mapping[str, InPlace] = field(default_factory=dict)
    front_to_back: Mapping[str, frozenset[str]] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the memory that a model needs: bytes, allocations (0: not counted), how far to trust the figure."""

    name: str
    nbytes: int
    count: int = 0
    trust: str = "exact"


@dataclass(frozen=True, slots=True)
class LibraryNeed:
    """What a model file needs with one kernel library, in bytes; `explains` says which kernels these are.

    `refusals` as in `Requirement`.
    """

    library: str
    explains: str
    arena: int
    head: int
    tail: int
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a runtime needs to run an unmodified model file, in bytes.

    `arena` is the memory that there must be, the sum of `parts`; `head` is the planned part of it: tensors and scratch.
    `basis` says in one line for which target and by which sources. `macro` names the constant that declares the arena
    in firmware; it is empty where the runtime takes its memory by itself. `refusals` name the operators that the
    runtime would not run, with the reasons; the figures of a refused model count for nothing. `remedies` say how to get
    a model that it runs.

    `session` has the figures of a runtime whose sessions allocate by themselves. `measured`: the arena is what the
    runtime was seen to take, of which it plans `head` bytes.
    `estimate` says what of the arena rests on the user's word or on a guess, empty where all of it is known; `guessed`
    are the operators of the second sort, with which no verdict can be given.

    `kernels` is the kernel library that needs so much. Where no library was named, `libraries` say what each needs: the
    arena is enough for all that run the model. `remarks` are what else decides how much memory there must be.
    """

    arena: int
    head: int
    parts: tuple[Part, ...]
    basis: str
    macro: str = ""
    refusals: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    kernels: str = ""
    libraries: tuple[LibraryNeed, ...] = ()
    remarks: tuple[str, ...] = ()
    session: SessionMemory | None = None
    estimate: str = ""
    guessed: tuple[str, ...] = ()
    measured: bool = False

    @property
    def kept(self) -> int:
        """Bytes that the runtime takes of the same memory beside the planned part; 0 of a model that it refuses."""
        return self.arena - self.head if self.macro and not self.refusals else 0

    def fits(self, budget: int) -> bool:
        """Whether the runtime is known to run the model in `budget` bytes; one that it refuses fits nowhere."""
        return not self.refusals and not self.guessed and self.arena <= budget

    def libraries_that_fit(self, budget: int) -> tuple[str, ...]:
        """The names of the kernel libraries with which `budget` bytes are enough, where none was named."""
        return tuple(need.library for need in self.libraries if not need.refusals and need.arena <= budget)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A file that modelplan makes of a model: what changes, the commands that write it, what it needs, its bytes.

    Without a requirement there is no such file, and `refusal` says why; or, with an empty `refusal`, nothing was made
    because it cannot need less than the unmodified model.
    """

    change: str
    commands: tuple[str, ...]
    requirement: Requirement | None
    refusal: str = ""
    file_bytes: int = 0


#: What a model file needs on a runtime: content of the file, its name, the ABI and the kernel library by name.
Requires = Callable[[bytes, str, str, str], Requirement]
#: What a runtime keeps for each operator of a model file besides what it plans, in bytes; the same arguments.
Keeps = Callable[[bytes, str, str, str], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class KernelLibrary:
    """One library of kernels that a runtime can be built with; `explains` says in a line which kernels these are.

    `sequential`: a kernel finishes one element of its output after the other, front to back, so that the output may
    run into an operand; with `plain_loops` convolutions and matrix products do so too. `leads` are the operators whose
    kernels have an order of their own: by how many bytes output 0 must start before an operand that it overlaps, given
    graph, operator and operand; None where it must not. `aligned` are the operators whose maps must lie at multiples
    of the runtime's alignment. `packable`: modelplan may write plans for it into a model file.
    """

    name: str
    explains: str
    sequential: bool = False
    plain_loops: bool = False
    leads: Mapping[str, Callable[[Graph, Op, int], int | None]] = field(default_factory=dict, repr=False)
    aligned: frozenset[str] = frozenset()
    packable: bool = True


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a runtime does with memory: facts, each with its source.

    Args:
        name: what `--runtime` calls it.
        alignment: bytes that each offset is a multiple of.
        pad: what is rounded up to `alignment`: the size of every tensor, or only the arena.
        state: whether state tensors live in the planned arena or apart from it.
        allocator: the row of the table of allocators that is its own planner.
        source: where these facts stand.
        inputs: whether graph inputs live until their last reader or to the end.
        outputs: whether graph inputs and outputs lie in the arena or apart from it.
        scratch: returns the bytes of each working buffer that the kernel of an operator asks for, given the graph,
            the operator and the name of the kernel library; None where working memory is not planned.
        kernels: the name of the kernel library in use; behind it `+NAME=BYTES` for each kernel of the user's own.
        unpacked: the 4-bit data types that take a byte each in its memory.
        sharing: which tensors may share memory.
        libraries: the kernel libraries that there are; a file is sized for the first where none is named.
        default_for: the file format that is planned for this runtime unless the caller names another.
        requires: returns what a model file needs in all, given its content, its name, the name of the ABI and that of
            the kernel library; None where only the planned part is known.
        keeps: returns what of that is each operator's own, the same way; None where that is not known.
        offline_plans: whether it obeys a plan in the metadata of the file.
        sorts: whether it sorts the operators by itself, whatever their order in the file.
        runs: the file formats that it takes as they are; none for a runtime that a compiler feeds.
        interprets: whether its interpreter takes memory beside what it plans, which is measured where it is installed.
        own_kernels: whether its users add kernels of their own, which then stand in `kernels`.
        custom_kinds: the custom operators that it runs as it is delivered; None where that is not known.

    Raises:
        ValueError: `kernels` is none of `libraries`.
    """

    name: str
    alignment: int
    pad: Padding
    state: Literal["arena", "separate"]
    allocator: str
    source: str
    inputs: Literal["dying", "live"] = "dying"
    outputs: Literal["arena", "apart"] = "arena"
    scratch: ScratchSizes | None = None
    kernels: str = "reference"
    unpacked: tuple[str, ...] = ()
    sharing: Sharing = Sharing()
    libraries: tuple[KernelLibrary, ...] = (KernelLibrary("reference", "the runtime's own"),)
    default_for: str = ""
    requires: Requires | None = None
    keeps: Keeps | None = None
    offline_plans: bool = False
    sorts: bool = False
    runs: tuple[str, ...] = ()
    own_kernels: bool = False
    interprets: bool = False
    custom_kinds: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self._library_name not in self.library_names:
            names = ", ".join(self.library_names)
            meant = did_you_mean(self._library_name, self.library_names) or f"; there are: {names}"
            raise ValueError(f"no kernels {self.kernels!r}{meant}")
        if self.kernels != self._library_name and not self.own_kernels:
            raise ValueError(f"no kernels of your own (--custom) are added to {self._library_name}")

    def lacks_a_custom_kernel(self, graph: Graph) -> bool:
        """Whether a custom operator of the graph is known to be none of those that the runtime is delivered with."""
        kinds = {op.kind for op in graph.ops if op.kind.startswith("CUSTOM:")}
        return self.custom_kinds is not None and not kinds <= self.custom_kinds

    @property
    def usual_kernels(self) -> str:
        """The kernel library that a file is sized for where none is named; it may stand for all of them."""
        return self.libraries[0].name

    @property
    def library(self) -> KernelLibrary:
        """The kernel library in use."""
        return self.libraries[self.library_names.index(self._library_name)]

    @property
    def _library_name(self) -> str:
        """The name of the library without the user's own kernels, which may stand behind it."""
        return self.kernels.partition("+")[0]

    @property
    def library_names(self) -> tuple[str, ...]:
        """The names of the kernel libraries that there are."""
        return tuple(library.name for library in self.libraries)
