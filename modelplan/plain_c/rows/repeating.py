"""Operators that run once more for a reader that comes much later, so that what they make need not wait for it.

As in a U-Net, whose first maps are read again at its end: of a map that two convolutions make of the input the rows
that wait may be many times those of the input. Both runs are the same operators on the same rows; the second makes
values of its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from modelplan.model.c_program import Repeat
from modelplan.plain_c.rows.row_graph import RowGraph, RowValue
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.plain_c.rows.stage_search import StageSearch
from modelplan.plain_c.rows.tile_search import ChainCost
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.search_effort import CEffort

#: The most operators that run again for one reader, which is what a plan may state.
_LONGEST = 3


@dataclass(frozen=True, slots=True)
class RepeatedRows:
    """A graph of rows in which operators run again, and the shares of multiply-accumulates and time that they add."""

    rows: RowGraph
    macs: float
    time: float


def with_repeats(rows: RowGraph, repeats: Iterable[Repeat]) -> RowGraph:
    """The graph with a value for each operator that runs again; it stands right before the one that reads it."""
    for repeat in repeats:
        rows = _with_repeat(rows, repeat)
    return rows


def _with_repeat(rows: RowGraph, repeat: Repeat) -> RowGraph:
    graph, operators, values = rows.graph, dict(rows.operators), list(rows.values)
    tensors, ops, value_of, origins = list(graph.tensors), list(graph.ops), dict(rows.value_of), dict(rows.origins)
    tensor = last = operators[repeat.operators[0]].operands[0]
    added = range(len(ops), len(ops) + len(repeat.operators))
    for number, again in zip(repeat.operators, added, strict=True):
        source, result = ops[number], len(tensors)
        _read_by(values, value_of[tensor], again)
        inputs = tuple(tensor if t == operators[number].operands[0] else t for t in source.inputs)
        ops.append(replace(source, inputs=inputs, outputs=(result,)))
        operators[again] = replace(operators[number], operands=(tensor,))
        tensors.append(tensors[source.outputs[0]])
        origins[again], last, tensor = number, source.outputs[0], result
        value_of[result] = len(values)
        former = values[value_of[last]]
        values.append(RowValue((result,), former.nbytes, former.alignment, again, ()))
    reader = operators[repeat.reader]
    operators[repeat.reader] = replace(reader, operands=tuple(tensor if t == last else t for t in reader.operands))
    first = values[value_of[last]]
    values[value_of[last]] = replace(first, readers=tuple(n for n in first.readers if n != repeat.reader))
    _read_by(values, value_of[tensor], repeat.reader)
    at = rows.order.index(repeat.reader)
    return replace(
        rows,
        graph=replace(graph, tensors=tuple(tensors), ops=tuple(ops)),
        order=(*rows.order[:at], *added, *rows.order[at:]),
        operators=operators,
        values=tuple(values),
        value_of=value_of,
        origins=origins,
        repeats=(*rows.repeats, repeat),
    )


def _read_by(values: list[RowValue], value: int, number: int) -> None:
    values[value] = replace(values[value], readers=(*values[value].readers, number))


def possible_repeats(rows: RowGraph) -> Iterator[Repeat]:
    """For each map that several operators read those that could run again for the last of them.

    Each reads one map by windows and makes one; the first may read what others make, or the input.
    """
    for value in rows.values:
        yield from _repeats_of(rows, value)


def _repeats_of(rows: RowGraph, value: RowValue) -> Iterator[Repeat]:
    if len(value.readers) < 2 or len(value.tensors) > 1:
        return
    run: tuple[int, ...] = ()
    number, reader = value.producer, max(value.readers, key=rows.order.index)
    while number in rows.operators and len(run) < _LONGEST and _can_repeat(rows, number):
        run = (number, *run)
        yield Repeat(run, reader)
        number = rows.values[rows.value_of[rows.operators[number].operands[0]]].producer


def _can_repeat(rows: RowGraph, number: int) -> bool:
    facts = rows.operators[number]
    tensor = rows.graph.ops[number].writes[0]
    return facts.tiled and not facts.scratch and number not in rows.origins and tensor not in rows.graph.outputs


def _promising(rows: RowGraph, effort: CEffort) -> Iterator[Repeat]:
    """Those of the largest maps that are read again much later."""
    place = {number: i for i, number in enumerate(rows.order)}

    def waits(value: RowValue) -> int:
        return max(place[n] for n in value.readers) - min(place[n] for n in value.readers) if value.readers else 0

    late = [value for value in rows.values if value.producer in place and waits(value) > effort.waiting]
    for value in sorted(late, key=lambda value: -value.nbytes)[: effort.repeated_maps]:
        yield from _repeats_of(rows, value)


def repeated_rows(search: StageSearch, most_macs: float, most_time: float) -> RepeatedRows | None:
    """The graph in which the operators run again that save most memory for the work; None where none saves enough."""
    rows, pushed, effort = search.graph.rows, search.graph.pushed, search.effort
    cost, (macs, time) = ChainCost(rows, effort), (0.0, 0.0)
    whole, least = cost.whole, search.least_load(1)
    for _ in range(effort.repeats):
        tried = []
        for repeat in _promising(rows, effort):
            more = tuple(a + b / max(c, 1) for a, b, c in zip((macs, time), cost.again(repeat), whole, strict=True))
            if more[0] <= most_macs and more[1] <= most_time:
                again = with_repeats(rows, [repeat])
                needs = StageSearch(StagedGraph(again, pushed, search.graph.check), effort=effort).least_load(1)
                tried.append((needs, more, again))
        best = min(tried, key=lambda some: some[:2], default=None)
        if best is None or best[0] > (1 - effort.repeat_gain) * least:
            break
        least, (macs, time), rows = best
    return RepeatedRows(rows, macs, time) if rows.repeats else None
