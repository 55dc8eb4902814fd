"""What a change would do for one of several kernel libraries, where it is not made because it harms another."""

from __future__ import annotations

from typing import NamedTuple


class HelpedLibrary(NamedTuple):
    """A library whose bytes a change takes from `before` to `after`, and another one whose bytes it raises."""

    change: str
    name: str
    before: int
    after: int
    raised: str
    raised_before: int
    raised_after: int
