"""What stands in a tensor, axis by axis: which rows of which map, what padding, what was never written.

An operator that computes gives a *base*: one map for each way of computing (kind, options, weights, operands' bases).
A base has, along each axis, one coordinate for each *window*: what this row reads of the operands' rows. Two files
that compute the same row in the same way thus get the same coordinate, whatever stripes the row is made in.
A window that the first file does not have gets a coordinate of its own in the second, and is *new*: such a row may
be made, but never be kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.rewrites.reading import Coding, Operation, digest_of
from modelplan.primitives.lazy_records import dataclass

#: Symbols along an axis: coordinates of a base are >= 0.
EDGE = -1  #: beyond the border of an operand, where a kernel reads nothing
UNWRITTEN = -2  #: whatever was in memory before
_PADS = 1 << 33  #: elements of the code c, written by a PAD, have the symbol c - _PADS
_WEIGHTS = 1 << 50  #: in a window, the weight w between the two rows before it is w - _WEIGHTS
_OFFSETS = 1 << 58  #: in a window, the places c further than the one before it are c - _OFFSETS
#: The base of a tensor into which nothing was written yet.
NOTHING = -1

_CHANNELS = 1 << 64  #: in a window, what is from here on tells the weights of a channel

Axis = tuple[int, ...]
Window = tuple[int, ...]


def padding(code: int) -> int:
    """The symbol of elements that a PAD fills with the value `code`."""
    return code - _PADS


def is_padding(symbol: int) -> bool:
    """Whether the symbol stands for elements that a PAD wrote."""
    return symbol < UNWRITTEN


def weight(share: int) -> int:
    """The mark, in a window, of a weight between rows in 1024ths."""
    return share - _WEIGHTS


def offset(places: int) -> int:
    """The mark, in a window, of so many places further along an axis that is followed by another index."""
    return places - _OFFSETS


def channel_mark(data: bytes) -> int:
    """The mark, in a window, of a channel with these weights, bias and scale."""
    return _CHANNELS + int(digest_of(data), 16)


def tells_channel(window: Window) -> bool:
    """Whether a window has the mark of a channel."""
    return max(window, default=0) >= _CHANNELS


@dataclass(frozen=True, slots=True)
class Content:
    """What a tensor holds: rows of the map `base`, as one symbol for each index along each axis.

    Of a map that is written tile by tile, `filled` has for each row the columns that are written, as bits; it is empty
    for every other tensor.
    """

    base: int
    axes: tuple[Axis, ...]
    filled: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return tuple(len(axis) for axis in self.axes)


@dataclass(frozen=True)
class Numbers:
    """A small tensor of whole numbers or truth values that are known."""

    array: npt.NDArray[np.generic]
    dtype: str


Value = Content | Numbers


def unwritten(shape: Iterable[int]) -> Content:
    """A tensor into which nothing was written."""
    return Content(NOTHING, tuple((UNWRITTEN,) * n for n in shape))


@dataclass(frozen=True, slots=True)
class Reader:
    """An operand as messages need it: the tensor's name and its content."""

    label: str
    content: Content


@dataclass(frozen=True, slots=True)
class Cause:
    """Where a new row was made: base, axis, the operator, its output, the place in it, what it was made of."""

    base: int
    axis: int
    where: str
    output: str
    local: int
    window: Window
    readers: tuple[Reader, ...]


@dataclass
class Base:
    """A map that an operator computes; `fields` are the parts of its key by name."""

    kind: str
    fields: tuple[tuple[str, Hashable], ...]
    made_by: str
    name: str
    windows: list[dict[Window, int]]
    known: list[int] = field(default_factory=list)
    causes: dict[tuple[int, int], Cause] = field(default_factory=dict)
    uses: int = 0


@dataclass(frozen=True, slots=True)
class Renamed:
    """A map `base` without the axes `dropped`, each with its symbol there; `axes` are those kept, -1 a new one."""

    base: int
    axes: tuple[int, ...]
    dropped: tuple[tuple[int, int], ...]

    @classmethod
    def matched(cls, first: Content, shape: Sequence[int]) -> Renamed:
        """How what stands in a map gets a shape with other axes of extent 1, by its extents."""
        axes = matched_axes(first.shape, shape)
        dropped = tuple((a, symbols[0]) for a, symbols in enumerate(first.axes) if a not in axes)
        return cls(first.base, axes, dropped)

    def gives(self, first: Content, shape: Sequence[int]) -> bool:
        """Whether it gives what stands in the map that shape, with all of its elements."""
        extents = tuple(first.shape[a] if a >= 0 else 1 for a in self.axes)
        return extents == tuple(shape) and all(first.axes[a] == (symbol,) for a, symbol in self.dropped)


