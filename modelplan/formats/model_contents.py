"""What a Graph leaves out of a model file because no memory depends on it: values, quantisation, all options.

Who compares two models reads it beside the graphs.
"""

from __future__ import annotations

from modelplan.model import Graph, Value
from modelplan.primitives.lazy_records import dataclass

#: Scales, zero points and the axis that they run along; empty for a tensor without.
Quantisation = tuple[tuple[float, ...], tuple[int, ...], int] | None
#: The options of an operator by name, sorted.
Settings = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the file says beside the graph, in the order of the graph's tensors and operators.

    `values` holds a digest of the values of each constant, empty for other tensors and where the file does not hold
    them. `bodies` are the contents of the bodies of each operator.
    """

    values: tuple[str, ...]
    quantisation: tuple[Quantisation, ...]
    options: tuple[Settings, ...]
    bodies: tuple[tuple[Contents, ...], ...]


def known_contents(graph: Graph) -> Contents:
    """The contents as far as the graph alone tells: memory-relevant options, no values."""
    by_part: dict[int, Contents] = {}
    for part in (*reversed(graph.bodies), graph):  # bodies before the operators that run them
        by_part[id(part)] = Contents(
            ("",) * len(part.tensors),
            (None,) * len(part.tensors),
            tuple(known_options(op.attributes) for op in part.ops),
            tuple(tuple(by_part[id(body)] for body in op.subgraphs) for op in part.ops),
        )
    return by_part[id(graph)]


def known_options(attributes: Settings) -> Settings:
    """The attributes that are options of the operator, sorted, without the values of its operands."""
    return tuple(sorted((name, value) for name, value in attributes if not name.startswith("operand ")))
