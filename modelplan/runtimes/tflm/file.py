"""A .tflite file as TFLM's allocator sees it: every subgraph, every tensor with the bytes TFLM gives it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from modelplan.errors import ModelError
from modelplan.rewriting import flatbuffer

#: Bytes of one element by TensorType number, as `TfLiteTypeSizeOf` counts them: 4-bit values take a byte each.
_ELEMENT = {0: 4, 1: 2, 2: 4, 3: 1, 4: 8, 6: 1, 7: 2, 8: 8, 9: 1, 10: 8, 11: 16, 12: 8, 13: 4, 15: 4, 16: 2, 17: 1}

#: The option fields that name subgraphs, in the order in which TFLM plans them.
_CALLED = {
    "IF": ("ThenSubgraphIndex", "ElseSubgraphIndex"),
    "WHILE": ("CondSubgraphIndex", "BodySubgraphIndex"),
    "CALL_ONCE": ("InitSubgraphIndex",),
}

#: TFLM counts bytes and offsets in 32 bits with a sign.
_LARGEST = 2**31 - 1

#: Metadata and custom operators of models whose weights TFLM unpacks at run time.
_COMPRESSION = "COMPRESSION_METADATA"
_DECODE = "TFLM_DECODE"


@dataclass(frozen=True, slots=True)
class FileTensor:
    """One tensor: its bytes in TFLM's memory, and whether the file carries its values (`constant`)."""

    name: str
    type: int
    shape: tuple[int, ...]
    nbytes: int
    constant: bool
    variable: bool
    scales: int

    @property
    def elements(self) -> int:
        """Number of elements; a scalar has one."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class FileOp:
    """One operator; `calls` are the subgraphs it runs, in TFLM's order.

    `options` is the schema's own table, for a custom operator the mapping in its flexbuffer, or None.
    """

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    calls: tuple[int, ...] = ()
    options: Any = None
    custom: bool = False

    @property
    def reads(self) -> tuple[int, ...]:
        """Distinct tensors read, absent ones left out."""
        return tuple(dict.fromkeys(t for t in self.inputs if t >= 0))

    @property
    def writes(self) -> tuple[int, ...]:
        """Tensors written, absent ones left out."""
        return tuple(t for t in self.outputs if t >= 0)


@dataclass(frozen=True, slots=True)
class FileSubgraph:
    """Tensors and operators of one subgraph, in file order; indices are local to it."""

    tensors: tuple[FileTensor, ...]
    ops: tuple[FileOp, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class FileModel:
    """A whole .tflite file. Tensors are numbered over all subgraphs, as the offline plan numbers them."""

    name: str
    data: bytes
    subgraphs: tuple[FileSubgraph, ...]
    compressed: bool = False

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """For each subgraph the number of its first tensor."""
        firsts, count = [], 0
        for subgraph in self.subgraphs:
            firsts.append(count)
            count += len(subgraph.tensors)
        return tuple(firsts)

    @cached_property
    def tensors(self) -> tuple[FileTensor, ...]:
        """All tensors, subgraph by subgraph."""
        return tuple(t for subgraph in self.subgraphs for t in subgraph.tensors)


def read_tflite(data: bytes, name: str) -> FileModel:
    """The file `name` with content `data`.

    Raises:
        ModelError: not a TFLite flatbuffer, or a tensor of a type that TFLM does not have.
    """
    import tflite

    try:
        compression = flatbuffer.get_metadata(data, _COMPRESSION)  # walks the root and refuses what is no flatbuffer
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None
    try:
        model = tflite.Model.GetRootAs(data, 0)
        kinds = [_kind(model.OperatorCodes(i)) for i in _each(model.OperatorCodesLength(), data)]
        subgraphs = tuple(
            _subgraph(data, model, model.Subgraphs(i), kinds, f"{name}: subgraph {i}")
            for i in _each(model.SubgraphsLength(), data)
        )
    except (struct.error, IndexError, AttributeError, TypeError, ValueError, UnicodeDecodeError) as error:
        raise ModelError(f"{name}: not a TFLite model that can be read: {error}") from None
    return FileModel(name, data, subgraphs, compression is not None or has_decoder(subgraphs))


def has_decoder(subgraphs: Sequence[FileSubgraph]) -> bool:
    """Whether operators unpack weights at run time."""
    return any(op.kind == _DECODE for subgraph in subgraphs for op in subgraph.ops)


def _each(count: int, data: bytes) -> range:
    """The indices of a vector of four-byte elements, which cannot be longer than its file."""
    if 4 * count > len(data):
        raise ValueError(f"found a vector of {count} elements in a file of {len(data)} bytes")
    return range(count)


def _kind(code: Any) -> tuple[str, bool]:
    """The operator's name, and whether it is a custom one."""
    import tflite

    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    if number == tflite.BuiltinOperator.CUSTOM:
        return (code.CustomCode() or b"CUSTOM").decode(), True
    return _builtin_names().get(number, f"BUILTIN_{number}"), False


