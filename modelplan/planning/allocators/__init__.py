"""The table of allocators, and `place`, which runs one and checks its answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np

from modelplan.checking import referee
from modelplan.model import Budget, Placement, Problem, bounds
from modelplan.planning import entry_points
from modelplan.planning.allocators import tied_buffers
from modelplan.planning.allocators.allocator_rows import EVERY_DEMAND, USUAL_DEMANDS, Allocator, Demand
from modelplan.primitives.errors import BrokenPlanError, RequestError


def _best(problem: Problem, budget: Budget) -> Placement:
    """The lowest answer of the fast allocators that can take the problem, then of the solver, with its bound.

    Each runs only while no answer has reached the load bound; of equal answers the first counts. Ctrl-C keeps the best.
    """
    bound, answers = bounds.load_bound(problem), list[Placement]()
    try:
        fast = [row for row in map(ALLOCATORS.__getitem__, OWN_NAMES) if row.fast]
        for row in (*fast, ALLOCATORS[DEFAULT]):
            if not _refusal(row, problem):
                answers.append(_run(row, problem, budget))
                if bounds.height(problem, answers[-1]) <= bound:
                    break
    except KeyboardInterrupt:
        if not answers:
            raise
        answers.append(replace(answers[-1], ended="cancelled"))
    lowest = min(answers, key=lambda answer: bounds.height(problem, answer))
    last = answers[-1]
    return replace(lowest, lower_bound=last.lower_bound, ended=last.ended, steps=last.steps)


BEST = Allocator(
    "best",
    _best,
    "modelplan",
    "portfolio",
    "never higher than any row it runs",
    "the sum of the fast rows and of modelplan",
    honours=EVERY_DEMAND,
    most_pairs=math.inf,
)

#: The modules and the names of rows of them, in order; a repaired variant follows its faithful row.
ROWS_OF = (
    ("solver", "modelplan"),
    (
        "systems.gpu_delegate",
        (
            "naive tflite-equality tflite-greedy-in-order tflite-greedy-by-breadth tflite-greedy-by-size-objects"
            " tflite-min-cost-flow tflite-greedy-best tflite-greedy-by-size tflite-greedy-by-breadth-offsets"
        ),
    ),
    ("systems.runtime_planners", "tflite-arena tflite-arena-fixed tflm-greedy tflm-linear"),
    ("systems.bfc", "tensorflow-bfc"),
    (
        "systems.usmp",
        (
            "tvm-greedy-by-size tvm-greedy-by-size-fixed tvm-greedy-by-conflicts tvm-greedy-by-conflicts-fixed"
            " tvm-hill-climb tvm-hill-climb-fixed"
        ),
    ),
    ("systems.tokens", "tvm-token-reuse"),
    ("systems.somas", "somas somas-fixed"),
    ("systems.compilers", "triton"),
    (
        "systems.xla",
        "xla-spatial xla-temporal xla-choose-best xla-constrained xla-repack xla-fast-merge xla-fast-split",
    ),
    ("systems.telamalloc", "telamalloc telamalloc-learned telamalloc-heuristic"),
    ("systems.minimalloc", "minimalloc"),
    ("systems.idealloc", "idealloc"),
    ("cpsat", "cp-sat"),
    ("systems.runtime_planners", "onnxruntime-reuse onnxruntime"),
    ("systems.runtime_planners", "executorch-naive executorch-greedy"),
    ("systems.vela", "vela-linear vela-greedy vela-hill-climb vela-hill-climb-fixed"),
    ("systems.compilers", "iree iree-fixed"),
    ("systems.runtime_planners", "openvino"),
    ("systems.compilers", "glow"),
    ("systems.compilers", "onnx2c"),
    (
        "greedy",
        (
            "first-fit-start best-fit-start worst-fit-start first-fit-size best-fit-size worst-fit-size first-fit-area"
            " best-fit-area worst-fit-area first-fit-duration best-fit-duration worst-fit-duration first-fit-conflicts"
            " best-fit-conflicts worst-fit-conflicts interval-colouring"
        ),
    ),
)

#: The names of the rows of this package.
OWN_NAMES = (BEST.name, *(name for _, names in ROWS_OF for name in names.split()))


class _Table(Mapping[str, Allocator]):
    """Rows by name. Knows the names; imports a module when one of its rows is asked for.

    Behind the own rows stand those of packages with entry points of the group `modelplan.allocators`; a name that is
    taken stays with the own row.
    """

    def __init__(self) -> None:
        self._home = {BEST.name: ""} | {name: module for module, names in ROWS_OF for name in names.split()}
        self._rows = {BEST.name: BEST}

    def __getitem__(self, name: str) -> Allocator:
        if name in self._rows:
            return self._rows[name]
        if name in self._home:
            for row in import_module(f"{__name__}.{self._home[name]}").ROWS:
                self._rows.update({variant.name: variant for variant in row.variants})
        else:
            entry = entry_points.installed(entry_points.ALLOCATORS)[name]
            row = _row_of(name, entry_points.loaded(entry), entry_points.package_of(entry))
            self._rows[name] = replace(row, run=entry_points.guarded(entry, row.run))
        return self._rows[name]

    def __contains__(self, name: object) -> bool:
        return name in self._home or name in entry_points.installed(entry_points.ALLOCATORS)

    def __iter__(self) -> Iterator[str]:
        yield from self._home
        yield from (name for name in entry_points.installed(entry_points.ALLOCATORS) if name not in self._home)

    def __len__(self) -> int:
        return sum(1 for _ in self)


#: An allocator of one's own: the offset of each buffer, or a placement.
OwnAllocator = Callable[[Problem, Budget], Placement | Sequence[int]]


def _row_of(name: str, own: OwnAllocator, source: str = "a caller") -> Allocator:
    """The row of an allocator that is not in the table: the referee checks it, its claims are not believed."""
    if not callable(own):
        raise RequestError(f"allocator {name!r} is no function of a problem and a budget, but {type(own).__name__}")
    honours = frozenset(getattr(own, "honours", USUAL_DEMANDS))
    return Allocator(name, partial(_own_placement, own), source, "offsets", "none", "not known", honours=honours)


def _own_placement(run: OwnAllocator, problem: Problem, budget: Budget) -> Placement:
    """The offsets of an allocator of one's own, without bounds and proofs that nobody has checked."""
    if not len(problem):
        return Placement(np.zeros(0, dtype=np.int64))
    answer = run(problem, budget)
    if isinstance(answer, Placement):
        unproved = answer.ended in ("budget", "deadline", "cancelled", "memory")
        return replace(answer, lower_bound=0, ended=answer.ended if unproved else "complete", found_by="")
    offsets = np.asarray(answer)
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu":
        raise BrokenPlanError(f"{answer!r:.60} is no integer offset for each of {len(problem)} buffers")
    return Placement(offsets.astype(np.int64))


