"""Operators that only move elements: what stands in their outputs, and which bytes they copy where.

Each gives its outputs' contents and the copies that make them. An operator that does more than move, or moves in a way
that is not a product of its axes, is left to the formulas of operators that compute.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.places import STEERING, OperandPlaces, Use, places_read
from modelplan.checking.verifier.rewrites.contents import (
    NOTHING,
    UNWRITTEN,
    Axis,
    Content,
    Fault,
    Numbers,
    is_padding,
    padding,
    patched,
)
from modelplan.checking.verifier.rewrites.reading import Cell, Operation, use_of_operation
from modelplan.checking.verifier.semantics import CONCATENATIONS, PADS, RESHAPES, SLICES, SPLITS
from modelplan.primitives.lazy_records import dataclass

#: Places along an axis, in order.
Places = tuple[int, ...]
_INT32 = {"int32", "int64"}


@dataclass(frozen=True, slots=True)
class ElementCopy:
    """Elements of operand `operand` at `source` go to those of output `output` at `target`, place by place."""

    operand: int
    source: tuple[Places, ...]
    target: tuple[Places, ...]
    output: int = 0


@dataclass(frozen=True, slots=True)
class Moved:
    """The contents of an operator's outputs, and the element copies that produced them."""

    contents: tuple[Content, ...]
    copies: tuple[ElementCopy, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """An operand: its tensor, what stands in it, and its numbers where they are known."""

    cell: Cell
    content: Content
    numbers: Numbers | None = None

    @property
    def integers(self) -> list[int] | None:
        """Whole numbers in order, None where they are not known."""
        if self.numbers is None or self.numbers.dtype not in _INT32:
            return None
        return [int(v) for v in self.numbers.array.reshape(-1)]


#: Operators that move elements of the coding of their results, and those of them that leave some of a result free.
_MOVERS = SLICES | PADS | CONCATENATIONS | (SPLITS - {"UNPACK"}) | {"GATHER"}


def moved(op: Operation, operands: Sequence[Given | None], outputs: Sequence[Cell]) -> Moved | None:
    """The outputs of an operator that only moves elements; None for an operator that computes.

    Raises:
        Fault: it reads or writes outside of a tensor.
    """
    given = [x for x in operands if x is not None]
    if not is_moving(op.kind) or len(given) != len(operands):
        return None
    if op.kind == "DYNAMIC_UPDATE_SLICE":
        return _updated(op, given, outputs) if len(given) > 2 else None
    known = [_known(op, given, outputs, output) for output in range(len(outputs))]
    contents, copies = list[Content](), list[ElementCopy]()
    for output, reads in enumerate(known):
        content = _content(op, given, reads, outputs[output]) if reads else None
        if content is None or reads is None:
            return None
        contents.append(content)
        copies += (_copy(read, output) for read in reads)
    return Moved(tuple(contents), tuple(copies))


def _known(
    op: Operation, given: Sequence[Given], outputs: Sequence[Cell], output: int
) -> tuple[OperandPlaces, ...] | None:
    """What is read for an output, axis by axis of the operands; None where the operator does more than move."""

    def numbers(operand: int) -> list[int] | None:
        return given[operand].integers if operand < len(given) else None

    if op.option("FusedActivationFunction") or any(numbers(k) is None for k in STEERING.get(op.kind, ())):
        return None
    reads = places_read(use_of_operation(op, [x.cell for x in given], outputs, output, numbers))
    if reads is None or any([along.axis for (along,) in read.axes] != [*range(len(read.axes))] for read in reads):
        return None
    first = [along.taps[0] for (along,) in reads[0].axes]
    check_extents(op.label, [len(places) for places in first], outputs[output])
    if any(given[read.operand].cell.coding != outputs[output].coding for read in reads):
        return None
    if len(reads) == 1 and op.kind not in PADS:
        _check_inside(op, given[reads[0].operand], first)
    return reads


def _check_inside(op: Operation, x: Given, places: Sequence[Sequence[int]]) -> None:
    for axis, (at, extent) in enumerate(zip(places, x.content.shape, strict=True)):
        if at and not (min(at) >= 0 and max(at) < extent):
            raise Fault(
                op.label, f"reads {min(at)} to {max(at)} along axis {axis} of {x.cell.label}, which has {extent}"
            )


def _content(op: Operation, given: Sequence[Given], reads: Sequence[OperandPlaces], output: Cell) -> Content | None:
    """What stands in an output: at each index what an operand has at its place, or what pads."""
    parts = [given[read.operand].content for read in reads]
    fill = _fill(op, given) if op.kind in PADS else UNWRITTEN
    if op.kind in CONCATENATIONS:
        parts = _on_one_base(parts, op.option("Axis") % len(output.shape)) or []
    if not parts or fill is None:
        return None
    rows = [[(part.axes[axis], read.axes[axis][0].taps[0]) for part, read in zip(parts, reads, strict=True)]
            for axis in range(len(output.shape))]  # fmt: skip
    axes = tuple(_symbols(row, fill) for row in rows)
    if fill != UNWRITTEN and any(is_padding(symbol) and symbol != fill for axis in axes for symbol in set(axis)):
        return None  # two paddings of different codes meet in a corner
    return Content(_base_of(parts), axes)


def _symbols(parts: Sequence[tuple[Axis, Sequence[int]]], fill: int) -> Axis:
    """The symbols along an axis, of the operands one of which has the place."""
    symbols = [fill] * len(parts[0][1])
    for axis, places in parts:
        if isinstance(places, range) and places.step == 1:
            first, end = max(places.start, 0), min(places.stop, len(axis))
            if first < end:
                symbols[first - places.start : end - places.start] = axis[first:end]
            continue
        for index, at in enumerate(places):
            if 0 <= at < len(axis):
                symbols[index] = axis[at]
    return tuple(symbols)


def _fill(op: Operation, given: Sequence[Given]) -> int | None:
    """The symbol of what a padding writes; None where it is not known."""
    pads = given[1].integers or []
    if len(given) < 3:
        return padding(given[0].cell.coding.zero) if op.kind == "PAD" and min(pads, default=0) >= 0 else None
    code = _code(given[2])
    return padding(code) if code is not None and min(pads, default=0) >= 0 else None


def _copy(reads: OperandPlaces, output: int) -> ElementCopy:
    rows = [_inside(along.taps[0], extent) for (along,), extent in zip(reads.axes, reads.shape, strict=True)]
    return ElementCopy(reads.operand, tuple(row[0] for row in rows), tuple(row[1] for row in rows), output)


@lru_cache(maxsize=4096)
def _inside(places: Sequence[int], extent: int) -> tuple[Places, Places]:
    """The places that an operand has, and the index of each."""
    rows = [(place, index) for index, place in enumerate(places) if 0 <= place < extent]
    return tuple(place for place, _ in rows), tuple(index for _, index in rows)


def _full(shape: Sequence[int]) -> tuple[Places, ...]:
    return tuple(tuple(range(n)) for n in shape)


def check_extents(where: str, extents: Sequence[int], output: Cell) -> None:
    """Checks that an operator makes as much as its output holds, before it is followed element by element."""
    if tuple(extents) != output.shape:
        wanted = list(output.shape)
        raise Fault(where, f"makes {list(extents)} of {output.label}, whose shape in the file is {wanted}")


def _code(value: Given) -> int | None:
    """The element that PADV2 fills with, as a whole number of its bits."""
    data = value.cell.data
    if data is None or len(data) > 4:
        return None
    return int.from_bytes(data, "little", signed=True)


def _base_of(contents: Sequence[Content]) -> int:
    return next((content.base for content in contents if content.base != NOTHING), NOTHING)


def _on_one_base(contents: Sequence[Content], axis: int) -> list[Content] | None:
    """Contents that are rows of one map along `axis`; what nothing was written to joins any map."""
    written = [content for content in contents if content.base != NOTHING]
    model = written[0] if written else contents[0]
    map_rows = []
    for content in contents:
        if content.base == NOTHING and written and len(content.shape) == len(model.shape):
            rows = (UNWRITTEN,) * content.shape[axis]
            content = Content(model.base, (*model.axes[:axis], rows, *model.axes[axis + 1 :]))
        others = [(*c.axes[:axis], *c.axes[axis + 1 :]) for c in (content, model)]
        if content.base != model.base or others[0] != others[1]:
            return None
        map_rows.append(content)
    return map_rows


def _updated(op: Operation, given: Sequence[Given], outputs: Sequence[Cell]) -> Moved | None:
    """DYNAMIC_UPDATE_SLICE: the start is moved so that the update lies inside, as the kernel does."""
    whole, part, begin = given[0], given[1], given[2].integers
    shape, size = whole.content.shape, part.content.shape
    if begin is None or len(size) != len(shape) or whole.cell.coding != outputs[0].coding != part.cell.coding:
        return None
    if any(n < s for n, s in zip(shape, size, strict=True)):
        raise Fault(op.label, f"puts {part.cell.label} into {whole.cell.label}, which is smaller")
    start = [min(max(b, 0), n - s) for b, n, s in zip(begin, shape, size, strict=True)]
    target = tuple(tuple(range(b, b + n)) for b, n in zip(start, size, strict=True))
    copies = ElementCopy(0, _full(shape), _full(shape)), ElementCopy(1, _full(size), target)
    narrow = [a for a, (n, s) in enumerate(zip(shape, size, strict=True)) if n != s]
    if len(narrow) < 2 and not whole.content.filled:
        content = _with_rows(whole.content, part.content, narrow[0] if narrow else 0, start)
        return None if content is None else Moved((content,), copies)
    if len(shape) != 4 or not {1, 2} >= set(narrow):
        return None
    tile = patched(whole.content, part.content, start[1], start[2])
    if isinstance(tile, str):
        raise Fault(op.label, f"puts {part.cell.label} into {whole.cell.label}, {tile}")
    return Moved((tile,), copies)


def _with_rows(whole: Content, part: Content, axis: int, start: Sequence[int]) -> Content | None:
    """A tensor with `part` in place of what stands along `axis` from `start` on."""
    contents = _on_one_base([whole, part], axis)
    if contents is None:
        return None
    old, new = (content.axes[axis] for content in contents)
    rows: Axis = old[: start[axis]] + new + old[start[axis] + len(new) :]
    return Content(_base_of(contents), (*contents[0].axes[:axis], rows, *contents[0].axes[axis + 1 :]))


def is_moving(kind: str) -> bool:
    """Whether an operator of this kind moves elements where its operands have the coding of its output."""
    return kind in _MOVERS or kind == "DYNAMIC_UPDATE_SLICE"


def calculated(op: Operation, operands: Sequence[Numbers], output: Cell) -> Numbers | None:
    """The result of an operator on known numbers: counters, offsets out of tables, conditions."""
    if op.option("FusedActivationFunction") or not operands:
        return None
    arrays = [x.array for x in operands]
    if op.kind == "SLICE" and len(arrays) > 2:
        return _table_rows(op, arrays, output)
    if op.kind == "GATHER" and len(arrays) > 1 and not op.option("Axis") and not op.option("BatchDims"):
        table, at = arrays[0], arrays[1].astype(np.int64)
        if at.size and not (int(at.min()) >= 0 and int(at.max()) < len(table)):
            raise Fault(op.label, f"reads entries {at.min()} to {at.max()} of a table of {len(table)}")
        return Numbers(table[at], operands[0].dtype)
    if op.kind in RESHAPES and arrays[0].size == prod(output.shape):
        return Numbers(arrays[0].reshape(output.shape), operands[0].dtype)
    if len(arrays) != 2 or arrays[0].shape != arrays[1].shape or arrays[0].dtype != arrays[1].dtype:
        return None
    if op.kind in _ARITHMETIC:
        return Numbers(np.asarray(_ARITHMETIC[op.kind](*arrays)).astype(arrays[0].dtype), operands[0].dtype)
    if op.kind in _COMPARISONS:
        return Numbers(np.asarray(_COMPARISONS[op.kind](*arrays)), "bool")
    return None


def _table_rows(op: Operation, arrays: Sequence[npt.NDArray[np.generic]], output: Cell) -> Numbers | None:
    table, shapes = arrays[0], tuple(array.shape for array in arrays)
    use = Use(op.kind, shapes, (output.shape,), lambda _: None, lambda k: arrays[k].reshape(-1).tolist())
    rows = [along.taps[0] for read in places_read(use) or () for (along,) in read.axes]
    if len(rows) != table.ndim:
        return None
    if any(at and not 0 <= min(at) <= max(at) < n for at, n in zip(rows, table.shape, strict=True)):
        begin = arrays[1].reshape(-1).tolist()
        raise Fault(op.label, f"reads from entry {begin} on, past the end of a table of {list(table.shape)}")
    return Numbers(table[np.ix_(*rows)], output.coding.dtype)


_ARITHMETIC = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAXIMUM": np.maximum, "MINIMUM": np.minimum}
_COMPARISONS = {
    "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater, "GREATER_EQUAL": np.greater_equal,
    "EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or,
}  # fmt: skip
