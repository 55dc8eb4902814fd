"""Random small CNNs in stripes on ONNX Runtime: equal outputs, and never a higher traced peak where a file is taken.

    python tests/onnx_stripes.py --count 200 [--seed N]

Each net gets random regions and stripes, legal ones by the rule for partial sums, and runs at three optimization
levels with the arena off. Outputs must be equal bit by bit; a file counts as taken where its peak is lower.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from modelplan import Graph, load
from modelplan.errors import ModelError
from modelplan.rewriting.striped_onnx.comparing import compare_outputs
from modelplan.rewriting.striped_onnx.pieces import build, ground
from modelplan.rewriting.striped_onnx.writing import parsed, reading_of, write_striped
from modelplan.rewriting.stripes.regions import Region
from modelplan.rewriting.stripes.windows import IllegalStripeError
from modelplan.runtimes.ort.measuring import Settings, measure

LEVELS = ("disable", "basic", "extended")


class _Net:
    """A CNN of convolutions, pools, residuals, joins, enlargements and paddings over a small map, made at random."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        height, width = (int(n) for n in self.random.integers(17, 48, 2))
        self.weights: list[Any] = []
        self.nodes: list[Any] = []
        self.maps = [("x", int(self.random.integers(1, 5)), height, width)]
        kinds = (
            self.convolve, self.convolve, self.convolve, self.convolve_apart, self.pool, self.activate, self.add_up,
            self.join, self.enlarge, self.pad,
        )  # fmt: skip
        while len(self.nodes) < 10:
            kinds[int(self.random.integers(len(kinds)))](*self.maps[-1])

    def model(self) -> Any:
        """The model; every map that nothing reads is an output."""
        read = {name for node in self.nodes for name in node.input}
        outputs = [helper.make_empty_tensor_value_info(m[0]) for m in self.maps[1:] if m[0] not in read]
        inputs = [helper.make_tensor_value_info("x", 1, [1, *self.maps[0][1:]])]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", 19)]
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, ir_version=8, opset_imports=opsets))

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
            self.node(kind, [name], (channels, *found[1]), **found[0])

    def activate(self, name: str, channels: int, rows: int, columns: int) -> None:
        self.node(str(self.random.choice(["Relu", "Sigmoid", "HardSwish"])), [name], (channels, rows, columns))

    def add_up(self, name: str, channels: int, rows: int, columns: int) -> None:
        same = [m[0] for m in self.maps[1:-1] if m[1:] == (channels, rows, columns)]
        if same:
            self.node("Add", [name, same[0]], (channels, rows, columns))

    def join(self, name: str, channels: int, rows: int, columns: int) -> None:
        same = [m for m in self.maps[1:-1] if m[2:] == (rows, columns)]
        if same and channels < 24:
            self.node("Concat", [name, same[0][0]], (channels + same[0][1], rows, columns), axis=1)

    def enlarge(self, name: str, channels: int, rows: int, columns: int) -> None:
        if max(rows, columns) < 40:
            how: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
            if self.random.integers(2):
                how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            scales = self.constant(np.array([1, 1, 2, 2], np.float32))
            self.node("Resize", [name, "", scales], (channels, 2 * rows, 2 * columns), **how)

    def pad(self, name: str, channels: int, rows: int, columns: int) -> None:
        above, left, below, right = (int(n) for n in self.random.integers(0, 3, 4))
        pads = self.constant(np.array([0, 0, above, left, 0, 0, below, right], np.int64))
        self.node("Pad", [name, pads], (channels, rows + above + below, columns + left + right))


def striped(path: Path, seed: int) -> Iterator[tuple[bytes, str]]:
    """A file in stripes of a random region, and what was done; none where no region that was tried can be split."""
    random = np.random.default_rng([seed, 1])
    graph = load(path)
    assert isinstance(graph, Graph)
    proto = parsed(path)
    reading = reading_of(proto, graph)
    count = len(graph.ops)
    for _ in range(40):
        first, last = sorted(int(n) for n in random.integers(0, count, 2))
        rows = graph.tensors[graph.ops[last].outputs[0]].shape[2]
        stripes = int(random.integers(2, min(rows, 9)))
        carry, unnamed = bool(random.integers(2)), bool(random.integers(2))
        cuts = tuple(rows * k // stripes for k in range(stripes + 1))
        region = Region(first, last, 2, cuts, carry=carry, pad=frozenset(range(first, last + 1)))
        try:
            ground(reading, region)
            program = build(reading, [region], threads=1)
        except IllegalStripeError:
            continue
        yield write_striped(proto, reading, program, unnamed=unnamed), f"{first}-{last} in {stripes}, kept: {carry}"
        return


def problems(seed: int, folder: Path, counts: Counter[str]) -> list[str]:
    """What is wrong with the stripes of one random net."""
    path, out = folder / "m.onnx", folder / "out.onnx"
    onnx.save(_Net(seed).model(), path)
    graph = load(path)
    assert isinstance(graph, Graph)
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    settings = [Settings(level=level, arena="off", pattern=False) for level in LEVELS]
    try:
        before = [measure(path, shapes, one, runs=2, inputs=2, keep=True) for one in settings]
    except ModelError:  # such as a Pad that ONNX Runtime puts into a pool which then has too large a padding
        counts["refused"] += 1
        return []
    wrong = []
    for model, what in striped(path, seed):
        out.write_bytes(model)
        onnx.checker.check_model(str(out), full_check=True)
        counts["files"] += 1
        for one, expected in zip(settings, before, strict=True):
            try:
                found = measure(out, shapes, one, runs=2, inputs=2, keep=True)
            except ModelError as problem:
                wrong.append(f"net {seed}, {what}, {one.level}: {problem}")
                continue
            difference = compare_outputs(expected.outputs, found.outputs)
            counts["lower"] += found.peak < expected.peak
            if difference.ulps:
                wrong.append(f"net {seed}, {what}, {one.level}: {difference.described()}")
    return wrong


def main() -> int:
    """Runs the nets; tells what is wrong and how often a peak was lower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first net")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            found = problems(seed, Path(folder), counts)
            wrong += found
            for line in found:
                print(line, flush=True)
    runs, lower, refused = 3 * counts["files"], counts["lower"], counts["refused"]
    print(f"{arguments.count} nets, {refused} refused as they are; of {runs} runs in stripes {len(wrong)} differ,"
          f" {lower} need less")  # fmt: skip
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
