"""Which elements of a result change with an element of an operand, measured on real kernels, beside what both maps say.

python tests/sweeps/dependencies.py [COUNT [SEED]] prints what neither of them names. Single operators of all kinds are
run on the tflite-micro wheel, some of ONNX on ONNX Runtime; a change that a kernel rounds away is not seen, so that
what is measured is a part of what is read.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import tflm_models
from tflm_models import T

from modelplan.checking.verifier.moves import use_of
from modelplan.checking.verifier.places import OperandPlaces, places_read
from modelplan.checking.verifier.program import graph_program
from modelplan.checking.verifier.rewrites.needs import elements_behind
from modelplan.checking.verifier.semantics import POINTWISE
from modelplan.formats import load_model
from modelplan.model import Graph
from modelplan.ops import access_of
from modelplan.ops.access import Reads
from modelplan.primitives.errors import ModelError
from modelplan.runtimes.tflm.runner import RefusalError, tflm_values

sys.path.append(str(Path(__file__).resolve().parents[1] / "oracles"))
from needed_boxes import needed

Array = npt.NDArray[Any]
#: Elements that are changed of each operand, and the largest tensors.
CHANGES, MOST = 24, 1500
_NUMBERS = ("int32", "int64")


@dataclass(frozen=True)
class Dependencies:
    """A model of one operator, and pairs (element, those of output `output` that change with it) of `operand`."""

    name: str
    graph: Graph
    operand: int
    output: int
    pairs: tuple[tuple[int, tuple[int, ...]], ...]


def drawn(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    """Values of a type; numbers that may be places are 0 or 1."""
    if dtype.startswith("float"):
        return rng.normal(0, 4, shape).astype(dtype)
    low, high = {"bool": (0, 2), "int8": (-128, 128), "uint8": (0, 256), "int16": (-32768, 32768)}.get(dtype, (0, 2))
    return rng.integers(low, high, shape).astype(dtype)


def changed(rng: np.random.Generator, inputs: Sequence[Array], number: int, element: int) -> list[Array]:
    """The inputs with another value of one element of one of them."""
    other = inputs[number].copy()
    while (value := drawn(rng, str(other.dtype), ())[()]) == other.flat[element]:
        pass
    other.flat[element] = value
    return [other if k == number else x for k, x in enumerate(inputs)]


def loaded(content: bytes, suffix: str) -> Graph | None:
    """The graph of a file, None where it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"one{suffix}"
        path.write_bytes(content)
        try:
            return load_model(str(path))
        except ModelError:
            return None


def on_tflm(name: str, content: bytes, seed: int) -> Iterator[Dependencies]:
    """What is measured of a .tflite model of one operator; nothing where TFLM refuses it."""
    graph = loaded(content, ".tflite")
    if graph is not None and fits(graph):
        with suppress(RefusalError):
            yield from measured(name, graph, seed, lambda runs: [
                outputs for outputs, _ in tflm_values(content, [[x.tobytes() for x in run] for run in runs])
            ])  # fmt: skip


def fits(graph: Graph) -> bool:
    """Whether a graph is one operator of small tensors of which somebody has a map."""
    tensors = [graph.tensors[t] for t in (*graph.inputs, *graph.outputs)]
    if len(graph.ops) != 1 or not tensors or any(not 0 < prod(t.shape) <= MOST for t in tensors):
        return False
    program, types = graph_program(graph, [0]), {graph.tensors[t].dtype for t in graph.inputs}
    if graph.ops[0].kind in POINTWISE - {"SELECT", "SELECT_V2"} and len(types) > 1:
        return False  # TFLM takes the bytes of one for the type of the other
    outputs = range(len(graph.ops[0].outputs))
    return any(access_of(graph, graph.ops[0], y) or places_read(use_of(program, program.steps[0], y)) for y in outputs)


