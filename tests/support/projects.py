"""Projects with models and budgets in a git repository, for tests of `check`."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from versions import NETWORK, written

#: Git without the settings of whoever runs the tests.
ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
BUDGETS = '[[budget]]\nmodel = "models/*.tflite"\narena = "16KiB"\ngrowth = "1KiB"\n'
#: The network with twice the filters in its operator 2, and what follows from that.
WIDER = written({**NETWORK, "pw1": replace(NETWORK["pw1"], filters=32), "pw2": replace(NETWORK["pw2"], filters=32)})
SAME = written(NETWORK)


def git(folder: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def project(folder: Path, budgets: str = BUDGETS, **models: bytes) -> Path:
    """A repository whose branch `main` holds the models and the budgets."""
    (folder / "models").mkdir(parents=True)
    for name, content in (models or {"net": SAME}).items():
        (folder / "models" / f"{name}.tflite").write_bytes(content)
    (folder / "modelplan.toml").write_text(budgets)
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    return folder


def commit(folder: Path) -> str:
    """Commits everything; the hash."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "as it is", "--allow-empty")
    return git(folder, "rev-parse", "HEAD")
