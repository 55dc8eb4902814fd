"""Which operators run together row by row, and in which direction, so that all values fit into the least memory."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from itertools import accumulate

from modelplan.model.c_program import CProgram, StageChoice
from modelplan.plain_c.rows.placing_rows import PlacedStages, lower_one
from modelplan.plain_c.rows.row_graph import RowGraph
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.search_effort import USUAL, CEffort

_FAR = 1 << 60


class TooManyStagesError(Exception):
    """A search for stages would take longer than it may."""


@dataclass(frozen=True)
class StageSearch:
    """The search for the stages of a graph. Two bounds hold for every choice of stages with as many parts of a row.

    A search that has to look at more than `most_stages`, by which its time goes, is given up; None: none is.
    """

    graph: StagedGraph
    seed: int = 0
    most_stages: int | None = None
    effort: CEffort = USUAL.c
    _packed: dict[StageChoice, int] = field(default_factory=dict, init=False)
    _heights: dict[tuple[StageChoice, int], int] = field(default_factory=dict, init=False)
    _loads: dict[tuple[int, ...], int] = field(default_factory=dict, init=False)

    def _height(self, choice: StageChoice, most: int, enough: int) -> int:
        """What a stage needs by itself, anything above `most` or up to `enough` where that is so."""
        load = self.graph.load(choice, most)
        if load > most:
            return load
        if choice not in self._packed:
            self._packed[choice] = self._packed_height(choice, enough)
        return self._packed[choice]

    def _packed_height(self, choice: StageChoice, enough: int) -> int:
        """What the values of a stage need that are packed, or anything up to `enough`."""
        if (choice, enough) not in self._heights:
            self._heights[choice, enough] = self.graph.height(choice, self.effort.tries, self.seed, enough)
        return self._heights[choice, enough]

    def least_load(self, *parts: int) -> int:
        """No plan of stages with one of these numbers of parts, forward or backward, needs less: bytes alive at a time.

        Raises:
            TooManyStagesError: it had to look at more stages than it may.
        """

        def needs(choice: StageChoice, most: int, low: int) -> int:
            cuts = [replace(choice, parts=n) for n in parts] if choice.parts > 1 else [choice]
            return min(self._load(cut, most, low) for cut in cuts)

        if parts not in self._loads:
            known = [load for fewer, load in self._loads.items() if {*fewer} <= {*parts}]
            self._loads[parts] = self._least(max(parts), needs, enough=min(known, default=_FAR))[0]
        return self._loads[parts]

    def _load(self, choice: StageChoice, most: int, _: int) -> int:
        """The bytes of a stage in the direction that needs less; rows that the caller hands over come forward."""
        if self.most_stages is not None and self.graph.measured > self.most_stages:
            raise TooManyStagesError
        forward = self.graph.load(choice, most)
        if self.graph.pushed and not choice.first:
            return forward
        return min(forward, self.graph.load(replace(choice, backward=True), min(forward, most)))

    def least_program(self, parts: int) -> CProgram:
        """The least program of the stages that `stages` gives.

        Where they do not lie together in what the largest of them needs by itself, operators alone by whole rows may.
        """
        floor, ((_, stages), *others) = self.least_load(parts), self._stages(parts)
        least = self.program(stages, floor)
        for need, stages in others:
            if need < least.nbytes:
                least = min(least, self.program(stages, floor), key=lambda program: program.nbytes)
        return least

    def stages(self, parts: int) -> tuple[StageChoice, ...]:
        """The stages of which each needs the least by itself; operators alone by whole rows unless parts save bytes."""
        return self._stages(parts)[0][1]

    def _stages(self, parts: int) -> list[tuple[int, tuple[StageChoice, ...]]]:
        """What the largest stage needs by itself, and these stages; where parts save, those by whole rows behind."""
        least = self.least_load(parts)
        reachable = self._reachable(parts, least)
        whole = self._least(parts, self._height, least, alone=1, enough=reachable)
        if whole[0] > reachable:  # by another search for the same packing, which found less
            whole = self._least(parts, self._height, least, alone=1)
        if whole[0] <= least:
            return [whole]
        cut = self._least(parts, self._height, least, enough=whole[0])
        return [cut, whole] if cut[0] < whole[0] else [whole]

    def _reachable(self, parts: int, least: int) -> int:
        """What some stages need, operators alone by whole rows: little, and found by packing few of them.

        They are those of least load, where stages that were packed before have their heights instead.
        """
        reachable, packed = _FAR, dict[StageChoice, int]()

        def needs(choice: StageChoice, most: int, _: int) -> int:
            return packed.get(choice) or self.graph.load(choice, most)

        while True:
            low, stages = self._least(parts, needs, least, alone=1, enough=reachable)
            need = low
            for choice in sorted(stages, key=lambda choice: -self.graph.load(choice, _FAR)):
                if need < reachable:
                    packed[choice] = self._packed_height(choice, least)
                    need = max(need, packed[choice])
            if need >= reachable:
                return reachable
            reachable = need

    def _least(
        self,
        parts: int,
        needs: Callable[[StageChoice, int, int], int],
        floor: int = 0,
        alone: int | None = None,
        enough: int = _FAR,
    ) -> tuple[int, tuple[StageChoice, ...]]:
        """Dynamic programming over the places where one stage ends and the next begins.

        Operators alone go by one part or as many others, of which `alone` says how many may be. Of stages that need
        equally much the ones that fuse and part the fewest operators; below `floor` all need equally much. Some stages
        need no more than `enough`, so that one that needs more is not looked at closely.
        """
        count = len(self.graph.rows.order)
        best: list[tuple[int, int]] = [(floor, 0)] + [(_FAR, 0)] * count
        chosen: dict[int, StageChoice] = {}
        for end in range(1, count + 1):
            for first in range(end - 1, max(self.barrier(end), end - self.effort.longest) - 1, -1):
                cuts = (1, parts)[: alone or parts] if end - first == 1 else (parts,)
                for fused, cut in enumerate(cuts, best[first][1] + end - first - 1):
                    if (best[first][0], fused) >= best[end]:
                        break
                    choice = StageChoice(first, end, cut)
                    most = min(best[end][0], enough)
                    rank = max(best[first][0], needs(choice, most, best[first][0])), fused
                    if rank < best[end]:
                        best[end], chosen[end] = rank, choice
        stages: list[StageChoice] = []
        while not stages or stages[0].first:
            stages.insert(0, chosen[stages[0].first if stages else count])
        return best[count][0], tuple(stages)

    def barrier(self, end: int) -> int:
        """The first operator that may run together with the one before `end`."""
        operators = [self.graph.rows.operators[number] for number in self.graph.rows.order[:end]]
        if operators[-1].alone:
            return end - 1
        return max((i + 1 for i, operator in enumerate(operators) if operator.alone), default=0)

    def program(self, stages: Sequence[StageChoice], floor: int = 0) -> CProgram:
        """The least program of these stages, some of which run backward; none needs less than `floor`.

        Rows are cut into parts only in stages that would need more by whole ones.
        """
        draft = self._draft(stages)
        if draft.load <= floor:
            whole = self._draft(self._whole_rows(draft.choices, floor))
            if whole.load <= floor and whole.nbytes <= floor:
                return whole.program()
        return self._with_whole_rows(self._turned_least(draft, floor)).program()

    def _turned_least(self, least: PlacedStages, floor: int) -> PlacedStages:
        """The least plan of some stages in either direction, as far as it is worth looking for it.

        A result lies below the operand over which it is written, or above it where the last rows come first. A chain
        of stages that take turns stays in the same memory; one that does not wanders downwards.
        """
        fixed, stages = int(self.graph.pushed), least.choices
        if least.nbytes <= floor:
            return least
        for turn in (0, 1):
            turned = _turned(stages, [i for i in range(fixed, len(stages)) if i % 2 == turn])
            least = lower_one(least, self._draft(turned))
        if least.nbytes > least.bound:
            for some in dict.fromkeys((stages, least.choices)):
                least = lower_one(least, self._placed(some))
        return least

    def _with_whole_rows(self, placed: PlacedStages) -> PlacedStages:
        """A plan with whole rows in all stages that need no parts of them; as it is where that needs more bytes."""
        chosen = self._whole_rows(placed.choices, placed.nbytes)
        if chosen == placed.choices:
            return placed
        return min(self._draft(chosen), placed, key=lambda placed: placed.nbytes)

    def _whole_rows(self, stages: Sequence[StageChoice], nbytes: int) -> tuple[StageChoice, ...]:
        """The stages, by whole rows those that need no more than so many bytes then."""
        pairs = ((cut, replace(cut, parts=min(cut.parts, 1))) for cut in stages)
        return tuple(cut if self.graph.load(uncut, nbytes) > nbytes else uncut for cut, uncut in pairs)

    def finer(self, program: CProgram, parts: int) -> PlacedStages:
        """A plan of more parts: of the same stages those that need most cut into them, or the stages of least load."""
        stages = program.choices.stages if program.choices else ()
        large = self.effort.large * program.nbytes
        cut = [replace(s, parts=parts) if s.parts > 1 and self.graph.load(s, _FAR) > large else s for s in stages]
        least = self._placed(cut)
        chosen = [self._least(parts, self._load, self.least_load(parts), alone)[1] for alone in (1, None)]
        for stages in dict.fromkeys(chosen):
            least = lower_one(least, self._placed([self._directed(stage) for stage in stages]))
        return self._with_whole_rows(least)

    def _directed(self, choice: StageChoice) -> StageChoice:
        """A stage in the direction that needs less."""
        if self.graph.pushed and not choice.first:
            return choice
        return min(choice, replace(choice, backward=True), key=lambda way: self.graph.load(way, _FAR))

    def _draft(self, stages: Sequence[StageChoice]) -> PlacedStages:
        return PlacedStages(self.graph, tuple(stages), self.effort.tries, self.seed)

    def _placed(self, stages: Sequence[StageChoice]) -> PlacedStages:
        return PlacedStages(self.graph, tuple(stages), self.effort.answer, self.seed)


def rows_tried(rows: RowGraph) -> int:
    """The rows of the results of all stages that a search for stages may try: a count that its time goes by."""
    results = [rows.graph.ops[number].writes[:1] for number in rows.order]
    heights = [rows.shape(tensor[0]).rows if tensor else 1 for tensor in results]
    ends = range(1, len(heights) + 1)
    return sum(sum(accumulate(reversed(heights[max(0, end - USUAL.c.longest) : end]))) for end in ends)


def _turned(stages: Sequence[StageChoice], which: Sequence[int]) -> tuple[StageChoice, ...]:
    """The stages, those by number in the other direction."""
    return tuple(replace(s, backward=s.backward != (i in which)) for i, s in enumerate(stages))


def branch_by_branch(rows: RowGraph) -> RowGraph:
    """The graph in an order in which no branch begins before another one is through, and the smallest result waits.

    It is the same graph where that order is its own, or where variables are read and assigned.
    """
    makers = {number: _makers(rows, number) for number in rows.order}
    place = {number: i for i, number in enumerate(rows.order)}
    read, order = set[int]().union(*makers.values()), dict[int, None]()

    def last_first(numbers: Iterable[int]) -> list[int]:
        return sorted(numbers, key=lambda n: (_result_bytes(rows, n), place[n]), reverse=True)

    waiting = last_first(number for number in rows.order if number not in read)
    while waiting:
        if before := last_first(makers[waiting[-1]] - order.keys()):
            waiting += before
        else:
            order[waiting.pop()] = None
    same = tuple(order) == rows.order or not can_run_in(rows, tuple(order))
    return rows if same else rows_in_order(rows, tuple(order))


def can_run_in(rows: RowGraph, order: Sequence[int]) -> bool:
    """Whether an order has every operator, behind those that make what it reads, and no variable sees it."""
    if sorted(order) != sorted(rows.order) or any(value.producer == -2 for value in rows.values):
        return False
    if any(rows.operators[n].alone or not rows.graph.ops[n].writes for n in order):
        return False
    place = {number: i for i, number in enumerate(order)}
    return all(place[maker] < place[number] for number in order for maker in _makers(rows, number))


def rows_in_order(rows: RowGraph, order: Sequence[int]) -> RowGraph:
    """The graph whose operators run in another order."""
    place = {number: i for i, number in enumerate(order)}
    values = (replace(v, readers=tuple(sorted(v.readers, key=place.__getitem__))) for v in rows.values)
    return replace(rows, order=tuple(order), values=tuple(values), other_order=tuple(order))


def _makers(rows: RowGraph, number: int) -> set[int]:
    """The operators that make what an operator reads."""
    values = (rows.values[rows.value_of[tensor]] for tensor in rows.operators[number].operands)
    return {value.producer for value in values if value.producer in rows.operators}


def _result_bytes(rows: RowGraph, number: int) -> int:
    return sum(rows.graph.tensors[tensor].nbytes for tensor in rows.graph.ops[number].writes)