def measured(name: str, graph: Graph, seed: int, run: Any) -> Iterator[Dependencies]:
    """What changes of all outputs with single elements of all inputs, for two draws of the rest."""
    op = graph.ops[0]
    for draw in range(2):
        rng = np.random.default_rng([seed, draw])
        inputs = [drawn(rng, graph.tensors[t].dtype, graph.tensors[t].shape) for t in graph.inputs]
        picks = [
            (number, int(element)) for number, x in enumerate(inputs) for element in rng.permutation(x.size)[:CHANGES]
        ]
        first, *others = run([inputs, *(changed(rng, inputs, *pick) for pick in picks)])
        for number, tensor in enumerate(graph.inputs):
            for output, y in enumerate(op.outputs):
                at = graph.outputs.index(y)
                pairs = tuple(
                    (element, tuple(np.flatnonzero(bits(outputs[at]) != bits(first[at])).tolist()))
                    for (n, element), outputs in zip(picks, others, strict=True)
                    if n == number
                )
                for operand in (k for k, t in enumerate(op.inputs) if t == tensor):
                    yield Dependencies(name, graph, operand, output, pairs)


def bits(values: Array) -> Array:
    """Values as whole numbers, so that no number differs from itself."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(f"u{flat.dtype.itemsize}")


def outside(
    found: Dependencies,
    planned: Callable[[Reads], Reads] = lambda reads: reads,
    proved: Callable[[OperandPlaces], OperandPlaces] = lambda places: places,
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The measured pairs (element, element of the output) that the planner's map and the verifier's do not name.

    `planned` and `proved` are changes of both.
    """
    graph, op = found.graph, found.graph.ops[0]
    x, y = graph.tensors[op.inputs[found.operand]], graph.tensors[op.outputs[found.output]]
    program = graph_program(graph, [0])
    access = access_of(graph, op, found.output)
    reads = access.of(found.operand) if access else None
    table = places_read(use_of(program, program.steps[0], found.output)) or ()
    places = next((read for read in table if read.operand == found.operand), None)
    of_planner, of_verifier = [], []
    for result in sorted({j for _, those in found.pairs for j in those}):
        at = np.unravel_index(result, y.shape) if y.shape else ()
        box = needed(planned(reads), y.shape, x.shape, tuple((int(k), int(k) + 1) for k in at)) if reads else None
        one = np.zeros(y.shape, np.bool_)
        one[at] = True
        behind = elements_behind(proved(places), one).reshape(-1) if places else None
        for element in (i for i, those in found.pairs if result in those):
            place = np.unravel_index(element, x.shape) if x.shape else ()
            if box is not None and not all(a <= k < b for k, (a, b) in zip(place, box, strict=True)):
                of_planner.append((element, result))
            if behind is not None and not behind[element]:
                of_verifier.append((element, result))
    return of_planner, of_verifier


def on_onnx(seed: int) -> Iterator[Dependencies]:
    """What is measured on ONNX Runtime of operators whose results are elements of their operands, and of windows."""
    import onnxruntime

    rng = np.random.default_rng(seed)
    for name, model in onnx_models(rng):
        graph = loaded(model, ".onnx")
        assert graph is not None
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [x.name for x in session.get_inputs()]
        yield from measured(name, graph, seed, lambda runs, s=session, n=names: [
            s.run(None, dict(zip(n, run, strict=True))) for run in runs
        ])  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A node of ONNX: shapes of what it is given as float32, then numbers that it is given, and attributes."""

    kind: str
    shapes: Sequence[Sequence[int]]
    numbers: Sequence[Sequence[int]] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1


def onnx_models(rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Models of one node, by kind."""
    for node in (*moving_nodes(rng), *adding_nodes(rng)):
        numbers = [f"n{i}" for i in range(len(node.numbers))]
        xs, ys = [f"x{i}" for i in range(len(node.shapes))], [f"y{i}" for i in range(node.outputs)]
        one = onnx.helper.make_node(node.kind, [*xs, *numbers], ys, **node.attributes)
        given = [onnx.numpy_helper.from_array(np.array(row, np.int64), name)
                 for name, row in zip(numbers, node.numbers, strict=True)]  # fmt: skip
        inputs = [onnx.helper.make_tensor_value_info(x, 1, dims) for x, dims in zip(xs, node.shapes, strict=True)]
        outputs = [onnx.helper.make_tensor_value_info(y, 1, None) for y in ys]
        graph = onnx.helper.make_graph([one], "g", inputs, outputs, given)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
        yield node.kind, onnx.shape_inference.infer_shapes(model).SerializeToString()
    yield "QLinearConcat", quantised_join(rng)


