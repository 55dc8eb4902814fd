"""The figures of `analyze --out`, drawn by other processes.

The first of them is a copy of this one that is made before the command itself is imported, so that both import what
they need at the same time. This module is imported there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import groupby
from pathlib import Path

from modelplan.cli import files
from modelplan.model import Plan
from modelplan.outputs import OUTPUTS
from modelplan.outputs import rendering as figures
from modelplan.primitives.copied_processes import Begin, prepared, share_out


@dataclass(frozen=True, slots=True)
class Pictures:
    """What is drawn into a folder: for each figure of a plan the suffixes of its files."""

    plan: Plan
    folder: Path
    figures: tuple[tuple[str, ...], ...]


@contextmanager
def drawing_process(begun: Begin[Pictures] | None) -> Iterator[Begin[Pictures]]:
    """A function that begins to draw: `begun`, or that of a process that is made now."""
    if begun:
        yield begun
        return
    with prepared(prepare, draw_all) as begin:
        yield begin


def prepare() -> None:
    """Imports what plans and figures are made of, before there is a plan."""
    figures.import_matplotlib()
    import_module("modelplan.runtimes")


def draw_all(wanted: Pictures) -> None:
    """Draws the figures, in two processes."""
    prepare()
    share_out([partial(_draw, wanted, suffixes) for suffixes in wanted.figures])


def _draw(wanted: Pictures, suffixes: Sequence[str]) -> None:
    for suffix, content in zip(suffixes, figures.render_together(wanted.plan, suffixes), strict=True):
        files.write(str(wanted.folder / f"plan{suffix}"), content)


def pictures_of(plan: Plan, folder: Path) -> Pictures:
    """Every figure of the table, as plan.map.svg and so on, without the charts of the order where no operator moved."""
    from modelplan.outputs.figures import order_chart

    still = not order_chart.of_plan(plan).moved
    drawn = [suffix for suffix in OUTPUTS if suffix in figures.SUFFIXES and suffix != figures.PAGE]
    drawn = [suffix for suffix in drawn if not (still and suffix.startswith(".order."))]
    return Pictures(plan, folder, tuple(tuple(found) for _, found in groupby(drawn, lambda one: OUTPUTS[one].module)))
