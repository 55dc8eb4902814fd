"""What is said of models in several memories: text, JSON, every buffer as CSV, and whether a saved layout is kept."""

import csv
import dataclasses
import io
import json

from modelplan.answers.moving_layout import LayoutCheck, Recheck
from modelplan.answers.region_plan import RegionPlan, RegionUse
from modelplan.outputs.exchange import json_plan
from modelplan.outputs.exchange.buffers_csv import cell
from modelplan.outputs.report import Section, Table, folded
from modelplan.primitives.units import counted, human

#: The version of the JSON document.
SCHEMA = 1
#: How many buffers are named for each region.
_NAMED = 4


def sections_of(plan: RegionPlan) -> list[Section]:
    """TFLM's arenas where it runs the model, then the ideal: the result, the regions, and what lies where."""
    layout, rows = plan.layout, plan.problem.problem
    over = f"{(plan.seconds - layout.bound) / layout.bound:.2%}" if layout.bound else duration(plan.seconds)
    gap = "proven optimal" if layout.ended == "optimal" else f"at most {over} too much"
    lines = [
        f"memory time  {duration(plan.seconds)} for each run: what operators wait for their operands",
        f"lower bound  {duration(layout.bound)}: {gap}; {layout.method}",
    ]
    computing = sum(plan.problem.seconds)
    if computing:
        lines.append(f"computing    {duration(computing)}")
    title = f"{plan.title}: {counted(len(rows), 'buffer')} in {counted(len(plan.problem.regions), 'memory')}"
    contents = Section("Contents, in bytes of all buffers, which share memory over time", tuple(_contents(plan)))
    if not plan.arenas:
        return [Section(title, tuple(lines), _table(plan)), contents]
    obeyed = f"{plan.title}: what TFLM can run: two arenas (MicroAllocator::Create), or one; --arenas FILE.h"
    ideal = "The ideal, for firmware or generated code that gives each buffer its address; --header FILE.h"
    return [Section(obeyed, tuple(_arena_lines(plan))), Section(ideal, (title, *lines), _table(plan)), contents]