def matched_axes(before: Sequence[int], behind: Sequence[int]) -> tuple[int, ...]:
    """For each axis behind a rename the one before it that it is, -1 for one of extent 1 that is new.

    >>> matched_axes((1, 48, 9), (1, 1, 48, 9))
    (0, -1, 1, 2)
    """
    axes, at = list[int](), 0
    for extent in behind:
        while extent != 1 and before[at] == 1:
            at += 1
        same = at < len(before) and before[at] == extent
        axes.append(at if same else -1)
        at += same
    return tuple(axes)


class Catalogue:
    """All maps that either file computes; after `close`, maps and rows that are added count as new."""

    def __init__(self) -> None:
        self.bases: list[Base] = []
        self.number: dict[Hashable, int] = {}
        self.closed: int | None = None
        self.twins: dict[int, int] = {}
        self.turns: dict[tuple[int, tuple[int, ...]], int] = {}
        self.turned_from: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.renames: dict[int, dict[Renamed, int]] = {}  # of each map
        self.renamed_from: dict[int, Renamed] = {}
        self.asked: dict[tuple[int, int, int], tuple[Sequence[Window], Axis]] = {}  # by the object, which is kept

    def close(self) -> None:
        """Marks all maps and rows so far as computed by the first file; later ones are new."""
        self.closed = len(self.bases)
        for base in self.bases:
            base.known = [len(windows) for windows in base.windows]
            base.uses = 0

    def base(self, kind: str, fields: Sequence[tuple[str, Hashable]], rank: int, made_by: str, name: str) -> int:
        """The number of the base with this key."""
        key = (kind, rank, tuple(fields))
        if key not in self.number:
            self.number[key] = len(self.bases)
            self.bases.append(Base(kind, tuple(fields), made_by, name, [{} for _ in range(rank)], [0] * rank))
        return self.number[key]

    def constant(self, data: bytes, coding: Coding, shape: tuple[int, ...], name: str) -> Content:
        """The content of a constant; one along a single axis is told by its numbers there, in their order."""
        along = [axis for axis, extent in enumerate(shape) if extent > 1]
        if len(along) == 1 and not len(data) % shape[along[0]]:
            number = self.base("constant", [("type", coding.dtype), ("axis", along[0])], len(shape), "the file", name)
            width = len(data) // shape[along[0]]
            numbers = tuple((int.from_bytes(data[i : i + width], "little"),) for i in range(0, len(data), width))
            windows = (numbers if axis in along else each_row(1) for axis in range(len(shape)))
            return Content(number, tuple(self.coordinates(number, a, read) for a, read in enumerate(windows)))
        fields = [("values", digest_of(data)), ("type", coding.dtype), ("shape", shape)]
        return self.whole("constant", fields, shape, "the file", name)

    def whole(
        self, kind: str, fields: Sequence[tuple[str, Hashable]], shape: Sequence[int], made_by: str, name: str
    ) -> Content:
        """The content of a tensor that holds all rows of a map in their order."""
        number = self.base(kind, fields, len(shape), made_by, name)
        return Content(number, tuple(self.coordinates(number, a, each_row(n)) for a, n in enumerate(shape)))

    def twin(self, content: Content) -> Content:
        """The same rows with codes of the other type of 8 bits, 128 apart; that of a twin is what it is the twin of."""
        if content.base == NOTHING:
            return content
        if content.base in self.renamed_from:
            return self.renamed(self.twin(self.unrenamed(content)), content.shape)
        if content.base in self.turned_from:
            return self.turned(self.twin(self.turned_back(content)), self.turned_from[content.base][1])
        if content.base not in self.twins:
            base = self.bases[content.base]
            other = len(self.bases)
            fields = (("the twin of", content.base),)
            self.bases.append(Base("twin", fields, base.made_by, base.name, base.windows, [0] * len(base.windows)))
            self.twins |= {content.base: other, other: content.base}
        return replace(content, base=self.twins[content.base])

    def turned(self, content: Content, order: Sequence[int]) -> Content:
        """The same elements with axis `order[i]` in place of axis i; a map that is turned back is that map again."""
        if content.base == NOTHING:
            return unwritten(content.shape[axis] for axis in order)
        root, before = self.unturned(content.base)
        axes = tuple(before[axis] for axis in order)
        if axes == tuple(range(len(axes))):
            number = root
        elif (root, axes) in self.turns:
            number = self.turns[root, axes]
        else:
            number, base = len(self.bases), self.bases[root]
            windows, known = [base.windows[a] for a in axes], [base.known[a] for a in axes]
            fields = (("the turned", root), ("order", axes))
            self.bases.append(Base("turned", fields, base.made_by, base.name, windows, known))
            self.turns[root, axes], self.turned_from[number] = number, (root, axes)
        return Content(number, tuple(content.axes[axis] for axis in order))

    def turned_back(self, content: Content) -> Content:
        """The elements of a turned map as that map has them."""
        _, order = self.unturned(content.base)
        return self.turned(content, sorted(order, key=order.__getitem__))

    def unturned(self, base: int) -> tuple[int, tuple[int, ...]]:
        """The map that a base is, and which of its axes each axis of the base is."""
        return self.turned_from.get(base) or (base, tuple(range(len(self.bases[base].windows))))

    def renamed(self, content: Content, shape: Sequence[int]) -> Content:
        """The same elements in a shape with other axes of extent 1; in its first shape a map is that map again.

        Of a single row no extent says along which axis it stands: it does as the rows that were renamed before.
        """
        if content.base == NOTHING:
            return unwritten(shape)
        first = self.unrenamed(content)
        if first.shape == tuple(shape):
            return first
        renames = self.renames.setdefault(first.base, {})
        known = (by for by in renames if by.gives(first, shape))
        by = next(known, None) or Renamed.matched(first, shape)
        if by not in renames:
            renames[by] = len(self.bases)
            self.renamed_from[renames[by]] = by
            self.bases.append(self._renamed_base(by))
        return self._named(first, by)

    def other_names(self, content: Content) -> dict[tuple[int, ...], Content]:
        """What stands in a map of few rows as each rename of all of its map says that, by the axes of the rename.

        All say the same of its elements.
        """
        first, shape = self.unrenamed(content), content.shape
        names = {by.axes: by for by in self.renames.get(first.base, {}) if by.gives(first, shape)}
        named = {axes: self._named(first, by) for axes, by in names.items()}
        return named | ({tuple(range(len(shape))): first} if first.shape == shape else {})

    def _named(self, first: Content, by: Renamed) -> Content:
        return Content(self.renames[first.base][by], tuple(first.axes[a] if a >= 0 else (0,) for a in by.axes))

    def _renamed_base(self, by: Renamed) -> Base:
        base = self.bases[by.base]
        windows = [base.windows[a] if a >= 0 else dict[Window, int]({(0,): 0}) for a in by.axes]
        known = [base.known[a] if a >= 0 else 1 for a in by.axes]
        fields = (("the renamed", by.base), ("axes", by.axes), ("without", by.dropped))
        return Base("renamed", fields, base.made_by, base.name, windows, known)

    def unrenamed(self, content: Content) -> Content:
        """The elements of a renamed map as that map has them."""
        by = self.renamed_from.get(content.base)
        if by is None:
            return content
        axes = dict(by.dropped) | {a: content.axes[i] for i, a in enumerate(by.axes) if a >= 0}
        held = (axes[a] for a in range(len(axes)))
        return Content(by.base, tuple(symbols if isinstance(symbols, tuple) else (symbols,) for symbols in held))

    def coordinates(self, base: int, axis: int, windows: Sequence[Window]) -> Axis:
        """The coordinate of each window along an axis of a base; asked of one object again, no window is looked at."""
        key = base, axis, id(windows)
        if key not in self.asked:
            known = self.bases[base].windows[axis]
            symbols = tuple(known.setdefault(window, len(known)) for window in windows)
            self.asked[key] = windows, symbols
        return self.asked[key][1]

    def is_new_row(self, base: int, axis: int, symbol: int) -> bool:
        """Whether the first file computes no such row of this map; rows of constants are never new."""
        if symbol == UNWRITTEN:
            return True
        if self.bases[base].kind == "constant":
            return False
        return symbol >= 0 and not self.is_new_map(base) and symbol >= self.bases[base].known[axis]

    def is_new_map(self, base: int) -> bool:
        """Whether the first file computes no such map."""
        if base in self.renamed_from:
            return self.is_new_map(self.renamed_from[base].base)
        root = self.unturned(base)[0]
        return self.closed is not None and root >= self.closed if root == base else self.is_new_map(root)

    def explain(self, label: str, content: Content) -> tuple[Cause, ...] | str | None:
        """Why a tensor holds rows that the first file does not have: where they were made first, and what read those.

        None where it holds none.
        """
        while content.base in self.turned_from or content.base in self.renamed_from:
            content = self.unrenamed(content) if content.base in self.renamed_from else self.turned_back(content)
        if content.filled:
            row = next(i for i, columns in enumerate(content.filled) if columns != _all_columns(content))
            columns = [i for i in range(content.shape[2]) if not content.filled[row] >> i & 1]
            return f"{row_words(1, [row])}, {row_words(2, columns)} of {label} hold what nothing wrote"
        for axis, symbols in enumerate(content.axes):
            for local, symbol in enumerate(symbols):
                if symbol == UNWRITTEN:
                    return f"{row_words(axis, [local])} of {label} hold what nothing wrote"
                if symbol >= 0 and self.is_new_row(content.base, axis, symbol):
                    return tuple(self._causes(content.base, axis, symbol))
        return None

    def _causes(self, base: int, axis: int, symbol: int) -> Iterator[Cause]:
        """Where a new row was made, those that it was made of before it."""
        cause = self.bases[base].causes.get((axis, symbol))
        if cause is None:
            return
        for reader in cause.readers:
            content = reader.content
            new_rows = (
                (a, s)
                for a, symbols in enumerate(content.axes)
                for s in symbols
                if s >= 0 and s in cause.window and self.is_new_row(content.base, a, s)
            )
            row = next(new_rows, None)
            if row is not None:
                yield from self._causes(content.base, *row)
                break
        yield cause

    def nearest_window(self, base: int, axis: int, window: Window) -> tuple[int, Window] | None:
        """The number and window of the first file's row that reads most of the same places."""
        known = self.bases[base].windows[axis]
        own = [(w, i) for w, i in known.items() if i < self.bases[base].known[axis] and len(w) == len(window)]
        if not own:
            return None
        nearest = max(own, key=lambda pair: sum(a == b for a, b in zip(pair[0], window, strict=True)))
        return nearest[1], nearest[0]


