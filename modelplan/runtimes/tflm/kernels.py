"""Working memory that TFLM's kernels ask for while one operator runs, by kernel library: a table of small formulas.

The sizes come in the order in which the kernel requests them, unpadded. `reference` is what tflite-micro's own
kernels ask for. Where CMSIS-NN's answer has changed over time the larger one stands (3x3 depthwise on DSP cores
needs none in recent releases); 1x1 convolutions need none except when Arm's own compiler built the library.
Source: tflite-micro, micro/kernels/*.cc; CMSIS-NN, *_get_buffer_sizes_*.c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from modelplan.errors import RequestError


@dataclass(frozen=True, slots=True)
class Operand:
    """What a formula needs to know of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    constant: bool = False

    @property
    def elements(self) -> int:
        """Number of elements; a scalar has one."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Call:
    """One operator as its kernel sees it. `options` are the schema's fields; `pointer` is the size of an address."""

    kind: str
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]
    options: Mapping[str, int | str | bool] = field(default_factory=dict)
    pointer: int = 8

    def input(self, index: int) -> Operand:
        """Operand `index`.

        Raises:
            ValueError: it is absent.
        """
        operand = self.inputs[index] if index < len(self.inputs) else None
        if operand is None:
            raise ValueError(f"{self.kind} has no input {index}, which its kernel needs")
        return operand

    @property
    def output(self) -> Operand:
        """The first output."""
        if not self.outputs or self.outputs[0] is None:
            raise ValueError(f"{self.kind} has no output")
        return self.outputs[0]

    def number(self, name: str, default: int = 0) -> int:
        """An integer option."""
        return int(self.options.get(name, default))


Formula = Callable[[Call], Sequence[int]]


def scratch_sizes(call: Call, kernels: str = "reference") -> tuple[int, ...]:
    """The bytes that the kernel of `call` requests, in its order; nothing for most operators.

    Raises:
        RequestError: no such kernel library; the message lists them.
        ValueError: the operator lacks an operand that its kernel needs.
    """
    if kernels not in _FORMULAS:
        raise RequestError(f"no kernels {kernels!r}; there are: {', '.join(_FORMULAS)}")
    formula = _FORMULAS[kernels].get(call.kind)
    return tuple(formula(call)) if formula else ()


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _unpacked_filter(call: Call) -> list[int]:
    """4-bit weights are unpacked to bytes before the loop."""
    weights = call.inputs[1] if len(call.inputs) > 1 else None
    return [weights.elements] if weights is not None and weights.dtype == "int4" else []


