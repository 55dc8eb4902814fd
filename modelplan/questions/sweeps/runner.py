"""A process that measures runs for another one: a run per line of standard input, a row per line of its output.

It may crash or hang; `isolation.py`, which starts it, makes a row of that. Both sides speak JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from modelplan.model import Graph, Op, Tensor
from modelplan.planning import pipeline
from modelplan.questions.sweeps.rows import as_record
from modelplan.questions.sweeps.run_table import SweepRun
from modelplan.questions.sweeps.running import Memo, measured

#: Times of the limit after which a process whose parent is gone ends itself, whatever it is doing.
_BACKSTOP = 2.0


def run_from(record: dict[str, Any]) -> SweepRun:
    """The run that JSON made a record of."""
    return SweepRun(**record | {"dims": tuple(record["dims"]), "shapes": tuple(record["shapes"])})


def serve() -> None:
    """Says that it is ready, then answers each run until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    os.dup2(2, 1)  # what a library prints must not stand between the answers
    _warm_up()
    answers.write("ready\n")
    answers.flush()
    memo = Memo()
    for line in sys.stdin:
        asked = json.loads(line)
        _end_after(_BACKSTOP * asked["timeout"])
        row = measured(run_from(asked["run"]), memo)
        _end_after(0)
        answers.write(json.dumps(as_record(row)) + "\n")
        answers.flush()


def _warm_up() -> None:
    """Plans a graph of one operator, so that no run waits for what is imported when it is first used."""
    tensors = tuple(Tensor(name, (1, 4), "int8") for name in "xy")
    pipeline.plan(Graph("", "tflite", tensors, (Op("", "RELU", (0,), (1,)),), (0,), (1,)))


def _end_after(seconds: float) -> None:
    """Has the system end this process after so long; 0: no longer. Systems without such a timer do nothing."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    try:
        serve()
    except BrokenPipeError:  # whoever asked is gone
        os._exit(0)
