"""Files of few bytes for much work: as many operators, tensors, bodies and names as fit into ten megabytes.

`python tests/sweeps/dense.py` writes each as large as the loaders take it and opens it under the promise of `load` (a
Graph or a ModelError, in under 10 seconds and 1 GiB): CPU seconds and peak memory of each, exit code 1 where it is
broken.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import fuzz
import onnx
from onnx import TensorProto, helper

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
import tflite_models

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
CONDITION = helper.make_tensor_value_info("cond", TensorProto.BOOL, [])


def value(name: str, shape: list[int | str] | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def onnx_file(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initialisers: Sequence[TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> bytes:
    graph = helper.make_graph(nodes, "g", inputs, outputs, [*initialisers])
    imports = [helper.make_opsetid("", 20), *([helper.make_opsetid("f", 1)] if functions else [])]
    model: bytes = helper.make_model(graph, opset_imports=imports, functions=functions).SerializeToString()
    return model


def chain(n: int, start: str = "x") -> list[onnx.NodeProto]:
    return [helper.make_node("Abs", [f"{i:x}" if i else start], [f"{i + 1:x}"]) for i in range(n)]


def onnx_chain(n: int) -> bytes:
    return onnx_file(chain(n), [X], [value(f"{n:x}", [4])])


def onnx_open(n: int) -> bytes:
    return onnx_file(chain(n), [value("x", ["n"])], [value(f"{n:x}", None)])


def onnx_found_at_run_time(n: int) -> bytes:
    nodes = [helper.make_node("NonZero", ["x"], ["z"]), *chain(n - 1, "z")]
    return onnx_file(nodes, [X], [value(f"{n - 1:x}", None, TensorProto.INT64)])


def onnx_folded(n: int) -> bytes:
    nodes = [helper.make_node("Shape", ["x"], ["0"])]
    nodes += [helper.make_node("Add", [f"{i:x}", "0"], [f"{i + 1:x}"]) for i in range(n - 1)]
    return onnx_file(nodes, [X], [value(f"{n - 1:x}", [1], TensorProto.INT64)])


def onnx_constants(n: int) -> bytes:
    nodes = [helper.make_node("Constant", [], [f"{i:x}"], value_int=1) for i in range(n)]
    return onnx_file(nodes, [], [value("0", [], TensorProto.INT64)])


def onnx_symbols(n: int) -> bytes:
    inputs = [value(f"{i:x}", [f"s{i:x}"]) for i in range(n)]
    return onnx_file([helper.make_node("Abs", ["0"], ["y"])], inputs, [value("y", None)])


def onnx_split(n: int) -> bytes:
    node = helper.make_node("Split", ["x"], [f"{i:x}" for i in range(n)], axis=0, num_outputs=n)
    return onnx_file([node], [value("x", [n])], [value("0", [1])])


def onnx_types(n: int) -> bytes:
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", [X], [value("y", [4])])
    graph.value_info.extend(value(f"{i:x}", [1]) for i in range(n))
    model: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString()
    return model


def onnx_axes(n: int) -> bytes:
    return onnx_file([helper.make_node("Abs", ["x"], ["y"])], [value("x", [1] * n)], [value("y", None)])


def onnx_weight_axes(n: int) -> bytes:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1] * n, raw_data=b"1234")
    return onnx_file([helper.make_node("Add", ["x", "w"], ["y"])], [X], [value("y", None)], [weight])


def onnx_attributes(n: int) -> bytes:
    node = helper.make_node("Abs", ["x"], ["y"])
    node.attribute.extend(helper.make_attribute(f"{i:x}", 1) for i in range(n))
    return onnx_file([node], [X], [value("y", [4])])


def branch() -> onnx.GraphProto:
    return helper.make_graph([helper.make_node("Abs", ["x"], ["z"])], "b", [], [value("z", [4])])


def branches(n: int) -> list[onnx.NodeProto]:
    return [helper.make_node("If", ["cond"], [f"y{i:x}"], then_branch=branch(), else_branch=branch()) for i in range(n)]


def onnx_branches(n: int) -> bytes:
    return onnx_file(branches(n), [X, CONDITION], [value("y0", [4])])


def onnx_chosen_branches(n: int) -> bytes:
    known = helper.make_tensor("cond", TensorProto.BOOL, [], [True])
    return onnx_file(branches(n), [X], [value("y0", [4])], [known])


def onnx_branches_that_see_much(n: int) -> bytes:
    return onnx_file([*chain(n), *branches(n // 3400 + 1)], [X, CONDITION], [value("y0", [4])])


def onnx_branches_that_read_much(n: int) -> bytes:
    reads = [helper.make_node("Sum", [f"{i + 1:x}" for i in range(n)], ["z"])]
    wide = helper.make_graph(reads, "b", [], [value("z", [4])])
    nodes = [
        helper.make_node("If", ["cond"], [f"y{i}"], then_branch=wide, else_branch=branch()) for i in range(n // 17)
    ]
    return onnx_file([*chain(n), *nodes], [X, CONDITION], [value("y0", [4])])


def onnx_loops_in_loops(n: int) -> bytes:
    """Each grows what it carries, so each body is read twice; protobuf goes no deeper than 30."""
    head = [value("i", [], TensorProto.INT64), value("k", [], TensorProto.BOOL), value("v", None)]
    tail = [value("kk", [], TensorProto.BOOL), value("w", None)]
    nodes = [helper.make_node("Identity", ["v"], ["u"])]
    depth = min(n, 30)
    for level in range(depth):
        grow = [helper.make_node("Concat", ["u", "v"], ["w"], axis=0), helper.make_node("Identity", ["k"], ["kk"])]
        body = helper.make_graph([*nodes, *grow], f"b{level}", head, tail)
        nodes = [helper.make_node("Loop", ["m", "cond", "v" if level < depth - 1 else "x"], ["u"], body=body)]
    return onnx_file(nodes, [X, CONDITION, value("m", [], TensorProto.INT64)], [value("u", None)])


def onnx_functions(n: int) -> bytes:
    imports = [helper.make_opsetid("", 20)]
    body = [helper.make_node("Abs", ["x"], ["y"])]
    functions = [helper.make_function("f", f"{i:x}", ["x"], ["y"], body, imports) for i in range(n)]
    return onnx_file([helper.make_node("0", ["x"], ["y"], domain="f")], [X], [value("y", [4])], functions=functions)


Made = TypeVar("Made")


class Shared(tflite_models.Writer):
    """Writes equal tensors and equal vectors once: four bytes are then enough for one more of them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[object, Any] = {}

    def once(self, key: object, make: Callable[[], Made]) -> Made:
        if key not in self.seen:
            self.seen[key] = make()
        made: Made = self.seen[key]
        return made

    def integers(self, start: tflite_models.Start, items: Sequence[int]) -> int:
        return self.once(tuple(items), lambda: super(Shared, self).integers(start, items))

    def tensor(self, name: str, kind: int, shape: Sequence[int], values: Any) -> int:
        row = (name, kind, tuple(shape), values)
        return self.once(row, lambda: super(Shared, self).tensor(*row))

    def options(self, kind: str, calls: Sequence[int]) -> tuple[int, int]:
        if kind == "IF":
            return super().options(kind, calls)
        return self.once(kind, lambda: super(Shared, self).options(kind, ()))


