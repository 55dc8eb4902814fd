"""Which operator of one graph is which operator of another, by structure alone.

all of it equal, with all before it        Operators that can be told apart are matched first: those whose label is
all of it equal, with all behind it        found once on each side. From these on their neighbours follow along
...                                        the wires. What is left between matched operators is matched in order,
kind equal, with all behind it             the most alike first, and last what has another kind but the same
                                           neighbours.
"""

import bisect
from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from modelplan.model import Kind
from modelplan.planning.matching.labelling import LEVELS, Labels, Structure

#: Labels reach so many operators far where all before or behind an operator is too much to be equal.
_RADII = (3, 2, 1)
#: Levels that look at weights, which tell operators apart wherever they stand.
_TELLING = ("all", "values")
#: From so many bytes of constants on an operator is told apart by them alone.
_WEIGHTS = 64
#: Most pairs of operators between two matched ones that are compared in order.
_MOST_PAIRS = 4_000_000


def matched_ops(old: Structure, new: Structure) -> tuple[int, ...]:
    """For each operator of `old` the operator of `new` that it became, -1 for one that is gone.

    Swapped sides give the same pairs. Cost: about linear in the operators and wires.
    """
    if old.identity > new.identity:
        back = matched_ops(new, old)
        partners = [-1] * len(old.graph.ops)
        for there, here in enumerate(back):
            if here >= 0:
                partners[here] = there
        return tuple(partners)
    return tuple(_Matching(old, new).run())


