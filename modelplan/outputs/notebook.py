"""Plans in notebooks: the figures and the memory map as a small piece of HTML that loads nothing."""

from __future__ import annotations

import base64
from html import escape

from modelplan.answers.analysis import Analysis
from modelplan.answers.summary import Summary, summary
from modelplan.model import Plan
from modelplan.outputs import figure_suffixes, outputs_of, render, suffix_of
from modelplan.outputs.report import folded
from modelplan.outputs.reports.plan_report import verdict
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import human

#: An SVG above so many bytes is replaced by pixels, and rows beyond so many are counted.
_LARGEST_SVG = 400_000
_MOST_ROWS = 6
#: Answers that a notebook shows by themselves: module and class.
_SHOWN = (
    ("modelplan.answers.placement_answers", "Solution"),
    ("modelplan.answers.analysis", "Analysis"),
    ("modelplan.answers.explanation", "Explanation"),
    ("modelplan.answers.placement_answers", "AllocatorAnswers"),
    ("modelplan.answers.model_difference", "Difference"),
    ("modelplan.answers.fit_of_targets", "TargetVerdicts"),
    ("modelplan.answers.recomputation", "Curve"),
    ("modelplan.answers.proof_outcomes", "Proof"),
    ("modelplan.answers.shared_plan", "SharedPlan"),
    ("modelplan.answers.region_plan", "RegionPlan"),
    ("modelplan.answers.moving_layout", "MovingPlan"),
    ("modelplan.answers.moving_layout", "StreamCurve"),
)


def html_of(answer: object, figure: str = ".svg") -> str:
    """An answer in words, and a figure of it where it has any; every name is escaped.

    Of a plan the words are the verdict and what is alive at the peak, of others their report.
    """
    kind = type(answer).__name__
    if isinstance(answer, Plan):
        words = _words(answer, summary(answer))
    else:
        words = f"<pre>{escape(str(render(answer, '.txt')))}</pre>"
    if isinstance(answer, Analysis):
        drawn = "" if answer.requirement.refusals else _image(answer.plan, ".map.svg")
        return f"<div>{words}{drawn}</div>"
    return f"<div>{words}{_image(answer, suffix_of(figure, kind)) if figure_suffixes(kind) else ''}</div>"


def words_of(answer: object) -> str:
    """An answer in words; empty where it has none."""
    return str(render(answer, ".txt")) if ".txt" in outputs_of(type(answer).__name__) else ""


def html_or_nothing(answer: object) -> str:
    """What a notebook shows of an answer; empty where it has no words."""
    return html_of(answer) if words_of(answer) else ""


def show(answer: object, figure: str = ".svg") -> None:
    """Displays an answer in a notebook: a Plan, a Solution, or what another question was answered with.

    Args:
        answer: what is shown in words, with a figure where it has any.
        figure: which one, such as .map.svg, .lifetimes.svg, .curve.svg, .order.svg or .reuse.svg of a plan.

    Raises:
        RequestError: there is no such figure or answer, or no notebook is running.
    """
    content = html_of(answer, figure)
    try:
        from IPython import get_ipython
        from IPython.display import HTML, display
    except ImportError:
        raise RequestError("show needs a notebook; render(answer, '.txt') gives the answer in words") from None
    if get_ipython() is None:
        raise RequestError("show needs a notebook; render(answer, '.txt') gives the answer in words")
    display(HTML(content))  # type: ignore[no-untyped-call,unused-ignore]


def register() -> None:
    """Has the notebook that runs, if there is one, show answers by `html_of`."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is not None and shell.display_formatter is not None:
        html = shell.display_formatter.formatters["text/html"]
        html.for_type(Plan, html_of)
        for module, name in _SHOWN:
            html.for_type_by_name(module, name, html_of)


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


def _image(answer: object, suffix: str) -> str:
    """The figure as an image of its own, in which nothing of the page is reached."""
    content, sort = render(answer, suffix), "svg+xml" if suffix.endswith(".svg") else "png"
    if sort != "png" and len(content) > _LARGEST_SVG:
        content, sort = render(answer, suffix.removesuffix(".svg") + ".png"), "png"
    data = content if isinstance(content, bytes) else content.encode()
    words = (
        f"{suffix.split('.')[1]} of {folded(answer.graph.name) if isinstance(answer, Plan) else type(answer).__name__}"
    )
    source = f"data:image/{sort};base64,{base64.b64encode(data).decode()}"
    return f'<img style="max-width:100%;background:white" alt="{escape(words)}" src="{source}">'
