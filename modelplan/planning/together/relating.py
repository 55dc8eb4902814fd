"""Reads how the runs of several models relate: who takes turns, which output is which input, what must be kept."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from modelplan.answers.shared_plan import Pipe, Place, Relation
from modelplan.model import Graph
from modelplan.primitives.errors import RequestError

#: What takes turns where all models do.
ALL = "all"


def related(
    graphs: Mapping[str, Graph],
    in_turn: Iterable[Sequence[str]] = (),
    pipelines: Iterable[str] = (),
    keep: Iterable[str] = (),
) -> Relation:
    """The relation of the models called by the keys of `graphs`.

    Args:
        graphs: the models.
        in_turn: names of models of which never two are active at the same time; ("all",) stands for all of them.
        pipelines: `A:out=B:in`, where `out` and `in` are names or numbers of an output and an input; `A=B` where there
            is but one of each.
        keep: `A:tensor`, an input or output whose bytes nothing else uses; `A:inputs` and `A:outputs` stand for all.

    Raises:
        RequestError: no such model or tensor, an input that is fed twice, pipelines that form a circle, or models of
            one pipeline that do not relate to a third model in the same way.
    """
    names = tuple(graphs)
    pipes = tuple(_pipe(graphs, text) for text in pipelines)
    _check_inputs(graphs, pipes)
    order = _order(names, pipes)
    turns = {pair for group in in_turn for pair in _pairs(names, group)}
    relation = Relation(names, frozenset(turns), pipes, (), order)
    turns |= {pair for unit in relation.units for pair in combinations(sorted(unit), 2)}
    kept = dict.fromkeys(place for text in keep for place in _kept(graphs, text))
    relation = replace(relation, turns=frozenset(turns), kept=tuple(kept))
    _check_units(relation)
    return relation


def all_in_turn(relation: Relation) -> Relation:
    """The relation with all models taking turns."""
    return replace(relation, turns=frozenset(combinations(range(len(relation.names)), 2)))


def _pairs(names: Sequence[str], group: Sequence[str]) -> Iterator[tuple[int, int]]:
    members = list(range(len(names))) if tuple(group) == (ALL,) else [_model(names, name) for name in group]
    if len(members) < 2:
        raise RequestError(f"in turn: {','.join(group)!r} names one model, expected two or more")
    if len(set(members)) < len(members):
        raise RequestError(f"in turn: {','.join(group)!r} names a model twice")
    return combinations(sorted(members), 2)


def _model(names: Sequence[str], name: str) -> int:
    if name not in names:
        raise RequestError(f"no model {name!r}; there are: {', '.join(names)}")
    return list(names).index(name)


def _split(names: Sequence[str], text: str) -> tuple[int, str]:
    """The model and the rest of `MODEL:REST`; the longest name that fits counts."""
    fitting = [name for name in names if text == name or text.startswith(f"{name}:")]
    if not fitting:
        return _model(names, text.partition(":")[0]), ""
    name = max(fitting, key=len)
    return _model(names, name), text[len(name) + 1 :]


def _pipe(graphs: Mapping[str, Graph], text: str) -> Pipe:
    """The pipe that `A:out=B:in` says; an equals sign inside of a tensor's name is found by trying each."""
    cuts = [i for i, letter in enumerate(text) if letter == "="]
    if not cuts:
        raise RequestError(f"pipeline {text!r}: expected A:out=B:in")
    names, problem = tuple(graphs), None
    for cut in cuts:
        try:
            from_model, output = _split(names, text[:cut])
            to_model, given = _split(names, text[cut + 1 :])
            source = _tensor(graphs[names[from_model]], names[from_model], output, "output")
            target = _tensor(graphs[names[to_model]], names[to_model], given, "input")
        except RequestError as reason:
            problem = problem or reason
            continue
        if from_model == to_model:
            raise RequestError(f"pipeline {text!r}: a model cannot feed itself before it has run")
        return Pipe(Place(from_model, source), Place(to_model, target))
    raise RequestError(f"pipeline {text!r}: {problem}")


