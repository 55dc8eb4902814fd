"""Compares what `--runtime` says with what the runtimes do.

    python benchmarks/agreement.py

TFLM: the head that the tflite-micro wheel prints. LiteRT: the addresses of its tensors through the Python API
(tests/oracles/litert_trace.py). ONNX Runtime: the calls of the C library by kernel, with its arena off
(tests/oracles/ort_trace.py, needs g++).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import onnx
import reporting

from modelplan import Budget, Graph, Options, Problem, height, plan
from modelplan.model import Member, class_bytes
from modelplan.ops import facts
from modelplan.planning import aliasing, lifetimes
from modelplan.planning.aliasing.classes import Classes
from modelplan.planning.aliasing.legality import SharingContext, refusal
from modelplan.planning.aliasing.rules import overwrites, view_of
from modelplan.planning.allocators.systems.gpu_delegate import share_equal
from modelplan.planning.session_blocks import reused
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm.runner import RefusalError, run_tflm

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "oracles"))
import litert_trace
from ort_trace import Block, Run, runs

_ORT = """
The release build shows neither its allocation plan (compiled in with debug only) nor addresses. With its arena and
memory patterns off every buffer of the plan is one call of the C library, which `tests/oracles/ort_trace.py` sees, and
also during which kernel. Values count that no input of the model feeds. `predicted` and `observed` are those without
a call of their own: aliases and reuse of a freed block. A block is equal when the same node asks for it, with the same
size, and it is freed after the same node. `equal` is what the row `onnxruntime-reuse` says, which sees sizes and
lifetimes only; `equal with shapes` adds what a problem does not tell: a block is reused for an equal shape only, and
of the blocks that one node gives back the last operand's goes first. What is left then: an unused second result (the
mask of Dropout) stays until the end, and where shapes come out of arithmetic at run time (the transformers with open
extents; modelplan folds it) ONNX Runtime does not know them when it plans and reuses less. Blocks of folded nodes are
among `blocks`. Optimisations are off, one thread, open extents are 2; sizes are rounded to 64 bytes.
""".strip().splitlines()


def tflm_rows(files: list[Path]) -> Iterator[Sequence[object]]:
    options = Options(runtime="tflm", schedule="file", alias="none", allocator="tflm-greedy")
    for path in files:
        made = plan(reporting.graph_of(path), options)
        planned = height(made.problem, made.placement)
        try:
            head = run_tflm(path.read_bytes(), rounds=1).head
        except RefusalError as problem:
            yield path.stem, f"{planned:,}", "-", f"not run: {' '.join(str(problem).split())[:100]}"
            continue
        word = "equal" if planned == head else f"{planned - head:+,} B"
        yield path.stem, f"{planned:,}", f"{head:,}", word


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
    context = SharingContext(graph, Classes(graph, _classes(graph)), RUNTIMES["litert"], range(len(graph.ops)))
    words = []
    for index, operand in sorted(shared):
        op = graph.ops[index]
        row = facts("tflite", op.kind)
        x, y = op.inputs[operand], op.outputs[0]
        if row.view is None and (why := refusal(context, index, operand, row.group)):
            words.append(f"{graph.label(index)}: {why}")
        elif not context.classes.together(x, y):
            context.classes.join(y, x)
    return words


def _classes(graph: Graph) -> Iterator[tuple[Member, ...]]:
    from modelplan.planning.aliasing import planned

    return ((Member(t),) for t in planned(graph))


def observed(path: Path, graph: Graph) -> set[tuple[int, int]]:
    """(op, operand) whose first output has the operand's address in LiteRT, asked in a process of its own."""
    address = litert_trace.addresses(path)
    return {
        (index, operand)
        for index, op in enumerate(graph.ops)
        for operand, t in enumerate(op.inputs)
        if t >= 0 and op.outputs and address.get(t, -1) == address.get(op.outputs[0], -2) and graph.tensors[t].nbytes
    }


