"""A line on standard error that shows how far a search has come; nothing where that is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from modelplan.model import Progress
from modelplan.primitives.units import human

SHORT = 0.5
"""Seconds before the line appears: most searches are over by then."""
_WIDEST = 100


def show_line(text: str) -> None:
    """Rewrites a line of a search on a terminal; an empty text takes it away."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text[:_WIDEST]}")
        sys.stderr.flush()


class ProgressLine:
    """Height, bound and gap of the best so far, rewritten in place; `clear` takes the line away."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = False

    def show(self, progress: Progress) -> None:
        """Rewrites the line, once the search has taken longer than most."""
        if time.monotonic() - self._began < SHORT:
            return
        gap = (progress.height - progress.lower_bound) / max(progress.lower_bound, 1)
        text = f"height {human(progress.height)}, bound {human(progress.lower_bound)}, gap {gap:.2%}"
        sys.stderr.write(f"\r\x1b[K{text}, {progress.steps:,} steps; Ctrl-C keeps the best")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Leaves the terminal as it was."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    @property
    def listener(self) -> Callable[[Progress], None] | None:
        """What a budget takes as its `progress`."""
        return self.show if sys.stderr.isatty() else None
