"""Sweeps that are killed and go on, with a model that crashes and one that hangs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from commands import COMMAND

#: Read by every Python that starts: in a process that measures runs, two names of files stand for what happens in the
#: last of the modes.
_BREAKING = """
import sys

if "modelplan.questions.sweeps.isolation" in sys.orig_argv:
    import os, signal, time
    from modelplan.questions.sweeps import measured_runs

    measured = measured_runs.measured

    def breaking(run, memo):
        if "poisoned" in run.model and run.alias == "max":
            os.kill(os.getpid(), signal.SIGSEGV)
        while "hanging" in run.model and run.alias == "max":
            time.sleep(1)
        return measured(run, memo)

    measured_runs.measured = breaking
"""


def broken_models(folder: Path, model: Path) -> tuple[str, str]:
    """Two copies of a model in `folder`: under `environment`, in mode max, one ends the process and one hangs."""
    (folder / "site").mkdir(parents=True, exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(_BREAKING)
    found = [str(shutil.copy(model, folder / f"{name}.tflite")) for name in ("poisoned", "hanging")]
    return found[0], found[1]


def environment(folder: Path) -> dict[str, str]:
    """The environment in which the models of `broken_models` do what their names say."""
    return os.environ | {"PYTHONPATH": str(folder / "site")}


def start(words: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """A sweep under way."""
    pipe, command = subprocess.PIPE, [COMMAND, "sweep", *words]
    return subprocess.Popen(command, text=True, env=environment(folder), stdout=pipe, stderr=pipe)


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """The processes that a process started, and those started by them: id and command line. Linux."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            line = (folder / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid:
            yield int(folder.name), line
            yield from descendants(int(folder.name))


def kill_worker(process: subprocess.Popen[str]) -> bool:
    """Kills a worker of a sweep, and with it the process in which it measures; False where there is none yet."""
    workers = [pid for pid, line in descendants(process.pid) if "spawn_main" in line]
    for pid in workers[:1]:
        os.kill(pid, signal.SIGKILL)
    return bool(workers)


def kill(process: subprocess.Popen[str]) -> None:
    """Kills a sweep, and waits until its workers are gone too."""
    started = list(descendants(process.pid))
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while any(_lives(pid, line) for pid, line in started):
        assert time.monotonic() < deadline, started
        time.sleep(0.1)


def _lives(pid: int, line: str) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") == line
    except (FileNotFoundError, ProcessLookupError):
        return False


def measures(process: subprocess.Popen[str]) -> bool:
    """Whether a sweep has a process that measures runs."""
    return any("sweeps.isolation" in line for _, line in descendants(process.pid))
