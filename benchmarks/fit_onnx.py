"""Shows what fit makes of ONNX models: bytes that ONNX Runtime allocates before and after, time, and equality.

    python benchmarks/fit_onnx.py [--level LEVEL] [--only NAME,...]

The networks of models/onnx_nets.py, with random weights, are made in a temporary folder. Each file runs in processes of
its own under an allocation trace; figures are MiB above what the model's session needs. Needs the extra `verify`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import onnx
import reporting

sys.path.insert(0, str(reporting.ROOT / "models"))
import onnx_nets

from modelplan.rewriting.striped_onnx.ladder import Goal, Ladder, Rung, climb
from modelplan.runtimes.ort.measuring import LEVELS, Settings, measure, ort_version

#: How much lower the file in stripes is to be, and the most time that it may take, as a multiple.
GOALS = {"transformer": 4.0}
USUAL_GOAL, MOST_TIME = 3.0, 1.25
_COLUMNS = (
    "model", "defaults before", "after", "lower", "arena off before", "after", "lower", "goal", "MACs", "time", "nodes",
    "outputs",
)  # fmt: skip


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments, f" with ONNX Runtime {ort_version()}, x86-64, one thread")
    title = f"Fit for ONNX: what ONNX Runtime allocates, optimization level {arguments.level}"
    names = arguments.only.split(",") if arguments.only else list(onnx_nets.NETS)
    reporting.save(arguments.output, first, title, page(names, arguments.level, arguments.tolerance))


def page(names: list[str], level: str, tolerance: float) -> Iterator[str]:
    """The lines of the report."""
    rows: list[list[object]] = []
    stripes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder) / f"{name}.onnx"
            onnx.save(onnx_nets.NETS[name](), path)
            ladder = fitted(path, level, tolerance)
            rows.append(row(name, path, ladder, level))
            stripes += described(name, ladder)
            reporting.progress(reporting.row_line(rows[-1]))
    yield "MiB above what the loaded session of the model needs, the larger of the first and of later runs; weights and"
    yield "inputs are not among them, but what the new file's session needs more than the model's is, such as weights"
    yield "packed for each stripe. Defaults: arena and memory patterns on. Time: processor time of the quickest of some"
    yield f"runs, the two files in turn, arena off. Outputs: on random and extreme inputs; a tolerance of {tolerance:g}"
    yield "units of the last place of an output's largest value was allowed."
    yield ""
    yield from reporting.table(_COLUMNS, rows, "<" + ">" * 6 + "<" + ">" * 3 + "<")
    yield ""
    yield "## Stripes"
    yield ""
    yield from stripes


def fitted(path: Path, level: str, tolerance: float) -> Ladder:
    """The ladder of a file, to the least that is found with the arena off."""
    goal = Goal(settings=Settings(level=level), tolerance=tolerance, without=frozenset({"order"}))
    return climb(str(path), reporting.graph_of(path), goal, lambda text: reporting.progress(f"{path.stem}: {text}"))


def best(ladder: Ladder) -> Rung | None:
    """The rung in stripes that needs least with the arena off."""
    found = [rung for rung in ladder.rungs if rung.name == "split"]
    return min(found, key=lambda rung: rung.best.peak, default=None)


def row(name: str, path: Path, ladder: Ladder, level: str) -> list[object]:
    """One line of the table."""
    graph = reporting.graph_of(path)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    usual = ladder.rungs[0].usual.peak
    off = measure(path, shapes, Settings(level=level, arena="off", pattern=False)).peak
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


def described(name: str, ladder: Ladder) -> Iterator[str]:
    """What was done to a model, as a list."""
    rung = best(ladder)
    if rung:
        yield f"* {name}: {'; '.join(rung.regions)}. At {rung.settings.described()}; {rung.what}."
    yield from (f"* {name}, not taken: {remark}" for remark in ladder.remarks)


def mib(size: int) -> str:
    """Bytes as MiB."""
    return f"{size / 2**20:.2f}"


PARSER = reporting.command_line(__file__, __doc__, "fit_onnx.md", corpus=False)
PARSER.add_argument("--level", choices=LEVELS, default="extended", help="graph optimization level (default: extended)")
PARSER.add_argument("--tolerance", type=float, default=0.0, help="units of the last place (default: 0)")
PARSER.add_argument("--only", default="", help="networks, separated by commas")

if __name__ == "__main__":
    main()
