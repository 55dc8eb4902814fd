"""Budgets: what a file may state, what is refused and where, how limits are judged, how numbers are written."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from modelplan.answers.check_outcomes import Check, CheckSetting, Earlier, Figures, Growth, Judgement, Limits, Outcome
from modelplan.cli import main
from modelplan.model import Alternative, Part, Requirement
from modelplan.primitives.errors import RequestError
from modelplan.questions.budgets.budget_checks import judgements
from modelplan.questions.budgets.budget_edits import with_budget, with_number
from modelplan.questions.budgets.earlier_figures import baseline_document, read_baseline
from modelplan.questions.budgets.project_budgets import found_upwards, matched, parse_growth, read_budgets
from modelplan.questions.budgets.project_defaults import project_defaults

SETTING = CheckSetting("tflm", "32", "reference", ("batch=1",))
NEEDED = Requirement(1000, 600, (Part("activations", 600), Part("tail", 400)), "by heart", "TENSOR_ARENA_SIZE")

KWS = str(Path(__file__).resolve().parents[3] / "models" / "ds_cnn_kws.tflite")


def written(folder: Path, text: str, name: str = "modelplan.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def outcome(arena: int = 1000, limits: Limits | None = None, earlier: Earlier | None = None) -> Outcome:
    check = Check("net", "models/net.tflite", "models/net.tflite", limits or Limits(arena=2000))
    found = Outcome(check, replace(NEEDED, arena=arena), 5000, SETTING, earlier=earlier)
    assert found.figures is not None
    return replace(found, judgements=tuple(judgements(check.limits, found.figures, earlier)))


def test_a_budget_states_limits_and_options(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        baseline = "main"
        [[budget]]
        name = "all"
        model = ["a/*.tflite", "b.onnx"]
        target = "rp2040"
        head = 1024
        growth = "2.5%"
        dim = "batch=1"
        arena-symbol = "arena"
        """,
    )
    file = read_budgets(path)
    (row,) = file.rows
    assert (file.baseline, row.name, row.models, row.targets) == ("main", "all", ("a/*.tflite", "b.onnx"), ("rp2040",))
    assert row.limits == Limits(head=1024, growth=Growth("2.5%", share=Fraction(1, 40)))
    assert row.options == {"dim": ("batch=1",), "arena-symbol": ("arena",)}


