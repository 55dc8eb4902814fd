"""What streaming costs, as text: the memory that is needed, and the curve of memory, bandwidth and time."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from modelplan.answers.moving_layout import StreamCurve
from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import brief, human, milliseconds

#: The version of the JSON document.
SCHEMA = 1


def sections_of(curve: StreamCurve) -> list[Section]:
    """What the model needs, the run that was asked for, and the curve."""
    sections = [Section(curve.title, tuple(_needs(curve)))]
    if curve.chosen is not None and curve.simulated is not None:
        sections.append(Section(f"One run in {human(curve.chosen)}", tuple(_chosen(curve))))
    return [*sections, Section("Memory against time", tuple(_notes(curve)), _table(curve))]


def _needs(curve: StreamCurve) -> Iterator[str]:
    yield f"weights      {human(curve.weights)}"
    yield f"activations  {human(curve.activations)}"
    yield f"least        {human(curve.least)} for all activations and the weights of one operator"
    whole = curve.activations + curve.weights
    yield f"all kept     {human(whole)}: nothing streams, {milliseconds(curve.computing)} a run"


def _chosen(curve: StreamCurve) -> Iterator[str]:
    run, rate = curve.simulated, curve.curves[0][0]
    if run is None:
        return
    slower = run.seconds / curve.computing if curve.computing else 1.0
    yield f"time       {milliseconds(run.seconds)} by the simulator, {slower:.2f} times that with all weights kept"
    yield f"waiting    {milliseconds(run.waiting)} for copies at {rate_text(rate)}"
    yield f"copied     {human(run.copied)} in each run" + (", activations too" if curve.swapped else "")


def _notes(curve: StreamCurve) -> Iterator[str]:
    yield "kept: weights that stay; streamed: copied in each run; needed: the rate at which a run is 1 % longer at most"
    if any(point.needed == float("inf") for point in curve.curves[0][1]):
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


def _table(curve: StreamCurve) -> Table:
    """A row for each memory; a time for each rate of the link."""
    rows = []
    for points in zip(*(points for _, points in curve.curves), strict=True):
        first = points[0]
        sizes = tuple(brief(value) for value in (first.memory, first.kept, first.streamed))
        rows.append((*sizes, rate_text(first.needed), *(milliseconds(point.seconds) for point in points)))
    rates = tuple(f">{rate_text(rate)}" for rate, _ in curve.curves)
    return Table((">memory", ">kept", ">streamed", ">needed", *rates), tuple(rows))


def as_json(curve: StreamCurve) -> str:
    """All of it; a rate that no link can have is null."""
    curves = []
    for rate, points in curve.curves:
        rows = [asdict(point) | {"needed": None if point.needed == float("inf") else point.needed} for point in points]
        curves.append({"rate": rate, "points": rows})
    run = curve.simulated
    chosen = None
    if curve.chosen is not None and run is not None:
        chosen = {"memory": curve.chosen, "seconds": run.seconds, "waiting": run.waiting, "copied": run.copied,
                  "activations_copied": curve.swapped}  # fmt: skip
    document = {
        "modelplan_stream": SCHEMA, "made_by": curve.made_by, "model": curve.title, "weights": curve.weights,
        "activations": curve.activations, "least": curve.least, "computing": curve.computing, "chosen": chosen,
        "curves": curves,
    }  # fmt: skip
    return json.dumps(document, indent=1) + "\n"


def as_csv(curve: StreamCurve) -> str:
    """A line for each rate and memory."""
    lines = ["rate,memory,kept,window,streamed,seconds,needed"]
    for rate, points in curve.curves:
        lines += [
            f"{rate},{p.memory},{p.kept},{p.window},{p.streamed},{p.seconds!r},"
            + ("" if p.needed == float("inf") else f"{p.needed:.0f}")
            for p in points
        ]
    return "\n".join(lines) + "\n"
