"""Random .onnx models whose extents depend on values of inputs, beside sessions that are fed so that they are reached.

`python tests/sweeps/data_extents.py [COUNT [SEED]]` draws models with such extents, open extents, branches, loops and
weights that are shared by names. Each is sized for extents that values can reach or for some that none can. A figure
that is called measured has to be what a session takes that is fed with values known to reach them; where none can, the
extents have to be refused; no budget below what that session takes may pass. Exit code 1 where one of these is broken.
"""

from __future__ import annotations

import collections
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from modelplan import CheckRequest, ModelRequest, check_budgets
from modelplan.answers.check_outcomes import Limits
from modelplan.runtimes.ort.feeding import Feeds
from modelplan.runtimes.ort.measuring import SessionSettings, measure

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
#: A figure may differ from another process's by this share and so many bytes.
SHARE, NOISE = 0.01, 8192


@dataclass
class Drawn:
    """A model while it is drawn: `stated` is what the caller says of extents, `fed` reaches them.

    `reachable` says whether any values do. `x` is a float matrix of `rows` rows, whose count depends on values.
    """

    draw: random.Random
    nodes: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    dims: list[str] = field(default_factory=list)
    shapes: list[str] = field(default_factory=list)
    fed: dict[str, Any] = field(default_factory=dict)
    reachable: bool = True
    x: str = ""
    width: int = 1

    def node(self, kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[0]

    def constant(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def input(self, name: str, kind: int, shape: list[int | str], value: Any) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.fed[name] = np.asarray(value)
        return name


def permuted(d: Drawn, ones: int, count: int) -> Any:
    """`count` numbers of which `ones` are 1, in some order."""
    numbers = [1] * ones + [0] * (count - ones)
    d.draw.shuffle(numbers)
    return np.array(numbers)


def as_column(d: Drawn, name: str) -> None:
    """Makes a vector of integers a matrix of one column."""
    d.constant("last", np.array([1], np.int64))
    d.node("Unsqueeze", [d.node("Cast", [name], ["casted"], to=FLOAT), "last"], ["x"])
    d.x, d.width = "x", 1


def durations(d: Drawn, rows: int) -> None:
    """Frames by durations, as text becomes speech."""
    tokens = d.draw.randint(1, 40)
    parts = np.bincount(np.array([d.draw.randrange(tokens) for _ in range(rows)]), minlength=tokens)
    d.input("durations", INT64, ["tokens"], parts.astype(np.int64))
    d.dims.append(f"tokens={tokens}")
    d.constant("none", np.int64(0))
    d.constant("step", np.int64(1))
    d.node("ReduceSum", ["durations"], ["total"], keepdims=0)
    d.node("Range", ["none", "total", "step"], ["frames"])
    d.shapes.append(f"frames={rows}")
    as_column(d, "frames")


def nonzero(d: Drawn, rows: int) -> None:
    """The places of what is not zero."""
    most = rows + d.draw.choice((0, 0, 7, 300))
    d.input("mask", FLOAT, [1, most], permuted(d, rows, most).reshape(1, -1).astype(np.float32))
    d.node("NonZero", ["mask"], ["places"])
    d.shapes.append(f"places=2,{rows}")
    d.node("Transpose", ["places"], ["pairs"], perm=[1, 0])
    d.x, d.width = d.node("Cast", ["pairs"], ["x"], to=FLOAT), 2


def thresholded(d: Drawn, rows: int) -> None:
    """The places of scores above a threshold."""
    most = rows + d.draw.choice((0, 5, 100))
    d.input("scores", FLOAT, [most], np.where(permuted(d, rows, most), 0.9, 0.1).astype(np.float32))
    d.constant("threshold", np.float32(0.5))
    d.node("Greater", ["scores", "threshold"], ["above"])
    d.node("NonZero", ["above"], ["places"])
    d.dims.append(f"places:1<={rows}")
    d.node("Transpose", ["places"], ["pairs"], perm=[1, 0])
    d.x, d.width = d.node("Cast", ["pairs"], ["x"], to=FLOAT), 1


def top(d: Drawn, rows: int) -> None:
    """The k largest, k an input."""
    most = rows + d.draw.randrange(50)
    d.input("scores", FLOAT, [most], np.arange(most, dtype=np.float32))
    d.input("k", INT64, [1], np.array([rows], np.int64))
    d.node("TopK", ["scores", "k"], ["values", "indices"], axis=0)
    d.shapes += [f"values={rows}", f"indices={rows}"]
    d.constant("last", np.array([1], np.int64))
    d.x, d.width = d.node("Unsqueeze", ["values", "last"], ["x"]), 1


def counted(d: Drawn, rows: int) -> None:
    """As many rows as a scalar says."""
    d.input("count", INT64, [], np.int64(rows))
    d.constant("none", np.int64(0))
    d.constant("step", np.int64(1))
    d.node("Range", ["none", "count", "step"], ["numbers"])
    d.shapes.append(f"numbers={rows}")
    as_column(d, "numbers")


def filled(d: Drawn, rows: int) -> None:
    """A matrix of a shape that is an input."""
    width = d.draw.choice((1, 4))
    d.input("extents", INT64, [2], np.array([rows, width], np.int64))
    d.x, d.width = d.node("ConstantOfShape", ["extents"], ["x"]), width
    d.shapes.append(f"x={rows},{width}")


def compressed(d: Drawn, rows: int) -> None:
    """The rows that a mask keeps."""
    most = rows + d.draw.choice((0, 3, 200))
    d.input("rows", FLOAT, [most, 4], np.ones((most, 4), np.float32))
    d.input("kept", BOOL, [most], permuted(d, rows, most).astype(np.bool_))
    d.x, d.width = d.node("Compress", ["rows", "kept"], ["x"], axis=0), 4
    d.dims.append(f"x:0={rows}")


def suppressed(d: Drawn, rows: int) -> None:
    """The boxes that others do not cover, up to so many."""
    most = rows + d.draw.randrange(60)
    corners = np.arange(most, dtype=np.float32).reshape(-1, 1) * 4
    d.input("boxes", FLOAT, [1, most, 4], (corners + np.array([0, 0, 3, 3], np.float32))[None])
    d.input("scores", FLOAT, [1, 1, most], np.full((1, 1, most), 0.9, np.float32))
    for name, value in (
        ("most", np.array([rows], np.int64)),
        ("iou", np.full(1, 0.5, np.float32)),
        ("least", np.full(1, 0.1, np.float32)),
    ):
        d.constant(name, value)
    d.node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["selected"])
    d.dims.append(f"selected:0<={rows}")
    d.x, d.width = d.node("Cast", ["selected"], ["x"], to=FLOAT), 3


def distinct(d: Drawn, rows: int) -> None:
    """The different numbers of a vector."""
    most = rows + d.draw.randrange(40)
    d.input("ids", INT64, [most], np.arange(most) % rows)
    d.node("Unique", ["ids"], ["numbers"])
    d.shapes.append(f"numbers={rows}")
    as_column(d, "numbers")


def repeated(d: Drawn, rows: int) -> None:
    """A row so often as an input says."""
    d.input("row", FLOAT, [1, 8], np.ones((1, 8), np.float32))
    d.input("times", INT64, [2], np.array([rows, 1], np.int64))
    d.x, d.width = d.node("Tile", ["row", "times"], ["x"]), 8
    d.shapes.append(f"x={rows},8")


def cut(d: Drawn, rows: int) -> None:
    """The first rows, whose number is an input."""
    most = rows + d.draw.randrange(100)
    d.input("rows", FLOAT, ["most", 4], np.ones((most, 4), np.float32))
    d.dims.append(f"most={most}")
    d.input("end", INT64, [1], np.array([rows], np.int64))
    d.constant("begin", np.array([0], np.int64))
    d.x, d.width = d.node("Slice", ["rows", "begin", "end", "begin"], ["x"]), 4
    d.shapes.append(f"x={rows},4")


def open_rows(d: Drawn, rows: int) -> None:
    """Rows that the caller gives: open, but no value decides them."""
    d.input("rows", FLOAT, ["n", 4], np.ones((rows, 4), np.float32))
    d.dims.append(f"n={rows}")
    d.x, d.width = "rows", 4


def branched(d: Drawn, rows: int) -> None:
    """A wide or a narrow branch, as an input says."""
    d.input("rows", FLOAT, [rows, 4], np.ones((rows, 4), np.float32))
    wide = d.draw.choice((True, False))
    d.input("choice", INT64, [], np.int64(7))
    d.constant("seven", np.int64(7))
    d.node("Equal", ["choice", "seven"], ["chosen"])
    bodies = {}
    for name, columns in (("then_branch", 64 if wide else 4), ("else_branch", 4 if wide else 64)):
        d.constant(f"{name}_w", np.ones((4, columns), np.float32))
        d.constant(f"{name}_v", np.ones((columns, 4), np.float32))
        steps = [
            helper.make_node("MatMul", ["rows", f"{name}_w"], [f"{name}_a"]),
            helper.make_node("Exp", [f"{name}_a"], [f"{name}_b"]),
            helper.make_node("MatMul", [f"{name}_b", f"{name}_v"], [f"{name}_y"]),
        ]
        out = helper.make_tensor_value_info(f"{name}_y", FLOAT, [rows, 4])
        bodies[name] = helper.make_graph(steps, name, [], [out])
    d.node("If", ["chosen"], ["x"], **bodies)
    d.fed["choice"] = np.int64(7 if wide else 3)
    d.x, d.width = "x", 4


def turned(d: Drawn, rows: int) -> None:
    """A row for each turn of a loop, whose number is an input."""
    d.input("turns", INT64, [], np.int64(rows))
    d.input("row", FLOAT, [4], np.ones(4, np.float32))
    d.constant("yes", np.bool_(True))
    values = [("i", INT64, []), ("go", BOOL, []), ("state", FLOAT, [4])]
    given = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in values]
    steps = [
        helper.make_node("Identity", ["go"], ["on"]),
        helper.make_node("Sin", ["state"], ["next"]),
        helper.make_node("Identity", ["next"], ["scanned"]),
    ]
    outs = [("on", BOOL, []), ("next", FLOAT, [4]), ("scanned", FLOAT, [4])]
    body = helper.make_graph(steps, "body", given, [helper.make_tensor_value_info(*out) for out in outs])
    d.node("Loop", ["turns", "yes", "row"], ["end", "x"], body=body)
    d.shapes.append(f"x={rows},4")
    d.x, d.width = "x", 4


