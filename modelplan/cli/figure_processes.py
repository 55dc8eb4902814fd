"""The figures of `analyze --out`, drawn by other processes.

The first of them is a copy of this one that is made before the command itself is imported, so that both import what
they need at the same time. This module is imported there.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path

from modelplan.cli import files
from modelplan.model import Plan
from modelplan.outputs import import_matplotlib, outputs_of
from modelplan.primitives.copied_processes import Begin, prepared, share_out
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class Pictures:
    """What is drawn into a folder: for each figure of a plan the suffixes of its files."""

    plan: Plan
    folder: Path
    figures: tuple[tuple[str, ...], ...]


@contextmanager
def drawing_process(begun: Begin[Pictures] | None) -> Iterator[Begin[Pictures]]:
    """A function that starts drawing: `begun`, or a new process."""
    if begun:
        yield begun
        return
    with prepared(prepare, draw_all) as begin:
        yield begin


def prepare() -> None:
    """Imports what plans and figures are made of, before there is a plan."""
    import_matplotlib()
    import_module("modelplan.runtimes")


def draw_all(wanted: Pictures) -> None:
    """Draws the figures, in two processes."""
    prepare()
    share_out([partial(_draw, wanted, suffixes) for suffixes in wanted.figures])


def _draw(wanted: Pictures, suffixes: Sequence[str]) -> None:
    contents = outputs_of("Plan")[suffixes[0]].pictures(wanted.plan, suffixes)
    for suffix, content in zip(suffixes, contents, strict=True):
        files.write(str(wanted.folder / f"plan{suffix}"), content)


def pictures_of(plan: Plan, folder: Path) -> Pictures:
    """Every figure of the table, as plan.map.svg and so on, without the charts of the order where no operator moved."""
    from modelplan.outputs.figures import order_chart

    still = not order_chart.of_plan(plan).moved
    names = dict.fromkeys(row.suffix for row in outputs_of("Plan").values() if row.figure)
    return Pictures(plan, folder, tuple((f"{n}.svg", f"{n}.png") for n in names if not (still and n == ".order")))
