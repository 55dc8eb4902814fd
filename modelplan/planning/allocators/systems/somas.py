"""MindSpore's SOMAS: two orders, two fits, two block rules, the best of eight; safe for any relation of conflicts."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import partial

import numpy as np

from modelplan.model import Budget, IntArray, Placement, Problem
from modelplan.planning.allocators.allocator_rows import PAIRS_AGAIN, Allocator
from modelplan.primitives import _core
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

#: Every size is rounded up to this many bytes; one without bytes takes one unit in the original, none here.
UNIT = 512

#: One open object has to beat the best plan of many objects by more than this.
SINGLE_HAS_TO_SAVE = 100 * 2**20


@dataclass(frozen=True, slots=True)
class Demands:
    """What SOMAS knows about buffers beyond their conflicts, by buffer number.

    Args:
        unions: each tuple shares one address (ref pairs, union nodes); the largest size counts.
        contiguous: each tuple lies end to end in this order (fused communication); a member of a union names all of it.
        outputs: graph outputs, which the first order puts first.
        life_long: kept apart from all others, laid end to end after the solution.
    """

    unions: tuple[tuple[int, ...], ...] = ()
    contiguous: tuple[tuple[int, ...], ...] = ()
    outputs: frozenset[int] = field(default_factory=frozenset)
    life_long: frozenset[int] = field(default_factory=frozenset)


@dataclass(frozen=True, eq=False)
class SlotRun:
    """One of the eight runs: what it was asked and the height its bands reached."""

    order: str
    smallest: bool
    single: bool
    placement: Placement
    height: int


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Buffers to nodes to blocks, numbered; `chain` lists the nodes of each block in order."""

    node: IntArray
    block: IntArray
    chain: IntArray
    sizes: IntArray
    outputs: IntArray


def runs(problem: Problem, demands: Demands | None = None, *, fixed: bool = False) -> tuple[SlotRun, ...]:
    """All eight runs on the problem less its life-long buffers: orders x fits x block rules.

    The second order sorts by "can_reuse_peak_mem" first, which nothing sets: it then equals the first one without
    graph outputs. `fixed` gives every band the fit asked for; the original does so only for the first.

    Raises:
        RequestError: demands that name a buffer twice, or none.

    Cost: O(n (bands + k log k)) time for each run, O(n) memory: conflicts are found by lifetime and the list of extra
    ones; the original holds an n x n bitset.
    """
    demands = demands or Demands()
    rounded = _rounded(problem)
    blocks = _blocks(rounded, demands)
    wanted = {
        "outputs-then-size": np.lexsort((np.arange(len(blocks.sizes)), -blocks.sizes, -blocks.outputs)),
        "reuse-then-size": np.argsort(-blocks.sizes, kind="stable"),
    }
    placements: dict[tuple[bytes, bool, bool], Placement] = {}  # equal orders run once
    slot_runs = []
    for single, (name, order), smallest in itertools.product((False, True), wanted.items(), (False, True)):
        key = (order.tobytes(), smallest, single)
        if key not in placements:
            columns = blocks.node, blocks.block, blocks.chain, order.astype(np.int64)
            offsets = _core.somas_place(rounded.core, *columns, smallest=smallest, single=single, same_gap=fixed)
            placements[key] = Placement(offsets)
        slot_runs.append(SlotRun(name, smallest, single, placements[key], _top(rounded, blocks, placements[key])))
    return tuple(slot_runs)


