"""Budgets of a project as a user keeps them: files, baselines, git revisions, formats, and the numbers in the file."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
from commands import run
from projects import BUDGETS, SAME, WIDER, commit, git, project
from tflm_models import T, single

from modelplan.cli import main
from modelplan.questions.budgets import model_sizes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A project whose model has grown by the filters of one operator since the branch `main`."""
    folder = project(tmp_path / "project", BUDGETS + 'kernels = "reference"\n')
    (folder / "models" / "net.tflite").write_bytes(WIDER)
    return folder


def test_a_model_that_grew_fails_and_every_format_names_the_operator(grown: Path) -> None:
    outputs = ("github", "markdown=comment.md", "json=rows.json", "junit=tests.xml", "text=text.txt")
    done = run("check", "--baseline", "main", *(f"--format={one}" for one in outputs), cwd=grown)
    assert (done.returncode, done.stderr) == (1, "")
    rows = {row["name"]: row for row in json.loads((grown / "rows.json").read_text())}
    growth = rows["models/net.tflite, growth"]
    assert (growth["passed"], growth["sizeLimit"]) == (False, 1024)
    words = ("check", "models/net.tflite", "--budget", "1MiB", "--kernels", "reference", "--json", "-")
    own = run(*words, cwd=grown)
    (now,) = json.loads(own.stdout)["models"]
    assert growth["size"] == growth["baseline"]["change"] == now["required"] - growth["baseline"]["figures"]["arena"]
    assert "growth still 416 B too much" in done.stdout
    texts = [done.stdout, *((grown / one.partition("=")[2]).read_text() for one in outputs[1:])]
    for text in (*texts, run("check", "--baseline", "main", cwd=grown).stdout):
        assert re.search(r"op 2 CONV_2D: .*1,024 -(&gt;|>) 2,048\s+bytes", text), text
    assert "op 0 CONV_2D" not in "".join(texts)
    assert f"({growth['size']:+,}) since main" in (grown / "comment.md").read_text()