@lru_cache(maxsize=4096)
def each_row(extent: int) -> tuple[Window, ...]:
    """The windows of an axis along which row i depends on row i alone."""
    return tuple((i,) for i in range(extent))


def row_words(axis: int, symbols: Sequence[int]) -> str:
    """Rows in messages: `rows 3, 4, border`.

    >>> row_words(1, [0, 1, 2, 7, EDGE])
    'rows 0 to 2, 7, border'
    """
    name = {1: "rows", 2: "columns"}.get(axis, f"indices of axis {axis}")
    return f"{name} {', '.join(_runs(symbols))}"


def _runs(symbols: Sequence[int]) -> list[str]:
    runs: list[list[int]] = []
    for symbol in symbols:
        if runs and symbol >= 0 and runs[-1][-1] >= 0 and symbol == runs[-1][-1] + 1:
            runs[-1].append(symbol)
        elif not runs or symbol >= 0 or runs[-1][-1] != symbol:
            runs.append([symbol])
    return [_word(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]


def _word(symbol: int) -> str:
    if symbol >= 0:
        return str(symbol)
    words = {EDGE: "border", UNWRITTEN: "nothing written"}
    if symbol < -_OFFSETS // 2:
        return f"{symbol + _OFFSETS} further"
    if symbol < -_WEIGHTS // 2:
        return f"weight {symbol + _WEIGHTS}/1024"
    return words.get(symbol) or f"padding with {symbol + _PADS}"


def _all_columns(content: Content) -> int:
    """A bit mask of all columns of a map."""
    return (1 << content.shape[2]) - 1


def _written_columns(content: Content) -> tuple[int, ...]:
    """For each row the bit mask of its written columns, for a map that is not written in tiles."""
    columns = sum(1 << i for i, symbol in enumerate(content.axes[2]) if symbol != UNWRITTEN)
    return tuple(columns * (symbol != UNWRITTEN) for symbol in content.axes[1])


def patched(whole: Content, part: Content, row: int, column: int) -> Content | str:
    """A map with one of its tiles written at a row and a column, or why the tile does not belong there.

    Cost: O(rows of the tile + extents of the map).
    """
    bits = (1 << part.shape[2]) - 1 << column
    held, filled = whole.base != NOTHING, list(whole.filled or _written_columns(whole))
    if any(UNWRITTEN in axis for axis in part.axes):
        return "of which nothing wrote a part"
    if held and (whole.base != part.base or whole.axes[0] != part.axes[0] or whole.axes[3] != part.axes[3]):
        return "which holds another map"
    below = range(row, row + part.shape[1])
    kept = (
        any(bits & filled[i] != filled[i] for i in below),
        any(columns & bits for i, columns in enumerate(filled) if i not in below),
    )
    axes = []
    for axis, (start, keeps) in enumerate(zip((row, column), kept, strict=True), 1):
        old, new = list(whole.axes[axis]), part.axes[axis]
        before = old[start : start + len(new)]
        if keeps and any(UNWRITTEN != a != b for a, b in zip(before, new, strict=True)):
            return f"which holds {row_words(axis, before)} where {row_words(axis, new)} are put beside them"
        old[start : start + len(new)] = new
        axes.append(tuple(old))
    for i in below:
        filled[i] |= bits
    complete = all(columns == _all_columns(whole) for columns in filled)
    return Content(part.base, (part.axes[0], *axes, part.axes[3]), () if complete else tuple(filled))


class Fault(Exception):  # noqa: N818
    """The difference between both files; `where` is the operator."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(f"{where} {text}")


class Unproved(Exception):  # noqa: N818
    """The proof does not know an operator, or what it depends on; says which and why."""


def unproved(op: Operation, reason: str) -> Unproved:
    """The refusal to judge an operator."""
    return Unproved(f"cannot be proved: {op.label}: {reason}")
