"""Compares what `--runtime` says with what the runtimes do, and writes reports/agreement.md.

    python benchmarks/agreement.py ../shared/corpus

TFLM: the head that the tflite-micro wheel prints. LiteRT: the addresses of its tensors through the Python API.
ONNX Runtime's release build shows no addresses: its rows are facts from its source, not compared here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

from modelplan import Graph, Options, height, load, plan
from modelplan.aliasing.classes import Classes
from modelplan.aliasing.legality import World, refusal
from modelplan.aliasing.rules import overwrites, view_of
from modelplan.ops import facts
from modelplan.runtimes import RUNTIMES
from modelplan.tflm.runner import RefusalError, run_tflm
from modelplan.types import Member

ROOT = Path(__file__).resolve().parent.parent


def tflm_rows(files: list[Path]) -> Iterator[str]:
    options = Options(runtime="tflm", schedule="file", alias="none", allocator="tflm-greedy")
    for path in files:
        made = plan(load(path), options)  # type: ignore[arg-type]
        planned = height(made.problem, made.placement)
        try:
            head = run_tflm(path.read_bytes(), rounds=1).head
        except RefusalError as problem:
            yield f"| {path.stem} | {planned:,} | - | not run: {' '.join(str(problem).split())[:100]} |"
            continue
        word = "equal" if planned == head else f"{planned - head:+,} B"
        yield f"| {path.stem} | {planned:,} | {head:,} | {word} |"


def predicted(graph: Graph) -> set[tuple[int, int]]:
    """(op, operand) that LiteRT's own rules share, right or wrong."""
    runtime = RUNTIMES["litert"]
    found = set()
    for index, op in enumerate(graph.ops):
        if view_of(graph, index, "runtime", runtime):
            found.add((index, facts("tflite", op.kind).view or 0))
            continue
        for operand, _ in overwrites(graph, index, "runtime", runtime):
            x, y = graph.tensors[op.inputs[operand]], graph.tensors[op.outputs[0]]
            if x.nbytes == y.nbytes and x.kind == y.kind == "activation":
                found.add((index, operand))
                break
    return found


def unsound(graph: Graph, shared: set[tuple[int, int]]) -> list[str]:
    """Those of them that would overwrite bytes still to be read, by the test over storage classes."""
    world = World(graph, Classes(graph, _classes(graph)), RUNTIMES["litert"], range(len(graph.ops)))
    words = []
    for index, operand in sorted(shared):
        op = graph.ops[index]
        row = facts("tflite", op.kind)
        x, y = op.inputs[operand], op.outputs[0]
        if row.view is None and (why := refusal(world, index, operand, row.group)):
            words.append(f"{graph.label(index)}: {why}")
        elif not world.classes.together(x, y):
            world.classes.join(y, x)
    return words


def _classes(graph: Graph) -> Iterator[tuple[Member, ...]]:
    from modelplan.aliasing import planned

    return ((Member(t),) for t in planned(graph))


def observed(path: Path, graph: Graph) -> set[tuple[int, int]]:
    """(op, operand) whose first output has the operand's address in LiteRT, asked in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--addresses", path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.splitlines() or [f"status {done.returncode}"])[-1])
    address = {int(t): at for t, at in json.loads(done.stdout.splitlines()[-1]).items()}
    return {
        (index, operand)
        for index, op in enumerate(graph.ops)
        for operand, t in enumerate(op.inputs)
        if t >= 0 and op.outputs and address.get(t, -1) == address.get(op.outputs[0], -2) and graph.tensors[t].nbytes
    }


def addresses(path: str) -> dict[int, int]:
    """Where LiteRT keeps each tensor that has memory."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_path=path, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    found = {}
    for detail in interpreter.get_tensor_details():
        if detail["shape"].size or detail["dtype"] is not np.void:
            try:
                found[detail["index"]] = interpreter.tensor(detail["index"])().__array_interface__["data"][0]
            except (ValueError, RuntimeError):
                continue  # no memory of its own
    return found


def litert_rows(files: list[Path]) -> Iterator[str]:
    for path in files:
        graph = load(path)
        assert isinstance(graph, Graph)
        said = predicted(graph)
        try:
            seen = observed(path, graph)
        except (RuntimeError, ValueError) as problem:
            yield f"| {path.stem} | {len(said)} | - | - | not run: {' '.join(str(problem).split())[:80]} | |"
            continue
        odd = "; ".join(f"op {i} {graph.ops[i].kind}" for i, _ in sorted(said ^ seen))
        word = "equal" if said == seen else f"differs: {odd}"
        counts = f"{len(said)} | {len(seen)} | {len(said & seen)}"
        yield f"| {path.stem} | {counts} | {word} | {'; '.join(unsound(graph, said))} |"


def page(corpus: Path) -> Iterator[str]:
    files = [*sorted((corpus / "tflite").rglob("*.tflite")), *sorted((ROOT / "models").glob("*.tflite"))]
    yield f"Made by `python benchmarks/agreement.py CORPUS` with tflite-micro {version('tflite-micro')} and LiteRT"
    yield f"{version('ai-edge-litert')}, x86-64."
    yield ""
    yield "## TFLM: planned and reported head"
    yield ""
    yield "Planned with `--runtime tflm --schedule file --alias none --allocator tflm-greedy`."
    yield ""
    yield "| model | planned | head | |"
    yield "|---|---:|---:|---|"
    yield from tflm_rows(files)
    yield ""
    yield "## LiteRT: operands whose memory the output takes (kernels without delegates)"
    yield ""
    yield "The last column names what LiteRT's rules allow and the test over storage classes refuses: a wrong result."
    yield ""
    yield "| model | predicted | observed | both | | refused as unsound |"
    yield "|---|---:|---:|---:|---|---|"
    yield from litert_rows(files)
    yield ""
    yield "## ONNX Runtime"
    yield ""
    yield "The release build shows neither its allocation plan (compiled in with debug only) nor the addresses of"
    yield "intermediate values: its row rests on the source named in `modelplan/runtimes/in_place.py`."


if __name__ == "__main__" and sys.argv[1] == "--addresses":
    print(json.dumps(addresses(sys.argv[2])))
elif __name__ == "__main__":
    text = "\n".join(page(Path(sys.argv[1]))) + "\n"
    (ROOT / "reports" / "agreement.md").write_text(text)
    print(text)
