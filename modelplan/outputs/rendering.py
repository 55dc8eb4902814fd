"""The figures and the page among the outputs, for whoever holds a drawing and not a plan, or only a file's name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from modelplan.outputs import OUTPUTS
from modelplan.primitives.errors import RequestError

if TYPE_CHECKING:
    from modelplan.answers.drawing import Drawing
    from modelplan.model import Plan

#: The suffix of the page that is zoomed and clicked.
PAGE = ".html"
#: What a figure's file may end in: .map.svg, .lifetimes.png and so on.
SUFFIXES = tuple(suffix for suffix in OUTPUTS if suffix.endswith((".svg", ".png", PAGE)))

#: What shows a whole plan and cannot be made of a drawing alone.
PLAN_SUFFIXES = (".ascii", ".pftrace")


def suffix_of(path: str, more: Sequence[str] = ()) -> str:
    """The suffix that tells which figure belongs into the file `path`; `more` are suffixes beside those of figures.

    Raises:
        RequestError: none does; the message lists them.
    """
    known = (*more, *SUFFIXES)
    for suffix in known:
        if path.endswith(suffix):
            return suffix
    raise RequestError(f"{path}: cannot tell which figure to draw; the name must end in {', '.join(known)}")


def import_matplotlib() -> None:
    """Imports what figures are drawn with: once for all processes that this one is then copied to."""
    import_module("matplotlib.figure")
    import_module("matplotlib.backends.backend_agg")
    import_module("matplotlib.backends.backend_svg")


def render(drawing: Drawing, suffix: str) -> bytes:
    """The figure of `drawing` that `suffix` names: same drawing, same bytes."""
    from modelplan.outputs.figures import canvas  # drawing imports matplotlib

    row = OUTPUTS[suffix]
    if suffix == PAGE:
        from modelplan.answers import page_views as views
        from modelplan.outputs.page import html_file

        return html_file.html(views.page_of_drawing(drawing))
    save = canvas.svg if suffix.endswith(".svg") else canvas.png
    return save(import_module(row.module).draw, drawing)


def render_together(plan: Plan, suffixes: Sequence[str]) -> list[bytes]:
    """The files of one figure of `plan`, such as .map.svg and .map.png, drawn once: the same bytes as `OUTPUTS` gives.

    Raises:
        ValueError: the suffixes are those of several figures.
    """
    from modelplan.outputs.figures import canvas  # drawing imports matplotlib

    (name,) = {OUTPUTS[suffix].module for suffix in suffixes}
    module = import_module(name)
    return canvas.saved(module.draw, module.of_plan(plan), [suffix.rpartition(".")[2] for suffix in suffixes])
