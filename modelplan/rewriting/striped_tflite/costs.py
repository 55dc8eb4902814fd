"""What a program of stripes costs beside its memory: bytes that TFLM keeps for its operators, and work.

The bytes rank plans while they are searched; what is answered is sized by `runtimes/tflm/arena.py`.
"""

from collections.abc import Sequence

from modelplan.ops.run_costs import op_macs
from modelplan.rewriting.striped_tflite.steps import JOIN, TfliteProgram, TfliteStep

#: Bytes that TFLM keeps for one more operator, without its tensors and channels, by kind: to rank plans only.
_TAIL = {
    64: {"CONV_2D": 191, "DEPTHWISE_CONV_2D": 191, "SLICE": 68, JOIN: 160, "PAD": 130},
    32: {"CONV_2D": 120, "DEPTHWISE_CONV_2D": 120, "SLICE": 34, JOIN: 64, "PAD": 92},
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


def kept_bytes(program: TfliteProgram, bits: int) -> int:
    """Bytes kept for the steps and the constants of a program."""
    return kept_for_steps(program, bits) + kept_for_constants(len(program.constants), bits)


def kept_for_constants(count: int, bits: int) -> int:
    """Bytes kept for so many constants that the rewrite adds."""
    return count * _EVAL_TENSOR[bits]


def kept_for_steps(program: TfliteProgram, bits: int) -> int:
    """Bytes kept for the steps of a program."""
    kept = 0
    for step in program.steps:
        if step.loop is not None:
            steps = (step.loop.condition, *step.loop.body)
            kept += _LOOP[bits] + sum(_kept_for_step(program, bits, s, 2) for s in steps)
        elif step.outputs:
            kept += _kept_for_step(program, bits, step, len(step.outputs))
    return kept


def planning_bytes(values: int, bits: int) -> int:
    """Bytes that TFLM works with while it plans so many values."""
    return _PLANNING[bits] * values


def program_macs(program: TfliteProgram) -> int:
    """Multiply-accumulates of a program."""
    return sum(step_macs(program, step) for step in program.steps)


def scaled_channels(kind: str, shape: Sequence[int]) -> int:
    """Output channels that an operator with an output of this shape scales each for itself."""
    return shape[-1] if kind.endswith("CONV_2D") else 0


def _kept_for_step(program: TfliteProgram, bits: int, step: TfliteStep, tensors: int) -> int:
    return kept_for(bits, step.kind, scaled_channels(step.kind, program.shape(step.outputs[0])), tensors)


def step_macs(program: TfliteProgram, step: TfliteStep) -> int:
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
