"""Compares whole arenas with TFLM, for every .tflite file of the corpus and of models/.

Head, tail and least arena as predicted and as measured: on 32 bits by the device kit (`measured.csv`, programs for Arm
under QEMU), on 64 bits here with the wheel tflite-micro.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import reporting

from modelplan.primitives.errors import ModelError
from modelplan.runtimes.tflm.arena import RELEASE, Arena, arena
from modelplan.runtimes.tflm.file import FileModel, load_tflite
from modelplan.runtimes.tflm.runner import RefusalError, run_tflm, tflm_version

#: What the kit's names of kernels stand for: ABI and kernel library.
KIT = {
    "reference": ("xtensa", "reference"),
    "reference-m": ("cortex-m", "reference"),
    "cmsis-c": ("cortex-m", "cmsis-c"),
    "cmsis": ("cortex-m", "cmsis-dsp"),
    "cmsis-mve": ("cortex-m", "cmsis-mve"),
    "espnn": ("xtensa", "esp-nn@1.2.3"),
    "espnn-1.1.0": ("xtensa", "esp-nn@1.1.0"),
    "espnn-esp32": ("xtensa", "esp-nn-generic"),
}


@dataclass(frozen=True)
class Row:
    """One model on one target: head, tail and least arena, predicted and measured; or why TFLM does not run it."""

    model: str
    abi: str
    kernels: str
    predicted: tuple[int, int, int]
    measured: tuple[int, int, int] | None
    refusal: str = ""

    @property
    def equal(self) -> bool:
        """Whether all three are as measured."""
        return self.predicted == self.measured


def sums(whole: Arena) -> tuple[int, int, int]:
    return whole.head, whole.tail, whole.least


def of_kit(corpus: Path, measured: Path) -> Iterator[Row]:
    """The kit's measurements; its names of models begin with their folder."""
    files = {f"tflite/{name}": path for name, path in reporting.tflite_files(corpus)}
    files |= {name.removeprefix("tflite/"): path for name, path in files.items() if "models/" in name}
    with measured.open(newline="") as file:
        for row in csv.DictReader(file):
            abi, kernels = KIT[row["kernels"]]
            whole = arena(load_tflite(files[row["model"]]), abi, kernels)
            ran = row["status"] == "ok"
            found = (int(row["head"]), int(row["tail"]), int(row["min_arena_16"])) if ran else None
            yield Row(row["model"], abi, kernels, sums(whole), found, row["error"])


def of_wheel(corpus: Path) -> Iterator[Row]:
    """The wheel's answers."""
    for name, path in reporting.tflite_files(corpus):
        reporting.progress(name)
        try:
            model = load_tflite(path)
        except ModelError:
            continue
        yield on_wheel(name if name.startswith("models/") else f"tflite/{name}", model)


def on_wheel(name: str, model: FileModel) -> Row:
    whole = arena(model, "wheel")
    try:
        run = run_tflm(model.data, rounds=0)
    except RefusalError as refusal:
        return Row(name, "wheel", "reference", sums(whole), None, str(refusal))
    return Row(name, "wheel", "reference", sums(whole), (run.head, run.tail, least(model, whole.least)))


def least(model: FileModel, guess: int) -> int:
    """The smallest multiple of 16 from `guess` on, or down from it, in which the wheel allocates and runs the model."""
    step = -16 if runs(model, guess) else 16
    while True:
        following = guess + step
        if runs(model, following) == (step > 0):
            return following if step > 0 else guess
        guess = following


def runs(model: FileModel, size: int) -> bool:
    try:
        run_tflm(model.data, rounds=1, arena=size)
    except RefusalError:
        return False
    return True


def page(rows: list[Row]) -> Iterator[str]:
    """The sums, a line for each model with its least arenas, and a line for each arena that is not as predicted."""
    ran = [row for row in rows if row.measured]
    below = sum(any(p < m for p, m in zip(row.predicted, row.measured or (), strict=False)) for row in ran)
    yield f"32 bits: {RELEASE} under QEMU; 64 bits: the wheel tflite-micro {tflm_version()}."
    yield ""
    yield f"{len(ran)} arenas measured: {sum(row.equal for row in ran)} predicted equal in head, tail and least arena,"
    yield f"{below} predicted too small. Bytes; the least arena is the smallest multiple of 16 that allocates and runs."
    yield ""
    found = {(row.model, row.abi, row.kernels): row for row in rows}
    targets = list(dict.fromkeys((row.abi, row.kernels) for row in rows))
    headings = ("least arena", *(f"{abi}, {kernels}" for abi, kernels in targets))
    lines = (
        (model, *(cell(found.get((model, *target))) for target in targets)) for model in sorted({r.model for r in rows})
    )
    yield from reporting.table(headings, lines, "<" + ">" * len(targets))
    if others := [row for row in ran if not row.equal]:
        yield ""
        headings = ("predicted / measured", "head", "tail", "least arena")
        yield from reporting.table(headings, map(differing, others), "<>>>")
    if refused := {row.model: row.refusal for row in rows if row.measured is None}:
        yield ""
        yield from (f"{model} is not run: {refusal}." for model, refusal in sorted(refused.items()))


def cell(row: Row | None) -> str:
    """The least arena as measured; a dash where TFLM does not run the model."""
    return f"{row.measured[2]:,}" if row is not None and row.measured else "-"


def differing(row: Row) -> tuple[str, ...]:
    """An arena that is not as predicted."""
    pairs = zip(row.predicted, row.measured or (), strict=True)
    return f"{row.model}, {row.abi}, {row.kernels}", *(f"{p:,}" if p == m else f"{p:,} / {m:,}" for p, m in pairs)


PARSER = reporting.command_line(__file__, __doc__, "arena.md")
PARSER.add_argument("--measured", type=Path, help="the kit's table (default: ../device/measured.csv of the corpus)")


def main() -> None:
    arguments = reporting.parse(PARSER)
    measured = arguments.measured or arguments.corpus.parent / "device" / "measured.csv"
    if not measured.is_file():
        PARSER.error(f"no measurements at {measured}")
    rows = [*of_kit(arguments.corpus, measured), *of_wheel(arguments.corpus)]
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "TFLM's whole arena", page(rows))


if __name__ == "__main__":
    main()
