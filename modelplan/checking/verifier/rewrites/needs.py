"""Which elements of what each operator reads decide an output of the model: the run followed backwards.

Some operators make rows that are cut off again, and what those are made of may be anything. It is followed element by
element through operators of which it is known where each element comes from, and which run alike whatever they are
given; of what any other operator reads, and of what steers one (begins, indices), every element counts.
"""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.moves import run_of
from modelplan.checking.verifier.places import Along, OperandPlaces, places_read
from modelplan.checking.verifier.rewrites.moving import ElementCopy, Places
from modelplan.checking.verifier.rewrites.reading import Cell, Source, use_of_operation
from modelplan.checking.verifier.rewrites.running import Event, Trace
from modelplan.checking.verifier.semantics import RUN_ALIKE

#: For each element of a tensor whether it counts.
Mask = npt.NDArray[np.bool_]
#: For each operand of an event its mask, None where all elements count.
Masks = tuple[Mask | None, ...]

#: Types whose elements steer nothing.
_DATA = {"int8", "uint8", "int16", "float32"}


def counting_elements(source: Source, trace: Trace) -> list[Masks]:
    """For each event of a run, in order, which elements of its operands count.

    Cost: O(elements that all operators read and write), once for a run.
    """
    if trace.counting is None:
        trace.counting = _Backwards(source, trace).masks()
    return trace.counting


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
        masks, outputs = list[Mask | None]([None] * len(operands)), [self.cells[y] for y, _ in event.writes]
        if event.op.kind not in RUN_ALIKE or len(results) != 1 or min(event.op.inputs) < 0:
            return masks
        if any(cell.coding.dtype not in _DATA for cell in outputs):
            return masks
        for reads in places_read(use_of_operation(event.op, operands, outputs)) or ():
            cell = operands[reads.operand]
            if cell.coding.dtype in _DATA and cell.data is None:
                masks[reads.operand] = elements_behind(reads, results[0]).reshape(cell.shape)
        return masks


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


def elements_behind(reads: OperandPlaces, result: Mask) -> Mask:
    """The elements of an operand of which elements of a result are made.

    Cost: O(elements x extents), O(elements) where each is one element of the operand.
    """
    if result.size == prod(reads.shape) and run_of(reads, result.shape) == (0, 0, result.size):
        return result.reshape(reads.shape)
    mask = np.zeros(reads.shape, dtype=np.bool_)
    if result.all():
        mask[np.ix_(*(_reached(rows, extent) for rows, extent in zip(reads.axes, reads.shape, strict=True)))] = True
        return mask
    alongs = [along for rows in reads.axes for along in rows]
    if all(reads.axes) and all(len(along.taps) == 1 for along in alongs):
        return _elements_taken(reads, result)
    followed = [along.axis for along in alongs if along.axis >= 0]
    left = sorted(followed)
    counting = result.any(axis=tuple(axis for axis in range(result.ndim) if axis not in left))
    reached = np.transpose(counting, [left.index(axis) for axis in followed]).astype(np.float32)
    for position, (rows, extent) in enumerate(zip(reads.axes, reads.shape, strict=True)):
        if not rows or rows[0].axis < 0:
            reached = np.expand_dims(reached, position)
        elif rows[0].taps != (range(extent),):
            behind = _places_behind(rows[0], extent)
            reached = np.moveaxis(np.tensordot(reached, behind, (position, 0)), -1, position)
    inside = (rows[0].taps[0][0] if rows and rows[0].axis < 0 else None for rows in reads.axes)
    mask[tuple(slice(None) if at is None else slice(at, at + 1) for at in inside)] = reached > 0
    return mask


def _reached(rows: tuple[Along, ...], extent: int) -> list[int]:
    """All places along an axis of an operand that are read for any index."""
    if not rows:
        return [*range(extent)]
    sums = product(*({place for tap in along.taps for place in tap} for along in rows))
    return sorted({at for row in sums if 0 <= (at := sum(row)) < extent})


def _places_behind(along: Along, extent: int) -> npt.NDArray[np.float32]:
    """For each index along an axis of the result 1 at the places that it reads."""
    behind = np.zeros((len(along.taps[0]), extent), dtype=np.float32)
    for tap in along.taps:
        places = np.array(tap)
        there = (places >= 0) & (places < extent)
        behind[there, places[there]] = 1
    return behind


def _elements_taken(reads: OperandPlaces, result: Mask) -> Mask:
    """The elements of an operand at one place for each element of the result, or none."""
    mask = np.zeros(reads.shape, dtype=np.bool_)
    at, counts = [np.zeros((1,) * result.ndim, dtype=np.int64) for _ in reads.axes], result
    for axis, (rows, extent) in enumerate(zip(reads.axes, reads.shape, strict=True)):
        for along in rows:
            places = np.array(along.taps[0]).reshape([-1 if k == along.axis else 1 for k in range(result.ndim)])
            at[axis] = at[axis] + places
        counts = counts & (at[axis] >= 0) & (at[axis] < extent)
    mask[tuple(np.broadcast_to(places, result.shape)[counts] for places in at)] = True
    return mask
