"""Places the buffers of several models, with a bound that counts what may be active at the same time together.

Models that may all be active at the same time share nothing: their places are stacked, which is the least there is,
since the addresses that others use can be cut out of each one's. Models that all take turns are one ordinary problem.
Where both occur, each set that pipelines connect is placed by itself and put as low as those allow that it must not
meet, in the best of the orders that were tried.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice, permutations

import numpy as np

from modelplan.answers.shared_plan import ModelPart, Relation, SharedPlan
from modelplan.checking import referee
from modelplan.model import BoolArray, Budget, IntArray, Placement, bounds
from modelplan.planning import allocators
from modelplan.planning.together.joint_problem import Joined, joined
from modelplan.planning.together.relating import all_in_turn
from modelplan.primitives.version import __version__

#: How many orders of putting blocks are tried.
_MOST_ORDERS = 720
#: Up to so many sets of models every subset is looked at for the bound.
_MOST_UNITS = 12


def place_all(
    joint: Joined, relation: Relation, allocator: str = allocators.DEFAULT, budget: Budget | None = None
) -> Placement:
    """The placement of all models, checked by the referee.

    Raises:
        RequestError: no such allocator, or one that cannot honour a demand of the problem.
    """
    if not len(joint.problem.conflicts):
        return allocators.place(joint.problem, allocator, budget)
    search = _Search(joint, relation, allocator, budget)
    offsets, bound = search.stacked(range(len(relation.units)))
    bound = max(bound, search.clique_bound(), bounds.load_bound(joint.problem))
    height = bounds.height(joint.problem, Placement(offsets))
    placement = Placement(offsets, bound, "optimal" if height == bound else "complete")
    referee.check(replace(joint.problem, capacity=None), placement)
    return placement


def planned_together(
    parts: tuple[ModelPart, ...], relation: Relation, allocator: str = allocators.DEFAULT, budget: Budget | None = None
) -> SharedPlan:
    """The plan of models whose problems are known, seen by the referee but not proved model by model."""
    joint = joined(parts, relation)
    placement = place_all(joint, relation, allocator, budget)
    turns, least = all_in_turn(relation), bounds.height(joint.problem, placement)
    if turns != relation:
        other = joined(parts, turns)
        least = bounds.height(other.problem, place_all(other, turns, allocator, budget))
    made_by = f"modelplan {__version__}"
    return SharedPlan(
        parts, relation, joint.problem, placement, joint.owners, joint.starts, allocator, least, made_by
    )  # fmt: skip


class _Search:
    """The units of a relation as blocks; `unit` is the unit of each buffer."""

    def __init__(self, joint: Joined, relation: Relation, allocator: str, budget: Budget | None) -> None:
        self.joint, self.relation, self.allocator, self.budget = joint, relation, allocator, budget
        home = {model: number for number, unit in enumerate(relation.units) for model in unit}
        self.unit = np.array([home[group[0].model] for group in joint.owners], dtype=np.int64)
        self.always = np.array(joint.always, dtype=np.bool_)
        problem = joint.problem
        self.step = int(problem.alignment.max(initial=1))
        #: Whether everything begins and ends on one alignment, so that bounds of parts may be added.
        self.even = bool((problem.alignment == self.step).all() and (problem.size % self.step == 0).all())

    def turns(self, a: int, b: int) -> bool:
        """Whether the models of two units are never active at the same time."""
        units = self.relation.units
        return self.relation.take_turns(units[a][0], units[b][0])

    def stacked(self, units: Sequence[int]) -> tuple[IntArray, int]:
        """Offsets of the buffers of `units` (0 for others) and a bound; components lie above one another."""
        offsets, bound, base = np.zeros(len(self.joint.problem), dtype=np.int64), 0, 0
        for component in sorted(self._components(units), key=self._alignment, reverse=True):
            component_offsets, least = self._component(component)
            chosen, step = np.isin(self.unit, component), self._alignment(component)
            base = -(-base // step) * step
            offsets[chosen] = component_offsets[chosen] + base
            base = int((offsets + self.joint.problem.size)[chosen].max(initial=base))
            bound += least if self.even else 0
        return offsets, bound

    def _alignment(self, units: tuple[int, ...]) -> int:
        """The largest alignment in some units; alignments are powers of two."""
        return int(self.joint.problem.alignment[np.isin(self.unit, units)].max(initial=1))

    def _components(self, units: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Groups of units connected by taking turns; units of different groups can be active together."""
        import networkx as nx

        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(units)
        graph.add_edges_from((a, b) for a, b in combinations(units, 2) if self.turns(a, b))
        yield from (tuple(sorted(component)) for component in nx.connected_components(graph))

    def _component(self, units: tuple[int, ...]) -> tuple[IntArray, int]:
        """Offsets and a bound for one component."""
        chosen = np.isin(self.unit, units)
        if all(self.turns(a, b) for a, b in combinations(units, 2)):
            return self._alone(chosen)
        offsets, lasting = self._alone(chosen & self.always)
        base = self._top(offsets, chosen & self.always)
        blocks = {}
        for unit in units:
            mine = (self.unit == unit) & ~self.always
            unit_offsets, bound = self._alone(mine)
            offsets[mine] = unit_offsets[mine]
            blocks[unit] = (self._top(unit_offsets, mine), bound)
        lows = self._lowest({unit: size for unit, (size, _) in blocks.items()})
        for unit, low in lows.items():
            offsets[(self.unit == unit) & ~self.always] += base + low
        return offsets, lasting + max(bound for _, bound in blocks.values())

    def _alone(self, chosen: BoolArray) -> tuple[IntArray, int]:
        """Offsets of some of the buffers as a problem without conflicts, and its bound."""
        offsets = np.zeros(len(self.joint.problem), dtype=np.int64)
        if not chosen.any():
            return offsets, 0
        part = self.joint.problem.part(np.flatnonzero(chosen))
        placement = allocators.place(part, self.allocator, self.budget)
        offsets[chosen] = placement.offsets
        return offsets, placement.lower_bound

    def _top(self, offsets: IntArray, chosen: BoolArray) -> int:
        """Where the chosen buffers end, rounded up."""
        return -(-int((offsets + self.joint.problem.size)[chosen].max(initial=0)) // self.step) * self.step

    def _lowest(self, sizes: dict[int, int]) -> dict[int, int]:
        """The start of each block: first fit above blocks that it must not meet, the best of several orders."""
        largest = sorted(sizes, key=lambda unit: -sizes[unit])
        tried = (self._put(order, sizes) for order in islice(permutations(largest), _MOST_ORDERS))
        return min(tried, key=lambda lows: max(low + sizes[unit] for unit, low in lows.items()))

    def _put(self, order: Sequence[int], sizes: dict[int, int]) -> dict[int, int]:
        lows: dict[int, int] = {}
        for unit in order:
            low = 0
            for other in sorted(lows, key=lows.__getitem__):
                if not self.turns(unit, other) and lows[other] < low + sizes[unit]:
                    low = max(low, lows[other] + sizes[other])
            lows[unit] = low
        return lows

    def clique_bound(self) -> int:
        """What is alive at once in some step of each unit of a set that share nothing, and what is alive always."""
        problem, count = self.joint.problem, len(self.relation.units)
        steps = int(problem.end.max(initial=1))
        peaks = []
        for unit in range(count):
            mine = np.flatnonzero((self.unit == unit) & ~self.always)
            peaks.append(int(bounds.live_bytes(problem.part(mine), steps).max()))
        if len(problem.overlaps):
            return 0  # bytes that two buffers may share would count twice
        lasting = int(problem.size[self.always].sum())
        return lasting + max(sum(peaks[unit] for unit in clique) for clique in self._cliques(count))

    def _cliques(self, count: int) -> Iterator[tuple[int, ...]]:
        """Sets of units of which no two take turns: all of them if there are few units, else each pair."""
        most = count if count <= _MOST_UNITS else 2
        yield from ((unit,) for unit in range(count))
        for size in range(2, most + 1):
            for units in combinations(range(count), size):
                if not any(self.turns(a, b) for a, b in combinations(units, 2)):
                    yield units
