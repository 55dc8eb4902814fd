"""How far an output must start before an operand that it overlaps, from the loops of the kernels.

The verifier derives this itself; planning has `ops/safe_overlap.py`. A kernel that writes its output front to back has
written all pieces before the one that it reads for (a piece is an element, or all channels of a pixel). Taking the
pieces from the last to the first, `needed` is the lowest byte of the operand that this piece or a later one reads; what
is written before that read must end at or below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod
from weakref import WeakKeyDictionary

import numpy as np

from modelplan.checking.verifier import cmsis_nn, esp_nn
from modelplan.checking.verifier.addresses import AddressLayout, Places
from modelplan.checking.verifier.cmsis_nn import CheckedWindow, Map, Round
from modelplan.checking.verifier.program import Program, Step, Value
from modelplan.checking.verifier.semantics import POINTWISE, may_overwrite, overwritable_reads
from modelplan.model import BoolArray, IntArray

_WINDOWS = {"CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"}
#: Operators that go front to back only if their kernel is the plain nest of loops.
_PLAIN_LOOPS = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}

#: Operators of `_copied`, with the operand that holds the data.
_PLACES = {"PAD": 0, "PADV2": 0, "TRANSPOSE_CONV": 2, "Compress": 0, "MaxPool": 0, "AveragePool": 0, "LpPool": 0}
_FLOAT = 4


def may_overlap(program: Program, layout: AddressLayout, step: Step, operand: int, output: int) -> bool:
    """Whether the operator may write `output` where the layout puts it, over bytes that it reads of `operand`."""
    x, y = step.inputs[operand], step.outputs[output]
    if x not in layout.address or y not in layout.address:
        return False
    lead = layout.address[x] - layout.address[y]
    if lead == 0 and may_overwrite(program, step, operand, output):
        return True
    declared = layout.declared.get((step.subgraph, step.op, y, x))
    least = least_lead(program, step, operand, output) if declared is None else declared
    return least is not None and lead >= least


def operands_under_results(program: Program, places: Places) -> tuple[IntArray, BoolArray]:
    """The rows of the program's reads that share bytes with their step's first output, and which of them may.

    May, because the output stands exactly over the operand and is written element over element: whether another may
    is for `may_overlap` to say.
    """
    columns = program.columns
    reads, result = columns.reads, columns.result[columns.reads.step]
    rows: IntArray = np.flatnonzero((result >= 0) & places.share(reads.tensor, result))
    in_place = places.start[reads.tensor[rows]] == places.start[result[rows]]
    return rows, in_place & overwritable_reads(program)[rows]


def least_lead(program: Program, step: Step, operand: int, output: int) -> int | None:
    """The least number of bytes by which the output must start before the operand; None: they must not overlap.

    It is remembered as long as the program is.

    Cost: O(pixels of the output).
    """
    if output or not program.sequential:
        return None
    known = _LEADS.setdefault(program, {})
    asked = step.kind, step.subgraph, step.op, step.inputs, step.outputs, operand
    if asked not in known:
        known[asked] = _least_lead(program, step, operand)
    return known[asked]


_Asked = tuple[str, int, int, tuple[int, ...], tuple[int, ...], int]
_LEADS: WeakKeyDictionary[Program, dict[_Asked, int | None]] = WeakKeyDictionary()


def _least_lead(program: Program, step: Step, operand: int) -> int | None:
    if len(step.writes) != 1 or step.inputs[operand] < 0:
        return None
    x, y = program.values[step.inputs[operand]], program.values[step.outputs[0]]
    if not x.nbytes or not y.nbytes or x.nbytes % x.elements or y.nbytes % y.elements:
        return None
    if program.library == cmsis_nn.EVERY_PATH:
        leads = [_least_lead(replace(program, library=path), step, operand) for path in cmsis_nn.IM2COL_PIXELS]
        known = [lead for lead in leads if lead is not None]
        return max(known) if len(known) == len(leads) else None
    if program.library in cmsis_nn.IM2COL_PIXELS:
        return _least_of_cmsis_nn(program, step, operand, x, y)
    if program.library in esp_nn.ORDERED:
        return _least_of_esp_nn(program, step, operand, x, y)
    if step.kind in _PLAIN_LOOPS and not program.plain_loops and program.library != esp_nn.ONE_BY_ONE:
        return None
    return _least_of_loops(program, step, operand, x, y)


def _least_of_loops(program: Program, step: Step, operand: int, x: Value, y: Value) -> int | None:
    """The lead of a kernel that finishes element after element."""
    if step.kind in POINTWISE:
        return _pointwise(x, y)
    if step.kind in ("CONCATENATION", "SLICE", "STRIDED_SLICE", "Slice"):
        return _runs(program, step, operand)
    if step.kind in _PLACES:
        return _copied(step, x, y) if operand == _PLACES[step.kind] else None
    if operand:
        return None
    if step.kind != "FULLY_CONNECTED":
        return _least_of_pixels(program, step, x, y)
    pieces = _rows(program, step, x, y)
    return _least(pieces) if pieces is not None else None


def _least_of_cmsis_nn(program: Program, step: Step, operand: int, x: Value, y: Value) -> int | None:
    """The lead of one of CMSIS-NN's kernels, or of TFLM's own where it has none."""
    plain = _least_of_loops(program, step, operand, x, y)
    if plain is None or x.dtype not in ("int8", "int16"):
        return plain
    if step.kind in _PLAIN_LOOPS - {"TRANSPOSE_CONV"} and program.values[step.inputs[1]].dtype != "int8":
        return None
    if step.kind in ("PAD", "PADV2") and x.dtype == "int8":  # rows of pixels by memcpy, pixels if channels are padded
        known = len(x.shape) == len(y.shape) <= 4
        return plain + prod(x.shape[-2 if x.shape[-1] == y.shape[-1] else -1 :]) if known and x.shape else None
    if step.kind == "TRANSPOSE_CONV":
        return None if x.dtype == "int8" else plain
    if step.kind == "FULLY_CONNECTED":
        return _least_of_matrix(program, step, x, y, plain)
    if step.kind not in _WINDOWS:
        return plain
    rounds = _rounds(program, step, x, y)
    if isinstance(rounds, str):
        return plain if rounds else None
    window = _window(program, step, x, y)
    assert window is not None
    return _least(_round_pieces(rounds, _starts(window, _four(x.shape), _four(y.shape)), x, y))


def _least_of_esp_nn(program: Program, step: Step, operand: int, x: Value, y: Value) -> int | None:
    """The lead of one of ESP-NN's kernels for the ESP32-S3, or of TFLM's own where it has none."""
    plain = _least_of_loops(program, step, operand, x, y)
    weighted = step.kind in _PLAIN_LOOPS - {"TRANSPOSE_CONV"}
    if plain is None or not weighted or x.dtype != "int8":
        return plain
    if program.values[step.inputs[1]].dtype != "int8":
        return None
    window = _window(program, step, x, y) if step.kind in _WINDOWS else None
    if window is None or window.dilations != (1, 1):
        return plain
    shape = Map(_four(y.shape), _four(x.shape))
    rounds = (esp_nn.convolution if step.kind == "CONV_2D" else esp_nn.depthwise)(shape, window)
    if isinstance(rounds, str):
        return plain if rounds else None
    return _least(_round_pieces(rounds, _starts(window, _four(x.shape), _four(y.shape)), x, y))


def _least_of_matrix(program: Program, step: Step, x: Value, y: Value, plain: int) -> int | None:
    """8-bit products of more than two dimensions run as convolutions of as many pixels as there are rows."""
    outputs, inputs = program.values[step.inputs[1]].shape
    if x.dtype != "int8" or len(y.shape) <= 2 or inputs % 4:
        return plain
    rows = range(y.elements // outputs)
    rounds = list(cmsis_nn.product(program.library, rows, outputs))
    return _least(_round_pieces(rounds, [r * inputs for r in rows], x, y))


def _rounds(program: Program, step: Step, x: Value, y: Value) -> list[Round] | str:
    """The rounds of a window's kernel; "elements" where each element is finished in turn, "" where nothing is known."""
    window, shape = _window(program, step, x, y), Map(_four(y.shape), _four(x.shape))
    bits = 8 * _width(x)
    if window is None:
        return ""
    if step.kind == "CONV_2D":
        grouped = program.values[step.inputs[1]].shape[3] != x.shape[3]
        return "" if grouped else cmsis_nn.convolution(program.library, bits, shape, window)
    if step.kind == "DEPTHWISE_CONV_2D":
        return cmsis_nn.depthwise(program.library, bits, shape, window, _number(step, "depth_multiplier"))
    if step.kind == "MAX_POOL_2D":
        return cmsis_nn.largest(shape)
    return cmsis_nn.im2col(shape, 1) if program.library == "cmsis-dsp" else "elements"


