"""Work done by two processes: every task once, errors raised where the caller is."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import pytest

from modelplan.primitives import copied_processes as sharing_out
from modelplan.primitives.errors import RequestError


def leave(path: Path) -> None:
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8])
def test_every_task_runs_once(tmp_path: Path, count: int) -> None:
    sharing_out.share_out([partial(leave, tmp_path / str(i)) for i in range(count)])
    assert sorted(path.name for path in tmp_path.iterdir()) == [str(i) for i in range(count)]
    assert all(len(path.read_text().split()) == 1 for path in tmp_path.iterdir())


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    def leave_slowly(path: Path) -> None:
        time.sleep(0.1)
        leave(path)

    sharing_out.share_out([partial(leave_slowly, tmp_path / str(i)) for i in range(8)])
    processes = {path.read_text() for path in tmp_path.iterdir()}
    assert len(processes) == 1 + sharing_out.can_fork()


@pytest.mark.parametrize("failing", range(4))
def test_the_error_of_any_task_is_raised_here(tmp_path: Path, failing: int) -> None:
    def fail() -> None:
        raise RequestError("cannot write")

    tasks = [partial(leave, tmp_path / str(i)) for i in range(4)]
    with pytest.raises(RequestError, match="cannot write"):
        sharing_out.share_out([fail if i == failing else task for i, task in enumerate(tasks)])


def test_work_beside_gives_its_result_from_another_process() -> None:
    with sharing_out.result_from_copy(os.getpid) as result:
        assert (result() != os.getpid()) == sharing_out.can_fork()


def test_an_error_of_work_beside_is_raised_where_the_result_is_asked_for() -> None:
    def fail() -> int:
        raise RequestError("cannot plan")

    with sharing_out.result_from_copy(fail) as result, pytest.raises(RequestError, match="cannot plan"):
        result()


@pytest.mark.skipif(not sharing_out.can_fork(), reason="one processor, or no fork")
def test_work_beside_ends_with_the_block_whatever_ends_it(tmp_path: Path) -> None:
    def endless() -> None:
        leave(tmp_path / "process")
        while True:
            time.sleep(0.01)

    def interrupted() -> None:
        with sharing_out.result_from_copy(endless):
            while not (tmp_path / "process").exists() or not (tmp_path / "process").read_text():
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "process").read_text()), 0)


def test_a_result_of_a_megabyte_comes_whole() -> None:
    with sharing_out.result_from_copy(lambda: b"x" * 2**20) as result:
        assert result() == b"x" * 2**20


def test_prepared_work_is_done_by_the_process_that_prepared_it(tmp_path: Path) -> None:
    with sharing_out.prepared(partial(leave, tmp_path / "x"), leave) as begin:
        begin(tmp_path / "x")()
    processes = [int(line) for line in (tmp_path / "x").read_text().split()]
    if sharing_out.can_fork():
        assert processes[0] == processes[1] != os.getpid()
    else:
        assert processes == [os.getpid()]


def test_an_error_of_prepared_work_is_raised_where_its_end_is_waited_for() -> None:
    def fail(message: str) -> None:
        raise RequestError(message)

    with sharing_out.prepared(lambda: None, fail) as begin:
        end = begin("no room")
        with pytest.raises(RequestError, match="no room"):
            end()


def test_work_is_done_here_where_preparing_fails(tmp_path: Path) -> None:
    def fail() -> None:
        raise RequestError("nothing to prepare with")

    with sharing_out.prepared(fail, leave) as begin:
        begin(tmp_path / "x")()
    assert (tmp_path / "x").read_text().split() == [str(os.getpid())]


def test_work_is_done_here_where_preparing_has_failed_before_it_is_begun(tmp_path: Path) -> None:
    def fail() -> None:
        raise RequestError("nothing to prepare with")

    with sharing_out.prepared(fail, leave) as begin:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # the copy has ended, and waits to be asked how
        begin(tmp_path / "x")()
    assert (tmp_path / "x").read_text().split() == [str(os.getpid())]


def test_nothing_is_left_of_work_that_was_never_begun(tmp_path: Path) -> None:
    def never() -> None:
        with sharing_out.prepared(partial(leave, tmp_path / "x"), leave):
            raise RequestError("no plan")

    with pytest.raises(RequestError, match="no plan"):
        never()
    for process in (tmp_path / "x").read_text().split() if (tmp_path / "x").exists() else ():
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)
