"""A sheet to draw on: a plot whose size is known in points, text that is placed in points, bytes that never change.

         title                       |  Every length outside the plot is in points from the lower left
         facts, legend               |  corner of the sheet; inside, x is steps and y is the chart's own
         note above the plot         |  unit. One step is `sheet.per_step` points wide, so whether a text
         +--------------------+ mark |  fits is known before it is drawn.
  rows   |        plot        |      |
         +--------------------+      |
         steps, operators            |

matplotlib is used through its object interface (no pyplot, no window system) and imported when a figure is made.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from modelplan.outputs.figures import lettering
from modelplan.primitives.lazy_records import dataclass

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path
    from matplotlib.transforms import Transform

Boxes = npt.NDArray[np.float64]
#: Left, lower, right and upper border in points.
Area = tuple[float, float, float, float]


class Titled(Protocol):
    """The title and origin that a figure's file carries."""

    @property
    def title(self) -> str:
        """The name of what is drawn."""

    @property
    def made_by(self) -> str:
        """The program and its version."""


Drawn = TypeVar("Drawn", bound=Titled)

#: Points for an inch of matplotlib's, and pixels for an inch of a PNG.
_POINTS = 72
_DOTS = 144

INK, MUTED, FAINT, FREE, WARNING = "#1b1b1b", "#5c5c5c", "#dcdcdc", "#f1f1ee", "#b5301c"
#: From so many rectangles on an SVG holds them as an image; its text, lines and large rectangles stay vectors.
DENSE = 5000
#: The outline of what is alive at the peak.
AT_PEAK: dict[str, Any] = {"edgecolor": WARNING, "linewidth": 1.1}
TITLE, BODY, SMALL = 12.0, 9.0, 7.5
#: Points from one line of small text to the next.
LINE = 1.28 * SMALL
#: Points between what is written and the edge of a sheet.
_EDGE = 12.0


@dataclass(frozen=True, slots=True)
class Margins:
    """Points left free around the plot."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Sheet:
    """A figure with one plot of `plot_width` by `plot_height` points over `steps` by `top` units."""

    figure: Figure
    axes: Axes
    margins: Margins
    plot_width: float
    plot_height: float
    steps: float
    top: float

    @property
    def per_step(self) -> float:
        """Points for one step."""
        return self.plot_width / self.steps

    @property
    def per_unit(self) -> float:
        """Points for one unit of the vertical axis."""
        return self.plot_height / self.top

    def x(self, step: float) -> float:
        """Where `step` is, in points from the left of the sheet."""
        return self.margins.left + step * self.per_step

    def y(self, value: float) -> float:
        """Where `value` is, in points from the bottom of the sheet."""
        return self.margins.bottom + value * self.per_unit

    @property
    def right(self) -> float:
        """The right side of the plot in points."""
        return self.margins.left + self.plot_width

    @property
    def ceiling(self) -> float:
        """The upper side of the plot in points."""
        return self.margins.bottom + self.plot_height

    def head(
        self, title: str, suffix: str = "", otherwise: str = "model", share: float | None = None
    ) -> tuple[float, float]:
        """Writes the title at the upper left and `suffix` behind it; returns its baseline and the points of a line.

        The title takes at most `share` of the line; None: what the suffix leaves.
        """
        y, room = self.ceiling + self.margins.top - _EDGE - TITLE, self.right + self.margins.right - 2 * _EDGE
        left = room * share if share else (room - lettering.width(suffix, BODY)) / 1.15
        text = lettering.folded(lettering.drawable(title), left, TITLE) or otherwise
        self.write(_EDGE, y, text, TITLE, weight="bold", va="baseline")
        if suffix:
            self.write(_EDGE + lettering.width(text, TITLE, bold=True), y, suffix, BODY, color=MUTED, va="baseline")
        return y, room

    def write(self, x: float, y: float, text: str, size: float = SMALL, **style: Any) -> None:
        """Draws `text` at (x, y) points, taken literally: no mathematics, no glyph that the font lacks."""
        style = {"color": INK, "ha": "left", "va": "center_baseline"} | style
        self.figure.text(x, y, lettering.drawable(text), size=size, parse_math=False, transform=self._points, **style)

    def write_below(self, words: str, **style: Any) -> None:
        """Says at the lower edge of the sheet what stands along the plot."""
        self.write(self.margins.left + self.plot_width / 2, _EDGE, words, BODY, ha="center", color=MUTED, **style)

    def write_beside(self, words: str) -> None:
        """Says at the left edge of the sheet, upright, what the plot's height counts."""
        middle = self.margins.bottom + self.plot_height / 2
        self.write(_EDGE, middle, words, BODY, rotation=90, ha="center", va="center", color=MUTED)

    def line(self, xs: Sequence[float], ys: Sequence[float], **style: Any) -> None:
        """Draws a line through points given in points."""
        from matplotlib.lines import Line2D

        self.figure.add_artist(Line2D(xs, ys, transform=self._points, **style))

    def boxes(self, boxes: npt.ArrayLike, **style: Any) -> None:
        """Draws rectangles, rows (x0, y0, x1, y1) in the plot's units, as one path; nothing without any."""
        from matplotlib.patches import PathPatch

        rows = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
        if len(rows):
            # Not add_patch, which would walk every corner to find limits that are fixed already.
            self.axes.add_artist(PathPatch(_outline(rows), **style))

    def swatch(self, x: float, y: float, **style: Any) -> None:
        """Draws the small rectangle of a legend, its lower left corner at (x, y) points."""
        from matplotlib.patches import Rectangle

        self.figure.add_artist(Rectangle((x, y), 10, 7, transform=self._points, **style))

    @property
    def _points(self) -> Transform:
        from matplotlib.transforms import Affine2D

        return Affine2D().scale(1 / _POINTS) + self.figure.dpi_scale_trans