@dataclass
class _Matching:
    """The pairs found so far: `to_new` and `to_old` hold the partner of each operator or -1."""

    old: Structure
    new: Structure
    to_new: list[int] = field(init=False)
    to_old: list[int] = field(init=False)
    fresh: deque[int] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.to_new = [-1] * len(self.old.graph.ops)
        self.to_old = [-1] * len(self.new.graph.ops)

    def run(self) -> list[int]:
        numbers = defaultdict[Hashable, int](count().__next__)
        levels = [tuple(Labels(side, level, numbers) for side in (self.old, self.new)) for level in LEVELS]
        for old_labels, new_labels in levels:
            for labels in _rounds(old_labels, new_labels):
                self.match_unique(*labels)
                self.spread(old_labels.own, new_labels.own)
                if self.complete:
                    return self.to_new
            self.fresh = deque(i for i, partner in enumerate(self.to_new) if partner >= 0)
            self.spread(old_labels.own, new_labels.own)
        for old_labels, new_labels in levels:
            self.match_in_order(old_labels.own, new_labels.own)
        self.match_replaced()
        return self.to_new

    @property
    def complete(self) -> bool:
        """Whether one side has no operator left."""
        return -1 not in self.to_new or -1 not in self.to_old

    def pair(self, i: int, j: int) -> None:
        """Notes that two operators are one."""
        self.to_new[i], self.to_old[j] = j, i
        self.fresh.append(i)

    # -- told apart by their labels ---------------------------------------------------------------------------

    def match_unique(self, old: Sequence[Hashable], new: Sequence[Hashable]) -> None:
        """Pairs the operators left whose label is found once on each side."""
        ones, others = _unique(old, self.to_new), _unique(new, self.to_old)
        for label, i in ones.items():
            if i >= 0 and others.get(label, -1) >= 0:
                self.pair(i, others[label])

    # -- along the wires --------------------------------------------------------------------------------------

    def spread(self, old: Sequence[int], new: Sequence[int]) -> None:
        """Pairs neighbours of pairs whose labels are equal, as long as there are any."""
        while self.fresh:
            i = self.fresh.popleft()
            self.spread_up(i, self.to_new[i], old, new)
            self.spread_down(i, self.to_new[i], old, new)

    def spread_up(self, i: int, j: int, old: Sequence[int], new: Sequence[int]) -> None:
        """Matches the producers of the operands of matched operators."""
        graph, other = self.old.graph, self.new.graph
        for t, u in zip(graph.ops[i].inputs, other.ops[j].inputs, strict=False):
            a = graph.producers[t] if t >= 0 else -1
            b = other.producers[u] if u >= 0 else -1
            if a >= 0 and b >= 0 and self.to_new[a] < 0 and self.to_old[b] < 0 and old[a] == new[b]:
                self.pair(a, b)

    def spread_down(self, i: int, j: int, old: Sequence[int], new: Sequence[int]) -> None:
        """Matches the readers of the results of matched operators where only one on each side can be meant."""
        graph, other = self.old.graph, self.new.graph
        for t, u in zip(graph.ops[i].outputs, other.ops[j].outputs, strict=False):
            if t < 0 or u < 0:
                continue
            ones = _unique([(old[a], p) for a, p in self.old.uses[t]], [self.to_new[a] for a, _ in self.old.uses[t]])
            others = _unique([(new[b], p) for b, p in self.new.uses[u]], [self.to_old[b] for b, _ in self.new.uses[u]])
            for label, place in ones.items():
                if place >= 0 and others.get(label, -1) >= 0:
                    a, b = self.old.uses[t][place][0], self.new.uses[u][others[label]][0]
                    if self.to_new[a] < 0 and self.to_old[b] < 0:
                        self.pair(a, b)

    # -- in order ---------------------------------------------------------------------------------------------

    def match_in_order(self, old: Sequence[int], new: Sequence[int]) -> None:
        """Pairs operators of equal labels that stand in the same order between pairs that stand in the same order."""
        for ones, others in list(self.gaps()):
            for a, b in common([old[i] for i in ones], [new[j] for j in others]):
                self.pair(ones[a], others[b])
        self.spread(old, new)

    def gaps(self) -> Iterator[tuple[list[int], list[int]]]:
        """The operators left between pairs, in the order in which the graphs compute them."""
        place = {j: at for at, j in enumerate(self.new.order)}
        anchors = [i for i in self.old.order if self.to_new[i] >= 0]
        kept = {anchors[k] for k in rising([place[self.to_new[i]] for i in anchors])}
        ones: list[int] = []
        start = 0
        for i in (*self.old.order, -1):
            if i >= 0 and i not in kept:
                ones += [i] if self.to_new[i] < 0 else []
                continue
            end = place[self.to_new[i]] if i >= 0 else len(self.new.order)
            others = [j for j in self.new.order[start:end] if self.to_old[j] < 0]
            if ones and others:
                yield ones, others
            ones, start = [], end + 1

    # -- of another kind --------------------------------------------------------------------------------------

    def match_replaced(self) -> None:
        """Pairs operators of different kinds that read the same and are read by the same."""
        ones = [_context(self.old, i, self.to_new) for i in range(len(self.to_new))]
        own_numbers = range(len(self.to_old))
        others = [_context(self.new, j, own_numbers, self.to_old) for j in own_numbers]
        self.match_unique(ones, others)


def _rounds(old: Labels, new: Labels) -> Iterator[tuple[Sequence[int | None], Sequence[int | None]]]:
    """The labels of one level in the order in which they are tried."""
    yield old.before, new.before
    yield old.behind, new.behind
    if old.level in _TELLING:
        for radius in _RADII:
            yield old.around(radius), new.around(radius)
        yield _weighty(old), _weighty(new)


def _weighty(labels: Labels) -> list[int | None]:
    """The label of each operator that reads weights, None for others."""
    graph = labels.side.graph
    constants = [[t for t in op.reads if graph.tensors[t].kind is Kind.CONSTANT] for op in graph.ops]
    sizes = [sum(graph.tensors[t].nbytes for t in read if labels.side.contents.values[t]) for read in constants]
    return [own if size >= _WEIGHTS else None for own, size in zip(labels.own, sizes, strict=True)]


