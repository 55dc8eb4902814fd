"""Runs the commands that `analyze`, `explain`, `check` and `fit` print below a figure, and compares what they deliver.

    python benchmarks/promised.py [--most 40] [--seed 0]

Each .tflite file of models/, the corpus and its folder `wild` is asked about as it is, for a kernel library and for
three boards; `check` and `fit` with less memory than it needs. A command is run as it was printed, and the file that it
writes is sized for the device, kernels and ABI that stand in it. With --most so many of the cases are drawn.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import reporting

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from promises import Promise, arena_of, delivered, promises

PARSER = reporting.command_line(__file__, __doc__, "promised.md")
PARSER.add_argument("--most", type=int, default=0, help="so many cases are drawn; 0: all are tried (default)")
PARSER.add_argument("--seed", type=int, default=0, help="of the cases that are drawn (default: 0)")
#: What each model is asked for.
SETTINGS = ((), ("--kernels", "cmsis-dsp"), ("--target", "esp32s3"), ("--target", "stm32h743"), ("--target", "rp2350"))
#: Shares of what the model needs that `check` and `fit` are given.
SHARES = (0.9, 0.5)
#: Larger files, and networks of more operators, are left out: each command takes minutes.
_MOST_BYTES = 3_000_000
_SECONDS = 900
_PROGRAM = "import sys; from modelplan.cli import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Case:
    """A model with what it is asked for."""

    model: Path
    setting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A promise by a command, and what its commands delivered; None where they delivered nothing."""

    case: Case
    by: str
    promise: Promise
    delivered: int | None

    @property
    def short(self) -> bool:
        """Whether the commands delivered more bytes than were promised, or nothing."""
        return self.delivered is None or self.delivered > self.promise.most


@dataclass
class Shell:
    """Runs commands as programs; each of the same words in the same folder once."""

    known: dict[tuple[tuple[str, ...], Path], str] = field(default_factory=dict)

    def run(self, words: Sequence[str], folder: Path) -> str:
        """What a command prints on a line as long as it likes, whatever its exit code."""
        key = tuple(words), folder
        if key not in self.known:
            command = [sys.executable, "-P", "-c", _PROGRAM, *words]
            environment = os.environ | {"COLUMNS": "4000", "NO_COLOR": "1"}
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment,
                                  timeout=_SECONDS, check=False)  # fmt: skip
            self.known[key] = done.stdout
        return self.known[key]


def cases(corpus: Path) -> list[Case]:
    """Each model with each setting."""
    files = [*(reporting.ROOT / "models").glob("*.tflite"), *(corpus / "tflite").rglob("*.tflite")]
    files += [path for name in ("camera", "wild") for path in (corpus / name).glob("*.tflite")]
    small = sorted(path for path in files if path.stat().st_size <= _MOST_BYTES)
    return [Case(path, setting) for path in small for setting in SETTINGS]


def kept(case: Case, folder: Path) -> Iterator[Kept]:
    """Every promise about a case with what was delivered."""
    shell = Shell()
    analyzed = shell.run([str(case.model), *case.setting], folder)
    before = arena_of(analyzed)
    if before is None:
        return
    made = {"analyze": promises(analyzed, before), "explain": explained(shell, case, folder)}
    for share in SHARES:
        budget = ("--budget", str(int(before * share)))
        asked = [str(case.model), *case.setting, *budget]
        made[f"check {share:.0%}"] = promises(shell.run(["check", *asked], folder))
        made[f"fit {share:.0%}"] = promises(shell.run(["fit", *asked, "-o", "out.tflite"], folder))
        plain_c = [str(case.model), "--runtime", "c", *budget, "-o", "out.c"]
        made[f"fit c {share:.0%}"] = promises(shell.run(["fit", *plain_c], folder))
    for by, found in made.items():
        for promise in found:
            with tempfile.TemporaryDirectory() as name:
                yield Kept(case, by, promise, _delivered(shell, promise, Path(name)))


def _delivered(shell: Shell, promise: Promise, folder: Path) -> int | None:
    """What the commands deliver; those of one case are run once."""
    key = (("delivered", *promise.commands), Path())
    if key not in shell.known:
        shell.known[key] = str(delivered(promise, folder, Shell().run))
    return int(shell.known[key]) if shell.known[key] != "None" else None


def explained(shell: Shell, case: Case, folder: Path) -> list[Promise]:
    """The suggestions of `explain` that commands alone bring about for a whole arena; each command is printed."""
    said = shell.run(["explain", str(case.model), *case.setting, "--json", "why.json"], folder)
    found = json.loads((folder / "why.json").read_text())["suggestions"]
    carried = [one for one in found if one["commands"] and not one["todo"] and one["arena"] is not None]
    missing = [command for one in carried for command in one["commands"] if command not in said]
    if missing:
        raise SystemExit(f"{case.model}: explain does not print {missing[0]}")
    whole = [one for one in carried if "--shim" not in one["commands"][-1]]
    return [Promise(one["name"], one["arena"], tuple(one["commands"])) for one in whole]


def drawn(corpus: Path, most: int, seed: int) -> list[Case]:
    """So many cases, drawn; 0: all."""
    every = cases(corpus)
    return random.Random(seed).sample(every, most) if most else every


def rows(chosen: Sequence[Case]) -> Iterator[Kept]:
    """Every promise about the cases."""
    for number, case in enumerate(chosen, 1):
        sys.stderr.write(f"{number}/{len(chosen)} {case.model.name} {' '.join(case.setting)}\n")
        with tempfile.TemporaryDirectory() as name:
            yield from kept(case, Path(name))


def lines_of(found: Sequence[Kept]) -> Iterator[str]:
    """The page behind its title."""
    short = [one for one in found if one.short]
    models = len({one.case.model for one in found})
    yield "Figures that commands print with a command below them, and what is needed once that was run as printed."
    yield f"{len(found):,} promises about {models} models: {len(short)} delivered more bytes than promised."
    yield ""
    counts, failed = Counter(one.by for one in found), Counter(one.by for one in short)
    less = Counter(one.by for one in found if one.delivered is not None and one.delivered < one.promise.most)
    body = [(by, count, failed[by], less[by]) for by, count in counts.items()]
    yield from reporting.table(("printed by", "promises", "short", "less than promised"), body)
    yield ""
    settings = Counter(" ".join(one.case.setting) or "as it is" for one in found)
    yield from reporting.table(("asked for", "promises"), list(settings.items()))
    for one in short:
        words = " ".join((one.case.model.name, *one.case.setting))
        yield f"\nshort: {words}, {one.by}: {one.promise.said}: {one.delivered} bytes for {one.promise.most}"


if __name__ == "__main__":
    ARGUMENTS = reporting.parse(PARSER)
    FOUND = list(rows(drawn(ARGUMENTS.corpus, ARGUMENTS.most, ARGUMENTS.seed)))
    title = "Suggestions, run as printed"
    reporting.save(ARGUMENTS.output, reporting.made_by(PARSER, ARGUMENTS), title, lines_of(FOUND))
    sys.exit(any(one.short for one in FOUND))
