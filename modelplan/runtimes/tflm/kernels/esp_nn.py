"""Espressif's kernels with ESP-NN: scratch of the ESP32-S3 by version, and of the generic kernels of other chips.

Sizes change where a function `esp_nn_get_*_scratch_size` does: 1.0.0 to 1.1.2 ask for the same; 1.2.0 asks for more in
depthwise convolutions that widen to 16 bits; 1.2.1 and 1.2.2 have other kernels and ask for the same; 1.2.3 asks for 32
bytes more in each convolution.
Source: espressif/esp-tflite-micro, kernels/esp_nn/*.cc; espressif/esp-nn at each of these versions,
esp_nn_conv_esp32s3.c, esp_nn_depthwise_conv_s8_esp32s3.c and esp_nn_softmax_*.c.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import rounded_up
from modelplan.runtimes.tflm.kernels import reference, weighted
from modelplan.runtimes.tflm.kernels.checks import QUANTISED, one_of, rank_between, same_types, window_padding
from modelplan.runtimes.tflm.kernels.elementwise import SOFTMAX_DATA, add, softmax
from modelplan.runtimes.tflm.kernels.preparation import Operator, Preparation


@dataclass(frozen=True, slots=True)
class EspWindow:
    """The geometry that ESP-NN's sizes depend on: (height, width) pairs and channels."""

    size: tuple[int, int]
    taps: tuple[int, int]
    result: tuple[int, int]
    padding: tuple[int, int]
    stride: tuple[int, int]
    inputs: int
    outputs: int
    multiplier: int = 1

    @property
    def pixels(self) -> int:
        """Rows times columns of the input."""
        return self.size[0] * self.size[1]

    @property
    def window(self) -> int:
        """Rows times columns of the filter."""
        return self.taps[0] * self.taps[1]

    def beyond(self) -> tuple[int, int]:
        """Rows and columns by which the last windows reach over the input."""
        return (
            self.result[0] * self.stride[0] + self.taps[0] - 1 - self.size[0],
            self.result[1] * self.stride[1] + self.taps[1] - 1 - self.size[1],
        )

    def padded(self, rows: int, columns: int) -> int:
        """Pixels of the input with so many rows and columns more."""
        return (self.size[0] + rows) * (self.size[1] + columns)


Size = Callable[[EspWindow], int]

_NO_BIAS = "no bias, which ESP-NN looks at"
#: Bytes of a padded map that a depthwise convolution copies as a whole; where outputs may lie depends on it too
#: (`esp_nn_overlap.py`).
COPIED_WHOLE = 40 * 1024
#: Bytes of the first cache of the ESP32-P4 that a convolution counts on.
_CACHE_P4 = 32 * 1024


def _pointwise(w: EspWindow, margin: int) -> int:
    """A 1x1 convolution: channels padded to eights, a transposed block of pixels."""
    channels = rounded_up(w.inputs, 8)
    source = w.pixels * channels if w.inputs % 8 else 0
    return source + channels * w.outputs + (16 * channels if w.pixels >= 8 else 0) + margin


def _is_pointwise(w: EspWindow) -> bool:
    return w.taps == (1, 1) and w.padding == (0, 0) and w.stride == (1, 1)


def _wide(w: EspWindow) -> int:
    """Input with its padding, filter with channels padded to sixteens, and an offset for each output channel."""
    source = w.padded(2 * w.padding[0], 2 * w.padding[1]) * w.inputs if any(w.padding) else 0
    return source + w.window * rounded_up(w.inputs, 16) * w.outputs + 4 * w.outputs


def conv_1_1(w: EspWindow) -> int:
    """Bytes for a convolution in ESP-NN 1.1.0 and 1.2.0."""
    return _pointwise(w, 32) if _is_pointwise(w) else _wide(w) + 32


def conv_1_2_1(w: EspWindow) -> int:
    """Bytes for a convolution in ESP-NN 1.2.1."""
    return _conv_1_2(w, 32)


def conv_1_2_3(w: EspWindow) -> int:
    """Bytes for a convolution in ESP-NN 1.2.3."""
    return _conv_1_2(w, 64)


def _conv_1_2(w: EspWindow, margin: int) -> int:
    if _is_pointwise(w):
        return _pointwise(w, margin)
    row, patch = w.taps[1] * w.inputs, w.window * w.inputs
    if row < 16 <= patch:
        return 4 * w.outputs + 16 + w.outputs * rounded_up(patch, 16) + 16 + rounded_up(patch, 16) + margin
    rows, columns = (max(0, extent) for extent in w.beyond())
    edge = w.padded(rows, columns) * w.inputs if rows or columns else 0
    return _wide(w) + rounded_up(row, 16) * w.taps[0] * w.outputs + edge + margin