def _unique(labels: Sequence[Hashable], partners: Sequence[int]) -> dict[Hashable, int]:
    """The place of each label that occurs once among unmatched operators; -1 for others. None is no label."""
    places: dict[Hashable, int] = {}
    for place, (label, partner) in enumerate(zip(labels, partners, strict=True)):
        if partner < 0 and label is not None:
            places[label] = -1 if label in places else place
    return places


def _context(side: Structure, i: int, names: Sequence[int], partners: Sequence[int] | None = None) -> Hashable:
    """What surrounds an operator, its neighbours by the numbers in `names`; None where one of them has none.

    `partners` says which operators have a number on the other side too; None: those with a number in `names`.
    """
    graph, known = side.graph, names if partners is None else partners
    op, makers, users = graph.ops[i], list[Hashable](), list[Hashable]()
    for t in op.reads:
        maker = graph.producers[t]
        if maker >= 0 and known[maker] < 0:
            return None
        if maker >= 0 or t in graph.inputs:
            makers.append((names[maker], graph.ops[maker].outputs.index(t)) if maker >= 0 else graph.inputs.index(t))
    for t in op.writes:
        if any(known[user] < 0 for user, _ in side.uses[t]):
            return None
        users.append((sorted((names[user], operand) for user, operand in side.uses[t]), side.ends.get(t, ())))
    return (tuple(makers), repr(users)) if users and makers else None


def rising(values: Sequence[int]) -> list[int]:
    """The places of a longest rising run among `values`, which are distinct. Cost: O(n log n)."""
    ends: list[int] = []
    tails: list[int] = []
    before = [-1] * len(values)
    for place, value in enumerate(values):
        at = bisect.bisect_left(ends, value)
        before[place] = tails[at - 1] if at else -1
        ends[at : at + 1], tails[at : at + 1] = [value], [place]
    run: list[int] = []
    place = tails[-1] if tails else -1
    while place >= 0:
        run.append(place)
        place = before[place]
    return run[::-1]


def common(ones: Sequence[int], others: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of places of a longest common subsequence; where that takes too long, the n-th of a kind with the n-th."""
    first = 0
    while first < min(len(ones), len(others)) and ones[first] == others[first]:
        first += 1
    last = 0
    while last < min(len(ones), len(others)) - first and ones[-1 - last] == others[-1 - last]:
        last += 1
    inner, outer = ones[first : len(ones) - last], others[first : len(others) - last]
    middle = _by_rank(inner, outer) if len(inner) * len(outer) > _MOST_PAIRS else _longest(inner, outer)
    ends = [(len(ones) - k, len(others) - k) for k in range(last, 0, -1)]
    return [*((k, k) for k in range(first)), *((first + a, first + b) for a, b in middle), *ends]


def _longest(ones: Sequence[int], others: Sequence[int]) -> list[tuple[int, int]]:
    """Two points for a pair and one more where the next of both is a pair too, so that runs stay together."""
    rows, columns = len(ones), len(others)
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    taken = [[-1] * (columns + 1) for _ in range(rows + 1)]
    for a in range(rows - 1, -1, -1):
        for b in range(columns - 1, -1, -1):
            if ones[a] == others[b]:
                taken[a][b] = 2 + max(best[a + 1][b + 1], taken[a + 1][b + 1] + 1)
            best[a][b] = max(taken[a][b], best[a + 1][b], best[a][b + 1])
    pairs, a, b, inside = [], 0, 0, False
    while a < rows and b < columns:
        if taken[a][b] == best[a][b] or inside:
            pairs.append((a, b))
            inside = 0 <= taken[a + 1][b + 1] >= best[a + 1][b + 1] - 1
            a, b = a + 1, b + 1
        elif best[a + 1][b] == best[a][b]:
            a += 1
        else:
            b += 1
    return pairs


def _by_rank(ones: Sequence[int], others: Sequence[int]) -> list[tuple[int, int]]:
    places: dict[int, deque[int]] = defaultdict(deque)
    for b, label in enumerate(others):
        places[label].append(b)
    return [(a, places[label].popleft()) for a, label in enumerate(ones) if places[label]]
