"""Orders in which what belongs into one stretch stands together: large values late, small results early."""

from modelplan.rewriting.striped_onnx.layers import Reading

#: A value counts as large from this share of the largest one on.
_LARGE = 1 / 64
#: An operator joins those that it feeds where its result is at least this share of theirs.
_ALIKE = 1 / 4


def clustered_order(reading: Reading) -> list[int]:
    """The order in which large values are computed right before their readers, and results right after operands.

    Operators are moved where the bytes alive between do not grow: those by rows that end in a value at least as large
    as what dies with them go to its first reader; those with smaller results go behind their last operand.
    Cost: quadratic in the number of operators.
    """
    graph = reading.graph
    order = list(range(len(graph.ops)))
    most = max((tensor.nbytes for tensor in graph.tensors), default=0)
    for index in reversed(range(len(graph.ops))):
        if _output_bytes(reading, {index}) >= _LARGE * most and not set(graph.ops[index].writes) & set(graph.outputs):
            order = _later(reading, order, index)
    for index in range(len(graph.ops)):
        order = _earlier(reading, order, index)
    return order


def _later(reading: Reading, order: list[int], index: int) -> list[int]:
    """The order with an operator, and those that only feed it, before its first reader, where that costs nothing."""
    graph = reading.graph
    step = {op: place for place, op in enumerate(order)}
    readers = [step[reader] for t in graph.ops[index].writes for reader in graph.readers[t]]
    for some in ({index} | _feeding(reading, index), {index}):
        first, last = min(readers, default=0), max(step[op] for op in some)
        if first > last + 1 and _output_bytes(reading, {index}) >= _dying(reading, some, step, last):
            moved, kept = [op for op in order if op in some], [op for op in order if op not in some]
            place = kept.index(order[first])
            return kept[:place] + moved + kept[place:]
    return order


def _earlier(reading: Reading, order: list[int], index: int) -> list[int]:
    """The order with an operator right behind its last operand, where its results are smaller than what dies there."""
    graph = reading.graph
    step = {op: place for place, op in enumerate(order)}
    computed = [step[graph.producers[t]] for t in graph.ops[index].reads if graph.producers[t] >= 0]
    place = max(computed, default=step[index]) + 1
    if place >= step[index] or _output_bytes(reading, {index}) >= _dying(reading, {index}, step, step[index]):
        return order
    kept = [op for op in order if op != index]
    return [*kept[:place], index, *kept[place:]]


def _feeding(reading: Reading, index: int) -> set[int]:
    """The operators by rows whose results only this operator or others of these read."""
    graph, feeders, pending = reading.graph, {index}, [index]
    enough = _ALIKE * _output_bytes(reading, {index})
    while pending:
        for t in graph.ops[pending.pop()].reads:
            maker = graph.producers[t]
            if maker < 0 or maker in feeders or not set(graph.readers[t]) <= feeders or t in graph.outputs:
                continue
            if graph.tensors[t].nbytes >= enough and reading.goes_by_rows(maker):
                feeders.add(maker)
                pending.append(maker)
    return feeders - {index}


def _output_bytes(reading: Reading, ops: set[int]) -> int:
    return sum(reading.graph.tensors[t].nbytes for op in ops for t in reading.graph.ops[op].writes)


def _dying(reading: Reading, ops: set[int], step: dict[int, int], last: int) -> int:
    """Bytes of values from outside of the operators that nothing reads after the step `last`."""
    graph = reading.graph
    read = {t for op in ops for t in graph.ops[op].reads if graph.producers[t] >= 0 and graph.producers[t] not in ops}
    return sum(graph.tensors[t].nbytes for t in read if all(step[reader] <= last for reader in graph.readers[t]))
