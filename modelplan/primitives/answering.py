"""A Python process that answers questions of this one: what may crash, hang or write anywhere runs in such a process.

Questions and answers are pickles, one at a time. The program that is started calls `answer_questions`.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Timer
from typing import IO, Any, Self

from modelplan.primitives.copied_processes import send

#: Seconds that a process may take until it has imported what it needs.
_STARTING = 300

#: Seconds that a process may take to end once it has closed its output.
_ENDING = 10


class NoAnswerError(Exception):
    """A process gave no answer: it `failed` with a reason, ended with an exit `code`, or was `late` and was stopped."""

    def __init__(self, reason: str, code: int | None = None, *, late: bool = False) -> None:
        super().__init__(reason)
        self.code, self.late = code, late


class AnsweringProcess:
    """Runs `program`, arguments of Python such as ("-m", "a.module"), from `start` or the first question on.

    Where the process has ended, the next question starts it again. What it prints to standard error goes to `log`.
    """

    def __init__(
        self, *program: str, environment: Mapping[str, str] | None = None, log: IO[bytes] | int = subprocess.DEVNULL
    ) -> None:
        # -P keeps the program's own folder off the path: its neighbours would shadow other packages.
        self._command, self._log = (sys.executable, "-P", *program), log
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = self._ended = False

    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> subprocess.Popen[bytes]:
        """The process, which is started if it does not run.

        Raises:
            NoAnswerError: `end` was called.
        """
        if self._ended:
            raise NoAnswerError("was ended")
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
        self._process = subprocess.Popen(  # noqa: S603  this Python
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **self._environment},
            start_new_session=True,  # Ctrl-C is for the process that asks
        )
        return self._process

    def ask(self, question: object, seconds: float | None = None) -> Any:
        """The process's answer; after `seconds` by the clock it is stopped. Its start takes none of them.

        Raises:
            NoAnswerError: the process ended, was stopped, or raised an error.
        """
        process = self.start()
        try:
            if not self._ready:
                _receive(process, _STARTING)
                self._ready = True
            failed, answer = _receive(process, seconds, question)
        except BaseException:  # with Ctrl-C too: what is under way would be taken for the next answer
            self._stop()
            raise
        if failed:
            raise NoAnswerError(answer)
        return answer

    def end(self) -> None:
        """Ends the process and those that it started, whatever they are doing; it answers nothing any more."""
        self._ended = True
        self._stop()

    def _stop(self) -> None:
        process, self._process, self._ready = self._process, None, False
        if process is None:
            return
        _kill(process)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what the process did not read is of no use any more
                    pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _receive(process: subprocess.Popen[bytes], seconds: float | None, *questions: object) -> tuple[bool, Any]:
    """What the process sends next, after it was sent the questions."""
    late = Event()

    def stop() -> None:
        late.set()
        _kill(process)

    timer = Timer(seconds or 0, stop)
    if seconds is not None:
        timer.start()
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for question in questions:
            send(question, process.stdin)
        answer: tuple[bool, Any] = pickle.load(process.stdout)  # noqa: S301  from a process of this package
        return answer
    except (OSError, EOFError, ValueError, pickle.UnpicklingError):
        code = _exit_code(process)
        reason = f"did not finish within {seconds:g} seconds" if late.is_set() else _ending(code)
        raise NoAnswerError(reason, code, late=late.is_set()) from None
    finally:
        timer.cancel()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process that ends; one that closed its output and goes on is stopped."""
    try:
        return process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        _kill(process)
        return process.wait()


def _ending(code: int) -> str:
    return f"crashed (signal {-code})" if code < 0 else f"ended with exit code {code}"


def answer_questions(answer: Callable[[Any], Any]) -> None:
    """Answers each question that comes in by the standard input, until it ends; an error is told by its last line."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand between the answers
    with suppress(BrokenPipeError, EOFError):  # whoever asked is gone
        send((False, "ready"), answers)
        while True:
            send(_answered(answer, pickle.load(sys.stdin.buffer)), answers)  # noqa: S301


def _answered(answer: Callable[[Any], Any], question: object) -> tuple[bool, Any]:
    try:
        return False, answer(question)
    except Exception as problem:  # noqa: BLE001  told to the process that asked
        return True, (str(problem).strip() or type(problem).__name__).splitlines()[-1]
