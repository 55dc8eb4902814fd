"""Runs every rung of fit on the kernels that it is for: python tests/sweeps/fitted_kernels.py MODEL... [--kit FOLDER]

Each rung's file is run on the programs of `tests/sweeps/tflm_sweep.py`, whole and cut off behind each map that was put
together from stripes, and compared with the model. Prints what differs, and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tflm_sweep import KIT, kit_folder, start

from modelplan.checking.verifier.rewrites.comparing import compare_rows
from modelplan.checking.verifier.rewrites.reading import Source, read_source
from modelplan.checking.verifier.rewrites.truncating import cut_off, stretch_ends
from modelplan.formats import load_model
from modelplan.formats.whole_files import read_model
from modelplan.rewriting.striped_tflite.ladder import climb
from modelplan.rewriting.striped_tflite.rungs import Goal
from modelplan.runtimes.tflm.file import read_tflite

#: Bytes in which every file runs, and seconds after which one does not.
_ARENA, _SECONDS = 1 << 25, 600


def source_of(data: bytes) -> Source:
    """A file as the proof reads it."""
    return read_source(read_tflite(data, "rung"))


def pairs(model: bytes, rung: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    """What is run: where both files end, and both."""
    yield "whole", model, rung
    before, after = source_of(model), source_of(rung)
    for cut in stretch_ends(before, after, compare_rows(before, after)):
        yield f"up to {cut.name!r}", cut_off(before, *cut.original), cut_off(after, *cut.rewritten)


def digests(program: Path, data: bytes) -> list[list[str]]:
    """The digests of each run's outputs, of inputs that the program draws."""
    with tempfile.TemporaryDirectory() as box:
        Path(box, "model").write_bytes(data)
        done = start(program, box, "--arena", str(_ARENA), "--runs", "2", inputs=False, seconds=_SECONDS)
    if done.returncode:
        raise SystemExit(f"{program.name}: {done.stdout[-500:]} {done.stderr[-500:]}")
    found: list[list[str]] = json.loads(done.stdout)["output_sha256"]
    return found


def swept(path: Path, name: str, folder: Path, objective: str) -> tuple[int, int]:
    """How many files of the rungs of a model were run on one set of kernels, and how many gave something else."""
    program, abi, kernels = KIT[name]
    model, ran, wrong = read_model(path), 0, 0
    goal = Goal(abi=abi, kernels=kernels, objective=objective)
    for rung in climb(load_model(path), goal, proved=False).rungs[1:]:
        for where, before, after in pairs(model, rung.model):
            equal = digests(folder / program, before) == digests(folder / program, after)
            ran, wrong = ran + 1, wrong + (not equal)
            if not equal:
                print(f"{path.name}, {name}, {rung.name} {where}: other outputs", flush=True)
    return ran, wrong


def main() -> int:
    """Runs the rungs of each model on each set of kernels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--kernels", default="cmsis,cmsis-c,cmsis-mve,espnn", help=f"of {', '.join(KIT)}")
    parser.add_argument("--objective", default="arena", choices=("arena", "head"))
    parser.add_argument("--kit", help="folder of the measuring programs (default: $MODELPLAN_TFLM_KIT)")
    arguments = parser.parse_args()
    folder = kit_folder(arguments.kit)
    if folder is None:
        parser.error("no folder of the measuring programs; give --kit or MODELPLAN_TFLM_KIT")
    wrong = 0
    for name in arguments.kernels.split(","):
        for path in arguments.models:
            ran, different = swept(path, name, folder, arguments.objective)
            wrong += different
            print(f"{path.name}, {name}: {ran} files run, {different} with other outputs", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
