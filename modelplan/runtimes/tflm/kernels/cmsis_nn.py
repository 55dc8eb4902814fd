"""TFLM's kernels with CMSIS-NN, and the scratch of the library's three paths: plain C, DSP and MVE.

Sizes are those of builds with GCC. Arm's own compiler asks for 4 bytes a channel more in pointwise convolutions on
the DSP path. Source: tflite-micro, micro/kernels/cmsis_nn/*.cc; CMSIS-NN, *_get_buffer_sizes_*.c.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import rounded_up
from modelplan.runtimes.tflm.kernels import reference, weighted
from modelplan.runtimes.tflm.kernels.calls import Operand
from modelplan.runtimes.tflm.kernels.checks import (
    QUANTISED,
    constant,
    one_of,
    rank_between,
    same_types,
    scaled,
    window_padding,
    zero_points,
)
from modelplan.runtimes.tflm.kernels.elementwise import SOFTMAX_DATA, add, softmax
from modelplan.runtimes.tflm.kernels.preparation import Operator, Preparation, Prepare

MVE_BLOCK = 124
#: TFLM asserts that the scratch buffer of such products has at least this number in the model.
_FIRST_BUFFER = 4


@dataclass(frozen=True, slots=True)
class Path:
    """One way through CMSIS-NN: vectors of Helium (`mve`), the DSP instructions, or plain C with neither."""

    dsp: bool = False
    mve: bool = False


@dataclass(frozen=True, slots=True)
class CmsisWindow:
    """The geometry of a convolution: extents, taps, strides, dilations and padding as (height, width)."""

    size: tuple[int, int]
    taps: tuple[int, int]
    padding: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    channels: int
    filter_channels: int
    columns: int

    @property
    def patch(self) -> int:
        """Values under the window, over all channels of the input."""
        return self.taps[0] * self.taps[1] * self.channels

    @property
    def pointwise(self) -> bool:
        """Whether the library has a shorter way for 1x1 windows."""
        flat = self.taps == (1, 1) == self.dilation and self.padding == (0, 0)
        return flat and self.channels == self.filter_channels

    @property
    def flat(self) -> bool:
        """Whether the library has a shorter way for windows of one row."""
        one_row = self.size[0] == self.taps[0] == self.dilation[1] == 1
        return one_row and self.stride[1] * self.channels % 4 == 0 and self.channels == self.filter_channels


def _window(p: Preparation, source: Operand, weights: Operand, result: Operand) -> CmsisWindow:
    size, taps = (source.dim(1), source.dim(2)), (weights.dim(1), weights.dim(2))
    number = p.call.number
    return CmsisWindow(
        size, taps, window_padding(p, size, taps), (number("stride_h", 1), number("stride_w", 1)),
        (number("dilation_h_factor", 1), number("dilation_w_factor", 1)), source.dim(3), weights.dim(3), result.dim(2),
    )  # fmt: skip


def _columns_int8(patch: int, path: Path) -> int:
    """Two im2col columns of 16-bit values, or four vectors of 8-bit values with MVE."""
    return 4 * rounded_up(patch, 16) if path.mve else 4 * rounded_up(patch, 4)


def conv_bytes(w: CmsisWindow, path: Path) -> int:
    """What an 8-bit convolution asks for."""
    if w.pointwise:
        return 0
    if w.flat and path.mve:
        return _row_bytes(w, path)
    return _columns_int8(w.patch, path)


def _row_bytes(w: CmsisWindow, path: Path) -> int:
    """Windows of one row with MVE: room for the padded ends, unless the ends overlap."""
    pad, stride, taps = w.padding[1], w.stride[1], w.taps[1]
    total = (w.columns - 1) * stride + taps - w.size[1]
    uneven = total % 2 if total >= 0 else -(-total % 2)
    right = max(1, (pad + uneven + stride - 1) // stride) if pad + uneven else 0
    left = max(1, (pad + stride - 1) // stride) if pad else 0
    if left + right + max(w.columns - left - right, 0) != w.columns:
        return _columns_int8(w.patch, path)
    before = pad * w.channels
    after = right * w.channels if uneven else before
    return max(taps * w.channels + before, (taps - 1) * w.channels + after)


def _conv(p: Preparation, path: Path) -> None:
    source, weights, result = p.input(0), p.input(1), p.output()
    same_types(p, source, result)
    weighted.require_weights(p, source, weights)
    for operand, what in ((source, "input 0"), (weights, "input 1"), (result, "output")):
        rank_between(p, operand, what, 4, 4)
    p.require(source.shape[0] == result.shape[0], "batches that differ")
    fits = weights.shape[3] > 0 and source.shape[3] % weights.shape[3] == 0
    p.require(fits, f"{source.shape[3]} channels for a filter of {weights.shape[3]}")
    groups = source.shape[3] // weights.shape[3]
    p.require(groups > 0 and result.shape[3] % groups == 0, f"{result.shape[3]} filters in {groups} groups")
    if source.dtype in QUANTISED:
        weighted.keep_multipliers(p, weights.shape[0])
    weighted.convolution_data(p, source.dtype, 0)
    w = _window(p, source, weights, result)
    if source.dtype == "int8":
        p.scratch_if_any(conv_bytes(w, path))
    elif source.dtype == "int16":
        zero_points(p, source, result)
        p.scratch_if_any(8 * rounded_up(w.patch, 8) if path.mve else 4 * w.patch)


def _depthwise(p: Preparation, path: Path) -> None:
    source, weights, result = p.input(0), p.input(1), p.output()
    same_types(p, source, result)
    weighted.require_weights(p, source, weights)
    if source.dtype in QUANTISED:
        scaled(p, weights, "the filter")
        if source.dtype == "int16":
            zero_points(p, source, result)
        weighted.require_channel_scales(p, weights, 3, points=True)
        weighted.keep_multipliers(p, weights.dim(3))
    weighted.depthwise_data(p, source.dtype)
    if source.dtype == "int8":
        for operand, what in ((source, "input 0"), (weights, "input 1"), (result, "output")):
            rank_between(p, operand, what, 4, 4)
        p.require(source.shape[0] == result.shape[0] and result.shape[3] == weights.shape[3], "shapes that do not fit")
        p.scratch_if_any(_depthwise_bytes(_window(p, source, weights, result), source, weights, path))


def _depthwise_bytes(w: CmsisWindow, source: Operand, weights: Operand, path: Path) -> int:
    """What an 8-bit depthwise convolution asks for."""
    taps, outputs = w.taps[0] * w.taps[1], weights.shape[3]
    if path.mve and weights.dtype == "int8" and w.channels == 1 and outputs > 1:
        # As a convolution of one channel. CMSIS-NN looks at a stride that TFLM leaves unset: the larger answer holds.
        alike = replace(w, filter_channels=1, stride=(4, 4))
        other = replace(alike, stride=(1, 1))
        return max(conv_bytes(alike, path), conv_bytes(other, path)) + taps * outputs
    if w.channels != outputs or source.shape[0] != 1 or w.dilation != (1, 1):
        return 0
    small = w.taps == (3, 3) and max(w.padding) <= 1
    if weights.dtype == "int8" and not path.mve and (small or not path.dsp):
        return 0
    return fast_depthwise_bytes(taps, w.channels, path)


def fast_depthwise_bytes(taps: int, channels: int, path: Path) -> int:
    """What arm_depthwise_conv_s8_opt and arm_depthwise_conv_fast_s16 ask for."""
    return 4 * MVE_BLOCK * taps if path.mve else 2 * channels * taps


def _fully_connected(p: Preparation, path: Path) -> None:
    source, weights, bias, result = p.input(0), p.input(1), p.optional(2), p.output()
    same_types(p, source, result)
    weighted.require_weights(p, source, weights)
    rank_between(p, result, "output", 2, 4)
    weighted.fully_connected_data(p, source, weights, bias, result)
    by_channel = source.dtype != "float32" and weights.per_channel
    p.require(not by_channel or source.dtype == "int8", "16-bit input with weights that have a scale for each channel")
    if source.dtype == "int16":
        zero_points(p, source, result)
    if source.dtype != "int8" or weights.dtype == "int4":
        return
    if result.rank > 2 and weights.dim(-1) % 4 == 0:
        if not by_channel:
            p.scratch(8 * result.dim(-1))
            known = p.earlier is None or p.earlier >= _FIRST_BUFFER
            p.require(known, "a product as a convolution before four other scratch buffers; TFLM stops in an assertion")
    elif path.mve:
        sums = 4 * result.dim(-1)
        fixed = weights.constant and (bias is None or bias.constant)
        p.keep(sums) if fixed else p.scratch(sums)


def _batch_matmul(p: Preparation, path: Path) -> None:
    left, right, result = p.input(0), p.input(1), p.output()
    same_types(p, left, right, result)
    rank_between(p, left, "input 0", 2, 4)
    rank_between(p, right, "input 1", 2, 4)
    weighted.require_product(p, left, right)
    weighted.keep_turned(p, left, right)
    weighted.reshape_product(p, left, right, result)
    if left.dtype == "float32":
        return
    p.keep_struct(weighted.MATMUL_QUANTISATION)
    if left.dtype == "int16":
        zero_points(p, left, right, result)
    elif path.mve:
        columns = right.dim(-2 if p.call.number("adj_y") else -1)
        p.scratch(4 * columns)


def _average_pool(p: Preparation, path: Path) -> None:
    weighted.pooling(p)
    source = p.input()
    p.output()
    if source.dtype in QUANTISED:
        rank_between(p, source, "input 0", 4, 4)
        p.scratch_if_any(average_bytes(source.shape[3], path))


def average_bytes(channels: int, path: Path) -> int:
    """What arm_avgpool_s8 and arm_avgpool_s16 ask for."""
    return 4 * channels if path.dsp and not path.mve else 0


def _svdf(p: Preparation, path: Path) -> None:
    features = weighted.svdf_scratch(p)
    if features.dtype == "int8" and path.mve:
        constant(p, features, "input 1")
        p.keep(4 * features.dim(0))


def _transpose_conv(p: Preparation, path: Path) -> None:
    result, source, weights = p.output(), p.input(2), p.input(1)
    same_types(p, source, result)
    weighted.require_weights(p, source, weights, int4=False)
    weighted.keep_multipliers(p, weights.dim(0))
    if source.dtype == "int8":
        for size in _transposed_bytes(p, source, weights, path):
            p.scratch(size)
    if source.dtype == "int16":
        p.scratch(8 * result.elements)
    if source.dtype in QUANTISED:
        weighted.require_channel_scales(p, weights, 0, points=True)
    weighted.transposed_data(p, source.dtype, needs_bias=True)
    tall = p.call.number("stride_h", 1) > weights.dim(1) and p.call.text("padding") == "VALID"
    p.require(
        source.dtype != "int8" or not tall, "a stride above its filter's height; CMSIS-NN writes beyond its output"
    )


def _transposed_bytes(p: Preparation, source: Operand, weights: Operand, path: Path) -> tuple[int, int]:
    """Working memory and the turned filter: by a convolution backwards, or by sums over the whole reach."""
    for operand, what in ((source, "input 2"), (weights, "input 1")):
        rank_between(p, operand, what, 4, 4)
    outputs, height, width, channels = weights.shape
    stride_h, stride_w = p.call.number("stride_h", 1), p.call.number("stride_w", 1)
    if max(stride_h, stride_w) <= 2 and channels > 16:
        patch = height * width * channels
        return _columns_int8(patch, path), patch * outputs
    reach = (source.shape[2] - 1) * stride_w + max(width, stride_h)
    return 4 * reach * outputs * max(height, stride_h), 0


def _lstm(p: Preparation) -> None:
    source, state, cell = weighted.lstm_operands(p)
    for index in (*range(1, 9), *range(12, 16)):
        constant(p, p.call.input(index), f"input {index}")
    batch, units = weighted.require_lstm_shapes(p, source, state, cell)
    weighted.lstm_gates(p, cell)
    quantised = source.dtype in QUANTISED and cell.dtype == "int16"
    if quantised:
        for _ in range(8):
            p.keep(units * (4 if source.dtype == "int8" else 8))
    weighted.lstm_scratch(p, 3 if quantised else 4, batch * units, cell)
    one_of(p, p.call.input(1), "the weights", "float32" if source.dtype == "float32" else "int8")


def _softmax(p: Preparation) -> None:
    softmax(p)
    p.require(p.call.input(0).shape == p.call.output().shape, "shapes that differ")


def _add(p: Preparation) -> None:
    add(p)
    operand, other, result = p.call.input(0), p.call.input(1), p.call.output()
    same_types(p, operand, other, result)
    if operand.dtype == "int16":
        zero_points(p, operand, other, result)


def _extreme(p: Preparation) -> None:
    """MAXIMUM and MINIMUM of any type tell CMSIS-NN four extents."""
    for operand, what in ((p.call.input(0), "input 0"), (p.call.input(1), "input 1"), (p.call.output(), "output")):
        rank_between(p, operand, what, 0, 4)


_LSTM_GATE = ("int32*2", "pointer*2", "int32*2", "pointer*3", "enum")
_TRANSPOSE_DATA = (weighted.CONV_PARAMS, "int*3", "pointer*2")


def operators(path: Path) -> Mapping[str, Operator]:
    """The kernels of one path."""
    own = reference.OPERATORS

    def on(prepare: Callable[[Preparation, Path], None]) -> Prepare:
        return lambda p: prepare(p, path)

    conv = (weighted.CONV_DATA, "int")
    changed = {
        "ADD": replace(own["ADD"], prepare=_add),
        "CONV_2D": replace(own["CONV_2D"], data=conv, prepare=on(_conv), unpacks=()),
        "DEPTHWISE_CONV_2D": replace(own["DEPTHWISE_CONV_2D"], data=conv, prepare=on(_depthwise), unpacks=()),
        "FULLY_CONNECTED": replace(
            own["FULLY_CONNECTED"],
            data=(weighted.FULLY_CONNECTED_DATA, "int*2", "pointer", "int32*3"),
            prepare=on(_fully_connected),
            unpacks=(),
        ),
        "BATCH_MATMUL": replace(
            own["BATCH_MATMUL"], data=(weighted.MATMUL_DATA, ("int32*4",), "int"), prepare=on(_batch_matmul)
        ),
        "AVERAGE_POOL_2D": replace(own["AVERAGE_POOL_2D"], data=(weighted.POOL_DATA, "int"), prepare=on(_average_pool)),
        "MAX_POOL_2D": replace(own["MAX_POOL_2D"], data=(weighted.POOL_DATA, "int")),
        "MAXIMUM": replace(own["MAXIMUM"], prepare=_extreme),
        "MINIMUM": replace(own["MINIMUM"], prepare=_extreme),
        "SOFTMAX": replace(own["SOFTMAX"], data=(SOFTMAX_DATA, "int32*2"), prepare=_softmax),
        "SVDF": replace(own["SVDF"], data=(*weighted.SVDF_DATA, "pointer"), prepare=on(_svdf)),
        "TRANSPOSE_CONV": replace(own["TRANSPOSE_CONV"], data=_TRANSPOSE_DATA, prepare=on(_transpose_conv), unpacks=()),
        "UNIDIRECTIONAL_SEQUENCE_LSTM": replace(
            own["UNIDIRECTIONAL_SEQUENCE_LSTM"],
            data=(weighted.LSTM_DATA, ("int32*15", *(_LSTM_GATE,) * 4)),
            prepare=_lstm,
        ),
    }
    return {**own, **changed}


C = Path()
DSP = Path(dsp=True)
MVE = Path(dsp=True, mve=True)