def test_pyproject_holds_budgets_under_its_table(tmp_path: Path) -> None:
    path = written(tmp_path, '[[tool.modelplan.budget]]\nmodel = "x.tflite"\narena = "1KiB"\n', "pyproject.toml")
    assert read_budgets(path).rows[0].limits == Limits(arena=1024)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budget = 3", "budget has to be an array of tables"),
        ("budget = [3]", "budget has to be an array of tables"),
        ("", "no budget"),
        ("[[budgets]]\nmodel = 'x'", "budgets: no such key; there are: budget, baseline, target, kernels, abi"),
        ("baseline = 3\n[[budget]]\nmodel='x'\narena=1", "baseline is 3"),
        ("[[budget]]\narena = 1", "budget 1: no model"),
        ("[[budget]]\nmodel = 'x'", "budget 1: no limit"),
        ("[[budget]]\nmodel = 'x'\nruntime = 'ort'", "budget 1: no limit"),
        ("[[budget]]\nname = 'n'\nmodel = 'x'\nram = 1", "budget 1 'n': ram: no such key"),
        ("[[budget]]\nmodel = 3\narena = 1", "model is 3, expected text or a list of texts"),
        ("[[budget]]\nmodel = []\narena = 1", "model is [], expected text or a list of texts"),
        ("[[budget]]\nmodel = ''\narena = 1", "model is ''"),
        ("[[budget]]\nmodel = ['x', 3]\narena = 1", "model is ['x', 3]"),
        ("[[budget]]\nname = ['n']\nmodel = 'x'\narena = 1", "name is ['n'], expected text"),
        ("[[budget]]\nmodel = 'x'\narena = true", "arena is True, expected bytes"),
        ("[[budget]]\nmodel = 'x'\narena = 1.5", "arena is 1.5, expected bytes"),
        ("[[budget]]\nmodel = 'x'\narena = -1", "arena: cannot read '-1' as bytes"),
        ("[[budget]]\nmodel = 'x'\nhead = '64KB'", "head: '64KB' may mean 64,000 or 65,536 bytes"),
        ("[[budget]]\nmodel = 'x'\nflash = {}", "flash is {}, expected bytes"),
        ("[[budget]]\nmodel = 'x'\ngrowth = 0.05", "growth is 0.05, expected bytes such as '1KiB' or a share"),
        ("[[budget]]\nmodel = 'x'\ngrowth = 'little'", "growth: cannot read 'little' as bytes"),
        ("[[budget]]\nmodel = 'x'\narena = 1\n[[budget]]\nmodel = 'y'\nhead = ''", "budget 2: head"),
        ("[[budget]\n", "not TOML"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(RequestError) as caught:
        read_budgets(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_the_nearest_file_above_counts_and_two_in_a_folder_do_not(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    with pytest.raises(RequestError, match=r"neither modelplan\.toml nor a pyproject\.toml"):
        found_upwards(deep)
    top = written(tmp_path, "", "modelplan.toml")
    written(deep, "[project]\nname = 'x'\n", "pyproject.toml")  # of others
    assert found_upwards(deep) == top
    near = written(deep.parent, "[tool.modelplan]\n", "pyproject.toml")
    assert found_upwards(deep) == near
    written(deep.parent, "", "modelplan.toml")
    with pytest.raises(RequestError, match="keep the budgets in one of them"):
        found_upwards(deep)


def test_the_defaults_of_a_project_hold_for_budgets_that_state_none(tmp_path: Path) -> None:
    rows = "[[budget]]\nmodel = 'a'\narena = 1\n[[budget]]\nmodel = 'b'\nkernels = 'reference'\narena = 1\n"
    first, second = read_budgets(written(tmp_path, f"target = 'rp2040'\nabi = 'cortex-m'\n{rows}")).rows
    assert (first.targets, dict(first.options)) == (("rp2040",), {"abi": ("cortex-m",)})
    assert (second.targets, dict(second.options)) == ((), {"kernels": ("reference",)})


@pytest.mark.parametrize("name", ["modelplan.toml", "pyproject.toml"])
def test_the_defaults_of_the_nearest_file_count(tmp_path: Path, name: str) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    head = "[tool.modelplan]\n" if name == "pyproject.toml" else ""
    written(tmp_path, f"{head}target = 'rp2040'\nkernels = 'cmsis-c'\n", name)
    written(deep, "[project]\nname = 'x'\n", "pyproject.toml")
    assert project_defaults(deep).values == {"target": "rp2040", "kernels": "cmsis-c"}
    written(deep.parent, f"{head}abi = 3\n", name)
    with pytest.raises(RequestError, match="abi is 3, expected text"):
        project_defaults(deep)


@pytest.mark.slow
def test_every_command_reads_the_defaults_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, "[tool.modelplan]\ntarget = 'stm32h743'\n", "pyproject.toml")
    monkeypatch.chdir(tmp_path)
    stated = "  #define TENSOR_ARENA_SIZE 22816  // stm32h743 as pyproject.toml says"
    assert main(["analyze", KWS]) == 0
    assert stated in capsys.readouterr().out.splitlines()
    for command in (["check", KWS], ["explain", KWS], ["fit", KWS, "-o", "x.tflite"]):
        assert main(command) == 0
        assert "stm32h743 (pyproject.toml)" in capsys.readouterr().out
    for words in (["--target", "rp2040"], ["--kernels", "reference"]):
        assert main(["analyze", KWS, *words]) == 0
        assert "pyproject.toml" not in capsys.readouterr().out
    assert main(["analyze", KWS.replace("ds_cnn_kws.tflite", "resnet8.onnx"), "--measure", "0"]) == 0
    assert "stm32h743" not in capsys.readouterr().out


def test_patterns_are_relative_to_the_file_and_match_something(tmp_path: Path) -> None:
    for name in ("b.tflite", "a.tflite", "c[1].onnx"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "d.tflite").mkdir()

    def models(*patterns: str) -> list[str]:
        file = read_budgets(written(tmp_path, f"[[budget]]\nmodel = {json.dumps(patterns)}\narena = 1\n"))
        return [key for _, key in matched(file, file.rows[0])]

    assert models("*.tflite", "a.tflite") == ["a.tflite", "b.tflite"]
    assert models("c[1].onnx") == ["c[1].onnx"]
    with pytest.raises(RequestError, match=r"budget 1: model x\*: no such file, and no file matches"):
        models("*.tflite", "x*")
    with pytest.raises(RequestError, match="relative to the file"):
        models(str(tmp_path / "a.tflite"))


def test_limits_are_kept_up_to_the_byte() -> None:
    figures = Figures(1000, 600, 5000)
    kept = list(judgements(Limits(1000, 600, 5000), figures, None))
    assert [(one.quantity, one.excess, one.passed) for one in kept] == [
        ("arena", 0, True),
        ("head", 0, True),
        ("flash", 0, True),
    ]
    assert not any(one.passed for one in judgements(Limits(999, 599, 4999), figures, None))


@pytest.mark.parametrize(
    ("limit", "before", "passed"), [("0", 1000, True), ("0", 999, False), ("1%", 991, True), ("1%", 990, False)]
)
def test_growth_is_judged_against_what_was(limit: str, before: int, passed: bool) -> None:
    limits = Limits(growth=parse_growth(limit))
    (one,) = judgements(limits, Figures(1000, 600, 1), Earlier("main", Figures(before, 1, 1)))
    assert (one.size, one.passed) == (1000 - before, passed)


@pytest.mark.parametrize("limit", ["9" * 6000 + "%", "5%%", "-1%", "9" * 6000])
def test_what_is_no_growth_is_refused(limit: str) -> None:
    with pytest.raises(RequestError, match="or a share such as 5%"):
        parse_growth(limit)


def test_growth_without_a_figure_is_not_judged() -> None:
    limits = Limits(growth=parse_growth("0"))
    for earlier, reason in ((None, "no baseline is given"), (Earlier("main", None, "main has no x"), "main has no x")):
        (one,) = judgements(limits, Figures(1000, 600, 1), earlier)
        assert (one.size, one.passed) == (None, True)
        assert reason in one.reason


def test_a_remedy_keeps_every_limit() -> None:
    earlier = Earlier("main", Figures(900, 1, 1))
    limits = Limits(arena=950, head=500, flash=6000, growth=parse_growth("10"))
    sizes = ((940, 500, 6000), (910, 501, 6000), (910, 500, 6001), (910, 500, 6000))
    others = [Alternative(f"{a} {h} {f}", (), replace(NEEDED, arena=a, head=h), "", f) for a, h, f in sizes]
    others.append(Alternative("refused", (), replace(NEEDED, arena=1, head=1, refusals=("no kernel",))))
    others.append(Alternative("none", (), None, "why"))
    found = replace(outcome(1000, limits, earlier), others=tuple(others))
    assert [one.change for one in found.remedies] == ["910 500 6000"]
    assert found.shortfalls(others[0]) == [("arena", -10), ("head", 0), ("flash", 0), ("growth", 30)]


def test_a_baseline_is_read_as_it_was_written() -> None:
    text = baseline_document([outcome(1000), outcome(1000)])
    assert len(json.loads(text)["models"]) == 1
    saved = read_baseline(text, "b.json")
    assert saved.earlier("models/net.tflite", SETTING) == Earlier("b.json", Figures(1000, 600, 5000))
    other = saved.earlier("models/net.tflite", replace(SETTING, abi="64"))
    assert (other.figures, other.reason) == (
        None,
        "b.json has no figure of models/net.tflite for this runtime, ABI and kernels",
    )
    assert saved.earlier("x.tflite", SETTING).reason == "b.json has no figure of x.tflite"


def test_figures_of_zero_are_read_and_negative_ones_are_not() -> None:
    whole = outcome(0)
    assert read_baseline(baseline_document([whole]), "b").earlier("models/net.tflite", SETTING).figures == whole.figures
    text = baseline_document([outcome(1000)]).replace("1000", "-1")
    assert read_baseline(text, "b").earlier("models/net.tflite", SETTING).figures is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a JSON document"),
        ("\x00", "is not a JSON document"),
        ("[" * 100_000, "is not a JSON document"),
        ("[]", "is no baseline that modelplan wrote"),
        ('{"name": "size-limit"}', "is no baseline that modelplan wrote"),
        ('{"modelplan_baseline": 0}', "has format 0, this modelplan reads 1"),
        ('{"modelplan_baseline": [9]}', "has format [9], this modelplan reads 1"),
        ('{"modelplan_baseline": 1}', "has no figure"),
        ('{"modelplan_baseline": 1, "models": {"a": 1}}', "has no figure"),
        (
            '{"modelplan_baseline": 1, "models": [3, {}, {"model": "models/net.tflite", "arena": "many"}]}',
            "has no figure",
        ),
        ('{"modelplan_baseline": 1, "models": [{"model": [], "arena": 1, "head": 1, "flash": 1}]}', "has no figure"),
    ],
)
def test_a_baseline_that_is_old_or_of_another_program_has_no_figures(text: str, reason: str) -> None:
    found = read_baseline(text, "old.json").earlier("models/net.tflite", SETTING)
    assert found.figures is None
    assert reason in found.reason


