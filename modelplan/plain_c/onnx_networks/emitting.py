"""Where the values of an .onnx model stand in a network: their layout, and whether they are floats or codes.

A map [N, C, H, W] that an operator of maps makes is held as [N, H, W, C] ("last"), a sequence [N, C, L] as
[N, L, 1, C]; all else as the model says. Both orders are the same bytes where a map has one channel or one place. What
asks for the other order is given a TRANSPOSE, once.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from math import prod
from typing import Any

import numpy as np

from modelplan.plain_c.kernel_records import MissingKernelError
from modelplan.plain_c.onnx_networks.network_builder import NetworkBuilder
from modelplan.plain_c.onnx_networks.onnx_nodes import Array, OnnxModel, OnnxNode, Shape
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.stated_network import CodeScales

#: What is added to the file's codes of 8 bits without a sign.
UNSIGNED = 128
Limits = tuple[float, float]
UNLIMITED: Limits = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Held:
    """A value in the network: its tensor, whether channels stand `last`, its shape in the model, and its codes.

    `code` is by how much the file's own codes are larger. A `flat` value has the bytes of a map whose channels stand
    last, of so many channels and places, where the model has them first.
    """

    tensor: int
    last: bool
    shape: Shape
    scales: CodeScales | None = None
    code: int = 0
    flat: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ConstantCodes:
    """Constants as codes with their scales; those without a sign are moved to where they have one."""

    codes: Array
    scales: CodeScales

    @property
    def numbers(self) -> Array:
        """What the codes stand for."""
        shape = [1] * self.codes.ndim
        if len(self.scales.scales) > 1:
            shape[self.scales.axis] = len(self.scales.scales)
        scale = np.array(self.scales.scales, np.float32).reshape(shape)
        return (self.codes.astype(np.float32) - np.float32(self.scales.zero)) * scale


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What becomes of the result of a node: its name behind activations, their limits, and its codes if it has some."""

    name: str
    limits: Limits = UNLIMITED
    scales: CodeScales | None = None
    code: int = 0


class RefusedNodeError(Exception):
    """A node that has no plain C: says why."""


class UnknownValueError(RefusedNodeError):
    """A node that reads what no node with plain C computes."""


def require(holds: bool, why: str) -> None:  # noqa: FBT001
    """Refuses a node where a condition does not hold."""
    if not holds:
        raise RefusedNodeError(why)


def require_axis(scales: CodeScales | None, axis: int) -> None:
    """Refuses weights whose scales run along another axis than their results."""
    along = scales is None or len(scales.scales) == 1 or scales.axis == axis
    require(along, f"scales of weights along axis {scales.axis if scales else 0}, expected {axis}")


def placed_last(shape: Sequence[int]) -> Shape:
    """The extents of a map or a sequence whose channels stand last."""
    n, c, h, *w = shape
    return (n, h, w[0] if w else 1, c)


def last_order(rank: int) -> tuple[int, ...]:
    """The order of axes that puts channels last; of a sequence once it has a fourth axis."""
    return (0, 2, 3, 1) if rank == 4 else (0, 2, 1)


def last_axis(axis: int, rank: int) -> int:
    """Where an axis stands once channels stand last."""
    axis %= rank
    return {0: 0, 1: 3, 2: 1, 3: 2}[axis]


