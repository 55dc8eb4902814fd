"""What moves between memories as text: regions with their traffic, times, and the copies step by step."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from modelplan.answers.moving_layout import MovingPlan
from modelplan.answers.region_layout import Copy, Stay
from modelplan.outputs.exchange import json_plan
from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import counted, human, milliseconds

#: The version of the JSON document.
SCHEMA = 2
#: Copies that the report lists; the JSON document has all.
_MOST_COPIES = 40


def sections_of(made: MovingPlan) -> list[Section]:
    """The times, the regions, and the copies in the order of their issue."""
    copies = tuple(copy_lines(made))
    more = (f"and {len(copies) - _MOST_COPIES} more; --json FILE has all",) if len(copies) > _MOST_COPIES else ()
    moved = f"{counted(len(copies), 'copy').replace('copys', 'copies')}, {human(made.simulated.copied)} in each run"
    return [
        Section(made.title, tuple(_times(made))),
        Section("Regions", (), _regions(made)),
        Section(moved, copies[:_MOST_COPIES] + more),
    ]


def _times(made: MovingPlan) -> Iterator[str]:
    run = made.simulated
    waiting = f"{milliseconds(run.waiting)} of it waiting for copies"
    yield f"one run        {milliseconds(run.seconds)} by the simulator, {waiting}"
    if made.blocking:
        yield f"no overlap     {milliseconds(made.blocking)} with the same choice and every copy between two steps"
    yield f"floor          {milliseconds(made.floor)} with every operand in its quickest memory and no copy"
    bound = f", no choice below {milliseconds(made.layout.bound)}" if made.layout.bound else ""
    yield f"memory         {milliseconds(made.cost)} of accesses and copies ({made.method}{bound})"
    if made.relaxed:
        yield f"relaxation     {milliseconds(made.relaxed)}, gap {made.cost / made.relaxed - 1:.2%}"


def region_heights(made: MovingPlan) -> list[int]:
    """For each region the end of its highest stay."""
    tops = [0] * len(made.problem.regions)
    for stay in made.layout.stays:
        tops[stay.region] = max(tops[stay.region], stay.offset + int(made.problem.problem.size[stay.buffer]))
    return tops


def _regions(made: MovingPlan) -> Table:
    rows = []
    for number, (region, top) in enumerate(zip(made.problem.regions, region_heights(made), strict=True)):
        stays = sum(stay.region == number for stay in made.layout.stays)
        read, written = made.simulated.read[number], made.simulated.written[number]
        rows.append((region.name, f"{region.size:,}", f"{top:,}", f"{stays:,}", f"{read:,}", f"{written:,}"))
    return Table(("region", ">bytes", ">used", ">stays", ">read", ">written"), tuple(rows))


def copy_lines(made: MovingPlan) -> Iterator[str]:
    """One line for each copy: before or while which operator, bytes, content, from where to where, how long."""
    for copy, (_, begin, end) in zip(made.layout.copies, made.simulated.copies, strict=True):
        buffer, source, target = ends_of(made, copy)
        size = int(made.problem.problem.size[buffer])
        when = f"before {_op(made, copy.issued)}"
        if copy.issued < copy.due:
            when = f"from {_op(made, copy.issued)} on, due before {_op(made, copy.due)}"
        name = made.problem.problem.names[buffer]
        yield f"{when}: copy {size:,} bytes of `{name}` from {source} to {target}, {milliseconds(end - begin)}"


def _op(made: MovingPlan, step: int) -> str:
    return f"step {step} {made.ops[step]}" if step < len(made.ops) else "the end"


def ends_of(made: MovingPlan, copy: Copy) -> tuple[int, str, str]:
    """The buffer of a copy and the names of the regions it leads from and to."""
    stays, regions = made.layout.stays, made.problem.regions
    buffer = stays[copy.source if copy.source >= 0 else copy.target].buffer
    home = made.problem.home[buffer]
    source = regions[stays[copy.source].region if copy.source >= 0 else home].name
    target = regions[stays[copy.target].region if copy.target >= 0 else home].name
    return buffer, source, target


def as_json(made: MovingPlan) -> str:
    """All of it: the model's plan, regions, engine, stays, copies with times; `moves_document.read` reads it back."""
    problem, run = made.problem, made.simulated
    tops = region_heights(made)
    used = [{"use": {"arena": top, "read": read, "written": written}}
            for top, read, written in zip(tops, run.read, run.written, strict=True)]  # fmt: skip
    times = {
        "seconds": run.seconds, "waiting": run.waiting, "without_overlap": made.blocking, "floor": made.floor,
        "memory": made.cost, "relaxed": made.relaxed, "begins": list(run.begins),
    }  # fmt: skip
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": "moves",
        "made_by": made.made_by,
        "model": made.title,
        "method": made.method,
        "bound": made.layout.bound,
        "ended": made.layout.ended,
        "reader": made.reader,
        "macs_per_second": made.macs_per_second,
        "copied": run.copied,
        "times": times,
        "steps": list(made.ops),
        "dma": dataclasses.asdict(problem.dma),
        "copied_only": [problem.regions[number].name for number in sorted(problem.copied_only)],
        "regions": [dataclasses.asdict(one) | use for one, use in zip(problem.regions, used, strict=True)],
        "stays": [_stay(made, stay) for stay in made.layout.stays],
        "copies": [_copy(made, *pair) for pair in zip(made.layout.copies, run.copies, strict=True)],
        "plan": json.loads(json_plan.render(made.plan)),
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _stay(made: MovingPlan, stay: Stay) -> dict[str, Any]:
    rows = made.problem.problem
    about = {"name": rows.names[stay.buffer], "size": int(rows.size[stay.buffer])}
    return dataclasses.asdict(stay) | about | {"in": made.problem.regions[stay.region].name}


def _copy(made: MovingPlan, copy: Copy, times: tuple[int, float, float]) -> dict[str, Any]:
    buffer, source, target = ends_of(made, copy)
    rows, (channel, begin, end) = made.problem.problem, times
    about = {"name": rows.names[buffer], "bytes": int(rows.size[buffer]), "from": source, "to": target}
    return dataclasses.asdict(copy) | about | {"channel": channel, "begin": begin, "end": end}


def as_csv(made: MovingPlan) -> str:
    """The stays: buffer, region, offset, address, start, end."""
    lines = ["buffer,region,size,offset,address,start,end"]
    for s in made.layout.stays:
        region, name = made.problem.regions[s.region], made.problem.problem.names[s.buffer].replace('"', '""')
        address = "" if region.base is None else f"{region.base + s.offset:#x}"
        size = int(made.problem.problem.size[s.buffer])
        lines.append(f'"{name}",{region.name},{size},{s.offset},{address},{s.start},{s.end}')
    return "\n".join(lines) + "\n"
