"""Which operators of six networks go by rows: what their access maps allow, and what the writers of files take of it.

    python benchmarks/rows.py

A row is a slice along one axis. The map says which rows of its operands a row of the result reads. Stripes of .tflite
and .onnx files and plain C take an operator by rows where they can, and else say why not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
import reporting

from modelplan.model import Graph, Kind, Op
from modelplan.ops.access.rows import ALIKE, RowSpan
from modelplan.plain_c.kernel_records import MissingKernelError, row_axis
from modelplan.plain_c.operator_calls.operator_table import c_operator
from modelplan.rewriting.striped_onnx.layers import likely_axes
from modelplan.rewriting.striped_onnx.writing import reading_of
from modelplan.rewriting.striped_tflite.layers import layer_of
from modelplan.rewriting.stripes.layers import row_spans
from modelplan.rewriting.stripes.row_windows import Layer
from modelplan.runtimes.tflm.file import FileModel, load_tflite

#: The networks, below the corpus.
NETWORKS = (
    "wild/weather_cnn_v3.tflite", "wild/gesture.tflite", "tflite/kws_ref_model.tflite", "tflite/person_detect.tflite",
    "tflite/mcu/mcunet_vww0.tflite", "wild/pixel_shuffle.onnx",
)  # fmt: skip
#: What stands before the tables.
INTRODUCTION = (
    "A row is a slice along one axis of a result: its height, or its width where that is 1. The access map of an",
    "operator says which rows of what is computed before a row reads. Stripes of a rewritten file and plain C take an",
    "operator by rows where its kernel makes the same numbers row by row; else the table says why not.",
    "",
)


@dataclass(frozen=True)
class Line:
    """What a table says of an operator: what its map allows, whether not all rows read all, what each writer does."""

    kind: str
    allows: bool
    reads: str
    stripes: tuple[bool, str]
    c: tuple[bool, str] | None = None

    @property
    def refusals(self) -> Iterator[tuple[str, str]]:
        """The writers that do not take by rows what the map allows, with the reason."""
        for writer, answer in (("stripes", self.stripes), ("plain C", self.c)):
            if self.allows and answer and not answer[0]:
                yield writer, answer[1]


def of_map(span: RowSpan) -> str:
    """What a row reads of an operand, by its span."""
    if span == ALIKE:
        return "all"
    reach, step, along = span.span.hi - span.span.lo + 1, span.span.mul, f" of axis {span.axis}"
    if span.span.table:
        return f"listed rows{along}"
    if span.span.div > 1:
        return f"{-(-reach // span.span.div)}{along}, the same for {span.span.div} rows"
    more = [f"every {step}"] * (step > 1) + [f"{-span.span.lo} above"] * (span.span.lo < 0)
    return f"{reach}{along}" + (f" ({', '.join(more)})" if more else "")


def allowed(graph: Graph, op: Op, axis: int) -> tuple[bool, str]:
    """Whether not all rows of the result along an axis read all of the computed operands, and what each reads."""
    if axis < 0:
        return False, "a single row"
    spans = row_spans(graph, op, axis)
    if spans is None:
        return False, "all"
    computed = [at for at, t in enumerate(op.inputs) if t >= 0 and graph.tensors[t].kind is not Kind.CONSTANT]
    read = [spans.get(at, ALIKE) for at in computed]
    return any(span != ALIKE for span in read), "; ".join(dict.fromkeys(map(of_map, read))) or "constants"


def of_stripes(layer: Layer | str, axis: int) -> tuple[bool, str]:
    """What stripes say of an operator whose result has its rows along an axis."""
    if axis < 0:
        return False, "nothing to cut"
    if isinstance(layer, str):
        return False, layer
    return True, "rows" if set(layer.axes) <= {axis} else f"rows of axis {layer.axes[0]}"


def of_c(model: FileModel, index: int) -> tuple[bool, str]:
    """What plain C does with an operator."""
    try:
        operator = c_operator(model, index)
    except MissingKernelError as refusal:
        return False, str(refusal).split("has no plain C: ")[-1].split(";")[0]
    if operator.view:
        return True, "no code"
    if operator.by_rows:
        reach = [o.window.reach for o in operator.operands if o.window]
        return True, f"rows, {max(reach)} at a time" if max(reach, default=1) > 1 else "rows"
    return False, f"its kernel makes the whole map ({operator.kernels[0].source})" if operator.kernels else "no code"


def of_tflite(path: Path) -> Iterator[Line]:
    """A line for each operator of a .tflite file."""
    graph, model = reporting.graph_of(path), load_tflite(str(path))
    for index, op in enumerate(graph.ops):
        shape = graph.tensors[op.outputs[0]].shape if op.writes else ()
        axis = row_axis(shape)
        stripes = of_stripes(layer_of(graph, index, max(axis, 1)), axis)
        yield Line(op.kind, *allowed(graph, op, axis), stripes, of_c(model, index))


def of_onnx(path: Path) -> Iterator[Line]:
    """A line for each operator of an .onnx file."""
    graph = reporting.graph_of(path)
    reading = reading_of(onnx.load(path), graph)
    for index, op in enumerate(graph.ops):
        axes = likely_axes(graph.tensors[op.outputs[0]].shape) if op.writes else []
        axis = axes[0] if axes else -1
        yield Line(op.kind, *allowed(graph, op, axis), of_stripes(reading.layer_of(index, axis), axis))


def page(corpus: Path) -> Iterator[str]:
    """The tables of all networks, and why writers do not take what maps allow."""
    known: list[Line] = []
    for name in NETWORKS:
        path = corpus / name
        lines = list(of_onnx(path) if path.suffix == ".onnx" else of_tflite(path))
        reporting.progress(f"{name}: {len(lines)} operators")
        yield from network(name, lines)
        known += lines
    yield "## Allowed by maps and not taken"
    yield ""
    yield f"Of all {len(known)} operators {counts(known)}"
    yield ""
    refused = Counter((writer, line.kind, reason) for line in known for writer, reason in line.refusals)
    rows = [(writer, kind, count, reason) for (writer, kind, reason), count in sorted(refused.items())]
    yield from reporting.table(("writer", "operator", "operators", "reason"), rows, "<<><")


def counts(lines: Sequence[Line]) -> str:
    """Of how many operators maps allow rows, and how many of these each writer takes."""
    allows = [line for line in lines if line.allows]
    c = [line.c[0] for line in allows if line.c]
    taken = f"maps allow rows of {len(allows)}, of which stripes take {sum(line.stripes[0] for line in allows)}"
    return taken + (f", and plain C {sum(c)} of {len(c)} of .tflite files." if c else ".")


def network(name: str, lines: list[Line]) -> Iterator[str]:
    """The table of a network, operators of which the same is said in one row."""
    yield f"## {Path(name).name}"
    yield ""
    yield f"Of {len(lines)} operators {counts(lines)}"
    yield ""
    alike: dict[Line, list[int]] = {}
    for index, line in enumerate(lines):
        alike.setdefault(line, []).append(index)
    rows = [
        (line.kind, ", ".join(map(str, found)), line.reads, line.stripes[1], *([line.c[1]] if line.c else []))
        for line, found in alike.items()
    ]
    headings = ("operator", "numbers", "a row reads", "stripes", *(["plain C"] if lines[0].c else []))
    yield from reporting.table(headings, rows, "<" * len(headings))
    yield ""


PARSER = reporting.command_line(__file__, __doc__, "rows.md")


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    lines = [*INTRODUCTION, *page(arguments.corpus)]
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Operators by rows", lines)


if __name__ == "__main__":
    main()
