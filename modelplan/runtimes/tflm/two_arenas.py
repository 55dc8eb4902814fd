"""TFLM with two arenas, which may lie in different memories: one for what it keeps, one for tensors and scratch.

Firmware asks for it by MicroAllocator::Create(persistent, size, non_persistent, size). What lies at the end of one
arena (tail) then lies at the end of the first; what lies in front (head, and what AllocateTensors works with) lies in
the second.
Source: tflite-micro, micro_allocator.cc, arena_allocator/persistent_arena_buffer_allocator.h and
non_persistent_arena_buffer_allocator.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.arena import Interpreter, builds, take_allocator
from modelplan.runtimes.tflm.arena_memory import ArenaMemory
from modelplan.runtimes.tflm.file import FileModel


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
