"""What sessions of ONNX Runtime take from the heap, predicted and measured, at the defaults and without an arena.

    python benchmarks/sessions.py [--large]

The project's models, the zoo of the onnx package with made-up weights, and generated networks run at optimization level
off, each in processes of its own. Measured is every block of the heap, the session's own bookkeeping too; predicted is
what `modelplan analyze --measure 0` says. Exit code 1 where a prediction is wrong by more than is said.
Needs the extra `verify`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import reporting

sys.path.append(str(reporting.ROOT / "tests" / "sweeps"))
from session_models import session_models

from modelplan import ModelError
from modelplan.formats import load_as_run
from modelplan.planning.session_heap import HeapNeed, UnpredictableError, predicted_heap
from modelplan.runtimes.ort import ORT
from modelplan.runtimes.ort.measuring import Measured, MeasuringLimits, SessionSettings, measure_each, ort_version
from modelplan.runtimes.ort.session_shapes import session_extents

#: Models of the zoo whose weights take a hundred megabytes and more.
LARGE = ("light_vgg19", "light_bvlc_alexnet", "light_zfnet512")
SETTINGS = {
    "defaults": SessionSettings(level="disable"),
    "arena off": SessionSettings(level="disable", arena="off"),
}
#: A prediction may be wrong by this share; of small models it may be below by so many bytes, and above.
SHARE, BELOW, ABOVE = 0.01, 4096, 8192


@dataclass(frozen=True)
class Row:
    """One model at one setting: bytes of the first run and of later ones, or why there is no prediction."""

    kind: str
    name: str
    setting: str
    measured: Measured | None
    predicted: HeapNeed | None
    reason: str = ""

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Predicted and measured bytes of the first run and of later ones."""
        if self.predicted is None or self.measured is None:
            return []
        return list(zip((self.predicted.first, self.predicted.later), self.measured.heap, strict=True))

    @property
    def wrong(self) -> bool:
        """Whether a prediction is wrong by more than is said."""
        return any(a < b - max(SHARE * b, BELOW) or a > b + max(SHARE * b, ABOVE) for a, b in self.pairs)


def rows_of(kind: str, name: str, path: Path, dims: Sequence[str]) -> Iterator[Row]:
    """The rows of one model."""
    graph = load_as_run(path, dims)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    extents = session_extents(str(path), graph)
    try:
        measured = measure_each(path, shapes, list(SETTINGS.values()), MeasuringLimits(600, 1 << 40))
    except ModelError as problem:
        yield Row(kind, name, "", None, None, str(problem))
        return
    for (setting, settings), found in zip(SETTINGS.items(), measured, strict=True):
        try:
            need = predicted_heap(graph, ORT, arena=settings.arena != "off", extents=extents)
            yield Row(kind, name, setting, found, need)
        except UnpredictableError as problem:
            yield Row(kind, name, setting, found, None, str(problem))


def error(predicted: int, measured: int) -> str:
    """By how much a prediction is above what was measured."""
    return f"{100 * (predicted / measured - 1):+.2f} %"


def page(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of the report."""
    known = [row for row in rows if row.pairs]
    models = {(row.kind, row.name) for row in known}
    pairs = [pair for row in known for pair in row.pairs]
    near = sum(abs(a - b) <= SHARE * b for a, b in pairs)
    exact = sum(
        (row.predicted.first_tensors, row.predicted.later_tensors) == (row.measured.first, row.measured.steady)
        for row in known
        if row.predicted and row.measured
    )
    below = min((a / b - 1, a - b) for a, b in pairs)
    yield f"{len(models)} models are predicted at one setting or both. Of {len(pairs)} figures {near} are within"
    wrong = sum(row.wrong for row in known)
    rest = f"all rows but {wrong}" if wrong else "all"
    yield f"{100 * SHARE:.0f} % of what was measured, {rest} within that or"
    lowest = f"the lowest is {100 * below[0]:+.2f} % ({below[1]:+,} bytes)"
    yield f"{BELOW:,} bytes below and {ABOVE:,} above; {lowest}. The bytes of tensors alone"
    yield f"are predicted to the byte for {exact} of {len(known)} rows. *Own* is the part of later runs that is the"
    yield "session's own bookkeeping; *first* and *later* are all bytes above what the loaded session holds, in later"
    yield "runs with the outputs of the run before, as a loop over `out = session.run(...)` keeps them."
    yield ""
    heads = ("kind", "model", "setting", "first", "predicted", "error", "later", "predicted", "error", "own")
    yield from reporting.table(heads, (line(row) for row in rows if row.measured), "<<<>>>>>>>")
    if missing := [row for row in rows if row.reason]:
        yield ""
        yield "Without a prediction:"
        yield ""
        yield from (f"* {row.kind}, {row.name}, {row.setting or 'not run'}: {row.reason}" for row in missing)


def line(row: Row) -> list[object]:
    """One line of the table."""
    assert row.measured is not None
    heap, own = row.measured.heap, row.measured.heap[1] - row.measured.steady
    if not row.pairs:
        return [row.kind, row.name, row.setting, f"{heap[0]:,}", "", "", f"{heap[1]:,}", "", "", f"{own:,}"]
    cells = [text for a, b in row.pairs for text in (f"{b:,}", f"{a:,}", error(a, b))]
    return [row.kind, row.name, row.setting, *cells, f"{own:,}"]


PARSER = reporting.command_line(__file__, __doc__, "sessions.md", corpus=False)
PARSER.add_argument("--large", action="store_true", help="with the models whose weights take a hundred megabytes")


def main() -> int:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, path, dims in session_models(Path(folder)):
            if arguments.large or name not in LARGE:
                rows += rows_of(kind, name, path, dims)
                reporting.progress(
                    f"{kind}, {name}: {'wrong' if rows[-1].wrong else rows[-1].reason or 'as predicted'}"
                )
    first = reporting.made_by(PARSER, arguments, f" with ONNX Runtime {ort_version()}, x86-64, one thread")
    reporting.save(arguments.output, first, "Sessions of ONNX Runtime, predicted and measured", page(rows))
    return int(any(row.wrong for row in rows))


if __name__ == "__main__":
    sys.exit(main())