def duration(seconds: float) -> str:
    """Seconds in a unit in which they are at least 1.

    >>> duration(0.00025), duration(0)
    ('250 us', '0 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return "0 s"


def _table(plan: RegionPlan) -> Table:
    cells = []
    for use in plan.uses:
        region = use.region
        base = "" if region.base is None else f"{region.base:#x}"
        cells.append((region.name, region.kind, base, f"{region.size:,}", f"{_arena(plan, use):,}", f"{use.free:,}",
                      f"{use.buffers:,}", f"{use.read:,}", f"{use.written:,}", duration(use.seconds)))  # fmt: skip
    headings = ("region", "kind", "base", ">size", ">arena", ">free", ">buffers", ">read", ">written", ">time")
    return Table(headings, tuple(cells))


def _arena(region_plan: RegionPlan, use: RegionUse) -> int:
    """The bytes that a layout takes of a region, at both ends."""
    first = use.region.reserved if use.region.reserved_at == "start" else 0
    return max(use.low - first, 0) + use.region.size - use.high if region_plan.both_ends else max(use.low - first, 0)


def _contents(plan: RegionPlan) -> list[str]:
    """The kinds of buffers in each region with their bytes, and the largest by name."""
    lines, rows = [], plan.problem.problem
    for number, region in enumerate(plan.problem.regions):
        inside = [stay.buffer for stay in plan.layout.stays if stay.region == number]
        sums: dict[str, int] = {}
        for buffer in inside:
            sums[plan.owners[buffer][1]] = sums.get(plan.owners[buffer][1], 0) + int(rows.size[buffer])
        kinds = ", ".join(f"{kind} {size:,}" for kind, size in sorted(sums.items(), key=lambda item: -item[1]))
        away = plan.uses[number].stored - sum(int(rows.size[b]) for b in inside if plan.problem.home[b] == number)
        copied = f"weights copied from here {away:,}" if away else ""
        lines.append(f"{region.name}: {', '.join(filter(None, (kinds, copied))) or 'nothing'}")
        largest = sorted(inside, key=lambda b: -int(rows.size[b]))[:_NAMED]
        if largest:
            more = f" and {len(inside) - len(largest):,} more" if len(inside) > len(largest) else ""
            lines.append(
                "    " + ", ".join(f"{folded(rows.names[b], 32)} {int(rows.size[b]):,}" for b in largest) + more
            )
    return lines


def _arena_lines(region_plan: RegionPlan) -> list[str]:
    lines = []
    for arena in region_plan.arenas:
        where = "fits in no region" if arena.region < 0 else f"in {region_plan.problem.regions[arena.region].name}"
        time = f", {duration(arena.seconds)} for each run" if arena.seconds else ""
        lines.append(f"{arena.name:15} {human(arena.nbytes)} {where}{time}: {arena.holds}")
    return lines


def as_json(region_plan: RegionPlan) -> str:
    """All of it: plans of the models, regions, where every buffer lies; `region_document.read` reads it back."""
    layout = region_plan.layout
    document: dict[str, object] = {
        "schema": SCHEMA,
        "kind": "memories",
        "made_by": region_plan.made_by,
        "seconds": region_plan.seconds,
        "bound": layout.bound,
        "method": layout.method,
        "ended": layout.ended,
        "both_ends": region_plan.both_ends,
        "reader": region_plan.problem.reader,
        "macs_per_second": region_plan.problem.macs_per_second,
        "regions": [dataclasses.asdict(use.region) | _figures(region_plan, use) for use in region_plan.uses],
        "stays": [_stay(region_plan, number) for number in range(len(layout.stays))],
        "copies": [dataclasses.asdict(copy) for copy in layout.copies],
        "arenas": [dataclasses.asdict(arena) for arena in region_plan.arenas],
        "plans": [json.loads(json_plan.render(plan)) for plan in region_plan.plans],
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _figures(region_plan: RegionPlan, use: RegionUse) -> dict[str, object]:
    return {"use": {"arena": _arena(region_plan, use), "free": use.free, "buffers": use.buffers, "most": use.most,
                    "read": use.read, "written": use.written, "seconds": use.seconds}}  # fmt: skip


def _stay(region_plan: RegionPlan, number: int) -> dict[str, object]:
    stay, rows = region_plan.layout.stays[number], region_plan.problem.problem
    about = {"name": rows.names[stay.buffer], "size": int(rows.size[stay.buffer])}
    return dataclasses.asdict(stay) | about | {"kind": region_plan.owners[stay.buffer][1]}


def as_csv(region_plan: RegionPlan) -> str:
    """A line for each stay: buffer, steps, size, offset in the region, the region, the address where it has one."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("id", "lower", "upper", "size", "offset", "region", "address", "purpose"))
    rows = region_plan.problem.problem
    for stay in region_plan.layout.stays:
        region = region_plan.problem.regions[stay.region]
        address = "" if region.base is None else f"{region.base + stay.offset:#x}"
        writer.writerow((cell(rows.names[stay.buffer]), stay.start, stay.end, int(rows.size[stay.buffer]), stay.offset,
                         region.name, address, region_plan.owners[stay.buffer][1]))  # fmt: skip
    return out.getvalue()


def check_json(check: LayoutCheck, schema: int) -> str:
    """The verdict on each model as a JSON document of `check` with this version."""
    document = {"schema": schema, "layout": check.layout, "models": [_facts(model) for model in check.models]}
    return json.dumps(document, indent=1) + "\n"


def section_of(recheck: Recheck, layout: str) -> Section:
    """The verdict, time and traffic beside those of the layout, and how full the memories are."""
    verdict = f"does not keep {layout}" if recheck.reasons else f"keeps {layout}"
    lines = [
        f"saved     {duration(recheck.seconds_before)}, {recheck.traffic_before:,} bytes outside of the fastest memory"
    ]
    if recheck.seconds is not None:
        lines.append(f"now       {duration(recheck.seconds)}, {recheck.traffic:,} bytes")
    lines += [f"worse     {reason}" if recheck.seconds is not None else reason for reason in recheck.reasons]
    rows = tuple((name, f"{top:,}", f"{size:,}") for name, top, size in recheck.room)
    return Section(
        f"{recheck.model}: {verdict}", tuple(lines), Table(("region", ">used", ">bytes"), rows) if rows else None
    )


def _facts(recheck: Recheck) -> dict[str, object]:
    """The verdict as an object."""
    return {
        "model": recheck.model,
        "fits": not recheck.reasons,
        "seconds": {"before": recheck.seconds_before, "after": recheck.seconds},
        "traffic": {"before": recheck.traffic_before, "after": recheck.traffic},
        "regions": [{"name": name, "used": top, "size": size} for name, top, size in recheck.room],
        "reasons": list(recheck.reasons),
    }
