"""Files below a hundred kilobytes made for much work, and every command but `fit` on each: processor seconds.

`python tests/sweeps/small_files.py [--command WORD] [--case WORD] [--largest]` writes each file, runs the
commands of `--modelplan`, and prints those that take more than two processor seconds or end in an internal error; exit
code 1 where one does.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import dense
import onnx
import tflite_models
from onnx import TensorProto, helper

#: Bytes of a file at most, processor seconds of a command at most, and where a command that goes on is ended.
MOST_BYTES, MOST_SECONDS, ENDED = 100_000, 2.0, 8

#: What is asked of a file: its name stands for "{}".
COMMANDS: dict[str, tuple[str, ...]] = {
    "analyze": ("analyze", "{}"),
    "analyze --json": ("analyze", "{}", "--json", "out.json"),
    "explain": ("explain", "{}"),
    "check": ("check", "{}", "--budget", "10KiB"),
    "verify": ("verify", "{}"),
    "diff": ("diff", "{}", "{}"),
    "compare": ("compare", "{}"),
    "recompute": ("recompute", "{}"),
    "stream": ("stream", "{}", "--macs-per-second", "1e9", "--link", "1MB/s", "--memory", "100KiB"),
    "together": ("together", "{}", "{}"),
    "memories": ("memories", "{}", "--region", "a:100KiB", "--region", "b:1MiB"),
    "memories --spill": ("memories", "{}", "--spill", "--memory", "100KiB"),
}


# -- TFLite ------------------------------------------------------------------------------------------------------------

T, BOOL = dense.T, dense.BOOL


def tflite_calls(n: int) -> bytes:
    """Subgraphs that each call the next one twice."""
    twice: list[tflite_models.Sub] = []
    for level in range(n):
        ops: list[tflite_models.OpRow] = [("CALL", (i,), (i + 1,), (level + 1,)) for i in range(2)]
        twice.append(tflite_models.Sub([T] * 3, ops, (0,), (2,)))
    return tflite_models.model(*twice, dense.sums(1))


def tflite_called_chain(n: int) -> bytes:
    """A chain that is called again and again."""
    ops: list[tflite_models.OpRow] = [("CALL", (i,), (i + 1,), (1,)) for i in range(n)]
    return tflite_models.model(tflite_models.Sub([T] * (n + 1), ops, (0,), (n,)), dense.sums(n))


def tflite_nested_branches(n: int) -> bytes:
    """Subgraphs whose two branches are both the next one, three times."""
    subs: list[tflite_models.Sub] = []
    for level in range(n):
        ops: list[tflite_models.OpRow] = [("IF", (0, 1 + i), (2 + i,), (level + 1, level + 1)) for i in range(3)]
        subs.append(tflite_models.Sub([BOOL, T, T, T, T], ops, (0, 1), (4,)))
    add: list[tflite_models.OpRow] = [("ADD", (1, 1), (2,), ())]
    return tflite_models.model(*subs, tflite_models.Sub([BOOL, T, T], add, (0, 1), (2,)))


def tflite_nested_loops(n: int) -> bytes:
    """Loops whose condition and body hold two loops over the next subgraph."""
    subs: list[tflite_models.Sub] = []
    for level in range(n):
        ops: list[tflite_models.OpRow] = [
            ("WHILE", (2 * i, 2 * i + 1), (2 * i + 2, 2 * i + 3), (n + 1, level + 1)) for i in range(2)
        ]
        subs.append(tflite_models.Sub([BOOL, T] * 3, ops, (0, 1), (4, 5)))
    add: list[tflite_models.OpRow] = [("LOGICAL_NOT", (0,), (2,), ()), ("ADD", (1, 1), (3,), ())]
    last = tflite_models.Sub([BOOL, T, BOOL, T], add, (0, 1), (2, 3))
    condition = tflite_models.Sub([BOOL, T, BOOL], [("LOGICAL_NOT", (0,), (2,), ())], (0, 1), (2,))
    return tflite_models.model(*subs, last, condition)


def tflite_bodies(n: int) -> bytes:
    """So many subgraphs, each run by an IF."""
    return dense.tflite_branches(n)


def tflite_ranks(n: int) -> bytes:
    """A chain over tensors of 64 axes."""
    row: tflite_models.TensorRow = ("t", tflite_models.FLOAT32, (2,) * 40 + (1,) * 24, None)
    ops: list[tflite_models.OpRow] = [("ADD", (i, i), (i + 1,), ()) for i in range(n)]
    return dense.tflite_file(tflite_models.Sub([row] * (n + 1), ops, (0,), (n,)))


def tflite_large(n: int) -> bytes:
    """Maps of gigabytes with tens of thousands of rows."""
    row: tflite_models.TensorRow = ("t", tflite_models.FLOAT32, (1, 32_768, 4_096, 64), None)
    ops: list[tflite_models.OpRow] = [("ADD", (i, i), (i + 1,), ()) for i in range(n)]
    return dense.tflite_file(tflite_models.Sub([row] * (n + 1), ops, (0,), (n,)))


def tflite_pools(n: int) -> bytes:
    """Pools over large maps, which stripes take."""
    row: tflite_models.TensorRow = ("t", tflite_models.FLOAT32, (1, 2_048, 2_048, 8), None)
    ops: list[tflite_models.OpRow] = [("NEG", (i,), (i + 1,), ()) for i in range(n)]
    return tflite_models.model(tflite_models.Sub([row] * (n + 1), ops, (0,), (n,)))


def tflite_fan_out(n: int) -> bytes:
    """One value that all operators read, and one operator that reads what they write."""
    ops: list[tflite_models.OpRow] = [("NEG", (0,), (i + 1,), ()) for i in range(n)]
    ops.append(("ADD_N", tuple(range(1, n + 1)), (n + 1,), ()))
    return dense.tflite_file(tflite_models.Sub([T] * (n + 2), ops, (0,), (n + 1,)))


def tflite_lattice(n: int) -> bytes:
    """Operators that read the value before the last fifty too, so that many orders are possible."""
    ops: list[tflite_models.OpRow] = [("ADD", (i, max(i - 50, 0)), (i + 1,), ()) for i in range(n)]
    return dense.tflite_file(tflite_models.Sub([T] * (n + 1), ops, (0,), (n,)))


def tflite_reshapes(n: int) -> bytes:
    ops: list[tflite_models.OpRow] = [("RESHAPE", (i,), (i + 1,), ()) for i in range(n)]
    return dense.tflite_file(tflite_models.Sub([T] * (n + 1), ops, (0,), (n,)))


def tflite_join(n: int) -> bytes:
    """Joins of everything that was made before."""
    tensors: list[tflite_models.TensorRow] = [("t", tflite_models.FLOAT32, (4,), None)]
    ops: list[tflite_models.OpRow] = []
    for _ in range(min(n, 100)):
        size = sum(row[2][0] for row in tensors)
        ops.append(("CONCATENATION", tuple(range(len(tensors))), (len(tensors),), ()))
        tensors.append(("t", tflite_models.FLOAT32, (min(size, 1 << 30),), None))
        if size > 1 << 30:
            break
    ops += [("NEG", (0,), (len(tensors) + i,), ()) for i in range(n)]
    last = len(tensors) + n - 1
    return dense.tflite_file(tflite_models.Sub([*tensors, *[T] * n], ops, (0,), (last, len(tensors) - 1)))


def tflite_views(n: int) -> bytes:
    """Views of one value, all of which are results."""
    ops: list[tflite_models.OpRow] = [("RESHAPE", (0,), (i + 1,), ()) for i in range(n)]
    return dense.tflite_file(tflite_models.Sub([T] * (n + 1), ops, (0,), tuple(range(1, n + 1))))


def tflite_doubled(n: int) -> bytes:
    """Joins of a value with itself, 27 times in a row, again and again."""
    tensors: list[tflite_models.TensorRow] = [("t", tflite_models.FLOAT32, (4,), None)]
    ops: list[tflite_models.OpRow] = []
    for _ in range(max(n // 30, 1)):
        last = 0
        for level in range(1, 28):
            tensors.append(("t", tflite_models.FLOAT32, (4 << level,), None))
            ops.append(("CONCATENATION", (last, last), (len(tensors) - 1,), ()))
            last = len(tensors) - 1
    return dense.tflite_file(tflite_models.Sub(tensors, ops, (0,), (len(tensors) - 1,)))


def tflite_triangle(n: int) -> bytes:
    """Operators that each read all the sixty values before."""
    ops: list[tflite_models.OpRow] = [("ADD_N", tuple(range(max(i - 59, 0), i + 1)), (i + 1,), ()) for i in range(n)]
    return dense.tflite_file(tflite_models.Sub([T] * (n + 1), ops, (0,), (n,)))


class _OneSubgraph(tflite_models.Writer):
    """Writes a subgraph once, however often the file lists it."""

    written = 0

    def subgraph(self, sub: tflite_models.Sub) -> int:
        self.written = self.written or super().subgraph(sub)
        return self.written


def tflite_unused(n: int) -> bytes:
    """So many subgraphs in the bytes of one, of which one runs."""
    return tflite_models.model(*[dense.sums(40)] * n, writer=_OneSubgraph())


def tflite_outputs(n: int) -> bytes:
    """Results of one value each."""
    ops: list[tflite_models.OpRow] = [("NEG", (0,), (i + 1,), ()) for i in range(n)]
    return dense.tflite_file(tflite_models.Sub([T] * (n + 1), ops, (0,), tuple(range(1, n + 1))))


# -- ONNX --------------------------------------------------------------------------------------------------------------


def onnx_doubled(n: int) -> bytes:
    """Functions that each call the one before twice."""
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    functions = [helper.make_function("f", "f0", ["x"], ["y"], [helper.make_node("Abs", ["x"], ["y"])], imports)]
    for level in range(1, n):
        body = [
            helper.make_node(f"f{level - 1}", [source], [target], domain="f")
            for source, target in (("x", "z"), ("z", "y"))
        ]
        functions.append(helper.make_function("f", f"f{level}", ["x"], ["y"], body, imports))
    node = helper.make_node(f"f{n - 1}", ["x"], ["y"], domain="f")
    return dense.onnx_file([node], [dense.X], [dense.value("y", [4])], functions=functions)


def onnx_called_chain(n: int) -> bytes:
    """A function of many nodes that is called again and again."""
    imports = [helper.make_opsetid("", 20)]
    body = [*dense.chain(n), helper.make_node("Abs", [f"{n:x}"], ["y"])]
    function = helper.make_function("f", "f", ["x"], ["y"], body, imports)
    nodes = [helper.make_node("f", [f"{i:x}" if i else "x"], [f"{i + 1:x}"], domain="f") for i in range(n)]
    return dense.onnx_file(nodes, [dense.X], [dense.value(f"{n:x}", [4])], functions=[function])


def onnx_nested_branches(n: int) -> bytes:
    """Branches in branches, doubled at each level."""

    def inside(level: int) -> onnx.GraphProto:
        if level == 0:
            return dense.branch()
        node = helper.make_node("If", ["cond"], ["z"], then_branch=inside(level - 1), else_branch=inside(level - 1))
        return helper.make_graph([node], "b", [], [dense.value("z", [4])])

    nodes = [helper.make_node("If", ["cond"], ["y"], then_branch=inside(n), else_branch=inside(n))]
    return dense.onnx_file(nodes, [dense.X, dense.CONDITION], [dense.value("y", [4])])


def onnx_reshapes(n: int) -> bytes:
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [2, 2])
    nodes = [helper.make_node("Reshape", [f"{i:x}" if i else "x", "s"], [f"{i + 1:x}"]) for i in range(n)]
    return dense.onnx_file(nodes, [dense.X], [dense.value(f"{n:x}", [2, 2])], [shape])


def onnx_fan_out(n: int) -> bytes:
    nodes = [helper.make_node("Abs", ["x"], [f"{i:x}"]) for i in range(n)]
    nodes.append(helper.make_node("Sum", [f"{i:x}" for i in range(n)], ["y"]))
    return dense.onnx_file(nodes, [dense.X], [dense.value("y", [4])])


def onnx_lattice(n: int) -> bytes:
    names = ["x", *(f"{i + 1:x}" for i in range(n))]
    nodes = [helper.make_node("Add", [names[i], names[max(i - 50, 0)]], [names[i + 1]]) for i in range(n)]
    return dense.onnx_file(nodes, [dense.X], [dense.value(names[-1], [4])])


def onnx_maps(n: int) -> bytes:
    """Element-wise operators over maps of gigabytes."""
    shape: list[int | str] = [1, 64, 32_768, 4_096]
    return dense.onnx_file(dense.chain(n), [dense.value("x", shape)], [dense.value(f"{n:x}", shape)])


def onnx_pools(n: int) -> bytes:
    nodes = [
        helper.make_node("MaxPool", [f"{i:x}" if i else "x"], [f"{i + 1:x}"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        for i in range(n)
    ]
    shape: list[int | str] = [1, 8, 2_048, 2_048]
    return dense.onnx_file(nodes, [dense.value("x", shape)], [dense.value(f"{n:x}", shape)])


def onnx_outputs(n: int) -> bytes:
    """Results of one value each."""
    nodes = [helper.make_node("Abs", ["x"], [f"{i:x}"]) for i in range(n)]
    return dense.onnx_file(nodes, [dense.X], [dense.value(f"{i:x}", [4]) for i in range(n)])


def onnx_joins(n: int) -> bytes:
    """Joins of a value with itself, twenty times in a row, again and again."""
    nodes, results = [], []
    for row in range(max(n // 20, 1)):
        names = ["x", *(f"{row:x}_{level:x}" for level in range(20))]
        nodes += [helper.make_node("Concat", [a, a], [b], axis=0) for a, b in pairwise(names)]
        results.append(dense.value(names[-1], [4 << 20]))
    return dense.onnx_file(nodes, [dense.X], results)


#: How each is made, from a number that it grows with.
OWN: tuple[Callable[[int], bytes], ...] = (
    tflite_calls, tflite_called_chain, tflite_nested_branches, tflite_nested_loops, tflite_bodies, tflite_ranks,
    tflite_large, tflite_pools, tflite_fan_out, tflite_lattice, tflite_reshapes, tflite_join, tflite_views,
    tflite_doubled, tflite_triangle, tflite_unused, tflite_outputs,
    onnx_doubled, onnx_outputs, onnx_joins, onnx_called_chain, onnx_nested_branches,
    onnx_reshapes, onnx_fan_out, onnx_lattice, onnx_maps, onnx_pools,
)  # fmt: skip
CASES: dict[str, Callable[[int], bytes]] = {build.__name__: build for build in (*OWN, *dense.CASES)}
#: Files grow exponentially by these numbers, so they are made of each instead of the largest alone.
_DOUBLED = {"tflite_calls": (10, 13, 16, 40), "tflite_nested_branches": (4, 6, 8, 12, 60),
            "tflite_nested_loops": (4, 8, 10, 60), "onnx_doubled": (10, 13, 16, 40),
            "onnx_nested_branches": (3, 6, 8), "onnx_axes": (64,), "onnx_weight_axes": (64,),
            "onnx_loops_in_loops": (10, 20, 30)}  # fmt: skip


def largest(build: Callable[[int], bytes]) -> int:
    """The number from which a builder makes the largest file that is small enough."""
    low, high = 1, 2
    while len(build(high)) < MOST_BYTES and high < 1 << 18:
        low, high = high, high * 2
    while high - low > max(low // 50, 1):
        middle = (low + high) // 2
        low, high = (middle, high) if len(build(middle)) < MOST_BYTES else (low, middle)
    return low


def files(folder: Path, word: str = "", *, largest_only: bool = False) -> Iterator[Path]:
    """Each file of which the name contains `word`, written."""
    for name, build in CASES.items():
        if word in name:
            top = 0 if name in _DOUBLED else largest(build)
            numbers = _DOUBLED.get(name, (max(top // 20, 1), max(top // 4, 1), top))
            for number in numbers[-1:] if largest_only else numbers:
                path = folder / f"{name}_{number}.{name.split('_')[0]}"
                path.write_bytes(build(number))
                yield path


def spent(words: list[str], folder: Path) -> tuple[float, int, str]:
    """Processor seconds of a command, its exit code and what it says last."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (ENDED, ENDED + 1))

    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, preexec_fn=limited, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = (done.stderr or done.stdout).strip().splitlines()
    return seconds, done.returncode, said[-1] if said else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", default="", help="only commands that contain this")
    parser.add_argument("--case", default="", help="only files whose names contain this")
    parser.add_argument("--modelplan", default=str(Path(sys.executable).parent / "modelplan"), help="the program")
    parser.add_argument("--largest", action="store_true", help="only the largest file of each sort")
    parser.add_argument("--all", action="store_true", help="print those that hold too")
    arguments = parser.parse_args()
    bad = count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in files(folder, arguments.case, largest_only=arguments.largest):
            for command, words in COMMANDS.items():
                if arguments.command not in command:
                    continue
                filled = [word.replace("{}", str(path)) for word in words]
                seconds, code, said = spent([arguments.modelplan, *filled], folder)
                broken = seconds > MOST_SECONDS or code not in (0, 1, 2, 3, 4)
                count, bad = count + 1, bad + broken
                if broken or arguments.all:
                    size = path.stat().st_size
                    print(
                        f"{seconds:6.2f} s  exit {code:3}  {command:17} {path.stem} ({size:,} B): {said[:90]}",
                        flush=True,
                    )
            path.unlink()
    print(f"{bad} of {count} commands are too slow or end in an error")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
