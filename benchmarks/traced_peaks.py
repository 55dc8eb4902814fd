"""What a session of ONNX Runtime has allocated at its peak, by the operators that asked for it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from modelplan.primitives.errors import ModelError
from modelplan.runtimes.ort.measuring import DRAWN, SessionSettings, Shapes, plain_shapes, session_answer

#: Readings of the clock in a profiled run before the first kernel and behind the last.
_BEFORE, _BEHIND = 3, 5
#: Runs that are traced at most until the readings are as many.
_TRIES = 20


@dataclass(frozen=True, slots=True)
class TracedPeak:
    """What is allocated where a run needs most: what the running kernel asked for, and values by what made them.

    `running` is that kernel's operator; `own` are its output and its workspace, `others` bytes by operators.
    """

    running: str
    own: int
    others: Mapping[str, int]


def peak_contents(model: str | Path, shapes: Shapes, level: str) -> TracedPeak:
    """What a second run has allocated at its peak, arena and memory patterns off.

    Raises:
        ModelError: as `measure`, or the trace does not show where kernels begin.
    """
    for _ in range(_TRIES):  # at times the clock is read once more
        kernels, events = _traced(model, shapes, level)
        if sum(event[0] == "t" for event in events) == 2 * len(kernels) + _BEFORE + _BEHIND:
            return _peak(kernels, events)
    raise ModelError("the trace does not show where kernels begin")


def _traced(model: str | Path, shapes: Shapes, level: str) -> tuple[list[str], list[list[str]]]:
    """The operators of a second run in the order of its kernels, and what the trace noted meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        settings = SessionSettings(level=level, arena="off", pattern=False)
        answer = session_answer(
            {"model": str(model), "shapes": plain_shapes(shapes), "settings": asdict(settings), "runs": 1,
             "profile": f"{name}/profile", "events": f"{name}/events", "feeds": DRAWN}
        )  # fmt: skip
        profile = json.loads(Path(answer["profile"]).read_text())
        events = [line.split() for line in (Path(name) / "events").read_text().splitlines()]
    kernels = [entry["args"]["op_name"] for entry in profile if entry.get("name", "").endswith("_kernel_time")]
    return kernels[len(kernels) // 2 :], events


def _peak(kernels: Sequence[str], events: Sequence[Sequence[str]]) -> TracedPeak:
    """The most that is allocated: kernel k reads the clock as number `_BEFORE` + 2 k, and again when it is done."""
    live: dict[str, tuple[int, int]] = {}
    now = most = ticks = 0
    best: tuple[int, list[tuple[int, int]]] = 0, []
    for what, at, size in events:
        if what == "t":
            ticks += 1
        elif what == "a":
            live[at] = int(size), (ticks - _BEFORE - 1) // 2
            now += int(size)
            if now > most:
                most, best = now, (live[at][1], list(live.values()))
        elif at in live:
            now -= live.pop(at)[0]
    step, blocks = best
    others: dict[str, int] = {}
    for held, maker in blocks:
        if maker != step and 0 <= maker < len(kernels):
            others[kernels[maker]] = others.get(kernels[maker], 0) + held
    running = kernels[step] if 0 <= step < len(kernels) else ""
    return TracedPeak(running, sum(held for held, maker in blocks if maker == step), others)
