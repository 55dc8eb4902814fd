"""Prints the digests of what TFLM logs of its memory plans, for tests/golden/tflm_logs.txt.

    python tests/sweeps/tflm_logs.py PROGRAM MODEL... > tests/golden/tflm_logs.txt

PROGRAM runs a model as `PROGRAM MODEL --arena BYTES --runs 0` on a 64-bit TFLM with the reference kernels, built with
TF_LITE_SHOW_MEMORY_USE. A program that keeps only the beginning of a long log gives the digest of its whole lines.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: Lines of GreedyMemoryPlanner::PrintMemoryPlan.
_ROW = re.compile(r"^. \(id=(\d+)\): size=\d+, offset=-?\d+, first_used=-?\d+ last_used=-?\d+$")
_SCOPE = re.compile(r"^ *(\d+): .{80} \(\d+k\)$")
_ARENA = 64 << 20


def line_of(name: str, log: str, *, first: int = 0) -> str:
    """The golden line of a model: its name, the lines of its log, their digest; of a cut log its `first` lines."""
    kept = "".join(log.splitlines(keepends=True)[: first or None])
    which = f"first {first}" if first else f"{kept.count(chr(10))}"
    return f"{name}: {which} lines, {hashlib.sha256(kept.encode()).hexdigest()[:32]}"


def is_whole(log: str) -> bool:
    """Whether a log has a line for each scope of its buffers."""
    last = [int(number) for number in re.findall(r" last_used=(-?\d+)$", log, re.MULTILINE)]
    return len(re.findall(r"^ *\d+: ", log, re.MULTILINE)) == max(last, default=0) + 1


def logged(program: Path, model: Path) -> str:
    """What TFLM logs of its first plan of a model; nothing where it makes none."""
    command = [str(program.resolve()), str(model), "--arena", str(_ARENA), "--runs", "0"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=300)
    found: list[str] = []
    mapped = False
    for line in (done.stdout + done.stderr).splitlines():
        if _SCOPE.match(line):
            mapped = True
        elif not _ROW.match(line):
            continue
        elif mapped:
            break  # the next plan begins
        found.append(line)
    return "".join(f"{line}\n" for line in found)


def main(words: Sequence[str]) -> None:
    program, *models = map(Path, words)
    for model in models:
        if log := logged(program, model):
            print(line_of(model.name, log, first=0 if is_whole(log) else log.count("\n")))
        else:
            print(f"{model.name}: no plan")


if __name__ == "__main__":
    main(sys.argv[1:])
