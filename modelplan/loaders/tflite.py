"""TFLite flatbuffers as a Graph: tensor `i` of the graph is tensor `i` of subgraph 0.

Nothing in the file is believed: counts and offsets are measured against its length before they are used.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from modelplan.errors import ModelError
from modelplan.loaders.dims import Dims
from modelplan.types import Graph, Kind, Op, Tensor

#: TensorType by number, which outlives the names of the installed schema.
DTYPES = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16", 8: "complex64",
    9: "int8", 10: "float64", 11: "complex128", 12: "uint64", 15: "uint32", 16: "uint16", 17: "int4",
    18: "bfloat16", 19: "int2", 20: "uint4", 21: "float8e4m3fn", 22: "float8e5m2",
}  # fmt: skip

#: Operators that run other subgraphs.
CONTROL = {"IF", "WHILE", "CALL", "CALL_ONCE", "STABLEHLO_CASE", "STABLEHLO_WHILE", "STABLEHLO_COMPOSITE"}


def read(path: Path, dims: Dims) -> Graph:
    """The first subgraph of the model.

    Raises:
        ModelError: damaged or not supported.
    """
    dims.check_used(())
    reader = _Reader(path.read_bytes())
    try:
        return reader.graph(path)
    except (struct.error, IndexError, TypeError, AttributeError, UnicodeDecodeError, ValueError, OverflowError) as e:
        reason = str(e) if isinstance(e, ValueError) else f"an offset leads outside the file ({e})"
        raise ModelError(f"{path}: {reader.place}: {reason}") from None


class _Reader:
    """Walks the flatbuffer; `place` is where it stands, for messages; `budget` bounds the work by the file's size."""

    def __init__(self, data: bytes) -> None:
        from tflite.Model import Model

        self.data = data
        self.place = "header"
        self.budget = 16 * len(data) + 1024
        self.dynamic: list[str] = []
        self.model: Any = Model.GetRootAs(data, 0)

    def graph(self, path: Path) -> Graph:
        self.place = "subgraphs"
        if self.count(self.model.SubgraphsLength()) != 1:
            raise ValueError(f"found {self.model.SubgraphsLength()} subgraphs, expected 1")
        subgraph = self.model.Subgraphs(0)
        self.kinds = [self.kind(i) for i in range(self.count(self.model.OperatorCodesLength()))]
        tensors = [self.tensor(subgraph, i) for i in range(self.count(subgraph.TensorsLength()))]
        self.place = "subgraph 0"
        ops = [self.op(subgraph, i) for i in range(self.count(subgraph.OperatorsLength()))]
        self.place = "subgraph 0"
        inputs, outputs = self.indices(subgraph, "Inputs"), self.indices(subgraph, "Outputs")
        tensors = _settled(tensors, ops, inputs)
        return Graph(path.stem, "tflite", tuple(tensors), tuple(ops), inputs, outputs, self.remarks())

    def remarks(self) -> tuple[str, ...]:
        if not self.dynamic:
            return ()
        return (
            f"{len(self.dynamic)} tensors have a dynamic extent, first {self.dynamic[0]}; planned for the file's shape",
        )

    def count(self, length: int) -> int:
        """`length` elements of at least four bytes are about to be read."""
        if 4 * length > len(self.data):
            raise ValueError(
                f"found a vector of {length} elements, expected at most {len(self.data) // 4} in this file"
            )
        self.spend(length)
        return length

    def spend(self, work: int) -> None:
        self.budget -= work
        if self.budget < 0:
            raise ValueError("the parts of the file overlap so often that reading it would not end")

    def text(self, value: bytes | None) -> str:
        self.spend(len(value or b""))
        return (value or b"").decode("utf-8", "replace")

    def kind(self, i: int) -> str:
        import tflite

        self.place = f"operator code {i}"
        code = self.model.OperatorCodes(i)
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        if number == tflite.BuiltinOperator.CUSTOM:
            return f"CUSTOM:{self.text(code.CustomCode())}"
        return _names().get(number, f"BUILTIN_{number}")

    def tensor(self, subgraph: Any, i: int) -> Tensor:
        self.place = f"tensor {i}"
        tensor = subgraph.Tensors(i)
        name = self.text(tensor.Name())
        self.place = f"tensor {i} {name!r}"
        if tensor.Type() not in DTYPES:
            raise ValueError(f"found type {tensor.Type()}, expected one with a fixed size")
        shape = self.vector(tensor, "Shape")
        signature = self.vector(tensor, "ShapeSignature")
        if min(shape, default=0) < 0:
            raise ValueError(f"found shape {list(shape)}, expected known extents")
        if min(signature, default=0) < 0:
            self.dynamic.append(f"{name!r} {list(signature)}")
        kind = (
            Kind.CONSTANT if self.has_data(tensor.Buffer()) else Kind.STATE if tensor.IsVariable() else Kind.ACTIVATION
        )
        return Tensor(name, shape, DTYPES[tensor.Type()], kind)

    def has_data(self, index: int) -> bool:
        if index >= self.model.BuffersLength():
            raise ValueError(f"found buffer {index}, expected one of {self.model.BuffersLength()}")
        buffer = self.model.Buffers(index)
        if buffer.DataLength() > len(self.data):
            raise ValueError(f"found a buffer of {buffer.DataLength()} bytes, expected at most {len(self.data)}")
        return bool(buffer.DataLength() or buffer.Offset() > 1)

    def op(self, subgraph: Any, i: int) -> Op:
        self.place = f"operator {i}"
        operator = subgraph.Operators(i)
        code = operator.OpcodeIndex()
        if code >= len(self.kinds):
            raise ValueError(f"found operator code {code}, expected one of {len(self.kinds)}")
        kind = self.kinds[code]
        self.place = f"operator {i} {kind}"
        if kind in CONTROL:
            raise ValueError("control flow is not supported")
        return Op("", kind, self.indices(operator, "Inputs"), self.indices(operator, "Outputs"))

    def vector(self, table: Any, field: str) -> tuple[int, ...]:
        """A vector of int32, empty where it is absent."""
        length = self.count(getattr(table, f"{field}Length")())
        return tuple(getattr(table, f"{field}AsNumpy")().tolist()) if length else ()

    def indices(self, table: Any, field: str) -> tuple[int, ...]:
        return self.vector(table, field)


def _names() -> dict[int, str]:
    import tflite

    return {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}


def _settled(tensors: list[Tensor], ops: list[Op], inputs: tuple[int, ...]) -> list[Tensor]:
    """The tensors, those without a value checked: of zero extent they are constants, others are dangling.

    A custom operator may be handed memory to work in as an input that nothing writes (Ethos-U does).
    """
    given = {*inputs, *(t for op in ops for t in op.writes)}
    read = {t for op in ops if not op.kind.startswith("CUSTOM:") for t in op.reads}
    for t in sorted(read - given):
        if t >= len(tensors) or tensors[t].kind is not Kind.ACTIVATION:
            continue
        if tensors[t].nbytes:
            raise ValueError(f"tensor {t} {tensors[t].name!r} is read, but nothing writes it and it holds no data")
        tensors[t] = Tensor(tensors[t].name, tensors[t].shape, tensors[t].dtype, Kind.CONSTANT)
    return tensors