def litert_rows(files: list[Path]) -> Iterator[Sequence[object]]:
    for path in files:
        graph = reporting.graph_of(path)
        said = predicted(graph)
        try:
            seen = observed(path, graph)
        except (RuntimeError, ValueError) as problem:
            yield path.stem, len(said), "-", "-", f"not run: {' '.join(str(problem).split())[:80]}", ""
            continue
        odd = "; ".join(f"op {i} {graph.ops[i].kind}" for i, _ in sorted(said ^ seen))
        word = "equal" if said == seen else f"differs: {odd}"
        yield path.stem, len(said), len(seen), len(said & seen), word, "; ".join(unsound(graph, said))


@dataclass(frozen=True)
class Guess:
    """What ONNX Runtime should allocate, in steps of the run: the blocks, and the tensors that ask for one."""

    blocks: Counter[Block]
    owners: frozenset[int]
    tensors: frozenset[int]


def ort_guess(graph: Graph, order: list[int], steps: list[int], reuse: Reuse) -> Guess:
    """The aliases of `--runtime ort` and who reuses whose block; outputs and inputs of the model are apart.

    `order` are the graph's operators as they ran, `steps` at which of the run's steps.
    """
    runtime = RUNTIMES["ort"]
    aliases = aliasing.take_offers(graph, aliasing.storages(graph, "runtime", runtime), order, runtime)
    problem = lifetimes.buffers(graph, order, aliases, runtime)
    fed = [any(m.tensor in graph.inputs for m in members) for members in problem.members]
    kept = [any(m.tensor in graph.outputs for m in members) for members in problem.members]
    inner = [i for i in range(len(problem)) if not fed[i] and not kept[i]]
    blocks, owners = [], set()
    for held in reuse(graph, order, problem, inner):
        begin, end = held[0], held[-1]
        owners.add(problem.members[begin][0].tensor)
        last = steps[int(problem.end[end]) - 1]
        blocks.append(Block(_rounded(graph, problem, begin), steps[int(problem.start[begin])], last))
    for i in (i for i in range(len(problem)) if kept[i] and not fed[i]):
        owners.add(problem.members[i][0].tensor)
        blocks.append(Block(_rounded(graph, problem, i), steps[int(problem.start[i])], -1))
    mine = {m.tensor for i, members in enumerate(problem.members) if not fed[i] for m in members}
    return Guess(Counter(blocks), frozenset(owners), frozenset(mine))


def by_the_row(_graph: Graph, _order: list[int], problem: Problem, inner: list[int]) -> list[list[int]]:
    """What the row `onnxruntime-reuse` of the table says, which knows sizes and lifetimes only."""
    names = tuple(problem.names[i] for i in inner)
    part = Problem(names, problem.size[inner], problem.start[inner], problem.end[inner])
    objects = share_equal(part, Budget())
    held: dict[int, list[int]] = {}
    for place in sorted(range(len(inner)), key=lambda place: problem.start[inner[place]]):
        held.setdefault(int(objects.holder[place]), []).append(inner[place])
    return list(held.values())


Reuse = Callable[[Graph, list[int], Problem, list[int]], list[list[int]]]


