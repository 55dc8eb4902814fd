"""A graph as units that run as a whole, the bytes that a sequence keeps alive, and the graph that runs it.

A unit is an operator with those behind it that only rename or overwrite its result: they share its memory, so that
nothing is saved between them. A sequence of units may name one several times; who reads a value gets the latest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from modelplan.model import Graph, Kind, Op, Runtime, Tensor, present
from modelplan.ops.run_costs import op_macs
from modelplan.planning import aliasing
from modelplan.planning.schedulers.ordering_problem import has_side_effects
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """Operators that run one after the other: what they read and write, as numbers of values, their work, scratch.

    `work` is the multiply-accumulates, and one for each element that another operator writes. `repeatable`: running it
    again gives the same values.
    """

    ops: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    work: int
    scratch: int
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a graph in an order that runs, the bytes of each value, and the values that live to the end.

    `given` are the values that nothing writes: graph inputs.
    """

    units: tuple[Unit, ...]
    sizes: tuple[int, ...]
    given: frozenset[int]
    kept: frozenset[int]

    @property
    def work(self) -> int:
        """The work of one run without repetitions."""
        return sum(unit.work for unit in self.units)

    def work_of(self, sequence: Sequence[int]) -> int:
        return sum(self.units[u].work for u in sequence)

    def occupancy(self, sequence: Sequence[int]) -> list[int]:
        """The bytes alive while each unit of the sequence runs. Cost: O(reads and writes of the sequence)."""
        alive = set(self.kept)
        held = sum(self.sizes[v] for v in alive)
        bytes_alive = []
        for u in reversed(sequence):
            unit = self.units[u]
            for v in (*unit.writes, *unit.reads):
                if v not in alive:
                    alive.add(v)
                    held += self.sizes[v]
            bytes_alive.append(held + unit.scratch)
            for v in unit.writes:
                alive.remove(v)
                held -= self.sizes[v]
        return bytes_alive[::-1]

    def peak(self, sequence: Sequence[int]) -> int:
        """The most bytes alive at once."""
        return max(self.occupancy(sequence), default=0)

    @property
    def floor(self) -> int:
        """What every sequence needs: the largest unit with its operands, and what lives to the end all the time."""
        always = self.given & self.kept
        each = [({*u.reads, *u.writes} | always, u.scratch) for u in self.units] or [(set(always), 0)]
        return max(sum(self.sizes[v] for v in values) + scratch for values, scratch in each)


def units_of(graph: Graph, order: Sequence[int], runtime: Runtime, mode: str) -> Units:
    """The units of `graph` in `order`, sharing memory as alias mode `mode` lets a single operand be shared.

    Graph inputs live to the end where the runtime keeps them. State counts nothing, and what touches it is not
    repeated; neither are random numbers and operators with bodies.
    """
    folded = _folded(graph, order, runtime, mode)
    home = _homes(graph, order, folded)
    planned = [tensor.kind is Kind.ACTIVATION for tensor in graph.tensors]
    number: dict[int, int] = {}
    sizes: list[int] = []

    def value_of(t: int) -> int:
        while t in folded:
            t = folded[t]
        if t not in number:
            number[t] = len(sizes)
            sizes.append(0)
        return number[t]

    for t in (*graph.inputs, *(t for op in order for t in graph.ops[op].writes)):
        if planned[t]:
            v = value_of(t)
            sizes[v] = max(sizes[v], graph.tensors[t].nbytes)
    members: dict[int, list[int]] = {}
    for op in order:
        members.setdefault(home[op], []).append(op)
    units = []
    for ops in members.values():
        writes = dict.fromkeys(value_of(t) for op in ops for t in graph.ops[op].writes if planned[t])
        read = {t for op in ops for t in graph.ops[op].reads if planned[t]}
        reads = {value_of(t) for t in read if graph.producers[t] >= 0 or t in graph.inputs} - set(writes)
        work = sum(_work(graph, op) for op in ops)
        scratch = max(sum(graph.ops[op].scratch) for op in ops)
        again = all(_repeatable(graph, op) for op in ops)
        units.append(Unit(tuple(ops), tuple(sorted(reads)), tuple(writes), work, scratch, again))
    ends = (*graph.outputs, *(graph.inputs if runtime.inputs == "live" else ()))
    kept = frozenset(value_of(t) for t in ends if planned[t] and (graph.producers[t] >= 0 or t in graph.inputs))
    given = frozenset(value_of(t) for t in graph.inputs if planned[t])
    return Units(tuple(units), tuple(sizes), given, kept)


