"""Traces for Perfetto, read back by SQL in its own trace processor."""

from __future__ import annotations

import pytest
from browser import opened_browser, require_browser
from graphs import chain
from trace_processor import query, viewer

from modelplan import Options, plan, render
from modelplan.model import bounds

STEP = 1000


def test_the_trace_processor_reads_the_trace_of_a_plan() -> None:
    require_browser()
    viewer()
    pytest.importorskip("perfetto.trace_processor", reason="perfetto is missing")
    made = plan(chain(), Options(runtime="generic"))
    trace = render(made, ".pftrace")
    assert isinstance(trace, bytes)
    named = "select slice.name, ts, dur, track.name from slice join track on slice.track_id = track.id"
    with opened_browser() as browser:
        problems, operators, tensors, counters = query(
            browser,
            trace,
            "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
            f"{named} where track.name = 'operators' order by ts",
            f"{named} where track.name != 'operators' order by ts",
            "select ts, value, track.name from counter join track on counter.track_id = track.id order by ts",
        )
    assert problems == []
    kinds = [made.graph.ops[op].kind for op in made.schedule.order]
    assert operators == [(kind, STEP * step, STEP, "operators") for step, kind in enumerate(kinds)]
    alive = [int(made.problem.size[bounds.alive_at(made.problem, step)].sum()) for step in range(len(kinds))]
    assert [(ts, value) for ts, value, _ in counters] == [
        *((STEP * s, n) for s, n in enumerate(alive)),
        (STEP * len(kinds), 0),
    ]
    offsets = made.placement.offsets.tolist()
    rows = zip(made.problem, offsets, strict=True)
    where = {made.graph.tensors[m.tensor].name: (b, at + m.delta) for b, at in rows for m in b.members}
    assert {name for *_, name in tensors} == where.keys()
    for label, ts, duration, name in tensors:
        buffer, address = where[name]
        assert label.endswith(f" B at {address}")
        assert STEP * buffer.start <= ts < ts + duration <= STEP * buffer.end
