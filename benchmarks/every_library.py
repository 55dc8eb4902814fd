"""Runs models on every kernel library, in the arenas that are printed, as they are and as `pack` and `fit` write them.

The programs are those of `tests/sweeps/tflm_sweep.py` (--kit FOLDER or $MODELPLAN_TFLM_KIT): TFLM for 32 bits, under
QEMU, with eight sets of kernels. Each file runs in the arena that is printed without `--kernels`, and in that of its
own library; in 80 bytes less than that it must not run. What it computes is compared with the unmodified file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import reporting

from modelplan import FitRequest, PackRequest, fit, pack
from modelplan.ops.run_costs import graph_macs
from modelplan.primitives.errors import ModelPlanError
from modelplan.questions.alternatives import load_file
from modelplan.rewriting.packing import check_plannable
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.declaration import required_arena
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.kernels import ALL

sys.path.append(str(reporting.ROOT / "tests" / "sweeps"))
from tflm_sweep import APART, KIT, SLACK, kit_folder, start

SETS = {name: row for name, row in KIT.items() if row[1] != "x86-64"}
_RUNS = 2
#: Beyond so many multiply-accumulates a file is not fitted, and runs once.
_HEAVY = 40_000_000


@dataclass(frozen=True)
class OnSet:
    """One file with one set of kernels: its least arena as predicted, and what TFLM did."""

    least: int
    enough: bool
    tight: bool
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One form of a model with all sets; `declared` is what is printed without a kernel library."""

    model: str
    form: str
    declared: int
    sets: dict[str, OnSet]
    equal: int = 0


def ran(program: Path, box: str, size: int, *words: str) -> tuple[bool, str]:
    """Whether TFLM runs the model in `box` with an arena of `size` bytes, and what it prints."""
    try:
        done = start(program, box, "--arena", str(size), *words, inputs=False, seconds=1200)
    except subprocess.TimeoutExpired:
        return False, ""
    return done.returncode == 0, done.stdout


def outputs_of(program: Path, box: str, size: int, runs: int) -> tuple[str, ...]:
    """The digests of the outputs of so many runs; nothing where the model does not run."""
    runs_well, text = ran(program, box, size, "--runs", str(runs))
    said: dict[str, Any] = json.loads(text) if runs_well else {}
    if said.get("invoke") != "ok" or said.get("arena_overrun"):
        return ()
    return tuple(digest for run in said["output_sha256"] for digest in run)


def enough(program: Path, box: str, size: int) -> bool:
    """Whether the model runs; as a probe it is allocated once, as firmware does, not again in a recording allocator."""
    return ran(program, box, size, "--probe", "--runs", "1")[0]


def on_set(kit: Path, data: bytes, declared: int, runs: int, name: str) -> OnSet | None:
    """One file with one set of kernels; None for a model that modelplan says it refuses."""
    program, abi, kernels = SETS[name]
    model = read_tflite(data, "model")
    own = arena(model, abi, kernels)
    if own.refusals:
        return None
    with tempfile.TemporaryDirectory() as box:
        Path(box, "model").write_bytes(data)
        outputs = outputs_of(kit / program, box, declared, runs)
        both = enough(kit / program, box, declared) and enough(kit / program, box, own.least)
        less = enough(kit / program, box, own.least - SLACK - 16)
    kinds = {op.kind for subgraph in model.subgraphs for op in subgraph.ops}
    return OnSet(own.least, both, not less or bool(kinds & set(APART)), outputs)


def measured(kit: Path, name: str, form: str, data: bytes, runs: int) -> Row:
    """A form of a model on all sets, two at a time."""
    declared = required_arena(data, name, "32", ALL).arena
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(SETS, pool.map(partial(on_set, kit, data, declared, runs), SETS), strict=True))
    return Row(name, form, declared, {key: one for key, one in found.items() if one})


def compared(row: Row, unmodified: Row) -> Row:
    """The row with the number of sets on which it computes what the unmodified file does."""
    equal = [bool(one.outputs) and one.outputs == unmodified.sets[key].outputs for key, one in row.sets.items()]
    return Row(row.model, row.form, row.declared, row.sets, sum(equal))


