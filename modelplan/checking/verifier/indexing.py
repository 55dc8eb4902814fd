"""Which run of an operand's bytes an output consists of, found by carrying out the operator as numpy indexing.

An operator that only selects or reorders elements becomes basic indexing of an array of the operand's shape, which
makes a view and reads no memory. Where the view is contiguous, the output is that run of the operand's bytes. Nothing
here uses the conditions in `ops/` that planning uses.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.program import Program, Step, Value

#: An array of the operand's shape with one byte for each element; only addresses are computed, no memory is read.
Elements = npt.NDArray[np.uint8]


def contiguous_run(program: Program, step: Step) -> tuple[int, int] | None:
    """Start and length, in bytes, of the run of operand 0 that output 0 is a copy of; None where it is no such run.

    Cost: O(rank).
    """
    indexing = _INDEXINGS.get(step.kind)
    if indexing is None or not step.inputs or not step.outputs or min(step.inputs[0], step.outputs[0]) < 0:
        return None
    x, y = program.values[step.inputs[0]], program.values[step.outputs[0]]
    if x.dtype != y.dtype or not x.dtype or step.attribute("requantises") or not x.elements or not y.elements:
        return None
    byte = np.zeros(1, dtype=np.uint8)
    strides = np.cumprod([1, *x.shape[:0:-1]])[::-1] if x.shape else ()
    operand: Elements = np.lib.stride_tricks.as_strided(byte, x.shape, [int(s) for s in strides], writeable=False)
    try:
        elements = indexing(operand, y, step)
    except (ValueError, IndexError):
        return None  # numpy cannot do what the attributes say
    if elements is None or elements.size != y.elements or not elements.flags.c_contiguous:
        return None
    start, rest = divmod((elements.ctypes.data - operand.ctypes.data) * x.nbytes, x.elements)
    return None if rest or y.nbytes * x.elements != x.nbytes * y.elements else (start, y.nbytes)


def _list(step: Step, *names: str) -> list[int] | None:
    """The first attribute of `names` that the operator has, as whole numbers."""
    for name in names:
        value = step.attribute(name)
        if value is not None:
            return [int(v) for v in (value if isinstance(value, tuple) else (value,))]
    return None


def _transposed(x: Elements, _y: Value, step: Step) -> Elements | None:
    order = _list(step, "perm") if step.kind == "Transpose" else _list(step, "operand 1")
    if order is None:  # absent means reversed, and unreadable looks the same
        return x if step.kind == "Transpose" and x.ndim <= 1 else None
    return x.transpose(order)


def _tflite_sliced(x: Elements, y: Value, step: Step) -> Elements | None:
    begin = _list(step, "operand 1")
    if begin is None or len(begin) != x.ndim:
        return None
    if step.kind == "STRIDED_SLICE":
        steps, mask = _list(step, "operand 3"), (_list(step, "begin_mask") or [0])[0]
        others = [_list(step, name) or [0] for name in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")]
        if steps is None or set(steps) != {1} or any(other != [0] for other in others):
            return None
        begin = [
            0 if mask >> a & 1 else b % n if b < 0 else b for a, (b, n) in enumerate(zip(begin, x.shape, strict=True))
        ]
    return _block(x, begin, y)


def _onnx_sliced(x: Elements, y: Value, step: Step) -> Elements | None:
    starts = _list(step, "operand 1", "starts")
    absent = [len(step.inputs) <= i or step.inputs[i] < 0 for i in (3, 4)]
    axes, steps = _list(step, "operand 3", "axes"), _list(step, "operand 4")
    if starts is None or (axes is None and not absent[0]) or (steps is None and not absent[1]):
        return None
    begin = [0] * x.ndim
    for axis, start in zip(axes if axes is not None else range(len(starts)), starts, strict=True):
        begin[axis] = min(max(start + x.shape[axis] if start < 0 else start, 0), x.shape[axis])
    return _block(x, begin, y) if steps is None or set(steps) == {1} else None


def _block(x: Elements, begin: list[int], y: Value) -> Elements | None:
    """The block of the output's shape that starts at index `begin`."""
    if len(y.shape) != x.ndim or any(b < 0 for b in begin):
        return None
    return x[tuple(slice(b, b + n) for b, n in zip(begin, y.shape, strict=True))]


def _gather(x: Elements, _y: Value, step: Step) -> Elements | None:
    indices, axis = _list(step, "operand 1"), (_list(step, "axis") or [0])[0]
    if not indices or (_list(step, "batch_dims") or [0]) != [0] or not -x.ndim <= axis < x.ndim:
        return None
    first = indices[0] % x.shape[axis] if -x.shape[axis] <= indices[0] < x.shape[axis] else -1
    if first < 0 or first + len(indices) > x.shape[axis] or any(b - a != 1 for a, b in pairwise(indices)):
        return None
    return x[(*[slice(None)] * (axis % x.ndim), slice(first, first + len(indices)))]


def _padded(x: Elements, _y: Value, step: Step) -> Elements | None:
    pads = _list(step, "operand 1", "pads", "paddings")
    return x if pads is not None and not any(pads) else None


def _reduced(x: Elements, y: Value, step: Step) -> Elements | None:
    """The operand's elements, where a reduction only drops axes of extent 1."""
    return x if x.size == y.elements and len([t for t in step.inputs if t >= 0]) <= 2 else None


def _unblocked(x: Elements, _y: Value, step: Step) -> Elements | None:
    return x if _list(step, "block_size", "blocksize") == [1] else None


def _same(x: Elements, y: Value, _step: Step) -> Elements | None:
    """The operand's elements, where the operator repeats and converts none."""
    return x if x.size == y.elements else None


_INDEXINGS: dict[str, Callable[[Elements, Value, Step], Elements | None]] = {
    **dict.fromkeys(("Transpose", "TRANSPOSE"), _transposed),
    **dict.fromkeys(("SLICE", "STRIDED_SLICE"), _tflite_sliced),
    "Slice": _onnx_sliced,
    **dict.fromkeys(("Gather", "GATHER"), _gather),
    **dict.fromkeys(("Pad", "PAD", "PADV2", "MIRROR_PAD"), _padded),
    **dict.fromkeys(("Expand", "BROADCAST_TO"), _same),
    **dict.fromkeys(("Tile", "TILE"), _same),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"), _reduced),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"), _reduced),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), _unblocked),
    **dict.fromkeys(("Cast", "CastLike", "CAST", "STABLEHLO_CONVERT"), _same),
}
#: The operators that are carried out here.
INDEXED = frozenset(_INDEXINGS)
