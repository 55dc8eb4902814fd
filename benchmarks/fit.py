"""What fit makes of real models: python benchmarks/fit.py CORPUS [--write FOLDER] > reports/fit.md

Each model is rewritten for the least head and for the least arena on 64 bits, executed on the tflite-micro wheel (extra
`tflm`) and compared with itself. With --write the rewritten files are kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from modelplan.rewriting.ladder import Ladder, fit
from modelplan.rewriting.rungs import Rung
from modelplan.runtimes.tflm.runner import run_tflm, tflm_version

MODELS = (
    "vww_96_int8", "pretrainedResnet_quant", "kws_ref_model", "person_detect", "mcu/mcunet_vww0", "mcu/micronet_vww2",
    "mcu/micronet_vww3", "mcu/kws_cnn_l", "mcu/kws_micronet_l",
)  # fmt: skip

_COLUMNS = (
    "head before", "head", "arena before", "arena", "MACs", "operators before", "operators", "file", "stripes",
)  # fmt: skip


def main() -> None:
    """Writes the page to standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where the rewritten files go")
    arguments = parser.parse_args()
    sys.stdout.write("\n".join(page(arguments.corpus, arguments.write)) + "\n")


def page(corpus: Path, folder: Path | None) -> Iterator[str]:
    """The lines of the report."""
    yield "# Fit: heads and arenas below the working set of one operator"
    yield ""
    yield (
        f"Bytes, 64-bit addresses, reference kernels, input counted, at most 10 % more multiply-accumulates; every row"
        f" was executed on tflite-micro {tflm_version()} with outputs equal to the model's, bit for bit."
    )
    for objective in ("head", "arena"):
        yield ""
        yield f"## Least {objective}"
        yield ""
        yield f"| model | {' | '.join(_COLUMNS)} |"
        yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"
        for name in MODELS:
            yield row(corpus / "tflite" / f"{name}.tflite", objective, folder)


def row(source: Path, objective: str, folder: Path | None) -> str:
    """One model of the table.

    Raises:
        SystemExit: the outputs differ.
    """
    ladder = fit(source, objective=objective, abi="64")
    before, after = ladder.rungs[0], ladder.chosen or ladder.rungs[0]
    if run_tflm(after.model).outputs != run_tflm(before.model).outputs:
        raise SystemExit(f"{source}: outputs differ")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{source.stem}.{objective}.tflite").write_bytes(after.model)
    return described(source.stem, before, after, ladder)


def described(name: str, before: Rung, after: Rung, ladder: Ladder) -> str:
    """The cells of a row."""
    work = 100 * (after.macs - ladder.macs) / max(ladder.macs, 1)
    cells = [
        name, f"{before.head:,}", f"{after.head:,}", f"{before.arena:,}", f"{after.arena:,}", f"{work:+.1f} %",
        f"{before.ops}", f"{after.ops}", f"{len(after.model) - len(before.model):+,}", "; ".join(after.regions),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
