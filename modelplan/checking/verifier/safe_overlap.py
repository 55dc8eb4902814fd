"""How far an output must start before an operand that it overlaps, from the loops of the kernels.

The verifier derives this itself; planning has `ops/safe_overlap.py`. A kernel that writes its output front to back has
written all pieces before the one that it reads for (a piece is an element, or all channels of a pixel). Taking the
pieces from the last to the first, `needed` is the lowest byte of the operand that this piece or a later one reads; what
is written before that read must end at or below it.
"""

from dataclasses import replace
from functools import lru_cache
from math import prod
from weakref import WeakKeyDictionary

import numpy as np

from modelplan.checking.verifier import cmsis_nn, esp_nn
from modelplan.checking.verifier.addresses import AddressLayout, Places
from modelplan.checking.verifier.cmsis_nn import CheckedWindow, Map, Round
from modelplan.checking.verifier.moves import run_of, use_of
from modelplan.checking.verifier.places import OperandPlaces, places_read, repeated, strides
from modelplan.checking.verifier.program import Program, Step, Value
from modelplan.checking.verifier.semantics import (
    CONCATENATIONS,
    PADS,
    POINTWISE,
    SLICES,
    may_overwrite,
    overwritable_reads,
)
from modelplan.model import BoolArray, IntArray

_WINDOWS = {"CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"}
#: Operators that go front to back only if their kernel is the plain nest of loops.
_PLAIN_LOOPS = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}
#: Libraries of kernels that finish one element after the other: TFLM's own, those of plain C, ESP-NN's in C.
_ELEMENT_AFTER_ELEMENT = {"reference", "portable", esp_nn.ONE_BY_ONE}

_BY_PIXEL = {*_WINDOWS, "FULLY_CONNECTED"}
_SLICES = SLICES | {"Slice"}
#: An element that no operand has.
_NEVER = 1 << 40

#: Operators of `_copied`, with the operand that holds the data.
_PLACES = {**dict.fromkeys(PADS, 0), "TRANSPOSE_CONV": 2, "Compress": 0, "MaxPool": 0, "AveragePool": 0, "LpPool": 0}
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
    if program.library not in _ELEMENT_AFTER_ELEMENT:
        return None
    if step.kind in _PLAIN_LOOPS and not program.plain_loops and program.library != esp_nn.ONE_BY_ONE:
        return None
    return _least_of_loops(program, step, operand, x, y)


def _least_of_loops(program: Program, step: Step, operand: int, x: Value, y: Value) -> int | None:
    """The lead of a kernel that finishes element after element, or copies run after run."""
    if step.kind in _PLACES:
        return _copied(step, x, y) if operand == _PLACES[step.kind] else None
    if step.kind in _SLICES:
        return _sliced(step, x, y) if operand == 0 else None
    if step.kind in POINTWISE:
        each = _is_element_by_element(x.shape, y.shape)
        return max(0, (y.elements - 1) * (_width(y) - _width(x))) if each else None
    reads = _reads(program, step, operand) if step.kind in (*_BY_PIXEL, *CONCATENATIONS) else None
    if reads is None:
        return None
    if step.kind in CONCATENATIONS:
        return _joined(reads, y) if _width(x) == _width(y) else None
    starts = _starts(reads, y.shape) if operand == 0 else None
    return None if starts is None else _least_of_pixels(reads, starts, x, y)


