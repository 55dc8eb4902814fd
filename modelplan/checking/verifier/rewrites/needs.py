"""Which elements of what each operator reads decide an output of the model: the run followed backwards.

Some operators make rows that are cut off again, and what those are made of may be anything. It is followed element by
element through operators of which it is known where each element comes from, and which run alike whatever they are
given; of what any other operator reads, and of what steers one (begins, indices), every element counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.rewrites.moving import ElementCopy, Places
from modelplan.checking.verifier.rewrites.reading import Cell, Source
from modelplan.checking.verifier.rewrites.running import Event, Trace
from modelplan.checking.verifier.rewrites.windows import places_read

#: For each element of a tensor whether it counts.
Mask = npt.NDArray[np.bool_]
#: For each operand of an event its mask, None where all elements count.
Masks = tuple[Mask | None, ...]

#: Element by element, of any value: no division, no root, no rounding of floats.
_ELEMENTWISE = {
    "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU",
    "PRELU", "HARD_SWISH", "LOGISTIC", "TANH", "ABS", "NEG",
}  # fmt: skip
#: Operators with rows, and the operand that has them.
_WINDOWS = {
    "CONV_2D": 0, "DEPTHWISE_CONV_2D": 0, "MAX_POOL_2D": 0, "AVERAGE_POOL_2D": 0, "TRANSPOSE_CONV": 2,
    "RESIZE_NEAREST_NEIGHBOR": 0, "RESIZE_BILINEAR": 0, "SPACE_TO_DEPTH": 0, "DEPTH_TO_SPACE": 0,
}  # fmt: skip
#: Types whose elements steer nothing.
_DATA = {"int8", "uint8", "int16", "float32"}


def counting_elements(source: Source, trace: Trace) -> list[Masks]:
    """For each event of a run, in order, which elements of its operands count.

    Cost: O(elements that all operators read and write).
    """
    return _Backwards(source, trace).masks()


class _Backwards:
    def __init__(self, source: Source, trace: Trace) -> None:
        self.trace = trace
        self.cells = {cell.number: cell for part in source.parts for cell in part.cells}
        main = source.parts[0]
        self.wanted = {main.cells[t].number: np.ones(main.cells[t].shape, dtype=np.bool_) for t in main.outputs}

    def masks(self) -> list[Masks]:
        masks = [self._event(event) for event in reversed(self.trace.events)]
        return masks[::-1]

    def _event(self, event: Event) -> Masks:
        results = [self.wanted.pop(y, None) for y, _ in event.writes]
        if event.passes:
            for (x, _), mask in zip(event.reads, results, strict=True):
                self._want(x, mask)
            return ()
        masks = self._needed_elements(event, [np.zeros(self.cells[y].shape, dtype=np.bool_) if mask is None else mask
                                     for (y, _), mask in zip(event.writes, results, strict=True)])  # fmt: skip
        for (x, _), mask in zip(event.reads, masks, strict=True):
            self._want(x, np.ones(self.cells[x].shape, dtype=np.bool_) if mask is None else mask)
        return tuple(None if mask is None or mask.all() else mask for mask in masks)

    def _want(self, x: int, mask: Mask | None) -> None:
        if mask is not None:
            other = self.wanted.get(x)
            self.wanted[x] = mask if other is None else mask | other

    def _needed_elements(self, event: Event, results: Sequence[Mask]) -> list[Mask | None]:
        """For each operand the elements behind those of the results."""
        operands = [self.cells[x] for x, _ in event.reads]
        if event.copies:
            return _copied(event.copies, operands, results)
        outputs, rule = [self.cells[y] for y, _ in event.writes], _RULES.get(event.op.kind)
        if rule is None or len(results) != 1 or any(cell.coding.dtype not in _DATA for cell in outputs):
            return [None] * len(operands)
        return rule(event, operands, outputs[0], results[0])


def _copied(copies: Sequence[ElementCopy], operands: Sequence[Cell], results: Sequence[Mask]) -> list[Mask | None]:
    """The elements that a copy needs: those whose copies count; the operand that says where to copy counts whole."""
    left = [mask.copy() for mask in results]
    moved = {copy.operand for copy in copies}
    masks = [np.zeros(cell.shape, dtype=np.bool_) if i in moved else None for i, cell in enumerate(operands)]
    for copy in reversed(copies):
        target, mask = left[copy.output], masks[copy.operand]
        assert mask is not None
        at = _index(copy.target)
        if any(len(set(places)) != len(places) for places in copy.source):  # some element is copied twice
            np.logical_or.at(mask, np.ix_(*copy.source), target[at])
        else:
            mask[_index(copy.source)] |= target[at]
        target[at] = False
    return masks


def _index(places: Sequence[Places]) -> tuple[slice, ...] | tuple[npt.NDArray[np.intp], ...]:
    """Places as an index into an array: slices where all are runs."""
    if all(at and at == tuple(range(at[0], at[0] + len(at))) for at in places):
        return tuple(slice(at[0], at[0] + len(at)) for at in places)
    return np.ix_(*(np.array(at, dtype=np.intp) for at in places))


def _windowed(event: Event, operands: Sequence[Cell], output: Cell, result: Mask) -> list[Mask | None]:
    """Along batch, rows and columns what the windows read; all channels of it."""
    masks: list[Mask | None] = [None] * len(operands)
    data = _WINDOWS[event.op.kind]
    read = places_read(event.op, operands, data, output) if all(t >= 0 for t in event.op.inputs[: data + 1]) else None
    if read is None or operands[data].coding.dtype not in _DATA:
        return masks
    counting = result.any(axis=3).astype(np.float32)
    for axis, windows in enumerate(read):
        behind = np.zeros((len(windows), operands[data].shape[axis]), dtype=np.float32)
        for row, places in enumerate(windows):
            behind[row, [at for at in places if 0 <= at < behind.shape[1]]] = 1
        counting = np.moveaxis(np.tensordot(counting, behind, (axis, 0)), -1, axis)
    reached: Mask = np.asarray(counting > 0)
    masks[data] = np.repeat(reached[..., None], operands[data].shape[3], axis=3)
    return masks


def _elementwise(_event: Event, operands: Sequence[Cell], _output: Cell, result: Mask) -> list[Mask | None]:
    return [result if cell.shape == result.shape and cell.coding.dtype in _DATA else None for cell in operands]


def _joined(event: Event, operands: Sequence[Cell], output: Cell, result: Mask) -> list[Mask | None]:
    """A CONCATENATION of different maps."""
    axis = event.op.option("Axis") % len(output.shape)
    ends = np.cumsum([cell.shape[axis] for cell in operands])
    return list(np.split(result, ends[:-1], axis=axis)) if ends[-1] == output.shape[axis] else [None] * len(operands)


def _transposed(_event: Event, operands: Sequence[Cell], _output: Cell, result: Mask) -> list[Mask | None]:
    masks: list[Mask | None] = [None] * len(operands)
    data = operands[1].data if len(operands) == 2 else None
    if data is not None and operands[1].coding.dtype == "int32":
        order = np.frombuffer(data, np.int32)
        if sorted(order) == list(range(result.ndim)):
            masks[0] = np.transpose(result, np.argsort(order))
    return masks


def _reshaped(_event: Event, operands: Sequence[Cell], _output: Cell, result: Mask) -> list[Mask | None]:
    same = prod(operands[0].shape) == result.size
    return [result.reshape(operands[0].shape) if same else None, *[None] * (len(operands) - 1)]


Rule = Callable[[Event, Sequence[Cell], Cell, Mask], list[Mask | None]]
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_WINDOWS, _windowed),
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    "CONCATENATION": _joined,
    "TRANSPOSE": _transposed,
    "RESHAPE": _reshaped,
}
