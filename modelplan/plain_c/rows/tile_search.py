"""Which operators run together tile by tile, so that a graph fits into less memory for the least work that is added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import pairwise
from math import prod

from modelplan.model.c_program import Repeat, StageChoice, TileChain
from modelplan.ops.run_costs import element_macs
from modelplan.plain_c.rows.row_graph import RowGraph, Tile, tiles_of, with_chains
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.plain_c.rows.stage_search import StageSearch
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.ladder import never_interrupt
from modelplan.rewriting.stripes.search_effort import USUAL, CEffort

_FAR = 1 << 60
#: What a plan may state: how many tiles there are side by side, and columns that an operator computes at a time which
#: computes the one before too. More of these take less time, but their results lie between the rows that are kept, and
#: these are packed the worse.
_TILES, _NARROW = (2, 4, 8, 16, 32, 64, 128), (1, 2)


@dataclass(frozen=True)
class TiledStages:
    """Stages of a graph with chains, and the shares of multiply-accumulates and of time that these add."""

    graph: StagedGraph
    stages: tuple[StageChoice, ...]
    macs: float
    time: float


@dataclass(frozen=True)
class TileSearch:
    """The search over memories: for each the stages that keep it, with the chains that they cannot do without.

    `pushed` and `check` as in `StagedGraph`; `most_macs` and `most_time` are shares of the graph's that may be added.
    """

    rows: RowGraph
    pushed: bool
    most_macs: float
    most_time: float
    check: Callable[[], None] = never_interrupt
    effort: CEffort = USUAL.c
    #: The least height of a stage that was found, and what would have been enough.
    _heights: dict[tuple[tuple[TileChain, ...], StageChoice], tuple[int, int]] = field(default_factory=dict, init=False)
    _graphs: dict[tuple[TileChain, ...], StagedGraph] = field(default_factory=dict, init=False)
    _costs: dict[TileChain, tuple[int, int]] = field(default_factory=dict, init=False)

    def least(self, floor: int, top: int) -> Iterator[TiledStages]:
        """Stages that need less and less memory, from `top` bytes down to `floor`, as far as the work allows."""
        low, high = floor, top
        for _ in range(self.effort.halvings):
            if high - low <= top >> self.effort.halvings:
                return
            middle = (low + high) // 2
            if tiled := self.allowed(middle):
                yield tiled
                high = middle
            else:
                low = middle

    def allowed(self, memory: int) -> TiledStages | None:
        """Stages that fit into so many bytes, where they add no more than they may."""
        tiled = self.within(memory)
        return tiled if tiled and tiled.macs <= self.most_macs and tiled.time <= self.most_time else None

    def within(self, memory: int) -> TiledStages | None:
        """Stages each of which fits into so many bytes, for little work; None where there are none."""
        count = len(self.rows.order)
        best: list[tuple[int, int]] = [(0, 0)] + [(_FAR, 0)] * count
        for end in range(1, count + 1):
            for first in range(end - 1, max(self._plain.barrier(end), end - self.effort.longest) - 1, -1):
                if best[first][0] < best[end][0]:
                    work = best[first][0] + self._work(first, end, memory, best[end][0] - best[first][0])
                    best[end] = min(best[end], (work, first))
        if best[count][0] >= _FAR:
            return None
        cuts = [count]
        while cuts[-1]:
            cuts.append(best[cuts[-1]][1])
        return self._staged(cuts[::-1], memory)

    def _work(self, first: int, end: int, memory: int, most: int) -> int:
        """The time that a stage of operators [first, end) adds with all of its chains, if it needs any."""
        if self._fits(first, end, (), memory):
            return 0
        chains = self._chains(first, end)
        work = sum(self._added(chain)[1] for chain in chains)
        fits = chains and work < most and self._fits(first, end, chains, memory)
        return work if fits else _FAR

    def _staged(self, cuts: Sequence[int], memory: int) -> TiledStages:
        """The stages between cuts, each with the chains that it cannot do without."""
        chains: list[TileChain] = []
        stages: list[StageChoice] = []
        for first, end in pairwise(cuts):
            own = self._needed(first, end, memory)
            at = stages[-1].end if stages else 0
            size = end - first - len(own)
            stages.append(StageChoice(at, at + size, self.effort.tile_parts if end - first > 1 else 1))
            chains += own
        graph = StagedGraph(with_chains(self.rows, chains), self.pushed, self.check)
        macs, time = (sum(self._added(chain)[i] for chain in chains) for i in (0, 1))
        whole = self._cost.whole
        return TiledStages(graph, tuple(stages), macs / max(whole[0], 1), time / max(whole[1], 1))

    def _needed(self, first: int, end: int, memory: int) -> list[TileChain]:
        """The chains of a stage: those that cost most are left out where it fits without them, others get wider."""
        if self._fits(first, end, (), memory):
            return []
        kept = self._chains(first, end)
        for chain in sorted(kept, key=lambda chain: -self._added(chain)[1]):
            others = [other for other in kept if other != chain]
            if self._fits(first, end, others, memory):
                kept = others
                continue
            widths = (other for other in self._all if other.operators == chain.operators)
            for wider in sorted(widths, key=lambda wider: self._added(wider)[1]):
                if self._fits(first, end, [*others, wider], memory):
                    kept = [*others, wider]
                    break
        return kept

    def _fits(self, first: int, end: int, chains: Sequence[TileChain], memory: int) -> bool:
        """Whether a stage with some of its chains can be packed into so many bytes.

        It runs backward where its bytes alive are too many forward.
        """
        graph = self._graph(tuple(chains))
        choice = StageChoice(first, end - len(chains), self.effort.tile_parts if end - first > 1 else 1)
        ways = [choice] if self.pushed and not first else [choice, replace(choice, backward=True)]
        way = next((way for way in ways if graph.load(way, memory) <= memory), None)
        if way is None:
            return False
        height, most = self._heights.get((tuple(chains), way), (_FAR, _FAR))
        if height > memory and most > memory:
            height = graph.height(way, self.effort.tries, enough=memory)
            self._heights[tuple(chains), way] = height, memory
        return height <= memory

    def _graph(self, chains: tuple[TileChain, ...]) -> StagedGraph:
        if chains not in self._graphs:
            self._graphs[chains] = StagedGraph(with_chains(self.rows, chains), self.pushed, self.check)
        return self._graphs[chains]

    @cached_property
    def _plain(self) -> StageSearch:
        return StageSearch(self._graph(()), effort=self.effort)

    @cached_property
    def _cost(self) -> ChainCost:
        return ChainCost(self.rows, self.effort)

    def _added(self, chain: TileChain) -> tuple[int, int]:
        if chain not in self._costs:
            self._costs[chain] = self._cost.added(chain)
        return self._costs[chain]

    @cached_property
    def _all(self) -> list[TileChain]:
        return chains_between(self.rows, 0, len(self.rows.order))

    def _chains(self, first: int, end: int) -> list[TileChain]:
        """The chains among operators [first, end), each as narrow as possible; none has an operator of another."""
        narrow: dict[tuple[int, ...], TileChain] = {}
        for chain in self._all:
            places = [self._plain.graph.position[number] for number in chain.operators]
            if first <= min(places) and max(places) < end:
                narrow.setdefault(chain.operators, chain)
        used: set[int] = set()
        chains = []
        for chain in narrow.values():
            if used.isdisjoint(chain.operators):
                used.update(chain.operators)
                chains.append(chain)
        return chains


def chains_between(rows: RowGraph, first: int, end: int) -> list[TileChain]:
    """Chains of two among operators [first, end) of the order, for several widths of tiles.

    The second reads several rows of the first one's result, which nobody else reads.
    """
    chains = []
    for last in rows.order[first:end]:
        facts = rows.operators[last]
        if not facts.tiled or last in rows.chains:
            continue
        tensor, value = facts.operands[0], rows.values[rows.value_of[facts.operands[0]]]
        window, number = facts.windows[0], value.producer
        small = rows.operators.get(number)
        alone = value.readers == (last,) and value.tensors == (tensor,) and tensor not in rows.graph.outputs
        if small is None or not small.tiled or not alone or window is None or window.rows.reach == 1:
            continue
        if rows.made_shape(number, tensor) != rows.shape(tensor):
            continue
        if number in rows.order[first:end] and number not in rows.chains:
            columns = rows.made_shape(last, rows.graph.ops[last].writes[0]).columns
            widths = {-(-columns // parts) for parts in _TILES}
            narrow = sorted(widths) if last not in rows.expanded else _NARROW
            chains += [TileChain((number, last), width) for width in narrow if width < max(columns, 2)]
    return [chain for chain in chains if min(map(min, tile_extents(rows, chain, 0))) > 0]


def tile_extents(rows: RowGraph, chain: TileChain, position: int) -> tuple[list[int], list[int]]:
    """How many rows the tiles of a chain's result have, one below the other, and how many columns side by side."""
    members = tuple((number, rows.operators[number]) for number in chain.operators)
    shape = rows.made_shape(chain.operators[-1], rows.graph.ops[chain.operators[-1]].writes[0])
    downs = [tiles_of(rows, members, Tile(row, row + 1, 0, 1))[position + 1] for row in range(shape.rows)]
    parts = (Tile(0, 1, at, min(at + chain.width, shape.columns)) for at in range(0, shape.columns, chain.width))
    across = [tiles_of(rows, members, part)[position + 1] for part in parts]
    return [tile.bottom - tile.top for tile in downs], [tile.right - tile.left for tile in across]


