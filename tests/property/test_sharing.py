"""Plans of random graphs under every alias mode and runtime pass the verifier, whose tables are its own."""

from __future__ import annotations

import random

import pytest
from shares import share

from modelplan import Graph, Op, Options, Tensor, plan

UNARY = ["RELU", "SOFTMAX", "RESHAPE", "SQUEEZE", "CONV_2D", "TRANSPOSE", "LOGISTIC"]
BINARY = ["ADD", "MUL", "SUB", "MAXIMUM"]


def random_graph(rng: random.Random) -> Graph:
    """Rows of 16 or 32 bytes, joined, split, viewed and computed; some results are read by nobody."""
    tensors, ops = [Tensor(f"in{i}", (extent,), "int8") for i, extent in enumerate((32, 16, 32))], []

    def made(extent: int) -> int:
        tensors.append(Tensor(f"t{len(tensors)}", (extent,), "int8"))
        return len(tensors) - 1

    for _ in range(rng.randint(2, 14)):
        x = rng.randrange(len(tensors))
        extent = tensors[x].shape[0]
        y = rng.choice([t for t, tensor in enumerate(tensors) if tensor.shape[0] == extent])
        choice = rng.random()
        if choice < 0.45:
            ops.append(Op("", rng.choice(UNARY), (x,), (made(extent),)))
        elif choice < 0.75:
            ops.append(Op("", rng.choice(BINARY), (x, y), (made(extent),)))
        elif choice < 0.8:
            begin = rng.choice([0, extent // 2])
            slices = (("operand 1", (begin,)), ("operand 2", (extent // 2,)))
            ops.append(Op("", "SLICE", (x,), (made(extent // 2),), slices))
        elif choice < 0.9:
            ops.append(Op("", "CONCATENATION", (x, y), (made(2 * extent),), (("axis", 0), ("requantises", False))))
        elif extent >= 32:
            parts = (made(extent // 2), made(extent // 2))
            ops.append(Op("", "SPLIT_V", (x,), parts, (("operand 2", (0,)), ("axis", 0))))
    if not ops:
        ops.append(Op("", "RELU", (0,), (made(32),)))
    written = [t for op in ops for t in op.outputs]
    outputs = rng.sample(written, rng.randint(1, min(3, len(written))))
    return Graph("random", "tflite", tuple(tensors), tuple(ops), (0, 1, 2), tuple(outputs))


@pytest.mark.parametrize("mode", ["views", "runtime", "safe", "max"])
@pytest.mark.parametrize("runtime", ["tflm", "litert", "generic"])
def test_no_mode_shares_what_the_verifier_would_not(mode: str, runtime: str) -> None:
    for seed in range(share(60)):
        graph = random_graph(random.Random(seed))
        made = plan(graph, Options(runtime, "best", mode, "tflm-greedy", alignment=16))
        apart = plan(graph, Options(runtime, "best", "none", "tflm-greedy", alignment=16))
        # Mode max takes the plan of least height, where this allocator may leave gaps.
        assert mode == "max" or made.schedule.peak <= apart.schedule.peak, seed
