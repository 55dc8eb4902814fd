"""The library that counts what a process allocates where it is loaded before libc: built on Linux alone."""

from pathlib import Path

from modelplan.primitives import _core
from modelplan.primitives.errors import RequestError

LIBRARY = Path(_core.__file__).with_name("_allocation_trace.so")
#: What a process that is measured has in its environment.
ENVIRONMENT = {"LD_PRELOAD": str(LIBRARY)}


def check_traceable() -> None:
    """Requires the library.

    Raises:
        RequestError: it was not built.
    """
    if not LIBRARY.exists():
        raise RequestError(f"measuring needs {LIBRARY.name}, which is built on Linux only")