def rewritten(path: Path, macs: int) -> Iterator[tuple[str, bytes]]:
    """The file as `pack` and `fit` write it without a kernel library, where they write one."""
    for form, write in (("packed", _packed), ("fitted", _fitted)):
        if form == "fitted" and macs > _HEAVY:
            continue
        try:
            data = write(path)
        except ModelPlanError as problem:
            reporting.progress(f"{path.name}, {form}: {problem}")
            continue
        if data is not None and data != path.read_bytes():
            yield form, data


def _packed(path: Path) -> bytes | None:
    return pack(PackRequest(str(path), "safe")).packed.data


def _fitted(path: Path) -> bytes | None:
    chosen = fit(FitRequest(path, max_macs=0.3)).chosen
    return chosen.model if chosen else None


def rows_of(kit: Path, name: str, path: Path) -> Iterator[Row]:
    """All forms of one model."""
    check_plannable(read_tflite(path.read_bytes(), name))  # what was compiled for another processor is in no kit
    macs = graph_macs(load_file(str(path)).graph)
    runs = 1 if macs > _HEAVY else _RUNS
    reporting.progress(name)
    first = measured(kit, name, "unmodified", path.read_bytes(), runs)
    yield compared(first, first)
    if first.sets:
        for form, data in rewritten(path, macs):
            yield compared(measured(kit, name, form, data, runs), first)


def page(rows: list[Row]) -> Iterator[str]:
    """The sums, then a line for each file."""
    cases = [one for row in rows for one in row.sets.values()]
    changed = [row for row in rows if row.form != "unmodified"]
    yield f"Sets of kernels: {', '.join(f'{name} ({row[2]}, {row[1]})' for name, row in SETS.items())}."
    yield ""
    yield f"{len(rows)} files, {len(cases)} runs on a set: the arenas that are printed are enough for"
    yield f"{sum(one.enough for one in cases)}, and {sum(one.tight for one in cases)} are within {SLACK} bytes of the"
    yield f"least for the named library. Of {sum(len(row.sets) for row in changed)} runs of rewritten files"
    yield f"{sum(row.equal for row in changed)} compute what the unmodified file computes, bit for bit."
    yield ""
    headings = ("model", "file", "without --kernels", "least to most by library", "enough", "tight", "equal")
    yield from reporting.table(headings, map(cells, rows), "<<>>>>>")


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table."""
    if not row.sets:
        return row.model, row.form, "refused", "", "", "", ""
    sizes, count = [one.least for one in row.sets.values()], len(row.sets)
    sums = (sum(one.enough for one in row.sets.values()), sum(one.tight for one in row.sets.values()), row.equal)
    spread = f"{min(sizes):,} to {max(sizes):,}"
    return row.model, row.form, f"{row.declared:,}", spread, *(f"{one} of {count}" for one in sums)


PARSER = reporting.command_line(__file__, __doc__, "every_library.md")
PARSER.add_argument(
    "--kit", type=Path, metavar="FOLDER", help="folder of the measuring programs (default: $MODELPLAN_TFLM_KIT)"
)
PARSER.add_argument("--only", metavar="WORDS", help="models whose name has one of these words, separated by commas")


def main() -> None:
    arguments = reporting.parse(PARSER)
    kit = kit_folder(arguments.kit and str(arguments.kit))
    if kit is None or not all((kit / program).exists() for program, *_ in SETS.values()):
        PARSER.error("no measuring programs; name their folder by --kit or $MODELPLAN_TFLM_KIT")
    files = [*reporting.tflite_files(arguments.corpus)]
    files += [(f"camera/{path.name}", path) for path in sorted((arguments.corpus / "camera").glob("*.tflite"))]
    words = arguments.only.split(",") if arguments.only else [""]
    rows: list[Row] = []
    for name, path in files:
        if any(word in name for word in words):
            try:
                rows += rows_of(kit, name, path)
            except ModelPlanError as problem:
                reporting.progress(f"{name}: {problem}")
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Every kernel library", page(rows))


if __name__ == "__main__":
    main()
