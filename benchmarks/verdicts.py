"""Compares the verdicts of `modelplan check` with what TFLM does in an arena of exactly so many bytes.

    python benchmarks/verdicts.py

Every .tflite of the corpus and of models/ that the tflite-micro wheel (extra `tflm`) runs in an ample arena, as it is
and packed: at five budgets around what `check` requires, and at each budget less 1,024 bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import reporting

from modelplan.model import Requirement
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.errors import BrokenPlanError, ModelError
from modelplan.questions.alternatives import load_file, unmodified_requirement
from modelplan.rewriting import packing
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.runner import tflm_version

#: The wheel that TFLM is run from.
TARGET = Target(RUNTIMES["tflm"], "wheel")
#: Enough for every model, in bytes.
AMPLE = 64 << 20
LESS = 1024
PACKED = ("views", "safe")


@dataclass(frozen=True)
class Row:
    """One form of one model: what it needs, and at each size whether `check` and TFLM say that it fits."""

    model: str
    form: str
    needed: Requirement
    answers: tuple[tuple[int, bool, bool], ...]

    @property
    def estimated(self) -> bool:
        return any(part.trust.startswith("estimated") for part in self.needed.parts)

    @property
    def compared(self) -> bool:
        """Whether the wheel can judge the row: it has every operator of the model."""
        return any(did for _, _, did in self.answers) or not self.estimated

    @property
    def wrong(self) -> list[int]:
        return [size for size, said, did in self.answers if said != did]


def budgets(arena: int) -> list[int]:
    """Five budgets, and each less 1,024 bytes, in steps of the 16 bytes to which arenas are aligned."""
    five = (arena // 32 * 16, arena - 16, arena, arena + 16, 2 * arena)
    return sorted({size for budget in five for size in (budget, budget - LESS) if size > 0})


def runs(content: bytes, size: int) -> bool:
    """Whether TFLM allocates and runs the model in an arena of `size` bytes, in a process of its own."""
    child = os.fork()
    if not child:
        _run_and_exit(content, size)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _run_and_exit(content: bytes, size: int) -> None:
    from tflite_micro.python.tflite_micro import runtime

    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        interpreter = runtime.Interpreter.from_bytes(content, arena_size=size)
        for index, details in _inputs(interpreter):
            interpreter.set_input(np.zeros(details["shape"], details["dtype"]), index)
        interpreter.invoke()
    except BaseException:  # noqa: BLE001 - whatever TFLM raises, the child has nobody else to tell
        os._exit(1)
    os._exit(0)


def _inputs(interpreter: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The details of all inputs; the package gives no count, but raises IndexError after the last."""
    index = 0
    while True:
        try:
            details = interpreter.get_input_details(index)
        except IndexError:
            return
        yield index, details
        index += 1


def forms(file: ModelFile) -> Iterator[tuple[str, ModelFile]]:
    """The file as it is, and packed where that can be done."""
    yield "as it is", file
    for alias in PACKED:
        try:
            packed, _ = packing.packed(read_tflite(file.content, file.path), file.graph, alias)
        except (ModelError, BrokenPlanError) as problem:
            reporting.progress(f"{file.path}: not packed: {problem}")
            return
        yield f"packed, aliases {alias}", replace(file, content=packed.data)


def measured(path: Path) -> Iterator[Row]:
    """The rows of one model; none where TFLM runs it in no arena and `check` refuses it.

    A model with an operator that the wheel does not have stays in the table: its arena is estimated, and the wheel
    cannot confirm it.
    """
    file = load_file(str(path))
    needed = unmodified_requirement(file, TARGET)
    if not runs(file.content, AMPLE):
        said = needed.fits(AMPLE)
        reporting.progress(f"{path.name}: TFLM does not run it; check {'FITS IT' if said else 'refuses it'}")
        if said:
            yield Row(path.stem, "as it is", needed, ((AMPLE, said, False),))
        return
    for name, form in forms(file):
        needed = unmodified_requirement(form, TARGET)
        answers = tuple((size, needed.fits(size), runs(form.content, size)) for size in budgets(needed.arena))
        yield Row(path.stem, name, needed, answers)


def lines(rows: Sequence[Row]) -> Iterator[str]:
    compared = [row for row in rows if row.compared]
    asked = sum(len(row.answers) for row in compared)
    wrong = sum(len(row.wrong) for row in compared)
    yield f"{asked:,} verdicts on {len(compared)} files: {asked - wrong:,} are what TFLM does, {wrong} are not."
    yield f"{len(rows) - len(compared)} more cannot be compared: the wheel lacks an operator of the model."
    yield "`fits` and `does not` count the sizes at which `check` says so; `differs` lists those where TFLM does else."
    yield ""
    headings = ("model", "form", "required", "head", "fits", "does not", "differs")
    yield from reporting.table(headings, map(_cells, rows), "<<>>>>>")


def _cells(row: Row) -> tuple[object, ...]:
    fitting = sum(said for _, said, _ in row.answers)
    differs = ", ".join(f"{size:,}" for size in row.wrong)
    if not row.compared:
        differs = "not compared: the wheel lacks an operator"
    figures = (f"{row.needed.arena:,}", f"{row.needed.head:,}", fitting, len(row.answers) - fitting)
    return (row.model, row.form, *figures, differs)


PARSER = reporting.command_line(__file__, __doc__, "verdicts.md")


def main() -> None:
    arguments = reporting.parse(PARSER)
    rows: list[Row] = []
    for path in paths(arguments.corpus):
        reporting.progress(path.name)
        rows += measured(path)
    first = reporting.made_by(PARSER, arguments, f" with tflite-micro {tflm_version()}, x86-64, reference kernels")
    reporting.save(arguments.output, first, "Verdicts of check beside TFLM", lines(rows))


def paths(corpus: Path) -> list[Path]:
    """The models, those that broke an earlier build among them."""
    return sorted([*corpus.rglob("*.tflite"), *(reporting.ROOT / "models").glob("*.tflite")])


if __name__ == "__main__":
    main()
