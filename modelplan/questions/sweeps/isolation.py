"""Runs measured in a process of their own, so that a crash or a hang costs one row and no worker."""

import signal
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from modelplan.model import Graph, Op, Tensor
from modelplan.planning import pipeline
from modelplan.primitives.answering import AnsweringProcess, NoAnswerError, answer_questions
from modelplan.questions.sweeps.measured_runs import Memo, measured
from modelplan.questions.sweeps.run_table import SweepRun
from modelplan.questions.sweeps.sweep_rows import SweepRow, row_of

_RUNNER = ("-m", "modelplan.questions.sweeps.isolation")
#: Signals that rather come from outside than from what a process does.
_FROM_OUTSIDE = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))
#: Each thread of a worker keeps a process, which has its models loaded already.
_OF_THREAD = threading.local()


class Runner(AnsweringProcess):
    """A process that measures runs one after the other; started when it is first asked and after each crash."""

    def __init__(self) -> None:
        super().__init__(*_RUNNER)

    def row(self, run: SweepRun, timeout: float, *, again: bool = True) -> dict[str, object]:
        """The row of a run as a record: that of the process, or how the process ended.

        A process is stopped after `timeout` seconds by the clock. Where a signal from outside ended it, such as that of
        a system without memory, the run is tried once more.
        """
        try:
            row: dict[str, object] = self.ask((run, timeout), timeout)
        except NoAnswerError as problem:
            if again and not problem.late and -(problem.code or 0) in _FROM_OUTSIDE:
                return self.row(run, timeout, again=False)
            return asdict(_ending(run, problem, timeout))
        return row


def _ending(run: SweepRun, problem: NoAnswerError, timeout: float) -> SweepRow:
    """The row of a run whose process gave no answer."""
    if problem.late:
        return row_of(run, "timeout", f"no answer after {timeout:g} s")
    if problem.code is None:
        return row_of(run, "crashed", str(problem))
    how = f"exit code {problem.code}" if problem.code >= 0 else f"signal {-problem.code}"
    if -problem.code in {int(known) for known in signal.Signals}:
        how = signal.Signals(-problem.code).name
    return row_of(run, "crashed", f"the process ended by {how}")


def rows_of(records: Sequence[dict[str, object]], timeout: float) -> list[dict[str, object]]:
    """The rows of some runs, both as records: what a worker of a cluster does."""
    if not hasattr(_OF_THREAD, "runner"):
        _OF_THREAD.runner = Runner()
    runner: Runner = _OF_THREAD.runner
    return [runner.row(run_from(record), timeout) for record in records]


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
