"""A test run beside an installation that is not the checkout says so in one line, and runs nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installs import INSTALL, differing, wrong_install

ROOT = Path(__file__).resolve().parents[2]


#: Runs pytest where modelplan is looked for in a folder first, as if nothing were installed in an editable way.
RUN = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
sys.path.insert(0, sys.argv.pop(1))
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def said_by_pytest(packages: Path) -> str:
    """What a run of tests says that imports the modelplan of a folder; nothing may have run."""
    words = ["-q", "-p", "no:cacheprovider", "tests/test_architecture.py"]
    command = [sys.executable, "-P", "-c", RUN, str(packages), *words]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = (line for line in (done.stdout + done.stderr).splitlines() if line)
    return line


@pytest.mark.slow
def test_a_folder_without_the_core_is_told_in_one_line() -> None:
    assert said_by_pytest(ROOT).endswith(f"{ROOT}/modelplan, which has no compiled core: {INSTALL}, then `pytest`")


@pytest.mark.slow
def test_another_modelplan_is_told_in_one_line(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "modelplan", tmp_path / "modelplan", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "modelplan" / "model" / "old.py").write_text("")
    said = said_by_pytest(tmp_path)
    assert said.endswith(f"{tmp_path}/modelplan, where model/old.py is not that of this checkout: {INSTALL}")


def test_this_run_is_of_the_checkout() -> None:
    assert not wrong_install(ROOT)
    assert not differing(ROOT / "modelplan", ROOT / "modelplan")


def test_folders_differ_by_the_first_file_that_is_another(tmp_path: Path) -> None:
    for folder, text in (("one", "1"), ("other", "2")):
        (tmp_path / folder / "part").mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("same")
        (tmp_path / folder / "part" / "b.py").write_text(text)
    assert differing(tmp_path / "one", tmp_path / "other") == "part/b.py"
    (tmp_path / "other" / "part" / "b.py").write_text("1")
    assert not differing(tmp_path / "one", tmp_path / "other")
    (tmp_path / "other" / "a.py").unlink()
    assert differing(tmp_path / "one", tmp_path / "other") == "a.py"
