"""Which bytes of its results an operator takes unchanged out of its operands, in runs."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from modelplan.checking.verifier.places import MOVING, OperandPlaces, Places, Shape, Use, places_read, strides
from modelplan.checking.verifier.program import Program, Step
from modelplan.checking.verifier.semantics import JOINS, SPLITS, VIEWS
from modelplan.primitives.lazy_records import dataclass

#: Operators that copy what they get, whatever the operands' types and codes are said to be.
_COPYING = JOINS | SPLITS


@dataclass(frozen=True, slots=True)
class Move:
    """`length` bytes that output `output` takes, from byte `to`, out of input `input`, from byte `start`."""

    input: int
    start: int
    output: int
    to: int
    length: int


class Run(NamedTuple):
    """`length` elements of an operand from `start` on that stand in a result from `to` on."""

    start: int
    to: int
    length: int


def use_of(program: Program, step: Step, output: int = 0) -> Use:
    """A step as the table of places is asked for it."""

    def numbers(operand: int) -> Sequence[int] | None:
        value = step.attribute(f"operand {operand}")
        return value if isinstance(value, tuple) or value is None else (value,)

    shapes, results = (
        tuple(program.values[t].shape if t >= 0 else None for t in tensors) for tensors in (step.inputs, step.outputs)
    )
    dtype = program.values[step.inputs[0]].dtype if step.inputs and step.inputs[0] >= 0 else ""
    return Use(step.kind, shapes, tuple(y or () for y in results), step.attribute, numbers, output, dtype)


def moves_of(program: Program, step: Step) -> list[Move]:
    """The moves of a step; together they fill each output that they touch.

    Cost: O(operands).
    """
    if step.moves:
        pairs = zip(step.inputs, step.outputs, strict=True)
        return [Move(i, 0, i, 0, program.values[x].nbytes) for i, (x, _) in enumerate(pairs) if x >= 0]
    if step.kind in VIEWS.get(program.format, set()):
        return _view(program, step)
    if step.kind not in MOVING or min(step.outputs, default=-1) < 0:
        return []
    return [move for output in range(len(step.outputs)) for move in _moves_into(program, step, output)]


def all_moves(program: Program) -> Mapping[int, list[Move]]:
    """The moves of each step that has any, by the step's index; remembered as long as the program is."""
    known = _MOVES.get(program)
    if known is None:
        kinds = VIEWS.get(program.format, set()) | MOVING
        moving = (i for i, step in enumerate(program.steps) if step.moves or step.kind in kinds)
        known = {i: moves for i in moving if (moves := _known_moves(program, program.steps[i]))}
        _MOVES[program] = known
    return known


def _known_moves(program: Program, step: Step) -> list[Move]:
    """The moves of a step; those of an operator of a graph are the same in each order, and found once."""
    graph = program.graph
    if graph is None:
        return moves_of(program, step)
    return graph.memoised_of(graph.ops[step.op], "moves", lambda: moves_of(program, step))


_MOVES: WeakKeyDictionary[Program, Mapping[int, list[Move]]] = WeakKeyDictionary()


def _view(program: Program, step: Step) -> list[Move]:
    if not step.inputs or step.inputs[0] < 0 or not step.outputs or step.outputs[0] < 0:
        return []
    x, y = program.values[step.inputs[0]], program.values[step.outputs[0]]
    if x.nbytes != y.nbytes or (step.kind == "Dropout" and _trains(step)):
        return []
    return [Move(0, 0, 0, 0, y.nbytes)]


def _trains(step: Step) -> bool:
    """Whether a Dropout may drop: its mode is an operand that is not a constant zero."""
    mode = step.attribute("operand 2")
    return len(step.inputs) > 2 and step.inputs[2] >= 0 and (mode is None or mode not in (False, 0, (0,), (False,)))


def _moves_into(program: Program, step: Step, output: int) -> list[Move]:
    """The runs that one output consists of; none where it has elements that are in no run."""
    y, moves = program.values[step.outputs[output]], list[Move]()
    if not y.elements:
        return moves
    for reads in places_read(use_of(program, step, output)) or ():
        x, run = program.values[step.inputs[reads.operand]], run_of(reads, y.shape)
        converts = step.kind not in _COPYING and (x.dtype != y.dtype or not x.dtype or step.attribute("requantises"))
        if run is None or converts or x.nbytes * y.elements != y.nbytes * x.elements:
            return []
        at = [divmod(count * y.nbytes, y.elements) for count in run]
        if any(rest for _, rest in at):
            return []
        (start, _), (to, _), (length, _) = at
        moves.append(Move(reads.operand, start, output, to, length))
    return moves if sum(move.length for move in moves) == y.nbytes else []


def run_of(reads: OperandPlaces, result: Shape) -> Run | None:
    """The elements of an operand that stand in a result of some extents, where they are one run in both.

    Cost: O(rank), and O(extents) where places are listed one by one.
    """
    if reads.linear:
        return Run(0, 0, prod(result))
    start, rows = 0, [list[tuple[Places, int, int]]() for _ in result]
    for alongs, extent, stride in zip(reads.axes, reads.shape, strides(reads.shape), strict=True):
        if not alongs and extent > 1:
            return None
        for axis, taps in alongs:
            if len(taps) != 1 or axis >= len(rows):
                return None
            if axis >= 0:
                rows[axis].append((taps[0], extent, stride))
            elif not 0 <= taps[0][0] < extent:
                return None
            else:
                start += taps[0][0] * stride
    to, length, full = 0, 1, True
    for row, extent, stride in reversed([*zip(rows, result, strides(result), strict=True)]):
        inside = _inside(row, extent, stride)
        if inside is None or (not full and len(inside[0]) > 1):
            return None
        full &= len(inside[0]) == extent
        start, to, length = start + inside[1], to + inside[0].start * stride, length * len(inside[0])
    return Run(start, to, length)


def _inside(row: Sequence[tuple[Places, int, int]], extent: int, stride: int) -> tuple[range, int] | None:
    """The indices along an axis of a result at which there is an element of the operand, and where the first one is.

    None where there is none, or where the elements are not as far apart as in the result.
    """
    first, end = 0, extent if row else 1 if extent == 1 else 0
    for places, n, _ in row:
        if len(places) != extent:
            return None
        if isinstance(places, range) and places.step == 1:
            first, end = max(first, -places.start), min(end, n - places.start)
        elif min(places[0], places[-1]) < 0 or max(places[0], places[-1]) >= n:
            return None
    if first >= end:
        return None
    if all(isinstance(places, range) for places, _, _ in row):
        steps = {sum(places.step * by for places, _, by in row if isinstance(places, range))}
    else:
        total = sum(np.array(places[first:end], np.int64) * by for places, _, by in row)
        steps = set(np.diff(total).tolist())
        if any(min(places) < 0 or max(places) >= n for places, n, _ in row):
            return None
    if end - first > 1 and steps != {stride}:
        return None
    return range(first, end), sum(places[first] * by for places, _, by in row)
