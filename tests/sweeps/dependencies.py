"""Which elements of a result change with an element of an operand, measured on real kernels, beside what both maps say.

python tests/sweeps/dependencies.py [COUNT [SEED]] prints what neither of them names. Single operators of all kinds are
run on the tflite-micro wheel, some of ONNX on ONNX Runtime; a change that a kernel rounds away is not seen, so that
what is measured is a part of what is read.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import tflm_models

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


def on_tflm(name: str, content: bytes, seed: int) -> Iterator[Dependencies]:
    """What is measured of a .tflite model of one operator; nothing where TFLM refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.tflite"
        path.write_bytes(content)
        try:
            graph = load_model(str(path))
        except ModelError:
            return
        if fits(graph):
            try:
                yield from measured(name, graph, seed, lambda runs: [
                    outputs for outputs, _ in tflm_values(content, [[x.tobytes() for x in run] for run in runs])
                ])  # fmt: skip
            except RefusalError:
                return


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
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "one.onnx"
            path.write_bytes(model)
            graph = load_model(str(path))
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [x.name for x in session.get_inputs()]
        yield from measured(name, graph, seed, lambda runs, s=session, n=names: [
            s.run(None, dict(zip(n, run, strict=True))) for run in runs
        ])  # fmt: skip


def onnx_models(rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Models of one node, by kind."""
    a, b, c, d = (int(n) for n in rng.integers(1, 6, 4))
    k, s = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    whole = [2 * a, 2 * b + k, 2 * c + k]
    first = [int(rng.integers(0, n)) for n in whole]
    order = [int(n) for n in rng.permutation(4)]
    plain: list[tuple[str, list[int], dict[str, Any], list[list[int]]]] = [
        ("Transpose", [a, b, c, d], {"perm": order}, []),
        ("Slice", whole, {}, [first, whole, [0, 1, 2], [s, 1, s]]),
        ("Gather", whole, {"axis": 1}, [[first[1], 0, -1]]),
        ("Pad", [a, b, c], {}, [[1, 0, k, 0, s, 1]]),
        ("Tile", [a, b], {}, [[k, s]]),
        ("Expand", [a, 1, b], {}, [[a, k, b]]),
        ("DepthToSpace", [1, 4 * a, b, c], {"blocksize": 2, "mode": "DCR" if k == 1 else "CRD"}, []),
        ("SpaceToDepth", [1, a, 2 * b, 2 * c], {"blocksize": 2}, []),
        ("ReduceSum", [a, b, c], {"keepdims": k % 2}, [[0, 2]]),
        ("Reshape", [a, 2 * b, c], {}, [[2 * a, -1]]),
        ("Softmax", [a, b, c], {"axis": -1}, []),
        ("MaxPool", [1, a, b + k, c + k], {"kernel_shape": [k, k], "strides": [s, s]}, []),
        ("CumSum", [a, b], {}, [[1]]),
        ("Relu", [a, b], {}, []),
    ]
    for kind, shape, attributes, numbers in plain:
        names = [f"n{i}" for i in range(len(numbers))]
        node = onnx.helper.make_node(kind, ["x", *names], ["y"], **attributes)
        given = [onnx.numpy_helper.from_array(np.array(row, np.int64), name)
                 for name, row in zip(names, numbers, strict=True)]  # fmt: skip
        x, y = (onnx.helper.make_tensor_value_info(name, 1, dims) for name, dims in (("x", shape), ("y", None)))
        graph = onnx.helper.make_graph([node], "g", [x], [y], given)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
        yield kind, onnx.shape_inference.infer_shapes(model).SerializeToString()


def all_measured(count: int, seed: int, part: int = 1) -> Iterator[Dependencies]:
    """What is measured of `count` drawn models for every kind and type, or of every `part`-th of them."""
    for number, (name, content) in enumerate(tflm_models.sweep(count, seed)):
        if number % part == 0:
            yield from on_tflm(name, content, seed)
    for offset in range(count):
        yield from on_onnx(seed + offset)


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
