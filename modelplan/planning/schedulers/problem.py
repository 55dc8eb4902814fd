"""From a graph to the problem of ordering it: what each storage keeps alive, and which op runs before which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from modelplan.model import Aliases, Graph, Member, OrderProblem, Overwrite, Runtime, Storage
from modelplan.planning.lifetimes import class_sizes, padded
from modelplan.planning.schedulers.side_effects import precedences


def order_problem(
    graph: Graph, aliases: Aliases, runtime: Runtime, extra: Iterable[tuple[int, int]] = ()
) -> OrderProblem:
    """The order problem of `graph`, its storages in the order of `aliases.classes`; `extra` are more precedences.

    Agrees with `lifetimes.buffers` on what is alive at each step, with two exceptions that keep a bound a bound: an
    input that no op reads counts nothing, and scratch that several ops use counts only while they run.

    Cost: O(tensors + ops + edges).
    """
    edges = {*graph.flows, *precedences(graph), *extra}
    sizes = class_sizes(graph, aliases.classes, runtime).tolist()
    ends = _Ends(graph, runtime)
    storages = tuple(ends.storage(*row) for row in zip(aliases.classes, sizes, strict=True))
    scratch = tuple([sum(padded(size, runtime) for size in op.scratch) if op.scratch else 0 for op in graph.ops])
    return OrderProblem(len(graph.ops), storages, scratch, tuple(sorted(edges)), tuple(_overwrites(aliases, storages)))


def _overwrites(aliases: Aliases, storages: Sequence[Storage]) -> Iterator[Overwrite]:
    """The overwrites that the aliasing offers, between the storages that the operator reads and writes."""
    of = aliases.class_of
    for offer in aliases.offers:
        losing, to = of[offer.over], of[offer.tensor]
        if offer.op in storages[losing].readers and offer.op in storages[to].writers:
            yield Overwrite(offer.op, losing, to, min(storages[losing].size, storages[to].size))


class _Ends:
    """What is there before the first operator and after the last, and so what storages are alive."""

    def __init__(self, graph: Graph, runtime: Runtime) -> None:
        self.graph, self.state, self.fed = graph, frozenset(graph.state), frozenset(graph.inputs)
        self.state_apart = runtime.state == "separate"
        self.kept = frozenset((*graph.outputs, *(graph.inputs if runtime.inputs == "live" else ())))

    def storage(self, members: tuple[Member, ...], size: int) -> Storage:
        """The storage of a class of `size` bytes."""
        tensors = [m.tensor for m in members]
        readers = _distinct([self.graph.readers[t] for t in tensors])
        if not self.state.isdisjoint(tensors):
            apart = self.state_apart
            return Storage(0, (), (), from_start=True) if apart else Storage(size, (), readers, True, True)
        producers = _distinct([(p,) for t in tensors if (p := self.graph.producers[t]) >= 0])
        fed, kept = not self.fed.isdisjoint(tensors), not self.kept.isdisjoint(tensors)
        if not producers and not fed:  # scratch that no op fills: alive while its users run
            return Storage(size, readers, (), to_end=kept)
        # An op that reads and writes the storage leaves its bytes in place, so it counts as a reader.
        writers = () if fed else tuple(sorted({*producers} - {*readers}))
        return Storage(size, writers, readers, fed, kept)


def _distinct(ops: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The ops of ascending rows, each once, ascending."""
    return ops[0] if len(ops) == 1 else tuple(sorted({op for row in ops for op in row}))
