"""The planners of runtimes: TFLite on the CPU and TFLite Micro, ONNX Runtime, ExecuTorch, OpenVINO.

Source: LiteRT, tflite/simple_memory_arena.cc and arena_planner.cc; tflite-micro, memory_planner/.

ONNX Runtime decides which value reuses whose buffer, then a memory pattern follows from the trace of the first run. A
problem has no shapes: buffers of equal size count as equal in shape. With that, taking the most recently freed buffer
of the same shape is what the GPU delegate calls equality. Source: onnxruntime, core/framework/allocation_planner.cc
(reuse) and mem_pattern_planner.h (pattern).

ExecuTorch places end to end, or in shared objects in which buffers may be stacked. Source: executorch,
exir/memory_planning.py (naive, greedy). Not followed: buffers written in place join their base's object without asking
whether their longer life is clear there. That is unsound; here aliases are merged, with the union of their lives,
before any allocator runs.

OpenVINO's memory solver puts the largest box first, at the lowest place. Source: openvino,
src/inference/dev_api/openvino/runtime/memory_solver.hpp.
"""

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem
from modelplan.planning.allocators.allocator_rows import (
    EQUAL_SIZES,
    GAP_FIT,
    GAP_FIT_TO_LOAD,
    PAIRS_AGAIN,
    Allocator,
    Objects,
    Records,
    baseline,
    sharing,
)
from modelplan.planning.allocators.greedy import GapRule, by_start, end_to_end, in_order
from modelplan.planning.allocators.systems.gpu_delegate import share_equal
from modelplan.primitives import _core


def place_arena(problem: Problem, _budget: Budget) -> Placement:
    """What lives all the time first, then the largest; the tightest gap by a lopsided comparison.

    The bytes that a gap leaves are counted from the aligned start, but what the next gap has to beat counts the
    padding too: a later gap that is no tighter can win.
    """
    return in_order(problem, arena_order(problem), GapRule.MIXED)


def place_arena_fixed(problem: Problem, _budget: Budget) -> Placement:
    """Like the original, the tightest gap by usable bytes."""
    return in_order(problem, arena_order(problem), GapRule.TIGHTEST)


def arena_order(problem: Problem) -> IntArray:
    """Alive from step 0 to the end by number; then size, start. The original leaves further ties open: by number."""
    whole = (problem.start == 0) & (problem.end == problem.end.max(initial=0))
    return np.lexsort((np.where(whole, 0, problem.start), np.where(whole, 0, -problem.size), ~whole))


def place_micro(problem: Problem, _budget: Budget) -> Placement:
    """Fixed offsets, then the largest first, of equal sizes the later-added first; the lowest gap."""
    return in_order(problem, np.lexsort((-np.arange(len(problem)), -problem.size)))


def place_linear(problem: Problem, _budget: Budget) -> Placement:
    """A running sum that ignores lifetimes."""
    return end_to_end(problem)


_TFLITE: tuple[Allocator, ...] = (
    GAP_FIT(
        "tflite-arena",
        place_arena,
        "LiteRT, simple_memory_arena.cc and arena_planner.cc",
        alignment=64,
        quirks="gaps are compared lopsidedly when alignment leaves padding",
        fixed=place_arena_fixed,
    ),
    GAP_FIT(
        "tflm-greedy",
        place_micro,
        "tflite-micro, memory_planner/greedy_memory_planner.cc",
        fast=True,
        alignment=16,
    ),
    baseline("tflm-linear", place_linear, "tflite-micro, memory_planner/linear_memory_planner.cc", alignment=16),
)


def place_pattern(problem: Problem, budget: Budget) -> Placement:
    """Reuse first, which lengthens lives; then the trace of allocations, each in the gap that wastes least."""
    objects = share_equal(problem, budget)
    pattern = blocks(problem, objects)
    offsets = in_order(pattern, by_start(pattern), GapRule.TIGHTEST).offsets
    held = objects.holder >= 0
    return Placement(np.where(held, offsets[objects.holder], 0) if len(offsets) else np.zeros(len(problem), np.int64))


def blocks(problem: Problem, objects: Objects) -> Problem:
    """The problem of the objects themselves: alive from the first start to the last end of what they hold."""
    count = len(objects.sizes)
    held = np.flatnonzero(objects.holder >= 0)
    holder = objects.holder[held]
    start, end, step = (np.full(count, value, dtype=np.int64) for value in (2**62, 0, 1))
    np.minimum.at(start, holder, problem.start[held])
    np.maximum.at(end, holder, problem.end[held])
    np.lcm.at(step, holder, problem.alignment[held])
    return Problem(tuple(map(str, range(count))), np.array(objects.sizes, dtype=np.int64), start, end, step)


_ORT = "onnxruntime, core/framework"
_STREAMS = "the plan for several streams, which asks for devices and kernels: extra conflicts are refused"

_ONNXRUNTIME: tuple[Allocator, ...] = (
    sharing(
        "onnxruntime-reuse",
        share_equal,
        f"{_ORT}/allocation_planner.cc, one stream",
        "O(n log n)",
        EQUAL_SIZES,
        _STREAMS,
    ),
    GAP_FIT_TO_LOAD(
        "onnxruntime",
        place_pattern,
        f"{_ORT}/allocation_planner.cc, then mem_pattern_planner.h",
        kind="online",
        honours=frozenset({"alignment", "overlaps"}),
        alignment=256,
        omits=_STREAMS,
    ),
)


def place_naive(problem: Problem, _budget: Budget) -> Placement:
    """End to end, sizes rounded up to their alignment."""
    return end_to_end(problem)


def place_greedy(problem: Problem, _budget: Budget) -> Placement:
    """Largest first, of equal sizes the later; the first object that is clear, else the first with room on top.

    Objects never grow and lie end to end.
    """
    records = Records.of(problem)
    step = int(np.lcm.reduce(problem.alignment, initial=1))
    rounded = -(-records.size // step) * step
    order = np.lexsort((-np.arange(len(rounded)), -records.size))
    holder, inside, sizes = _core.stack_in_objects(rounded, records.start, records.end, order, True)
    starts = np.cumsum(sizes) - sizes
    return Placement(records.spread(starts[holder] + inside, len(problem), 0))


_EXIR = "ExecuTorch, exir/memory_planning.py"

_EXECUTORCH: tuple[Allocator, ...] = (
    baseline("executorch-naive", place_naive, _EXIR, alignment=16),
    Allocator(
        "executorch-greedy",
        place_greedy,
        _EXIR,
        "objects",
        "none",
        "O(n log n + n k)",
        honours=frozenset({"alignment", "overlaps"}),
        alignment=16,
        most_pairs=PAIRS_AGAIN,
        invariants=frozenset({"scaling"}),
        omits="mem_id pools and devices: a problem has one memory",
    ),
)


def place_boxes(problem: Problem, _budget: Budget) -> Placement:
    """Largest first, lowest feasible place. The original leaves ties open; here by start, end and number."""
    return in_order(problem, np.lexsort((problem.end, problem.start, -problem.size)))


_OPENVINO: tuple[Allocator, ...] = (
    GAP_FIT(
        "openvino",
        place_boxes,
        "OpenVINO, inference/dev_api/openvino/runtime/memory_solver.hpp",
        invariants=frozenset({"scaling", "load"}),
    ),
)


ROWS: tuple[Allocator, ...] = (*_TFLITE, *_ONNXRUNTIME, *_EXECUTORCH, *_OPENVINO)
