"""The leads of ESP-NN's kernels for the ESP32-S3: by how many bytes an output must start before an operand.

What a lead is stands in `ops/safe_overlap.py`. Most kernels finish pixel after pixel or copy their operand into scratch
first, so that TFLM's own leads are enough; the C kernels, which a host runs in their place, need those too. Others:

* a pointwise convolution whose channels are no multiple of 8 takes eight pixels at a time and reads the channels left
  over again for each output channel, when all but the last channel of the eight are written;
* a depthwise convolution of 3x3 over channels in sixteens goes over the whole map for every sixteen channels. It may
  write over its operand where it has copied all of it first, or where there are just sixteen channels.

With paddings of 1 on one axis only, or none before a map of more than 40 KiB and some behind it, that kernel asks for
less scratch than it uses, so no lead is given. Dilated convolutions, 16 bits and floats go to TFLM's own kernels.
Source: espressif/esp-nn 1.2.3, esp_nn_conv_esp32s3.c, esp_nn_conv_s8_1x1_esp32s3.c, esp_nn_conv_s8_mult8_1x1_esp32s3.S,
esp_nn_conv_s8_filter_aligned_input_padded_esp32s3.S, esp_nn_depthwise_conv_s8_esp32s3.c and the kernels that it calls;
espressif/esp-tflite-micro, kernels/esp_nn/*.cc.
"""

from itertools import pairwise

from modelplan.model import Graph, Op, Tensor
from modelplan.ops import access_of, plain_lead, safe_overlap
from modelplan.ops.conditions import number, result, source
from modelplan.runtimes.tflm.kernels.esp_nn import COPIED_WHOLE

#: Operators with vector kernels, which read and write maps at multiples of 16 bytes; they drop the lower address bits.
VECTOR_KINDS = frozenset(
    {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "MUL", "MAX_POOL_2D", "AVERAGE_POOL_2D", "SOFTMAX"}
)
#: Pixels of a pointwise convolution at a time, channels of a depthwise one.
_PIXELS, _CHANNELS = 8, 16


def _convolved(graph: Graph, op: Op, operand: int) -> int | None:
    plain, x, y, weights = plain_lead(graph, op, operand), *_maps(graph, op)
    if plain is None or not x or not y or not weights or x.dtype != "int8":
        return plain
    if weights.dtype != "int8" or weights.shape[3] != x.shape[3]:
        return None
    steps = [number(op, name, 1) for name in ("stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor")]
    if weights.shape[1:3] != (1, 1) or set(steps) != {1} or not x.shape[3] % _PIXELS:
        return plain
    image, (outputs, inputs) = y.shape[1] * y.shape[2], (y.shape[3], x.shape[3])
    blocks = [*range(0, image - _PIXELS + 1, _PIXELS), *range(image - image % _PIXELS, image), image]
    before = [b * image * (outputs - inputs) for b in (0, y.shape[0] - 1)]
    least: int = max(end * outputs - 1 - start * inputs for start, end in pairwise(blocks))
    return max(plain, max(before) + least)


def _convolved_by_channel(graph: Graph, op: Op, operand: int) -> int | None:
    plain, x, y, weights = plain_lead(graph, op, operand), *_maps(graph, op)
    if plain is None or not x or not y or not weights or x.dtype != "int8":
        return plain
    if weights.dtype != "int8":
        return None
    dilated = {number(op, "dilation_h_factor", 1), number(op, "dilation_w_factor", 1)} != {1}
    if dilated or weights.shape[1:3] != (3, 3) or y.shape[3] != x.shape[3] or x.shape[3] % _CHANNELS:
        return plain
    return plain if _is_read_first(graph, op, x, y) else None


def _is_read_first(graph: Graph, op: Op, x: Tensor, y: Tensor) -> bool:
    """Whether a depthwise convolution of 3x3 copies what it reads before it writes there, or reads it in one walk."""
    axes = ((1, "h"), (2, "w"))
    pads = [safe_overlap.window_padding(access_of(graph, op), axis) for axis, _ in axes]
    if pads == [1, 1]:
        return True
    behind = [y.shape[axis] * number(op, f"stride_{name}", 1) + 2 - x.shape[axis] for axis, name in axes]
    if pads != [0, 0]:
        return False
    if not any(behind):
        return x.shape[3] == _CHANNELS
    return (x.shape[1] + behind[0]) * (x.shape[2] + behind[1]) * x.shape[3] <= COPIED_WHOLE


def _connected(graph: Graph, op: Op, operand: int) -> int | None:
    _, _, weights = _maps(graph, op)
    return plain_lead(graph, op, operand) if weights and weights.dtype != "int4" else None


def _maps(graph: Graph, op: Op) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    return source(graph, op), result(graph, op), source(graph, op, 1)


#: The leads on chips without vector kernels, whose C kernels finish element after element like TFLM's own.
GENERIC_LEADS = {
    "CONV_2D": plain_lead,
    "DEPTHWISE_CONV_2D": plain_lead,
    "FULLY_CONNECTED": plain_lead,
}
#: Those on the ESP32-S3.
S3_LEADS = {"CONV_2D": _convolved, "DEPTHWISE_CONV_2D": _convolved_by_channel, "FULLY_CONNECTED": _connected}
