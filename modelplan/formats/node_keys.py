"""What Google's Model Explorer calls the graph and the operators of a model file, so that data can be laid on them.

Its adapter for TFLite numbers the operators of a subgraph from 0 in file order and splits names at `;` for its layers
only; the one for ONNX takes the names of nodes and makes them unique. Data whose key is the name of an output tensor go
to that tensor's writer, before ids are looked at. Source: ai-edge-model-explorer-adapter 0.2.1 (flatbuffer adapter),
ai-edge-model-explorer 0.1.34 (its page), model-explorer-onnx 0.4.2.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from modelplan.model import Graph
from modelplan.primitives.lazy_records import dataclass

#: The id of a subgraph without a name that stands first.
_MAIN = "main"


@dataclass(frozen=True, slots=True)
class NodeKeys:
    """The id of the main graph, and the key of each operator by its number; none where nothing tells it apart."""

    graph: str
    keys: dict[int, str]


def node_keys(content: bytes, graph: Graph) -> NodeKeys:
    """The keys of the operators of `graph`, which was read from the file with this content."""
    keys_of = {"tflite": _of_tflite, "onnx": _of_onnx}.get(graph.format)
    return keys_of(content, graph) if keys_of else NodeKeys("", {})


def _of_tflite(content: bytes, graph: Graph) -> NodeKeys:
    """Numbers in the file; operators that CALL brings in are no nodes of the main graph."""
    import tflite

    main = tflite.Model.GetRootAs(content).Subgraphs(0)
    operators = (main.Operators(i) for i in range(main.OperatorsLength()))
    in_file = [
        (
            _numbers(op.Inputs(n) for n in range(op.InputsLength())),
            _numbers(op.Outputs(n) for n in range(op.OutputsLength())),
        )
        for op in operators
    ]
    names = {(main.Tensors(t).Name() or b"").decode(errors="replace") for t in range(main.TensorsLength())}
    taken = {number for number in range(len(in_file)) if str(number) in names}
    matches = dict(_matched([(op.inputs, op.outputs) for op in graph.ops], in_file))
    keys = {op: str(number) for op, number in matches.items() if number not in taken}
    return NodeKeys((main.Name() or b"").decode(errors="replace") or _MAIN, keys)


def _numbers(items: Iterable[int]) -> tuple[int, ...]:
    return tuple(map(int, items))


def _matched(
    ops: list[tuple[tuple[int, ...], tuple[int, ...]]], in_file: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> Iterator[tuple[int, int]]:
    """Pairs of an operator of the graph and its number in the file, found by operands where the order is another."""
    places: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for number, operands in enumerate(in_file):
        places.setdefault(operands, []).append(number)
    wanted = Counter(ops)
    for op, operands in enumerate(ops):
        listed = places.get(operands, [])
        if len(listed) == wanted[operands] == 1:
            yield op, listed[0]
        elif len(ops) == len(in_file) and in_file[op] == operands:
            yield op, op


def _of_onnx(content: bytes, graph: Graph) -> NodeKeys:
    """Names of nodes that only one node and one operator have; what stands in functions is no node of the graph."""
    import onnx

    main = onnx.load_model_from_string(content).graph
    in_file = Counter(node.name for node in main.node)
    wanted = Counter(op.name for op in graph.ops)
    single = {name for name, count in in_file.items() if name and count == wanted[name] == 1}
    return NodeKeys(main.name, {number: op.name for number, op in enumerate(graph.ops) if op.name in single})
