"""What ONNX Runtime's release build allocates for each node, seen from outside: `blocks(MODELS)`.

Arena and memory patterns are off, so every buffer of its plan is one call of aligned_alloc (or posix_memalign) and one
of free. A library that is loaded before libc notes both, and each reading of the clock: with profiling on, ONNX
Runtime reads it before and after every kernel, which tells to which node a call belongs. Optimisations are off, one
thread, sequential: the plan of the nodes as the file has them.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from modelplan.primitives.allocation_trace import LIBRARY

_TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(bool)": np.bool_,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8,
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """`size` bytes that the kernel of step `asked` asked for, given back after step `freed` (-1: at the end)."""

    size: int
    asked: int
    freed: int


@dataclass(frozen=True)
class Run:
    """The nodes' numbers in the file in the order in which they ran, and the blocks that outlived a kernel."""

    order: tuple[int, ...]
    blocks: tuple[Block, ...]


def runs(models: Iterable[tuple[Path, Mapping[str, Sequence[int]]]]) -> Iterator[Run | str]:
    """A run of each model, given with the shapes of its inputs by name, or why ONNX Runtime does not run it.

    Raises:
        RuntimeError: the trace does not show the kernels.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = _calibrated(folder, LIBRARY)
        for model, shapes in models:
            found = _traced(model, shapes, folder, LIBRARY)
            yield found if isinstance(found, str) else _read(*found, first)


def _calibrated(folder: Path, library: Path) -> int:
    """How often the clock is read before the first kernel: two kernels that must each ask for memory show it."""
    value = [onnx.helper.make_tensor_value_info(name, 1, [50]) for name in "xz"]
    nodes = [onnx.helper.make_node("Abs", ["x"], ["y"]), onnx.helper.make_node("Abs", ["y"], ["z"])]
    path = folder / "two.onnx"
    graph = onnx.helper.make_graph(nodes, "g", value[:1], value[1:])
    proto = onnx.helper.make_model(graph, ir_version=9, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(proto, path)
    found = _traced(path, {"x": [50]}, folder, LIBRARY)
    if isinstance(found, str):
        raise RuntimeError(found)
    ticks = [i for i, event in enumerate(found[1]) if event[0] == "t"]
    asked = [sum(i < place for i in ticks) for place, event in enumerate(found[1]) if event[0] == "a"]
    if len(asked) != 2 or asked[1] - asked[0] != 2:
        raise RuntimeError(f"the trace shows allocations after {asked} readings of the clock, expected two, two apart")
    return asked[0] - 1


def _traced(
    model: Path, shapes: Mapping[str, Sequence[int]], folder: Path, library: Path
) -> tuple[list[int], list[list[str]]] | str:
    """The order of the nodes and the raw events of one run, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, model, folder, json.dumps(shapes)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    order = json.loads(done.stdout.splitlines()[-1])
    return order, [line.split() for line in (folder / "events").read_text().splitlines()]


def _read(order: list[int], events: list[list[str]], first: int) -> Run:
    """The events as blocks: kernel k runs after reading `first + 2 k` of the clock and ends with the next."""
    ticks, asked, found = 0, {}, []
    for what, at, size in events:
        step, outside = divmod(ticks - first - 1, 2)
        if what == "t":
            ticks += 1
        elif what == "a":
            asked[at] = (int(size), step)
        elif at in asked:
            block = Block(*asked.pop(at), step if step < len(order) else -1)
            if outside or block.asked != step:
                found.append(block)
    found += [Block(*block, -1) for block in asked.values()]
    return Run(tuple(order), tuple(sorted(found, key=lambda b: (b.asked, b.size))))


def _run(model: str, folder: str, shapes: Mapping[str, Sequence[int]]) -> list[int]:
    """Runs the model twice, the second time under the trace; returns the nodes in the order of their kernels."""
    import onnxruntime

    proto = onnx.load(model)
    for number, node in enumerate(proto.graph.node):
        node.name = f"node{number}"
    symbols = {}
    for value in proto.graph.input:
        for dim, extent in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            if dim.dim_param:
                symbols[dim.dim_param] = extent
            dim.dim_value = extent
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.enable_profiling, options.profile_file_prefix = True, f"{folder}/profile"
    options.log_severity_level = 4
    for symbol, extent in symbols.items():
        options.add_free_dimension_override_by_name(symbol, extent)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds: dict[str, np.ndarray] = {x.name: np.ones(shapes[x.name], _TYPES[x.type]) for x in session.get_inputs()}
    session.run(None, feeds)
    library = ctypes.CDLL(None)
    library.trace_begin()
    kept = session.run(None, feeds)
    library.trace_end(f"{folder}/events".encode())
    profile: list[Any] = json.loads(Path(session.end_profiling()).read_text())
    names = [event["name"].removesuffix("_kernel_time") for event in profile if event.get("cat") == "Node"]
    order = [int(name.removeprefix("node")) for name in names if name.startswith("node")]
    assert kept is not None
    return order[len(order) // 2 :]


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
