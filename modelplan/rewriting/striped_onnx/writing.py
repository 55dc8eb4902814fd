"""ONNX files: reads what stripes need to know of one, and writes its nodes with stretches in stripes.

Weights are neither read nor copied where they lie in files of their own. Nodes that the graph folded into constants
stand where they are first read. Functions, metadata, and operators that are not split stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from modelplan.formats.onnx.onnx_functions import graphs_of
from modelplan.model import Graph, Kind
from modelplan.ops import facts
from modelplan.ops.conditions import numbers
from modelplan.primitives.errors import ModelError
from modelplan.rewriting.striped_onnx.layers import PAD_OPERANDS, SLICE_OPERANDS, Reading, is_valid, margins
from modelplan.rewriting.striped_onnx.unrolled_nodes import OnnxProgram, OnnxStep, free_name

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

#: Constants of more elements than this decide nothing about rows.
_MOST_ELEMENTS = 1024
#: Numbers that the name of a constant shows.
_SHOWN = 8
#: An end of a Slice behind all rows.
_BEHIND_ALL = 2**31 - 1
#: The first opset in which a Reshape takes its shape as an operand.
_RESHAPE_OPERANDS = 5


def parsed(path: str | Path) -> ModelProto:
    """The file as a protobuf, without what it keeps in other files."""
    import onnx

    return onnx.load(str(path), load_external_data=False)


def reading_of(
    proto: ModelProto,
    graph: Graph,
    kept: frozenset[str] | None = None,
    blocked: Mapping[str, str] = MappingProxyType({}),
) -> Reading:
    """What stripes need to know of a file beyond its graph.

    `kept` are the values of a session, where that is known, `blocked` those that it computes in blocks of channels.
    """
    values: dict[str, TensorProto] = {tensor.name: tensor for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type == "Constant":
            values.update((node.output[0], a.t) for a in node.attribute if a.name == "value")
    names = {name for part in graphs_of(proto.graph) for name in _names(part)}
    maker = {name: node for node in proto.graph.node for name in node.output if name}
    apart = frozenset(
        index
        for index, op in enumerate(graph.ops)
        if not op.writes or _kind(maker.get(graph.tensors[op.writes[0]].name)) != op.kind
    )

    def constant(name: str) -> npt.NDArray[Any] | None:
        import onnx

        tensor = values.get(name)
        if tensor is None or int(np.prod(tensor.dims)) > _MOST_ELEMENTS:
            return None
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return None
        array: npt.NDArray[Any] = onnx.numpy_helper.to_array(tensor)
        return array

    opset = next((entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), 1)
    computed = () if kept is None else (t for op in graph.ops for t in op.writes)
    gone = frozenset(t for t in computed if kept is not None and graph.tensors[t].name not in kept)
    return Reading(graph, constant, opset, frozenset(names), apart, gone, chains_in_blocks(graph, blocked))


def _names(part: GraphProto) -> set[str]:
    names = {value.name for value in (*part.input, *part.initializer)}
    return names | {name for node in part.node for name in (*node.output, node.name)}


def _kind(node: NodeProto | None) -> str:
    """A node's operator as graphs name it."""
    if node is None:
        return ""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def write_striped_onnx(
    proto: ModelProto, reading: Reading, program: OnnxProgram, *, unnamed: bool = False, known_tail: bool = False
) -> bytes:
    """The file with the program in place of its nodes.

    The extents that the graph was read with are written into the inputs. With `unnamed` the first extent of inputs
    that have an extent of 1 there is left open: ONNX Runtime then does not keep dead values for later ones, nor does
    it write a value over its operand. With `known_tail` a Reshape tells the extents again behind the last stripe.

    Raises:
        ModelError: it is larger than a protobuf can be.
    """
    return _Writer(proto, reading, program).write(unnamed=unnamed, known_tail=known_tail)


def with_nodes(proto: ModelProto, nodes: Sequence[NodeProto]) -> ModelProto:
    """A copy of a file with these nodes in its graph."""
    model = type(proto)()
    model.CopyFrom(proto)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def write_bound(proto: ModelProto, shapes: Mapping[str, Sequence[int]]) -> bytes:
    """The file with these shapes written into its inputs."""
    model = with_nodes(proto, proto.graph.node)
    for value in model.graph.input:
        for dim, extent in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            dim.dim_value = extent
    data: bytes = model.SerializeToString()
    return data


