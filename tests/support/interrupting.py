"""Ctrl-C during a search, also on a busy machine, where a signal may come before the search listens."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress

from modelplan.model import Placement


def interrupted(search: Callable[[], Placement]) -> Placement:
    """What a search gives that Ctrl-C ends after 0.3 seconds; later, where that comes before the search listens."""
    return next(found for delay in (0.3, 1, 3, 10) if (found := _interrupted(search, delay)) is not None)


def _interrupted(search: Callable[[], Placement], delay: float) -> Placement | None:
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(delay, signal.pthread_kill, [main, signal.SIGINT])
    timer.start()
    found = None
    with suppress(KeyboardInterrupt):
        found = search()
    with suppress(KeyboardInterrupt):  # where the search ended before, the signal comes here
        timer.join()
    return found