def _tensor(graph: Graph, name: str, wanted: str, side: str) -> int:
    """The input or output of a graph that a name or a number means."""
    tensors = graph.outputs if side == "output" else graph.inputs
    named = [t for t in tensors if graph.tensors[t].name == wanted]
    if not wanted and len(tensors) == 1:
        return tensors[0]
    if len(named) == 1:
        return named[0]
    if wanted.isascii() and wanted.isdecimal() and len(wanted) < 10 and int(wanted) < len(tensors):
        return tensors[int(wanted)]
    listed = ", ".join(f"{i} {graph.tensors[t].name!r}" for i, t in enumerate(tensors[:8])) or "none"
    more = f" and {len(tensors) - 8} more" if len(tensors) > 8 else ""
    sought = f"{side} {wanted!r}" if wanted else f"{side} without a name"
    raise RequestError(f"{name} has no {sought}, or several; its {side}s are: {listed}{more}")


def _check_inputs(graphs: Mapping[str, Graph], pipes: Sequence[Pipe]) -> None:
    """Every input is fed by one output at most."""
    names, fed = tuple(graphs), set()
    for pipe in pipes:
        if pipe.target in fed:
            name = names[pipe.target.model]
            tensor = graphs[name].tensors[pipe.target.tensor].name
            raise RequestError(f"input {tensor!r} of {name} is fed by two pipelines")
        fed.add(pipe.target)


def _order(names: Sequence[str], pipes: Sequence[Pipe]) -> tuple[int, ...]:
    """The models in the order given, those of one pipeline side by side and each behind those that feed it."""
    import networkx as nx

    feeds: nx.DiGraph[int] = nx.DiGraph()
    feeds.add_nodes_from(range(len(names)))
    feeds.add_edges_from((pipe.source.model, pipe.target.model) for pipe in pipes)
    if not nx.is_directed_acyclic_graph(feeds):
        circle = [names[edge[0]] for edge in nx.find_cycle(feeds)]
        raise RequestError(f"the pipelines form a circle: {' -> '.join([*circle, circle[0]])}")
    order: list[int] = []
    for model in range(len(names)):
        if model not in order:
            unit = feeds.subgraph(nx.node_connected_component(feeds.to_undirected(as_view=True), model))
            order += nx.lexicographical_topological_sort(unit)
    return tuple(order)


def _kept(graphs: Mapping[str, Graph], text: str) -> Iterator[Place]:
    """The tensors that `MODEL:TENSOR`, `MODEL:inputs` or `MODEL:outputs` means."""
    names = tuple(graphs)
    model, wanted = _split(names, text)
    graph = graphs[names[model]]
    sides = {"inputs": graph.inputs, "outputs": graph.outputs}
    if wanted in sides:
        yield from (Place(model, t) for t in sides[wanted])
        return
    ends = dict.fromkeys((*graph.inputs, *graph.outputs))
    tensors = [t for t in ends if graph.tensors[t].name == wanted]
    if len(tensors) != 1:
        listed = ", ".join(graph.tensors[t].name for t in ends)
        raise RequestError(
            f"keep {text!r}: expected {names[model]}:TENSOR with an input or output of it, or"
            f" :inputs or :outputs; its inputs and outputs are: {listed}"
        )
    yield Place(model, tensors[0])


def _check_units(relation: Relation) -> None:
    """A model relates to all models of a pipeline in the same way: they are active as one."""
    for unit, other in combinations(relation.units, 2):
        states = {relation.take_turns(a, b): (a, b) for a in unit for b in other}
        if len(states) > 1:
            yes, no = (" and ".join(relation.names[m] for m in states[turns]) for turns in (True, False))
            raise RequestError(
                f"{yes} take turns, {no} may be active at the same time, although a pipeline makes them active as one:"
                " say it of all models of the pipeline or of none"
            )
