"""Tasks in several processes: results in order, the same whatever the processes do."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from striped_files import three_convolutions

from modelplan import FitRequest, fit
from modelplan.primitives.workers import Workers

#: With the kernels whose figures are expected.
asked = partial(FitRequest, kernels="reference")

TASKS = {"add": operator.add, "divide": operator.truediv, "process": os.getpid}


@pytest.fixture(params=[1, 2, 3])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    made = Workers(request.param, dict, TASKS)
    yield made
    made.close()


def test_results_come_in_the_order_of_the_tasks(workers: Workers) -> None:
    for _ in range(2):
        assert list(workers.map("add", [(n, 1) for n in range(50)], operator.add)) == list(range(1, 51))
    assert list(workers.map("add", [], operator.add)) == []


def test_a_caller_may_stop_early(workers: Workers) -> None:
    results = workers.map("add", [(n, 1) for n in range(50)], operator.add)
    assert [next(results) for _ in range(3)] == [1, 2, 3]
    results.close()
    assert list(workers.map("add", [(1, 1)], operator.add)) == [2]


def test_a_task_that_fails_fails_here(workers: Workers) -> None:
    with pytest.raises(ZeroDivisionError):
        list(workers.map("divide", [(4, 2), (1, 0), (9, 3)], operator.truediv))


def test_tasks_of_a_process_that_ended_are_done_here() -> None:
    workers = Workers(2, dict, TASKS)
    workers.close()
    assert list(workers.map("add", [(n, 1) for n in range(9)], operator.add)) == list(range(1, 10))
    workers.close()


def test_another_process_does_its_share() -> None:

    workers = Workers(2, dict, TASKS)

    def wait() -> int:
        time.sleep(0.2)
        return os.getpid()

    found = set(workers.map("process", [()] * 100, wait))
    workers.close()
    assert found - {os.getpid()}


@pytest.mark.slow
def test_the_answer_does_not_depend_on_the_processes(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(three_convolutions())
    alone, together = (fit(asked(path, objective="head", processes=count)) for count in (1, 2))
    assert alone == together
    assert alone.chosen is not None
    assert alone.chosen.name == "split"
