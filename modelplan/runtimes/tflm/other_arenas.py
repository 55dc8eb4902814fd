"""TFLM with two arenas, which may lie in different memories, and with one arena for several models, to the byte.

Firmware asks for two by MicroAllocator::Create(persistent, size, non_persistent, size). What lies at the end of one
arena (tail) then lies at the end of the first; what lies in front (head, and what AllocateTensors works with) lies in
the second.

Of a MicroAllocator that several interpreters were given the head is used by one model at a time, so that it is the
largest of theirs; what each model keeps at the end of the arena adds up, since nothing there is ever given back. The
models are allocated one after the other in the order given; while one is, the front of the arena is free for its
planning, whatever lay there for the models before.

Source: tflite-micro, micro_allocator.cc (StartModelAllocation, CommitStaticMemoryPlan, max_head_buffer_usage_),
arena_allocator/persistent_arena_buffer_allocator.h and non_persistent_arena_buffer_allocator.h.
"""

from collections.abc import Sequence

from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.abi import Abi
from modelplan.runtimes.tflm.arena import Interpreter, builds, take_allocator
from modelplan.runtimes.tflm.arena_memory import ArenaMemory
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.kernels import KernelSet
from modelplan.runtimes.tflm.refused_operators import Refused


@dataclass(frozen=True, slots=True)
class TwoArenas:
    """Bytes of each arena, multiples of 16 at addresses that are such, in which TFLM allocates and runs the model.

    `head` is the part of the second that the plan takes; the rest is needed only until the plan stands.
    """

    persistent: int
    non_persistent: int
    head: int


def two_arenas(model: FileModel, abi: int | str = "32", kernels: str = "reference") -> TwoArenas:
    """The two arenas of a model on a target, with the offline plan that the file carries.

    `abi` and `kernels` as for `arena`; of several ABIs the largest of each arena counts.

    Raises:
        RequestError: no such ABI or kernel library.
        ModelError: the offline plan in the file does not fit the model, or subgraphs call each other in a circle.
    """
    arenas = []
    for target, library in builds(abi, kernels):
        memory = ArenaMemory(target)
        take_allocator(memory, apart=True)
        head, _ = Interpreter(model, target, library).allocate(memory)
        arenas.append(TwoArenas(planner.padded(memory.depth), planner.padded(memory.highest), head))
    return TwoArenas(
        max(pair.persistent for pair in arenas),
        max(pair.non_persistent for pair in arenas),
        max(pair.head for pair in arenas),
    )


@dataclass(frozen=True, slots=True)
class Share:
    """What one model takes of a shared arena: the head that its own plan needs, and what it keeps, in bytes."""

    name: str
    head: int
    tail: int
    refusals: tuple[Refused, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedArena:
    """One allocator with several models: `own` bytes of its objects, the common `head`, and each model's part.

    `least` is the smallest arena, a multiple of 16 bytes at an address that is one, in which all can be allocated and
    run.
    """

    own: int
    head: int
    shares: tuple[Share, ...]
    least: int
    abi: str
    kernels: str

    @property
    def tail(self) -> int:
        """Bytes that stay for the life of the interpreters."""
        return self.own + sum(share.tail for share in self.shares)

    @property
    def total(self) -> int:
        """What TFLM reports as arena use of each interpreter once all are allocated."""
        return self.head + self.tail


def shared_arena_of(
    models: Sequence[FileModel], abi: int | str = "32", kernels: str = "reference", head: int | None = None
) -> SharedArena:
    """The arena of one allocator on which `models` are allocated in this order, with the plans that the files carry.

    `abi` and `kernels` are as for `arena`: of several builds the one that needs most, but for those that refuse a model
    where others do not. `head` is the common head where a planner of the firmware's own gives every address; such a
    planner lies outside of the arena.

    Raises:
        RequestError: no such ABI or kernel library.
        ModelError: a plan in a file does not fit its model, or subgraphs call each other in a circle.
    """
    arenas = [_allocated(models, abi, library, head) for abi, library in builds(abi, kernels)]
    run = [arena for arena in arenas if not any(share.refusals for share in arena.shares)]
    return max(run or arenas, key=lambda arena: arena.least)


def _allocated(models: Sequence[FileModel], abi: Abi, library: KernelSet, head: int | None) -> SharedArena:
    """Performs TFLM's allocations for all models in their order."""
    memory, greedy = ArenaMemory(abi), head is None
    take_allocator(memory, greedy=greedy)
    own, common = memory.depth, 0
    shares = []
    for model in models:
        interpreter, before = Interpreter(model, abi, library), memory.depth
        needed, _ = interpreter.allocate(memory, head, common, greedy=greedy)
        common = max(common, needed)
        shares.append(Share(model.name, needed, memory.depth - before, tuple(interpreter.refused())))
    return SharedArena(own, common, tuple(shares), planner.padded(memory.need), abi.name, library.name)
