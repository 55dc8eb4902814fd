"""Words that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable

_LIKELY, _MOST = 0.7, 3


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question to put behind an error message: the known words that are nearest; empty where none is near.

    >>> did_you_mean("analyse", ["analyze", "explain"])
    "; did you mean 'analyze'?"
    """
    from difflib import get_close_matches

    lower = {one.lower(): one for one in known}
    near = [lower[one] for one in get_close_matches(word.lower(), lower, _MOST, _LIKELY)]
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
