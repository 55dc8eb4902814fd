"""What a program of stripes costs beside its memory: bytes that TFLM keeps for its operators, and work.

The bytes rank plans while they are searched; what is answered is sized by `runtimes/tflm/arena.py`.
"""

from __future__ import annotations

from modelplan.ops.macs import op_macs
from modelplan.rewriting.stripes.program import Program, Step

#: Bytes that TFLM keeps for one more operator, without its tensors and channels, by kind: to rank plans only.
_TAIL = {
    64: {"CONV_2D": 191, "DEPTHWISE_CONV_2D": 191, "SLICE": 68, "CONCATENATION": 160, "PAD": 130},
    32: {"CONV_2D": 120, "DEPTHWISE_CONV_2D": 120, "SLICE": 34, "CONCATENATION": 64, "PAD": 92},
}
_TAIL_OF_OTHERS = {64: 150, 32: 100}
#: Bytes that TFLM keeps for each tensor.
_EVAL_TENSOR = {64: 24, 32: 12}
#: Bytes that TFLM keeps for a loop beside its operators.
_LOOP = {64: 420, 32: 220}
#: Bytes that TFLM works with for each planned tensor while it plans.
_PLANNING = {64: 72, 32: 64}


def kept_for(bits: int, kind: str, channels: int, tensors: int) -> int:
    """Bytes kept for one operator on addresses of `bits`, with `channels` that are scaled each for itself."""
    scaled = 2 * -(-4 * channels // 16) * 16
    return _TAIL[bits].get(kind, _TAIL_OF_OTHERS[bits]) + scaled + _EVAL_TENSOR[bits] * tensors


def kept_bytes(program: Program, bits: int) -> int:
    """Bytes kept for the steps and the constants of a program."""
    kept = len(program.constants) * _EVAL_TENSOR[bits]
    for step in program.steps:
        if step.loop is not None:
            steps = (step.loop.condition, *step.loop.body)
            kept += _LOOP[bits] + sum(kept_for(bits, s.kind, _channels(program, s), 2) for s in steps)
        elif step.outputs:
            kept += kept_for(bits, step.kind, _channels(program, step), len(step.outputs))
    return kept


def planning_bytes(program: Program, bits: int) -> int:
    """Bytes that TFLM works with while it plans the values of a program."""
    return _PLANNING[bits] * len(program.homes)


def program_macs(program: Program) -> int:
    """Multiply-accumulates of a program."""
    return sum(step_macs(program, step) for step in program.steps)


def _channels(program: Program, step: Step) -> int:
    """Output channels that a convolution scales each for itself."""
    return program.shape(step.outputs[0])[-1] if step.kind.endswith("CONV_2D") else 0


def step_macs(program: Program, step: Step) -> int:
    """Multiply-accumulates of a step, of a loop those of all its iterations."""
    if step.loop is not None:
        return step.loop.iterations * sum(step_macs(program, inner) for inner in step.loop.body)
    if step.source < 0 or not step.outputs:
        return 0
    graph, op = program.graph, program.graph.ops[step.source]
    whole = op_macs(graph, op)
    if step.outputs == op.outputs:
        return whole
    return whole * program.nbytes(step.outputs[0]) // graph.tensors[op.outputs[0]].nbytes