@dataclass(frozen=True)
class ChainCost:
    """What chains add to the work of a graph: multiply-accumulates, and the time that portable kernels take."""

    rows: RowGraph
    effort: CEffort = USUAL.c

    def added(self, chain: TileChain) -> tuple[int, int]:
        """Multiply-accumulates that a chain adds, and time in the same unit."""
        macs = time = 0
        for i, number in enumerate(chain.operators):
            shape = self.rows.made_shape(number, self.rows.graph.ops[number].writes[0])
            high, wide = (sum(extents) for extents in tile_extents(self.rows, chain, i))
            again = high * wide - shape.rows * shape.columns
            macs += again * self._macs(number)
            time += again * self._time(number)
        return macs, time

    def again(self, repeat: Repeat) -> tuple[int, int]:
        """The same of operators that run again for another reader."""
        shapes = {number: self.rows.shape(self.rows.graph.ops[number].writes[0]) for number in repeat.operators}
        pixels = {number: shape.rows * shape.columns for number, shape in shapes.items()}
        return sum(p * self._macs(n) for n, p in pixels.items()), sum(p * self._time(n) for n, p in pixels.items())

    @property
    def whole(self) -> tuple[int, int]:
        """Multiply-accumulates of the graph, and the time."""
        numbers = [n for n, op in enumerate(self.rows.graph.ops) if op.writes]
        pixels = {n: self.rows.shape(self.rows.graph.ops[n].writes[0]) for n in numbers}
        counts = {n: shape.rows * shape.columns for n, shape in pixels.items()}
        return sum(c * self._macs(n) for n, c in counts.items()), sum(c * self._time(n) for n, c in counts.items())

    def _elements(self, number: int) -> int:
        """Elements of a pixel of an operator's result."""
        tensor = self.rows.graph.ops[number].writes[0]
        shape = self.rows.shape(tensor)
        return prod(self.rows.graph.tensors[tensor].shape) // max(shape.rows * shape.columns, 1)

    def _macs(self, number: int) -> int:
        """Multiply-accumulates of a pixel."""
        return self._elements(number) * element_macs(self.rows.graph, self.rows.graph.ops[number])

    def _time(self, number: int) -> int:
        op = self.rows.graph.ops[number]
        slow = self.effort.depthwise if op.kind == "DEPTHWISE_CONV_2D" else 1
        return slow * self._macs(number) + self.effort.result * self._elements(number)
