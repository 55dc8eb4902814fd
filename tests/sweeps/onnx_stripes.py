"""Random small CNNs in stripes on ONNX Runtime: how far outputs are apart, and traced peaks before and after.

Each net runs at three optimization levels, twice: in stripes of a random stretch, legal by the rule for partial sums,
with the arena off; and as `fit` makes it, at the settings that it names. `benchmarks/onnx_sweep.py` runs many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from modelplan import Graph, load
from modelplan.primitives.errors import ModelError
from modelplan.rewriting.striped_onnx.ladder import OnnxGoal, climb
from modelplan.rewriting.striped_onnx.layers import stretch_layers
from modelplan.rewriting.striped_onnx.output_differences import compare_outputs
from modelplan.rewriting.striped_onnx.unrolled_nodes import live_after, striped_onnx_program
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of, write_striped_onnx
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import KeptHalo, RecomputedHalo
from modelplan.runtimes.ort.measuring import Measured, SessionSettings, kept_values, measure

LEVELS = ("disable", "basic", "extended")
#: Work that fit may add, as a share of the net's: these nets have few multiply-accumulates beside their nodes.
MOST_MACS = 10.0
#: Nodes of a net before its outputs are made.
_NODES = 10


@dataclass(frozen=True)
class Row:
    """One net at one level. Peaks in bytes, differences in units of the last place; -1 where nothing was measured.

    `stripes` is the random stretch, with `before` and `after`; `fit` says what fit did: "split" is a file, "settings"
    and "as is" are none. `fit_before` and `fit_after` are the peaks of the model and of that file at `settings`, in
    further processes, `usual_before` and `usual_after` those at the defaults, as fit tells them. `refused` is what ONNX
    Runtime says of the model as it stands, `stripes_refused` of the random stripes.
    """

    net: int
    level: str
    nodes: int
    refused: str = ""
    stripes: str = ""
    ulps: float = -1
    before: int = -1
    after: int = -1
    fit: str = ""
    settings: str = ""
    fit_ulps: float = -1
    fit_before: int = -1
    fit_after: int = -1
    usual_before: int = -1
    usual_after: int = -1
    stripes_refused: str = ""

    @property
    def wrong(self) -> str:
        """What must not be: other outputs, or a written file that needs no less than the model; else empty."""
        found = []
        if self.ulps > 0:
            found.append(f"outputs of stripes {self.stripes} differ by {self.ulps:g} ulp")
        if self.fit_ulps > 0:
            found.append(f"outputs of the written file differ by {self.fit_ulps:g} ulp")
        if self.fit_ulps >= 0 and self.fit_after >= self.fit_before:
            found.append(f"the written file needs {self.fit_after:,} bytes, the model {self.fit_before:,}")
        return "; ".join(found)


class _Net:
    """A CNN of convolutions, pools, norms, residuals, joins, enlargements and paddings over a map, made at random."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        height, width = (int(n) for n in self.random.integers(24, 97, 2))
        self.weights: list[Any] = []
        self.nodes: list[Any] = []
        self.maps = [("x", int(self.random.integers(1, 5)), height, width)]
        kinds = (
            self.convolve, self.convolve, self.convolve, self.convolve_apart, self.pool, self.activate, self.add_up,
            self.join, self.enlarge, self.pad, self.normalise,
        )  # fmt: skip
        while len(self.nodes) < _NODES:
            kinds[int(self.random.integers(len(kinds)))](*self.maps[-1])
        if seed % 4:
            self.close()

    def model(self) -> Any:
        """The model; every map that nothing reads is an output."""
        read = {name for node in self.nodes for name in node.input}
        outputs = [helper.make_empty_tensor_value_info(m[0]) for m in self.maps[1:] if m[0] not in read]
        inputs = [helper.make_tensor_value_info("x", 1, [1, *self.maps[0][1:]])]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", 19)]
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, ir_version=8, opset_imports=opsets))

    def close(self) -> None:
        """Means of all maps that nothing reads: outputs would hold them to the end."""
        read = {name for node in self.nodes for name in node.input}
        for name, channels, *_ in [m for m in self.maps[1:] if m[0] not in read]:
            self.node("GlobalAveragePool", [name], (channels, 1, 1))

    def constant(self, array: Any) -> str:
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return f"w{len(self.weights) - 1}"

    def weight(self, *shape: int) -> str:
        array: Any = self.random.standard_normal(shape) / float(np.prod(shape[1:])) ** 0.5
        return self.constant(array.astype(np.float32))

    def node(self, kind: str, inputs: list[str], shape: tuple[int, int, int], **attributes: Any) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], f"n{len(self.nodes)}", **attributes))
        self.maps.append((name, *shape))

    def window(self, rows: int, columns: int, *, dilated: bool) -> tuple[dict[str, Any], tuple[int, int]] | None:
        """Attributes of a window and the extents of its output; None where these are small."""
        kernel = [int(k) for k in self.random.integers(1, 5, 2)]
        strides = [int(s) for s in self.random.choice([1, 1, 2], 2)]
        dilations = [int(d) for d in self.random.choice([1, 1, 1, 2], 2)] if dilated else [1, 1]
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        pads = [int(self.random.integers(0, k)) for k in kernel * 2]
        high, wide = ((n + pads[i] + pads[i + 2] - reach[i]) // strides[i] + 1 for i, n in enumerate((rows, columns)))
        how = {"kernel_shape": kernel, "strides": strides, "pads": pads} | ({"dilations": dilations} if dilated else {})
        return (how, (high, wide)) if min(high, wide) >= 4 else None

    def convolve(self, name: str, channels: int, rows: int, columns: int) -> None:
        found, made = self.window(rows, columns, dilated=True), int(self.random.integers(2, 12))
        if found:
            operands = [name, self.weight(made, channels, *found[0]["kernel_shape"]), self.weight(made)]
            self.node("Conv", operands, (made, *found[1]), **found[0])

    def convolve_apart(self, name: str, channels: int, rows: int, columns: int) -> None:
        found = self.window(rows, columns, dilated=True)
        if found:
            operands = [name, self.weight(channels, 1, *found[0]["kernel_shape"])]
            self.node("Conv", operands, (channels, *found[1]), group=channels, **found[0])

    def pool(self, name: str, channels: int, rows: int, columns: int) -> None:
        found = self.window(rows, columns, dilated=False)
        if found:
            kind = str(self.random.choice(["MaxPool", "AveragePool"]))
            more = {"count_include_pad": int(self.random.integers(2))} if kind == "AveragePool" else {}
            self.node(kind, [name], (channels, *found[1]), **found[0], **more)

    def activate(self, name: str, channels: int, rows: int, columns: int) -> None:
        kind = str(self.random.choice(["Relu", "Sigmoid", "HardSwish", "HardSigmoid", "Clip", "PRelu", "Softmax"]))
        more: list[str] = []
        if kind == "Clip":
            more = [self.constant(np.float32(0)), self.constant(np.float32(6))]
        elif kind == "PRelu":
            more = [self.weight(channels, 1, 1)]
        how: dict[str, Any] = {"axis": 1} if kind == "Softmax" else {}
        self.node(kind, [name, *more], (channels, rows, columns), **how)

    def normalise(self, name: str, channels: int, rows: int, columns: int) -> None:
        operands = [name, self.weight(channels), self.weight(channels)]
        if self.random.integers(3):
            variance = self.constant(self.random.random(channels).astype(np.float32) + 0.5)
            self.node("BatchNormalization", [*operands, self.weight(channels), variance], (channels, rows, columns))
        else:
            self.node("InstanceNormalization", operands, (channels, rows, columns))

    def add_up(self, name: str, channels: int, rows: int, columns: int) -> None:
        same = [m[0] for m in self.maps[1:-1] if m[1:] == (channels, rows, columns)]
        if same:
            self.node("Add", [name, same[0]], (channels, rows, columns))

    def join(self, name: str, channels: int, rows: int, columns: int) -> None:
        same = [m for m in self.maps[1:-1] if m[2:] == (rows, columns)]
        if same and channels < 24:
            self.node("Concat", [name, same[0][0]], (channels + same[0][1], rows, columns), axis=1)

    def enlarge(self, name: str, channels: int, rows: int, columns: int) -> None:
        if max(rows, columns) < 60:
            how: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
            if self.random.integers(2):
                how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            scales = self.constant(np.array([1, 1, 2, 2], np.float32))
            self.node("Resize", [name, "", scales], (channels, 2 * rows, 2 * columns), **how)

    def pad(self, name: str, channels: int, rows: int, columns: int) -> None:
        above, left, below, right = (int(n) for n in self.random.integers(0, 3, 4))
        pads = self.constant(np.array([0, 0, above, left, 0, 0, below, right], np.int64))
        self.node("Pad", [name, pads], (channels, rows + above + below, columns + left + right))


def random_net(seed: int) -> Any:
    """The random CNN of this number."""
    return _Net(seed).model()


def striped(path: Path, graph: Graph, seed: int) -> Iterator[tuple[bytes, str]]:
    """A file in stripes of a random stretch, and what was done; none where no stretch that was tried can be split.

    Stretches begin and end where the session has a value at all levels, as those of fit do.
    """
    random = np.random.default_rng([seed, 1])
    proto = parsed(path)
    reading = reading_of(proto, graph, frozenset.intersection(*(kept_values(path, level) for level in LEVELS)))
    live = live_after(graph)
    count = len(graph.ops)
    for _ in range(40):
        first, last = sorted(int(n) for n in random.integers(0, count, 2))
        rows = graph.tensors[graph.ops[last].outputs[0]].shape[2]
        if rows < 4 or (live[first] | live[last + 1]) & reading.gone:
            continue
        stripes = int(random.integers(2, min(rows, 9)))
        carry, unnamed = bool(random.integers(2)), bool(random.integers(2))
        cuts = tuple(rows * k // stripes for k in range(stripes + 1))
        stretch = (KeptHalo if carry else RecomputedHalo)(first, last, 2, cuts, pad=frozenset(range(first, last + 1)))
        try:
            stretch_layers(reading, stretch)
            program = striped_onnx_program(reading, [stretch], threads=1)
        except IllegalStripeError:
            continue
        yield (
            write_striped_onnx(proto, reading, program, unnamed=unnamed),
            f"{first}-{last} in {stripes}, kept: {carry}",
        )
        return


def rows_of(seed: int, folder: Path) -> list[Row]:
    """What was measured of one random net, at each level."""
    path, out = folder / "m.onnx", folder / "out.onnx"
    model = random_net(seed)
    onnx.save(model, path)
    graph = load(path)
    assert isinstance(graph, Graph)
    base = [Row(seed, level, len(model.graph.node)) for level in LEVELS]
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}

    def run(file: Path, settings: SessionSettings) -> Measured:
        return measure(file, shapes, settings, runs=3, inputs=5, keep=True)

    bare = {level: SessionSettings(level=level, arena="off", pattern=False) for level in LEVELS}
    try:
        before = {level: run(path, bare[level]) for level in LEVELS}
    except ModelError as problem:  # such as a Pad that ONNX Runtime puts into a pool which then has too large a padding
        return [replace(row, refused=str(problem)) for row in base]
    found = next(striped(path, graph, seed), None)
    rows = []
    for row in base:
        if found is not None:
            out.write_bytes(found[0])
            onnx.checker.check_model(str(out), full_check=True)
            row = replace(row, stripes=found[1])
            try:
                after = run(out, bare[row.level]).above(before[row.level].session)
            except ModelError as problem:  # the same Pads, in front of pools of a stripe
                row = replace(row, stripes_refused=str(problem))
            else:
                apart = compare_outputs(before[row.level].outputs, after.outputs).ulps
                row = replace(row, ulps=apart, before=before[row.level].peak, after=after.peak)
        goal = OnnxGoal(settings=SessionSettings(level=row.level), max_macs=MOST_MACS)
        ladder = climb(str(path), graph, goal, lambda _: None)
        chosen = ladder.chosen
        assert chosen is not None
        row = replace(row, fit=chosen.name, settings=chosen.settings.described())
        if chosen.model is not None:
            out.write_bytes(chosen.model)
            onnx.checker.check_model(str(out), full_check=True)
            first = run(path, chosen.settings)
            second = run(out, chosen.settings).above(first.session)
            apart = compare_outputs(first.outputs, second.outputs).ulps
            row = replace(row, fit_ulps=apart, fit_before=first.peak, fit_after=second.peak)
            row = replace(row, usual_before=ladder.rungs[0].usual.peak, usual_after=chosen.usual.peak)
        rows.append(row)
    return rows
