"""Which tensors may share memory: storage classes from the graph, the order, and the rules that are asked for.

Views do not depend on the order and are merged at once. Joins and splits do not either, but forcing them can raise
the peak, so each is tried. Overwrites depend on the order: `storages` offers them, `take_offers` takes those that hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from modelplan.model import Aliases, Graph, Kind, Member, Merge, Offer, Runtime
from modelplan.ops import facts
from modelplan.planning.aliasing.classes import Classes
from modelplan.planning.aliasing.legality import SharingContext, refusal
from modelplan.planning.aliasing.rules import (
    MODES,
    declines,
    kinds_with_overwrites,
    kinds_with_views,
    overwrites_of_alike,
    view_of,
)
from modelplan.planning.aliasing.side_by_side import sites
from modelplan.primitives.errors import RequestError
from modelplan.runtimes import RUNTIMES

#: Replaces the first classes by the second ones, and returns the most bytes alive at once from then on.
Swap = Callable[[Iterable[Sequence[Member]], Iterable[Sequence[Member]]], int]


def require_mode(mode: str) -> None:
    """Checks that there is an alias mode called `mode`."""
    if mode not in MODES:
        raise RequestError(f"no alias mode {mode!r}; there are: {', '.join(MODES)}")


def storages(graph: Graph, mode: str = "views", runtime: Runtime | None = None, swap: Swap | None = None) -> Aliases:
    """The storage classes of every tensor that needs memory, the merges that made them, and what the order may add.

    Without `swap`, which knows an order (`lifetimes.Occupancy`), no join or split is written in place; without
    `runtime` the generic one's facts hold.

    Raises:
        RequestError: unknown mode; the message lists the modes.

    Cost: O(tensors + ops), and a swap or two for each join or split.
    """
    require_mode(mode)
    runtime = runtime or RUNTIMES["generic"]
    classes = Classes(graph, ((Member(t),) for t in planned(graph)))
    merges = list(_views(graph, classes, mode, runtime))
    if mode == "max" and swap is not None:
        merges += _parts_in_place(graph, classes, runtime, swap)
    offers = tuple(_offers(SharingContext(graph, classes, runtime), mode))
    return Aliases(tuple(classes.rows()), tuple(merges), offers)


def take_offers(graph: Graph, aliases: Aliases, order: Sequence[int], runtime: Runtime) -> Aliases:
    """The classes after each op, in `order`, took the first of its offers that is legal there.

    Cost: O(offers * size of a class).
    """
    if not aliases.offers:
        return aliases
    context = SharingContext(graph, Classes(graph, aliases.classes), runtime, positions(order))
    offered: dict[int, list[Offer]] = {}
    for offer in aliases.offers:
        offered.setdefault(offer.op, []).append(offer)
    merges = list(aliases.merges)
    for index in order:
        for offer in offered.get(index, ()):
            op = graph.ops[index]
            if refusal(context, index, op.inputs.index(offer.over), facts(graph.format, op.kind).group):
                continue
            context.classes.join(offer.tensor, offer.over)
            merges.append(Merge(offer.tensor, offer.over, index, offer.rule, graph.sizes[offer.tensor]))
            break
    return Aliases(tuple(context.classes.rows()), tuple(merges))


def as_placed(aliases: Aliases, offsets: Sequence[int]) -> Aliases:
    """The classes as a finished plan has them: members share bytes only where its offsets say so.

    `offsets` holds one for each tensor; a tensor that has none there, or -1, is in a class of its own.
    """
    classes: dict[tuple[int, int], list[Member]] = {}
    for number, members in enumerate(aliases.classes):
        for m in members:
            at = offsets[m.tensor] if m.tensor < len(offsets) else -1
            own = -1 - m.tensor  # below every start that an offset gives, unless that breaks the class anyway
            classes.setdefault((number, at - m.delta if at >= m.delta else own), []).append(m)
    split = Aliases(tuple(map(_from_start, classes.values())))
    home = split.class_of
    return replace(split, merges=tuple(m for m in aliases.merges if home[m.tensor] == home[m.into]))


def _from_start(members: Sequence[Member]) -> tuple[Member, ...]:
    """The members with their distances from the first byte that one of them has."""
    low = min(m.delta for m in members)
    return tuple(Member(m.tensor, m.delta - low) for m in members)


def positions(order: Sequence[int]) -> list[int]:
    """The step of each op."""
    steps = [0] * len(order)
    for step, index in enumerate(order):
        steps[index] = step
    return steps


def planned(graph: Graph) -> list[int]:
    """The tensors that need memory at run time: inputs, state, and all that ops read or write; no constants."""
    _, used = graph.uses
    elsewhere, tensors = (Kind.CONSTANT, Kind.CAPTURED), graph.tensors
    candidates = sorted({*graph.inputs, *graph.state, *used.tolist()})
    return [t for t in candidates if graph.sizes[t] and tensors[t].kind not in elsewhere]


def _views(graph: Graph, classes: Classes, mode: str, runtime: Runtime) -> Iterator[Merge]:
    """Joins each view with its source, producers before readers."""
    kinds = kinds_with_views(graph, mode, runtime)
    for index in graph.producers_first if kinds else ():
        if graph.ops[index].kind not in kinds:
            continue
        view = view_of(graph, index, mode, runtime)
        if view is None or view.tensor not in classes or view.source not in classes:
            continue
        if not classes.together(view.tensor, view.source):
            classes.join(view.tensor, view.source, view.delta)
            rule = f"view: {graph.ops[index].kind} leaves the bytes as they are"
            yield Merge(view.tensor, view.source, index, rule, graph.sizes[view.tensor])


def _offers(context: SharingContext, mode: str) -> Iterator[Offer]:
    """The overwrites that some order may allow; of one op in the order in which the runtime tries its operands."""
    graph, runtime = context.graph, context.runtime
    kinds = kinds_with_overwrites(graph, mode, runtime)
    able = [index for index, op in enumerate(graph.ops) if op.kind in kinds] if kinds else []
    alike = {first: overwrites_of_alike(graph, first, mode, runtime) for first in {graph.first_alike[i] for i in able}}
    for index in able:
        op = graph.ops[index]
        for operand, rule in alike[graph.first_alike[index]]:
            if not declines(graph, index, operand, mode, runtime) and not refusal(
                context, index, operand, facts(graph.format, op.kind).group
            ):
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
