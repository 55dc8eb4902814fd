"""The blocks that a session of ONNX Runtime asks for while it runs a model: its reuse, its workspaces, its threads.

At optimization levels off and basic with arena and memory patterns off, where each block is one allocation. Higher
levels fuse nodes and change layouts, which is not followed here.

What kernels that multiply integers keep for each thread lies apart from an arena, grows to what the largest of them
asks for, and stays when the session ends.

Source: onnxruntime, core/framework/allocation_planner.cc FindReusableTensor; the workspaces were measured (conv.cc,
conv_transpose.cc, quantization/qlinearconv.cc); core/mlas/lib/qgemm.h MlasGemmQuantThreadInit, with the strides of the
kernels for x86-64 with AVX2, which AVX-512 has too; processors that multiply tiles (AMX) keep some 130,000 bytes more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from modelplan.model import Graph, Kind, Offer, Op, Problem, Runtime, Tensor, class_bytes
from modelplan.ops.conditions import number, numbers
from modelplan.planning import aliasing, lifetimes
from modelplan.planning.session_nodes import NUMBERS, Extents, session_order
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import BITS

#: The two matrices among the operands of the operators that multiply integers.
_MATRICES = {
    "QLinearMatMul": (0, 3), "QLinearConv": (0, 3), "MatMulInteger": (0, 1), "ConvInteger": (1, 0),
    "com.microsoft.QGemm": (0, 3),
}  # fmt: skip
#: Bytes of panels of both matrices, and of sums of rows and columns, by the types of the matrices.
_PANELS = {
    ("uint8", "uint8"): 41_088, ("uint8", "int8"): 38_016, ("int8", "int8"): 19_520, ("int8", "uint8"): 19_520,
}  # fmt: skip


def panel_bytes(graph: Graph, op: Op, threads: int = 1) -> int:
    """The bytes of the panels of an operator's product, in all threads; 0 where it multiplies no integers."""
    if op.kind not in _MATRICES or max(_MATRICES[op.kind]) >= len(op.inputs):
        return 0
    a, b = (graph.tensors[op.inputs[operand]].dtype for operand in _MATRICES[op.kind])
    return threads * _PANELS.get((a, b), 0)


class ThreadBuffers:
    """The bytes that threads keep; a larger need takes a new buffer before the old one is given back."""

    def __init__(self) -> None:
        self.held = 0

    def need(self, size: int) -> int:
        """The most bytes while a kernel asks for so many."""
        most = self.held + size if size > self.held else self.held
        self.held = max(self.held, size)
        return most


#: Bytes are asked for in multiples of this.
_GRAIN = 64
#: Floats of the buffer of a convolution that is no matrix product, for each thread.
_CONV_FLOATS = 1 << 14
#: Bytes of an address, of which a quantised convolution keeps one for each pixel of each window.
_ADDRESS = 8
#: Bytes that a linear Resize keeps of each row and column: two places and two shares. The rank of a batch of images.
_LINEAR, _IMAGES = 16, 4
#: Multiples of channels that its kernels for symmetric weights read and make, and the least that these make.
_CHANNELS, _LEAST_CHANNELS = 4, 16
_BYTE_BITS = 8


@dataclass(frozen=True, slots=True)
class BlockEvent:
    """A run asks for a block of `size` bytes or, with no size, gives it back, in the step of an operator of the graph.

    `value`: it holds values that neither go in nor out; else it is an output, or the workspace of the operator.
    """

    block: int
    size: int
    op: int
    value: bool
    workspace: int = 0

    @property
    def is_output(self) -> bool:
        """Whether it holds an output, which the caller gives back."""
        return not self.value and not self.workspace


