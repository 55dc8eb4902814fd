"""Checks of a model before onnx's own inference, which crashes on some damaged files or does not end.

Each check refuses a kind of damage with which that was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from functools import lru_cache
from typing import TYPE_CHECKING

from modelplan.formats.limits import MOST_AXES, FileLimits, Tally
from modelplan.formats.onnx.onnx_functions import bodies_of

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

#: Attributes that number axes, and those that count something of which there is at least one.
_AXES = {"axis", "axes", "batch_axis", "time_axis", "perm", "scan_input_axes", "scan_output_axes", "batch_dims"}
_COUNTS = {"strides", "dilations", "group", "blocksize", "kernel_shape", "num_groups", "block_shape", "hidden_size"}
#: The operand that holds a shape: its length becomes a rank.
_RANKS = {
    "Expand": 1, "Reshape": 1, "Tile": 1, "ConstantOfShape": 0, "CenterCropPad": 1, "Upsample": 1, "AffineGrid": 1,
    "Col2Im": 1, "MaxUnpool": 2, "Squeeze": 1, "Unsqueeze": 1, "Pad": 3, "Resize": 3,
}  # fmt: skip
#: How operators of ONNX Runtime's training end that are in no model for inference.
_TRAINING_ENDINGS = (
    "Grad",
    "GradV2",
    "Optimizer",
    "OptimizerV2",
    "InPlaceAccumulator",
    "InPlaceAccumulatorV2",
    "YieldOp",
)
_MOST = 2**31 - 1
#: Outer names visible in bodies, added up over all bodies: onnx's inference copies their types for every body, a
#: million in about 0.3 seconds. The 50 bodies of Silero's voice detector, one inside the other, see 6,926.
_MOST_SEEN = 5_000_000


def check_counts(graphs: Sequence[GraphProto | FunctionProto], limits: FileLimits) -> None:
    """Checks how many operators, values and bodies there are in graphs and functions.

    Raises:
        ValueError: more than any real model has.
    """
    tally, hints = Tally(limits), 0
    for graph in graphs:
        tally.add("operators", len(graph.node))
        tally.add("tensors", len(graph.input) + len(graph.output) + sum(len(node.output) for node in graph.node))
        if hasattr(graph, "initializer"):  # which functions have not
            tally.add("tensors", len(graph.initializer) + len(graph.sparse_initializer))
            tally.add("bodies", graph is not graphs[0])
            hints += len(graph.value_info)
    if hints > limits.tensors:
        raise ValueError(f"found types of {hints:,} intermediate values, expected at most {limits.tensors:,}")


def check_inference(model: ModelProto, graphs: Sequence[GraphProto]) -> None:
    """Checks that a model is for inference: nothing in it computes gradients or changes weights."""
    trains = "training_info" if len(model.training_info) else ""
    for node in (node for graph in graphs for node in graph.node):
        gradient = node.domain == "com.microsoft" and node.op_type.endswith(_TRAINING_ENDINGS)
        if gradient or node.domain == "ai.onnx.preview.training":
            trains = trains or f"node {node.op_type[:100]}"
    if trains:
        raise ValueError(
            f"a model that trains ({trains}); plans are for inference: export it anew, with PyTorch by"
            " torch.onnx.export(model.eval(), example_inputs, 'model.onnx')"
        )


def check_nodes(graphs: Sequence[GraphProto], opsets: dict[str, int]) -> None:
    """Checks names, operands and attributes of a graph, the first of `graphs`, and of its bodies, the others."""
    seen = _check_names(graphs[0], set(), "")
    if seen > _MOST_SEEN:
        raise ValueError(f"found bodies that see {seen:,} outer values, added up: too many")
    lengths = _lengths(graphs)
    for node in (node for graph in graphs for node in graph.node):
        place = f"node {node.op_type[:100]}" + (f" {node.name[:200]!r}" if node.name else "")
        _check_operands(node, opsets, place)
        operand = _RANKS.get(node.op_type, len(node.input))
        length = lengths.get(node.input[operand], 0) if operand < len(node.input) else 0
        if length > MOST_AXES:
            raise ValueError(f"{place}: found a shape of {length} extents, expected at most {MOST_AXES}")
        for attribute in node.attribute:
            _check_attribute(attribute, place)
            if node.op_type == "Split" and attribute.name == "num_outputs" and attribute.i != len(node.output):
                raise ValueError(f"{place}: found num_outputs {attribute.i} for {len(node.output)} outputs")


def _lengths(graphs: Sequence[GraphProto]) -> dict[str, int]:
    """The extent of every vector that the file declares; refuses tensors of more axes than numpy supports."""
    lengths: dict[str, int] = {}
    for graph in graphs:
        for value in (*graph.input, *graph.value_info, *graph.output):
            dims = value.type.tensor_type.shape.dim
            if _rank(value.name, dims) == 1:
                lengths[value.name] = dims[0].dim_value
        for tensor in graph.initializer:
            if _rank(tensor.name, tensor.dims) == 1:
                lengths[tensor.name] = tensor.dims[0]
        for sparse in graph.sparse_initializer:
            _rank(sparse.values.name, sparse.dims)
    return lengths


def _rank(name: str, dims: Sized) -> int:
    if len(dims) > MOST_AXES:
        raise ValueError(f"{name[:200]!r}: found {len(dims)} axes, expected at most {MOST_AXES}")
    return len(dims)


def _check_names(graph: GraphProto, known: set[str], place: str) -> int:
    """Checks that every name is written once, before it is read; returns the outer names that bodies see, added up.

    `known` are the names outside of the graph; it is left as it was.
    """
    seen = 0
    given = {value.name for value in graph.input}
    initial = {t.name for t in graph.initializer} | {s.values.name for s in graph.sparse_initializer}
    if len(given) != len(graph.input):
        raise ValueError(f"{place}two inputs have the same name")
    written = given | initial
    mine = written - known
    known |= mine
    for number, node in enumerate(graph.node):
        where = f"{place}node {number} {node.op_type[:100]}" + (f" {node.name[:200]!r}" if node.name else "")
        _check_known(node.input, known, where)
        for body in bodies_of(node):
            seen += len(known) + _check_names(body, known, f"{where}: ")
        for name in filter(None, node.output):
            if name in written:
                raise ValueError(f"{where}: {name[:200]!r} already has a value")
            written.add(name)
            if name not in known:
                known.add(name)
                mine.add(name)
    _check_known((value.name for value in graph.output), known, f"{place}output")
    known -= mine
    return seen


def _check_known(names: Iterable[str], known: set[str], where: str) -> None:
    for name in filter(None, names):
        if name not in known:
            raise ValueError(f"{where}: reads {name[:200]!r}, which nothing before it writes")


def _check_operands(node: NodeProto, opsets: dict[str, int], place: str) -> None:
    """Checks that all operands that the operator requires are there."""
    needed = _operand_counts(node.op_type, node.domain, opsets.get(node.domain, 0))
    if needed is None:
        return
    least, most, single = needed
    if not least <= len(node.input) <= most:
        raise ValueError(f"{place}: found {len(node.input)} inputs, expected {least} to {most}")
    for i in single:
        if i < len(node.input) and not node.input[i]:
            raise ValueError(f"{place}: input {i} is absent, expected a value")


@lru_cache(maxsize=4096)
def _operand_counts(kind: str, domain: str, version: int) -> tuple[int, int, tuple[int, ...]] | None:
    """Least and most inputs of an operator, and which of them must be there; None for one that onnx does not know."""
    import onnx

    if not onnx.defs.has(kind, max_inclusive_version=version, domain=domain):
        return None
    schema = onnx.defs.get_schema(kind, version, domain)
    option = onnx.defs.OpSchema.FormalParameterOption.Single
    return schema.min_input, schema.max_input, tuple(i for i, p in enumerate(schema.inputs) if p.option == option)


def _check_attribute(attribute: AttributeProto, place: str) -> None:
    values = list(attribute.ints) or ([attribute.i] if attribute.HasField("i") else [])
    if attribute.name in _AXES and any(abs(value) > MOST_AXES for value in values):
        raise ValueError(f"{place}: found {attribute.name} {values[:8]}, expected axes within {MOST_AXES}")
    if attribute.name in _COUNTS and any(not 1 <= value <= _MOST for value in values):
        raise ValueError(f"{place}: found {attribute.name} {values[:8]}, expected numbers from 1 to {_MOST}")