def solve(problem: Problem, demands: Demands | None = None, *, fixed: bool = False) -> Placement:
    """The best of the eight runs, with the life-long buffers end to end above it.

    The strictly lowest wins; a plan of one open object only when it saves more than 100 MiB.

    Source: mindspore-ai/mindspore, mindspore/ccsrc/backend/common/somas.
    """
    demands = demands or Demands()
    keep = np.array([i not in demands.life_long for i in range(len(problem))], dtype=bool)
    rows = np.flatnonzero(keep)
    offsets = np.zeros(len(problem), dtype=np.int64)
    top = 0
    if len(rows):
        best = _choose(runs(problem.part(rows), _renumbered(demands, rows), fixed=fixed))
        offsets[rows] = best.placement.offsets
        top = best.height
    unit = _unit(problem)
    for i in np.flatnonzero(~keep):
        offsets[i] = top
        top += -(-int(problem.size[i]) // unit) * unit
    return Placement(np.where(problem.size > 0, offsets, 0))


def _choose(candidates: Sequence[SlotRun]) -> SlotRun:
    many = min((r for r in candidates if not r.single), key=lambda r: r.height)
    single = min((r for r in candidates if r.single), key=lambda r: r.height)
    return single if single.height + SINGLE_HAS_TO_SAVE < many.height else many


def _unit(problem: Problem) -> int:
    unit = int(np.lcm.reduce(problem.alignment, initial=UNIT))
    if not 0 < unit <= 2**40:
        raise RequestError("the alignments have no common multiple below 2^40 bytes, which SOMAS needs")
    return unit


def _rounded(problem: Problem) -> Problem:
    unit = _unit(problem)
    return replace(problem, size=-(-problem.size // unit) * unit, overlaps=np.zeros((0, 3), dtype=np.int64))


def _renumbered(demands: Demands, rows: IntArray) -> Demands:
    number = {int(b): i for i, b in enumerate(rows)}
    if any(b not in number for group in (*demands.unions, *demands.contiguous) for b in group):
        raise RequestError("a union or contiguous list names a life-long buffer, or one that does not exist")

    def renumber(groups: Iterable[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(number[b] for b in group) for group in groups)

    outputs = frozenset(number[b] for b in demands.outputs if b in number)
    return Demands(renumber(demands.unions), renumber(demands.contiguous), outputs)


def _blocks(problem: Problem, demands: Demands) -> _Blocks:
    node = _numbered(len(problem), demands.unions, "union")
    lists = [tuple(int(node[b]) for b in group) for group in demands.contiguous]
    count = int(node.max(initial=-1)) + 1
    block = _numbered(count, lists, "contiguous list")
    place_in_list = {n: i for group in lists for i, n in enumerate(group)}
    chain = np.array(sorted(range(count), key=lambda n: (block[n], place_in_list.get(n, 0))), dtype=np.int64)
    node_size = np.zeros(count, dtype=np.int64)
    np.maximum.at(node_size, node, problem.size)
    sizes = np.zeros(int(block.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(sizes, block, node_size)
    outputs = np.zeros(len(sizes), dtype=np.int64)
    outputs[block[node[sorted(demands.outputs)]]] = 1
    return _Blocks(node, block, chain, sizes, outputs)


def _numbered(count: int, groups: Iterable[tuple[int, ...]], what: str) -> IntArray:
    """For each of `count` items the number of its group, in order of the first member; the others are groups of one."""
    first = list(range(count))
    seen: set[int] = set()
    for group in groups:
        for item in group:
            if not 0 <= item < count or item in seen:
                raise RequestError(f"a {what} names buffer {item} twice, or it does not exist")
            seen.add(item)
            first[item] = min(group)
    return np.unique(np.array(first, dtype=np.int64), return_inverse=True)[1].astype(np.int64)


def _top(problem: Problem, blocks: _Blocks, placement: Placement) -> int:
    """The end of the highest node: a union reaches as far as its largest member."""
    sizes = np.zeros(int(blocks.node.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(sizes, blocks.node, problem.size)
    return int((placement.offsets + sizes[blocks.node])[problem.size > 0].max(initial=0))


def _life_long(problem: Problem) -> frozenset[int]:
    """Buffers alive from the first step to the last: they conflict with all others."""
    whole = (problem.start == problem.start.min(initial=0)) & (problem.end == problem.end.max(initial=0))
    return frozenset(np.flatnonzero(whole).tolist())


def _somas(problem: Problem, _budget: Budget, *, fixed: bool) -> Placement:
    """The best of two orders, two fits and two block rules over bands of blocks."""
    _check_padding(problem)
    listed = {b for members in problem.contiguous for b in members}
    demands = Demands(contiguous=problem.contiguous, life_long=_life_long(problem) - listed)
    return solve(replace(problem, contiguous=()), demands, fixed=fixed)


def _check_padding(problem: Problem) -> None:
    """Raises where SOMAS, which pads every member of a list to its unit, would leave more than the alignment asks."""
    unit = _unit(problem)
    for members in problem.contiguous:
        for b in members[:-1]:
            size, step = int(problem.size[b]), int(problem.alignment[b])
            if -(-size // step) * step % unit:
                raise RequestError(
                    f"'somas' pads each buffer of a contiguous list to {unit} bytes, but {problem.names[b]!r} has"
                    f" {size} at alignment {step}"
                )


ROWS = (
    Allocator(
        "somas",
        partial(_somas, fixed=False),
        "mindspore-ai/mindspore, mindspore/ccsrc/backend/common/somas/somas_solver_{pre,alg,core}.cc",
        "offsets",
        "none; holds for every schedule that the conflicts allow",
        "O(n (bands + k log k)) for each of eight runs",
        honours=frozenset({"alignment", "overlaps", "conflicts", "contiguous"}),
        alignment=UNIT,
        quirks="sizes are rounded up to 512; every band after the first has the best fit, whatever was asked for",
        fixed=partial(_somas, fixed=True),
        most_pairs=PAIRS_AGAIN,
    ),
)
