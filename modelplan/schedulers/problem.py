"""From a graph to the problem of ordering it: what each storage keeps alive, and which op runs before which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from modelplan.lifetimes import class_bytes, padded
from modelplan.schedulers.side_effects import precedences
from modelplan.types import Aliases, Graph, Kind, Member, OrderProblem, Overwrite, Runtime, Storage


def order_problem(
    graph: Graph, aliases: Aliases, runtime: Runtime, extra: Iterable[tuple[int, int]] = ()
) -> OrderProblem:
    """The order problem of `graph`, its storages in the order of `aliases.classes`; `extra` are more precedences.

    Agrees with `lifetimes.buffers` on what is alive at each step, with two exceptions that keep a bound a bound: an
    input that no op reads counts nothing, and scratch that several ops use counts only while they run.

    Cost: O(tensors + ops + edges).
    """
    edges = {*graph.flows, *precedences(graph), *extra}
    storages = tuple(_storage(graph, members, runtime) for members in aliases.classes)
    scratch = tuple(sum(padded(size, runtime) for size in op.scratch) for op in graph.ops)
    return OrderProblem(len(graph.ops), storages, scratch, tuple(sorted(edges)), tuple(_overwrites(aliases, storages)))


def _overwrites(aliases: Aliases, storages: Sequence[Storage]) -> Iterator[Overwrite]:
    """The overwrites that the aliasing offers, between the storages that the operator reads and writes."""
    of = aliases.class_of
    for offer in aliases.offers:
        losing, to = of[offer.over], of[offer.tensor]
        if offer.op in storages[losing].readers and offer.op in storages[to].writers:
            yield Overwrite(offer.op, losing, to, min(storages[losing].size, storages[to].size))


def _storage(graph: Graph, members: tuple[Member, ...], runtime: Runtime) -> Storage:
    tensors = [m.tensor for m in members]
    is_state = any(graph.tensors[t].kind is Kind.STATE for t in tensors)
    if is_state and runtime.state == "separate":
        return Storage(0, (), (), from_start=True)
    size = padded(class_bytes(graph, members), runtime)
    readers = {op for t in tensors for op in graph.readers[t]}
    producers = {graph.producers[t] for t in tensors} - {-1}
    fed = any(t in graph.inputs for t in tensors)
    kept = any(t in graph.outputs or (fed and runtime.inputs == "live") for t in tensors)
    if is_state:
        return Storage(size, (), tuple(sorted(readers)), from_start=True, to_end=True)
    if not producers and not fed:  # scratch that no op fills: alive while its users run
        return Storage(size, tuple(sorted(readers)), (), to_end=kept)
    # An op that reads and writes the storage leaves its bytes in place, so it counts as a reader.
    return Storage(size, () if fed else tuple(sorted(producers - readers)), tuple(sorted(readers)), fed, kept)
