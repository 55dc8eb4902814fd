"""Which tensors may share memory: storage classes from the graph, the order, and the rules that are asked for.

Views do not depend on the order and are merged at once. Joins and splits do not either, but forcing them can raise
the peak, so each is tried. Overwrites depend on the order: `storages` offers them, `settled` takes those that hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from modelplan.aliasing.classes import Classes
from modelplan.aliasing.legality import World, refusal
from modelplan.aliasing.parts import sites
from modelplan.aliasing.rules import MODES, overwrites, view_of
from modelplan.errors import RequestError
from modelplan.ops import facts
from modelplan.runtimes import RUNTIMES
from modelplan.types import Aliases, Graph, Kind, Member, Merge, Offer, Runtime

#: What an exchange of classes costs: takes some away, puts others there, returns the most bytes alive at once then.
Swap = Callable[[Iterable[Sequence[Member]], Iterable[Sequence[Member]]], int]


def storages(graph: Graph, mode: str = "views", runtime: Runtime | None = None, swap: Swap | None = None) -> Aliases:
    """The storage classes of every tensor that needs memory, the merges that made them, and what the order may add.

    Without `swap`, which knows an order (`lifetimes.Occupancy`), no join or split is written in place; without
    `runtime` the generic one's facts hold.

    Raises:
        RequestError: unknown mode; the message lists the modes.

    Cost: O(tensors + ops), and a swap or two for each join or split.
    """
    if mode not in MODES:
        raise RequestError(f"no alias mode {mode!r}; there are: {', '.join(MODES)}")
    runtime = runtime or RUNTIMES["generic"]
    classes = Classes(graph, ((Member(t),) for t in planned(graph)))
    merges = list(_views(graph, classes, mode, runtime))
    if mode == "max" and swap is not None:
        merges += _parts_in_place(graph, classes, runtime, swap)
    offers = tuple(_offers(World(graph, classes, runtime), mode))
    return Aliases(tuple(classes.rows()), tuple(merges), offers)


def settled(graph: Graph, aliases: Aliases, order: Sequence[int], runtime: Runtime) -> Aliases:
    """The classes after the offers that hold in `order` were taken: in that order, one for each op.

    Cost: O(offers * size of a class).
    """
    world = World(graph, Classes(graph, aliases.classes), runtime, positions(order))
    offered: dict[int, list[Offer]] = {}
    for offer in aliases.offers:
        offered.setdefault(offer.op, []).append(offer)
    merges = list(aliases.merges)
    for index in order:
        for offer in offered.get(index, ()):
            operand = graph.ops[index].inputs.index(offer.over)
            if refusal(world, index, operand, _group(graph, index)):
                continue
            world.classes.join(offer.tensor, offer.over)
            saved = graph.tensors[offer.tensor].nbytes
            merges.append(Merge(offer.tensor, offer.over, index, offer.rule, saved))
            break
    return Aliases(tuple(world.classes.rows()), tuple(merges))


def positions(order: Sequence[int]) -> list[int]:
    """The step of each op."""
    found = [0] * len(order)
    for step, index in enumerate(order):
        found[index] = step
    return found


def planned(graph: Graph) -> list[int]:
    """The tensors that need memory at run time: inputs, state, and whatever an op writes or is lent to work in."""
    state = {t for t, tensor in enumerate(graph.tensors) if tensor.kind is Kind.STATE}
    touched = {t for op in graph.ops for t in (*op.reads, *op.writes)}
    mine = {t for t in {*graph.inputs, *touched} if graph.tensors[t].kind not in (Kind.CONSTANT, Kind.CAPTURED)}
    return sorted(t for t in state | mine if graph.tensors[t].nbytes)


def _group(graph: Graph, index: int) -> str:
    return facts(graph.format, graph.ops[index].kind).group


def _views(graph: Graph, classes: Classes, mode: str, runtime: Runtime) -> Iterator[Merge]:
    """Joins each view with its source, producers before readers."""
    for index in topological(graph):
        found = view_of(graph, index, mode, runtime)
        if found is None:
            continue
        view, source, delta, rule = found
        if view in classes and source in classes and not classes.together(view, source):
            classes.join(view, source, delta)
            yield Merge(view, source, index, rule, graph.tensors[view].nbytes)


def topological(graph: Graph) -> Sequence[int]:
    """The ops so that producers precede readers: the file's order where it does."""
    import networkx as nx

    if all(producer < reader for producer, reader in graph.dag.edges):
        return range(len(graph.ops))
    return list(nx.lexicographical_topological_sort(graph.dag))


def _offers(world: World, mode: str) -> Iterator[Offer]:
    """The overwrites that some order may allow, the operand first that the runtime would take first."""
    for index in range(len(world.graph.ops)):
        for operand, rule in overwrites(world.graph, index, mode, world.runtime):
            op = world.graph.ops[index]
            if not refusal(world, index, operand, _group(world.graph, index)):
                yield Offer(index, op.outputs[0], op.inputs[operand], rule)


def _parts_in_place(graph: Graph, classes: Classes, runtime: Runtime, swap: Swap) -> Iterator[Merge]:
    """Writes each join or split in place that lowers the peak, or keeps it and saves bytes.

    Largest first, each tried on top of those kept: forced everywhere they raise the peak of many networks.
    """
    best = swap((), classes.rows())
    for site in sites(graph):
        trial = classes.around(site.tensors)
        before = tuple(trial.rows())
        if not site.merged(trial, runtime):
            continue
        after = tuple(trial.rows())
        if (peak := swap(before, after)) <= best:
            best = peak
            yield from site.merged(classes, runtime)
        else:
            swap(after, before)