@dataclass
class Emitter:
    """A model on its way to a network."""

    model: OnnxModel
    built: NetworkBuilder = field(default_factory=NetworkBuilder)
    values: dict[str, Held] = field(default_factory=dict)
    #: Of values that are a DequantizeLinear of codes, the value of these.
    codes: dict[str, str] = field(default_factory=dict)
    #: The same of constants.
    constant_codes: dict[str, ConstantCodes] = field(default_factory=dict)
    #: Nodes that another one does too, by the first of their results.
    absorbed: set[str] = field(default_factory=set)
    #: Of ends that are codes without a sign, the same codes with one, in the same order.
    signed: dict[int, int] = field(default_factory=dict)
    _others: dict[tuple[str, bool], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.readers: dict[str, list[OnnxNode]] = {}
        for node in self.model.nodes:
            for name in dict.fromkeys(node.inputs):
                self.readers.setdefault(name, []).append(node)

    # What is known of values

    def shape(self, name: str) -> Shape:
        """The extents of a value in the model."""
        require(name in self.model.types, f"the extents of {name!r} are not known")
        return self.model.types[name][0]

    def dtype(self, name: str) -> str:
        """The type of a value in the model, where it is known."""
        return self.model.types.get(name, ((), ""))[1]

    def constant(self, name: str) -> Array | None:
        """What is known of a value before the network runs; of codes the numbers for which they stand."""
        if name in self.constant_codes:
            return self.constant_codes[name].numbers
        return self.model.constants.get(name)

    def known(self, node: OnnxNode, position: int) -> Array | None:
        """The same of an operand, None also where it is absent."""
        return self.constant(node.inputs[position]) if node.has(position) else None

    def needed(self, node: OnnxNode, position: int, what: str) -> Array:
        """A constant operand."""
        values = self.known(node, position)
        require(values is not None, f"{what}: known only while the model runs")
        assert values is not None
        return values

    def codes_of(self, name: str) -> Held | None:
        """The codes of which a value is the numbers, where there are some."""
        return self.values[self.codes[name]] if name in self.codes else None

    def only_reader(self, name: str) -> OnnxNode | None:
        """The node that alone reads a value which is no output of the model."""
        readers = self.readers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self.model.outputs else None

    def scales(self, node: OnnxNode, first: int, *, weights: bool = False) -> tuple[CodeScales, int]:
        """The scales that two operands state from `first` on, and by how much the file's codes are larger."""
        scale = self.needed(node, first, "scale").astype(np.float32).ravel()
        zero = self.known(node, first + 1)
        dtype = str(zero.dtype) if zero is not None else "uint8"
        if zero is None and node.text("output_dtype", "0") not in ("0", "2"):
            raise RefusedNodeError("codes of a type that its attribute names")
        stated = zero is not None or node.kind == "QuantizeLinear" or self.dtype(node.inputs[0]) == "uint8"
        require(stated, "codes with a sign whose zero point is not stated")
        zeros = {int(z) for z in zero.ravel()} if zero is not None else {0}
        require(dtype in ("int8", "uint8", "int32"), f"codes of type {dtype}, there are kernels for 8 bits")
        require(len(zeros) == 1 and (weights or len(scale) == 1), "zero points or scales by channel")
        require(not int(node.number("block_size")), "scales by blocks")
        require(bool(np.all(np.isfinite(scale) & (scale > 0))), "a scale that is not positive")
        code = UNSIGNED if dtype == "uint8" else 0
        scales = tuple(float(s) for s in scale)
        return CodeScales(scales, zeros.pop() - code, int(node.number("axis", 1)) if len(scales) > 1 else 0), code

    # Values on their way to operators

    def floats(self, name: str) -> Held:
        """A value as floats, or as what it is where it never was a float."""
        if name in self.values:
            return self.values[name]
        if name in self.codes:
            source = self.codes_of(name)
            assert source is not None
            self.values[name] = self._like(name, source, "float32")
            self.built.op("DEQUANTIZE", [source.tensor], [self.values[name].tensor])
            return self.values[name]
        values = self.constant(name)
        if values is None:
            raise UnknownValueError(f"{name!r} is computed by no node that has plain C")
        self.values[name] = Held(self.built.constant(name, _in_c(values)), last=False, shape=values.shape)
        return self.values[name]

    def _like(self, name: str, like: Held, dtype: str, scales: CodeScales | None = None, code: int = 0) -> Held:
        """A new value in the place and order of another one."""
        shape = self.built.tensors[like.tensor].shape
        return replace(like, tensor=self.built.tensor(name, shape, dtype, scales), scales=scales, code=code)

    def in_order(self, held: Held, *, last: bool) -> int:
        """The tensor of a value in an order of axes."""
        if held.flat and not last:
            return self._unflattened(held)
        if held.last == last:
            return held.tensor
        key = self.built.tensors[held.tensor].name, last
        if key not in self._others:
            self._others[key] = self._turned(held, last=last)
        return self._others[key]

    def _turned(self, held: Held, *, last: bool) -> int:
        """A map in the other order."""
        rank = len(held.shape)
        require(rank in (3, 4), f"a map of {rank} dimensions")
        tensor, shape = self.built.tensors[held.tensor], placed_last(held.shape) if last else held.shape
        target = self.built.tensor(tensor.name, shape, _dtype(tensor.type), held.scales)
        if prod(held.shape[2:]) == 1 or held.shape[1] == 1:
            self._view(held.tensor, target, shape)
        elif rank == 4:
            self._transpose(held.tensor, target, (0, 2, 3, 1) if last else (0, 3, 1, 2))
        else:
            n, c, length = held.shape
            between = (n, length, c)
            middle = self.built.tensor(tensor.name, between, _dtype(tensor.type), held.scales)
            if last:
                self._transpose(held.tensor, middle, (0, 2, 1))
                self._view(middle, target, shape)
            else:
                self._view(held.tensor, middle, between)
                self._transpose(middle, target, (0, 2, 1))
        return target

    def _unflattened(self, held: Held) -> int:
        assert held.flat is not None
        (channels, places), batches = held.flat, held.shape[0]
        tensor = self.built.tensors[held.tensor]
        dtype = _dtype(tensor.type)
        maps = self.built.tensor(tensor.name, (batches, places, channels), dtype, held.scales)
        turned = self.built.tensor(tensor.name, (batches, channels, places), dtype, held.scales)
        target = self.built.tensor(tensor.name, held.shape, dtype, held.scales)
        self._view(held.tensor, maps, (batches, places, channels))
        self._transpose(maps, turned, (0, 2, 1))
        self._view(turned, target, held.shape)
        return target

    def _transpose(self, source: int, target: int, order: Sequence[int]) -> None:
        self.built.op("TRANSPOSE", [source, self.integers("order", order)], [target])

    def _view(self, source: int, target: int, shape: Sequence[int]) -> None:
        self.built.op("RESHAPE", [source, self.integers("shape", shape)], [target])

    def integers(self, name: str, values: Sequence[int]) -> int:
        """A constant of whole numbers."""
        return self.built.constant(name, np.array(values, np.int32))

    def stands_last(self, tensor: int) -> bool:
        """Whether a tensor has its channels last where the model has them first."""
        tensor = self.signed.get(tensor, tensor)
        others = (other for (_, last), other in self._others.items() if last)
        held = (h.tensor for h in self.values.values() if h.last and not h.flat)
        return tensor in {*others, *held}

    def last(self, name: str) -> int:
        """The tensor of a map whose channels stand last."""
        return self.in_order(self.floats(name), last=True)

    def native(self, name: str) -> int:
        """The tensor of a value in the model's order."""
        return self.in_order(self.floats(name), last=False)

    def transposed(self, held: Held, name: str, shape: Shape, order: Sequence[int]) -> Held:
        """A value in an order of its axes, in the model's order."""
        tensor = self.in_order(held, last=False)
        target = self.built.tensor(name, shape, _dtype(self.built.tensors[tensor].type), held.scales)
        self._transpose(tensor, target, order)
        return replace(held, tensor=target, last=False, shape=shape, flat=None)

    def without_sign(self, tensor: int, *, fed: bool) -> int:
        """An end that has the codes of a tensor without their sign, from which it is `fed` or which it is read of."""
        cell, scales = self.built.tensors[tensor], self.built.scales[tensor]
        own = replace(scales, zero=scales.zero + UNSIGNED)
        end = self.built.tensor(cell.name, cell.shape, "uint8", own)
        self.built.exchange_names(end, tensor)
        self.signed[end] = tensor
        pair = [end], [tensor]
        self.built.op("QUANTIZE", *(pair if fed else pair[::-1]))
        if fed:
            self.built.ops.insert(0, self.built.ops.pop())
        return end

    def viewed(self, held: Held, name: str, shape: Shape, *, stored: Shape, last: bool) -> Held:
        """The bytes of a value under other extents."""
        target = self.built.tensor(name, stored, _dtype(self.built.tensors[held.tensor].type), held.scales)
        self._view(held.tensor, target, stored)
        return replace(held, tensor=target, last=last, shape=shape, flat=None)

    # Results

    def target(self, node: OnnxNode, *, coded: bool, limited: bool = True) -> NodeResult:
        """What becomes of the first result of a node; activations and codes behind it need no node of their own."""
        target = NodeResult(node.outputs[0])
        while reader := self.only_reader(target.name):
            limits = self.limits_of(reader) if limited else None
            if limits is not None:
                (low, high), (least, most) = limits, target.limits
                bounds = max(min(least, high), low), max(min(most, high), low)
                target = replace(target, name=reader.outputs[0], limits=bounds)
                self.absorbed.add(reader.outputs[0])
                continue
            if coded and reader.kind == "QuantizeLinear":
                scales, code = self.scales(reader, 1)
                self.absorbed.add(reader.outputs[0])
                return replace(target, name=reader.outputs[0], scales=scales, code=code)
            break
        return target

    def limits_of(self, node: OnnxNode) -> Limits | None:
        """The bounds that an activation sets; None of any other node."""
        if node.kind == "Relu":
            return 0.0, math.inf
        if node.kind != "Clip":
            return None
        ends = [node.attributes.get("min"), node.attributes.get("max")]
        for position in (1, 2):
            if node.has(position):
                known = self.known(node, position)
                if known is None:
                    return None
                ends[position - 1] = float(known.ravel()[0])
        low, high = ends
        return -math.inf if low is None else float(low), math.inf if high is None else float(high)

    def result(self, target: NodeResult, *, last: bool, dtype: str = "float32") -> int:
        """A new tensor for a result."""
        shape = self.shape(target.name)
        stored = placed_last(shape) if last else shape
        dtype = "int8" if target.scales else dtype
        tensor = self.built.tensor(target.name, stored, dtype, target.scales)
        self.values[target.name] = Held(tensor, last, shape, target.scales, target.code)
        return tensor

    def options(self, target: NodeResult) -> dict[str, Any]:
        """What an operator has to know of its result."""
        options: dict[str, Any] = {"FusedActivationFunction": 0}
        if target.limits != UNLIMITED:
            options["Limits"] = target.limits
        if target.code:
            options["CodeOffset"] = target.code
        return options

    def spread_constant(self, values: Array, rank: int, *, last: bool) -> Array:
        """A constant of an element-wise operator, in the order of the values beside it."""
        if not last:
            return values
        full = values.reshape((1,) * (rank - values.ndim) + values.shape)
        turned = np.ascontiguousarray(full.transpose(last_order(rank)))
        return turned[:, :, None, :] if rank == 3 else turned


def _in_c(values: Array) -> Array:
    """Constants in types that kernels have."""
    if values.dtype == np.float64 or values.dtype == np.float16:
        return values.astype(np.float32)
    return values.astype(np.int32) if values.dtype == np.int64 else values


def _dtype(code: int) -> str:
    from modelplan.formats.tflite.tflite_schema import DTYPES

    return DTYPES[code]


def refusals(model: OnnxModel, refused: Sequence[tuple[OnnxNode, str]]) -> MissingKernelError:
    """All nodes that have no plain C in one error."""
    return MissingKernelError(model.name, [(node.kind, why, node.label) for node, why in refused])


def nodes_to_emit(emitter: Emitter) -> Iterator[OnnxNode]:
    """The nodes that no other one does too."""
    for node in emitter.model.nodes:
        if node.outputs[0] not in emitter.absorbed:
            yield node
