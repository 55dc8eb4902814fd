"""The action for GitHub and the hook for pre-commit: their steps run as they would be there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from commands import COMMAND
from projects import SAME, WIDER, commit, git, project
from workflow import Comments, Ran, run_action, served, served_folder

import modelplan

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-that-nobody-may-see"
MARKER = "<!-- modelplan check modelplan.toml -->"

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "curl", "jq", "git"))), reason="bash, curl, jq and git are needed"
)


@pytest.fixture
def comments(monkeypatch: pytest.MonkeyPatch) -> Iterator[Comments]:
    """A pull request with a page and a half of comments by others, of which one quotes the marker."""
    monkeypatch.setenv("no_proxy", "*")
    rows = [{"id": n, "body": f"comment {n}"} for n in range(150)]
    rows[3]["body"] = f"> {MARKER}\nwhat is that?"
    rows[4]["body"] = None
    with served(Comments(rows)) as found:
        yield found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `actions/checkout` leaves: one commit of a pull request that makes a model grow, without a history."""
    origin = project(tmp_path / "origin")
    git(origin, "checkout", "-q", "-b", "wider")
    (origin / "models" / "net.tflite").write_bytes(WIDER)
    commit(origin)
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=wider", f"file://{origin}", "checkout")
    return tmp_path / "checkout"


def act(checkout: Path, comments: Comments, pull_request: str = "7", base: str = "main", **inputs: str) -> Ran:
    """Runs the action with a Python that finds no wheel and only notes what is installed."""
    temporary = checkout.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    python = temporary / "python"
    python.write_text(
        "#!/bin/bash\n"
        'if [ "$2" = venv ]; then mkdir -p "$3/bin"; ln -sf "$0" "$3/bin/python"\n'
        f'ln -sf {COMMAND} "$3/bin/modelplan"\n'
        f'else echo "$@" >> {temporary}/installed; [[ " $* " != *" download "* ]]; fi\n'
    )
    python.chmod(0o755)
    contexts = {
        "github.base_ref": base,
        "github.event.pull_request.number": pull_request,
        "github.repository": "o/r",
        "github.api_url": comments.url,
        "github.server_url": comments.url,
        "github.action_repository": "o/r",
    }
    return run_action(ROOT / "action.yml", checkout, temporary, {"python": str(python), **inputs}, contexts)


def own(comments: Comments) -> list[str]:
    return [row["body"] for row in comments.rows if str(row["body"]).startswith(MARKER)]


@pytest.mark.slow
def test_a_pull_request_gets_one_comment_that_names_the_operator(checkout: Path, comments: Comments) -> None:
    first = act(checkout, comments, token=TOKEN)
    assert (first.code, first.outputs["passed"], first.outputs["exit-code"]) == (1, "false", "1")
    assert "\n::error file=models/net.tflite,title=models/net.tflite%3A growth " in first.said
    (body,) = own(comments)
    assert "`op 2 CONV_2D: " in body
    assert "since origin/main; " in body
    assert first.summary == body
    assert json.loads(Path(first.outputs["json"]).read_text())[1]["passed"] is False
    download, install = (checkout.parent / "temporary" / "installed").read_text().splitlines()
    assert f"--find-links {comments.url}/o/r/releases/expanded_assets/v{modelplan.__version__} " in download
    assert download.endswith(f" modelplan=={modelplan.__version__}")
    assert install == f"-m pip --quiet --disable-pip-version-check install {ROOT}"
    assert "it is compiled" in first.said
    (checkout / "models" / "net.tflite").write_bytes(SAME)
    second = act(checkout, comments, token=TOKEN)
    assert (second.code, second.outputs["passed"]) == (0, "true")
    (body,) = own(comments)
    assert "all passed" in body
    assert [method for method, _, _ in comments.requests] == ["GET", "GET", "POST", "GET", "GET", "PATCH"]
    assert {given for _, _, given in comments.requests} == {f"Bearer {TOKEN}"}
    assert TOKEN not in first.said + second.said


