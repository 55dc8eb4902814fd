"""A process that answers: its answers, its errors, its crash and its delay are four different things."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from modelplan.primitives import answering
from modelplan.primitives.answering import AnsweringProcess, NoAnswerError, ask_isolated
from modelplan.primitives.copied_processes import result_from_copy

#: Answers an expression with its value, printing on the way what no one may take for an answer.
PROGRAM = """
import os, sys, time
from modelplan.primitives.answering import answer_questions
answer_questions(lambda question: (print("noise"), eval(question))[1])
"""
#: The same, each question in a copy of the process.
ISOLATED = ("-c", PROGRAM.replace("[1])", "[1], isolated=True)"))


@pytest.fixture
def process() -> Iterator[AnsweringProcess]:
    answering = AnsweringProcess("-c", PROGRAM)
    yield answering
    answering.end()


def test_answers_come_one_at_a_time_from_one_process(process: AnsweringProcess) -> None:
    assert process.ask("[1] * 3") == [1, 1, 1]
    assert process.ask("os.getpid()") == process.ask("os.getpid()") == process.start().pid


@pytest.mark.parametrize(
    ("question", "reason", "code", "late"),
    [
        ("1 / 0", "division by zero", None, False),
        ("os.abort()", "crashed (signal 6)", -6, False),
        ("os._exit(3)", "ended with exit code 3", 3, False),
        ("os.close(1) or os.closerange(3, 20) or os._exit(4)", "ended with exit code 4", 4, False),
        ("time.sleep(60)", "did not finish within 0.3 seconds", -9, True),
    ],
)
def test_each_way_to_give_no_answer_is_told(
    process: AnsweringProcess, question: str, reason: str, code: int | None, late: bool
) -> None:
    with pytest.raises(NoAnswerError) as problem:
        process.ask(question, seconds=0.3 if late else None)
    assert (str(problem.value), problem.value.code, problem.value.late) == (reason, code, late)
    assert process.ask("6 * 7") == 42  # the next question starts it again


def test_a_program_that_cannot_start_is_told() -> None:
    with pytest.raises(NoAnswerError) as problem:
        AnsweringProcess("-c", "import sys; sys.exit(5)").ask("1")
    assert problem.value.code == 5


def test_once_ended_it_answers_nothing_and_a_question_under_way_fails(process: AnsweringProcess) -> None:
    process.ask("1")
    threading.Timer(0.3, process.end).start()
    with pytest.raises(NoAnswerError, match="signal 9"):
        process.ask("time.sleep(60)")
    with pytest.raises(NoAnswerError, match="was ended"):
        process.ask("1")


def test_isolated_no_question_sees_what_another_left_behind() -> None:
    assert ask_isolated(ISOLATED, "sys.modules.__setitem__('left behind', sys) or os.getppid()", 60)[0] != os.getpid()
    assert ask_isolated(ISOLATED, "'left behind' in sys.modules", 60)[0] is False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system that copies no processes")
def test_isolated_one_process_imports_for_all_questions_and_a_copy_of_the_asker_has_its_own() -> None:
    parent = ask_isolated(ISOLATED, "os.getppid()", 60)[0]
    assert ask_isolated(ISOLATED, "os.getppid()", 60)[0] == parent
    with result_from_copy(lambda: ask_isolated(ISOLATED, "os.getppid()", 60)[0]) as result:
        assert result() != parent


def test_isolated_each_question_has_a_new_process_where_none_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "_FORKS", False)
    assert len({ask_isolated(("-c", PROGRAM), "os.getpid()", 60)[0] for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("question", "reason", "code", "late"),
    [
        ("1 / 0", "division by zero", None, False),
        ("os.abort()", "crashed (signal 6)", -6, False),
        ("os._exit(3)", "ended with exit code 3", 3, False),
        ("time.sleep(60)", "did not finish within 0.3 seconds", -9, True),
    ],
)
def test_isolated_each_way_to_give_no_answer_is_told_with_its_log(
    question: str, reason: str, code: int | None, late: bool
) -> None:
    with pytest.raises(NoAnswerError) as problem:
        ask_isolated(ISOLATED, f"os.write(2, b'why') and {question}", 0.3 if late else 60)
    told = problem.value
    assert (str(told), told.code, told.late, "why" in told.log) == (reason, code, late, True)
    assert ask_isolated(ISOLATED, "6 * 7", 60)[0] == 42
