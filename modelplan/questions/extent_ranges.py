"""A model sized for each extent of a range, as in `--dim batch=1..4`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from modelplan.answers.analysis import ExtentRow, ExtentTable
from modelplan.primitives.errors import RequestError
from modelplan.questions.alternatives import open_on_target, unmodified_requirement
from modelplan.questions.model_request import ModelRequest
from modelplan.questions.session_needs import begin_measuring, session_asked, sized_by_session

_RANGE = re.compile(r"(?P<symbol>.+?)\s*=\s*(?P<low>[0-9]{1,15})\s*\.\.\s*(?P<high>[0-9]{1,15})")
#: Combinations of extents that are sized at most.
_MOST = 256


def ranges_of(dims: Sequence[str]) -> dict[str, range]:
    """The symbols that are given a range, with the extents in it.

    Raises:
        RequestError: a range that ends before it begins, or that is given twice.

    >>> ranges_of(["batch=1..4", "sequence=64"])
    {'batch': range(1, 5)}
    """
    ranges: dict[str, range] = {}
    for text in dims:
        if match := _RANGE.fullmatch(text.strip()):
            extents = range(int(match["low"]), int(match["high"]) + 1)
            if not extents or match["symbol"] in ranges:
                raise RequestError(f"--dim {text}: expected a range SYMBOL=LOW..HIGH, one for each symbol")
            ranges[match["symbol"]] = extents
    return ranges


def sized_for_ranges(request: ModelRequest) -> ExtentTable:
    """What the file of a request needs for each combination of the extents in its ranges.

    Raises:
        ModelError: the file cannot be read with one of them.
        RequestError: there are too many, or the request names what there is not.
    """
    ranges = ranges_of(request.dims)
    combinations = list(product(*ranges.values()))
    if len(combinations) > _MOST:
        raise RequestError(f"--dim: {len(combinations):,} combinations of extents, expected {_MOST} at most")
    begin_measuring(request)
    others = tuple(text for text in request.dims if not _RANGE.fullmatch(text.strip()))
    rows = []
    for extents in combinations:
        bound = (f"{symbol}={extent}" for symbol, extent in zip(ranges, extents, strict=True))
        asked, file, target = open_on_target(replace(request, dims=(*others, *bound)))
        needed = unmodified_requirement(file, target)
        rows.append(ExtentRow(extents, sized_by_session(file, target, needed, session_asked(asked))))
    return ExtentTable(request.path, tuple(ranges), tuple(rows), request.available)