def moving_nodes(rng: np.random.Generator) -> Iterator[Node]:
    """Nodes whose results are elements of their operands, joins and splits."""
    a, b, c, d = (int(n) for n in rng.integers(1, 6, 4))
    k, s = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    whole = [2 * a, 2 * b + k, 2 * c + k]
    first = [int(rng.integers(0, n)) for n in whole]
    yield Node("Transpose", [[a, b, c, d]], attributes={"perm": [int(n) for n in rng.permutation(4)]})
    yield Node("Slice", [whole], [first, whole, [0, 1, 2], [s, 1, s]])
    yield Node("Gather", [whole], [[first[1], 0, -1]], {"axis": 1})
    yield Node("Pad", [[a, b, c]], [[1, 0, k, 0, s, 1]])
    for mode in ("edge", "reflect"):
        yield Node("Pad", [[a, b + 1, c + 3]], [[0, 1, k, 0, 0, s]], {"mode": mode})
    yield Node("Tile", [[a, b]], [[k, s]])
    yield Node("Expand", [[a, 1, b]], [[a, k, b]])
    for mode in ("DCR", "CRD"):
        yield Node("DepthToSpace", [[1, 4 * a, b, c]], attributes={"blocksize": 2, "mode": mode})
    yield Node("SpaceToDepth", [[1, a, 2 * b, 2 * c]], attributes={"blocksize": 2})
    yield Node("Reshape", [[a, 2 * b, c]], [[2 * a, -1]])
    yield Node("Relu", [[a, b]])
    yield Node("Concat", [[a, b, c], [a, k, c], [a, s, c]], attributes={"axis": 1})
    yield Node("Split", [[a, b + k, c]], [[b, k]], {"axis": 1}, outputs=2)


def adding_nodes(rng: np.random.Generator) -> Iterator[Node]:
    """Nodes that add up: windows, products, sums, norms; their weights are given as what they are applied to."""
    a, b, c, d = (int(n) for n in rng.integers(2, 6, 4))
    k, s, g = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(1, 3))
    window = {"strides": [s, 1], "pads": [k - 1, 0, 0, 1]}
    yield Node("MaxPool", [[1, a, b + k, c + k]], attributes={"kernel_shape": [k, k], "strides": [s, s]})
    yield Node("Conv", [[1, 2 * g, b + k, c + 4], [a * g, 2, k, 2], [a * g]],
               attributes={**window, "group": g, "dilations": [1, 2]})  # fmt: skip
    for word in ("SAME_LOWER", "SAME_UPPER"):
        yield Node("Conv", [[2, a, 2 * b + 2], [c, a, 3]], attributes={"auto_pad": word, "strides": [2]})
    yield Node("ConvTranspose", [[1, 2 * g, b, c], [2 * g, a, k, 2], [a * g]],
               attributes={"strides": [s, 2], "pads": [k - 1, 0, 0, 1], "group": g})  # fmt: skip
    yield Node("MatMul", [[s, b, c], [c, d]])
    for x, y in product((0, 1), repeat=2):
        yield Node("Gemm", [[[b, c], [c, b]][x], [[c, d], [d, c]][y], [d]], attributes={"transA": x, "transB": y})
    yield Node("ReduceSum", [[a, b, c]], [[0, 2]], {"keepdims": k % 2})
    yield Node("GlobalAveragePool", [[2, a, b, c]])
    yield Node("Softmax", [[a, b, c]], attributes={"axis": -1})
    yield Node("LayerNormalization", [[a, b, c], [b, c]], attributes={"axis": 1})
    yield Node("LRN", [[2, a, b, c]], attributes={"size": 3, "alpha": 4.0})
    yield Node("CumSum", [[a, b]], [[1]])


def quantised_join(rng: np.random.Generator) -> bytes:
    """Two operands behind one another, each with its scale and its zero point."""
    a, b, c = (int(n) for n in rng.integers(1, 6, 3))
    scale = onnx.numpy_helper.from_array(np.array(0.1, np.float32), "scale")
    zero = onnx.numpy_helper.from_array(np.array(3, np.uint8), "zero")
    names = ["scale", "zero", "x0", "scale", "zero", "x1", "scale", "zero"]
    node = onnx.helper.make_node("QLinearConcat", names, ["y"], domain="com.microsoft", axis=1)
    x0, x1, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, [a, n])
                 for name, n in (("x0", b), ("x1", c), ("y", b + c)))  # fmt: skip
    graph = onnx.helper.make_graph([node], "g", [x0, x1], [y], [scale, zero])
    sets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    return bytes(onnx.helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString())


