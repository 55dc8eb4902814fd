"""Figures of operators as node data for Google's Model Explorer, one file for each figure."""

import json
from collections.abc import Collection, Mapping, Sequence

from modelplan.answers.model_difference import Difference
from modelplan.formats.node_keys import NodeKeys
from modelplan.model import Plan, bounds

#: Colours from the least to the largest value: a sequence of one hue; and for differences below, at and above 0.
_RISING = ((0.0, "#f7fbff"), (0.5, "#6baed6"), (1.0, "#08306b"))
_LESS, _SAME, _MORE = "#1b9e77", "#ffffff", "#d95f02"
_TITLES = {
    "live": "live bytes",
    "share": "% of the peak",
    "scratch": "scratch bytes",
    "kept": "bytes kept in the tail",
    "delta": "live bytes, new minus old",
}


def figures_of(plan: Plan, nodes: NodeKeys, kept: Sequence[int] = ()) -> dict[str, str]:
    """The files of a plan by figure: `live`, `share` in % of the peak, `scratch`, and `kept` where it is known.

    `kept` holds the bytes that the runtime keeps for each operator beside what it plans.
    """
    order = plan.schedule.order
    alive = bounds.live_bytes(plan.problem, max(len(order), 1)).tolist()
    peak = max(alive)
    live = {op: alive[step] for step, op in enumerate(order)}
    values: dict[str, Mapping[int, float]] = {
        "live": live,
        "share": {op: round(100 * size / peak, 2) if peak else 0.0 for op, size in live.items()},
        "scratch": {op: sum(plan.graph.ops[op].scratch) for op in order},
    }
    if len(kept) == len(order):
        values["kept"] = dict(enumerate(kept))
    return {figure: _content(figure, of_ops, nodes) for figure, of_ops in values.items()}


def differences_of(difference: Difference, order: Sequence[int], nodes: NodeKeys) -> dict[str, str]:
    """The file `delta`: how many more bytes are alive while an operator of the new side runs than on the old side.

    `order` and `nodes` are those of the new side. Operators that only one side has are left out.
    """
    old, new = difference.live
    deltas = {order[c.new]: new[c.new] - old[c.old] for c in difference.columns if c.old >= 0 and c.new >= 0}
    deltas |= {c.after: c.live.delta for c in difference.changes if c.before >= 0 and c.after >= 0}
    return {"delta": _content("delta", deltas, nodes)}


def _content(figure: str, values: Mapping[int, float], nodes: NodeKeys) -> str:
    """The JSON of one figure: results by key below the id of the graph."""
    results = {nodes.keys[op]: {"value": value} for op, value in sorted(values.items()) if op in nodes.keys}
    stops = _diverging(values.values()) if figure == "delta" else _RISING
    gradient = [{"stop": stop, "bgColor": colour} for stop, colour in stops]
    return (
        json.dumps({nodes.graph: {"name": _TITLES[figure], "results": results, "gradient": gradient}}, indent=1) + "\n"
    )


def _diverging(values: Collection[float]) -> tuple[tuple[float, str], ...]:
    """Colours by shares of the way from the least value to the largest, white where a value is 0."""
    least, most = min(values, default=0), max(values, default=0)
    colours = [_LESS if value < 0 else _MORE if value > 0 else _SAME for value in (least, most)]
    middle = ((-least / (most - least), _SAME),) if least < 0 < most else ()
    return (0.0, colours[0]), *middle, (1.0, colours[1])