def block_events(graph: Graph, runtime: Runtime, threads: int = 1, extents: Extents = NUMBERS) -> Iterator[BlockEvent]:
    """The blocks that a run asks for and gives back, in turn; outputs stay.

    A tensor takes the place of another where the session knows that their `extents` are the same.
    """
    order = session_order(graph)
    aliases = aliasing.storages(graph, "runtime", runtime)
    offers = tuple(offer for offer in aliases.offers if _are_alike(graph, offer, extents))
    aliases = aliasing.take_offers(graph, replace(aliases, offers=offers), order, runtime)
    problem = lifetimes.buffers(graph, order, aliases, runtime)
    fed = [any(m.tensor in graph.inputs for m in members) for members in problem.members]
    kept = [any(m.tensor in graph.outputs for m in members) for members in problem.members]
    own = [i for i in range(len(problem)) if not fed[i] and not _views_constant(graph, problem, i, runtime)]
    blocks = [[i] for i in own if kept[i]] + reused(graph, order, problem, [i for i in own if not kept[i]], extents)
    begin: dict[int, list[tuple[int, int]]] = {}
    end: dict[int, list[int]] = {}
    for block in blocks:
        size = -(-class_bytes(graph, problem.members[block[0]]) // _GRAIN) * _GRAIN
        begin.setdefault(int(problem.start[block[0]]), []).append((block[0], size))
        is_read = any(graph.readers[m.tensor] for m in problem.members[block[-1]])
        if is_read and not kept[block[0]]:  # what nothing reads stays until the run ends
            end.setdefault(int(problem.end[block[-1]]) - 1, []).append(block[0])
    for step, index in enumerate(order):
        for i, size in begin.get(step, ()):
            if size:
                yield BlockEvent(i, size, index, not kept[i])
        sizes = workspace_blocks(graph, graph.ops[index], threads)
        for place, size in enumerate(sizes, 1):
            yield BlockEvent(-place, size, index, value=False, workspace=sum(sizes))
        yield from (BlockEvent(-place, 0, index, value=False) for place in range(1, len(sizes) + 1))
        yield from (BlockEvent(i, 0, index, value=True) for i in end.get(step, ()))


def _views_constant(graph: Graph, problem: Problem, i: int, runtime: Runtime) -> bool:
    """Whether a buffer is a view of a constant, whose bytes it keeps."""
    producer = graph.producers[problem.members[i][0].tensor] if problem.members[i] else -1
    if producer < 0 or graph.ops[producer].kind not in runtime.sharing.views:
        return False
    return graph.tensors[graph.ops[producer].inputs[0]].kind is Kind.CONSTANT


def reused(
    graph: Graph, order: Sequence[int], problem: Problem, inner: Sequence[int], extents: Extents = NUMBERS
) -> list[list[int]]:
    """Buffers of one shape that one block holds in turn, from the first to the last.

    Of dead blocks the last is taken, by none that has no extents; operands are given back in turn.
    """
    home = {m.tensor: i for i in inner for m in problem.members[i]}
    idle: dict[tuple[tuple[int | str, ...], int], list[list[int]]] = {}
    held: dict[int, list[int]] = {}
    for step, index in enumerate(order):
        op = graph.ops[index]
        for i in dict.fromkeys(home[t] for t in op.writes if t in home and problem.start[home[t]] == step):
            key = _key(graph, problem, i, extents)
            dead = idle.get(key) if key[0] else []
            block = dead.pop() if dead else []
            block.append(i)
            held[i] = block
        for i in dict.fromkeys(home[t] for t in (*op.inputs, *op.writes) if t in home):
            if problem.end[i] == step + 1:
                idle.setdefault(_key(graph, problem, held[i][0], extents), []).append(held[i])
    return [block for i, block in held.items() if block[0] == i]


def _are_alike(graph: Graph, offer: Offer, extents: Extents) -> bool:
    """Whether a session knows that the two tensors of an offer have the same extents."""
    first, second = (extents.get(t, graph.tensors[t].shape) for t in (offer.tensor, offer.over))
    return first == second and not (offer.tensor in extents and not first)


def _key(graph: Graph, problem: Problem, i: int, extents: Extents) -> tuple[tuple[int | str, ...], int]:
    """The extents, if they are known, and the bits of the value for which a block was asked, whatever views it has."""
    first = problem.members[i][0].tensor
    tensor = graph.tensors[first]
    return extents.get(first, tensor.shape), BITS[tensor.dtype]


_FUSED_CONV, _QUANTISED_WHERE, _BIAS_GELU, _QUANTISED_GEMM = (
    f"com.microsoft.{name}" for name in ("FusedConv", "QLinearWhere", "BiasGelu", "QGemm")
)
#: Operators whose kernels ask for memory beside their outputs.
WORKING = frozenset({
    "Conv", "ConvTranspose", "QLinearConv", "ConvInteger", "QLinearMatMul", "Softmax", "LogSoftmax", "LSTM",
    "GRU", "RNN", "LRN", "Resize", "Where", _FUSED_CONV, _QUANTISED_WHERE, _BIAS_GELU, _QUANTISED_GEMM,
})  # fmt: skip
#: Operators whose kernels were measured to ask for nothing beside their outputs.
_PLAIN_KINDS = """
Abs Acos Acosh Add And Asin Asinh Atan Atanh AveragePool BatchNormalization Cast Ceil Clip Concat Constant
ConstantOfShape Cos Cosh DepthToSpace DequantizeLinear Div Dropout DynamicQuantizeLinear Elu Equal Erf Exp Expand
Flatten Floor Gather GatherElements Gelu Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual HardSigmoid
Identity InstanceNormalization LayerNormalization LeakyRelu Less LessOrEqual Log MatMul MatMulInteger Max MaxPool Min
Mul Neg Not Or PRelu Pad Pow QuantizeLinear Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape
Round Selu Shape Sigmoid Sign Sin Sinh Size Slice Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Tan Tanh
ThresholdedRelu Tile Transpose Trilu Unsqueeze Xor
"""
#: Of ONNX Runtime's own, those that were measured so for elements that are no halves.
_PLAIN_ADDED = """
BranchwiseRMSNorm CDist CausalConvWithState DequantizeLinear EngramGate FastGelu FusedGemm FusedMatMul GatedAdd
GatedRMSNorm GatherBlockQuantized GatherND GatherPacked Gelu GridSample HyperConnectionPostMix HyperConnectionPreMix
Inverse LinearAttentionGate MRotaryEmbedding MatMulInteger16 MaxpoolWithMask MoEGroupRouter MurmurHash3 NGramRepeatBlock
Pad QLinearAdd QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearSoftmax
QuantizeLinear QuickGelu Range ScaledSiLU SkipLayerNormalization SkipSimplifiedLayerNormalization TransposeMatMul
UnfoldTensor
"""
_PLAIN_IN_BLOCKS = "AveragePool Conv GlobalAveragePool GlobalMaxPool MaxPool ReorderInput ReorderOutput Upsample"
_ADDED = {f"com.microsoft.{kind}" for kind in _PLAIN_ADDED.split()} | {"SimplifiedLayerNormalization"}
_PLAIN = frozenset(_PLAIN_KINDS.split()) | _ADDED | {f"com.microsoft.nchwc.{kind}" for kind in _PLAIN_IN_BLOCKS.split()}
_HALVES = ("float16", "bfloat16")
#: Gates of recurrent operators, and the vectors of hidden values that each direction works with beside these.
_RECURRENT = {"LSTM": (4, 7), "GRU": (3, 3), "RNN": (1, 0)}
#: The first opset in which a softmax along another axis than the last transposes its operand and its result.
_SOFTMAX_ALONG_ONE = 13


def workspace_blocks(graph: Graph, op: Op, threads: int = 1) -> tuple[int, ...]:
    """The blocks that the kernel of an operator asks for beside its output, one after the other."""
    if op.kind in ("Where", _QUANTISED_WHERE):
        return _selections(graph, op)
    whole = workspace_bytes(graph, op, threads)
    if op.kind in ("LRN", "Softmax", "LogSoftmax") and whole:
        first = _rounded(graph.tensors[op.inputs[0]].nbytes)
        return first, whole - first
    return (whole,) if whole else ()


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
    if op.kind in _RECURRENT:
        return _recurrent_bytes(graph, op)
    if op.kind in ("Where", _QUANTISED_WHERE):
        return sum(_selections(graph, op))
    if op.kind == _BIAS_GELU:
        return _rounded(x.nbytes)
    if op.kind in ("QLinearMatMul", _QUANTISED_GEMM):
        turned = sum(
            _rounded(graph.tensors[op.inputs[operand]].nbytes)
            for operand, name in ((0, "transA"), (3, "transB"))
            if number(op, name, 0)
        )
        return turned + (_rounded(4 * y.nbytes) if BITS[y.dtype] == _BYTE_BITS else 0)
    if op.kind == "LRN":
        channels = prod(x.shape[1:2])  # a damaged file may have none, whose session does not load
        padded = x.nbytes // (channels or 1) * (channels + number(op, "size", 1) - 1)
        return _rounded(x.nbytes) + _rounded(padded)
    if op.kind == "Resize":
        linear = op.attribute("mode", "nearest") == "linear"
        return _LINEAR * sum(y.shape[2:]) if linear else 0
    if op.kind in ("Softmax", "LogSoftmax"):
        last = number(op, "axis", -1) in (-1, len(x.shape) - 1)
        return 0 if last or op.version < _SOFTMAX_ALONG_ONE else x.nbytes + y.nbytes
    return _convolution_bytes(graph, op, x, y, threads)


def _convolution_bytes(graph: Graph, op: Op, x: Tensor, y: Tensor, threads: int) -> int:
    """What a convolution from `x` to `y` asks for beside its output."""
    weights = graph.tensors[op.inputs[3 if op.kind == "QLinearConv" else 1]].shape
    window = prod(weights[2:])
    if op.kind == "ConvTranspose":
        return x.nbytes // (x.shape[1] or 1) * weights[1] * window
    moved = any(numbers(op, "pads") or ()) or any(n > 1 for n in numbers(op, "strides") or ())
    product = window == 1 and not moved
    if op.kind in ("Conv", _FUSED_CONV):
        return 0 if product else 4 * _conv_floats(op, y, weights, threads)
    if op.kind == "ConvInteger":
        return 0 if product else weights[1] * window * prod(y.shape[2:])
    return _rounded(x.nbytes) + _rounded(y.nbytes) + _quantised_bytes(graph, op, y, weights, product=product)


def _selections(graph: Graph, op: Op) -> tuple[int, ...]:
    """What a Where asks for: what it selects of each operand, in the extents of the condition and that operand.

    Source: onnxruntime, core/providers/cpu/tensor/where_op.cc Select.
    """
    given = op.inputs if op.kind == "Where" else (op.inputs[0], op.inputs[1], op.inputs[4])
    condition, *operands = (graph.tensors[t] for t in given)
    extents = (np.broadcast_shapes(condition.shape, x.shape) for x in operands)
    return tuple(_rounded(prod(shape) * BITS[x.dtype] // 8) for shape, x in zip(extents, operands, strict=True))


def _recurrent_bytes(graph: Graph, op: Op) -> int:
    """What a recurrent operator asks for: its gates for all steps, working vectors, and sequences turned around."""
    x, recurrence = graph.tensors[op.inputs[0]], graph.tensors[op.inputs[2]]
    steps, batch, width = x.shape
    ways, hidden = recurrence.shape[0], recurrence.shape[-1]
    gates, vectors = _RECURRENT[op.kind]
    each = _rounded(4 * gates * hidden * steps * batch) + vectors * _rounded(4 * hidden * batch) + _GRAIN * (gates > 1)
    turned = 0 if op.kind == "RNN" else (ways - 1) * 4 * steps * batch * (width + hidden)
    return ways * each + turned


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _GRAIN) * _GRAIN


def _conv_floats(op: Op, y: Tensor, weights: Sequence[int], threads: int) -> int:
    """The buffer of a convolution of floats: all that its windows read where it has more filters than pixels.

    Source: onnxruntime, core/mlas/lib/convolve.cpp MlasConvPrepare.
    """
    pixels, filters = prod(y.shape[2:]), weights[0] // number(op, "group", 1)
    return pixels * prod(weights[1:]) if filters > pixels else _CONV_FLOATS * threads


def _quantised_bytes(graph: Graph, op: Op, y: Tensor, weights: Sequence[int], *, product: bool) -> int:
    """What a QLinearConv asks for beside copies of both maps with their channels last.

    The kernels for symmetric weights read pixels by their addresses and write 8 bits; the others need 32 bits for each
    value of the output, and but for depthwise ones a copy of what each window reads.
    """
    pixels, window, groups = y.shape[0] * prod(y.shape[2:]), prod(weights[2:]), number(op, "group", 1)
    depthwise = weights[0] == groups and weights[1] == 1
    addresses = 0 if product and not depthwise else _rounded(_ADDRESS * window * pixels)
    if _is_symmetric(graph, op, weights):
        return addresses
    if depthwise:
        return _rounded(4 * y.nbytes) + addresses
    return _rounded(4 * y.nbytes) + (0 if product else _rounded(weights[1] * window * pixels))


def _is_symmetric(graph: Graph, op: Op, weights: Sequence[int]) -> bool:
    """Whether a QLinearConv has a kernel for weights with zero point 0, which is taken for granted of long ones."""
    groups = number(op, "group", 1)
    if [graph.tensors[op.inputs[operand]].dtype for operand in (0, 3)] != ["uint8", "int8"]:
        return False
    if any(numbers(op, "operand 5") or ()):
        return False
    if groups > 1:
        return weights[0] == groups and weights[1] == 1 and not groups % _LEAST_CHANNELS
    return not weights[1] % _CHANNELS and not weights[0] % _CHANNELS and weights[0] >= _LEAST_CHANNELS


def thread_bytes(graph: Graph, op: Op, threads: int = 1) -> int:
    """What an operator needs of the buffers that threads keep."""
    if op.kind == "QLinearConv":
        weights = graph.tensors[op.inputs[3]].shape
        depthwise = weights[0] == number(op, "group", 1) and weights[1] == 1
        if depthwise or _is_symmetric(graph, op, weights):
            return 0
    return panel_bytes(graph, op, threads)


def unknown_kernels(graph: Graph) -> list[str]:
    """The kinds of operators of which is not known what their kernels ask for, those with bodies among them."""
    known = _PLAIN | WORKING
    other = (_is_other_resize, _is_other_added)
    return sorted(
        {op.kind for op in graph.ops if op.kind not in known or op.subgraphs or any(f(graph, op) for f in other)}
    )


def _is_other_resize(graph: Graph, op: Op) -> bool:
    """Whether an operator is a Resize that does more than repeat values, or mix those of two rows and columns."""
    if op.kind != "Resize" or op.attribute("mode", "nearest") == "nearest":
        return False
    return op.attribute("mode") != "linear" or len(graph.tensors[op.outputs[0]].shape) != _IMAGES


def _is_other_added(graph: Graph, op: Op) -> bool:
    """Whether an operator of ONNX Runtime's own has elements, or an axis, with which it was not measured."""
    if op.kind not in WORKING | _ADDED or not op.kind.startswith(("com.microsoft", "Simplified")):
        return False
    x = graph.tensors[op.inputs[0]]
    if op.kind == "com.microsoft.QLinearSoftmax" and number(op, "axis", -1) not in (-1, len(x.shape) - 1):
        return True
    return any(graph.tensors[t].dtype in _HALVES for t in (*op.reads, *op.writes))


def packed_in_arena(graph: Graph) -> list[int]:
    """The weights that a loaded session keeps in its arena, in another order than the file has, for as long as it is.

    Other kernels keep theirs apart from the arena.
    """
    return [size for op in graph.ops if (size := _packed_bytes(graph, op))]


def _packed_bytes(graph: Graph, op: Op) -> int:
    """The weights of an operator in its own order, in an arena; of a QLinearConv in blocks of filters.

    Source: onnxruntime, core/mlas/lib/convsym.cpp MlasConvSymPackWSize, with the kernels for x86-64.
    """
    if op.kind == "ConvTranspose":
        return graph.tensors[op.inputs[1]].nbytes
    if op.kind != "QLinearConv":
        return 0
    filters, *window = graph.tensors[op.inputs[3]].shape
    if not _is_symmetric(graph, op, (filters, *window)):
        return 0
    blocks = -(-filters // _LEAST_CHANNELS) * _LEAST_CHANNELS
    return _rounded(blocks * prod(window))
