"""A Python process that answers questions of this one: what may crash, hang or write anywhere runs in such a process.

Questions and answers are pickles, one at a time. The program that is started calls `answer_questions`. What could leave
damage behind for the next question is asked with `ask_isolated`.
"""

import atexit
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from threading import Event, Lock, Timer
from typing import IO, Any, TypeAlias

from modelplan.primitives.copied_processes import send, start_copy
from modelplan.primitives.copied_programs import CopiedProgram, can_copy_programs

_Process: TypeAlias = "subprocess.Popen[bytes] | CopiedProgram"
#: Seconds that a process may take until it has imported what it needs.
_STARTING = 300

#: Seconds that a process may take to end once it has closed its output.
_ENDING = 10

#: Whether a process that has imported libraries can be copied: elsewhere they may not survive a fork.
_FORKS = sys.platform == "linux"


class NoAnswerError(Exception):
    """A process gave no answer: it failed with a reason, ended with an exit `code`, or was `late` and was stopped.

    `log` is what it printed to standard error until then, where it was asked with `ask_isolated`.
    """

    def __init__(self, reason: str, code: int | None = None, *, late: bool = False) -> None:
        super().__init__(reason)
        self.code, self.late, self.log = code, late, ""


class AnsweringProcess:
    """Runs `program`, arguments of Python such as ("-m", "a.module"), from `start` or the first question on.

    Where the process has ended, the next question starts it again. What it prints to standard error goes to `log`,
    if there is one.
    """

    def __init__(
        self, *program: str, environment: Mapping[str, str] | None = None, log: IO[bytes] | None = None
    ) -> None:
        self._program, self._log = program, log
        self._environment = environment or {}
        self._process: _Process | None = None
        self._ready = self._ended = False

    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> _Process:
        """The process, which is started if it does not run.

        Raises:
            NoAnswerError: `end` was called.
        """
        if self._ended:
            raise NoAnswerError("was ended")
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.stop()
        self._process = self._begun()
        return self._process

    def _begun(self) -> _Process:
        """A new process: a copy of this one where that can be, unless libraries have to find another environment."""
        if can_copy_programs() and not self._environment:
            return CopiedProgram(self._program, self._log)
        # -P keeps the program's own folder off the path: its neighbours would shadow other packages.
        return subprocess.Popen(  # noqa: S603  this Python
            (sys.executable, "-P", *self._program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log or subprocess.DEVNULL,
            env={**os.environ, **self._environment},
            start_new_session=True,  # Ctrl-C is for the process that asks
        )

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
            self.stop()
            raise
        if failed:
            raise NoAnswerError(answer)
        return answer

    def end(self) -> None:
        """Ends the process and those that it started, whatever they are doing; it answers nothing any more."""
        self._ended = True
        self.stop()

    def stop(self) -> None:
        """Ends the process and those that it started, whatever they are doing; the next question starts it again."""
        process, self._process, self._ready = self._process, None, False
        if process is None:
            return
        _kill(process)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what the process did not read is of no use any more
                    pipe.close()


def ask_isolated(program: tuple[str, ...], question: object, seconds: float) -> tuple[Any, str]:
    """The answer of a program that calls `answer_questions` with `isolated`, and what it printed to standard error.

    One process is started for all questions to a program, which imports once what it needs; on Linux each question is
    answered by a copy of it, elsewhere a new process is started for the next one. It ends with this process.

    Raises:
        NoAnswerError: the process ended, took longer than `seconds` and was stopped, or raised an error.
    """
    process, log, one_at_a_time = _process_of(program, os.getpid())
    with one_at_a_time:
        log.seek(0)  # for the process too, which writes to the same open file
        log.truncate()
        try:
            return process.ask(question, seconds), _text(log)
        except NoAnswerError as problem:
            problem.log = _text(log)
            raise
        finally:
            if not _FORKS:
                process.stop()


def start_isolated(program: tuple[str, ...]) -> None:
    """Starts the process that `ask_isolated` asks, so that it is ready sooner."""
    _process_of(program, os.getpid())[0].start()


@cache
def _process_of(program: tuple[str, ...], asker: int) -> tuple[AnsweringProcess, IO[bytes], Lock]:  # noqa: ARG001
    """The process that runs a program, its log and its lock; a copy of this process is another `asker`."""
    log = tempfile.TemporaryFile()  # noqa: SIM115  closed at the end
    process = AnsweringProcess(*program, log=log)
    atexit.register(log.close)
    atexit.register(process.end)
    return process, log, Lock()


def _text(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode(errors="replace")


def _receive(process: _Process, seconds: float | None, *questions: object) -> tuple[bool, Any]:
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
        ended = f"crashed (signal {-code})" if code < 0 else f"ended with exit code {code}"
        reason = f"did not finish within {seconds:g} seconds" if late.is_set() else ended
        raise NoAnswerError(reason, code, late=late.is_set()) from None
    finally:
        timer.cancel()


def _kill(process: _Process) -> None:
    try:
        with suppress(PermissionError):
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    except ProcessLookupError:
        process.kill()  # a copy that has no session of its own yet


def _exit_code(process: _Process) -> int:
    """The exit code of a process that ends; one that closed its output and goes on is stopped."""
    try:
        return process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        _kill(process)
        return process.wait()


def answer_questions(answer: Callable[[Any], object], *, isolated: bool = False) -> None:
    """Answers each question that comes in by the standard input, until it ends; an error is told by its last line.

    With `isolated` each is answered in a copy of this process, so that none sees what another one left behind; where
    the copy crashes, this process ends in the same way.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand between the answers
    with suppress(BrokenPipeError, EOFError):  # whoever asked is gone
        send((False, "ready"), answers)
        while True:
            question = pickle.load(sys.stdin.buffer)  # noqa: S301  from a process of this package
            if isolated and _FORKS:
                _end_as(start_copy([partial(_reply, answer, question, answers)]))
            else:
                _reply(answer, question, answers)


def _end_as(copy: int) -> None:
    """Waits for a copy of this process; unless it ended well, this process ends as the copy did."""
    code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    elif code:
        os._exit(code)


def _reply(answer: Callable[[Any], object], question: object, answers: IO[bytes]) -> None:
    try:
        reply = False, answer(question)
    except Exception as problem:  # noqa: BLE001  told to the process that asked
        reply = True, (str(problem).strip() or type(problem).__name__).splitlines()[-1]
    send(reply, answers)