def touch(a: Area, b: Area) -> bool:
    """Whether two areas have a point in common."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def within(a: Area, b: Area) -> bool:
    """Whether the area `a` lies in `b`."""
    return a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]


def stairs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The border of what points beat that fall from left to right: right, then down."""
    corners = [(x, y) for (_, y), (x, _) in itertools.pairwise(points)]
    return [*points[:1], *(point for pair in zip(corners, points[1:], strict=True) for point in pair)]


def sheet(margins: Margins, plot_width: float, plot_height: float, steps: float, top: float) -> Sheet:
    """An empty sheet just large enough for the plot and its margins, all in points."""
    from matplotlib.figure import Figure

    width = margins.left + plot_width + margins.right
    height = margins.bottom + plot_height + margins.top
    figure = Figure(figsize=(width / _POINTS, height / _POINTS), dpi=_DOTS, facecolor="white")
    axes = figure.add_axes(
        (margins.left / width, margins.bottom / height, plot_width / width, plot_height / height),
        xlim=(0, steps),
        ylim=(0, top),
        xticks=(),
        yticks=(),
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.spines[["left", "bottom"]].set_zorder(5)
    return Sheet(figure, axes, margins, plot_width, plot_height, steps, top)


@contextmanager
def style() -> Iterator[None]:
    """Restores matplotlib's own defaults, whatever the user's configuration says, and a fixed salt for SVG ids."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                "font.family": lettering.FONT,
                "svg.hashsalt": "modelplan",
                "svg.fonttype": "path",
                "hatch.linewidth": 0.7,
                "axes.linewidth": 0.6,
                "path.simplify": False,
                "text.hinting": "none",  # glyphs as in the SVG, drawn in less time
            }
        )
        yield


def saved(draw: Callable[[Drawn], Sheet], drawing: Drawn, kinds: Sequence[str]) -> list[bytes]:
    """The sheet that `draw` makes of `drawing`, laid out once, in each of `kinds`: "svg", "png", "pdf".

    Same drawing, same bytes.
    """
    with style():
        figure = draw(drawing).figure
        return [_content(figure, kind, drawing) for kind in kinds]


def _content(figure: Figure, kind: str, drawing: Titled) -> bytes:
    title, made_by = lettering.drawable(drawing.title), drawing.made_by
    metadata: dict[str, dict[str, str | None]] = {
        "svg": {"Date": None, "Creator": made_by, "Title": title},
        "png": {"Software": made_by},
        "pdf": {"CreationDate": None, "Creator": made_by, "Title": title},
    }
    content = io.BytesIO()
    # Level 3 makes flat colours as small as the usual 6, in two thirds of its time.
    more: dict[str, Any] = {"pil_kwargs": {"compress_level": 3}} if kind == "png" else {}
    figure.savefig(content, format=kind, metadata=metadata[kind], **more)
    return content.getvalue()


def _outline(boxes: Boxes) -> Path:
    """One closed path through the corners of every box."""
    from matplotlib.path import Path

    corners = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3, 0, 1]].reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(boxes))
    return Path(corners, codes)
