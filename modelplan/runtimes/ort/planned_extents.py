"""What a run has to reach so that its memory is that of the plan: extents and branches that values decide."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from modelplan.formats.onnx.onnx_sequences import BEAMED, DOMAIN, SEARCHES
from modelplan.model import Graph, Kind, Op
from modelplan.primitives.errors import ModelError
from modelplan.runtimes.ort.feeding import Feeds, rule_of
from modelplan.runtimes.ort.measuring import refusal
from modelplan.runtimes.ort.reaching import Aim, unreached

#: Branches whose needs differ by no more bytes count as equal.
_ALIKE = 4096
_BEAMED, _GREEDY = ({f"{DOMAIN}.{kind}" for kind in kinds} for kinds in (BEAMED, SEARCHES - BEAMED))
#: Tells what a run reaches of an aim, as `reaching.reached` does.
Ask = Callable[[Aim], Mapping[str, Any]]


def feeds_that_reach(graph: Graph, feeds: Feeds, ask: Ask) -> Feeds:
    """What inputs are fed with so that a run has the extents that are planned.

    Raises:
        SessionRefusedError: the model does not run with any of the values that are tried.
        ModelError: a run has other extents.
    """
    aim = aim_of(graph)
    if not aim.names:
        return feeds
    fed, answer = _answered(feeds, ask, aim)
    if missed := unreached(aim, answer):
        way_out = (
            "its inputs do not reach it" if feeds.path else "--feeds FILE.npz or --value gives values that reach it"
        )
        raise ModelError(f"a run has {'; '.join(missed)}: {way_out}")
    return fed


def feeds_that_run(feeds: Feeds, ask: Ask) -> Feeds:
    """What inputs are fed with so that the model runs, where it does not with drawn values.

    Raises:
        SessionRefusedError: it runs with none of the values that are tried.
    """
    return _answered(feeds, ask, Aim({}, {}))[0]


def _answered(feeds: Feeds, ask: Ask, aim: Aim) -> tuple[Feeds, Mapping[str, Any]]:
    answer = ask(aim)
    if answer["problem"]:
        raise refusal(answer["problem"])
    return replace(feeds, rules={name: rule_of(*rule) for name, rule in answer["rules"].items()}), answer


def aim_of(graph: Graph) -> Aim:
    """The shapes that the caller or the file states, conditions of larger branches, turns of loops, whole sequences.

    Those in bodies are among them, by names that no output can have.
    """
    outer = dict(truth for op in graph.ops for truth in _truths(graph, op))
    inner = {
        f"{name} in {body.name}": truth for body in graph.bodies for op in body.ops for name, truth in _truths(body, op)
    }
    ends = dict(end for op in graph.ops for end in _ends(graph, op))
    hidden = {f"{n} in {body.name}": end for body in graph.bodies for op in body.ops for n, end in _ends(body, op)}
    return Aim(dict(graph.stated), outer | inner, ends | hidden)


def _truths(graph: Graph, op: Op) -> Iterator[tuple[str, bool]]:
    """Values of an operator's operands that have to be above zero, or not, for its largest body to run."""
    computed = [(t, graph.tensors[t]) for t in op.inputs[:2] if t >= 0]
    varying = [tensor.name for t, tensor in computed if tensor.kind is not Kind.CONSTANT]
    if op.kind == "If" and varying and len(op.subgraphs) == 2:
        then, otherwise = map(most_alive, op.subgraphs)
        if abs(then - otherwise) > _ALIKE:
            yield varying[0], then > otherwise
    if op.kind == "Loop":
        yield from ((name, True) for name in varying)


def _ends(graph: Graph, op: Op) -> Iterator[tuple[str, tuple[int, int]]]:
    """The sequences that an operator searches for, with a number that all have from a place on where it ends early.

    Sequences of beams are filled up with it, so that the last number tells; others have it in place of the word that
    ends them, and behind that whatever was in memory.
    """
    beamed, number = op.kind in _BEAMED, op.attribute("pad_token_id")
    if (beamed or op.kind in _GREEDY) and op.outputs[0] >= 0 and isinstance(number, int):
        tokens, prompt = graph.tensors[op.outputs[0]], graph.tensors[op.inputs[0]].shape
        yield tokens.name, (number, tokens.shape[-1] - 1 if beamed else prompt[1])


def most_alive(graph: Graph) -> int:
    """The most bytes that are alive at once in the order of the file, bodies of operators among them."""
    last = {t: step for step, op in enumerate(graph.ops) for t in op.reads}
    last |= dict.fromkeys(graph.outputs, len(graph.ops))
    alive = most = 0
    for step, op in enumerate(graph.ops):
        alive += sum(graph.tensors[t].nbytes for t in op.writes)
        most = max(most, alive + max(map(most_alive, op.subgraphs), default=0))
        ended = {t for t in (*op.reads, *op.writes) if graph.producers[t] >= 0 and last.get(t, step) == step}
        alive -= sum(graph.tensors[t].nbytes for t in ended)
    return most
