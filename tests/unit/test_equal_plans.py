"""What the comparison of two installations reads from their answers, and how it judges them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import COMMAND
from equal_plans import (
    EQUAL,
    HIGHER,
    NOT_HIGHER,
    Answer,
    Installation,
    asked,
    chosen,
    difference,
    main,
    suggested,
    verdict,
    without_release,
)
from random_cnns import random_cnn

_TFLITE = """net.tflite: arena for ABI 32, all kernels, in bytes
  rung       arena    head   tail    MACs
  --------  ------  ------  -----  ------
  as is *   57,248  50,432  6,812  +0.0 %
  split     57,696  50,432  7,252  +0.0 %
"""
_C = """  rung         RAM  buffer  tables
  --------  ------  ------  ------
  maps      16,000  16,000  27,753
  parts *    8,448   8,448  28,942
"""
_ONNX = """  rung        usual: first  later runs  best: first  later runs    MACs
  ----------  ------------  ----------  -----------  ----------  ------
  as is          1,048,576   1,048,576    1,048,576   1,048,576  +0.0 %
  settings *     1,048,576   1,048,576      106,496     106,560  +0.0 %
"""


@pytest.mark.parametrize(
    ("words", "figures"),
    [
        (_TFLITE, {"arena": 57_248}),
        (_C, {"RAM": 8_448}),
        (_ONNX, {"best: first": 106_496, "later runs": 106_560}),
    ],
)
def test_the_marked_rung_is_read(words: str, figures: dict[str, int]) -> None:
    assert chosen(words) == figures


def test_a_table_without_a_marked_rung_is_no_answer() -> None:
    with pytest.raises(ValueError, match="no rung is marked"):
        chosen(_C.replace("*", " "))


def test_suggestions_are_read_under_what_they_ask_for() -> None:
    rows = [
        {"name": "plain C", "needs": "platform", "arena": 70, "head": 60},
        {"name": "litert", "needs": "platform", "arena": None, "head": 80},
    ]
    need = {"arena": 90, "head": 85, "libraries": [{"library": "esp-nn", "arena": 90, "head": 85}]}
    assert suggested({"requirement": need, "suggestions": rows}) == {
        "arena": 90,
        "head": 85,
        "arena on kernels: esp-nn": 90,
        "head on kernels: esp-nn": 85,
        "arena by platform: plain C": 70,
        "head by platform: plain C": 60,
        "head by platform: litert": 80,
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (Answer((b"a",), {"arena": 5}), Answer((b"a",), {"arena": 5}), EQUAL),
        (Answer((b"a",), {"arena": 5}), Answer((b"b",), {"arena": 5}), NOT_HIGHER),
        (Answer((b"a",), {"arena": 5}), Answer((b"a",), {"arena": 4}), NOT_HIGHER),
        (Answer((b"a",), {"arena": 5}), Answer((b"b",), {"arena": 6}), HIGHER),
        (Answer((0,), {"arena": 5, "head": 4}), Answer((0,), {"arena": 3, "head": 5}), HIGHER),
        (Answer((0,), {"arena": 5}), Answer((2,)), HIGHER),
        (Answer((2,)), Answer((0,), {"arena": 5}), NOT_HIGHER),
        (Answer((), {"arena by work: a": 5}), Answer((), {"arena": 9, "arena by work: b": 5}), NOT_HIGHER),
        (Answer((), {"arena by work: a": 5}), Answer((), {"arena": 9, "arena by work: b": 6}), HIGHER),
        (Answer((), {"arena by work: a": 5}), Answer((), {"arena": 9, "arena by model: a": 4}), HIGHER),
        (Answer((), {"arena by work: a": 5}), Answer((), {"arena": 5}), NOT_HIGHER),
    ],
)
def test_an_answer_is_equal_not_higher_or_higher(old: Answer, new: Answer, expected: str) -> None:
    assert verdict(old, new) == expected


def test_a_difference_names_what_is_higher_before_what_is_lower() -> None:
    old, new = Answer((), {"arena": 5_000, "head": 4}), Answer((), {"arena": 6_000, "head": 3})
    assert difference(old, new) == "arena: 5,000 -> 6,000"
    assert difference(new, old) == "head: 3 -> 4"
    assert difference(Answer((), {"arena": 5}), Answer((), {"arena": 4})) == "arena: 5 -> 4"
    assert difference(Answer((), {"head": 5}), Answer((), {"arena": 4, "head": 5})) == "0 figures gone, 1 new"
    assert difference(Answer((1,), {"arena": 5}), Answer((2,), {"arena": 5})) == "the same figures"


def test_only_the_release_may_differ_in_a_text() -> None:
    text = b"/* net as plain C, written by modelplan 1.0.\n *\nint x;\n"
    assert without_release(text) == without_release(text.replace(b"1.0", b"1.1")) == b" *\nint x;\n"
    assert without_release(text) != without_release(text.replace(b"int", b"char"))


def _drawn(folder: Path) -> str:
    path = folder / "drawn.tflite"
    path.write_bytes(random_cnn(0))
    return str(path)


@pytest.mark.slow
def test_plain_c_is_asked_for_its_text_and_its_ram(tmp_path: Path) -> None:
    answer = asked(Installation(COMMAND), "c", _drawn(tmp_path))
    code, errors, source, header, _ = answer.content
    assert (code, errors) == (0, "")
    assert isinstance(source, bytes)
    assert isinstance(header, bytes)
    assert f"{answer.figures['RAM']} bytes of RAM".encode() in source
    assert b"written by modelplan" not in source + header


@pytest.mark.slow
def test_a_refusal_is_an_answer_without_figures(tmp_path: Path) -> None:
    path = tmp_path / "broken.tflite"
    path.write_bytes(b"no model")
    for command in ("analyze", "c", "explain"):
        answer = asked(Installation(COMMAND), command, str(path))
        assert answer.content[0] != 0
        assert not answer.figures


@pytest.mark.slow
def test_one_installation_answers_like_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--files", "0", "--commands", "c", _drawn(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["equal_plans.py", COMMAND, COMMAND, *words])
    assert main() == 0
    assert capsys.readouterr().out == "1 files, 1 answers: 1 equal, 0 not higher, 0 higher\n"
