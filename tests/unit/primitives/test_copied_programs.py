"""A program in a copy of a command's process answers as one that is started, with no open file of its."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

#: Asks a process, a copy or one that is started, and prints what each question gives.
SCRIPT = """
import json, os, sys, threading
from modelplan.primitives import answering, copied_programs
from modelplan.primitives.answering import AnsweringProcess, NoAnswerError, ask_isolated, start_isolated
kind, questions = sys.argv[1], json.loads(sys.argv[2])
PROGRAM = '''
import os, signal, sys, time
from modelplan.primitives.answering import answer_questions
answer_questions(lambda question: (print("noise"), eval(question))[1])
'''
if kind != "started":
    copied_programs.allow_copied_programs()
kept, held = open(os.devnull), threading.Event()
if kind == "beside a thread":
    threading.Thread(target=held.wait).start()
print("not yet written", end="")
process = AnsweringProcess("-c", PROGRAM)
isolated = "-c", PROGRAM.replace("[1])", "[1], isolated=True)")
start_isolated(isolated)
told = [type(process.start()).__name__]
for question in questions:
    for ask in (lambda: process.ask(question, 20), lambda: ask_isolated(isolated, question, 20)[0]):
        try:
            told.append(ask())
        except NoAnswerError as problem:
            told.append([str(problem), problem.code, problem.late])
try:
    AnsweringProcess("-c", "import sys; sys.exit(5)").ask("1")
except NoAnswerError as problem:
    told.append(problem.code)
try:
    AnsweringProcess("-c", "raise ValueError").ask("1")
except NoAnswerError as problem:
    told.append(problem.code)
process.end()
for _ in range(20):
    soon = AnsweringProcess("-c", PROGRAM)
    soon.start()
    soon.end()
held.set()
sys.stderr.write(json.dumps(told))
"""
QUESTIONS = [
    "6 * 7",
    "1 / 0",
    "os.abort()",
    "os._exit(3)",
    "sorted(map(int, os.listdir('/proc/self/fd')))[3:6]",
    "signal.getsignal(signal.SIGTERM) == signal.SIG_DFL",
    "os.getsid(0) == os.getpid() or os.getsid(0) == os.getppid()",
    "__name__",
]


def _told(kind: str) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, kind, json.dumps(QUESTIONS)],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stdout == "not yet written"
    told: list[object] = json.loads(done.stderr)
    return told


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a system where libraries may not survive a copy")
def test_a_copied_program_answers_as_one_that_is_started() -> None:
    copied, started = _told("copied"), _told("started")
    assert (copied.pop(0), started.pop(0)) == ("CopiedProgram", "Popen")
    assert copied == started


def test_a_process_with_threads_is_not_copied() -> None:
    assert _told("beside a thread")[0] == "Popen"
