"""What `analyze` shows before all of it is known."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import COMMAND

from modelplan.cli import main, terminal
from modelplan.outputs.report import Section, plain
from modelplan.planning import pipeline
from modelplan.primitives.errors import RequestError


def test_the_number_to_declare_waits_for_no_plan(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        printed = capsys.readouterr().out
        assert "#define TENSOR_ARENA_SIZE " in printed
        assert "Peak at step" not in printed
        raise RequestError("planned too late")

    monkeypatch.setattr(pipeline, "runtime_plan", refuse)
    assert main(["analyze", str(corpus / "tflite" / "person_detect.tflite")]) == 2
    assert capsys.readouterr() == ("", "modelplan: planned too late\n")


@pytest.mark.parametrize("wait", [False, True])
def test_a_report_shown_in_parts_is_the_same(capsys: pytest.CaptureFixture[str], *, wait: bool) -> None:
    report = [Section("one", ("a",)), Section("", ("b",)), Section("three", (), None, ("c",)), Section("four")]
    with terminal.shown_in_parts(wait=wait) as show:
        show(report[:1])
        first = capsys.readouterr().out
        assert first == plain(report[:1])
        show([])
        show(report[1:3])
        show(report[3:])
        then = capsys.readouterr().out
        assert (then == "") == wait
    assert first + then + capsys.readouterr().out == plain(report)


def test_a_file_is_written_although_the_reader_has_left(corpus: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    model = corpus / "tflite" / "person_detect.tflite"
    with subprocess.Popen([COMMAND, "analyze", str(model), "--json", str(plan)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode().strip() == str(model)
        process.stdout.close()
    assert plan.stat().st_size
