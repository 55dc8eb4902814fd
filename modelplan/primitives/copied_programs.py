"""A Python program that runs in a copy of this process: all that it imports and this process has is there at once."""

import gc
import os
import signal
import sys
import time
from typing import IO

#: Seconds between two looks whether a process has ended.
_WAITING = 0.01

_commanded = False


def allow_copied_programs() -> None:
    """Says that this process is a command's own: nobody else has threads or libraries in it that bear no copy."""
    global _commanded
    _commanded = sys.platform == "linux"


def can_copy_programs() -> bool:
    """Whether a program may run in a copy now: a copy has only one of a process's threads, and what others hold."""
    from threading import active_count  # here, as all imports of this file: few commands start a program

    return _commanded and active_count() == 1


class CopiedProgram:
    """Arguments of Python such as ("-m", "a.module") in a copy of this process; in use as a `subprocess.Popen`.

    Its standard input and output are pipes, its errors go to `log`, if there is one; it has no other open files, and a
    session of its own.
    """

    def __init__(self, program: tuple[str, ...], log: IO[bytes] | None) -> None:
        from modelplan.primitives.copied_processes import start_copy

        (read_end, questions), (answers, write_end) = os.pipe(), os.pipe()
        self.returncode: int | None = None
        self.pid = start_copy([lambda: _become(program, read_end, write_end, log)])
        os.close(read_end)
        os.close(write_end)
        self.stdin: IO[bytes] = os.fdopen(questions, "wb")
        self.stdout: IO[bytes] = os.fdopen(answers, "rb")

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        if self.returncode is None and (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended.

        Raises:
            subprocess.TimeoutExpired: it runs on after so many seconds.
        """
        until = time.monotonic() + (timeout or 0)
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() > until:
                from subprocess import TimeoutExpired

                raise TimeoutExpired("copied program", timeout)
            time.sleep(_WAITING)
        return code

    def kill(self) -> None:
        """Ends it, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _become(program: tuple[str, ...], read_end: int, write_end: int, log: IO[bytes] | None) -> None:
    """Runs the program in the copy, which forgets what this process has opened and how it ends."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    errors = log.fileno() if log else os.open(os.devnull, os.O_WRONLY)
    for ours, theirs in ((read_end, 0), (write_end, 1), (errors, 2)):
        os.dup2(ours, theirs)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    gc.freeze()  # what is left of this process's files is not closed a second time
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    code = 0
    try:
        _run(program)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - told as Python tells it
        from traceback import print_exc

        print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)


def _run(program: tuple[str, ...]) -> None:
    import runpy

    sort, *more = program
    if sort == "-c":
        exec(more[0], {"__name__": "__main__"})  # noqa: S102 - a program of this package
    elif sort == "-m":
        runpy.run_module(more[0], run_name="__main__")
    else:
        runpy.run_path(sort, run_name="__main__")