def _round_pieces(rounds: list[Round], starts: list[int], x: Value, y: Value) -> Iterator[list[Piece]]:
    """The rounds as pieces: what is written when a round's last read is done, and the lowest byte that it reads."""
    for pixels, written in reversed(rounds):
        yield [(written * _width(y), min(starts[p] for p in pixels) * _width(x))]


def _copied(step: Step, x: Value, y: Value) -> int | None:
    """The lead of operators that read the operand's elements in their order."""
    if _width(x) != _width(y):
        return None
    if step.kind in ("PAD", "PADV2"):  # at worst all padding comes first
        return y.nbytes - x.nbytes if x.nbytes <= y.nbytes else None
    if step.kind == "TRANSPOSE_CONV":  # integer kernels keep sums in scratch until all is read
        return 0 if _width(x) < _FLOAT else None
    if step.kind == "Compress":
        return 0 if len(x.shape) == 1 else None
    return 0 if _apart(step) else None


def _width(value: Value) -> int:
    return value.nbytes // value.elements


def _pointwise(x: Value, y: Value) -> int | None:
    """Element i of the output is written after element i of the operand was read."""
    trimmed = [[n for i, n in enumerate(v.shape) if any(e != 1 for e in v.shape[: i + 1])] for v in (x, y)]
    if trimmed[0] != trimmed[1]:
        return None
    last = y.elements - 1
    return max(0, last * _width(y) - last * _width(x))