def conv_p4(w: EspWindow) -> int:
    """Bytes for a convolution on the ESP32-P4 in ESP-NN 1.2.3."""
    if _is_pointwise(w):
        return _pointwise(w, 32) if w.inputs >= 16 else 4 * w.outputs + 16 * w.outputs + 32 + 32
    fixed = 4 * w.outputs + 32
    filters = w.window * rounded_up(w.inputs, 16) * w.outputs
    if not any(w.padding) and w.taps[1] * w.inputs >= 16:
        return fixed + filters
    if w.window * w.inputs >= 16:
        return fixed + w.window * w.inputs
    return fixed + (_padded_p4(w, filters) if any(w.padding) else (w.window * w.outputs + w.pixels) * _wide_p4(w))


def _wide_p4(w: EspWindow) -> int:
    """Channels with which a row of the filter fills a vector register."""
    return rounded_up(-(-16 // w.taps[1]), 16)


def _padded_p4(w: EspWindow, filters: int) -> int:
    """Windows of fewer than 16 elements over a padded map: the whole map, or as many rows as the cache holds."""
    width, whole = w.size[1] + 2 * w.padding[1], w.padded(2 * w.padding[0], 2 * w.padding[1]) * w.inputs
    if whole + 4 * w.outputs <= _CACHE_P4:
        return whole + filters
    narrow = w.taps[1] * w.inputs < 16
    channels, aligned = (_wide_p4(w), w.window * _wide_p4(w) * w.outputs) if narrow else (w.inputs, 0)
    row, rows = width * channels, 1
    room = _CACHE_P4 - 4 * w.outputs - aligned
    if room > 0 and w.taps[0] * row <= room:
        rows = min((room - w.taps[0] * row) // (w.stride[0] * row) + 1, w.result[0])
    return ((rows - 1) * w.stride[0] + w.taps[0] + 2 * w.padding[0]) * row + aligned


def _depthwise_padding(w: EspWindow) -> tuple[int, int]:
    return (2 * w.padding[0], 2 * w.padding[1]) if any(w.padding) else w.beyond()


def depthwise_1_1(w: EspWindow) -> int:
    """Bytes for a depthwise convolution in ESP-NN 1.1.0."""
    return _depthwise_1_1(w, 16)


def depthwise_1_2_0(w: EspWindow) -> int:
    """Bytes for a depthwise convolution in ESP-NN 1.2.0."""
    return _depthwise_1_1(w, 32)


def _depthwise_1_1(w: EspWindow, margin: int) -> int:
    """The same with so many bytes beside weights and input of 16 bits."""
    weights = w.window * w.inputs * w.multiplier
    wide = 2 * (weights + w.pixels * w.inputs) + margin
    if w.multiplier == 1 and w.inputs % 8 == 0 and w.taps == (3, 3):
        if w.inputs % 16:
            return wide
        rows, columns = _depthwise_padding(w)
        return weights + (w.padded(rows, columns) * w.inputs if rows or columns else 0) + 16
    return wide if w.multiplier % 4 == 0 else 32


def depthwise_1_2_1(w: EspWindow) -> int:
    """Bytes for a depthwise convolution in ESP-NN 1.2.1 to 1.2.3."""
    if w.multiplier == 1 and w.inputs % 8 == 0:
        return _square(w) if w.taps == (3, 3) else _tall(w)
    if w.multiplier == 1 and w.inputs > 3:
        channels = rounded_up(w.inputs, 8)
        source = rounded_up(2 * w.window * channels, 16)
        result = rounded_up(source + 2 * w.pixels * channels, 16)
        bias = rounded_up(result + w.result[0] * w.result[1] * channels, 16)
        return bias + 12 * channels + 16
    if w.multiplier % 4 == 0:
        return 2 * (w.window * w.inputs * w.multiplier + w.pixels * w.inputs) + 32
    return 32


def _square(w: EspWindow) -> int:
    """3x3 filters over channels in eights; large inputs go strip by strip."""
    weights = 9 * w.inputs
    if w.inputs % 16 == 0:
        rows, columns = _depthwise_padding(w)
        if not (rows or columns):
            return weights + 16
        whole = w.padded(rows, columns) * w.inputs
        strip = (w.size[1] + columns) * 3 * w.inputs
        return weights + (whole if whole <= COPIED_WHOLE else strip) + 16
    if w.inputs < 12:
        return 2 * (weights + w.pixels * w.inputs) + 32
    channels = rounded_up(w.inputs, 16)
    rows, columns = (2 * pad + max(0, extent) for pad, extent in zip(w.padding, w.beyond(), strict=True))
    return (9 + w.padded(rows, columns) + w.result[0] * w.result[1]) * channels + 64


def _tall(w: EspWindow) -> int:
    """Other filters over channels in eights; large inputs go in tiles of the filter's height."""
    weights, source = w.window * w.inputs, w.pixels * w.inputs
    if 2 * (weights + source) <= 48 * 1024:
        return 2 * (weights + source) + 32
    return 2 * weights + 2 * w.size[1] * w.taps[0] * w.inputs + 32


def _none(_: EspWindow) -> int:
    return 0


def _window(p: Preparation, outputs: int, multiplier: int = 1) -> EspWindow:
    source, weights, result = p.call.input(0), p.call.input(1), p.call.output()
    size, taps = (source.dim(1), source.dim(2)), (weights.dim(1), weights.dim(2))
    return EspWindow(
        size, taps, (result.dim(1), result.dim(2)), window_padding(p, size, taps),
        (p.call.number("stride_h", 1), p.call.number("stride_w", 1)), source.dim(3), outputs, multiplier,
    )  # fmt: skip


def _conv(p: Preparation, size: Size) -> None:
    result, source, weights = p.output(), p.input(0), p.input(1)
    p.require(weights.dim(3) > 0, "a filter without channels")
    p.require(source.dim(3) % weights.dim(3) == 0, f"{source.dim(3)} channels for a filter of {weights.dim(3)}")
    same_types(p, source, result)
    weighted.require_weights(p, source, weights)
    weighted.keep_multipliers(p, weights.dim(0))
    if source.dtype in QUANTISED:
        weighted.require_channel_scales(p, weights, 0)
    bias = weighted.convolution_data(p, source.dtype, 0)
    weighted.unpacked(p, weights)
    if source.dtype == "int8":
        p.scratch_if_any(size(_window(p, result.dim(3))))
    if source.dtype == weights.dtype == "int8":
        p.require(bias is not None, _NO_BIAS)
        undilated = p.call.number("dilation_h_factor", 1) == p.call.number("dilation_w_factor", 1) == 1
        p.require(source.dim(3) == weights.dim(3) or not undilated, "a convolution in groups, which ESP-NN lacks")


def _depthwise(p: Preparation, size: Size) -> None:
    result, source, weights = p.output(), p.input(0), p.input(1)
    for operand, what in ((source, "input 0"), (weights, "input 1"), (result, "output")):
        rank_between(p, operand, what, 4, 4)
    p.require(weights.shape[0] == 1, f"a filter of shape {list(weights.shape)}; its kernel takes 1 first")
    fits = source.shape[3] > 0 and weights.shape[3] % source.shape[3] == 0
    p.require(fits, f"{weights.shape[3]} filters for {source.shape[3]} channels")
    weighted.keep_multipliers(p, weights.shape[3])
    if source.dtype == "int8":
        weighted.require_channel_scales(p, weights, 3)
    weighted.require_weights(p, source, weights)
    weighted.unpacked(p, weights)
    bias = weighted.depthwise_data(p, source.dtype)
    if source.dtype == "int8":
        p.scratch_if_any(size(_window(p, result.shape[3], p.call.number("depth_multiplier", 1))))
    if source.dtype == "int16":
        weighted.require_bias(p, bias, weights)
    p.require(bias is not None or source.dtype != "int8" or weights.dtype != "int8", _NO_BIAS)


def _softmax(p: Preparation) -> None:
    softmax(p)
    source = p.call.input(0)
    if source.dtype == p.call.output().dtype == "int8":
        p.scratch_if_any(4 * source.dim(1))


def _fully_connected(p: Preparation) -> None:
    reference.OPERATORS["FULLY_CONNECTED"].prepare(p)
    bias = p.call.inputs[2] if len(p.call.inputs) > 2 else None
    if p.call.input(0).dtype == "int16" and bias is not None:
        one_of(p, bias, "the bias", "int64")


def operators(conv: Size, depthwise: Size) -> Mapping[str, Operator]:
    """The kernels of one release, by the sizes that its convolutions ask for."""
    own = reference.OPERATORS
    data = (weighted.CONV_DATA, "int")
    return {
        **own,
        "CONV_2D": replace(own["CONV_2D"], data=data, prepare=lambda p: _conv(p, conv), unpacks=()),
        "DEPTHWISE_CONV_2D": replace(
            own["DEPTHWISE_CONV_2D"], data=data, prepare=lambda p: _depthwise(p, depthwise), unpacks=()
        ),
        "ADD": replace(own["ADD"], prepare=add),
        "FULLY_CONNECTED": replace(own["FULLY_CONNECTED"], prepare=_fully_connected, unpacks=()),
        "SOFTMAX": replace(own["SOFTMAX"], data=(SOFTMAX_DATA, "int"), prepare=_softmax),
    }


V1_1_0 = operators(conv_1_1, depthwise_1_1)
V1_2_0 = operators(conv_1_1, depthwise_1_2_0)
V1_2_1 = operators(conv_1_2_1, depthwise_1_2_1)
V1_2_3 = operators(conv_1_2_3, depthwise_1_2_1)
P4_1_1_0 = operators(conv_1_1, _none)
P4_1_2_3 = operators(conv_p4, _none)
GENERIC = operators(_none, _none)
