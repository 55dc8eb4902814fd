"""A model in several memories as a view of the page: regions stacked upon one time axis, copies as arrows between."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from modelplan.answers.drawing import Drawing
from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.page_views import Arrow, Band, Page, View
from modelplan.answers.region_layout import Copy, Layout, RegionProblem
from modelplan.answers.region_plan import RegionPlan
from modelplan.model import Placement, Problem
from modelplan.outputs.page import html_file
from modelplan.primitives.units import counted, human

#: What a rectangle is for, as `RegionPlan.owners` names it.
_LABELS = ("input", "output", "activation", "state", "scratch", "weights")
#: A region is drawn with so much more than it uses, and one that is only copied from with such a share of the others.
_FREE, _HOME = 0.12, 0.08


def layout_html(layout_plan: RegionPlan | MovingPlan) -> bytes:
    """The page of models in several memories.

    Raises:
        RequestError: the plotting library is not installed.
    """
    kinds = [kind for _, kind in layout_plan.owners]
    view = layout_view(layout_plan.problem, layout_plan.layout, kinds, ops=layout_plan.ops, made_by=layout_plan.made_by)
    return html_file.html(
        Page(layout_plan.title, f"{counted(len(view.bands), 'region')} of memory", (view,), layout_plan.made_by)
    )


def layout_view(
    asked: RegionProblem,
    layout: Layout,
    kinds: Sequence[str],
    name: str = "layout",
    made_by: str = "",
    ops: tuple[str, ...] = (),
) -> View:
    """The view of one answer: a rectangle for each stay, a band for each region that is used, an arrow for each copy.

    `ops` names the operator of each step, `kinds` what each buffer is for.

    Addresses are those of the stack: the base of the region's band and the offset in it. Content in a home has no
    offset: its arrows begin or end in the middle of the home's band.

    Cost: O(n) in stays and copies.
    """
    bands = _bands(asked, layout)
    base = {band.region: band.base for band in bands}
    sizes = asked.problem.size.tolist()
    stays = layout.stays
    rows = Problem(
        names=tuple(asked.problem.names[stay.buffer] for stay in stays),
        size=np.array([sizes[stay.buffer] for stay in stays], dtype=np.int64),
        start=np.array([stay.start for stay in stays], dtype=np.int64),
        end=np.array([stay.end for stay in stays], dtype=np.int64),
    )
    offsets = np.array([base[stay.region] + stay.offset for stay in stays], dtype=np.int64)
    drawn = Drawing(
        title=name,
        problem=rows,
        placement=Placement(offsets),
        planned=bands[-1].base + bands[-1].height if bands else 0,
        kinds=np.array([_LABELS.index(kinds[stay.buffer]) for stay in stays], dtype=np.int64),
        ops=ops or ("",) * len(asked.seconds),
        made_by=made_by,
        labels=_LABELS,
    )
    arrows = tuple(_arrow(asked, layout, copy, base, {b.region: b for b in bands}) for copy in layout.copies)
    about = f"{counted(len(layout.stays), 'placement')}, {counted(len(layout.copies), 'copy')}"
    about += f"; method: {layout.method}" if layout.method else ""
    return View(name, about, drawn, facts=_facts(asked, layout), bands=bands, arrows=arrows)


def _bands(asked: RegionProblem, layout: Layout) -> tuple[Band, ...]:
    """A band for each region that holds a stay, or that is a home from which or to which something is copied."""
    sizes = asked.problem.size.tolist()
    used = Counter[int]()
    for stay in layout.stays:
        used[stay.region] = max(used[stay.region], stay.offset + sizes[stay.buffer])
    for copy in layout.copies:
        if min(copy.source, copy.target) < 0:
            used[asked.home[layout.copied(copy)]] += 0
    least = max(round(_HOME * sum(used.values())), 1)
    bands, base = [], 0
    for region in sorted(used):
        row = asked.regions[region]
        height = max(used[region], min(max(round((1 + _FREE) * used[region]), least), row.size))
        bands.append(Band(region, row.name, base, used[region], row.size, height))
        base += height
    return tuple(bands)


def _arrow(asked: RegionProblem, layout: Layout, copy: Copy, base: dict[int, int], bands: dict[int, Band]) -> Arrow:
    buffer = layout.copied(copy)
    size, home = int(asked.problem.size[buffer]), asked.home[buffer]

    def middle(stay: int) -> int:
        if stay < 0:
            return bands[home].base + bands[home].height // 2
        return base[layout.stays[stay].region] + layout.stays[stay].offset + size // 2

    return Arrow(copy.source, copy.target, copy.issued, copy.due, middle(copy.source), middle(copy.target), size)


def _facts(asked: RegionProblem, layout: Layout) -> tuple[tuple[str, str], ...]:
    """What is copied from where to where, and what operators read and write in each region."""
    sizes = asked.problem.size.tolist()
    copied = Counter[tuple[int, int]]()
    for copy in layout.copies:
        buffer, source, target = asked.route(copy, layout.stays)
        copied[source, target] += sizes[buffer]
    names = [region.name for region in asked.regions]
    rows = [(f"copied from {names[a]} to {names[b]}", human(size)) for (a, b), size in sorted(copied.items())]
    rows += [("cost at least", f"{1000 * layout.bound:.3f} ms")] if layout.bound else []
    return (*rows, ("ended", layout.ended))
