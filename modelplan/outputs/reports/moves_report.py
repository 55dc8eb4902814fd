"""What moves between memories as text: regions with their traffic, times, and the copies step by step."""

import dataclasses
import json
from collections.abc import Iterator

from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.region_layout import Copy, Stay, region_heights
from modelplan.outputs.exchange import json_plan
from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import counted, human, milliseconds

#: The version of the JSON document.
SCHEMA = 2
#: Copies that the report lists; the JSON document has all.
_MOST_COPIES = 40


def sections_of(plan: MovingPlan) -> list[Section]:
    """The times, the regions, and the copies in the order of their issue."""
    copies = tuple(copy_lines(plan))
    more = (f"and {len(copies) - _MOST_COPIES} more; --json FILE has all",) if len(copies) > _MOST_COPIES else ()
    moved = f"{counted(len(copies), 'copy')}, {human(plan.simulated.copied)} in each run"
    by = "its DMA engine" if plan.problem.dma.channels else "its processor"
    who = f"made by the program between operators, with {by}; TFLM makes none; --copies FILE.c writes the calls"
    return [
        Section(plan.title, tuple(_times(plan))),
        Section("Regions", (), _regions(plan)),
        Section(moved, (who, *copies[:_MOST_COPIES], *more)),
    ]


def _times(plan: MovingPlan) -> Iterator[str]:
    run = plan.simulated
    waiting = f"{milliseconds(run.waiting)} of it waiting for copies"
    yield f"one run        {milliseconds(run.seconds)} by the simulator, {waiting}"
    if plan.blocking:
        yield f"no overlap     {milliseconds(plan.blocking)} with the same choice and every copy between two steps"
    yield f"floor          {milliseconds(plan.floor)} with every operand in its quickest memory and no copy"
    bound = f", no choice below {milliseconds(plan.layout.bound)}" if plan.layout.bound else ""
    yield f"memory         {milliseconds(plan.cost)} of accesses and copies ({plan.method}{bound})"
    if plan.relaxed:
        yield f"relaxation     {milliseconds(plan.relaxed)}, gap {plan.cost / plan.relaxed - 1:.2%}"


def _regions(moving_plan: MovingPlan) -> Table:
    rows, tops = [], region_heights(moving_plan.problem, moving_plan.layout)
    for number, (region, top) in enumerate(zip(moving_plan.problem.regions, tops, strict=True)):
        stays = sum(stay.region == number for stay in moving_plan.layout.stays)
        read, written = moving_plan.simulated.read[number], moving_plan.simulated.written[number]
        rows.append((region.name, f"{region.size:,}", f"{top:,}", f"{stays:,}", f"{read:,}", f"{written:,}"))
    return Table(("region", ">bytes", ">used", ">stays", ">read", ">written"), tuple(rows))


def copy_lines(moving_plan: MovingPlan) -> Iterator[str]:
    """One line for each copy: before or while which operator, bytes, content, from where to where, how long."""
    for copy, (_, begin, end) in zip(moving_plan.layout.copies, moving_plan.simulated.copies, strict=True):
        buffer, source, target = ends_of(moving_plan, copy)
        size = int(moving_plan.problem.problem.size[buffer])
        when = f"before {_op(moving_plan, copy.issued)}"
        if copy.issued < copy.due:
            when = f"from {_op(moving_plan, copy.issued)} on, due before {_op(moving_plan, copy.due)}"
        name = moving_plan.problem.problem.names[buffer]
        yield f"{when}: copy {size:,} bytes of `{name}` from {source} to {target}, {milliseconds(end - begin)}"


def _op(moving_plan: MovingPlan, step: int) -> str:
    return f"step {step} {moving_plan.ops[step]}" if step < len(moving_plan.ops) else "the end"


def ends_of(moving_plan: MovingPlan, copy: Copy) -> tuple[int, str, str]:
    """The buffer of a copy and the names of the regions it leads from and to."""
    buffer, source, target = moving_plan.problem.route(copy, moving_plan.layout.stays)
    return buffer, moving_plan.problem.regions[source].name, moving_plan.problem.regions[target].name


def as_json(plan: MovingPlan) -> str:
    """All of it: the model's plan, regions, engine, stays, copies with times; `moves_document.read` reads it back."""
    problem, run = plan.problem, plan.simulated
    tops = region_heights(problem, plan.layout)
    used = [{"use": {"arena": top, "read": read, "written": written}}
            for top, read, written in zip(tops, run.read, run.written, strict=True)]  # fmt: skip
    times = {
        "seconds": run.seconds, "waiting": run.waiting, "without_overlap": plan.blocking, "floor": plan.floor,
        "memory": plan.cost, "relaxed": plan.relaxed, "begins": list(run.begins),
    }  # fmt: skip
    document: dict[str, object] = {
        "schema": SCHEMA,
        "kind": "moves",
        "made_by": plan.made_by,
        "model": plan.title,
        "method": plan.method,
        "bound": plan.layout.bound,
        "ended": plan.layout.ended,
        "reader": plan.problem.reader,
        "macs_per_second": plan.problem.macs_per_second,
        "copied": run.copied,
        "times": times,
        "steps": list(plan.ops),
        "dma": dataclasses.asdict(problem.dma),
        "copied_only": [problem.regions[number].name for number in sorted(problem.copied_only)],
        "regions": [dataclasses.asdict(region) | use for region, use in zip(problem.regions, used, strict=True)],
        "stays": [_stay(plan, stay) for stay in plan.layout.stays],
        "copies": [_copy(plan, *pair) for pair in zip(plan.layout.copies, run.copies, strict=True)],
        "plan": json.loads(json_plan.render(plan.plan)),
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _stay(moving_plan: MovingPlan, stay: Stay) -> dict[str, object]:
    rows = moving_plan.problem.problem
    about = {"name": rows.names[stay.buffer], "size": int(rows.size[stay.buffer])}
    return dataclasses.asdict(stay) | about | {"in": moving_plan.problem.regions[stay.region].name}


def _copy(moving_plan: MovingPlan, copy: Copy, times: tuple[int, float, float]) -> dict[str, object]:
    buffer, source, target = ends_of(moving_plan, copy)
    rows, (channel, begin, end) = moving_plan.problem.problem, times
    about = {"name": rows.names[buffer], "bytes": int(rows.size[buffer]), "from": source, "to": target}
    return dataclasses.asdict(copy) | about | {"channel": channel, "begin": begin, "end": end}


def as_csv(plan: MovingPlan) -> str:
    """The stays: buffer, region, offset, address, start, end."""
    lines = ["buffer,region,size,offset,address,start,end"]
    for s in plan.layout.stays:
        region, name = plan.problem.regions[s.region], plan.problem.problem.names[s.buffer].replace('"', '""')
        address = "" if region.base is None else f"{region.base + s.offset:#x}"
        size = int(plan.problem.problem.size[s.buffer])
        lines.append(f'"{name}",{region.name},{size},{s.offset},{address},{s.start},{s.end}')
    return "\n".join(lines) + "\n"