def test_that_another_library_needs_most_is_told(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    (folder / "models" / "net.tflite").write_bytes(WIDER)
    said = " ".join(run("check", "--baseline", "main", cwd=folder).stdout.split())
    assert re.search(r"sized for .*\(cmsis-mve needs most\).* -> .*\(esp-nn@1.2.3 needs most\)", said), said


def test_the_change_is_told_where_all_limits_are_kept(grown: Path) -> None:
    (grown / "modelplan.toml").write_text('baseline = "main"\n[[budget]]\nmodel = "models/*"\narena = "16KiB"\n')
    for name in ("markdown", "github"):
        done = run("check", "--format", name, cwd=grown)
        assert done.returncode == 0
        assert "op 2 CONV_2D" in done.stdout


def test_nothing_changed_is_nothing_told(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    done = run("check", "--baseline", "HEAD", "--format", "markdown", cwd=folder)
    assert done.returncode == 0
    assert "What changed" not in done.stdout
    assert "2 checks" not in done.stdout
    assert "1 check, all passed" in done.stdout


def test_what_would_fit_does_fit(models: Path, tmp_path: Path) -> None:
    shutil.copy(models / "ds_cnn_kws.tflite", tmp_path / "net.tflite")
    (tmp_path / "modelplan.toml").write_text('[[budget]]\nmodel = "*.tflite"\narena = "20KiB"\nkernels = "reference"\n')
    done = run("check", "--format", "json", cwd=tmp_path)
    (row,) = json.loads(done.stdout)
    assert (done.returncode, row["passed"], row["fix"]["size"] <= row["sizeLimit"]) == (1, False, True)
    for command in row["fix"]["commands"]:
        assert run(*shlex.split(command)[1:], cwd=tmp_path).returncode == 0
    assert run("check", "packed.tflite", "--budget", row["fix"]["size"], cwd=tmp_path).returncode == 0


def test_a_baseline_file_tells_what_grew(grown: Path) -> None:
    git(grown, "stash", "-q")
    assert run("budget", "baseline", "-o", "then.json", cwd=grown).returncode == 0
    git(grown, "stash", "pop", "-q")
    by_file, by_revision = (
        json.loads(run("check", "--baseline", one, "--format", "json", cwd=grown).stdout)
        for one in ("then.json", "main")
    )
    assert [row["size"] for row in by_file] == [row["size"] for row in by_revision]
    assert [row["baseline"]["figures"] for row in by_file] == [row["baseline"]["figures"] for row in by_revision]


@pytest.mark.parametrize("text", ["", "[]", '{"modelplan_baseline": 0, "models": []}', "\xff"])
def test_an_old_baseline_is_not_available_and_no_crash(grown: Path, text: str) -> None:
    (grown / "old.json").write_text(text, encoding="utf-8")
    done = run("check", "--baseline", "old.json", cwd=grown)
    assert done.returncode == 0
    assert "growth n/a for 1 check: old.json" in done.stdout


def test_what_a_revision_lacks_is_not_available(tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"
    refused = single("RELU", [T("uint8", (3,))], [T("uint8", (3,))])
    folder = project(tmp_path / "project", lfs=pointer, cut=SAME[:99], refused=refused)
    assert "models/lfs.tflite: found a pointer of Git LFS, which `git lfs pull`" in run("check", cwd=folder).stdout
    for name in ("lfs", "cut", "refused", "new"):
        (folder / "models" / f"{name}.tflite").write_bytes(SAME)
    done = run("check", "--baseline", "main", cwd=folder)
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    for reason in (
        "main holds models/lfs.tflite as a pointer of Git LFS",
        "main has no models/new.tflite",
        "main:models/refused.tflite does not run",
        "main:models/cut.tflite",
    ):
        assert f"growth n/a for 1 check: {reason}" in said
    assert str(tmp_path) not in said


def test_nothing_of_a_revision_is_run(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    (folder / ".gitattributes").write_text("*.tflite diff=odd filter=odd\n")
    hook = folder / ".githooks" / "post-checkout"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
    hook.chmod(0o755)
    commit(folder)
    for key in ("diff.odd.textconv", "filter.odd.smudge", "filter.odd.clean", "core.fsmonitor"):
        git(folder, "config", key, f"touch {folder}/ran; cat")
    git(folder, "config", "core.hooksPath", ".githooks")
    (folder / "models" / "net.tflite").write_bytes(WIDER)
    assert run("check", "--baseline", "main", cwd=folder).returncode == 1
    assert not (folder / "ran").exists()


def test_a_budget_is_found_from_a_folder_below(grown: Path) -> None:
    done = run("check", "--baseline", "main", "--format", "json", cwd=grown / "models")
    assert done.returncode == 1
    row = json.loads(done.stdout)[0]
    assert (row["name"], row["model"]) == ("models/net.tflite", "../models/net.tflite")
    assert row["baseline"]["figures"]["arena"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--budget", "1KiB"], "--budget is for a MODEL that is named"),
        (["check", "--arena-symbol", "x"], "--arena-symbol is for a MODEL that is named"),
        (["check", "models/net.tflite"], "--budget BYTES or --target NAME"),
        (["check", "models/net.tflite", "--budget", "1", "--config", "modelplan.toml"], "name no MODEL beside it"),
        (["check", "--config", "gone.toml"], "cannot read gone.toml"),
        (["check", "--baseline", "gone"], "no such revision"),
        (["check", "--baseline", "--upload-pack=x"], "expected one argument"),
        (["check", "--baseline=-x"], "expected a .json file or a git revision"),
        (["check", "--baseline", "gone.json"], "cannot read gone.json"),
        (["check", "--format", "xml"], "no such format; there are: text, json, markdown, junit, github"),
        (["check", "--format", "json", "--format", "junit"], "two outputs go to one place"),
        (["check", "--format", "json=gone/x"], "there is no folder gone"),
        (["check", "--seconds", "-1"], "expected 0 or more"),
        (["budget"], "budgets|baseline"),
        (["budget", "set", "--headroom", "much"], "expected a share such as 25%"),
        (["budget", "set", "--target", "rp2040"], "--target is for a MODEL without a budget"),
        (["budget", "baseline", "-o", "main"], "by its suffix, .json"),
    ],
)
def test_wrong_requests_are_refused(grown: Path, words: list[str], said: str) -> None:
    done = run(*words, cwd=grown)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("row", "code", "said"),
    [
        ("model = 'gone.tflite'\narena = 1", 2, "modelplan.toml: budget 1: model gone.tflite: no such file"),
        ("model = 'models/*'\ntarget = 'nowhere'", 2, "budget 1: no target 'nowhere'"),
        ("model = 'models/*'\narena = 1\nruntime = 'x'", 2, "budget 1: "),
        ("model = 'models/*'\narena = 1\nabi = 'x'", 2, "budget 1: "),
        ("model = 'models/*'\narena = 1\nkernels = 'x'", 2, "budget 1: runtime tflm: no kernels 'x'"),
        ("model = 'models/*'\narena = 1\ndim = 'x'", 2, "budget 1: "),
        ("model = 'models/*'\narena = 1\nreserve = 'sram=1'", 2, "budget 1: --reserve says more about a target"),
        ("model = 'models/*'\ntarget = 'from:gone.ld'", 3, "budget 1: gone.ld: No such file"),
        ("model = 'models/*'\ntarget = ['rp2040', 'rp2040']", 2, "another check is called"),
        ("arena = 1", 2, "budget 1: no model"),
        ("model = ", 2, "not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(grown: Path, row: str, code: int, said: str) -> None:
    (grown / "modelplan.toml").write_text(f"[[budget]]\n{row}\n")
    done = run("check", cwd=grown)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_a_repository_is_needed_for_a_revision(tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(SAME)
    done = run("check", "net.tflite", "--budget", "1MiB", "--baseline", "main", cwd=tmp_path)
    assert done.returncode == 2
    assert "not a git repository" in done.stderr


def test_a_model_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", a=SAME[:99], b=SAME)
    done = run("check", "--format", "json", cwd=folder)
    assert done.returncode == 3
    rows = json.loads(done.stdout)
    assert [(row["name"], row["passed"]) for row in rows][:2] == [("models/a.tflite", False), ("models/b.tflite", True)]


def test_models_on_the_command_line_have_the_formats_and_a_baseline_too(grown: Path) -> None:
    words = ("check", "models/net.tflite", "--budget", "16KiB", "--baseline", "main", "--growth", "1%")
    done = run(*words, "--format", "github", "--json", "all.json", cwd=grown)
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=models/net.tflite,title=models/net.tflite%3A growth ")
    assert json.loads((grown / "all.json").read_text())["models"][0]["fits"] is False
    text = run(*words, cwd=grown).stdout
    assert text.startswith("models/net.tflite: does not fit\n  required")
    assert "op 2 CONV_2D" in text


def test_annotations_are_relative_to_the_workspace(grown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(grown.parent))
    done = run("check", "--baseline", "main", "--format", "github", cwd=grown)
    assert done.stdout.startswith("::error file=project/models/net.tflite,")


@pytest.mark.slow
def test_twelve_models_on_three_targets_are_sized_once_for_each_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = ["nrf52840", "stm32f746", "rp2040"]  # the first two have the same ABI and kernels
    folder = project(
        tmp_path / "project",
        f'[[budget]]\nmodel = "models/*.tflite"\ntarget = {json.dumps(targets)}\ngrowth = "0"\nhead = 1\n',
        **{f"net{n}": SAME + bytes(16 * n) for n in range(12)},
    )
    calls: dict[str, int] = {}

    def counted(name: str) -> None:
        real = getattr(model_sizes, name)

        def call(*words: object, **more: object) -> object:
            calls[name] = calls.get(name, 0) + 1
            return real(*words, **more)

        monkeypatch.setattr(model_sizes, name, call)

    for name in ("read_model", "unmodified_requirement", "rewritten_files"):
        counted(name)
    monkeypatch.chdir(folder)
    assert main(["check", "--format", "json", "--seconds", "1000", "--baseline", "HEAD"]) == 1
    assert len(json.loads(capsys.readouterr().out)) == 12 * 3 * 3
    assert calls == {"read_model": 24, "unmodified_requirement": 24, "rewritten_files": 24}


def test_time_for_alternatives_ends_and_it_is_said(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", '[[budget]]\nmodel = "models/*.tflite"\narena = 1\nkernels = "reference"\n')
    assert "not looked for in the time there was" in run("check", "--seconds", "0", cwd=folder).stdout
    assert "nothing tried fits" in run("check", "--seconds", "100", cwd=folder).stdout


def test_set_writes_what_models_need_and_check_agrees(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", '# ours\n[[budget]]\nmodel = "models/*"  # all\narena = 1\nhead = "1MiB"\n')
    assert run("check", cwd=folder).returncode == 1
    assert run("budget", "set", cwd=folder).returncode == 0
    text = (folder / "modelplan.toml").read_text()
    assert text.startswith('# ours\n[[budget]]\nmodel = "models/*"  # all\narena = "')
    exact = {row["quantity"]: row for row in json.loads(run("check", "--format", "json", cwd=folder).stdout)}
    assert all(row["passed"] and row["size"] == row["sizeLimit"] for row in exact.values())
    assert run("budget", "set", "--headroom", "12.5%", "models/net.tflite", cwd=folder).returncode == 0
    for row in json.loads(run("check", "--format", "json", cwd=folder).stdout):
        assert row["sizeLimit"] == -(-row["size"] * 9 // 8)


def test_set_makes_a_file_and_a_budget_for_a_model_without_one(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "net.tflite").write_bytes(SAME)
    assert run("budget", "set", cwd=tmp_path).returncode == 2
    done = run("budget", "set", "models/net.tflite", "--target", "rp2040", "--reserve", "main=1KiB", cwd=tmp_path)
    assert (done.returncode, "no region 'main'" in done.stderr) == (2, True)
    assert not (tmp_path / "modelplan.toml").exists()
    assert run("budget", "set", "models/net.tflite", "--target", "rp2040", cwd=tmp_path).returncode == 0
    (row,) = tomllib.loads((tmp_path / "modelplan.toml").read_text())["budget"]
    assert row.keys() == {"model", "arena", "target"}
    assert run("check", cwd=tmp_path).returncode == 0
    (tmp_path / "modelplan.toml").unlink()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.modelplan]\n')
    assert run("budget", "set", "net.tflite", cwd=folder).returncode == 0
    assert "[[tool.modelplan.budget]]" in (tmp_path / "pyproject.toml").read_text()
    assert run("check", cwd=folder).returncode == 0


def test_budgets_of_a_folder_are_written_for_each_model(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.tflite").write_bytes(SAME)
    assert run("check", "--write", "budgets", ".", cwd=tmp_path).returncode == 0
    rows = tomllib.loads((tmp_path / "modelplan.toml").read_text())["budget"]
    assert [row["model"] for row in rows] == ["a.tflite", "b.tflite"]
    done = run("check", "--write", cwd=tmp_path)
    assert (done.returncode, "; --write takes budgets or baseline" in done.stderr) == (2, True)


def test_set_writes_nothing_where_a_model_has_no_figure(tmp_path: Path) -> None:
    refused = single("RELU", [T("uint8", (3,))], [T("uint8", (3,))])
    folder = project(tmp_path / "project", a=SAME, refused=refused)
    before = (folder / "modelplan.toml").read_bytes()
    done = run("budget", "set", cwd=folder)
    assert done.returncode == 1
    assert "models/refused.tflite does not run" in done.stderr
    assert (folder / "modelplan.toml").read_bytes() == before
    done = run("budget", "baseline", "-o", "b.json", cwd=folder)
    assert done.returncode == 0
    assert "left out, since it does not run: models/refused.tflite" in done.stdout


def test_files_of_a_target_are_relative_to_the_file_with_budgets(tmp_path: Path) -> None:
    folder = project(tmp_path / "project", '[[budget]]\nmodel = "models/*"\ntarget = "from:memory.ld#RAM"\n')
    (folder / "memory.ld").write_text("MEMORY { RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 6K }\n")
    for place in (folder, folder / "models"):
        (row,) = json.loads(run("check", "--format", "json", cwd=place).stdout)
        assert row["sizeLimit"] == 6144


@pytest.mark.slow
def test_the_page_about_budgets_is_true(models: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "budgets.md").read_text()
    stated, *_ = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "models").mkdir()
    for path in (*models.glob("ds_cnn*.tflite"), *models.glob("resnet8.*")):
        shutil.copy(path, tmp_path / "models")
    project_file = tmp_path / "modelplan.toml"
    project_file.write_text(stated)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", commit(tmp_path))
    assert run("check", cwd=tmp_path).returncode == 0
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for line in "".join(blocks).splitlines():
        done = run(*shlex.split(line)[1:], cwd=tmp_path)
        assert (line, done.returncode, done.stderr) == (line, 0, "")
    headings = set(re.findall(r"`([\w-]+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))))
    from modelplan.outputs import names_of
    from modelplan.questions.budgets.project_budgets import KEYS

    assert headings | {"name"} == {*KEYS, *names_of("Findings")}
