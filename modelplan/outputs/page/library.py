"""The plotting library that the page carries: BokehJS, as the Python package bokeh has it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from modelplan.primitives.errors import RequestError

#: The parts of BokehJS that the page uses.
_FILES = ("bokeh.min.js", "bokeh-api.min.js")
INSTALL = "pip install 'modelplan[page]'"


def is_installed() -> bool:
    """Whether the library is there; imports nothing."""
    return find_spec("bokeh") is not None


def check_for(paths: Iterable[str | None]) -> None:
    """Passes where none of the files is a page, or the library is there: for before the work, not after.

    Raises:
        RequestError: it is not installed; the message says how to install it.
    """
    if any(path and path.endswith(".html") for path in paths) and not is_installed():
        raise RequestError(f"an HTML page needs the plotting library Bokeh: {INSTALL}")


def library_scripts() -> tuple[str, ...]:
    """The scripts of the library, in the order in which they are run.

    Raises:
        RequestError: it is not installed; the message says how to install it.
    """
    check_for([".html"])
    spec = find_spec("bokeh")
    assert spec is not None
    folder = Path(str(spec.origin)).parent / "server" / "static" / "js"
    try:
        return tuple((folder / name).read_text(encoding="utf-8") for name in _FILES)
    except OSError as problem:
        raise RequestError(f"an HTML page needs {problem.filename}: {problem.strerror}; {INSTALL}") from None
