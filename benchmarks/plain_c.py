"""Models as plain C: the memory and code that a compiler gives them, beside TFLM's arena.

    python benchmarks/plain_c.py

For each model `fit --runtime c` writes a C file, held and by rows, which is compiled for this machine and run beside
TFLM's reference kernels on random and on extreme inputs, with sanitizers.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import reporting
from mobilenet_v2 import mobilenet_v2

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier.c_execution import execute_c
from modelplan.primitives.errors import ModelPlanError
from modelplan.rewriting.standalone_c.ladder import CRung
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, load_tflite

#: Models of the corpus; those with an input of rows also by rows.
MODELS = (
    "person_detect", "vww_96_int8", "pretrainedResnet_quant", "kws_ref_model", "str_ww_ref_model", "ad01_int8",
    "mcu/mcunet_vww0", "mcu/micronet_vww2", "mcu/micronet_vww3", "mcu/kws_cnn_l", "mcu/kws_micronet_l",
    "mcu/ad_micronet_large", "wakeword/okay_nabu", "wakeword/alexa", "wakeword/vad",
    "../camera/fomo_face_detection",
)  # fmt: skip
#: MobileNetV2 of this width, for pictures of this size, with drawn weights.
GENERATED = ((0.35, 144), (1.0, 224))
BY_ROWS = ("person_detect", "vww_96_int8", "mcu/mcunet_vww0", "mcu/micronet_vww3", "../camera/fomo_face_detection")
_FLAGS = ("-std=c99", "-Os", "-fno-pic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
_HEAD = (
    "Bytes. `TFLM` is the arena on a Cortex-M with CMSIS-NN's DSP kernels; `RAM` is .data and .bss of the object, code",
    "and tables are its .text and .rodata on x86-64 at -Os. The bound is that of all choices of what runs together.",
    "`cmsis-dsp` is the RAM with kernels of CMSIS-NN, their working memory included. MobileNetV2 has drawn weights.",
    "",
)

PARSER = reporting.command_line(__file__, __doc__, "plain_c.md")


@dataclass(frozen=True)
class Compiled:
    """A model as plain C: the chosen rung, the sections of the object, and whether it computes what TFLM does."""

    rung: CRung
    ram: int
    flash: int
    equal: str


def compiled(path: Path, model: FileModel, *, pushed: bool) -> Compiled:
    """The C of a model, compiled and run."""
    ladder = fit_c(FitCRequest(str(path), pushed=pushed))
    if ladder.chosen is None:
        raise TypeError("a ladder without a budget chose nothing")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "net.c").write_text(ladder.chosen.files.source)
        (folder / "net.h").write_text(ladder.chosen.files.header)
        subprocess.run(["cc", *_FLAGS, "-c", "net.c", "-o", "net.o"], cwd=folder, check=True)
        listed = subprocess.run(["size", "-A", "net.o"], cwd=folder, check=True, capture_output=True, text=True).stdout
        try:
            execute_c(model, folder / "net.c")
            equal = "bit-equal"
        except ModelPlanError as problem:
            equal = f"DIFFERS: {problem}"
    sizes = {name: int(size) for name, size in re.findall(r"^(\.\S+)\s+(\d+)", listed, re.MULTILINE)}
    ram = sum(size for name, size in sizes.items() if name.startswith((".data", ".bss")))
    flash = sum(size for name, size in sizes.items() if name.startswith((".text", ".rodata")))
    return Compiled(ladder.chosen, ram, flash, equal)


def rows(corpus: Path) -> Iterator[tuple[str, ...]]:
    """A line of the table for each model, held and by rows."""
    for name in MODELS:
        yield from _rows(corpus / "tflite" / f"{name}.tflite", by_rows=name in BY_ROWS)
    with tempfile.TemporaryDirectory() as folder:
        for width, size in GENERATED:
            path = Path(folder) / f"mobilenet_v2_{width}_{size}.tflite"
            path.write_bytes(mobilenet_v2(width, size))
            yield from _rows(path, by_rows=True)


def _rows(path: Path, *, by_rows: bool) -> Iterator[tuple[str, ...]]:
    model = load_tflite(path)
    tflm = arena(model, "cortex-m", "cmsis-dsp").size()
    for pushed in (False, True) if by_rows else (False,):
        reporting.progress(f"{path.stem}{' by rows' if pushed else ''}")
        one = compiled(path, model, pushed=pushed)
        least = one.rung.ram - one.rung.program.nbytes + (one.rung.bound or one.rung.program.bound)
        library = fit_c(FitCRequest(str(path), pushed=pushed, kernels="cmsis-dsp")).chosen
        sizes = (tflm, one.ram, least, one.rung.ram - least, library.ram if library else 0, one.flash)
        yield (path.stem, "by rows" if pushed else "held", *map("{:,}".format, sizes), one.equal)


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    headings = ("model", "input", "TFLM", "RAM", "bound", "above", "cmsis-dsp", "code and tables", "outputs")
    table = reporting.table(headings, rows(arguments.corpus), "<<>>>>>><")
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Models as plain C", [*_HEAD, *table])


if __name__ == "__main__":
    main()
