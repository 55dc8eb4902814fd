"""The blocks that a session of ONNX Runtime asks for while it runs a model: its order, its reuse, its workspaces.

At optimization levels off and basic with arena and memory patterns off, where each block is one allocation. Higher
levels fuse nodes and change layouts, which is not followed here.

Source: onnxruntime, core/graph/graph.cc ReverseDFSFrom, core/framework/allocation_planner.cc FindReusableTensor; the
workspaces were measured (conv.cc, conv_transpose.cc, quantization/qlinearconv.cc).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from modelplan.model import Graph, Op, Problem, Runtime, Tensor, class_bytes
from modelplan.ops.conditions import number, numbers
from modelplan.planning import aliasing, lifetimes
from modelplan.primitives.dtypes import BITS

#: Bytes are asked for in multiples of this.
_GRAIN = 64
#: Floats of the buffer of a convolution that is no matrix product, for each thread.
_CONV_FLOATS = 1 << 14
#: Bytes of an address, of which a quantised convolution keeps one for each pixel of each window.
_ADDRESS = 8
#: Multiples of channels that its kernels for symmetric weights read and make, and the least that these make.
_CHANNELS, _LEAST_CHANNELS = 4, 16


@dataclass(frozen=True, slots=True)
class SessionPeak:
    """The most bytes that are allocated at once, and the operator (by its index) that runs then.

    Outputs are among them, inputs and constants are not. `workspace` is what the operator asks for beside its output.
    """

    bytes: int
    op: int
    workspace: int


def depth_first(sources: Sequence[Sequence[int]]) -> list[int]:
    """ONNX Runtime's default order of nodes, given by what each reads: from the last back, the latest first."""
    read = {source for found in sources for source in found}
    pending = [(place, False) for place in range(len(sources)) if place not in read]
    seen: set[int] = set()
    order = []
    while pending:
        place, left = pending.pop()
        if left:
            order.append(place)
        elif place not in seen:
            seen.add(place)
            pending.append((place, True))
            pending += [(source, False) for source in sorted(set(sources[place])) if source not in seen]
    return order


def session_order(graph: Graph) -> list[int]:
    """The order in which a session runs the operators."""
    producers = graph.producers
    return depth_first([[producers[t] for t in op.reads if producers[t] >= 0] for op in graph.ops])