#: Where rows come from.
SOURCES: tuple[Callable[[Drawn, int], None], ...] = (
    durations, nonzero, thresholded, top, counted, filled, compressed, suppressed, distinct, repeated, cut, open_rows,
    branched, turned,
)  # fmt: skip
#: Those of which no values reach more rows than there are elements.
_LIMITED = {nonzero: 1, compressed: 0, distinct: 0}


def drawn_model(seed: int) -> tuple[Drawn, Any]:
    """A model with rows from one source, layers behind it, and some that share their weights."""
    draw = random.Random(seed)
    d, source, rows = Drawn(draw), draw.choice(SOURCES), draw.choice((3, 17, 100, 700, 3000))
    if source is turned:
        rows = min(rows, 100)
    if source is thresholded:
        d.width = 1
    source(d, rows)
    if source in _LIMITED and draw.random() < 0.2:
        d.reachable = False
        wanted = int(np.prod(next(iter(d.fed.values())).shape)) + 1000
        d.shapes = [text.replace(f"{rows}", f"{wanted}") for text in d.shapes]
        d.dims = [text.replace(f"{rows}", f"{wanted}") for text in d.dims]
    _layers(d)
    outs = [helper.make_empty_tensor_value_info(d.x)]
    graph = helper.make_graph(d.nodes, f"drawn{seed}", d.inputs, outs, d.constants)
    return d, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _layers(d: Drawn) -> None:
    """Products with weights, of which some have other names, and element-wise operators between them."""
    width = d.draw.choice((8, 32, 128))
    d.constant("first", np.full((d.width, width), 0.01, np.float32))
    x = d.node("MatMul", [d.x, "first"], ["h"])
    d.constant("shared", np.full((width, width), 0.01, np.float32))
    for layer in range(d.draw.randrange(1, 5)):
        weights = "shared"
        if d.draw.random() < 0.5:
            weights = d.node("Identity", ["shared"], [f"shared{layer}"])
        y = d.node("MatMul", [x, weights], [f"m{layer}"])
        y = d.node(d.draw.choice(("Relu", "Sigmoid", "Exp", "Abs")), [y], [f"a{layer}"])
        x = d.node("Add", [x, y], [f"s{layer}"]) if d.draw.random() < 0.5 else y
    if d.draw.random() < 0.5:
        x = d.node("ReduceMean", [x], ["mean"], axes=[0], keepdims=1)
    d.x = x