def _runs(program: Program, step: Step, operand: int) -> int | None:
    """The lead of copies of whole byte runs: memcpy needs each run's target to end below its source."""
    x, y = program.values[step.inputs[operand]], program.values[step.outputs[0]]
    if len(x.shape) != len(y.shape) or _width(x) != _width(y):
        return None
    if step.kind == "CONCATENATION":
        axis = step.attribute("axis")
        if not isinstance(axis, int) or any(t < 0 for t in step.inputs):
            return None
        runs = prod(y.shape[: axis % max(len(y.shape), 1)])
        parts = [program.values[t].nbytes for t in step.inputs]
        if sum(parts) != y.nbytes or any(n % runs for n in parts):
            return None
        end = sum(parts[: operand + 1]) // runs
        return max(0, *(r * y.nbytes // runs + end - r * x.nbytes // runs for r in (0, runs - 1)))
    forward = step.kind == "SLICE" or _forward(step)
    cut = [axis for axis, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if a != b]
    return prod(y.shape[cut[-1] if cut else 0 :]) * _width(y) if forward and operand == 0 else None


def _forward(step: Step) -> bool:
    """Whether the steps of a slice are known and positive."""
    name = "operand 3" if step.kind == "STRIDED_SLICE" else "operand 4"
    if step.kind == "Slice" and len(step.inputs) < 5:
        return True
    steps = step.attribute(name)
    steps = steps if isinstance(steps, tuple) else (steps,)
    return all(isinstance(s, int) and s > 0 for s in steps)


def _apart(step: Step) -> bool:
    """Whether the windows of an ONNX pooling neither overlap nor leave the operand."""

    def numbers(name: str) -> list[int]:
        value = step.attribute(name)
        return [n for n in value if isinstance(n, int)] if isinstance(value, tuple) else []

    kernel = numbers("kernel_shape")
    strides = numbers("strides") or [1] * len(kernel)
    odd = any(numbers("pads")) or any(d != 1 for d in numbers("dilations")) or step.attribute("ceil_mode")
    plain = step.attribute("auto_pad") in (None, "NOTSET", "VALID") and not odd
    return bool(kernel) and plain and all(k <= s for k, s in zip(kernel, strides, strict=True))


#: An image in NHWC; with the bytes of an element.
Shape = tuple[int, int, int, int]
Shaped = tuple[Shape, int]
#: For one piece of the output, in bytes: where what is written before its last read ends, and the lowest it reads then.
Piece = tuple[int, int]


def _least(pieces: Iterator[list[Piece]]) -> int:
    """The lead that all pieces need; they come from the last to the first, the reads of a piece in any order."""
    lead, needed = 0, None
    for piece in pieces:
        for written, read in piece:
            lead = max(lead, written - (read if needed is None else min(read, needed)))
        lowest = min(read for _, read in piece)
        needed = lowest if needed is None else min(needed, lowest)
    return lead


def _rows(program: Program, step: Step, x: Value, y: Value) -> Iterator[list[Piece]] | None:
    """A fully connected layer: each row of the output from one row of the operand."""
    weights = program.values[step.inputs[1]] if len(step.inputs) > 1 and step.inputs[1] >= 0 else None
    if weights is None or len(weights.shape) != 2 or not weights.elements:
        return None
    outputs, inputs = weights.shape
    rows = y.elements // outputs
    if (rows * outputs, rows * inputs) != (y.elements, x.elements):
        return None
    out, into = outputs * _width(y), inputs * _width(x)
    return ([((r + 1) * out - _width(y), r * into)] for r in reversed(range(rows)))


def _least_of_pixels(program: Program, step: Step, x: Value, y: Value) -> int | None:
    """Convolutions and poolings over NHWC: each pixel from a window, all channels or each channel for itself."""
    window = _window(program, step, x, y)
    if step.kind not in _WINDOWS or window is None:
        return None
    by_channel = step.kind != "CONV_2D"
    if by_channel and y.shape[3] % x.shape[3]:
        return None
    return _least_of_window(window, (_four(x.shape), _width(x)), (_four(y.shape), _width(y)), by_channel)


@lru_cache(maxsize=512)  # every plan of a model asks for the same
def _least_of_window(window: CheckedWindow, operand: Shaped, result: Shaped, by_channel: bool) -> int:  # noqa: FBT001
    starts = _starts(window, operand[0], result[0])
    return _least(_window_pieces(operand, result, starts, by_channel=by_channel))


def _window(program: Program, step: Step, x: Value, y: Value) -> CheckedWindow | None:
    """What a pixel reads; None where the shapes are not those of images, or the window is not known."""
    kernel = _kernel(program, step)
    if kernel is None or len(x.shape) != 4 or len(y.shape) != 4 or x.shape[0] != y.shape[0]:
        return None
    strides = _number(step, "stride_h"), _number(step, "stride_w")
    dilation = _number(step, "dilation_h_factor"), _number(step, "dilation_w_factor")
    if min(*kernel, *strides, *dilation) < 1:
        return None
    same = step.attribute("padding") == "SAME"
    pads = [
        max((y.shape[1 + a] - 1) * strides[a] + (kernel[a] - 1) * dilation[a] + 1 - x.shape[1 + a], 0) // 2 * same
        for a in (0, 1)
    ]
    return CheckedWindow(kernel, strides, dilation, (pads[0], pads[1]))


def _starts(window: CheckedWindow, x: Shape, y: Shape) -> list[int]:
    """The first element of the operand `x` that each pixel of `y` reads, padding cut off."""
    (batches, rows, columns, _), (_, height, width, depth) = y, x
    tops = [max(row * window.strides[0] - window.pads[0], 0) for row in range(rows)]
    lefts = [max(column * window.strides[1] - window.pads[1], 0) for column in range(columns)]
    return [((b * height + top) * width + left) * depth for b in range(batches) for top in tops for left in lefts]


def _four(shape: tuple[int, ...]) -> Shape:
    batches, rows, columns, channels = shape
    return batches, rows, columns, channels


def _window_pieces(operand: Shaped, result: Shaped, starts: list[int], *, by_channel: bool) -> Iterator[list[Piece]]:
    (x, into), (y, out) = operand, result
    channels, depth = y[3], x[3]
    for pixel in reversed(range(len(starts))):
        read, before = starts[pixel] * into, pixel * channels * out
        if not by_channel:
            yield [(before + (channels - 1) * out, read)]
            continue
        each = channels // depth  # results of one channel; the last of them is the one that matters
        yield [(before + ((c + 1) * each - 1) * out, read + c * into) for c in {0, depth - 1}]


def _kernel(program: Program, step: Step) -> tuple[int, int] | None:
    if step.kind.endswith("POOL_2D"):
        return _number(step, "filter_height"), _number(step, "filter_width")
    weights = program.values[step.inputs[1]] if len(step.inputs) > 1 and step.inputs[1] >= 0 else None
    return (weights.shape[1], weights.shape[2]) if weights and len(weights.shape) == 4 else None


def _number(step: Step, name: str) -> int:
    """An option as a number, 1 where the operator lacks it."""
    value = step.attribute(name)
    return value if isinstance(value, int) else 1