def _builtin_names() -> dict[int, str]:
    import tflite

    return {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}


def _subgraph(data: bytes, model: Any, subgraph: Any, kinds: list[tuple[str, bool]], where: str) -> FileSubgraph:
    tensors = tuple(
        _tensor(data, model, subgraph.Tensors(i), f"{where} tensor {i}") for i in _each(subgraph.TensorsLength(), data)
    )
    ops = tuple(_op(data, subgraph.Operators(i), kinds) for i in _each(subgraph.OperatorsLength(), data))
    inputs = tuple(subgraph.Inputs(i) for i in _each(subgraph.InputsLength(), data))
    outputs = tuple(subgraph.Outputs(i) for i in _each(subgraph.OutputsLength(), data))
    _check_indices(len(tensors), 0, (("input", inputs), ("output", outputs)), where)
    for number, op in enumerate(ops):
        named = (("input", op.inputs), ("output", op.outputs))
        _check_indices(len(tensors), -1, named, f"{where} op {number} {op.kind}")
    return FileSubgraph(tensors, ops, inputs, outputs)


def _check_indices(count: int, least: int, named: Sequence[tuple[str, tuple[int, ...]]], where: str) -> None:
    for what, indices in named:
        for t in indices:
            if not least <= t < count:
                raise ModelError(f"{where}: {what} is tensor {t}, expected {least} to {count - 1}")


def _tensor(data: bytes, model: Any, tensor: Any, where: str) -> FileTensor:
    name = (tensor.Name() or b"").decode(errors="replace")
    shape = tuple(tensor.Shape(i) for i in _each(tensor.ShapeLength(), data))
    if tensor.Type() not in _ELEMENT:
        raise ModelError(f"{where} {name!r} has type {tensor.Type()}, which TFLM cannot hold")
    if any(extent < 0 for extent in shape):
        raise ModelError(f"{where} {name!r} has shape {list(shape)}, expected extents of at least 0")
    if prod(shape) * _ELEMENT[tensor.Type()] > _LARGEST:
        raise ModelError(f"{where} {name!r} has shape {list(shape)}, expected at most {_LARGEST} bytes")
    if tensor.Buffer() >= model.BuffersLength():
        raise ModelError(f"{where} {name!r} uses buffer {tensor.Buffer()} of {model.BuffersLength()}")
    buffer = model.Buffers(tensor.Buffer())
    quantization = tensor.Quantization()
    scaled = quantization is not None and quantization.ScaleLength() and quantization.ZeroPointLength()
    return FileTensor(
        name,
        tensor.Type(),
        shape,
        prod(shape) * _ELEMENT[tensor.Type()],
        buffer.DataLength() > 0 or buffer.Offset() > 1,
        bool(tensor.IsVariable()),
        quantization.ScaleLength() if scaled else 0,
    )


def _op(data: bytes, op: Any, kinds: list[tuple[str, bool]]) -> FileOp:
    kind, custom = kinds[op.OpcodeIndex()]
    options = _custom_options(op) if custom else _options(op)
    return FileOp(
        kind,
        tuple(op.Inputs(i) for i in _each(op.InputsLength(), data)),
        tuple(op.Outputs(i) for i in _each(op.OutputsLength(), data)),
        _calls(kind, options),
        options,
        custom,
    )


def _options(op: Any) -> Any:
    """The operator's builtin options as the schema's own table, None where it has none."""
    import tflite

    names = {v: n for n, v in vars(tflite.BuiltinOptions).items() if isinstance(v, int)}
    name, table = names.get(op.BuiltinOptionsType()), op.BuiltinOptions()
    if not name or name == "NONE" or table is None:
        return None
    new: Callable[[], Any] = getattr(tflite, name)
    options = new()
    initialise: Callable[[bytes, int], None] = options.Init
    initialise(table.Bytes, table.Pos)
    return options


def _custom_options(op: Any) -> dict[str, Any] | None:
    """The mapping in the operator's flexbuffer, or None where there is no mapping."""
    from flatbuffers import flexbuffers

    if not op.CustomOptionsLength():
        return None
    try:
        options = flexbuffers.Loads(op.CustomOptionsAsNumpy().tobytes())
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, struct.error):
        return None  # custom operators may carry bytes of their own kind (Ethos-U does), which the parser trips over
    return options if isinstance(options, dict) else None


def _calls(kind: str, options: Any) -> tuple[int, ...]:
    """The subgraphs that TFLM plans at this operator."""
    if options is None:
        return ()
    return tuple(getattr(options, field)() for field in _CALLED.get(kind, ()))
