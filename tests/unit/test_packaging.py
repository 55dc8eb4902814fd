"""What the project ships beside its code agrees with it: a container, workflows, templates, records of itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import modelplan

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GITHUB = ROOT / ".github"


def copied() -> list[str]:
    """What the Dockerfile copies out of the clone."""
    lines = [line.split()[1:-1] for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("COPY ")]
    return [source for line in lines if not line[0].startswith("--from") for source in line]


def test_every_source_of_the_container_exists_and_is_not_ignored() -> None:
    assert copied()
    assert [source for source in copied() if not (ROOT / source).exists()] == []
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == set(copied())


def test_the_container_copies_all_that_the_build_reads() -> None:
    listed = re.findall(r"\$\{CMAKE_SOURCE_DIR\}/(\w+)", (ROOT / "CMakeLists.txt").read_text())
    project = PROJECT["project"]
    needed = {
        *listed,
        project["readme"],
        *project["license-files"],
        *PROJECT["tool"]["scikit-build"]["wheel"]["packages"],
    }
    assert needed <= set(copied())


def test_the_extras_of_the_container_exist() -> None:
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert set(extras.split(",")) <= PROJECT["project"]["optional-dependencies"].keys()


@pytest.mark.parametrize("path", sorted(GITHUB.rglob("*.yml")), ids=lambda path: path.name)
def test_files_for_github_are_yaml(path: Path) -> None:
    content = yaml.safe_load(path.read_text())
    assert isinstance(content, dict)
    for job in content.get("jobs", {}).values():
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", f"a@{0:040}")) for step in job["steps"])


def test_publishing_needs_no_secret_and_only_it_may_take_a_token() -> None:
    text = (GITHUB / "workflows" / "release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["publish"]
    assert "secrets." not in text
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}


def test_ci_runs_what_developers_run() -> None:
    steps = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text())["jobs"]["run"]["steps"]
    assert ".ci/run" in steps[-1]["run"]
    assert ".ci/wheel" in (ROOT / ".ci" / "run").read_text()


def test_the_weekly_run_names_files_that_exist() -> None:
    text = (ROOT / ".ci" / "long").read_text()
    sweeps = re.findall(r"^ *sweep (\w+\.py)", text, re.MULTILINE)
    named = [ROOT / path for path in re.findall(r"tests/\w+/\w+\.py", text)]
    assert sweeps
    assert named
    assert [
        path for path in (*named, *(ROOT / "tests" / "sweeps" / name for name in sweeps)) if not path.exists()
    ] == []


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == modelplan.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["authors"]
    assert citation["cff-version"] == "1.2.0"


def test_wheels_are_built_for_the_oldest_python_and_the_stable_abi() -> None:
    built = set(PROJECT["tool"]["cibuildwheel"]["build"])
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=").replace(".", "")
    assert built == {f"cp{oldest}-*", f"{PROJECT['tool']['scikit-build']['wheel']['py-api']}-*"}
