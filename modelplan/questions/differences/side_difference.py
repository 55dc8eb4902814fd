"""The difference of two sides: parts, peaks, and every operator and input that differs, in order of effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from modelplan.answers.model_difference import (
    Bytes,
    Change,
    Column,
    Difference,
    Named,
    OpChange,
    PeakPart,
    PeakStep,
    Setting,
)
from modelplan.answers.summary import bytes_of
from modelplan.model import BufferKind, Graph, Kind, Requirement, bounds
from modelplan.planning.matching.matching import matched_ops, rising
from modelplan.planning.matching.wiring import Pairing, runtime_operands
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.questions.differences.details import Bodies, Details, became, described, details_of
from modelplan.questions.differences.sides import Maker, Side

#: How many operators that another stands behind are named.
_MOST_NAMED = 3
_NOTHING = Bytes(None, None)
#: Settings that mean nothing where a side has none of the kind.
_WHERE_KNOWN = ("ABI",)


def difference(old: Side, new: Side) -> Difference:
    """What two sides differ in. Operators are matched by structure, names play no part.

    Raises:
        RequestError: the models are of different formats, whose operators have nothing in common.
    """
    if old.graph.format != new.graph.format:
        raise RequestError(
            f"{old.name} is {old.graph.format}, {new.name} is {new.graph.format}: their operators are not the same,"
            " and a converter rewrites them; `modelplan check` judges each by itself"
        )
    comparison = _Comparison(old, new, Pairing(old.structure, new.structure, matched_ops(old.structure, new.structure)))
    of_ops = list(comparison.op_changes())
    changes = tuple(sorted([*of_ops, *comparison.input_changes()], key=_by_effect))
    whole, sessions = old.whole and new.whole, (old.needed.session, new.needed.session)
    return Difference(
        old.name,
        new.name,
        (old.needed.basis, new.needed.basis),
        whole,
        old.counted if old.counted == new.counted else "memory",
        tuple(_settings(dict(old.settings), dict(new.settings))),
        Bytes(_arena(old.needed, whole=whole), _arena(new.needed, whole=whole)),
        Bytes(sessions[0].by_itself, sessions[1].by_itself) if sessions[0] and sessions[1] else None,
        tuple(_parts(old.needed, new.needed, whole=whole)),
        (
            Named("constants", Bytes(bytes_of(old.graph, Kind.CONSTANT), bytes_of(new.graph, Kind.CONSTANT))),
            *([Named("file", Bytes(old.file_bytes, new.file_bytes))] if old.file_bytes and new.file_bytes else []),
        ),
        (_head(old.needed), _head(new.needed)),
        (_peak_step(old), _peak_step(new)),
        tuple(sorted(comparison.peak_parts(), key=lambda part: -abs(part.bytes.delta))),
        changes,
        comparison.moved,
        (old.needed.refusals, new.needed.refusals),
        (old.capacity, new.capacity),
        (old.live, new.live),
        tuple(_columns(comparison, of_ops)),
    )


def _settings(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Setting]:
    for name in dict.fromkeys((*old, *new)):
        if name in _WHERE_KNOWN and not (name in old and name in new):
            continue
        before, after = old.get(name, "none"), new.get(name, "none")
        if before != after:
            yield Setting(name, before, after)


def _arena(needed: Requirement, *, whole: bool) -> int | None:
    if needed.refusals:
        return None
    return needed.arena if whole or not needed.macro else needed.head


def _head(needed: Requirement) -> int | None:
    return None if needed.refusals or not needed.macro else needed.head


def _parts(old: Requirement, new: Requirement, *, whole: bool) -> Iterator[Named]:
    """The parts of both sides by name, in the order of the new side; of one that is refused none."""
    sums = [_sums(needed, whole=whole) for needed in (old, new)]
    for name in dict.fromkeys((*sums[1], *sums[0])):
        before, after = sums[0].get(name), sums[1].get(name)
        if before or after:
            yield Named(name, Bytes(before, after))


def _sums(needed: Requirement, *, whole: bool) -> dict[str, int]:
    if needed.refusals:
        return {}
    if needed.macro and not whole:
        return {"activations": needed.head}
    return {part.name: part.nbytes for part in needed.parts}


def _peak_step(side: Side) -> PeakStep:
    order, step = side.plan.schedule.order, side.peak_step
    label = side.graph.label(order[step]) if order else "no operator"
    return PeakStep(step, label, side.live[step], bounds.height(side.plan.problem, side.plan.placement))


def _by_effect(change: OpChange) -> tuple[object, ...]:
    """Operators that differ by themselves first, then by effect, then by their own bytes, then by place."""
    ranks = {Change.FOLLOWS: 1, Change.VALUES: 2}
    bytes_of = change.outputs.delta + change.scratch.delta
    place = change.after if change.after >= 0 else change.before
    return ranks.get(change.change, 0), -abs(change.effect), -abs(bytes_of), place, change.before, change.label


@dataclass(frozen=True, eq=False)
class _Comparison:
    old: Side
    new: Side
    pairing: Pairing

    @cached_property
    def figures(self) -> tuple[_Figures, _Figures]:
        """The bytes of the operators and inputs of each side."""
        return _Figures(self.old), _Figures(self.new)

    @cached_property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        """The steps of operators that keep their order on both sides: the longest such sequence."""
        partners = ((step, self.pairing.to_new[i]) for step, i in enumerate(self.old.plan.schedule.order))
        pairs = [(step, self.new.steps[j]) for step, j in partners if j >= 0]
        return tuple(pairs[place] for place in rising([partner for _, partner in pairs]))

    @property
    def moved(self) -> int:
        """How many operators changed their place in the order."""
        return len(self.pairing.pairs) - len(self.in_place)

    # -- operators and inputs ----------------------------------------------------------------------------------

    def op_changes(self) -> Iterator[OpChange]:
        """Operators that differ, are added or gone."""
        sizes, bodies = (self.old.plan.graph, self.new.plan.graph), Bodies()
        for i, j in self.pairing.pairs:
            details = details_of(self.pairing, i, j, sizes)
            details.own += bodies.inside(self.pairing, i, j)
            yield from self.pair_change(i, j, details)
        for i in self.pairing.gone:
            yield self.op_change(Change.GONE, i, -1, self.alone(self.old, i))
        for j in self.pairing.added:
            yield self.op_change(Change.ADDED, -1, j, self.alone(self.new, j))

    def pair_change(self, i: int, j: int, details: Details) -> Iterator[OpChange]:
        """The change of an operator that both sides have; nothing where it is the same."""
        for name, figure in (("scratch", _Figures.scratch), ("kept", _Figures.kept)):
            before, after = figure(self.figures[0], i), figure(self.figures[1], j)
            if before is not None and after is not None and before != after:
                caused = details.own or details.following
                (details.following if caused else details.own).append(f"{name} {before:,} -> {after:,} bytes")
        if details.own:
            yield self.op_change(Change.CHANGED, i, j, details.all)
        elif details.following:
            yield self.op_change(Change.FOLLOWS, i, j, details.all)
        elif details.values:
            yield self.op_change(Change.VALUES, i, j, details.all)

    def op_change(self, change: Change, i: int, j: int, details: Iterable[str]) -> OpChange:
        """The change of an operator with its figures."""
        old, new = self.figures
        label = self.new.graph.label(j) if j >= 0 else self.old.graph.label(i)
        makers = (("op", i) if i >= 0 else None, ("op", j) if j >= 0 else None)
        columns = [Bytes(column(old, i) if i >= 0 else None, column(new, j) if j >= 0 else None) for column in _COLUMNS]
        outputs, scratch, kept, weights, live = columns
        kept = kept if self.old.kept and self.new.kept else _NOTHING
        held = self.in_peak(*makers)
        return OpChange(change, i, j, label, tuple(details), outputs, scratch, kept, weights, held, live)

    def in_peak(self, old: Maker | None, new: Maker | None) -> Bytes:
        """Bytes alive at the peak of each side that these makers, matched to each other, account for."""
        before, after = (figures.in_peak for figures in self.figures)
        return Bytes(None if old is None else before.get(old, 0), None if new is None else after.get(new, 0))

    def alone(self, side: Side, i: int) -> Iterator[str]:
        """What an operator of one side alone is, and what it reads."""
        graph, figures = side.graph, self.figures[side is self.new]
        for t in graph.ops[i].writes:
            yield f"output {side.plan.graph.tensors[t].nbytes:,} bytes ({described(graph.tensors[t])})"
        if figures.scratch(i):
            yield f"scratch {figures.scratch(i):,} bytes"
        if figures.weights(i):
            yield f"constants {figures.weights(i):,} bytes"
        makers = dict.fromkeys(graph.producers[t] for t in runtime_operands(graph, i))
        named = [f"op {maker} {graph.ops[maker].kind}" for maker in makers if maker >= 0]
        if len(named) > _MOST_NAMED:
            named = [*named[: _MOST_NAMED - 1], f"{len(named) - _MOST_NAMED + 1} more"]
        if named:
            yield f"behind {' and '.join(named)}"

    def input_changes(self) -> Iterator[OpChange]:
        """Inputs and state that differ, are added or gone."""
        pairs = self.pairing.inputs
        for t, u in pairs.items():
            yield from self.input_pair(t, u)
        for t in _sources(self.old.graph):
            if t not in pairs:
                yield self.input_change(Change.GONE, t, -1, [described(self.old.graph.tensors[t])])
        for u in _sources(self.new.graph):
            if u not in pairs.values():
                yield self.input_change(Change.ADDED, -1, u, [described(self.new.graph.tensors[u])])

    def input_pair(self, t: int, u: int) -> Iterator[OpChange]:
        """The change of an input that both sides have; nothing where it is the same."""
        before, after = self.old.graph.tensors[t], self.new.graph.tensors[u]
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            old, new = (side.plan.graph.tensors[k].nbytes for side, k in ((self.old, t), (self.new, u)))
            said = f"{old:,} -> {new:,} bytes ({became(before, after)})"
            yield self.input_change(Change.CHANGED, t, u, [said])
        elif self.old.contents.quantisation[t] != self.new.contents.quantisation[u]:
            yield self.input_change(Change.VALUES, t, u, ["other quantisation"])

    def input_change(self, change: Change, t: int, u: int, details: Sequence[str]) -> OpChange:
        side, k = (self.new, u) if u >= 0 else (self.old, t)
        sizes = Bytes(*(s.plan.graph.tensors[x].nbytes if x >= 0 else None for s, x in ((self.old, t), (self.new, u))))
        held = self.in_peak(("tensor", t) if t >= 0 else None, ("tensor", u) if u >= 0 else None)
        numbers = [s.graph.inputs.index(x) if x in s.graph.inputs else -1 for s, x in ((self.old, t), (self.new, u))]
        what = f"input {numbers[u >= 0]}" if numbers[u >= 0] >= 0 else side.graph.tensors[k].kind
        label = f"{what} {side.graph.tensors[k].name!r}"
        nothing = _NOTHING
        before, after = numbers
        return OpChange(change, before, after, label, tuple(details), sizes, nothing, nothing, nothing, held, nothing)

    # -- the peak ----------------------------------------------------------------------------------------------

    def peak_parts(self) -> Iterator[PeakPart]:
        """What is alive at either peak, the same thing on both sides in one row."""
        old = {self.name_on_new(*key): row for key, row in self.figures[0].peak_rows.items()}
        new = self.figures[1].peak_rows
        for key in dict.fromkeys((*new, *old)):
            before, after = old.get(key), new.get(key)
            tensors, maker, _ = after or before or ((), "", 0)
            yield PeakPart(tensors, maker, Bytes(before and before[2], after and after[2]))

    def name_on_new(self, maker: Maker, slot: int) -> tuple[Maker, int]:
        """The key of an old peak row on the new side; a key of its own where the new side lacks it."""
        kind, number = maker
        there = self.pairing.to_new[number] if kind == "op" else self.pairing.inputs.get(number, -1)
        return ((kind, there) if there >= 0 else (f"old {kind}", number)), slot


def _columns(comparison: _Comparison, changes: Sequence[OpChange]) -> Iterator[Column]:
    """The steps of both sides in one order: those before the next operator that stayed, old ones first, then it."""
    became = {(change.before, change.after): change.change for change in changes}
    orders = comparison.old.plan.schedule.order, comparison.new.plan.schedule.order
    partners = {j: i for i, j in comparison.pairing.pairs}

    def column(old: int, new: int) -> Column:
        i = orders[0][old] if old >= 0 else partners.get(orders[1][new], -1)
        j = orders[1][new] if new >= 0 else comparison.pairing.to_new[i]
        graph, op = (comparison.new.graph, j) if new >= 0 else (comparison.old.graph, i)
        moved = i >= 0 and j >= 0 and -1 in (old, new)
        return Column(old, new, f"{graph.ops[op].kind} {op}", became.get((i, j)), moved)

    old = new = 0
    for before, after in (*comparison.in_place, (len(orders[0]), len(orders[1]))):
        yield from (column(step, -1) for step in range(old, before))
        yield from (column(-1, step) for step in range(new, after))
        if before < len(orders[0]):
            yield column(before, after)
        old, new = before + 1, after + 1


def _sources(graph: Graph) -> list[int]:
    """What operators read at run time although none makes it, and inputs that none reads."""
    read = {t for op in graph.ops for t in op.reads}
    producers = graph.producers
    return [
        t
        for t, tensor in enumerate(graph.tensors)
        if producers[t] < 0 and tensor.kind is not Kind.CONSTANT and (t in read or t in graph.inputs)
    ]


class _Figures:
    """The bytes that each operator and input of a side accounts for."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.peak_rows: dict[tuple[Maker, int], tuple[tuple[str, ...], str, int]] = {}
        self.in_peak: dict[Maker, int] = {}
        for buffer in side.peak_buffers:
            self._add_row(buffer)
        self.first_reader: dict[int, int] = {}
        for i, op in enumerate(side.graph.ops):
            for t in op.reads:
                self.first_reader.setdefault(t, i)

    def _add_row(self, buffer: int) -> None:
        side, row = self.side, self.side.plan.problem[buffer]
        maker = side.maker(buffer)
        graph, slot = side.graph, 0
        if row.kind is BufferKind.SCRATCH:
            slot = -1
        elif maker[0] == "op":
            outputs = [m.tensor for m in row.members if graph.producers[m.tensor] == maker[1]]
            slot = graph.ops[maker[1]].outputs.index(outputs[0])
        while (maker, slot) in self.peak_rows:
            slot -= 1
        label = graph.label(maker[1]) if maker[0] == "op" else _origin(graph, maker[1])
        tensors = [m.tensor for m in row.members]
        names = tuple(graph.tensors[t].name or f"tensor {t}" for t in tensors) or ("scratch",)
        self.peak_rows[maker, slot] = names, label, row.size
        self.in_peak[maker] = self.in_peak.get(maker, 0) + row.size

    def outputs(self, i: int) -> int:
        """Bytes of what an operator writes."""
        graph = self.side.plan.graph
        return sum(graph.tensors[t].nbytes for t in graph.ops[i].writes)

    def scratch(self, i: int) -> int:
        """Bytes of its working memory."""
        return sum(self.side.plan.graph.ops[i].scratch)

    def kept(self, i: int) -> int | None:
        """Bytes that the runtime keeps for it; None where that is not known."""
        return self.side.kept[i] if self.side.kept else None

    def weights(self, i: int) -> int:
        """Bytes of the constants that it is the first to read."""
        graph = self.side.graph
        own = [graph.tensors[t] for t in graph.ops[i].reads if self.first_reader[t] == i]
        constants = [t for t in own if t.kind is Kind.CONSTANT]
        return sum(max(t.file_bytes, 0) for t in constants)

    def live(self, i: int) -> int:
        """All bytes alive while it runs."""
        step = self.side.steps[i]
        return self.side.live[step] if step >= 0 else 0


_COLUMNS = (_Figures.outputs, _Figures.scratch, _Figures.kept, _Figures.weights, _Figures.live)


def _origin(graph: Graph, t: int) -> str:
    if t in graph.inputs:
        return "the caller"
    return "the run before" if graph.tensors[t].kind is Kind.STATE else "nothing in the model"