@lru_cache(maxsize=8192)
def _is_element_by_element(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether element i of an operand stands at element i of a result of the same elements."""
    reads = repeated(0, x, y) if prod(x) == prod(y) else None
    return reads is not None and run_of(reads, y) == (0, 0, prod(x))


def _reads(program: Program, step: Step, operand: int) -> OperandPlaces | None:
    return next((reads for reads in places_read(use_of(program, step)) or () if reads.operand == operand), None)


def _least_of_cmsis_nn(program: Program, step: Step, operand: int, x: Value, y: Value) -> int | None:
    """The lead of one of CMSIS-NN's kernels, or of TFLM's own where it has none."""
    plain = _least_of_loops(program, step, operand, x, y)
    if plain is None or x.dtype not in ("int8", "int16"):
        return plain
    if step.kind in _PLAIN_LOOPS - {"TRANSPOSE_CONV"} and program.values[step.inputs[1]].dtype != "int8":
        return None
    if step.kind in PADS and x.dtype == "int8":  # rows of pixels by memcpy, pixels if channels are padded
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
    return _least_of_rounds(rounds, _reads(program, step, 0), x, y)


def _least_of_esp_nn(program: Program, step: Step, operand: int, x: Value, y: Value) -> int | None:
    """The lead of one of ESP-NN's kernels for the ESP32-S3, or of TFLM's own where it has none."""
    plain = _least_of_loops(program, step, operand, x, y)
    weighted = step.kind in _PLAIN_LOOPS - {"TRANSPOSE_CONV"}
    if plain is None or not weighted or x.dtype != "int8":
        return plain
    if program.values[step.inputs[1]].dtype != "int8":
        return None
    window = _window(program, step) if step.kind in _WINDOWS else None
    if window is None or window.dilations != (1, 1):
        return plain
    shape = Map(_four(y.shape), _four(x.shape))
    rounds = (esp_nn.convolution if step.kind == "CONV_2D" else esp_nn.depthwise)(shape, window)
    if isinstance(rounds, str):
        return plain if rounds else None
    return _least_of_rounds(rounds, _reads(program, step, 0), x, y)


def _least_of_matrix(program: Program, step: Step, x: Value, y: Value, plain: int) -> int | None:
    """8-bit products of more than two dimensions run as convolutions of as many pixels as there are rows."""
    outputs, inputs = program.values[step.inputs[1]].shape
    if x.dtype != "int8" or len(y.shape) <= 2 or inputs % 4:
        return plain
    rows = range(y.elements // outputs)
    rounds = list(cmsis_nn.product(program.library, rows, outputs))
    return _least_of_rounds(rounds, _reads(program, step, 0), x, y)


def _rounds(program: Program, step: Step, x: Value, y: Value) -> list[Round] | str:
    """The rounds of a window's kernel; "elements" where each element is finished in turn, "" where nothing is known."""
    window, shape = _window(program, step), Map(_four(y.shape), _four(x.shape))
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


def _least_of_rounds(rounds: list[Round], reads: OperandPlaces | None, x: Value, y: Value) -> int | None:
    """The rounds as pieces: what is written when a round's last read is done, and the lowest that it reads."""
    starts = _starts(reads, y.shape) if reads else None
    if starts is None:
        return None
    written = np.array([written for _, written in rounds])[:, None]
    return _least(written * _width(y), np.array([[starts[p.start : p.stop].min()] for p, _ in rounds]) * _width(x))


def _window(program: Program, step: Step) -> CheckedWindow | None:
    """What a pixel reads; None where that is not known."""
    reads = _reads(program, step, 0)
    if reads is None:
        return None
    taps = [alongs[0].taps for alongs in reads.axes[1:3]]
    strides, dilations = (
        (_number(step, f"{name[0]}h{name[1]}"), _number(step, f"{name[0]}w{name[1]}"))
        for name in (("stride_", ""), ("dilation_", "_factor"))
    )
    return CheckedWindow((len(taps[0]), len(taps[1])), strides, dilations, (-taps[0][0][0], -taps[1][0][0]))


def _copied(step: Step, x: Value, y: Value) -> int | None:
    """The lead of operators that read the operand's elements in their order."""
    if _width(x) != _width(y):
        return None
    if step.kind in PADS:  # at worst all padding comes first
        return y.nbytes - x.nbytes if x.nbytes <= y.nbytes else None
    if step.kind == "TRANSPOSE_CONV":  # integer kernels keep sums in scratch until all is read
        return 0 if _width(x) < _FLOAT else None
    if step.kind == "Compress":
        return 0 if len(x.shape) == 1 else None
    return 0 if _apart(step) else None


def _joined(reads: OperandPlaces, y: Value) -> int:
    """The lead of copies of byte runs, each an operand's part of the joined axis and those behind it.

    memcpy needs each run's target to end below its source.
    """
    at = [alongs[0].taps[0] for alongs in reads.axes]
    axis = next((axis for axis, n in enumerate(reads.shape) if len(at[axis]) != n), 0)
    own, all_parts = prod(reads.shape[axis:]), prod(y.shape[axis:])
    end = own - at[axis][0] * prod(y.shape[axis + 1 :])
    last = prod(y.shape[:axis]) - 1
    return max(0, end, last * (all_parts - own) + end) * _width(y)


def _sliced(step: Step, x: Value, y: Value) -> int | None:
    """The lead of ascending elements wherever they begin: memcpy takes at most those from the last cut axis on."""
    if len(x.shape) != len(y.shape) or _width(x) != _width(y) or not (step.kind == "SLICE" or _forward(step)):
        return None
    cut = [axis for axis, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if a != b]
    return prod(y.shape[cut[-1] if cut else 0 :]) * _width(y)


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


def _width(value: Value) -> int:
    return value.nbytes // value.elements


def _four(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """An image in NHWC."""
    batches, rows, columns, channels = shape
    return batches, rows, columns, channels


def _least(written: IntArray, read: IntArray) -> int:
    """The lead that all pieces need, by what is written before the last read of each, and the lowest read.

    A piece may have several pairs, in any order, of which the lowest read counts for the pieces before it.
    """
    lowest = np.minimum.accumulate(read.min(axis=1)[::-1])[::-1]
    needed = np.append(lowest[1:], _NEVER)
    return max(0, int((written - np.minimum(read, needed[:, None])).max()))


def _starts(reads: OperandPlaces, result: tuple[int, ...]) -> IntArray | None:
    """The first element of the operand that is read for each index of the result but the last one's, in order.

    `_NEVER` where nothing is.
    """
    starts: IntArray = np.zeros(1, np.int64)
    for axis, extent in enumerate(result[:-1]):
        firsts = np.zeros(extent, np.int64)
        for alongs, places, stride in zip(reads.axes, reads.shape, strides(reads.shape), strict=True):
            for along in alongs:
                if along.axis == axis:
                    if len(along.taps[0]) != extent:
                        return None
                    taps = np.array([list(tap) for tap in along.taps])
                    firsts += np.where((taps >= 0) & (taps < places), taps * stride, _NEVER).min(axis=0)
        starts = (starts[:, None] + firsts).reshape(-1)
    return np.minimum(starts, _NEVER)


def _least_of_pixels(reads: OperandPlaces, starts: IntArray, x: Value, y: Value) -> int | None:
    """Pieces of all channels of the result, each made of all channels of the operand or of one."""
    channels, before = y.shape[-1], np.arange(len(starts)) * y.shape[-1]
    if not reads.axes[-1]:
        return _least((before + channels - 1)[:, None] * _width(y), starts[:, None] * _width(x))
    depth = reads.shape[-1]
    each = channels // depth  # results of one channel; the last of them is the one that matters
    ends = np.array([0, depth - 1])
    written, read = before[:, None] + (ends + 1) * each - 1, starts[:, None] + ends
    return _least(written * _width(y), read * _width(x))


def _number(step: Step, name: str) -> int:
    """An option as a number, 1 where the operator lacks it."""
    value = step.attribute(name)
    return value if isinstance(value, int) else 1
