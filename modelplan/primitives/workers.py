"""Processes that work beside the one that searches: tasks that depend on nothing but their arguments, results in order.

What comes out does not depend on how many processes there are, nor on which of them did what.

`concurrent.futures` would run the caller's script anew in each process (spawn), or copy a process that has threads
(fork); a script that calls `fit` without a guard has to work.
"""

import os
import pickle
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from threading import Condition, Lock, Thread
from typing import Any

from modelplan.primitives.answering import AnsweringProcess, NoAnswerError, answer_questions

#: The most processes that are used without being asked for.
USUAL = 4
_PROGRAM = ("-c", "from modelplan.primitives.workers import carry_out_tasks; carry_out_tasks()")


def usual_processes() -> int:
    """As many as there are processors for this process, up to four."""
    return min(USUAL, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class Workers:
    """`processes` - 1 further processes that carry out tasks; `close` ends them.

    Each calls `prepare(*arguments)` once, which returns its tasks by name; both are sent by pickle. They are started
    once this process has worked for `alone` seconds: what ends before costs no second start.
    """

    def __init__(
        self,
        processes: int,
        prepare: Callable[..., Mapping[str, Callable[..., object]]],
        *arguments: object,
        alone: float = 0.0,
    ) -> None:
        self._count = processes - 1 if sys.executable else 0
        self._prepared = prepare, arguments
        self._alone = time.process_time() + alone
        self._workers: list[_Worker] = []

    def map(
        self, name: str, arguments: Sequence[tuple[object, ...]], own: Callable[..., object]
    ) -> Generator[Any, None, None]:
        """The result of a task for each of many arguments, in their order; `own` carries it out in this process.

        Tasks are begun in order, and none is begun any more once the caller stops to ask.
        """
        shared = _Shared(arguments)
        if not self._workers and time.process_time() >= self._alone:
            self._workers = [_Worker(*self._prepared) for _ in range(self._count)]
        for worker in self._workers:
            Thread(target=worker.work, args=(name, shared), daemon=True).start()
        try:
            for index in range(len(arguments)):
                yield shared.wait_for(index, own)
        finally:
            shared.stop()

    def close(self) -> None:
        """Ends the processes, whatever they are doing."""
        for worker in self._workers:
            worker.process.end()


class _Shared:
    """A queue of tasks that several threads take from, with the results."""

    def __init__(self, arguments: Sequence[tuple[object, ...]]) -> None:
        self.arguments, self.next, self.changed = arguments, 0, Condition()
        self.results: dict[int, object] = {}
        self.left: list[int] = []

    def take(self) -> int | None:
        """The number of the next task, None where there is none."""
        with self.changed:
            if self.left:
                return self.left.pop(0)
            if self.next >= len(self.arguments):
                return None
            self.next += 1
            return self.next - 1

    def put(self, index: int, result: object) -> None:
        with self.changed:
            self.results[index] = result
            self.changed.notify_all()

    def give_back(self, index: int) -> None:
        """Returns a task to the queue that its process could not carry out."""
        with self.changed:
            self.left.append(index)
            self.changed.notify_all()

    def stop(self) -> None:
        with self.changed:
            self.next, self.left = len(self.arguments), []

    def wait_for(self, index: int, own: Callable[..., object]) -> Any:
        """The result of a task; until it is there this thread carries out others."""
        while True:
            with self.changed:
                if index in self.results:
                    return self.results.pop(index)
            mine = self.take()
            if mine is not None:
                self.put(mine, own(*self.arguments[mine]))
                continue
            with self.changed:
                self.changed.wait_for(lambda: index in self.results or self.left)


class _Worker:
    """A process that carries out one task at a time."""

    def __init__(
        self, prepare: Callable[..., Mapping[str, Callable[..., object]]], arguments: tuple[object, ...]
    ) -> None:
        self.free = Lock()
        self.process = AnsweringProcess(*_PROGRAM)
        self.process.start()
        self.preparation: object = prepare, arguments

    def work(self, name: str, tasks: _Shared) -> None:
        """Carries out tasks until none are left or the process fails at one, which returns to the queue."""
        with self.free:
            while self.process.running() and (index := tasks.take()) is not None:
                try:
                    if self.preparation is not None:
                        self.process.ask(self.preparation)
                        self.preparation = None
                    result = self.process.ask((name, tasks.arguments[index]))
                except BaseException as problem:
                    tasks.give_back(index)
                    if isinstance(problem, (NoAnswerError, pickle.PickleError)):
                        return
                    raise
                tasks.put(index, result)


def carry_out_tasks() -> None:
    """Is given what prepares the tasks, then tasks by their names."""
    tasks: dict[str, Callable[..., object]] = {}

    def answer(question: tuple[Any, tuple[Any, ...]]) -> object:
        name, arguments = question
        if not callable(name):
            return tasks[name](*arguments)
        tasks.update(name(*arguments))
        return None

    answer_questions(answer)
