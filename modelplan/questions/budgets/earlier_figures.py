"""What the models of a project needed before: files of a git revision, and the baseline file, which is JSON.

Nothing of the revision is run: no hook, no filter, no text conversion.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from modelplan.answers.check_outcomes import CheckSetting, Earlier, Figures, Outcome
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.version import __version__

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


#: The version of the document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1
_SETTING = ("runtime", "abi", "kernels", "dims", "shapes")


@dataclass(frozen=True, slots=True)
class SavedFigures:
    """What a baseline file holds, by model and setting; `reason` says why it holds nothing that can be used."""

    source: str
    rows: Mapping[tuple[str, CheckSetting], Figures]
    reason: str = ""

    def earlier(self, model: str, setting: CheckSetting) -> Earlier:
        """What the model needed."""
        figures = self.rows.get((model, setting))
        others = any(known == model for known, _ in self.rows)
        missing = f"no figure of {model}" + (" for this runtime, ABI and kernels" if others else "")
        return Earlier(self.source, figures, "" if figures else self.reason or f"{self.source} has {missing}")


def baseline_document(outcomes: Iterable[Outcome]) -> str:
    """The figures of all models that could be sized, in the order of their names, as a JSON document."""
    rows = {}
    for outcome in outcomes:
        if outcome.figures is not None and outcome.setting is not None:
            setting = {name: value for name, value in asdict(outcome.setting).items() if value}
            row = {"model": outcome.check.key, **setting, **asdict(outcome.figures)}
            rows[outcome.check.key, tuple(asdict(outcome.setting).values())] = row
    ordered = [rows[key] for key in sorted(rows)]
    document = {"modelplan_baseline": SCHEMA, "made_by": f"modelplan {__version__}", "models": ordered}
    return json.dumps(document, indent=1) + "\n"


def read_baseline(text: str, source: str) -> SavedFigures:
    """What the baseline in `text` holds; of another format nothing can be used, and the reason is kept."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return SavedFigures(source, {}, f"{source} is not a JSON document")
    schema = document.get("modelplan_baseline") if isinstance(document, dict) else None
    if schema is None:
        return SavedFigures(source, {}, f"{source} is no baseline that modelplan wrote")
    if schema != SCHEMA:
        return SavedFigures(source, {}, f"{source} has format {schema!r:.20}, this modelplan reads {SCHEMA}")
    models = document.get("models")
    rows = [row for row in models if isinstance(row, dict)] if isinstance(models, list) else []
    return SavedFigures(source, dict(pair for row in rows if (pair := _read_row(row)) is not None))


def _read_row(row: Mapping[str, Any]) -> tuple[tuple[str, CheckSetting], Figures] | None:
    """One model with its setting and figures; None where a field is missing or of another type."""
    values = [row.get(name, "") for name in ("model", *_SETTING[:3])]
    lists = [row.get(name, []) for name in _SETTING[3:]]
    sizes = [row.get(name) for name in ("arena", "head", "flash")]
    whole = all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in sizes)
    typed = all(isinstance(text, str) for text in values) and all(isinstance(texts, list) for texts in lists)
    if not whole or not typed:
        return None
    model, runtime, abi, kernels = map(str, values)
    dims, shapes = (tuple(map(str, texts)) for texts in lists)
    return (model, CheckSetting(runtime, abi, kernels, dims, shapes)), Figures(*(int(size or 0) for size in sizes))
