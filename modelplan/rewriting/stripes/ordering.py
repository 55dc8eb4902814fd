"""Orders in which values that wait take few bytes."""

from collections.abc import Iterator, Sequence

from modelplan.model import Graph, Kind

#: The most operators between the first readers of a value that runs a late reader earlier.
_NEAR = 12


def hoisted(graph: Graph, order: Sequence[int] = ()) -> list[int]:
    """An order, the file's where none is given, with operators that shrink a value only they read at earlier steps.

    Such as the convolutions beside a backbone: their results wait instead of the maps that these are made of.
    """
    order = list(order or range(len(graph.ops)))
    for _ in range(len(order)):
        step = {op: place for place, op in enumerate(order)}
        move = next(_early(graph, step), None)
        if move is None:
            break
        op, place = move
        order.remove(op)
        order.insert(place, op)
    return order


def _early(graph: Graph, step: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Operators that should run earlier, each with its new place."""
    for t, readers in enumerate(graph.readers):
        if len(readers) < 2 or graph.producers[t] < 0 or t in graph.outputs:
            continue
        *others, last = sorted(readers, key=step.__getitem__)
        place = step[others[0]]
        computed = [step[graph.producers[x]] for x in graph.ops[last].reads if graph.producers[x] >= 0]
        small = sum(graph.tensors[y].nbytes for y in graph.ops[last].writes) < graph.tensors[t].nbytes
        if small and max(computed) < place and step[last] > step[others[-1]] + 1 and step[others[-1]] - place < _NEAR:
            yield last, place


def late_reads(graph: Graph, order: Sequence[int]) -> tuple[int, ...]:
    """An order in which each variable is read right before what it is read for, if nothing assigns to it till then."""
    settled = list(order)
    for index in order:
        op, place = graph.ops[index], settled.index(index)
        readers = {reader for t in op.writes for reader in graph.readers[t]}
        if op.kind != "READ_VARIABLE" or not readers or set(op.writes) & set(graph.outputs):
            continue
        first = min(map(settled.index, readers))
        between = [graph.ops[other] for other in settled[place + 1 : first]]
        if not any(other.kind == "ASSIGN_VARIABLE" and set(other.reads) & set(op.reads) for other in between):
            settled.insert(first - 1, settled.pop(place))
    return tuple(settled)


def late_writes(graph: Graph, order: Sequence[int]) -> tuple[int, ...]:
    """An order in which each value for a variable is made and assigned after all else that reads what it is made from.

    It can then lie over that. Nothing that reads or assigns the variable comes to stand on the other side.
    """
    settled = list(order)
    for index in order:
        maker = _made_for(graph, index)
        place = settled.index(index)
        if maker is None or settled[place - 1] != maker:
            continue
        made_from = {t for t in graph.ops[maker].reads if graph.tensors[t].kind is Kind.ACTIVATION}
        last = max(settled.index(reader) for t in made_from for reader in graph.readers[t])
        between = settled[place + 1 : last + 1]
        if not any(set(graph.ops[other].reads) & set(graph.ops[index].reads) for other in between):
            settled[place - 1 : max(last, place) + 1] = [*between, maker, index]
    return tuple(settled)


def _made_for(graph: Graph, index: int) -> int | None:
    """The operator that makes what another one assigns to a variable, and makes it for nobody else."""
    op = graph.ops[index]
    makers = {graph.producers[t] for t in op.reads if graph.readers[t] == (index,) and graph.producers[t] >= 0}
    known = op.kind == "ASSIGN_VARIABLE" and len(makers) == 1
    maker = next(iter(makers)) if known else None
    reads = graph.ops[maker].reads if maker is not None else ()
    return maker if any(graph.tensors[t].kind is Kind.ACTIVATION for t in reads) else None
