"""ONNX protobufs as a Graph: initialisers and whatever follows from them alone are constants, the rest is planned.

Shapes come from the file and from onnx's own inference; weights are never read to be sized.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modelplan.dtypes import BITS
from modelplan.errors import ModelError
from modelplan.types import Graph, Kind, Op, Tensor

#: Nodes that a runtime computes anew each time although their inputs never change.
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
CONTROL = {"If", "Loop", "Scan", "SequenceMap"}
#: Initialisers with more bytes than this are weights, whose values shape inference has no use for.
WEIGHT_BYTES = 4096


def read(path: Path) -> Graph:
    """The main graph of the model.

    Raises:
        ModelError: damaged or not supported.
    """
    model = _parsed(path)
    _check(path, model)
    return _Reader(path, _inferred(path, model)).graph()


def _parsed(path: Path) -> Any:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(path.read_bytes())
    except DecodeError:
        raise ModelError(f"{path}: damaged: the protobuf ends or breaks off early") from None
    if not model.HasField("graph"):
        raise ModelError(f"{path}: found no graph, expected an ONNX model")
    return model


def _check(path: Path, model: Any) -> None:
    if model.functions:
        raise ModelError(f"{path}: found {len(model.functions)} local functions, which are not supported")
    for i, node in enumerate(model.graph.node):
        if node.op_type in CONTROL and node.domain in ("", "ai.onnx"):
            raise ModelError(f"{path}: node {i} {node.op_type} {node.name!r}: control flow is not supported")


def _inferred(path: Path, model: Any) -> Any:
    """The model with a shape for every value that onnx can tell; weights are left out of the work."""
    import onnx

    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > WEIGHT_BYTES:
            tensor.ClearField("raw_data")
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as problem:
        raise ModelError(f"{path}: shapes contradict each other: {_line(problem)}") from None


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:300]


class _Reader:
    """Numbers the values of the graph in the order in which they appear."""

    def __init__(self, path: Path, model: Any) -> None:
        self.path = path
        self.graph_proto = model.graph
        self.version = {i.domain or "ai.onnx": i.version for i in model.opset_import}
        self.index: dict[str, int] = {}
        self.tensors: list[Tensor] = []
        self.types: dict[str, tuple[tuple[int | str, ...] | None, str]] = {}

    def graph(self) -> Graph:
        proto = self.graph_proto
        self._note_types(proto)
        constants = {t.name for t in proto.initializer}
        inputs = tuple(self._tensor(v.name, Kind.ACTIVATION, "input") for v in proto.input if v.name not in constants)
        for t in proto.initializer:
            self._tensor(t.name, Kind.CONSTANT, "initializer")
        ops = [op for i, node in enumerate(proto.node) if (op := self._op(i, node))]
        outputs = tuple(self._known(v.name, "output") for v in proto.output)
        name = self.path.stem
        try:
            return Graph(name, "onnx", tuple(self.tensors), tuple(ops), inputs, outputs)
        except ValueError as problem:
            raise ModelError(f"{self.path}: {problem}") from None

    def _note_types(self, proto: Any) -> None:
        for value in (*proto.input, *proto.value_info, *proto.output):
            kind = value.type.WhichOneof("value")
            if kind == "tensor_type":
                self.types[value.name] = (_shape(value.type.tensor_type), _dtype(value.type.tensor_type.elem_type))
            else:
                self.types[value.name] = (None, str(kind))
        for t in proto.initializer:
            self.types[t.name] = (tuple(t.dims), _dtype(t.data_type))

    def _op(self, i: int, node: Any) -> Op | None:
        """The node as an op, or None where its outputs are known beforehand and become constants."""
        where = f"node {i} {node.op_type} {node.name!r}"
        domain = node.domain or "ai.onnx"
        kind = node.op_type if domain == "ai.onnx" else f"{domain}.{node.op_type}"
        inputs = tuple(self._known(name, where) if name else -1 for name in node.input)
        folded = kind not in RANDOM and all(self.tensors[t].kind is Kind.CONSTANT for t in inputs if t >= 0)
        made = Kind.CONSTANT if folded and domain == "ai.onnx" else Kind.ACTIVATION
        self._complete_types(kind, node, self.version.get(domain, 1))
        outputs = tuple(self._tensor(name, made, where) if name else -1 for name in node.output)
        if made is Kind.CONSTANT:
            return None
        return Op(node.name, kind, inputs, outputs, (), self.version.get(domain, 1))

    def _complete_types(self, kind: str, node: Any, version: int) -> None:
        """Says what onnx's inference leaves out although the operator's text settles it."""
        if kind == "Dropout" and len(node.output) > 1 and node.output[1] not in self.types:
            shape, dtype = self.types[node.input[0]]
            self.types[node.output[1]] = (shape, dtype if version < 10 else "bool")

    def _known(self, name: str, where: str) -> int:
        if name not in self.index:
            raise ModelError(f"{self.path}: {where}: reads {name!r}, which nothing before it writes")
        return self.index[name]

    def _tensor(self, name: str, kind: Kind, where: str) -> int:
        if name in self.index:
            raise ModelError(f"{self.path}: {where}: {name!r} already has a value")
        shape, dtype = self.types.get(name, (None, "unknown type"))
        if dtype not in BITS:
            raise ModelError(f"{self.path}: {where}: {name!r} is of {dtype}, expected a tensor with a fixed size")
        if shape is None or not all(isinstance(d, int) for d in shape):
            found = "unknown" if shape is None else f"[{', '.join(map(str, shape))}]"
            raise ModelError(f"{self.path}: {where}: the shape of {name!r} is {found}, expected known extents")
        self.index[name] = len(self.tensors)
        try:
            self.tensors.append(Tensor(name, tuple(int(d) for d in shape), dtype, kind))
        except ValueError as problem:
            raise ModelError(f"{self.path}: {where}: {problem}") from None
        return self.index[name]


def _shape(tensor_type: Any) -> tuple[int | str, ...] | None:
    if not tensor_type.HasField("shape"):
        return None
    return tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor_type.shape.dim)


def _dtype(number: int) -> str:
    """Our name of an ONNX data type, `type N` where there is none."""
    import onnx

    names = {v: k.lower() for k, v in onnx.TensorProto.DataType.items()}
    names |= {1: "float32", 11: "float64"}
    return str(names.get(number, f"type {number}"))
