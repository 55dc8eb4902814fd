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

from modelplan.fleets.rows import Row, Status, as_record, row_of
from modelplan.fleets.runner import run_from
from modelplan.fleets.table import Run

_RUNNER = (sys.executable, "-P", "-m", "modelplan.fleets.runner")
#: Times that a run is tried whose process dies.
_TRIES = 2
#: Each thread of a worker keeps a process, which has its models loaded already.
_OF_THREAD = threading.local()


class Runner:
    """A process that measures runs one after the other; started when it is first asked and after each crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, run: Run, timeout: float) -> dict[str, Any]:
        """The row of a run as a record: that of the process, or how the process ended.

        A process is stopped after `timeout` seconds by the clock. Where it died otherwise the run is tried again, since
        something outside may have ended it.
        """
        for _ in range(_TRIES - 1):
            record = self._try(run, timeout)
            if record["status"] != "crashed":
                return record
        return self._try(run, timeout)

    def _try(self, run: Run, timeout: float) -> dict[str, Any]:
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
        return as_record(_ending(run, process.returncode, timeout, late=late.is_set()))

    def _ready(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._close()
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen(_RUNNER, text=True, **pipes)  # noqa: S603  this Python, this package
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


def _answer(process: subprocess.Popen[str], run: Run, timeout: float) -> dict[str, Any] | None:
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


def _ending(run: Run, code: int, timeout: float, *, late: bool) -> Row:
    """The row of a run whose process ended with `code`."""
    if late:
        return row_of(run, "timeout", f"no answer after {timeout:g} s")
    status: Status = "crashed"
    if code < 0:
        name = signal.Signals(-code).name if -code in list(signal.Signals) else f"signal {-code}"
        return row_of(run, status, f"the process ended by {name}")
    return row_of(run, status, f"the process ended with exit code {code}")


def rows_of(records: Sequence[dict[str, Any]], timeout: float) -> list[dict[str, Any]]:
    """The rows of some runs, both as records: what a worker of a cluster does."""
    if not hasattr(_OF_THREAD, "runner"):
        _OF_THREAD.runner = Runner()
    runner: Runner = _OF_THREAD.runner
    return [runner.ask(run_from(record), timeout) for record in records]
