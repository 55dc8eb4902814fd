"""A model sized for each extent of a range, as in `--dim batch=1..4`."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from modelplan.answers.analysis import ExtentRow, ExtentTable
from modelplan.model import Requirement
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.questions.alternatives import open_on_target, unmodified_requirement
from modelplan.questions.model_request import ModelRequest
from modelplan.questions.session_needs import begin_measuring, has_sessions, session_asked, sized_by_session

_RANGE = re.compile(
    r"(?P<symbol>.+?)\s*=\s*(?P<low>[0-9]{1,15})\s*\.\.\s*(?P<high>[0-9]{1,15})(\s*:\s*(?P<step>[0-9]{1,15}))?"
)
#: Combinations of extents that are sized at most.
_MOST = 256
_TOO_MANY = f"--dim: {{:,}} combinations of extents, expected {_MOST} at most; SYMBOL=LOW..HIGH:STEP leaves some out"


def ranges_of(dims: Sequence[str]) -> dict[str, Sequence[int]]:
    """The symbols that are given a range, with the extents in it: in steps where it has some, its end always.

    Raises:
        RequestError: a range that ends before it begins, has steps of 0, or is given twice.

    >>> ranges_of(["batch=1..4", "past=0..100:48", "sequence=64"])
    {'batch': [1, 2, 3, 4], 'past': [0, 48, 96, 100]}
    """
    ranges: dict[str, Sequence[int]] = {}
    for text in dims:
        if match := _RANGE.fullmatch(text.strip()):
            low, high, step = int(match["low"]), int(match["high"]), int(match["step"] or 1)
            wrong = {
                f"the range ends at {high}, below {low} where it begins": high < low,
                "steps of 0 end nowhere": not step,
                f"a second range for {match['symbol']!r}, expected one": match["symbol"] in ranges,
            }
            for words in (words for words, holds in wrong.items() if holds):
                raise RequestError(f"--dim {text}: {words}")
            if (high - low) // step > _MOST:
                raise RequestError(_TOO_MANY.format((high - low) // step + 1))
            ranges[match["symbol"]] = [*range(low, high, step), high]
    return ranges


def sized_for_ranges(request: ModelRequest) -> ExtentTable:
    """What the file of a request needs for each combination of the extents in its ranges.

    What the file or its runtime refuses is a row with the reason.

    Raises:
        ModelError: the file cannot be read with any of them.
        RequestError: there are too many, or the request names what there is not.
    """
    ranges = ranges_of(request.dims)
    combinations = list(product(*ranges.values()))
    if len(combinations) > _MOST:
        raise RequestError(_TOO_MANY.format(len(combinations)))
    begin_measuring(request)
    others = tuple(text for text in request.dims if not _RANGE.fullmatch(text.strip()))
    rows, unread, in_sessions = [], [], False
    for extents in combinations:
        bound = (f"{symbol}={extent}" for symbol, extent in zip(ranges, extents, strict=True))
        try:
            asked, file, target = open_on_target(replace(request, dims=(*others, *bound)))
        except ModelError as problem:
            unread.append(problem)
            rows.append(ExtentRow(extents, Requirement(0, 0, (), "", refusals=(str(problem),))))
            continue
        in_sessions = has_sessions(file, target)
        needed = unmodified_requirement(file, target)
        rows.append(ExtentRow(extents, sized_by_session(file, target, needed, session_asked(asked))))
    if len(unread) == len(rows):
        raise unread[0]
    return ExtentTable(request.path, tuple(ranges), tuple(rows), request.available, in_sessions)
