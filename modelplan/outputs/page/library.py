"""The plotting library that the page carries: BokehJS, which the build copies out of the Python package bokeh."""

from __future__ import annotations

from pathlib import Path

from modelplan import _core

#: Where the build puts the parts of BokehJS that the page uses, in the order in which they are run, with their licence.
_FOLDER, _FILES = Path(_core.__file__).parent / "bokehjs", ("bokeh.min.js", "bokeh-api.min.js")


def library_scripts() -> tuple[str, ...]:
    """The scripts of the library, in the order in which they are run."""
    return tuple((_FOLDER / name).read_text(encoding="utf-8") for name in _FILES)