def contradictions(seed: int, folder: Path) -> Iterator[str]:
    """The kind of answer that a drawn model gets, then what a session contradicts of it."""
    d, model = drawn_model(seed)
    path = folder / f"m{seed}.onnx"
    onnx.save(model, path)
    request = ModelRequest(str(path), dims=tuple(d.dims), shapes=tuple(d.shapes), measure=30)
    outcome = _outcome(request, 1 << 40)
    session = outcome.needed.session if outcome.needed else None
    yield "no figure" if session is None else "measured" if session.usual.measured else "predicted"
    if not d.reachable:
        if "has at most" not in outcome.problem:
            yield f"seed {seed}: not refused, though no values reach {d.shapes or d.dims}: {outcome.problem}"
        return
    arrays = folder / "fed.npz"
    np.savez(arrays, **d.fed)
    shapes = {name: list(value.shape) for name, value in d.fed.items()}
    level = "all" if session is None or session.usual.measured else "disable"
    real = measure(path, shapes, SessionSettings(level=level), feeds=Feeds(path=str(arrays), digest="fed"))
    taken = max(real.heap)
    yield from _judged(seed, request, outcome, taken)


def _judged(seed: int, request: ModelRequest, outcome: Any, taken: int) -> Iterator[str]:
    """What is wrong with an answer where a session takes so many bytes."""
    session = outcome.needed.session if outcome.needed else None
    if session is None:
        if outcome.passed:
            yield f"seed {seed}: passes without a figure: {outcome.problem}"
        return
    figure = outcome.needed.arena
    near = NOISE + SHARE * taken
    if figure < taken - near:
        yield f"seed {seed}: {figure:,} where a session takes {taken:,}"
    if session.usual.measured and figure > taken + near:
        yield f"seed {seed}: {figure:,} measured where a session takes {taken:,}"
    if _outcome(request, int(taken - near) - 1).passed:
        yield f"seed {seed}: passes with {int(taken - near) - 1:,}, a session takes {taken:,}"


def _outcome(request: ModelRequest, budget: int) -> Any:
    return check_budgets(CheckRequest((request,), Limits(budget))).outcomes[0]


def main(count: int = 300, first: int = 0) -> int:
    """Draws models and prints what a session contradicts; the number of these."""
    kinds: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for seed in range(first, first + count):
            kind, *problems = contradictions(seed, Path(folder))
            kinds[kind] += 1
            wrong += problems
            for problem in problems:
                sys.stdout.write(f"{problem}\n")
    sys.stdout.write(f"{count} models: {dict(kinds)}; {len(wrong)} contradicted\n")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