class _Writer:
    def __init__(self, proto: ModelProto, reading: Reading, program: OnnxProgram) -> None:
        import onnx

        self.onnx = onnx
        self.proto, self.reading, self.program = proto, reading, program
        self.maker = {name: node for node in proto.graph.node for name in node.output if name}
        self.nodes: list[NodeProto] = []
        self.there: set[int] = set()
        self.constants: dict[tuple[int, ...], str] = {}
        self.taken = set(program.taken)
        self.zeros: dict[int, str] = {}
        self.inserted = 0
        self.joined: set[str] = set()
        self.values = {program.name(t) for t in program.sizes}

    def write(self, *, unnamed: bool, known_tail: bool) -> bytes:
        last = max((place for place, step in enumerate(self.program.steps) if step.padding is not None), default=-1)
        for step in self.program.steps[: last + 1]:
            self._emit(step)
        tail = len(self.nodes) - self.inserted
        for step in self.program.steps[last + 1 :]:
            self._emit(step)
        for value in self.proto.graph.output:
            self._bring(value.name)
        if known_tail and self.reading.opset >= _RESHAPE_OPERANDS:
            self._tell_extents(tail + self.inserted)
        model = with_nodes(self.proto, self.nodes)
        self._describe(model.graph, unnamed=unnamed)
        try:
            data: bytes = model.SerializeToString()
        except ValueError as problem:
            raise ModelError(f"cannot be written: {problem}") from None
        return data

    def _tell_extents(self, tail: int) -> None:
        """A Reshape of each value that is made before the node `tail`, or joined behind it, for its readers there."""
        tensors = self.reading.graph.tensors
        shapes = {t.name: t.shape for t in tensors if t.kind is Kind.ACTIVATION and t.shape and 0 not in t.shape}
        before = {name for node in self.nodes[:tail] if node.op_type != "Constant" for name in node.output}
        reshaped: dict[str, str] = {}
        nodes, self.nodes = self.nodes[tail:], self.nodes[:tail]
        for node in nodes:
            if node.output[0] in self.joined:
                before.add(node.output[0])
            else:
                names = [x for x in node.input if x in before and x in shapes and x not in reshaped]
                for name in dict.fromkeys(names):
                    reshaped[name] = self._new(f"{name}/told")
                    make, constant = self.onnx.helper.make_node, self._constant(shapes[name])
                    self.nodes.append(make("Reshape", [name, constant], [reshaped[name]], self._new(f"{name}/telling")))
                copy = type(node)()
                copy.CopyFrom(node)
                copy.input[:] = [reshaped.get(x, x) for x in node.input]
                node = copy
            self.nodes.append(node)

    def _describe(self, graph: GraphProto, *, unnamed: bool) -> None:
        """Extents of the inputs as they were read, and types of values that are still there and still so."""
        shapes = {tensor.name: tensor.shape for tensor in self.reading.graph.tensors}
        weights = {tensor.name for tensor in graph.initializer}
        bound = False
        for value in graph.input:
            dims = value.type.tensor_type.shape.dim
            for dim, extent in zip(dims, shapes.get(value.name, ()), strict=False):
                bound |= not dim.HasField("dim_value")
                dim.dim_value = extent
            if unnamed and value.name not in weights and len(dims) and dims[0].dim_value == 1:
                dims[0].Clear()
        computed = {name for node in graph.node for name in node.output}
        kept = [] if bound or unnamed else [v for v in graph.value_info if v.name in computed]
        del graph.value_info[:]
        graph.value_info.extend(kept)

    def _bring(self, name: str) -> None:
        """Writes the node that computes a value, after those that it depends on, unless written already."""
        pending = [name]
        while pending:
            node = self.maker.get(pending[-1])
            if node is None or id(node) in self.there:
                pending.pop()
                continue
            missing = [x for x in node_reads(node) if x in self.maker and id(self.maker[x]) not in self.there]
            if not missing:
                self.nodes.append(node)
                self.there.add(id(node))
            pending += missing

    def _emit(self, step: OnnxStep) -> None:
        name = self.program.name
        if step.source < 0:
            self.nodes.append(self._own(step))
            if name(step.outputs[0]) in self.maker:
                self.there.add(id(self.maker[name(step.outputs[0])]))
        elif step.padding is None:
            for t in step.outputs:
                self._bring(name(t))
        else:
            for t in step.inputs:
                self._bring(name(t))
            self.nodes.append(self._striped(step))

    def _own(self, step: OnnxStep) -> NodeProto:
        """Writes a Slice or a Concat of rows."""
        make = self.onnx.helper.make_node
        inputs, output = [self.program.name(t) for t in step.inputs], self.program.name(step.outputs[0])
        name = self._new(output)
        if step.kind != "Slice":
            self.joined.add(output)
            axis: dict[str, Any] = {"axis": step.axis} if step.kind == "Concat" else {}
            return make(step.kind, inputs, [output], name, **axis)
        self._bring(inputs[0])
        lo, hi = step.rows
        if not step.after:
            return self._slice(inputs[0], output, name, {"starts": [lo], "ends": [hi], "axes": [step.axis]})
        by_attributes = self.reading.opset < SLICE_OPERANDS  # which wait for nothing
        rows = self._constant(range(lo, hi) if by_attributes else [lo])
        for value in step.after:
            rows = self._later(value, rows)
        if by_attributes:
            return make("Gather", [*inputs, rows], [output], name, axis=step.axis)
        return make("Slice", [*inputs, rows, *map(self._constant, ([hi], [step.axis]))], [output], name)

    def _slice(self, value: str, output: str, name: str, numbers: dict[str, Any]) -> NodeProto:
        """A Slice by known numbers, starts, ends and at times axes."""
        make = self.onnx.helper.make_node
        if self.reading.opset < SLICE_OPERANDS:
            return make("Slice", [value], [output], name, **numbers)
        return make("Slice", [value, *map(self._constant, numbers.values())], [output], name)

    def _later(self, value: int, number: str) -> str:
        """A number that is known only once a value is computed: plus 0, so that nodes wait for the value."""
        computed = self.program.name(value)
        if value not in self.zeros:
            make, rank = self.onnx.helper.make_node, len(self.program.shape(value))
            names = [self._new(f"{computed}/{word}") for word in ("corner", "number", "less", "zero", "zeros")]
            corner = {"starts": [0] * rank, "ends": [1] * rank}
            floats, whole = self.onnx.TensorProto.FLOAT, self.onnx.TensorProto.INT64
            self.nodes += [
                self._slice(computed, names[0], self._new(f"{names[0]}_node"), corner),
                make("Cast", names[:1], names[1:2], self._new(f"{names[1]}_node"), to=floats),
                make("Less", [names[1], names[1]], names[2:3], self._new(f"{names[2]}_node")),
                make("Cast", names[2:3], names[3:4], self._new(f"{names[3]}_node"), to=whole),
                make("Reshape", [names[3], self._constant([1])], names[4:5], self._new(f"{names[4]}_node")),
            ]
            self.zeros[value] = names[4]
        delayed = self._new(f"{computed}/then")
        self.nodes.append(
            self.onnx.helper.make_node("Add", [number, self.zeros[value]], [delayed], self._new(f"{delayed}_node"))
        )
        return delayed

    def _striped(self, step: OnnxStep) -> NodeProto:
        """A copy of the operator's node for a stripe."""
        graph, shape, output = self.reading.graph, self.program.shape(step.outputs[0]), step.outputs[0]
        above, below = step.padding or (0, 0)
        op = graph.ops[step.source]
        node: NodeProto = type(self.proto.graph.node[0])()
        node.CopyFrom(self.maker[graph.tensors[op.outputs[0]].name])
        node.name = self._new(self.program.name(output))
        node.input[:] = [self.program.name(t) for t in step.inputs]
        node.output[:] = [self.program.name(output)]
        if facts("onnx", step.kind).rows == "window" and not is_valid(op):
            pairs = margins(graph, op, len(shape) - 2)
            pairs[step.axis - 2] = above, below
            self._set(node, "pads", [*(a for a, _ in pairs), *(b for _, b in pairs)])
            self._set(node, "auto_pad", None)
        elif step.kind == "Pad":
            self._pad(node, step, above, below)
        elif step.kind == "Reshape":
            self._give(node, "shape", 1, shape, _RESHAPE_OPERANDS)
        elif step.kind == "Slice":
            self._slice_from_first(node, step)
        elif step.kind == "Resize" and len(node.input) > 3 and node.input[3]:
            node.input[3] = self._constant(shape)
        return node

    def _pad(self, node: NodeProto, step: OnnxStep, above: int, below: int) -> None:
        op, rank = self.reading.graph.ops[step.source], len(self.program.shape(step.outputs[0]))
        old = self.reading.opset < PAD_OPERANDS
        given_pads = dict(op.attributes).get("pads") if old else self.reading.constant(op, 1)
        pads = [int(str(n).removesuffix(".0")) for n in given_pads] if isinstance(given_pads, tuple) else [0] * 2 * rank
        pads[step.axis], pads[rank + step.axis] = above, below
        self._give(node, "pads", 1, pads, PAD_OPERANDS)

    def _slice_from_first(self, node: NodeProto, step: OnnxStep) -> None:
        """Lets a Slice begin at the first row of its operand, which begins where the stripe does."""
        op, rank = self.reading.graph.ops[step.source], len(self.program.shape(step.outputs[0]))
        old = self.reading.opset < SLICE_OPERANDS
        given = [
            numbers(op, name) if old else self.reading.constant(op, place)
            for place, name in enumerate(("starts", "ends", "axes"), 1)
        ]
        starts, ends, axes = (list(map(int, given_numbers or ())) for given_numbers in given)
        cut = [axis % rank for axis in axes] or list(range(len(starts)))
        if step.axis in cut:
            place = cut.index(step.axis)
            starts[place], ends[place] = 0, _BEHIND_ALL
            self._give(node, "starts", 1, starts, SLICE_OPERANDS)
            self._give(node, "ends", 2, ends, SLICE_OPERANDS)

    def _give(self, node: NodeProto, name: str, place: int, numbers: Sequence[int], since: int) -> None:
        """Gives a node numbers, as an operand from the opset `since` on, before as an attribute."""
        if self.reading.opset < since:
            self._set(node, name, list(numbers))
        else:
            node.input[place] = self._constant(numbers)

    def _set(self, node: NodeProto, name: str, value: list[int] | None) -> None:
        """Gives an attribute another value, or takes it away."""
        others = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend(others)
        if value is not None:
            node.attribute.append(self.onnx.helper.make_attribute(name, value))

    def _constant(self, numbers: Sequence[int]) -> str:
        """A value that holds whole numbers; equal ones are written once."""
        key = tuple(numbers)
        if key not in self.constants:
            shown = key if len(key) <= _SHOWN else (key[0], "to", key[-1])
            name = self._new(f"numbers_{'_'.join(map(str, shown)).replace('-', 'minus')}")
            value = self.onnx.numpy_helper.from_array(np.array(key, np.int64))
            self.inserted += 1
            self.nodes.insert(
                0, self.onnx.helper.make_node("Constant", [], [name], self._new(f"{name}_node"), value=value)
            )
            self.constants[key] = name
        return self.constants[key]

    def _new(self, name: str) -> str:
        return free_name(f"{name}_node" if name in self.values else name, self.taken)


