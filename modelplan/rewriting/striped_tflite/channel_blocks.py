"""Stretches of a model computed in blocks of channels: small maps of many channels, of which a pool keeps little.

map |            | -> |channels 0 to 63 | -> |pool|        weights, biases and scales are cut as constants,
    | read whole | -> |channels 64 to 127| -> |pool|        so that each channel is made of the same numbers
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from modelplan.model import Graph, Kind, Op
from modelplan.ops import facts
from modelplan.ops.conditions import numbers
from modelplan.rewriting.striped_tflite.steps import MOST_JOINED, GroupOffset, TfliteProgram, TfliteStep, joined
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, Layer
from modelplan.rewriting.stripes.stretches import BlockLayers, ChannelBlocks, with_ends
from modelplan.rewriting.stripes.stripe_program import AddedValue

#: Types whose channels are summed up exactly, whichever others a kernel makes beside them.
_EXACT = frozenset({"int8", "int16"})
#: Types of constants that are cut: an element is some bytes.
_CUT = frozenset({"int8", "int16", "int32", "int64"})
#: The axis of the channels in weights.
_WEIGHTS_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3}


class ChannelOperands(NamedTuple):
    """The operands of which an operator reads the channels that it makes, and the constants that it has for these.

    Both by position, constants with the axis of the channels.
    """

    maps: tuple[int, ...]
    constants: dict[int, int]


def channel_operands(graph: Graph, op: Op) -> ChannelOperands | str:
    """How the channels of an operator depend on its operands, or why it makes all of them together."""
    if len(op.outputs) != 1 or op.outputs[0] < 0:
        return "it has not exactly one output"
    y = graph.tensors[op.outputs[0]]
    maps = [graph.tensors[t] for t in (*op.reads, *op.writes) if graph.tensors[t].kind is not Kind.CONSTANT]
    if len(y.shape) < 2 or any(x.kind is not Kind.ACTIVATION or x.dtype not in _EXACT for x in maps):
        return "it has no channels, or not of whole numbers"
    operands = _found_operands(graph, op)
    if isinstance(operands, str):
        return operands
    channels = y.shape[-1]
    if any(graph.tensors[op.inputs[at]].shape[-1] != channels for at in operands.maps):
        return "it makes another number of channels than it reads"
    cut = [(graph.tensors[op.inputs[at]], axis) for at, axis in operands.constants.items()]
    if any(t.kind is not Kind.CONSTANT or t.dtype not in _CUT or t.shape[axis] != channels for t, axis in cut):
        return "its weights cannot be cut"
    return operands


def makes_blocks(graph: Graph, index: int, scratch: int) -> bool:
    """Whether an operator may need less in blocks of channels.

    It can make its channels one by one, and has `scratch`, bytes of working buffers, or a neighbour that can too.
    """
    op = graph.ops[index]
    around = {graph.producers[t] for t in op.reads} | {reader for t in op.writes for reader in graph.readers[t]}
    candidates = (graph.ops[other] for other in around if other >= 0)
    if isinstance(channel_operands(graph, op), str):
        return False
    return scratch > 0 or any(not isinstance(channel_operands(graph, other), str) for other in candidates)


def _found_operands(graph: Graph, op: Op) -> ChannelOperands | str:
    rank = len(graph.tensors[op.outputs[0]].shape)
    if op.kind in _WEIGHTS_AXIS:
        return _of_convolution(graph, op)
    if op.kind.endswith("POOL_2D"):
        return ChannelOperands((0,), {})
    if op.kind == "MEAN":
        axes, rank = numbers(op, "operand 1"), len(graph.tensors[op.inputs[0]].shape)
        whole = axes is None or any(axis % rank == rank - 1 for axis in axes)
        return "it adds channels up" if whole else ChannelOperands((0,), {})
    if op.kind == "PAD":
        pads = numbers(op, "operand 1")
        return ChannelOperands((0,), {}) if pads and not any(pads[-2:]) else "it pads channels"
    if facts("tflite", op.kind).rows == "pointwise":
        return _of_elements(graph, op)
    return f"{op.kind} with {rank} axes is not computed channel by channel"


def _of_convolution(graph: Graph, op: Op) -> ChannelOperands | str:
    """A convolution reads all channels of a map, a depthwise one those that it makes."""
    shapes = [graph.tensors[t].shape for t in op.inputs[:2]]
    constants = {1: _WEIGHTS_AXIS[op.kind]} | ({2: 0} if len(op.inputs) > 2 and op.inputs[2] >= 0 else {})
    if op.kind == "DEPTHWISE_CONV_2D":
        return ChannelOperands((0,), constants)
    grouped = shapes[0][-1] != shapes[1][-1]
    return "it has groups of channels" if grouped else ChannelOperands((), constants)


def _of_elements(graph: Graph, op: Op) -> ChannelOperands | str:
    shape = graph.tensors[op.outputs[0]].shape
    operands, constants = list[int](), dict[int, int]()
    for position, t in enumerate(op.inputs):
        tensor = graph.tensors[t]
        if tensor.kind is Kind.CONSTANT:
            if tensor.shape and tensor.shape[-1] != 1:
                constants[position] = len(tensor.shape) - 1
        elif tensor.shape == shape:
            operands.append(position)
        else:
            return f"operand {tensor.name!r} does not go element by element"
    return ChannelOperands(tuple(operands), constants)


def block_layers(graph: Graph, order: Sequence[int], stretch: ChannelBlocks) -> BlockLayers:
    """The operators of a stretch of channels; row operands are those of which a block is read.

    Raises:
        IllegalStripeError: an operator needs all channels of what the stretch makes, or cuts are not those of blocks.
    """
    ops = tuple(order[stretch.first : stretch.last + 1])
    result = graph.tensors[graph.ops[ops[-1]].outputs[0]].shape
    if stretch.axis != len(result) - 1 or stretch.cuts[-1] != result[-1] or not 1 < stretch.stripes <= MOST_JOINED:
        raise IllegalStripeError(f"cuts {list(stretch.cuts)} are not those of {list(result)}")
    if any(high - low < 2 for low, high in pairwise(stretch.cuts)):
        raise IllegalStripeError("a block has one channel")
    layers, stretch_maps = dict[int, Layer](), set[int]()
    for index in ops:
        op = graph.ops[index]
        operands = channel_operands(graph, op)
        if isinstance(operands, str):
            raise IllegalStripeError(f"{graph.label(index)}: {operands}")
        channels = graph.tensors[op.outputs[0]].shape[-1]
        if channels != result[-1] or stretch_maps & {t for at, t in enumerate(op.inputs) if at not in operands.maps}:
            raise IllegalStripeError(f"{graph.label(index)}: it needs other channels of what the stretch makes")
        stretch_maps.add(op.outputs[0])
        layers[index] = Layer("pointwise", operands.maps, channels, channels)
    base = with_ends(graph, stretch, layers)
    if base.exits != {base.output(ops[-1])}:
        raise IllegalStripeError("another map than the last one is read behind the stretch")
    return base


def append_channel_blocks(program: TfliteProgram, base: BlockLayers) -> None:
    """Appends a stretch in blocks of channels to a program."""
    result, pieces = base.output(base.ops[-1]), list[int]()
    program.place(result)
    for low, high in pairwise(base.stretch.cuts):
        held: dict[int, int] = {}
        for index in base.ops:
            _append_block(program, base, index, held, (low, high))
        pieces.append(held[result])
    program.steps.append(joined(pieces, result, base.stretch.axis))


def _home(program: TfliteProgram, base: BlockLayers, t: int, channels: tuple[int, int]) -> GroupOffset:
    """Where a block of a map that is made lies: in its place in the result where blocks are runs of bytes there."""
    tensor = base.graph.tensors[t]
    if t not in base.exits or prod(tensor.shape[:-1]) != 1:
        return program.new_group()
    group, start = program.place(t)
    return GroupOffset(group, start + channels[0] * tensor.nbytes // tensor.shape[-1])


def _append_block(
    program: TfliteProgram, base: BlockLayers, index: int, held: dict[int, int], channels: tuple[int, int]
) -> None:
    """Appends an operator on a block of its channels; `held` are the blocks of maps."""
    op, operands = base.graph.ops[index], channel_operands(base.graph, base.graph.ops[index])
    assert not isinstance(operands, str)
    inputs = list(op.inputs)
    for position in operands.maps:
        if op.inputs[position] not in held:
            held[op.inputs[position]] = _cut_out(program, op.inputs[position], channels)
        inputs[position] = held[op.inputs[position]]
    for position, axis in operands.constants.items():
        t, shape = op.inputs[position], list(base.graph.tensors[op.inputs[position]].shape)
        shape[axis] = channels[1] - channels[0]
        part = AddedValue(_named(base.graph, t, channels), t, tuple(shape), part=(axis, *channels))
        inputs[position] = program.add(part)
    home = _home(program, base, op.outputs[0], channels)
    held[op.outputs[0]] = _block(program, op.outputs[0], channels, home)
    program.steps.append(TfliteStep(op.kind, tuple(inputs), (held[op.outputs[0]],), index))


def _named(graph: Graph, t: int, channels: tuple[int, int]) -> str:
    return f"{graph.tensors[t].name}/channels_{channels[0]}_{channels[1]}"


def _block(program: TfliteProgram, t: int, channels: tuple[int, int], home: GroupOffset) -> int:
    """A value for a block of channels of a map."""
    shape = (*program.graph.tensors[t].shape[:-1], channels[1] - channels[0])
    return program.add_at(AddedValue(_named(program.graph, t, channels), t, shape), home)


def _cut_out(program: TfliteProgram, t: int, channels: tuple[int, int]) -> int:
    """A copy of a block of channels of a map."""
    value, begin = _block(program, t, channels, program.new_group()), [0] * len(program.graph.tensors[t].shape)
    begin[-1] = channels[0]
    operands = program.constant(begin), program.constant(program.shape(value))
    program.steps.append(TfliteStep("SLICE", (t, *operands), (value,)))
    return value
