"""Runs measured in a process of their own, so that a crash or a hang costs one row and no worker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from modelplan.questions.sweeps.rows import SweepRow, as_record, row_of
from modelplan.questions.sweeps.run_table import SweepRun
from modelplan.questions.sweeps.runner import run_from

_RUNNER = (sys.executable, "-P", "-m", "modelplan.questions.sweeps.runner")
#: Stands for the exit code of a process that was stopped because it took too long.
_LATE = 1 << 16
#: Signals that rather come from outside than from what a process does.
_FROM_OUTSIDE = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))
#: Each thread of a worker keeps a process, which has its models loaded already.
_OF_THREAD = threading.local()


class Runner:
    """A process that measures runs one after the other; started when it is first asked and after each crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, run: SweepRun, timeout: float) -> dict[str, Any]:
        """The row of a run as a record: that of the process, or how the process ended.

        A process is stopped after `timeout` seconds by the clock. Where a signal from outside ended it, such as that of
        a system without memory, the run is tried once more.
        """
        answer = self._try(run, timeout)
        if not isinstance(answer, dict) and -answer in _FROM_OUTSIDE:
            answer = self._try(run, timeout)
        return answer if isinstance(answer, dict) else as_record(_ending(run, answer, timeout))

    def _try(self, run: SweepRun, timeout: float) -> dict[str, Any] | int:
        """The record, or the exit code of a process that gave none; `_LATE` where it was stopped."""
        process = self._ready()
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout, stop)
        timer.start()
        answer = _answer(process, run, timeout)
        timer.cancel()
        if answer is not None:
            return answer
        process.wait()
        self._close()
        return _LATE if late.is_set() else process.returncode

    def _ready(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._close()
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen(_RUNNER, text=True, **pipes)  # noqa: S603  this Python, this package
            assert self._process.stdout is not None
            self._process.stdout.readline()  # it is ready; what it imports until then is no time of a run
        return self._process

    def _close(self) -> None:
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        self._process = None

    def stop(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._close()


def _answer(process: subprocess.Popen[str], run: SweepRun, timeout: float) -> dict[str, Any] | None:
    """The record that the process answers; None where it ended before."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps({"run": asdict(run), "timeout": timeout}) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return None
    line = process.stdout.readline()
    if not line.endswith("\n"):
        return None
    answer: dict[str, Any] = json.loads(line)
    return answer


def _ending(run: SweepRun, code: int, timeout: float) -> SweepRow:
    """The row of a run whose process ended with `code`."""
    if code == _LATE:
        return row_of(run, "timeout", f"no answer after {timeout:g} s")
    how = f"exit code {code}" if code >= 0 else f"signal {-code}"
    if -code in {int(known) for known in signal.Signals}:
        how = signal.Signals(-code).name
    return row_of(run, "crashed", f"the process ended by {how}")


def rows_of(records: Sequence[dict[str, Any]], timeout: float) -> list[dict[str, Any]]:
    """The rows of some runs, both as records: what a worker of a cluster does."""
    if not hasattr(_OF_THREAD, "runner"):
        _OF_THREAD.runner = Runner()
    runner: Runner = _OF_THREAD.runner
    return [runner.ask(run_from(record), timeout) for record in records]
