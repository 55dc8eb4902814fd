"""A process that measures runs for another one: it may crash or hang.

`isolation.py`, which starts it, makes a row of that.
"""

from __future__ import annotations

import signal
from dataclasses import asdict
from typing import Any

from modelplan.model import Graph, Op, Tensor
from modelplan.planning import pipeline
from modelplan.primitives.answering import answer_questions
from modelplan.questions.sweeps.run_table import SweepRun
from modelplan.questions.sweeps.running import Memo, measured

#: Times of the limit after which a process whose parent is gone ends itself, whatever it is doing.
_BACKSTOP = 2.0


def run_from(record: dict[str, Any]) -> SweepRun:
    """The run that JSON made a record of."""
    return SweepRun(**record | {name: tuple(record[name]) for name in ("dims", "shapes", "values")})


def measure_runs() -> None:
    """Answers each run and its time limit with its row as a record, until the input ends."""
    _warm_up()
    memo = Memo()

    def row(asked: tuple[SweepRun, float]) -> dict[str, object]:
        run, timeout = asked
        _end_after(_BACKSTOP * timeout)
        record = asdict(measured(run, memo))
        _end_after(0)
        return record

    answer_questions(row)


def _warm_up() -> None:
    """Plans a graph of one operator, so that no run waits for what is imported when it is first used."""
    tensors = tuple(Tensor(name, (1, 4), "int8") for name in "xy")
    pipeline.plan(Graph("", "tflite", tensors, (Op("", "RELU", (0,), (1,)),), (0,), (1,)))


def _end_after(seconds: float) -> None:
    """Has the system end this process after so long; 0: no longer. Systems without such a timer do nothing."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    measure_runs()
