"""Shows what fit makes of ONNX models: bytes that ONNX Runtime allocates before and after, time, and equality.

    python benchmarks/fit_onnx.py [--level LEVEL] [--only NAME,...] [--ocr PATH] [--rows FILE]

The networks of models/onnx_nets.py, with random weights, are made in a temporary folder. Each file runs in processes of
its own under an allocation trace; figures are MiB above what the model's session needs. Needs the extra `verify`.
`--ocr` adds a model from outside, ch_PP-OCRv4_det_infer.onnx of the package rapidocr-onnxruntime 1.4.4, at 640 x 640.
With `--rows` each network's lines are kept in a file as soon as they are there, and a second start goes on behind them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import onnx
import reporting

sys.path.insert(0, str(reporting.ROOT / "models"))
import onnx_nets
from traced_peaks import peak_contents

from modelplan.rewriting.striped_onnx.ladder import OnnxGoal, OnnxLadder, OnnxRung, climb
from modelplan.rewriting.striped_onnx.writing import parsed, write_bound
from modelplan.runtimes.ort.measuring import LEVELS, SessionSettings, measure, ort_version

#: How much lower the file in stripes is to be, and the most time that it may take, as a multiple.
GOALS = {"transformer": 4.0, "yolo": 2.0}
USUAL_GOAL, MOST_TIME = 3.0, 1.25
#: The model of `--ocr`, and what its input is bound to.
OCR, OCR_INPUT = "pp_ocr_detector", {"x": (1, 3, 640, 640)}
#: Bytes of values of one operator that are told.
_LEAST = 10_000
_COLUMNS = (
    "model", "defaults before", "after", "lower", "arena off before", "after", "lower", "goal", "MACs", "time", "nodes",
    "outputs",
)  # fmt: skip


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    if arguments.ocr and not arguments.ocr.is_file():
        PARSER.error(f"no file at {arguments.ocr}: --ocr names ch_PP-OCRv4_det_infer.onnx")
    first = reporting.made_by(PARSER, arguments, f" with ONNX Runtime {ort_version()}, x86-64, one thread")
    title = f"Fit for ONNX: what ONNX Runtime allocates, optimization level {arguments.level}"
    there = [*onnx_nets.NETS, *[OCR] * bool(arguments.ocr)]
    names = arguments.only.split(",") if arguments.only else there
    unknown = [name for name in names if name not in there]
    if unknown:
        PARSER.error(f"no network {unknown[0]!r}; there are: {', '.join(there)}")
    reporting.save(arguments.output, first, title, page(names, arguments))


def page(names: list[str], arguments: argparse.Namespace) -> Iterator[str]:
    """The lines of the report."""
    rows: list[list[object]] = []
    stripes: list[str] = []
    contents: list[list[object]] = []
    level, tolerance, kept = arguments.level, arguments.tolerance, arguments.rows
    done = json.loads(kept.read_text()) if kept and kept.exists() else {}
    for name in names:
        key = f"{name} {level} {tolerance:g} {ort_version()}"
        if key not in done:
            done[key] = network(name, arguments)
            if kept:
                kept.write_text(json.dumps(done))
        found, said, left = done[key]
        rows.append(found)
        stripes += said
        contents += left
        reporting.progress(reporting.row_line(found))
    yield "MiB above what the loaded session of the model needs, the larger of the first and of later runs; weights and"
    yield "inputs are not among them, but what the new file's session needs more than the model's is, such as weights"
    yield "packed for each stripe. Defaults: arena and memory patterns on. Time: processor time of the quickest of some"
    yield f"runs, the two files in turn, arena off. Outputs: on random and extreme inputs; a tolerance of {tolerance:g}"
    yield "units of the last place of an output's largest value was allowed."
    if OCR in names:
        yield f"`{OCR}` is ch_PP-OCRv4_det_infer.onnx of the package rapidocr-onnxruntime 1.4.4 at 640 x 640."
    else:
        yield "The detector of PP-OCR, a model from outside, is not among them: `--ocr PATH` adds it."
    yield ""
    yield from reporting.table(_COLUMNS, rows, "<" + ">" * 6 + "<" + ">" * 3 + "<")
    yield ""
    yield "## What is left at the peak"
    yield ""
    yield "MiB of a later run with the arena off, by operator: what the running one asked for (output and workspace),"
    yield "what others made before, and weights that the new file's session keeps beyond those of the model's."
    yield ""
    yield from reporting.table(("model", "file", "running", "its own", "made before", "weights"), contents, "<<<><>")
    yield ""
    yield "## Stripes"
    yield ""
    yield from stripes


def network(name: str, arguments: argparse.Namespace) -> tuple[list[object], list[str], list[list[object]]]:
    """A network's line of the table, what was done to it, and what is left at the peak."""
    level, tolerance = arguments.level, arguments.tolerance
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / f"{name}.onnx", Path(folder) / "out.onnx"
        if name == OCR:
            path.write_bytes(write_bound(parsed(arguments.ocr), OCR_INPUT))
        else:
            onnx.save(onnx_nets.NETS[name](), path)
        ladder = fitted(path, level, tolerance)
        found, left = row(name, path, ladder, level), [at_peak(name, path, level)]
        rung = best(ladder)
        if rung and rung.model:
            out.write_bytes(rung.model)
            left.append(at_peak(name, path, level, out))
    return found, list(described(name, ladder)), left


