"""Plans in notebooks: the figures and the memory map as a small piece of HTML that loads nothing."""

from __future__ import annotations

import base64
from html import escape

from modelplan.answers.summary import Summary, summary
from modelplan.model import Plan
from modelplan.outputs import render, suffix_of
from modelplan.outputs.report import folded
from modelplan.outputs.reports.plan_report import verdict
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import human

#: An SVG above so many bytes is replaced by pixels, and rows beyond so many are counted.
_LARGEST_SVG = 400_000
_MOST_ROWS = 6


def html_of(plan: Plan, figure: str = ".map.svg") -> str:
    """The verdict, what is alive at the peak, and a figure of `plan`, told by its suffix; every name is escaped.

    Raises:
        RequestError: there is no such figure; the message lists them.
    """
    figures = summary(plan)
    return f"<div>{_words(plan, figures)}{_image(plan, suffix_of(figure, 'Plan'))}</div>"


def show(plan: Plan, figure: str = ".map.svg") -> None:
    """Displays `plan` in a notebook with a figure: .map.svg, .lifetimes.svg, .curve.svg, .order.svg or .reuse.svg.

    Raises:
        RequestError: there is no such figure, or no notebook is running.
    """
    content = html_of(plan, figure)
    try:
        from IPython import get_ipython
        from IPython.display import HTML, display
    except ImportError:
        raise RequestError("show needs a notebook; render(plan, '.txt') gives the plan in words") from None
    if get_ipython() is None:
        raise RequestError("show needs a notebook; render(plan, '.txt') gives the plan in words")
    display(HTML(content))  # type: ignore[no-untyped-call,unused-ignore]


def register() -> None:
    """Has the notebook that runs, if there is one, show plans by `html_of`."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is not None and shell.display_formatter is not None:
        shell.display_formatter.formatters["text/html"].for_type(Plan, html_of)


def _words(plan: Plan, figures: Summary) -> str:
    """Title, verdict and the table of the peak."""
    peak = f"peak at step {figures.peak_step:,}, {figures.peak_op}:"
    more = len(figures.alive) - _MOST_ROWS
    rows = [
        (", ".join(folded(name) for name in alive.names[:2]), human(alive.size), f"{alive.share:.0%}")
        for alive in figures.alive[:_MOST_ROWS]
    ]
    rows += [(f"and {more:,} more", "", "")] if more > 0 else []
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<p><b>{escape(folded(plan.graph.name))}</b>: {escape(verdict(figures))}<br>{escape(folded(peak, 120))}</p>"
        f"<table><tr><th>alive at the peak</th><th>bytes</th><th>share</th></tr>{cells}</table>"
    )


def _image(plan: Plan, suffix: str) -> str:
    """The figure as an image of its own, in which nothing of the page is reached."""
    content, sort = render(plan, suffix), "svg+xml" if suffix.endswith(".svg") else "png"
    if sort != "png" and len(content) > _LARGEST_SVG:
        content, sort = render(plan, suffix.removesuffix(".svg") + ".png"), "png"
    data = content if isinstance(content, bytes) else content.encode()
    words = f"{suffix.split('.')[1]} of {folded(plan.graph.name)}"
    source = f"data:image/{sort};base64,{base64.b64encode(data).decode()}"
    return f'<img style="max-width:100%;background:white" alt="{escape(words)}" src="{source}">'
