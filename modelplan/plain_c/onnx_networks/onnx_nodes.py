"""An .onnx file as nodes with typed attributes, what is known of their values before they run, and all extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from modelplan.formats.onnx.onnx_fold import evaluated, shape_value
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass

if TYPE_CHECKING:
    from onnx import AttributeProto, ModelProto, NodeProto

    from modelplan.model import Graph

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
#: Nodes that hand on what they read; Dropout only where it does not train.
_SAME = {"Identity", "Dropout"}
#: Nodes that are computed before the network runs only where a later one asks.
_CODED = {"DequantizeLinear", "QuantizeLinear"}
_MOST_INLINED = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class OnnxNode:
    """A node: `inputs` and `outputs` are names of values, "" an absent one."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def has(self, position: int) -> bool:
        """Whether an operand is there."""
        return position < len(self.inputs) and self.inputs[position] != ""

    def number(self, name: str, default: float = 0) -> float:
        """An attribute that is a number."""
        return self.attributes.get(name, default)  # type: ignore[no-any-return]

    def numbers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """An attribute that is a list of whole numbers."""
        return tuple(self.attributes.get(name, default))

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is a text."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else str(value)

    @property
    def label(self) -> str:
        """The node in messages: its name, or the value that it makes."""
        return f"node {self.name!r}" if self.name else f"the node of {self.outputs[0]!r}"


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """Nodes in the order in which they run; `types` are shape and element type of each value.

    `outputs` are the values that are given, `output_names` what the file calls them.
    """

    name: str
    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Array]
    types: Mapping[str, tuple[Shape, str]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    output_names: tuple[str, ...]
    opset: int


def read_onnx(path: str, graph: Graph) -> OnnxModel:
    """The nodes of a file whose graph was read, with what depends on shapes and constants alone computed.

    Raises:
        ModelError: the file cannot be read, or weights lie where it does not say.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        proto = onnx.load(path)
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as problem:
        raise ModelError(f"{path}: {' '.join(str(problem).split())}") from None
    if proto.functions:
        from modelplan.formats.onnx.onnx_functions import inlined

        proto = inlined(proto, _MOST_INLINED)
    return _Folding(proto, graph, Path(path).name).model()


class _Folding:
    """Computes what is known, and leaves out nodes that hand on what they read."""

    def __init__(self, proto: ModelProto, graph: Graph, name: str) -> None:
        from onnx import numpy_helper

        self.proto, self.graph, self.name = proto, graph, name
        self.opsets = {i.domain: i.version for i in proto.opset_import}
        self.types = {t.name: (t.shape, t.dtype) for t in graph.tensors}
        self.constants: dict[str, Array] = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
        self.same: dict[str, str] = {}

    def model(self) -> OnnxModel:
        nodes = [node for proto in self.proto.graph.node if (node := self._node(proto)) is not None]
        for name, values in self.constants.items():
            self.types[name] = values.shape, str(values.dtype)
        for name, source in self.same.items():
            self.types.setdefault(name, self.types.get(source, ((), "float32")))
        inputs = tuple(i.name for i in self.proto.graph.input if i.name not in self.constants)
        names = tuple(o.name for o in self.proto.graph.output)
        outputs, opset = tuple(map(self._root, names)), self.opsets.get("", 1)
        return OnnxModel(self.name, tuple(nodes), self.constants, self.types, inputs, outputs, names, opset)

    def _root(self, name: str) -> str:
        while name in self.same:
            name = self.same[name]
        return name

    def _node(self, proto: NodeProto) -> OnnxNode | None:
        """The node; None where its results are known, or what it reads."""
        inputs = tuple(self._root(name) for name in proto.input)
        attributes = {a.name: _value(a) for a in proto.attribute}
        if proto.op_type == "Constant":
            self.constants[proto.output[0]] = _constant(proto)
            return None
        if proto.op_type in _SAME and not self._trains(proto, inputs):
            self.same[proto.output[0]] = inputs[0]
            return None
        if proto.op_type in ("Shape", "Size") and inputs[0] in self.types:
            self.constants[proto.output[0]] = shape_value(proto, self.types[inputs[0]][0])
            return None
        known = [self.constants.get(name) for name in inputs]
        if proto.op_type not in _CODED and all(v is not None or not n for n, v in zip(inputs, known, strict=True)):
            values = evaluated(proto, known, self.opsets)
            if values is not None and all(v is not None for v in values):
                self.constants |= {n: v for n, v in zip(proto.output, values, strict=True) if n and v is not None}
                return None
        return OnnxNode(proto.name, proto.op_type, inputs, tuple(proto.output), attributes)

    def _trains(self, proto: NodeProto, inputs: tuple[str, ...]) -> bool:
        mode = self.constants.get(inputs[2]) if proto.op_type == "Dropout" and len(inputs) > 2 else None
        return mode is not None and bool(mode)


def _value(attribute: AttributeProto) -> Any:
    from onnx import helper, numpy_helper

    value = helper.get_attribute_value(attribute)
    return numpy_helper.to_array(value) if attribute.name == "value" and hasattr(value, "dims") else value


def _constant(proto: NodeProto) -> Array:
    (attribute,) = proto.attribute
    value, types = _value(attribute), {"value_int": np.int64, "value_ints": np.int64}
    return np.asarray(value, None if attribute.name == "value" else types.get(attribute.name, np.float32))