def _rounded(graph: Graph, problem: Problem, i: int) -> int:
    """Bytes as ONNX Runtime asks for them without its arena: a multiple of 64."""
    return -(-class_bytes(graph, problem.members[i]) // 64) * 64


def ort_rows(files: list[Path]) -> Iterator[Sequence[object]]:
    graphs = [reporting.graph_of(path, _bound(path)) for path in files]
    shapes = [{g.tensors[t].name: g.tensors[t].shape for t in g.inputs} for g in graphs]
    for path, graph, run in zip(files, graphs, runs(zip(files, shapes, strict=True)), strict=True):
        name = path.stem.removeprefix("light_")
        if isinstance(run, str):
            yield name, *"-" * 7, f"not run: {run[:80]}"
            continue
        yield name, *ort_row(path, graph, run)


def ort_row(path: Path, graph: Graph, run: Run) -> Sequence[object]:
    nodes = onnx.load(path, load_external_data=False).graph.node
    writer = {graph.tensors[t].name: index for index, op in enumerate(graph.ops) for t in op.writes}
    ran = [next((writer[name] for name in nodes[n].output if name in writer), -1) for n in run.order]
    steps = [step for step, index in enumerate(ran) if index >= 0]
    seen = Counter(block for block in run.blocks if 0 <= block.asked < len(ran) and ran[block.asked] >= 0)
    folded = sum(1 for block in run.blocks if block not in seen)
    order = [ran[step] for step in steps]
    guess, exact = (ort_guess(graph, order, steps, reuse) for reuse in (by_the_row, reused))
    without = seen_without(graph, ran, run)
    said = guess.tensors - guess.owners
    words = [f"{folded} blocks of {len(ran) - len(steps)} nodes that modelplan folds"] if folded else []
    if left := exact.blocks - seen:
        words.append(odd(graph, ran, left))
    counts = [len(guess.tensors), len(said), len(without), len(said & without), seen.total()]
    equal = [(found.blocks & seen).total() for found in (guess, exact)]
    return *counts, *equal, "; ".join(words)


def seen_without(graph: Graph, ran: list[int], run: Run) -> set[int]:
    """The values whose kernel asked for no memory of their size: they lie in bytes that were there."""
    asked: dict[int, list[int]] = {}
    for block in run.blocks:
        asked.setdefault(block.asked, []).append(block.size)
    found = set()
    for step, index in enumerate(ran):
        for t in graph.ops[index].writes if index >= 0 else ():
            size = -(-graph.tensors[t].nbytes // 64) * 64
            if size in asked.get(step, []):
                asked[step].remove(size)
            elif size:
                found.add(t)
    return found


def odd(graph: Graph, ran: list[int], blocks: Counter[Block]) -> str:
    """Where the first differing blocks are asked for."""
    places = [
        f"{graph.label(ran[b.asked])} {b.size:,} B until {b.freed}" for b in sorted(blocks, key=lambda b: b.asked)
    ]
    more = f" and {len(places) - 2} more" if len(places) > 2 else ""
    return "predicted, not seen: " + ", ".join(places[:2]) + more


def _bound(path: Path) -> list[str]:
    """Two for every extent that the file leaves open."""
    inputs = onnx.load(path, load_external_data=False).graph.input
    symbols = {d.dim_param for x in inputs for d in x.type.tensor_type.shape.dim if d.dim_param}
    return [f"{symbol}=2" for symbol in sorted(symbols) if symbol.isidentifier()]


ORT_HEADINGS = ("model", "values", "predicted", "observed", "both", "blocks", "equal", "equal with shapes",
                "differences left")  # fmt: skip


def page(corpus: Path) -> Iterator[str]:
    files = [path for _, path in reporting.tflite_files(corpus)]
    yield "## TFLM: planned and reported head"
    yield ""
    yield "Planned with `--runtime tflm --schedule file --alias none --allocator tflm-greedy`."
    yield ""
    yield from reporting.table(("model", "planned", "head", ""), tflm_rows(files), "<>><")
    yield ""
    yield "## LiteRT: operands whose memory the output takes (kernels without delegates)"
    yield ""
    yield "The last column names what LiteRT's rules allow and the test over storage classes refuses: a wrong result."
    yield ""
    headings = ("model", "predicted", "observed", "both", "", "refused as unsound")
    yield from reporting.table(headings, litert_rows(files), "<>>><<")
    yield ""
    yield f"## ONNX Runtime {version('onnxruntime')}: who lies in memory that was there already"
    yield ""
    yield from _ORT
    yield ""
    models = [*reporting.own_models(".onnx"), *reporting.light_models()]
    yield from reporting.table(ORT_HEADINGS, ort_rows(models), "<>>>>>>><")


PARSER = reporting.command_line(__file__, __doc__, "agreement.md")


def main() -> None:
    arguments = reporting.parse(PARSER)
    versions = f" with tflite-micro {version('tflite-micro')} and LiteRT {version('ai-edge-litert')}, x86-64"
    first = reporting.made_by(PARSER, arguments, versions)
    reporting.save(arguments.output, first, "Plans beside what the runtimes do", page(arguments.corpus))


if __name__ == "__main__":
    main()
