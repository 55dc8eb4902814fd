"""Work done by two processes: every task once, errors raised where the caller is."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from modelplan.cli import sharing_out
from modelplan.errors import RequestError


def leave(path: Path) -> None:
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8])
def test_every_task_runs_once(tmp_path: Path, count: int) -> None:
    sharing_out.share_out([partial(leave, tmp_path / str(i)) for i in range(count)])
    assert sorted(path.name for path in tmp_path.iterdir()) == [str(i) for i in range(count)]
    assert all(len(path.read_text().split()) == 1 for path in tmp_path.iterdir())


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    sharing_out.share_out([partial(leave, tmp_path / str(i)) for i in range(8)])
    processes = {path.read_text() for path in tmp_path.iterdir()}
    assert len(processes) == 1 + sharing_out.can_fork()


@pytest.mark.parametrize("failing", range(4))
def test_the_error_of_any_task_is_raised_here(tmp_path: Path, failing: int) -> None:
    def fail() -> None:
        raise RequestError("cannot write")

    tasks = [partial(leave, tmp_path / str(i)) for i in range(4)]
    with pytest.raises(RequestError, match="cannot write"):
        sharing_out.share_out([fail if i == failing else task for i, task in enumerate(tasks)])