def at_peak(name: str, path: Path, level: str, out: Path | None = None) -> list[object]:
    """What is allocated at the peak of the model, or of the file `out` made of it."""
    graph = reporting.graph_of(path)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    found = peak_contents(out or path, shapes, level)
    settings = SessionSettings(level=level, arena="off", pattern=False)
    before, after = (measure(file, shapes, settings, runs=1).session for file in (path, out or path))
    others = sorted(found.others.items(), key=lambda pair: -pair[1])
    made = ", ".join(f"{kind} {mib(size)}" for kind, size in others if size >= _LEAST) or "-"
    return [name, "in stripes" if out else "as is", found.running, mib(found.own), made, mib(max(after - before, 0))]


def fitted(path: Path, level: str, tolerance: float) -> OnnxLadder:
    """The ladder of a file, to the least that is found with the arena off."""
    goal = OnnxGoal(settings=SessionSettings(level=level), tolerance=tolerance, without=frozenset({"order"}))
    return climb(str(path), reporting.graph_of(path), goal, lambda text: reporting.progress(f"{path.stem}: {text}"))


def best(ladder: OnnxLadder) -> OnnxRung | None:
    """The rung in stripes that needs least with the arena off."""
    found = [rung for rung in ladder.rungs if rung.name == "split"]
    return min(found, key=lambda rung: rung.best.peak, default=None)


def row(name: str, path: Path, ladder: OnnxLadder, level: str) -> list[object]:
    """One line of the table."""
    graph = reporting.graph_of(path)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    usual = ladder.rungs[0].usual.peak
    off = measure(path, shapes, SessionSettings(level=level, arena="off", pattern=False)).peak
    rung = best(ladder)
    if rung is None:
        return [name, mib(usual), "-", "-", mib(off), "-", "-", "missed", "-", "-", "-", "; ".join(ladder.remarks[:1])]
    lower = usual / rung.usual.peak, off / rung.best.peak
    goal = GOALS.get(name, USUAL_GOAL)
    met = [word for word, missed in (
        ("defaults", lower[0] < goal), ("arena off", lower[1] < goal), ("time", rung.seconds > MOST_TIME)
    ) if missed]  # fmt: skip
    assert rung.difference is not None
    return [
        name, mib(usual), mib(rung.usual.peak), f"{lower[0]:.1f} x", mib(off), mib(rung.best.peak), f"{lower[1]:.1f} x",
        f"missed: {', '.join(met)}" if met else "met", f"{100 * (rung.macs / ladder.macs - 1):+.1f} %",
        f"x {rung.seconds:.2f}", rung.nodes,
        "equal" if not rung.difference.ulps else f"{rung.difference.ulps:.3g} ulp",
    ]  # fmt: skip


def described(name: str, ladder: OnnxLadder) -> Iterator[str]:
    """What was done to a model, as a list."""
    rung = best(ladder)
    if rung:
        yield f"* {name}: {'; '.join(rung.stretches)}. At {rung.settings.described()}; {rung.what}."
    yield from (f"* {name}, not taken: {remark}" for remark in ladder.remarks)


def mib(size: int) -> str:
    """Bytes as MiB."""
    return f"{size / 2**20:.2f}"


PARSER = reporting.command_line(__file__, __doc__, "fit_onnx.md", corpus=False)
PARSER.add_argument("--level", choices=LEVELS, default="extended", help="graph optimization level (default: extended)")
PARSER.add_argument("--tolerance", type=float, default=0.0, help="units of the last place (default: 0)")
PARSER.add_argument("--rows", type=Path, help="a file that keeps what is done")
PARSER.add_argument("--ocr", type=Path, metavar="PATH", help="ch_PP-OCRv4_det_infer.onnx, measured too")
PARSER.add_argument("--only", default="", help="networks, separated by commas")

if __name__ == "__main__":
    main()
