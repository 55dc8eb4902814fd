"""Work of one command done by two processes, where the machine has two processors and can copy a process cheaply."""

import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from typing import IO, TypeAlias, TypeVar

Task = Callable[[], None]
T = TypeVar("T")
#: Begins work on what it is given; the task that it gives back waits for the end.
Begin: TypeAlias = Callable[[T], Task]


def share_out(tasks: Sequence[Task]) -> None:
    """Runs all tasks, in turn here and in a copy of this process; what they leave behind must be files.

    Each process takes the next task once it has time. Where a task fails in the copy, all that were not run here are
    run here, so that its error is raised here.
    """
    if len(tasks) < 2 or not can_fork():
        run_all(tasks)
        return
    reading, writing = os.pipe()
    with FileIO(reading) as queue:
        with os.fdopen(writing, "wb") as numbers:
            numbers.write(b"".join(number.to_bytes(2, "big") for number in range(len(tasks))))
        ours: set[int] = set()
        child = start_copy([lambda: _run_from(queue, tasks, set())])
        try:
            _run_from(queue, tasks, ours)
        finally:
            done = os.waitpid(child, 0)[1] == 0
    if not done:
        run_all([task for number, task in enumerate(tasks) if number not in ours])


def _run_from(queue: FileIO, tasks: Sequence[Task], taken: set[int]) -> None:
    """Runs tasks whose numbers come from a pipe that another process reads too, and notes them in `taken`."""
    while number := queue.read(2):
        taken.add(int.from_bytes(number, "big"))
        tasks[int.from_bytes(number, "big")]()


@contextmanager
def result_from_copy(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """A function that gives the result of `work`, which a copy of this process makes while the block runs.

    Where it fails there, or no copy can run, it is made here once it is asked for, so that its error is raised here.
    The copy ends with the block.
    """
    if not can_fork():
        yield work
        return
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as read_end, os.fdopen(writing, "wb") as write_end:
        copy = _Copy([lambda: send(work(), write_end)])
        write_end.close()

        def result() -> T:
            sent = read_end.read()
            if copy.failed():
                return work()
            answer: T = pickle.loads(sent)  # noqa: S301 - from this process's own copy
            return answer

        with copy:
            yield result


@contextmanager
def prepared(prepare: Callable[[], None], work: Callable[[T], None]) -> Iterator[Begin[T]]:
    """A function that starts `work` on its argument in a copy of this process that already ran `prepare`.

    It gives back another function, which waits until the work is done: what it leaves behind must be files. Where the
    copy fails, or none can run, the work is done there, so that its error is raised there. The copy ends with the
    block.
    """
    if not can_fork():
        yield lambda given: partial(work, given)
        return
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as asked, os.fdopen(writing, "wb") as sent:

        def wait_for_work() -> None:
            sent.close()
            prepare()
            work(pickle.load(asked))  # noqa: S301 - from this process, which the copy was made of

        copy = _Copy([wait_for_work])
        asked.close()

        def end(given: T) -> None:
            if copy.failed():
                work(given)

        def begin(given: T) -> Task:
            with suppress(BrokenPipeError), sent:  # the copy has failed, which `end` will see
                send(given, sent)
            return partial(end, given)

        with copy:
            yield begin


class _Copy:
    """A copy of this process that runs tasks beside it, ended at the latest with the block of the `with`."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._child = start_copy(tasks)
        self._ended = False

    def failed(self) -> bool:
        """Waits for the end; whether a task raised an error there. To be asked once."""
        code = os.waitpid(self._child, 0)[1]
        self._ended = True
        return code != 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if not self._ended:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)


def send(content: object, to: IO[bytes]) -> None:
    """Writes something to a pipe, from which another process reads it."""
    pickle.dump(content, to)
    to.flush()


def can_fork() -> bool:
    """Whether a copy of this process would run beside it: elsewhere than on Linux libraries may not survive a fork."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1


def run_all(tasks: Sequence[Task]) -> None:
    """Runs the tasks one after the other."""
    for task in tasks:
        task()


def start_copy(tasks: Sequence[Task]) -> int:
    """The number of a process that runs the tasks and ends with 0, or with 1 where one of them failed."""
    with warnings.catch_warnings():
        # Threads are those of numpy's BLAS, which stops them before a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        run_all(tasks)
        code = 0
    finally:
        os._exit(code)  # neither buffers nor exit handlers of the process that it is a copy of