def node_reads(node: NodeProto) -> list[str]:
    """What a node and the nodes in its bodies read."""
    reads = list(node.input)
    for attribute in node.attribute:
        for part in (attribute.g, *attribute.graphs) if attribute.HasField("g") or attribute.graphs else ():
            reads += [name for inner in part.node for name in node_reads(inner)]
    return reads


#: Operators whose kernels for blocks give other last places, beside those that need a condition.
_MEANS = frozenset({"AveragePool", "GlobalAveragePool"})
_ENLARGING = frozenset({"Resize", "Upsample"})
#: What a convolution adds to its result by itself.
_SUMS = frozenset({"Add", "Sum"})


def chains_in_blocks(graph: Graph, blocked: Mapping[str, str]) -> dict[int, frozenset[int]]:
    """For the result of each such operator the values that have to be in blocks: itself, back to the convolutions.

    `blocked` are the values that a session computes in blocks of channels, with the operator of each.
    """
    results = (op.outputs[0] for op in graph.ops if op.writes)
    return {t: _chain(graph, t) for t in results if _needs_blocks(graph, t, blocked)}


def _chain(graph: Graph, t: int) -> frozenset[int]:
    chain: set[int] = set()
    pending = [t]
    while pending:
        value = pending.pop()
        if value in chain or graph.producers[value] < 0:
            continue
        chain.add(value)
        op = graph.ops[graph.producers[value]]
        if op.kind != "Conv":
            pending += op.reads
    return frozenset(chain)


def _needs_blocks(graph: Graph, t: int, blocked: Mapping[str, str]) -> bool:
    """Whether a kernel for blocks computes the value, and another one would where operands are not in blocks."""
    op = graph.ops[graph.producers[t]]
    if op.kind in _SUMS:
        return any(blocked.get(graph.tensors[u].name) == "Conv+" for u in op.reads)
    if graph.tensors[t].name not in blocked:
        return False
    if op.kind == "BatchNormalization":  # behind a convolution it is folded into that one
        return all(graph.ops[graph.producers[u]].kind != "Conv" for u in op.reads if graph.producers[u] >= 0)
    return op.kind in _MEANS or (op.kind in _ENLARGING and op.attribute("mode", "nearest") == "linear")