def tflite_file(*subgraphs: tflite_models.Sub) -> bytes:
    return tflite_models.model(*subgraphs, writer=Shared())


T: tflite_models.TensorRow = ("t", tflite_models.FLOAT32, (4,), None)
BOOL: tflite_models.TensorRow = ("c", tflite_models.BOOL, (1,), None)


def sums(n: int, more: int = 0) -> tflite_models.Sub:
    ops: list[tflite_models.OpRow] = [("ADD", (i, i), (i + 1,), ()) for i in range(n)]
    return tflite_models.Sub([T] * (n + 1 + more), ops, (0,), (n,))


def tflite_chain(n: int) -> bytes:
    return tflite_file(sums(n, n // 2 - 1))


def tflite_tensors(n: int) -> bytes:
    return tflite_file(sums(1, n - 2))


def tflite_operands(n: int) -> bytes:
    return tflite_file(tflite_models.Sub([T, T], [("ADD", (0,) * n, (1,), ())], (0,), (1,)))


def tflite_branches(n: int, length: int = 1) -> bytes:
    ops: list[tflite_models.OpRow] = [("IF", (0, 1), (2 + i,), (1 + 2 * i, 2 + 2 * i)) for i in range(n)]
    return tflite_file(tflite_models.Sub([BOOL, *[T] * (n + 1)], ops, (0, 1), (2,)), *[sums(length)] * (2 * n))


def tflite_long_branches(n: int) -> bytes:
    return tflite_branches(n, 1000)


#: Each with a size that is just taken, and with one that is refused, if a file of ten megabytes can be so large.
CASES: dict[Callable[[int], bytes], tuple[int, int]] = {
    onnx_chain: (99_999, 470_000),
    onnx_open: (99_999, 470_000),
    onnx_found_at_run_time: (99_999, 470_000),
    onnx_folded: (99_999, 420_000),
    onnx_constants: (99_999, 260_000),
    onnx_symbols: (149_000, 370_000),
    onnx_split: (149_000, 1_400_000),
    onnx_types: (149_000, 450_000),
    onnx_axes: (64, 2_400_000),
    onnx_weight_axes: (64, 4_900_000),
    onnx_attributes: (700_000, 0),
    onnx_branches: (1499, 80_000),
    onnx_chosen_branches: (1499, 80_000),
    onnx_branches_that_see_much: (90_000, 400_000),
    onnx_branches_that_read_much: (1700, 5000),
    onnx_loops_in_loops: (30, 0),
    onnx_functions: (9_999, 150_000),
    tflite_chain: (99_999, 190_000),
    tflite_tensors: (149_999, 2_400_000),
    tflite_operands: (2_400_000, 0),
    tflite_branches: (1_500, 50_000),
    tflite_long_branches: (40, 140),
}


def opened(path: Path) -> tuple[float, float, str]:
    """CPU seconds, megabytes at the peak, and what broke the promise, or nothing: in a process of its own."""
    done = subprocess.run([sys.executable, __file__, path], capture_output=True, text=True, check=True)
    seconds, megabytes, broken = json.loads(done.stdout)
    return seconds, megabytes, broken


def measured(path: Path) -> tuple[float, float, str]:
    broken = fuzz.promise(path)
    seconds = time.process_time()
    [peak] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    size = int(peak) * 1024
    if seconds > fuzz.SECONDS or size > fuzz.BYTES:
        broken = broken or "too much"
    return seconds, size / 1e6, broken


def main() -> int:
    failures = 0
    for build, sizes in CASES.items():
        for size in filter(None, sizes):
            with tempfile.NamedTemporaryFile(suffix=f".{build.__name__.split('_')[0]}") as file:
                length = file.write(build(size))
                file.flush()
                seconds, megabytes, broken = opened(Path(file.name))
            failures += bool(broken)
            print(f"{build.__name__:32} {length:>10,} B {seconds:6.2f} s {megabytes:5.0f} MB {broken}", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measured(Path(sys.argv[1]))))
    else:
        sys.exit(main())
