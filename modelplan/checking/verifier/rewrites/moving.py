"""Operators that only move elements: what stands in their outputs, and which bytes they copy where.

Each gives its outputs' contents and the copies that make them. An operator that does more than move, or moves in a way
that is not a product of its axes, is left to the formulas of operators that compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

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
from modelplan.checking.verifier.rewrites.reading import Cell, Operation
from modelplan.checking.verifier.semantics import RESHAPES

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


#: Operands without which these operators do not work.
_LEAST_OPERANDS = {
    "SLICE": 3, "STRIDED_SLICE": 4, "GATHER": 2, "PAD": 2, "PADV2": 3, "SPLIT": 2, "SPLIT_V": 3,
    "DYNAMIC_UPDATE_SLICE": 3, "CONCATENATION": 1,
}  # fmt: skip
Mover = Callable[[Operation, Sequence[Given], Sequence[Cell]], Moved | None]


def moved(op: Operation, operands: Sequence[Given | None], outputs: Sequence[Cell]) -> Moved | None:
    """The outputs of an operator that only moves elements; None for an operator that computes.

    Raises:
        Fault: it reads or writes outside of a tensor.
    """
    mover = _MOVERS.get(op.kind)
    given = [x for x in operands if x is not None]
    if mover is None or len(given) != len(operands) or len(given) < _LEAST_OPERANDS.get(op.kind, 1):
        return None
    return mover(op, given, outputs)


def _full(shape: Sequence[int]) -> tuple[Places, ...]:
    return tuple(tuple(range(n)) for n in shape)


def check_extents(where: str, extents: Sequence[int], output: Cell) -> None:
    """Checks that an operator makes as much as its output holds, before it is followed element by element."""
    if tuple(extents) != output.shape:
        wanted = list(output.shape)
        raise Fault(where, f"makes {list(extents)} of {output.label}, whose shape in the file is {wanted}")


def _block(op: Operation, x: Given, places: tuple[Places, ...], output: Cell) -> Moved | None:
    """The block or the rows of an operand at `places`."""
    if x.cell.coding != output.coding:
        return None
    for axis, (at, extent) in enumerate(zip(places, x.content.shape, strict=True)):
        if at and not (min(at) >= 0 and max(at) < extent):
            raise Fault(
                op.label, f"reads {min(at)} to {max(at)} along axis {axis} of {x.cell.label}, which has {extent}"
            )
    axes = tuple(tuple(axis[i] for i in at) for axis, at in zip(x.content.axes, places, strict=True))
    content = Content(x.content.base, axes)
    return Moved((content,), (ElementCopy(0, places, _full(content.shape)),))


def _sliced(op: Operation, given: Sequence[Given], outputs: Sequence[Cell]) -> Moved | None:
    x, begin, size = given[0], given[1].integers, given[2].integers
    shape = x.content.shape
    if begin is None or size is None or len(begin) != len(shape) or len(size) != len(shape):
        return None
    sizes = [n - b if s == -1 else s for n, b, s in zip(shape, begin, size, strict=True)]
    check_extents(op.label, sizes, outputs[0])
    return _block(op, x, tuple(tuple(range(b, b + s)) for b, s in zip(begin, sizes, strict=True)), outputs[0])


def _strided(op: Operation, given: Sequence[Given], outputs: Sequence[Cell]) -> Moved | None:
    x, shape = given[0], given[0].content.shape
    begin, end, step = (operand.integers for operand in given[1:4])
    odd = any(op.option(name) for name in ("EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset"))
    if begin is None or end is None or step is None or odd or not len(begin) == len(end) == len(step) == len(shape):
        return None
    if min(step) < 1:
        return None
    first, last = op.option("BeginMask"), op.option("EndMask")
    places = tuple(
        tuple(range(n))[None if first >> a & 1 else b : None if last >> a & 1 else e : s]
        for a, (n, b, e, s) in enumerate(zip(shape, begin, end, step, strict=True))
    )
    return _block(op, x, places, outputs[0])


def _gather(op: Operation, given: Sequence[Given], outputs: Sequence[Cell]) -> Moved | None:
    x, rank, at = given[0], len(given[0].content.shape), given[1].integers
    if at is None or len(given[1].cell.shape) != 1 or op.option("BatchDims") or not rank:
        return None
    axis = op.option("Axis") % rank
    return _block(op, x, (*_full(x.content.shape[:axis]), tuple(at), *_full(x.content.shape[axis + 1 :])), outputs[0])


def _padded(op: Operation, given: Sequence[Given], outputs: Sequence[Cell]) -> Moved | None:
    x, pads, coding = given[0], given[1].integers, given[0].cell.coding
    if pads is None or coding != outputs[0].coding or len(pads) != 2 * len(x.content.shape) or min(pads) < 0:
        return None
    code = coding.zero if len(given) < 3 else _code(given[2])
    if code is None:
        return None
    extents = zip(x.content.shape, pads[::2], pads[1::2], strict=True)
    check_extents(op.label, [n + before + after for n, before, after in extents], outputs[0])
    fill = padding(code)
    axes = tuple(
        (fill,) * before + axis + (fill,) * after
        for axis, before, after in zip(x.content.axes, pads[::2], pads[1::2], strict=True)
    )
    if any(is_padding(symbol) and symbol != fill for axis in axes for symbol in set(axis)):
        return None  # two paddings of different codes meet in a corner
    places = _full(x.content.shape)
    target = tuple(tuple(i + before for i in at) for at, before in zip(places, pads[::2], strict=True))
    return Moved((Content(x.content.base, axes),), (ElementCopy(0, places, target),))


def _code(value: Given) -> int | None:
    """The element that PADV2 fills with, as a whole number of its bits."""
    data = value.cell.data
    if data is None or len(data) > 4:
        return None
    return int.from_bytes(data, "little", signed=True)


def _joined(op: Operation, given: Sequence[Given], outputs: Sequence[Cell]) -> Moved | None:
    rank = len(given[0].content.shape)
    if op.option("FusedActivationFunction") or not rank or any(x.cell.coding != outputs[0].coding for x in given):
        return None
    axis = op.option("Axis") % rank
    if any(len(x.content.shape) != rank for x in given):
        return None
    contents = _on_one_base([x.content for x in given], axis)
    if contents is None:
        return None
    axes = [*contents[0].axes]
    axes[axis] = tuple(symbol for content in contents for symbol in content.axes[axis])
    copies, start = [], 0
    for i, content in enumerate(contents):
        places, extent = _full(content.shape), content.shape[axis]
        target = (*places[:axis], tuple(range(start, start + extent)), *places[axis + 1 :])
        copies.append(ElementCopy(i, places, target))
        start += extent
    return Moved((Content(_base_of(contents), tuple(axes)),), tuple(copies))


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


def _split(op: Operation, given: Sequence[Given], outputs: Sequence[Cell]) -> Moved | None:
    """SPLIT has its axis first, SPLIT_V data, sizes, axis."""
    x, axes = (given[1], given[0].integers) if op.kind == "SPLIT" else (given[0], given[2].integers)
    if (
        not axes
        or not x.content.shape
        or any(x.cell.coding != y.coding or len(y.shape) != len(x.content.shape) for y in outputs)
    ):
        return None
    axis, start = axes[0] % len(x.content.shape), 0
    contents, copies = [], []
    for number, y in enumerate(outputs):
        places = list(_full(x.content.shape))
        places[axis] = tuple(range(start, start + y.shape[axis]))
        piece = _block(op, x, tuple(places), y)
        if piece is None:
            return None
        contents.append(piece.contents[0])
        copies.append(ElementCopy(1 if op.kind == "SPLIT" else 0, tuple(places), _full(y.shape), number))
        start += y.shape[axis]
    return Moved(tuple(contents), tuple(copies)) if start == x.content.shape[axis] else None


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


_MOVERS: dict[str, Mover] = {
    "SLICE": _sliced,
    "STRIDED_SLICE": _strided,
    "GATHER": _gather,
    "PAD": _padded,
    "PADV2": _padded,
    "CONCATENATION": _joined,
    "SPLIT": _split,
    "SPLIT_V": _split,
    "DYNAMIC_UPDATE_SLICE": _updated,
}


def is_moving(kind: str) -> bool:
    """Whether an operator of this kind moves elements where its operands have the coding of its output."""
    return kind in _MOVERS


def calculated(op: Operation, operands: Sequence[Numbers], output: Cell) -> Numbers | None:
    """The result of an operator on known numbers: counters, offsets out of tables, conditions."""
    if op.option("FusedActivationFunction") or len(operands) < _LEAST_OPERANDS.get(op.kind, 1):
        return None
    arrays = [x.array for x in operands]
    if op.kind == "SLICE":
        return _table_rows(op, arrays, output)
    if op.kind == "GATHER" and not op.option("Axis") and not op.option("BatchDims"):
        table, at = arrays[0], arrays[1].astype(np.int64)
        if at.size and not (int(at.min()) >= 0 and int(at.max()) < len(table)):
            raise Fault(op.label, f"reads entries {at.min()} to {at.max()} of a table of {len(table)}")
        return Numbers(table[at], operands[0].dtype)
    if op.kind in RESHAPES and arrays[0].size == int(np.prod(output.shape)):
        return Numbers(arrays[0].reshape(output.shape), operands[0].dtype)
    if len(arrays) != 2 or arrays[0].shape != arrays[1].shape or arrays[0].dtype != arrays[1].dtype:
        return None
    if op.kind in _ARITHMETIC:
        return Numbers(np.asarray(_ARITHMETIC[op.kind](*arrays)).astype(arrays[0].dtype), operands[0].dtype)
    if op.kind in _COMPARISONS:
        return Numbers(np.asarray(_COMPARISONS[op.kind](*arrays)), "bool")
    return None


def _table_rows(
    op: Operation, arrays: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.generic]]], output: Cell
) -> Numbers | None:
    table, begin, size = arrays[0], arrays[1].reshape(-1), arrays[2].reshape(-1)
    if len(begin) != table.ndim or len(size) != table.ndim:
        return None
    ends = [n if s == -1 else b + s for n, b, s in zip(table.shape, begin.tolist(), size.tolist(), strict=True)]
    if any(b < 0 or e > n for b, e, n in zip(begin.tolist(), ends, table.shape, strict=True)):
        raise Fault(op.label, f"reads from entry {begin.tolist()} on, past the end of a table of {list(table.shape)}")
    cut = table[tuple(slice(int(b), int(e)) for b, e in zip(begin, ends, strict=True))]
    return Numbers(cut, output.coding.dtype)


_ARITHMETIC = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAXIMUM": np.maximum, "MINIMUM": np.minimum}
_COMPARISONS = {
    "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater, "GREATER_EQUAL": np.greater_equal,
    "EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or,
}  # fmt: skip
