"""Runs with ExecuTorch's own Python: exports a small network, has it placed as modelplan says, and executes the file.

    python executorch_memories.py graph GRAPH.onnx    writes operators and tensors, named as ExecuTorch names them
    python executorch_memories.py run IDS.json        obeys `modelplan memories GRAPH.onnx --executorch IDS.json`

`run` prints what the written program says of each tensor, and whether its outputs are those of PyTorch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from executorch.exir import ExecutorchBackendConfig, memory, to_edge
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.memory_planning import get_node_tensor_specs
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.schema import Tensor
from executorch.runtime import Runtime
from onnx import TensorProto, helper

TYPES = {torch.float32: TensorProto.FLOAT, torch.int64: TensorProto.INT64}


#: What ExecuTorch calls with alignment, tensors, module, signature and padding; returns the sizes of the memories.
Algorithm = Callable[[int, Any, Any, Any, int], list[int]]


class Network(torch.nn.Module):
    """Two convolutions with a skip around them, and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = torch.relu(self.first(x))
        b = torch.relu(self.second(a))
        return torch.nn.functional.max_pool2d(a + b, 2)


def planned(algorithm: Algorithm | None) -> tuple[bytes, tuple[Any, ...], Any]:
    """The program of the network with memory planned by `algorithm`, its inputs and PyTorch's outputs."""
    torch.manual_seed(0)
    network, inputs = Network().eval(), (torch.randn(1, 3, 16, 16),)
    edge = to_edge(torch.export.export(network, inputs))
    made = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(algorithm)))
    return made.buffer, inputs, network(*inputs)


def names_of(module: Any, specs: Sequence[Any]) -> dict[int, str]:
    """For each tensor that is planned the name of the node that makes it."""
    found: dict[int, str] = {}
    for node in module.graph.nodes:
        if node.op in ("placeholder", "call_function") and node.target is not memory.alloc:
            for number, spec in enumerate(get_node_tensor_specs(node)):
                if any(spec is one for one in specs):
                    found.setdefault(id(spec), f"{node.name}_{number}" if number else node.name)
    return found


def write_graph(path: str) -> Algorithm:
    """A planning algorithm that writes the graph as ONNX before it gives each tensor bytes of its own."""

    def algorithm(alignment: int, specs: Any, module: Any, signature: Any, padding: int) -> list[int]:
        specs = list(specs)
        names = names_of(module, specs)
        values = {names[id(spec)]: helper.make_tensor_value_info(names[id(spec)], TYPES[spec.dtype], list(spec.shape))
                  for spec in specs}  # fmt: skip
        nodes, inputs, outputs, known = list[Any](), list[str](), list[str](), set[str]()
        for node in module.graph.nodes:
            own = [names[id(spec)] for spec in get_node_tensor_specs(node) if id(spec) in names]
            read = [names[id(spec)] for one in node.all_input_nodes if one.target is not memory.alloc
                    for spec in get_node_tensor_specs(one) if id(spec) in names]  # fmt: skip
            if node.op == "placeholder":
                known |= set(own)
                inputs += own
            elif node.op == "output":
                outputs = read
            elif node.target is not memory.alloc and set(own) - known:  # not what takes one of several results
                nodes.append(helper.make_node(node.name, read, own, name=node.name, domain="executorch"))
                known |= set(own)
        graph = helper.make_graph(
            nodes, "network", [values[n] for n in inputs], [values[n] for n in outputs],
            value_info=[value for name, value in values.items() if name not in {*inputs, *outputs}],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("executorch", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
        return apart(specs, alignment)

    return algorithm


def apart(specs: Sequence[Any], alignment: int) -> list[int]:
    """Each tensor behind the one before, in memory 1."""
    at = 0
    for spec in specs:
        spec.mem_id, spec.mem_obj_id, spec.mem_offset = 1, 0, at
        at += -(-spec.allocated_memory // alignment) * alignment
    return [0, at]


def obey(document: dict[str, Any]) -> Algorithm:
    """A planning algorithm that gives each tensor the memory and the offset of modelplan's document."""

    def algorithm(alignment: int, specs: Any, module: Any, signature: Any, padding: int) -> list[int]:
        places = {one["name"]: one for one in document["tensors"]}
        names = names_of(module, list(specs))
        for spec in specs:
            place = places[names[id(spec)]]
            assert place["allocated_memory"] >= spec.allocated_memory, place
            spec.mem_id, spec.mem_obj_id, spec.mem_offset = place["mem_id"], 0, place["mem_offset"]
        return list(document["non_const_buffer_sizes"])

    return algorithm


def run(path: str) -> None:
    """Executes the program that obeys a document; prints what it says of memory and how outputs differ."""
    document = json.loads(Path(path).read_text())
    buffer, inputs, expected = planned(obey(document))
    plan = deserialize_pte_binary(buffer).program.execution_plan[0]
    tensors = [value.val for value in plan.values if isinstance(value.val, Tensor) and value.val.allocation_info]
    found = sorted(
        (one.allocation_info.memory_id, one.allocation_info.memory_offset_low, list(one.sizes)) for one in tensors
    )
    got = Runtime.get().load_program(buffer).load_method("forward").execute(inputs)[0]
    usual, _, _ = planned(None)
    before = Runtime.get().load_program(usual).load_method("forward").execute(inputs)[0]
    print(json.dumps({
        "non_const_buffer_sizes": plan.non_const_buffer_sizes, "tensors": found,
        "equal": bool(torch.equal(got, before)), "near": bool(torch.allclose(got, expected, atol=1e-5)),
    }))  # fmt: skip


if __name__ == "__main__":
    command, name = sys.argv[1:]
    if command == "graph":
        planned(write_graph(name))
    else:
        run(name)