def open_models(rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Models of one operator of TFLite that is given its weights or indices, which networks hold as constants."""
    a, b, c = (int(n) for n in rng.integers(2, 5, 3))
    k, s = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    down, taps = -(-(b + 2) // s), (k, 2)
    ints, last, pads = tflm_models.ints, T("int32", (), [1]), T("int32", (2, 2), [1, 0, 0, 0])
    steps = {"StrideH": s, "StrideW": 1}
    cases: list[tuple[str, list[Any], tuple[int, ...], str, dict[str, Any]]] = [
        ("CONV_2D", [(1, b + 2, c + 2, a), (3, *taps, a), (3,)], (1, down, c + 2, 3), "Conv2DOptions", steps),
        ("DEPTHWISE_CONV_2D", [(1, b + 2, c + 2, a), (1, *taps, 2 * a), (2 * a,)], (1, down, c + 2, 2 * a),
         "DepthwiseConv2DOptions", {"DepthMultiplier": 2, **steps}),
        ("TRANSPOSE_CONV", [ints(1, b * s, c, 3), (3, *taps, a), (1, b, c, a), (3,)], (1, b * s, c, 3),
         "TransposeConvOptions", steps),
        ("FULLY_CONNECTED", [(b, a), (c, a), (c,)], (b, c), "FullyConnectedOptions", {}),
        ("CUMSUM", [(a, b), last], (a, b), "CumsumOptions", {"Reverse": True}),
        ("CUMSUM", [(a, b), last], (a, b), "CumsumOptions", {"Exclusive": True}),
        ("STRIDED_SLICE", [(2 * a, c), ints(0, 1), ints(0, c), ints(-2, 1)], (a, c - 1), "StridedSliceOptions",
         {"BeginMask": 1, "EndMask": 1}),
        ("EMBEDDING_LOOKUP", [T("int32", (b,)), (2, c)], (b, c), "", {}),  # indices are drawn as 0 or 1
        ("DYNAMIC_UPDATE_SLICE", [(a + 1, c + 1), (a, c), T("int32", (2,))], (a + 1, c + 1),
         "DynamicUpdateSliceOptions", {}),
        ("SPACE_TO_BATCH_ND", [(1, 2 * b - 1, 2 * c, a), ints(2, 2), pads], (4, b, c, a), "SpaceToBatchNDOptions", {}),
        ("BATCH_TO_SPACE_ND", [(4, b, c, a), ints(2, 2), pads], (1, 2 * b - 1, 2 * c, a), "BatchToSpaceNDOptions", {}),
    ]  # fmt: skip
    for kind, given, result, table, options in cases:
        sources = [x if isinstance(x, T) else T("float32", x) for x in given]
        yield kind, tflm_models.single(kind, sources, [T("float32", result)], table, **options)


def open_measured(seed: int) -> Iterator[Dependencies]:
    """What is measured of operators that are given all that they read."""
    for name, content in open_models(np.random.default_rng(seed)):
        yield from on_tflm(name, content, seed)
    yield from on_onnx(seed)


def all_measured(count: int, seed: int, part: int = 1) -> Iterator[Dependencies]:
    """What is measured of `count` drawn models for every kind and type, or of every `part`-th of them."""
    for number, (name, content) in enumerate(tflm_models.sweep(count, seed)):
        if number % part == 0:
            yield from on_tflm(name, content, seed)
    for offset in range(count):
        yield from open_measured(seed + offset)


def main() -> int:
    """Prints what is outside, and counts."""
    count, seed = (int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((1, 1), (2, 1)))
    pairs, kinds, wrong = 0, set(), 0
    for found in all_measured(count, seed):
        pairs += sum(len(those) for _, those in found.pairs)
        kinds.add(found.graph.ops[0].kind)
        planner, verifier = outside(found)
        if planner or verifier:
            wrong += 1
            where = f"{found.name} operand {found.operand} output {found.output}"
            print(f"{where}: outside of the planner's map {planner[:3]}, of the verifier's {verifier[:3]}")
    print(f"{len(kinds)} kinds, {pairs:,} dependencies, {wrong} operands with some outside of a map")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
