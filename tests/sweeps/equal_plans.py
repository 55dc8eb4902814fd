"""Whether two installations answer alike: `python tests/sweeps/equal_plans.py OLD NEW [MODEL...]` asks both.

OLD and NEW are programs, as `.venv/bin/modelplan` of a checkout. Asked about are models/, $MODELPLAN_CORPUS, drawn
networks and the files that are named. What each command is compared by:

* analyze: words and plan in JSON, byte by byte; the height, the arena and the head, also of each kernel library
* fit: the file of `fit --least`, of a .tflite one for each of some kernels; its arena, or its peak on ONNX Runtime
* c: the text of `fit --runtime c` but for the lines that name the release; its RAM
* explain: the suggestions in their order; the arena and the head as they are and by each

Each answer is `equal`, `not higher` (another one, but no figure is higher) or `higher`, also where NEW refuses what OLD
answers. A suggestion or a kernel library that NEW does not name counts as higher only where no other one of its kind
needs as little. Exits with 1 where anything is higher.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from random_cnns import (
    attending_net,
    branched_cnn,
    deep_cnn,
    exported_cnn,
    headed_cnn,
    moving_cnn,
    random_cnn,
    renamed_cnn,
)

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("MODELPLAN_CORPUS", ROOT.parent / "shared" / "corpus"))
EQUAL, NOT_HIGHER, HIGHER = "equal", "not higher", "higher"
#: Kernels for which `fit` writes a .tflite file.
KERNELS = ("all", "reference", "cmsis-dsp", "esp-nn")
#: Columns of `fit` whose figure in the chosen row is to be as low as it can be.
_LEAST = ("arena", "RAM", "best: first", "later runs")
#: Stands in a figure's name between its kind and the one of that kind.
OF = ": "
_DRAWN: tuple[Callable[[int], bytes], ...] = (
    random_cnn, branched_cnn, moving_cnn, headed_cnn, deep_cnn, renamed_cnn, exported_cnn, attending_net,
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What an installation answers: all that is to be equal, and the figures that are not to be higher."""

    content: tuple[object, ...]
    figures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Installation:
    """A program `modelplan`, run in an empty folder of its own for each command."""

    program: str

    def run(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """The command after it ended, in `folder`."""
        return subprocess.run([self.program, *words], cwd=folder, capture_output=True, text=True, check=False)


def analyze(program: Installation, model: str, folder: Path) -> Answer:
    """The words and the plan, with its height and the figures of the whole arena."""
    done = program.run(folder, "analyze", model, "--json", "plan.json")
    plan = _read(folder / "plan.json")
    content = (done.returncode, done.stdout, done.stderr, plan)
    if done.returncode or not plan:
        return Answer(content)
    said = json.loads(plan)
    return Answer(content, {"height": said["summary"]["height"]} | _required(said))


def fit(program: Installation, model: str, folder: Path) -> Answer:
    """The files that need least, with their arena on each of the kernels or their peak in ONNX Runtime."""
    kernels = KERNELS if model.endswith(".tflite") else ("",)
    content: list[object] = []
    figures: dict[str, int] = {}
    for name in kernels:
        output = folder / f"out{name}{Path(model).suffix}"
        done = program.run(folder, "fit", model, "--least", "-o", output.name, *(("--kernels", name) if name else ()))
        content += [done.returncode, done.stderr, _read(output)]
        found = chosen(done.stdout) if done.returncode == 0 else {}
        figures |= {f"{column} {name}".strip(): figure for column, figure in found.items()}
    return Answer((*content, tuple(figures.items())), figures)


def plain_c(program: Installation, model: str, folder: Path) -> Answer:
    """The network as plain C, with its RAM."""
    done = program.run(folder, "fit", model, "--runtime", "c", "-o", "out.c")
    figures = chosen(done.stdout) if done.returncode == 0 else {}
    texts = (without_release(_read(folder / name)) for name in ("out.c", "out.h"))
    return Answer((done.returncode, done.stderr, *texts, tuple(figures.items())), figures)


def explain(program: Installation, model: str, folder: Path) -> Answer:
    """The suggestions in their order, with what the model needs as it is and by each."""
    done = program.run(folder, "explain", model, "--json", "plan.json")
    if done.returncode:
        return Answer((done.returncode, done.stderr))
    found = suggested(json.loads(_read(folder / "plan.json")))
    return Answer((done.returncode, *found.items()), found)


COMMANDS = {"analyze": analyze, "fit": fit, "c": plain_c, "explain": explain}


def chosen(words: str) -> dict[str, int]:
    """The figures that are to be least in the row of `fit` that is marked as the one to take."""
    lines = words.splitlines()
    row = next((line for line in lines if re.match(r"  \w[\w ]* \*  ", line)), "")
    head = next((line for line in lines if line.startswith("  rung ")), "")
    if not row or not head:
        raise ValueError(f"no rung is marked by * in\n{words}")
    names, cells = (re.split(r"\s{2,}", line.strip()) for line in (head, row))
    pairs = zip(names, cells, strict=False)
    return {name: int(cell.replace(",", "")) for name, cell in pairs if name in _LEAST}


def suggested(explained: Mapping[str, Any]) -> dict[str, int]:
    """The figures of what `explain` says as JSON: as it is, and by each suggestion under what it asks for."""
    rows = explained["suggestions"]
    by = {f"{key} by {row['needs']}{OF}{row['name']}": row[key] for row in rows for key in ("arena", "head")}
    return _required(explained) | {name: figure for name, figure in by.items() if figure is not None}


def without_release(text: bytes) -> bytes:
    """A C text without the lines that name the release that wrote it."""
    return b"\n".join(line for line in text.split(b"\n") if b"written by modelplan" not in line)


def _required(said: Mapping[str, Any]) -> dict[str, int]:
    need = said.get("requirement") or {}
    rows = need.get("libraries") or ()
    kernels = {f"{key} on kernels{OF}{row['library']}": row[key] for row in rows for key in ("arena", "head")}
    found = {key: need.get(key) for key in ("arena", "head")} | kernels
    return {name: figure for name, figure in found.items() if figure is not None}


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def raised(old: Answer, new: Answer) -> list[str]:
    """The figures that are higher in `new`, or missing there where no other one of their kind is as low."""
    found = []
    for name, before in old.figures.items():
        after = new.figures.get(name, _least_alike(name, new.figures))
        if after is None or after > before:
            found.append(_step(name, old, new))
    return found


def _least_alike(name: str, figures: Mapping[str, int]) -> int | None:
    kind, of, _ = name.partition(OF)
    whole = kind.partition(" by ")[0]
    alike = [figure for other, figure in figures.items() if other.startswith(kind + of) or other == whole]
    return min(alike, default=None) if of else None


def _step(name: str, old: Answer, new: Answer) -> str:
    before, after = (f"{one.figures[name]:,}" if name in one.figures else "none" for one in (old, new))
    return f"{name}: {before} -> {after}"


def verdict(old: Answer, new: Answer) -> str:
    """Whether an answer is equal to an older one, or else whether a figure of it is higher."""
    return EQUAL if old == new else HIGHER if raised(old, new) else NOT_HIGHER


def difference(old: Answer, new: Answer) -> str:
    """The figures that are higher; else those that are lower, and how many only one of the answers has."""
    both = [name for name in old.figures if name in new.figures]
    lower = [_step(name, old, new) for name in both if old.figures[name] != new.figures[name]]
    gone, come = (len(one.figures) - len(both) for one in (old, new))
    told = [*lower, *([f"{gone} figures gone, {come} new"] if gone or come else [])]
    return "; ".join(raised(old, new) or told) or "the same figures"


def _models(limit: int | None, drawn: int, folder: Path) -> Iterator[str]:
    found = [path for place in (ROOT / "models", CORPUS) for path in place.rglob("*")]
    files = [path for path in found if path.suffix in (".tflite", ".onnx")]
    yield from map(str, sorted(files, key=lambda path: (path.stat().st_size, path))[:limit])
    for number in range(drawn):
        build = _DRAWN[number % len(_DRAWN)]
        path = folder / f"{build.__name__}_{number}.tflite"
        path.write_bytes(build(number))
        yield str(path)


def asked(program: Installation, command: str, model: str) -> Answer:
    """The answer to one command about one model."""
    with tempfile.TemporaryDirectory() as folder:
        return COMMANDS[command](program, model, Path(folder))


def compared(old: Installation, new: Installation, commands: Sequence[str], model: str) -> Iterator[str]:
    """The verdict of each command about a model; prints those that are not equal."""
    for command in commands:
        before, after = asked(old, command, model), asked(new, command, model)
        found = verdict(before, after)
        if found != EQUAL:
            print(f"{found}: {command} {model}: {difference(before, after)}", flush=True)
        yield found


def main() -> int:
    """Asks both installations about each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="a program `modelplan`")
    parser.add_argument("new", help="another one")
    parser.add_argument("models", nargs="*", help="more files")
    parser.add_argument("--commands", default=",".join(COMMANDS), help="default: %(default)s")
    parser.add_argument("--files", type=int, metavar="N", help="the N smallest of models/ and the corpus")
    parser.add_argument("--drawn", type=int, metavar="N", default=0, help="drawn networks (default: %(default)s)")
    arguments = parser.parse_intermixed_args()
    commands = arguments.commands.split(",")
    if unknown := sorted({*commands} - {*COMMANDS}):
        parser.error(f"--commands: {', '.join(unknown)}: expected some of {', '.join(COMMANDS)}")
    old, new = (Installation(str(Path(program).absolute())) for program in (arguments.old, arguments.new))
    with tempfile.TemporaryDirectory() as folder:
        more = (str(Path(model).resolve()) for model in arguments.models)
        models = [*_models(arguments.files, arguments.drawn, Path(folder)), *more]
        counts = Counter(found for model in models for found in compared(old, new, commands, model))
    told = ", ".join(f"{counts[name]} {name}" for name in (EQUAL, NOT_HIGHER, HIGHER))
    print(f"{len(models)} files, {counts.total()} answers: {told}")
    return min(counts[HIGHER], 1)


if __name__ == "__main__":
    sys.exit(main())
