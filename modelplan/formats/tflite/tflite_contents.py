"""What a Graph leaves out of a .tflite file: digests of constants, quantisation, every option of every operator."""

import re
from collections import defaultdict
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np

from modelplan.formats.model_contents import Contents, Quantisation, Settings, known_contents, known_options
from modelplan.formats.tflite.tflite_file import TfliteFile
from modelplan.formats.tflite.tflite_schema import BODIES, DTYPES, PADDINGS, enumeration_names, options_of
from modelplan.model import Graph, Op, Value

#: Option fields that hold numbers of subgraphs, which say nothing by themselves.
_CALLS = {field for fields in BODIES.values() for field in fields}
#: So many times the bytes of the file are read at most, however often its parts overlap.
_MOST_READ = 16
_KEYS = tuple[str, tuple[int, ...], tuple[int, ...]]


def read_contents_of(data: bytes, graph: Graph) -> Contents:
    """The contents of a .tflite file; of operators that CALL brings in, what the graph tells.

    Raises:
        ValueError, IndexError, TypeError, struct.error: a part of the file is damaged.
    """
    return _Reader(data).contents(0, graph)


class _Reader:
    """Reads one file; each buffer and each subgraph once."""

    def __init__(self, data: bytes) -> None:
        from tflite.Model import Model

        self.data = data
        self.model = Model.GetRootAs(data, 0)
        self.digests: dict[int, str] = {}
        self.budget = _MOST_READ * len(data) + 4096
        self.kinds = [code.kind for code in TfliteFile(data).codes()]
        self.known: dict[int, Contents] = {}

    def contents(self, number: int, graph: Graph) -> Contents:
        """The contents of subgraph `number`, which `graph` was read from."""
        if number not in self.known:
            self.known[number] = self._contents(self.model.Subgraphs(number), graph)
        return self.known[number]

    def _contents(self, table: Any, graph: Graph) -> Contents:
        own = range(min(table.TensorsLength(), len(graph.tensors)))
        more = len(graph.tensors) - len(own)
        tensors = [table.Tensors(i) for i in own]
        operators = self._operators(table)
        keys = [(op.kind, op.inputs, op.outputs) for op in reversed(graph.ops)]
        matched = [operators[key].pop() if operators[key] else None for key in keys]
        pairs = list(zip(graph.ops, reversed(matched), strict=True))
        return Contents(
            (*map(self._digest, tensors), *("",) * more),
            (*map(_quantisation, tensors), *(None,) * more),
            tuple(_options(op, operator) for op, operator in pairs),
            tuple(self._bodies(op, operator) for op, operator in pairs),
        )

    def _operators(self, table: Any) -> dict[_KEYS, list[Any]]:
        """The operators by kind, operands and results, of which the last identifies all but those without results."""
        operators: dict[_KEYS, list[Any]] = defaultdict(list)
        for i in range(table.OperatorsLength()):
            operator = table.Operators(i)
            ends = (_numbers(operator.InputsAsNumpy()), _numbers(operator.OutputsAsNumpy()))
            operators[self.kinds[operator.OpcodeIndex()], *ends].append(operator)
        return operators

    def _bodies(self, op: Op, operator: Any) -> tuple[Contents, ...]:
        from modelplan.formats.tflite.tflite_options import body_indices

        if operator is None or not op.subgraphs:
            return tuple(map(known_contents, op.subgraphs))
        numbers = body_indices(op.kind, options_of(operator))
        return tuple(self.contents(n, body) for n, body in zip(numbers, op.subgraphs, strict=True))

    def _digest(self, tensor: Any) -> str:
        """The digest of the values of a tensor; empty where the file holds none."""
        index = tensor.Buffer()
        if index not in self.digests:
            buffer = self.model.Buffers(index)
            first, size = buffer.Offset(), buffer.Size()
            values = self.data[first : first + size] if first > 1 else _bytes(buffer.DataAsNumpy())
            self.budget -= len(values)
            if self.budget < 0:
                raise ValueError("the parts of the file overlap too often: it would take too long to read")
            self.digests[index] = sha256(values).hexdigest()[:16] if values else ""
        return self.digests[index]


def _numbers(vector: Any) -> tuple[int, ...]:
    return () if isinstance(vector, int) else tuple(vector.tolist())


def _bytes(vector: Any) -> bytes:
    return b"" if isinstance(vector, int) else bytes(np.ascontiguousarray(vector).tobytes())


def _quantisation(tensor: Any) -> Quantisation:
    table = tensor.Quantization()
    if table is None or isinstance(table.ScaleAsNumpy(), int):
        return None
    zeros = table.ZeroPointAsNumpy()
    scales = tuple(table.ScaleAsNumpy().tolist())
    return scales, _numbers(zeros), table.QuantizedDimension() if len(scales) > 1 else 0


def _options(op: Op, operator: Any) -> Settings:
    """Every option of an operator by the name that the schema gives it, enumerations as words where known."""
    if operator is None:
        return known_options(op.attributes)
    settings: list[tuple[str, Value]] = []
    options = options_of(operator)
    if options is not None:
        table: type = type(options)
        for field, name in _fields(table):
            value = getattr(options, field)()
            if field.endswith("AsNumpy"):
                settings.append((name, () if isinstance(value, int) else tuple(value.tolist())))
            elif isinstance(value, bytes):
                settings.append((name, value[:200].decode("utf-8", "replace")))
            elif isinstance(value, bool | int | float):
                settings.append((name, _word(name, value)))
    if operator.CustomOptionsLength():
        settings.append(("custom_options", sha256(_bytes(operator.CustomOptionsAsNumpy())).hexdigest()[:16]))
    return tuple(sorted(settings))


@cache
def _fields(table: type) -> tuple[tuple[str, str], ...]:
    """The accessors of a table of options that take no argument, vectors as arrays, with the schema's own names."""
    names = {name for name in vars(table) if name[0].isupper() and not name.startswith("GetRootAs")}
    vectors = {name.removesuffix("AsNumpy") for name in names if name.endswith("AsNumpy")}
    hidden = {f"{vector}{end}" for vector in vectors for end in ("", "Length", "IsNone")} | _CALLS
    hidden |= {name for name in names if name.endswith(("BufferHasIdentifier", "Init", "Length", "IsNone"))}
    shown = sorted(name for name in names - hidden if name.removesuffix("AsNumpy") not in _CALLS)
    return tuple((name, re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("AsNumpy")).lower()) for name in shown)


def _word(name: str, value: Value) -> Value:
    """A number of an enumeration as its name."""
    if name == "padding" and isinstance(value, int):
        return PADDINGS.get(value, value)
    if name.endswith("data_type") and isinstance(value, int):
        return DTYPES.get(value, value)
    if name == "fused_activation_function" and isinstance(value, int):
        return enumeration_names("ActivationFunctionType").get(value, value)
    return value
