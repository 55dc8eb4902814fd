"""The command as a user would run it: by `run` within this process, by `run_process` as a program of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn
from unittest import mock

from modelplan.cli import main

COMMAND = str(Path(sys.executable).parent / "modelplan")
SECONDS = 120


def run(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What a command line prints and its exit code, without the cost of a new process; other errors are raised.

    For tests in which only these count: what ends, kills or measures a process needs one.
    """
    command = [COMMAND, *map(str, words)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with _own_streams(out, err), _own_state(command, cwd), _time_limit(command):
            code = _exit_code(command[1:])
        return subprocess.CompletedProcess(command, code, _text(out), _text(err))


def run_process(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same by the installed program; a traceback is a failure whatever the test asks."""
    command = [COMMAND, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=cwd, check=False)
    assert "Traceback" not in done.stderr
    return done


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


def _exit_code(words: Sequence[str]) -> int:
    try:
        return main(words)
    except SystemExit as end:
        return int(end.code or 0)


@contextmanager
def _own_state(command: list[str], cwd: Path | None) -> Iterator[None]:
    with chdir(cwd or Path.cwd()), mock.patch.object(sys, "argv", command), mock.patch.dict(os.environ):
        yield


@contextmanager
def _own_streams(out: BinaryIO, err: BinaryIO) -> Iterator[None]:
    """Sends standard output and error to files, also those of child processes and of libraries in C."""
    with ExitStack() as stack:
        for number, name, file in ((1, "stdout", out), (2, "stderr", err)):
            getattr(sys, name).flush()
            kept = os.dup(number)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            os.dup2(file.fileno(), number)
            stream = stack.enter_context(open(number, "w", encoding="utf-8", closefd=False))
            stack.enter_context(mock.patch.object(sys, name, stream))
        yield


@contextmanager
def _time_limit(command: Sequence[str]) -> Iterator[None]:
    def too_late(*_: object) -> NoReturn:
        raise subprocess.TimeoutExpired(command, SECONDS)

    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
