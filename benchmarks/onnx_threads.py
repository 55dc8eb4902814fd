"""What ONNX Runtime allocates with 1, 2 and 4 threads, before and after fit, and what is predicted for one thread.

    python benchmarks/onnx_threads.py [--only NAME,...]

A network is fitted once for four threads at level extended; model and file then run with each number of threads, arena
and memory patterns off, in processes of their own. Outputs are compared with the model's on as many threads. The
prediction is that of `modelplan analyze`, measured at levels off and basic. Needs the extra `verify`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import reporting

sys.path.insert(0, str(reporting.ROOT / "models"))
import onnx_nets

from modelplan import Graph, load
from modelplan.planning.session_blocks import session_peak
from modelplan.rewriting.striped_onnx.comparing import compare_outputs
from modelplan.rewriting.striped_onnx.ladder import OnnxGoal, climb
from modelplan.runtimes.ort import ORT
from modelplan.runtimes.ort.measuring import SessionSettings, measure, ort_version
from modelplan.runtimes.ort.shapes import unknown_tensors

THREADS = (1, 2, 4)
NETS: dict[str, Callable[[], Any]] = {
    "mobilenet_v2": onnx_nets.mobilenet_v2,
    "transformer, 512 tokens": lambda: onnx_nets.transformer(512),
    "unet, 128 x 128": lambda: onnx_nets.unet(128, 16),
}


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    threads: list[list[object]] = []
    predicted: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in NETS.items():
            if not arguments.only or any(name.startswith(part) for part in arguments.only.split(",")):
                measured(name, make(), Path(folder), threads, predicted)
                reporting.progress(str(threads[-1]) + str(predicted[-2:]))
    first = reporting.made_by(PARSER, arguments, f" with ONNX Runtime {ort_version()}, x86-64")
    reporting.save(
        arguments.output, first, "ONNX Runtime on several threads, and the prediction", page(threads, predicted)
    )


def measured(name: str, model: Any, folder: Path, threads: list[list[object]], predicted: list[list[object]]) -> None:
    """Adds the lines of one network to both tables."""
    path, out = folder / "m.onnx", folder / "out.onnx"
    onnx.save(model, path)
    graph = reporting.graph_of(path)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    goal = OnnxGoal(settings=SessionSettings("extended", max(THREADS)), without=frozenset({"order"}))
    chosen = climb(str(path), graph, goal, lambda text: reporting.progress(f"{name}: {text}")).chosen
    files = {"model": path}
    if chosen is not None and chosen.model is not None:
        out.write_bytes(chosen.model)
        files["in stripes"] = out
    outputs: dict[int, Any] = {}
    for what, file in files.items():
        line: list[object] = [name, what]
        equal = []
        for count in THREADS:
            found = measure(file, shapes, SessionSettings("extended", count, "off", pattern=False), inputs=1, keep=True)
            line.append(mib(found.peak))
            equal.append(
                "equal"
                if not compare_outputs(outputs.setdefault(count, found.outputs), found.outputs).ulps
                else "differ"
            )
        threads.append([*line, *(equal if what != "model" else ["-"] * len(THREADS))])
        bound = [f"{key}={','.join(map(str, shape))}" for key, shape in shapes.items()] if file == out else []
        read = load(file, [], bound)
        assert isinstance(read, Graph)
        expected = session_peak(read, ORT, unknown=unknown_tensors(str(file), read)).bytes
        for level in ("disable", "basic"):
            bytes_ = measure(file, shapes, SessionSettings(level, 1, "off", pattern=False)).peak
            predicted.append([name, what, level, mib(expected), mib(bytes_), f"{100 * (expected / bytes_ - 1):+.1f} %"])


def page(threads: list[list[object]], predicted: list[list[object]]) -> Iterator[str]:
    """The lines of the report."""
    yield "MiB above what the loaded session of the file needs, level extended, arena and memory patterns off."
    yield ""
    heads = ["model", "file", *(f"{n} threads" for n in THREADS), *(f"outputs, {n}" for n in THREADS)]
    yield from reporting.table(heads, threads, "<<" + ">" * len(THREADS) + "<" * len(THREADS))
    yield ""
    yield "A convolution that is no matrix product asks for 64 KiB for each thread; stripes do not change that. Files"
    yield "are fitted for four threads: equal on one and four, on two the rule for partial sums may not hold."
    yield ""
    yield "## The prediction of `analyze`, one thread, MiB"
    yield ""
    yield from reporting.table(("model", "file", "level", "predicted", "measured", "off"), predicted, "<<<>>>")


def mib(size: int) -> str:
    """Bytes as MiB."""
    return f"{size / 2**20:.2f}"


PARSER = reporting.command_line(__file__, __doc__, "onnx_threads.md", corpus=False)
PARSER.add_argument("--only", default="", help="networks, separated by commas")

if __name__ == "__main__":
    main()