STATED = """# ours
[[budget]] # first
model = "a.tflite"
arena = "1KiB"   # "tight" = yes

[[budget]]
model = [
  "b.tflite",
]
head=512 # B
arena = '2KiB'
[other]
arena = 3
"""


def test_one_number_is_edited_and_nothing_else() -> None:
    for number, key, old, new in (
        (1, "arena", 'arena = "1KiB"   #', 'arena = "9B"   #'),
        (2, "head", "head=512 # B", 'head="9B" # B'),
        (2, "arena", "arena = '2KiB'", 'arena = "9B"'),
    ):
        assert with_number(STATED, "", number, key, "9B") == STATED.replace(old, new)
    windows = STATED.replace("\n", "\r\n")
    assert with_number(windows, "", 2, "head", "9B") == windows.replace("head=512", 'head="9B"')


@pytest.mark.parametrize(
    "text",
    [
        'budget = [{model = "a", arena = 1}]',
        '[[budget]]\nmodel = "a"\narena = """1\nKiB"""\n',
        '[[budget]]\nmodel = """\n[[budget]]\narena = "1B"\n"""\narena = 2\n',
        "[[budget]]\nmodel = 'a'\n'arena' = 1\n",
    ],
)
def test_a_layout_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=r'write arena = "9B"'):
        with_number(text, "", 1, "arena", "9B")


def test_a_budget_is_added_at_the_end() -> None:
    row = {"model": 'odd "name"\x7f.tflite', "arena": "9B", "dim": ["a=1", "b=2"]}
    for text in ("", STATED.rstrip(), STATED, STATED.replace("\n", "\r\n")):
        added = with_budget(text, "", row)
        assert added.startswith(text)
        assert tomllib.loads(added)["budget"][-1] == row
    shared = with_budget('[project]\nname = "x"\n', "tool.modelplan.", row)
    assert tomllib.loads(shared)["tool"]["modelplan"]["budget"] == [row]
    with pytest.raises(RequestError, match="layout"):
        with_budget("budget = []\n", "", row)


def test_a_judgement_without_a_figure_counts_as_kept() -> None:
    assert Judgement("growth", None, None, "n/a").passed