def session_peak(
    graph: Graph, runtime: Runtime, threads: int = 1, unknown: frozenset[int] = frozenset()
) -> SessionPeak:
    """What a session allocates at most while it runs, arena and memory patterns off.

    Of the tensors `unknown` the session does not know all extents, so that none takes the place of another.
    """
    order = session_order(graph)
    aliases = aliasing.storages(graph, "runtime", runtime)
    offers = tuple(offer for offer in aliases.offers if not {offer.tensor, offer.over} & unknown)
    aliases = aliasing.take_offers(graph, replace(aliases, offers=offers), order, runtime)
    problem = lifetimes.buffers(graph, order, aliases, runtime)
    fed = [any(m.tensor in graph.inputs for m in members) for members in problem.members]
    kept = [any(m.tensor in graph.outputs for m in members) for members in problem.members]
    own = [i for i in range(len(problem)) if not fed[i]]
    blocks = [[i] for i in own if kept[i]] + reused(graph, order, problem, [i for i in own if not kept[i]], unknown)
    change = [0] * (len(order) + 1)
    for block in blocks:
        size = -(-class_bytes(graph, problem.members[block[0]]) // _GRAIN) * _GRAIN
        change[int(problem.start[block[0]])] += size
        if not kept[block[0]]:
            change[int(problem.end[block[-1]])] -= size
    best, alive = SessionPeak(0, -1, 0), 0
    for step, index in enumerate(order):
        alive += change[step]
        workspace = workspace_bytes(graph, graph.ops[index], threads)
        if alive + workspace > best.bytes:
            best = SessionPeak(alive + workspace, index, workspace)
    return best


def reused(
    graph: Graph, order: Sequence[int], problem: Problem, inner: Sequence[int], unknown: frozenset[int] = frozenset()
) -> list[list[int]]:
    """Buffers of one shape that one block holds in turn, from the first to the last.

    Of dead blocks the last is taken; operands are given back in turn.
    """
    home = {m.tensor: i for i in inner for m in problem.members[i]}
    idle: dict[tuple[tuple[int, ...], int], list[list[int]]] = {}
    held: dict[int, list[int]] = {}
    for step, index in enumerate(order):
        op = graph.ops[index]
        for i in dict.fromkeys(home[t] for t in op.writes if t in home and problem.start[home[t]] == step):
            open_shape = not unknown.isdisjoint(m.tensor for m in problem.members[i])
            dead = [] if open_shape else idle.get(_key(graph, problem, i))
            found = dead.pop() if dead else []
            found.append(i)
            held[i] = found
        for i in dict.fromkeys(home[t] for t in (*op.inputs, *op.writes) if t in home):
            if problem.end[i] == step + 1 and not unknown.intersection(m.tensor for m in problem.members[i]):
                idle.setdefault(_key(graph, problem, held[i][0]), []).append(held[i])
    return [block for i, block in held.items() if block[0] == i]


def _key(graph: Graph, problem: Problem, i: int) -> tuple[tuple[int, ...], int]:
    tensor = graph.tensors[problem.members[i][0].tensor]
    return tensor.shape, BITS[tensor.dtype]


#: Operators whose kernels ask for memory beside their outputs.
WORKING = frozenset({"Conv", "ConvTranspose", "QLinearConv", "Softmax", "LogSoftmax"})
#: The first opset in which a softmax along another axis than the last transposes its operand and its result.
_SOFTMAX_ALONG_ONE = 13


def workspace_bytes(
    graph: Graph, op: Op, threads: int = 1, shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
) -> int:
    """What the kernel of an operator asks for beside its output, gives back when it is done.

    `shapes` are those of its first operand and of its output, where they are not the graph's.
    """
    if op.kind not in WORKING:
        return 0
    x, y = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if shapes is not None:
        x, y = replace(x, shape=shapes[0]), replace(y, shape=shapes[1])
    if op.kind in ("Softmax", "LogSoftmax"):
        last = number(op, "axis", -1) in (-1, len(x.shape) - 1)
        return 0 if last or op.version < _SOFTMAX_ALONG_ONE else x.nbytes + y.nbytes
    weights = graph.tensors[op.inputs[3 if op.kind == "QLinearConv" else 1]].shape
    window = prod(weights[2:])
    if op.kind == "ConvTranspose":
        return x.nbytes // (x.shape[1] or 1) * weights[1] * window
    moved = any(numbers(op, "pads") or ()) or any(n > 1 for n in numbers(op, "strides") or ())
    product = window == 1 and not moved
    if op.kind == "Conv":
        return 0 if product else 4 * _CONV_FLOATS * threads
    return x.nbytes + y.nbytes + _quantised_bytes(graph, op, y, weights, product=product)


def _quantised_bytes(graph: Graph, op: Op, y: Tensor, weights: Sequence[int], *, product: bool) -> int:
    """What a QLinearConv asks for beside copies of both maps with their channels last.

    The kernels for symmetric weights read pixels by their addresses and write 8 bits; the others need 32 bits for each
    value of the output, and but for depthwise ones a copy of what each window reads.
    """
    pixels, window, groups = y.shape[0] * prod(y.shape[2:]), prod(weights[2:]), number(op, "group", 1)
    depthwise = weights[0] == groups and weights[1] == 1
    addresses = 0 if product and not depthwise else _ADDRESS * window * pixels
    if graph.tensors[op.inputs[0]].dtype == "uint8" and graph.tensors[op.inputs[3]].dtype == "int8":
        whole = not weights[1] % _CHANNELS and not weights[0] % _CHANNELS and weights[0] >= _LEAST_CHANNELS
        if (depthwise and not groups % _LEAST_CHANNELS) if groups > 1 else whole:
            return addresses
    if depthwise:
        return 4 * y.nbytes + addresses
    return 4 * y.nbytes + (0 if product else weights[1] * window * pixels)