def _folded(graph: Graph, order: Sequence[int], runtime: Runtime, mode: str) -> dict[int, int]:
    """For each tensor that shares memory within its unit the tensor that it shares with."""
    views = {merge.op for merge in aliasing.storages(graph, "views", runtime).merges} if mode != "none" else set()
    offered = aliasing.storages(graph, "safe" if mode == "max" else mode, runtime)
    shared = {}
    for merge in aliasing.take_offers(graph, offered, order, runtime).merges:
        op = graph.ops[merge.op]
        fed = [t for t in op.reads if graph.producers[t] >= 0 or t in graph.inputs]
        sole = merge.op in views or graph.readers[merge.into] == (merge.op,)
        if fed == [merge.into] and op.writes == (merge.tensor,) and graph.producers[merge.into] >= 0 and sole:
            shared[merge.tensor] = merge.into
    return shared


def _homes(graph: Graph, order: Sequence[int], folded: Mapping[int, int]) -> dict[int, int]:
    """For each operator the first operator of its unit."""
    home: dict[int, int] = {}
    for op in order:
        writes = graph.ops[op].writes
        into = folded.get(writes[0]) if len(writes) == 1 else None
        home[op] = op if into is None else home[graph.producers[into]]
    return home


def _work(graph: Graph, op: int) -> int:
    macs = op_macs(graph, graph.ops[op])
    return macs or sum(prod(graph.tensors[t].shape) for t in graph.ops[op].writes)


def _repeatable(graph: Graph, index: int) -> bool:
    op = graph.ops[index]
    touches = any(graph.tensors[t].kind is Kind.STATE for t in (*op.reads, *op.writes))
    return not (op.subgraphs or touches or has_side_effects(graph.format, op.kind))


def repeated(graph: Graph, sequence: Sequence[int]) -> tuple[Graph, tuple[int, ...]]:
    """The graph with the operators of `sequence` in this order, and for each of them the one that it is.

    The last run of an operator writes its own tensors; each run before writes tensors of its own, named after them.

    Raises:
        ValueError: an operator reads what none before it has written.
    """
    left = {op: sequence.count(op) for op in set(sequence)}
    tensors: list[Tensor] = list(graph.tensors)
    names = {tensor.name for tensor in tensors}
    latest: dict[int, int] = {}
    ops = []
    for number in sequence:
        op = graph.ops[number]
        left[number] -= 1
        for t in op.reads:
            if graph.producers[t] >= 0 and t not in latest:
                raise ValueError(f"{graph.label(number)} reads {graph.tensors[t].name!r}, which is not written yet")
        inputs = tuple(latest.get(t, t) for t in op.inputs)
        for t in present(op.outputs):
            latest[t] = t
            if left[number]:
                latest[t] = len(tensors)
                tensors.append(replace(graph.tensors[t], name=_free(graph.tensors[t].name, left[number], names)))
        outputs = tuple(latest.get(t, t) for t in op.outputs)
        name = f"{op.name} (run {left[number] + 1} from the end)" if left[number] else op.name
        ops.append(replace(op, name=name, inputs=inputs, outputs=outputs))
    new_ops: tuple[Op, ...] = tuple(ops)
    return replace(graph, tensors=tuple(tensors), ops=new_ops, fingerprint="", source=""), tuple(sequence)


def _free(name: str, runs: int, taken: set[str]) -> str:
    """An unused name for a result that is computed `runs` more times later."""
    free = f"{name}/run{runs}"
    while free in taken:
        free += "_"
    taken.add(free)
    return free
