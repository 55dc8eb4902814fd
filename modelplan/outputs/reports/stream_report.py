"""What streaming costs, as text: the memory that is needed, and the curve of memory, bandwidth and time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from modelplan.answers.moving_layout import StreamCurve
from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import brief, human, milliseconds

#: The version of the JSON document.
SCHEMA = 1


def sections_of(made: StreamCurve) -> list[Section]:
    """What the model needs, the run that was asked for, and the curve."""
    found = [Section(made.title, tuple(_needs(made)))]
    if made.chosen is not None and made.simulated is not None:
        found.append(Section(f"One run in {human(made.chosen)}", tuple(_chosen(made))))
    return [*found, Section("Memory against time", tuple(_notes(made)), _table(made))]


def _needs(made: StreamCurve) -> Iterator[str]:
    yield f"weights      {human(made.weights)}"
    yield f"activations  {human(made.activations)}"
    yield f"least        {human(made.least)} for all activations and the weights of one operator"
    whole = made.activations + made.weights
    yield f"all kept     {human(whole)}: nothing streams, {milliseconds(made.computing)} a run"


def _chosen(made: StreamCurve) -> Iterator[str]:
    run, rate = made.simulated, made.curves[0][0]
    if run is None:
        return
    slower = run.seconds / made.computing if made.computing else 1.0
    yield f"time       {milliseconds(run.seconds)} by the simulator, {slower:.2f} times that with all weights kept"
    yield f"waiting    {milliseconds(run.waiting)} for copies at {rate_text(rate)}"
    yield f"copied     {human(run.copied)} in each run" + (", activations too" if made.swapped else "")


def _notes(made: StreamCurve) -> Iterator[str]:
    yield "kept: weights that stay; streamed: copied in each run; needed: the rate at which a run is 1 % longer at most"
    if any(point.needed == float("inf") for point in made.curves[0][1]):
        yield "needed -: no rate is enough, since what each copy takes before its first byte (--latency) is more"


def rate_text(rate: float) -> str:
    """Bytes per second as people write them.

    >>> rate_text(16_000_000_000), rate_text(float("inf"))
    ('16 GB/s', '-')
    """
    if rate == float("inf"):
        return "-"
    for unit, scale in (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if rate >= scale:
            return f"{rate / scale:.3g} {unit}"
    return f"{rate:.0f} B/s"


def _table(made: StreamCurve) -> Table:
    """A row for each memory; a time for each rate of the link."""
    rows = []
    for points in zip(*(points for _, points in made.curves), strict=True):
        first = points[0]
        sizes = tuple(brief(value) for value in (first.memory, first.kept, first.streamed))
        rows.append((*sizes, rate_text(first.needed), *(milliseconds(point.seconds) for point in points)))
    rates = tuple(f">{rate_text(rate)}" for rate, _ in made.curves)
    return Table((">memory", ">kept", ">streamed", ">needed", *rates), tuple(rows))


def as_json(made: StreamCurve) -> str:
    """All of it; a rate that no link can have is null."""
    curves = []
    for rate, points in made.curves:
        rows = [asdict(point) | {"needed": None if point.needed == float("inf") else point.needed} for point in points]
        curves.append({"rate": rate, "points": rows})
    run = made.simulated
    chosen = None
    if made.chosen is not None and run is not None:
        chosen = {"memory": made.chosen, "seconds": run.seconds, "waiting": run.waiting, "copied": run.copied,
                  "activations_copied": made.swapped}  # fmt: skip
    found = {
        "modelplan_stream": SCHEMA, "made_by": made.made_by, "model": made.title, "weights": made.weights,
        "activations": made.activations, "least": made.least, "computing": made.computing, "chosen": chosen,
        "curves": curves,
    }  # fmt: skip
    return json.dumps(found, indent=1) + "\n"


def as_csv(made: StreamCurve) -> str:
    """A line for each rate and memory."""
    lines = ["rate,memory,kept,window,streamed,seconds,needed"]
    for rate, points in made.curves:
        lines += [
            f"{rate},{p.memory},{p.kept},{p.window},{p.streamed},{p.seconds!r},"
            + ("" if p.needed == float("inf") else f"{p.needed:.0f}")
            for p in points
        ]
    return "\n".join(lines) + "\n"
