"""Reads files of a git revision. Nothing of the revision is run: no hook, no filter, no text conversion."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from modelplan.primitives.errors import RequestError

#: How a file starts that stands for one which Git LFS keeps elsewhere.
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
#: Objects that a partial clone lacks are not fetched, and nobody is asked for a password.
_QUIET = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit of the repository that holds `folder`: the name that it was asked for by, and its hash."""

    name: str
    commit: str
    folder: Path

    def content(self, path: str) -> bytes | str:
        """The file at `path`, relative to the folder, as the revision has it; a text that says why there is none."""
        done = _git(self.folder, "cat-file", "blob", f"{self.commit}:./{path}")
        if done.returncode:
            missing = any(said in done.stderr for said in (b"does not exist", b"exists on disk, but not in"))
            return f"{self.name} has no {path}" if missing else _git_message(done.stderr)
        if done.stdout.startswith(LFS_POINTER):
            return f"{self.name} holds {path} as a pointer of Git LFS"
        return done.stdout


def revision(name: str, folder: Path) -> Revision:
    """The commit that `name` stands for in the repository of `folder`.

    Raises:
        RequestError: there is no git, no repository or no such revision.
    """
    if not name or name.startswith("-"):
        raise RequestError(f"--baseline {name!r}: expected a .json file or a git revision")
    done = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if done.returncode == 0:
        return Revision(name, done.stdout.decode().strip(), folder)
    if said := _git_message(done.stderr):
        raise RequestError(f"--baseline {name}: {said}")
    shallow = " (a shallow clone has only what was fetched: git fetch --depth=1 origin BRANCH)"
    hint = shallow if b"true" in _git(folder, "rev-parse", "--is-shallow-repository").stdout else ""
    raise RequestError(f"--baseline {name}: no such revision in the repository of {folder}{hint}")


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | _QUIET
    try:
        return subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, check=False)  # noqa: S603, S607
    except OSError as problem:
        raise RequestError(f"--baseline: cannot run git: {problem.strerror}") from None


def _git_message(error: bytes) -> str:
    """The last line of git's output, without its first word."""
    lines = error.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ") if lines else ""
