"""What stands in memory as it was written: spans, each a tensor as a whole or working memory, row by row.

What is asked of memory mostly is whether rows of a tensor still stand there. Symbols of rows say that without a look at
any byte.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from modelplan.checking.verifier.byte_runs import ByteRuns
from modelplan.checking.verifier.rewrites.contents import Axis, Catalogue, Content


class WrittenSpan(NamedTuple):
    """What was written from `start` to `end`, by whom: content in elements of `width` bytes, None for no tensor's."""

    start: int
    end: int
    width: int
    content: Content | None
    writer: int


class WrittenSpans:
    """The spans of a memory of so many bytes; where none stands the caller's own array says what does."""

    def __init__(self, size: int, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._spans: list[WrittenSpan] = []
        self._seen = ByteRuns(size)
        self._painted: set[int] = set()

    def put(self, span: WrittenSpan, *, painted: bool = False) -> None:
        """Writes a span over what stands there; `painted`: the caller's array holds it already."""
        if painted:
            self._painted.add(len(self._spans))
        self._seen.write(span.start, span.end, len(self._spans))
        self._spans.append(span)

    def forget(self, start: int, end: int) -> None:
        """Leaves it to the caller's array what stands from `start` to `end`."""
        self._seen.write(start, end, None)

    def unpainted(self, start: int, end: int) -> Iterator[tuple[WrittenSpan, list[tuple[int, int]]]]:
        """The spans of which bytes stand from `start` to `end`, and where else; they count as painted from then on."""
        numbers = {number for _, _, number in self._seen.runs(start, end)}
        for number in numbers - self._painted:
            if number is not None:
                self._painted.add(number)
                span = self._spans[number]
                runs = self._seen.runs(span.start, span.end)
                yield span, [(first, behind) for first, behind, standing in runs if standing == number]

    def is_there(self, at: int, width: int, content: Content, start: int, end: int) -> bool:
        """Whether from `start` to `end` there are the rows of a tensor at an address with this content.

        They may be of whatever spans; rows that the first file does not have may be anything.
        """
        return all(
            self._holds(None if number is None else self._spans[number], at, width, content, first, behind)
            for first, behind, number in self._seen.runs(start, end)
        )

    def _holds(self, span: WrittenSpan | None, at: int, width: int, content: Content, first: int, behind: int) -> bool:
        """Whether a span holds from `first` to `behind` what a tensor at an address does."""
        there = span.content if span and span.width == width else None
        if span and there == content and span.start == at:
            return True
        if content.filled or not content.axes:
            return False
        content, at = _narrowed(content, at, width, first, behind)
        axis, held = _first_long(content.axes), Axis()
        if there and there.base == content.base and not there.filled:
            axis = min(axis, _first_long(there.axes))
            if there.axes[:axis] == content.axes[:axis] and there.axes[axis + 1 :] == content.axes[axis + 1 :]:
                held = there.axes[axis]
        row = width * prod(content.shape[axis + 1 :])
        lowest, highest = (first - at) // row, -((at - behind) // row)
        wanted = content.axes[axis][lowest:highest]
        if span and held and not (at - span.start) % row:
            further = (at - span.start) // row
            wanted = tuple(a for a, b in zip(wanted, held[lowest + further : highest + further], strict=True) if a != b)
        is_new = partial(self.catalogue.is_new_row, content.base)
        if all(is_new(axis, symbol) for symbol in wanted):
            return True
        return any(is_new(other, symbols[0]) for other, symbols in enumerate(content.axes) if len(symbols) == 1)


def index_of(content: Content, axis: int, index: int) -> Content:
    """What a tensor holds at an index along an axis."""
    return Content(content.base, (*content.axes[:axis], (content.axes[axis][index],), *content.axes[axis + 1 :]))


def _narrowed(content: Content, at: int, width: int, first: int, behind: int) -> tuple[Content, int]:
    """What a tensor at an address holds around the bytes from `first` to `behind`, and where that begins.

    Along each axis the single index in which all of them lie, as far as there is one.
    """
    for axis, symbols in enumerate(content.axes):
        row = width * prod(content.shape[axis + 1 :])
        index = (first - at) // row
        if index != (behind - 1 - at) // row:
            break
        if len(symbols) > 1:
            content, at = index_of(content, axis, index), at + index * row
    return content, at


def _first_long(axes: Sequence[Axis]) -> int:
    """The first axis along which there is more than one index, else the last one."""
    return next((i for i, symbols in enumerate(axes) if len(symbols) > 1), len(axes) - 1)