def _svdf(call: Call) -> list[int]:
    """Scratch for the filters' sums and, quantised, for the units'."""
    batches, filters = call.input(0).shape[0], call.input(1).shape[0]
    if call.input(0).dtype == "float32":
        return [4 * batches * filters]
    return [4 * batches * filters, 4 * batches * (filters // call.number("rank", 1))]


def _lstm(buffers: int) -> Formula:
    """`buffers` gates of batch x state cells each."""
    cell_bytes = {"float32": 4, "int16": 2, "int8": 1}

    def formula(call: Call) -> list[int]:
        state, cell = call.input(18), call.input(19)
        batch = call.input(0).shape[1 if call.options.get("time_major") else 0]
        return [batch * state.shape[-1] * cell_bytes[cell.dtype]] * buffers

    return formula


def _transpose_conv(call: Call) -> list[int]:
    """Accumulators for the whole output, and 64-bit copies of a 16-bit bias."""
    width = {"int8": 4, "int16": 8}.get(call.input(2).dtype)
    if width is None:
        return []
    requests = [width * call.output.elements]
    bias = call.inputs[3] if len(call.inputs) > 3 else None
    if width == 8 and bias is not None and bias.dtype == "int16":
        requests.append(8 * bias.elements)
    return requests


def _mean(call: Call) -> list[int]:
    """Sums of the output, then the running index and the resolved axes."""
    sums = [4 * call.output.elements] if call.input(0).dtype in ("int8", "int16") else []
    return sums + _reduce(call)


def _reduce(call: Call) -> list[int]:
    return [4 * len(call.input(0).shape), 4 * call.input(1).elements]


def _add_n(call: Call) -> list[int]:
    return [call.pointer * len(call.inputs)]


def _mirror_pad(call: Call) -> list[int]:
    return [4 * len(call.input(0).shape)] * 2


def _ethos_u(call: Call) -> list[int]:
    operands = len(call.inputs) + len(call.outputs)
    return [8 * operands, call.pointer * operands]


def _detection(call: Call) -> list[int]:
    """Eleven buffers of the non-maximum suppression."""
    boxes, scores = call.input(0).shape[1], call.input(1).shape
    most, classes = call.number("max_detections"), call.number("num_classes")
    return [
        boxes, 16 * boxes, 4 * scores[-2] * scores[-1], 4 * boxes, 4 * boxes, 4 * most * boxes, 4 * most * boxes,
        4 * boxes, 4 * most * boxes, 4 * max(classes, most) * boxes, 4 * min(boxes, most) * boxes,
    ]  # fmt: skip


def _rfft(call: Call) -> list[int]:
    """The frame, padded to the length of the transform."""
    return [call.number("fft_length") * {"int16": 2, "int32": 4, "float32": 4}[call.input(0).dtype]]


@dataclass(frozen=True, slots=True)
class _Window:
    """The geometry of a convolution."""

    channels: int
    taps: int
    dilated: bool

    @property
    def pointwise(self) -> bool:
        return self.taps == 1 and not self.dilated

    @classmethod
    def of(cls, call: Call) -> _Window:
        """The window of an operator whose input 1 is the filter [o, h, w, c]."""
        _, height, width, channels = call.input(1).shape
        return cls(
            channels,
            height * width,
            max(call.number("dilation_h_factor", 1), call.number("dilation_w_factor", 1)) > 1,
        )


def _positive(size: int) -> list[int]:
    """CMSIS-NN kernels request nothing where the library needs nothing."""
    return [size] if size > 0 else []


def _cmsis_columns(patch: int, dtype: str, *, mve: bool) -> int:
    """Two im2col columns of 16-bit values (DSP) or four vectors of them (MVE)."""
    if mve:
        return 64 * -(-patch // (8 if dtype == "int16" else 16))
    return 4 * _up(patch, 4) if dtype == "int8" else 4 * patch


def _cmsis_conv(*, mve: bool) -> Formula:
    def formula(call: Call) -> list[int]:
        dtype = call.input(0).dtype
        if dtype not in ("int8", "int16"):
            return _unpacked_filter(call)
        window = _Window.of(call)
        if window.pointwise and dtype == "int8":
            return []
        return [_cmsis_columns(window.taps * window.channels, dtype, mve=mve)]

    return formula


def _cmsis_depthwise(*, mve: bool) -> Formula:
    def formula(call: Call) -> list[int]:
        dtype = call.input(0).dtype
        if dtype not in ("int8", "int16"):
            return _unpacked_filter(call)
        window = _Window.of(call)
        batch, channels = call.input(0).shape[0], call.input(0).shape[-1]
        if dtype == "int8" and mve and channels == 1 and window.channels > 8:
            return [_cmsis_columns(window.taps, dtype, mve=True) + window.taps * window.channels]
        if channels != window.channels or window.dilated or (dtype == "int8" and batch != 1):
            return []
        return _positive(_cmsis_depthwise_bytes(window, dtype, mve=mve))

    return formula


def _cmsis_depthwise_bytes(window: _Window, dtype: str, *, mve: bool) -> int:
    if dtype == "int16":
        if window.taps >= 512:
            return 0
        return (8 if mve else 2) * window.channels * window.taps + (8 if mve else 0)
    return 4 * 124 * window.taps if mve else 2 * window.channels * window.taps


def _cmsis_transpose_conv(*, mve: bool) -> Formula:
    def formula(call: Call) -> list[int]:
        operand, weights = call.input(2), call.input(1)
        if operand.dtype != "int8":
            return _transpose_conv(call)
        out, height, width, channels = weights.shape
        stride_h, stride_w = call.number("stride_h", 1), call.number("stride_w", 1)
        if stride_h <= 2 and stride_w <= 2 and channels > 16:
            patch = height * width * channels
            return [_cmsis_columns(patch, "int8", mve=mve), patch * out]
        reach = (operand.shape[2] - 1) * stride_w + max(width, stride_h)
        return [4 * reach * out * max(height, stride_h)]

    return formula


def _cmsis_fully_connected(*, mve: bool) -> Formula:
    def formula(call: Call) -> list[int]:
        weights = call.input(1)
        if mve and call.input(0).dtype == "int8" and not weights.constant:
            return [4 * weights.shape[0]]
        return _unpacked_filter(call)

    return formula


def _dsp_average_pool(call: Call) -> list[int]:
    quantised = call.input(0).dtype in ("int8", "int16")
    return [4 * call.input(0).shape[-1]] if quantised else []


def _lstm_cmsis(call: Call) -> Sequence[int]:
    return _lstm(3 if call.input(0).dtype in ("int8", "int16") else 4)(call)


_REFERENCE: dict[str, Formula] = {
    "CONV_2D": _unpacked_filter,
    "DEPTHWISE_CONV_2D": _unpacked_filter,
    "FULLY_CONNECTED": _unpacked_filter,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm(4),
    "TRANSPOSE_CONV": _transpose_conv,
    "MEAN": _mean,
    "SUM": _mean,
    "REDUCE_MAX": _reduce,
    "REDUCE_MIN": _reduce,
    "REDUCE_ALL": _reduce,
    "ADD_N": _add_n,
    "MIRROR_PAD": _mirror_pad,
    "SignalRfft": _rfft,
    "ethos-u": _ethos_u,
    "TFLite_Detection_PostProcess": _detection,
}

_FORMULAS: dict[str, dict[str, Formula]] = {
    "reference": _REFERENCE,
    "cmsis-dsp": _REFERENCE
    | {
        "CONV_2D": _cmsis_conv(mve=False),
        "DEPTHWISE_CONV_2D": _cmsis_depthwise(mve=False),
        "FULLY_CONNECTED": _cmsis_fully_connected(mve=False),
        "TRANSPOSE_CONV": _cmsis_transpose_conv(mve=False),
        "AVERAGE_POOL_2D": _dsp_average_pool,
        "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm_cmsis,
    },
    "cmsis-mve": _REFERENCE
    | {
        "CONV_2D": _cmsis_conv(mve=True),
        "DEPTHWISE_CONV_2D": _cmsis_depthwise(mve=True),
        "FULLY_CONNECTED": _cmsis_fully_connected(mve=True),
        "TRANSPOSE_CONV": _cmsis_transpose_conv(mve=True),
        "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm_cmsis,
    },
}
