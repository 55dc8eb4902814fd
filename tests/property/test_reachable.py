"""Extents that values decide: what a session gives is accepted, what is beyond any values is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import added_operators as added
import numpy as np
import onnx
import pytest
from added_operators import Draw
from onnx import helper
from shares import share

from modelplan import Graph, ModelError, load
from modelplan.formats.onnx.onnx_reachable import EQUAL, LIMITS

pytest.importorskip("onnxruntime")

SEEDS = 24
Array = Any


@dataclass(frozen=True)
class Drawn:
    """A node all of whose operands are inputs; `most` is an output, an axis, and the most that values make there."""

    kind: str
    operands: list[Array]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    most: tuple[int, int, int] | None = None


def _mask(draw: Draw, count: int) -> Array:
    return draw.rng.random(count) < draw.one(0.0, 0.5, 1.0)


def _places(draw: Draw) -> Drawn:
    shape = draw.shape()
    x = _mask(draw, int(np.prod(shape))).reshape(shape).astype(np.float32)
    return Drawn("NonZero", [x], most=(0, 1, x.size))


def _top(draw: Draw) -> Drawn:
    shape = draw.shape()
    axis = draw.n(-len(shape), len(shape) - 1)
    k = np.array([draw.n(0, shape[axis])], np.int64)
    most = (draw.n(0, 1), axis % len(shape), shape[axis])
    return Drawn("TopK", [draw.f(*shape), k], {"axis": axis}, 2, most)


def _kept(draw: Draw) -> Drawn:
    shape, along = draw.shape(), bool(draw.n(0, 1))
    axis = draw.n(0, len(shape) - 1)
    whole = shape[axis] if along else int(np.prod(shape))
    condition = _mask(draw, draw.n(1, whole))
    return Drawn(
        "Compress", [draw.f(*shape), condition], {"axis": axis} if along else {},
        most=(0, axis if along else 0, min(whole, condition.size)),
    )  # fmt: skip


def _distinct(draw: Draw) -> Drawn:
    shape, along = draw.shape(), bool(draw.n(0, 1))
    axis = draw.n(0, len(shape) - 1)
    x = draw.ids(draw.one(1, 3, 99), *shape, dtype=np.int64)
    most = (0, axis, shape[axis]) if along else (draw.one(0, 1, 3), 0, x.size)
    return Drawn("Unique", [x], {"axis": axis} if along else {}, 4, most)


def _boxes(draw: Draw) -> Drawn:
    batch, classes, boxes = draw.n(1, 2), draw.n(1, 3), draw.n(1, 9)
    corners = np.arange(boxes, dtype=np.float32).reshape(1, -1, 1) * draw.one(1, 9)
    places = np.repeat(corners + np.array([0, 0, 3, 3], np.float32), batch, 0)
    allowed = np.array([draw.n(1, 12)], np.int64)
    operands = [places, draw.f(batch, classes, boxes), allowed, np.full(1, 0.5, np.float32)]
    return Drawn("NonMaxSuppression", operands, most=(0, 0, batch * classes * boxes))


def _counted(draw: Draw) -> Drawn:
    ends = [np.int16(number) for number in (draw.n(-9, 9), draw.n(-9, 9), draw.one(-3, -1, 1, 2))]
    return Drawn("Range", ends, most=(0, 0, 2**16 - 1))


def _cut(draw: Draw) -> Drawn:
    shape = draw.shape()
    bounds = [np.array([draw.n(-7, 7) for _ in shape], np.int64) for _ in range(2)]
    axis = draw.n(0, len(shape) - 1)
    return Drawn("Slice", [draw.f(*shape), *bounds], most=(0, axis, shape[axis]))


def _parts(draw: Draw) -> Drawn:
    shape = draw.shape()
    first = draw.n(0, shape[-1])
    sizes = np.array([first, shape[-1] - first], np.int64)
    most = (draw.n(0, 1), len(shape) - 1, shape[-1])
    return Drawn("Split", [draw.f(*shape), sizes], {"axis": -1}, 2, most)


def _mirrored(draw: Draw) -> Drawn:
    shape = draw.shape()
    pads = np.array([draw.n(0, extent - 1) for _ in range(2) for extent in shape], np.int64)
    return Drawn("Pad", [draw.f(*shape), pads], {"mode": "reflect"}, most=(0, 0, 3 * shape[0] - 2))


def _reshaped(draw: Draw) -> Drawn:
    shape = draw.shape()
    return Drawn("Reshape", [draw.f(*shape), np.array(draw.rng.permutation(shape), np.int64)])


def _squeezed(draw: Draw) -> Drawn:
    return Drawn("Unsqueeze", [draw.f(*draw.shape()), np.array([draw.n(0, 2)], np.int64)])


def _unsqueezed(draw: Draw) -> Drawn:
    return Drawn("Squeeze", [draw.f(1, *draw.shape()), np.array([0], np.int64)])


def _expanded(draw: Draw) -> Drawn:
    shape = draw.shape()
    wanted = [draw.n(1, 4) if extent == 1 else extent for extent in shape]
    return Drawn("Expand", [draw.f(*shape), np.array([*draw.one([], [3]), *wanted], np.int64)])


def _repeated(draw: Draw) -> Drawn:
    shape = draw.shape()
    return Drawn("Tile", [draw.f(*shape), np.array([draw.n(0, 3) for _ in shape], np.int64)])


def _reduced(draw: Draw) -> Drawn:
    shape = draw.shape()
    return Drawn("ReduceSum", [draw.f(*shape), np.array([draw.n(0, len(shape) - 1)], np.int64)])


DRAWS: list[Callable[[Draw], Drawn]] = [
    _places, _top, _kept, _distinct, _boxes, _counted, _cut, _parts, _mirrored, _reshaped, _squeezed, _unsqueezed,
    _expanded, _repeated, _reduced,
]  # fmt: skip


def kind_of(draw: Callable[[Draw], Any]) -> str:
    kind: str = draw(Draw(0)).kind
    return kind


def saved(path: Path, drawn: Drawn) -> Path:
    """The model of the one node, with inputs x0, x1, ... and outputs y0, y1, ..."""
    inputs = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x))
        for i, x in enumerate(drawn.operands)
    ]
    outputs = [f"y{i}" for i in range(drawn.outputs)]
    node = helper.make_node(drawn.kind, [value.name for value in inputs], outputs, "one", **drawn.attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(name) for name in outputs])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)]), path)
    return path


def session_shapes(path: Path, drawn: Drawn) -> dict[str, tuple[int, ...]]:
    import onnxruntime as rt

    session = rt.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    results = session.run(None, {f"x{i}": np.asarray(x) for i, x in enumerate(drawn.operands)})
    return {f"y{i}": result.shape for i, result in enumerate(results)}


def given(shapes: dict[str, tuple[int, ...]]) -> list[str]:
    return [f"{name}={','.join(map(str, shape))}" for name, shape in shapes.items()]


@pytest.mark.parametrize("draw", DRAWS, ids=kind_of)
def test_what_a_session_gives_is_planned_and_no_more(draw: Callable[[Draw], Drawn], tmp_path: Path) -> None:
    for seed in range(share(SEEDS)):
        drawn = draw(Draw(seed))
        path = saved(tmp_path / "a.onnx", drawn)
        shapes = session_shapes(path, drawn)
        graph = load(path, shapes=given(shapes))
        assert isinstance(graph, Graph)
        assert {t.name: t.shape for t in graph.tensors if t.name in shapes} == shapes, seed
        if drawn.most is None:
            continue
        output, axis, most = drawn.most
        name = f"y{output}"
        assert shapes[name][axis] <= most, seed
        more = {n: tuple(most + 1 if k == axis and n == name else e for k, e in enumerate(shape))
                for n, shape in shapes.items()}  # fmt: skip
        words = f"node 0 {drawn.kind} 'one': '{name}' would be .*at most {most} along axis {axis}"
        with pytest.raises(ModelError, match=words):
            load(path, shapes=given(more))
        largest = {n: tuple(most if k == axis and n == name else e for k, e in enumerate(shape))
                   for n, shape in shapes.items()}  # fmt: skip
        load(path, shapes=given(largest))


@pytest.mark.parametrize(
    ("drawn", "shape", "words"),
    [
        (Drawn("Reshape", [np.ones(30, np.float32), np.ones(2, np.int64)]), (5, 7), "35 elements, expected 30"),
        (Drawn("Tile", [np.ones((1, 3), np.float32), np.ones(2, np.int64)]), (5, 7), "7 along axis 1, .*multiple of 3"),
        (Drawn("ReduceMax", [np.ones((4, 3), np.float32), np.ones(1, np.int64)]), (2, 3), "2 along axis 0, .*1 or 4"),
    ],
)
def test_extents_that_operands_settle_in_part_are_checked(
    tmp_path: Path, drawn: Drawn, shape: tuple[int, ...], words: str
) -> None:
    path = saved(tmp_path / "a.onnx", drawn)
    with pytest.raises(ModelError, match=f"'y0' would be .*: {words}"):
        load(path, shapes=given({"y0": shape}))


def test_a_value_decides_the_most(tmp_path: Path) -> None:
    boxes, scores = np.ones((1, 9, 4), np.float32), np.ones((1, 2, 9), np.float32)
    path = saved(tmp_path / "a.onnx", Drawn("NonMaxSuppression", [boxes, scores, np.ones(1, np.int64)]))
    load(path, shapes=["y0=18,3"])
    with pytest.raises(ModelError, match=r"--value x2=4: .*'y0' would be \[18, 3\].*at most 8 along axis 0"):
        load(path, shapes=["y0=18,3"], values=["x2=4"])


def test_an_upper_bound_may_lie_above_the_most(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.onnx", Drawn("NonZero", [np.ones((4, 5), np.float32)]))
    graph = load(path, ["y0:1<=300"])
    assert isinstance(graph, Graph)
    assert graph.tensors[graph.outputs[0]].shape == (2, 300)
    with pytest.raises(ModelError, match="at most 20 along axis 1"):
        load(path, ["y0:1=300"])


def full_kind(draw: Callable[[Draw], added.Drawn]) -> tuple[str, str]:
    drawn = draw(Draw(0))
    return drawn.domain, drawn.kind


@pytest.mark.parametrize("draw", [d for d in added.DRAWS if full_kind(d) in {*LIMITS, *EQUAL}], ids=kind_of)
def test_added_operators_stay_below_their_limits(draw: Callable[[Draw], added.Drawn], tmp_path: Path) -> None:
    if added.is_older():
        pytest.skip("another version of ONNX Runtime")
    for seed in range(share(SEEDS)):
        drawn = draw(Draw(seed))
        onnx.save(added.model(drawn), tmp_path / "a.onnx")
        shapes = {name: shape for name, (_, shape) in added.session_types(drawn).items() if shape}
        load(tmp_path / "a.onnx", shapes=given(shapes))


def test_each_rule_is_drawn() -> None:
    drawn = {("", kind_of(draw)) for draw in DRAWS}
    drawn |= set(map(full_kind, added.DRAWS))
    reductions = {("", kind) for _, kind in EQUAL if kind.startswith("Reduce")}
    assert {*LIMITS, *EQUAL} - reductions <= drawn