ALLOCATORS: Mapping[str, Allocator] = _Table()

DEFAULT = "modelplan"


def allocator(name: str) -> Allocator:
    """The row called `name`.

    Raises:
        RequestError: there is none; the message lists the names.
    """
    if name not in ALLOCATORS:
        raise RequestError(f"no allocator {name!r}; there are: {', '.join(ALLOCATORS)}")
    return ALLOCATORS[name]


def place(problem: Problem, name: str | OwnAllocator = DEFAULT, budget: Budget | None = None) -> Placement:
    """A placement of `problem`, checked by the referee, its bound raised to the load bound.

    A capacity is a question, not a demand: whether the answer fits is `height(problem, placement) <= capacity`.

    Args:
        problem: the buffers.
        name: the allocator: a name of the table, or a function that takes the problem and the budget and returns the
            offset of each buffer. Its attribute `honours` may name the demands that it knows of.
        budget: steps, seconds and the height that is enough.

    Raises:
        RequestError: unknown name, or the allocator cannot honour a demand of the problem.
        BrokenPlanError: the allocator answered wrongly.
    """
    row = allocator(name) if isinstance(name, str) else _row_of(getattr(name, "__name__", "own"), name)
    if reason := _refusal(row, problem):
        raise RequestError(reason)
    answer = _run(row, problem, budget or Budget())
    bound = max(answer.lower_bound, bounds.load_bound(problem))
    referee.check(problem if problem.capacity is None else replace(problem, capacity=None), answer)
    return replace(answer, lower_bound=bound)


def _run(row: Allocator, problem: Problem, budget: Budget) -> Placement:
    """The row's answer; where it knows no contiguous lists it gets each as one buffer."""
    if problem.contiguous and "contiguous" not in row.honours:
        return tied_buffers.run_joined(row.run, problem, budget)
    return row.run(problem, budget)


def _demands(problem: Problem) -> Iterable[Demand]:
    if (problem.alignment > 1).any():
        yield "alignment"
    if (problem.pin >= 0).any():
        yield "pins"
    if len(problem.overlaps):
        yield "overlaps"
    if len(problem.conflicts):
        yield "conflicts"
    if len(problem.groups):
        yield "groups"
    if len(problem.meetings):
        yield "meetings"


def _refusal(row: Allocator, problem: Problem) -> str:
    """Why `row` cannot take `problem`, or nothing."""
    unmet = [demand for demand in _demands(problem) if demand not in row.honours]
    if unmet:
        return f"allocator {row.name!r} does not honour {' and '.join(unmet)}"
    if problem.contiguous and "contiguous" not in row.honours and (reason := tied_buffers.refusal(problem)):
        return f"allocator {row.name!r} {reason}"
    if row.one_alignment and len(set(problem.alignment[problem.size > 0].tolist())) > 1:
        return f"allocator {row.name!r} needs one alignment for all buffers: {row.quirks}"
    return ""