@pytest.mark.slow
def test_the_wheel_of_the_release_is_installed(checkout: Path, comments: Comments, tmp_path: Path) -> None:
    """The step that installs runs as it is, from a page of the release that has the wheel in MODELPLAN_WHEEL."""
    wheel = os.environ.get("MODELPLAN_WHEEL")
    if wheel is None:
        pytest.skip("no wheel; set MODELPLAN_WHEEL to one for this Python, as .ci/run does")
    assets = tmp_path / "o" / "r" / "releases" / "expanded_assets" / f"v{modelplan.__version__}"
    assets.mkdir(parents=True)
    shutil.copy(wheel, assets)
    temporary = tmp_path / "runner"
    temporary.mkdir()
    contexts = {"github.server_url": "", "github.action_repository": "o/r", "github.api_url": comments.url}
    with served_folder(tmp_path) as contexts["github.server_url"]:
        ran = run_action(ROOT / "action.yml", checkout, temporary, {"python": sys.executable}, contexts)
    assert (ran.code, ran.outputs["passed"]) == (0, "true"), ran.said
    assert "compiled" not in ran.said
    (installed,) = (temporary / "modelplan" / "wheel").iterdir()
    assert installed.name == Path(wheel).name


@pytest.mark.slow
def test_without_a_token_or_a_pull_request_nothing_is_commented(checkout: Path, comments: Comments) -> None:
    for ran in (act(checkout, comments), act(checkout, comments, pull_request="", token=TOKEN)):
        assert ran.code == 1
        assert ran.summary.startswith(MARKER)
    assert comments.requests == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refused", "methods"), [({"POST": 403}, ["GET", "GET", "POST"]), ({"GET": 500}, ["GET"]), ({"GET": 401}, ["GET"])]
)
def test_a_comment_that_cannot_be_written_does_not_change_the_verdict(
    checkout: Path, comments: Comments, refused: dict[str, int], methods: list[str]
) -> None:
    comments.refused = refused
    ran = act(checkout, comments, token=TOKEN)
    assert (ran.code, ran.outputs["exit-code"]) == (1, "1")
    assert "::warning title=modelplan::the comment could not be " in ran.said
    assert [method for method, _, _ in comments.requests] == methods
    assert own(comments) == []


@pytest.mark.slow
def test_a_push_is_checked_without_a_baseline(checkout: Path, comments: Comments) -> None:
    ran = act(checkout, comments, pull_request="", base="", junit="tests.xml")
    assert (ran.code, ran.outputs["passed"]) == (0, "true")
    assert "growth n/a for 1 check: no baseline is given" in ran.said
    assert (checkout / "tests.xml").exists()


@pytest.mark.slow
def test_a_branch_that_cannot_be_fetched_leaves_growth_open(checkout: Path, comments: Comments) -> None:
    ran = act(checkout, comments, base="gone")
    assert ran.code == 0
    assert "::warning title=modelplan::the branch that the pull request goes to could not be fetched" in ran.said
    assert "growth n/a" in ran.said


@pytest.mark.slow
def test_a_wrong_file_fails_the_job_and_comments_nothing(checkout: Path, comments: Comments) -> None:
    (checkout / "modelplan.toml").write_text("[[budgets]]\n")
    ran = act(checkout, comments, token=TOKEN)
    assert (ran.code, ran.outputs["exit-code"], ran.summary) == (2, "2", "")
    assert "budgets: no such key" in ran.said
    assert comments.requests == []


@pytest.mark.slow
def test_a_folder_and_a_baseline_are_inputs(checkout: Path, comments: Comments) -> None:
    ran = act(checkout, comments, **{"working-directory": "models", "baseline": "HEAD", "config": "../modelplan.toml"})
    assert ran.code == 0
    assert "::notice" in ran.said


def test_the_hook_runs_what_there_is_when_models_or_budgets_change(checkout: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)
    for name, matches in {
        "a/b.tflite": 1,
        "b.onnx": 1,
        "modelplan.toml": 1,
        "a/pyproject.toml": 1,
        "x.toml": 0,
    }.items():
        assert bool(re.search(hook["files"], name)) == bool(matches), name
    program, *words = shlex.split(hook["entry"])
    assert program == "modelplan"
    assert subprocess.run([COMMAND, *words], cwd=checkout, capture_output=True, check=False).returncode == 0
