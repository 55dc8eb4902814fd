"""The camera's networks as plain C with inputs and outputs of 8 bits: which become C, and what they need.

    python benchmarks/plain_c_camera.py

Each network is written by `fit --runtime c --interface int8`, proved, compiled with sanitizers and run beside TFLM's
reference kernels on random and on extreme inputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path

import reporting

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier.c_execution import execute_c
from modelplan.plain_c.ladder import CLadder
from modelplan.primitives.errors import ModelPlanError, RequestError
from modelplan.questions.c_fitting import with_stated_interface
from modelplan.runtimes.tflm.file import load_tflite

#: The networks, and the rungs that are left out: the largest takes long to plan row by row.
MODELS = {
    "blazeface_front_128": (), "fomo_face_detection": (), "yolo_lc_192": (), "palm_detection_full_192": (),
    "yolov8n_192": (), "yolox_nano_int8": ("rows", "parts"),
}  # fmt: skip
_RUNGS = ("maps", "overlaps", "rows", "parts")
_HEAD = (
    "Bytes of static memory by rungs, input held; a dash is a rung that was not tried. The bound is that of all",
    "choices of what runs together, with rows in parts where these were tried; `ends` says why some keep their type.",
    "",
)

PARSER = reporting.command_line(__file__, __doc__, "plain_c_camera.md")


def ladder_of(path: Path, without: Sequence[str]) -> tuple[CLadder, str]:
    """The rungs of a network, and what its inputs and outputs are."""
    rungs = frozenset(without)
    try:
        return fit_c(FitCRequest(str(path), interface="int8", without=rungs, time_per_ram=inf)), "int8"
    except RequestError as problem:
        return fit_c(FitCRequest(str(path), without=rungs, time_per_ram=inf)), str(problem).rpartition(": ")[2]


def rows(corpus: Path) -> Iterator[tuple[str, ...]]:
    """A line of the table for each network."""
    for name, without in MODELS.items():
        reporting.progress(name)
        path = corpus / "camera" / f"{name}.tflite"
        ladder, ends = ladder_of(path, without)
        if ladder.chosen is None:
            raise TypeError("a ladder without a budget chose nothing")
        needs = {rung.name: f"{rung.ram:,}" for rung in ladder.rungs}
        bound = f"{ladder.chosen.bound:,}" if ladder.chosen.bound else "-"
        columns = [needs.get(rung, "-") for rung in _RUNGS]
        yield (name, *columns, bound, f"{ladder.chosen.flash:,}", _equal(path, ladder), ends)


def _equal(path: Path, ladder: CLadder) -> str:
    """Whether the chosen rung computes what TFLM does."""
    if ladder.chosen is None:
        raise TypeError("nothing to run")
    files = ladder.chosen.files
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "net.c"
        source.write_text(files.source)
        source.with_suffix(".h").write_text(files.header)
        try:
            execute_c(with_stated_interface(load_tflite(path), str(path), files.header), source)
        except ModelPlanError as problem:
            return f"DIFFERS: {problem}"
    return "bit-equal"


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    headings = ("model", *_RUNGS, "bound", "tables", "outputs", "ends")
    table = reporting.table(headings, rows(arguments.corpus), "<>>>>>><<")
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "The camera's networks as plain C", [*_HEAD, *table])


if __name__ == "__main__":
    main()
