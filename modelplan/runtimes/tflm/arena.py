"""TFLM's whole arena by part, under TFLM's own row names: the head that is planned, the tail that is not.

The tail is a bump allocator that grows down; this module performs its allocations one by one with the sizes of
TFLM's structures, so that alignment losses come out as they do there. How far each row can be trusted stands
beside it: *exact* (follows from the file and the target's pointer size), *modelled* (sizes of structures of the
version named) or *estimated* (an operator whose structures are not in the table, for which ample room is added).

Source: tflite-micro, micro_allocator.cc, micro_interpreter.cc, recording_micro_allocator.cc and kernels/*.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from modelplan.errors import RequestError
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileSubgraph, FileTensor

#: The release whose structures the tables follow.
VERSION = "0.dev20261023182759"

EVAL_TENSORS = "TfLiteEvalTensor data"
TENSORS = "Persistent TfLiteTensor data"
QUANTIZATION = "Persistent TfLiteTensor quantization data"
BUFFERS = "Persistent buffer data"
VARIABLES = "TfLiteTensor variable buffer data"
NODES = "NodeAndRegistration struct"
OPTIONS = "Builtin operator data"
HANDLES = "Scratch buffer handles"
OWN = "Interpreter's own"
MARGIN = "Margin for operators without sizes"


@dataclass(frozen=True, slots=True)
class Abi:
    """Sizes of TFLM's structures on targets with addresses of `pointer` bytes."""

    pointer: int
    eval_tensor: int
    tensor: int
    quantization: int
    node: int
    scratch_request: int
    allocation_info: int


ABIS = {64: Abi(8, 24, 64, 24, 64, 16, 32), 32: Abi(4, 12, 32, 12, 32, 12, 24)}

#: Bytes that the greedy planner works with for each buffer, and requests for which room is always kept.
_PLANNED_BUFFER = 40
_SPARE_REQUESTS = 12


@dataclass(frozen=True, slots=True)
class Own:
    """Allocator, planner and interpreter objects in bytes, persistent buffers of the application, and the source."""

    objects: int
    buffers: tuple[int, ...]
    source: str


_OWN = {
    (64, "reference"): Own(488, (), f"tflite-micro wheel {VERSION}, x86-64"),
    (32, "reference"): Own(144, (), "fitted to public arena totals of an ESP32"),
    (32, "cmsis-dsp"): Own(360, (), "fitted to public arena totals of an nRF52840"),
    (32, "cmsis-mve"): Own(160, (2048, 16), "fitted to the public allocation report of a Corstone-300"),
}


@dataclass(frozen=True, slots=True)
class OpBytes:
    """One operator's structures in bytes: its parsed options and its kernel's data, on 64 and on 32 bits.

    `addresses` says that the options hold addresses, which aligns them as those.
    """

    options: tuple[int, int]
    data: tuple[int, int]
    addresses: bool = False


_NOTHING = OpBytes((0, 0), (0, 0))
_CONV = OpBytes((28, 28), (80, 56))
_POOL = OpBytes((40, 40), (32, 32))
_REDUCE = OpBytes((1, 1), (44, 44))
_COMPARISON = OpBytes((0, 0), (32, 32))
_RESIZE = OpBytes((2, 2), (0, 0))
_CALL = OpBytes((8, 8), (8, 8))
_DATA_28, _DATA_16 = OpBytes((0, 0), (28, 28)), OpBytes((0, 0), (16, 16))
_OPTIONS_4, _OPTIONS_8 = OpBytes((4, 4), (0, 0)), OpBytes((8, 8), (0, 0))
_BLOCK = OpBytes((4, 4), (20, 20))
_PAD = OpBytes((0, 0), (56, 56))

#: Operators that keep nothing: neither options nor data.
_BARE = (
    "ADD_N", "BATCH_TO_SPACE_ND", "BROADCAST_ARGS", "BROADCAST_TO", "CEIL", "COS", "DYNAMIC_UPDATE_SLICE", "EXP",
    "EXPAND_DIMS", "FILL", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "GATHER_ND", "LOG", "LOGICAL_AND", "LOGICAL_NOT",
    "LOGICAL_OR", "MAXIMUM", "MINIMUM", "NEG", "REVERSE_V2", "ROUND", "SIN", "SLICE", "SQRT", "SQUARE", "TRANSPOSE",
    "ZEROS_LIKE",
)  # fmt: skip

_OPS: dict[str, OpBytes] = {
    "CONV_2D": _CONV,
    "DEPTHWISE_CONV_2D": _CONV,
    "TRANSPOSE_CONV": OpBytes((20, 20), (88, 72)),
    "FULLY_CONNECTED": OpBytes((32, 16), (72, 48), addresses=True),
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "ADD": OpBytes((8, 8), (60, 60)),
    "MUL": OpBytes((4, 4), (36, 36)),
    "RESHAPE": OpBytes((36, 36), (0, 0)),
    "SOFTMAX": OpBytes((4, 4), (80, 56)),
    "QUANTIZE": OpBytes((0, 0), (32, 32)),
    "SVDF": OpBytes((12, 12), (36, 36)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": OpBytes((16, 16), (688, 672)),
    "LOGISTIC": _DATA_16,
    "LEAKY_RELU": OpBytes((4, 4), (24, 24)),
    "STRIDED_SLICE": OpBytes((24, 24), (84, 84)),
    "CAST": OpBytes((8, 8), (0, 0)),
    "CONCATENATION": OpBytes((8, 8), (80, 24)),
    "DIV": OpBytes((4, 4), (28, 28)),
    "SUB": OpBytes((8, 8), (52, 52)),
    "BATCH_MATMUL": OpBytes((3, 3), (32, 16)),
    "SQUARED_DIFFERENCE": OpBytes((0, 0), (112, 112)),
    "ABS": _DATA_28,
    "RSQRT": _DATA_28,
    "RELU": _DATA_28,
    "PRELU": _DATA_28,
    "RELU6": OpBytes((0, 0), (8, 8)),
    "TANH": _DATA_16,
    "EMBEDDING_LOOKUP": _DATA_16,
    "HARD_SWISH": OpBytes((0, 0), (20, 20)),
    "ELU": OpBytes((0, 0), (256, 256)),
    "DEQUANTIZE": OpBytes((0, 0), (32, 32)),
    "SELECT_V2": OpBytes((0, 0), (1, 1)),
    "SPACE_TO_BATCH_ND": OpBytes((0, 0), (4, 4)),
    "L2_NORMALIZATION": OpBytes((4, 4), (4, 4)),
    "L2_POOL_2D": OpBytes((40, 40), (20, 20)),
    "MIRROR_PAD": OpBytes((4, 4), (20, 20)),
    "CUMSUM": OpBytes((2, 2), (0, 0)),
    "SQUEEZE": OpBytes((36, 36), (0, 0)),
    "PAD": _PAD,
    "PADV2": _PAD,
    "SPACE_TO_DEPTH": _BLOCK,
    "DEPTH_TO_SPACE": _BLOCK,
    "RESIZE_NEAREST_NEIGHBOR": _RESIZE,
    "RESIZE_BILINEAR": _RESIZE,
    "IF": _CALL,
    "WHILE": _CALL,
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL"), _REDUCE),
    **dict.fromkeys(("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"), _COMPARISON),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "SHAPE", "SPLIT", "SPLIT_V"), _OPTIONS_4),
    **dict.fromkeys(("GATHER", "PACK", "UNPACK"), _OPTIONS_8),
    **dict.fromkeys(_BARE, _NOTHING),
    "SignalWindow": OpBytes((0, 0), (8, 8)),
    "SignalFftAutoScale": _NOTHING,
    "SignalRfft": OpBytes((0, 0), (48, 32)),
    "SignalEnergy": OpBytes((0, 0), (8, 8)),
    "SignalFilterBank": OpBytes((0, 0), (64, 32)),
    "SignalFilterBankSquareRoot": _NOTHING,
    "SignalFilterBankSpectralSubtraction": OpBytes((0, 0), (56, 48)),
    "SignalPCAN": OpBytes((0, 0), (4, 4)),
    "SignalFilterBankLog": OpBytes((0, 0), (8, 8)),
}
#: Operators that make their output's shape writable.
_RESHAPED = frozenset({"BATCH_MATMUL", "EMBEDDING_LOOKUP", "GATHER", "GATHER_ND"})
#: Data that kernels take only when their operands are 8 bits wide.
_QUANTISED = {"ADD_N": 40, "CUMSUM": 36}
_INT16, _INT8 = 7, 9

#: Operators whose CMSIS-NN kernels keep other structures than the reference kernels and ask for scratch of their own.
_OTHER_IN_CMSIS = frozenset({"BATCH_MATMUL"})

#: Room for an operator without sizes: more than any structure in the table holds, and copies of its operands: a
#: transposed one and a buffered one that stay, and one while it runs.
_STRUCTURES = 1024
_COPIES = 3


@dataclass(frozen=True, slots=True)
class ArenaRow:
    """One part of the arena: TFLM's name for it, bytes used with alignment, allocations, and how far to trust it."""

    name: str
    used: int
    count: int
    trust: str


@dataclass(frozen=True, slots=True)
class Arena:
    """Head and tail of the arena; `rows` add up to the tail.

    `planning` is what TFLM needs while it plans: most of the tail, its tables, and the planner's working memory.
    Small models need more then than when they run.
    """

    head: int
    scratch: int
    planning: int
    rows: tuple[ArenaRow, ...]
    abi: int
    kernels: str

    @property
    def tail(self) -> int:
        """Bytes that stay for the life of the interpreter."""
        return sum(row.used for row in self.rows)

    @property
    def total(self) -> int:
        """What TFLM will report as its arena use."""
        return self.head + self.tail

    def size(self, margin: int = 0) -> int:
        """The number for `tensor_arena`: what running or planning needs, the margin, the loss of alignment."""
        return planner.padded(max(self.total, self.planning) + margin) + planner.ALIGNMENT


class _Tail:
    """The persistent end of the arena, growing down from an aligned top."""

    def __init__(self) -> None:
        self.depth = self.planned_at = 0
        self.used: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def take(self, row: str, size: int, alignment: int) -> None:
        """One allocation: its start is rounded down to the alignment."""
        deeper = -(-(self.depth + size) // alignment) * alignment
        self.used[row] = self.used.get(row, 0) + deeper - self.depth
        self.counts[row] = self.counts.get(row, 0) + 1
        self.depth = deeper


def arena(model: FileModel, abi: int = 64, kernels: str = "reference") -> Arena:
    """What the model's arena will hold on a target with `abi`-bit addresses, with the offline plan it carries.

    Raises:
        RequestError: no sizes are known for this pair of ABI and kernels.
        ModelError: the offline plan in the file does not fit the model.
    """
    if (abi, kernels) not in _OWN:
        known = ", ".join(f"{a} bits with {k}" for a, k in _OWN)
        raise RequestError(f"no arena sizes for {abi} bits with {kernels} kernels; there are: {known}")
    rows = planner.requests(model, kernels, ABIS[abi].pointer)
    head = planner.head_bytes(rows, planner.greedy_offsets(rows, planner.read_plan(model)))
    scratch = [row for row in rows if row.scratch]
    tail = _tail(model, abi, kernels, len(scratch))
    return Arena(
        head,
        planner.head_bytes(scratch, planner.greedy_offsets(scratch)),
        # Each table is aligned when it is taken.
        tail.planned_at + _planning(model, ABIS[abi], len(rows), len(scratch)) + 2 * planner.ALIGNMENT,
        tuple(_rows(model, tail, abi, kernels)),
        abi,
        kernels,
    )


def _tail(model: FileModel, abi: int, kernels: str, handles: int) -> _Tail:
    """TFLM's allocations in TFLM's order."""
    sizes, own, tail = ABIS[abi], _OWN[abi, kernels], _Tail()
    tail.take(OWN, own.objects + 3 * sizes.pointer * (len(model.subgraphs) - 1), 4)
    strange = _strange(model, kernels)
    for _ in model.tensors:
        tail.take(EVAL_TENSORS, sizes.eval_tensor, sizes.pointer)
    ops = [(subgraph, op) for subgraph in model.subgraphs for op in subgraph.ops]
    for _ in ops:
        tail.take(NODES, sizes.node, sizes.pointer)
    known = [(subgraph, op) for subgraph, op in ops if op.kind not in strange]
    for _, op in known:
        if size := _OPS[op.kind].options[abi == 32] * (not op.custom):
            tail.take(OPTIONS, size, _options_alignment(_OPS[op.kind], sizes))
    for size in (*_kernels(known, sizes), *own.buffers):
        tail.take(BUFFERS, size, planner.ALIGNMENT)
    for subgraph, op in ops:
        if op.kind in strange:
            tail.take(MARGIN, _margin(subgraph, op), planner.ALIGNMENT)
    if handles:
        tail.take(HANDLES, handles * sizes.pointer, sizes.pointer)
    for number in _variables(model):
        tail.take(VARIABLES, model.tensors[number].nbytes, planner.ALIGNMENT)
    tail.planned_at = tail.depth
    _take_interface(model.subgraphs[0], sizes, tail)
    return tail


def _planning(model: FileModel, sizes: Abi, buffers: int, scratch: int) -> int:
    """What TFLM's memory planning takes on top of the tail of that moment."""
    tables = sizes.scratch_request * (scratch + _SPARE_REQUESTS) + sizes.pointer * len(model.subgraphs)
    return tables + sizes.allocation_info * (len(model.tensors) + scratch) + _PLANNED_BUFFER * buffers


def _strange(model: FileModel, kernels: str) -> list[str]:
    """The operators of the model without sizes for these kernels."""
    kinds = {op.kind for subgraph in model.subgraphs for op in subgraph.ops}
    return sorted(kinds - _OPS.keys() | (kinds & _OTHER_IN_CMSIS if kernels != "reference" else set()))


def _margin(subgraph: FileSubgraph, op: FileOp) -> int:
    """More than a kernel needs that keeps no more than its structures and copies of its operands."""
    operands = [subgraph.tensors[t].nbytes for t in (*op.inputs, *op.outputs) if t >= 0]
    return _STRUCTURES + _COPIES * sum(planner.padded(size) for size in operands)


def _options_alignment(op: OpBytes, sizes: Abi) -> int:
    """Options are addresses, words, or a few flags of a byte each."""
    return sizes.pointer if op.addresses else 1 if op.options[0] % 4 else 4


def _kernels(ops: Sequence[tuple[FileSubgraph, FileOp]], sizes: Abi) -> Iterator[int]:
    """First every kernel's data, then what each asks for when it prepares."""
    for _, op in ops:
        if size := _OPS[op.kind].data[sizes.pointer == 4]:
            yield size
            yield from _initialised(op, sizes.pointer)
    for subgraph, op in ops:
        yield from _prepared(subgraph, op, sizes)


def _initialised(op: FileOp, pointer: int) -> Iterator[int]:
    """The state that signal kernels take with their data."""
    options = op.options if isinstance(op.options, dict) else {}
    channels = options.get("num_channels", 0)
    if op.kind == "SignalRfft":
        yield _kiss_fft(options.get("fft_length", 0), pointer)
    elif op.kind == "SignalFilterBank":
        yield 8 * (channels + 1)
    elif op.kind == "SignalFilterBankSpectralSubtraction":
        yield 4 * channels


def _kiss_fft(length: int, pointer: int) -> int:
    """The state of a real 16-bit transform: three addresses, the half-length transform, buffer and twiddles.

    Source: mborgerding/kissfft, kiss_fftr.c and _kiss_fft_guts.h.
    """
    half, cell, factors = length // 2, 4, 64
    return 3 * pointer + (8 + 4 * factors + cell * half) + cell * (half + half // 2)


def _prepared(subgraph: FileSubgraph, op: FileOp, sizes: Abi) -> Iterator[int]:
    """What a kernel keeps once it knows its operands."""
    operands = [subgraph.tensors[t] if t >= 0 else None for t in op.inputs]
    if op.kind == "BATCH_MATMUL":
        yield from _matmul_prepared(operands, op.options, sizes)
    if op.kind in _RESHAPED and op.writes:
        yield _extents(subgraph.tensors[op.writes[0]])
    if size := _QUANTISED.get(op.kind, 0) * (bool(operands) and _is(operands[0], _INT8)):
        yield size
    yield from _channels(op, operands[1] if len(operands) > 1 else None)


def _channels(op: FileOp, weights: FileTensor | None) -> Iterator[int]:
    """A multiplier and a shift for each output channel of a convolution, or of weights scaled by channel."""
    axis = {"CONV_2D": 0, "TRANSPOSE_CONV": 0, "DEPTHWISE_CONV_2D": 3}.get(op.kind)
    if weights is None:
        return
    if op.kind == "FULLY_CONNECTED" and weights.scales > 1:
        axis = 0
    if axis is not None and len(weights.shape) > axis:
        yield from [4 * weights.shape[axis]] * 2


def _matmul_prepared(operands: Sequence[FileTensor | None], options: Any, sizes: Abi) -> Iterator[int]:
    """Multipliers of a quantised product, and copies: of the left side if it is turned, of the right if it is not."""
    left, right = (*operands, None, None)[:2]
    if _is(left, _INT8, _INT16):
        yield 28
    turned = (bool(options and options.AdjX()), not (options and options.AdjY()))
    for tensor, copied in zip((left, right), turned, strict=True):
        if tensor is not None and copied:
            yield from (sizes.eval_tensor, _extents(tensor), tensor.nbytes)


def _extents(tensor: FileTensor) -> int:
    """A shape that can be written: TFLM's integer array."""
    return 4 * (1 + len(tensor.shape))


def _is(tensor: FileTensor | None, *types: int) -> bool:
    return tensor is not None and tensor.type in types


def _variables(model: FileModel) -> list[int]:
    """State that TFLM keeps in the tail: without an offset of its own."""
    offsets = planner.read_plan(model) or (planner.ONLINE,) * len(model.tensors)
    kept = zip(model.tensors, offsets, strict=True)
    return [i for i, (t, at) in enumerate(kept) if t.variable and at == planner.ONLINE]


def _take_interface(subgraph: FileSubgraph, sizes: Abi, tail: _Tail) -> None:
    """The interpreter's tensors for inputs and outputs, with their quantisation."""
    for interface in (subgraph.inputs, subgraph.outputs):
        tail.take(BUFFERS, sizes.pointer * len(interface), planner.ALIGNMENT)
        for t in interface:
            tail.take(TENSORS, sizes.tensor, sizes.pointer)
            _take_quantization(subgraph.tensors[t], sizes, tail)


def _take_quantization(tensor: FileTensor, sizes: Abi, tail: _Tail) -> None:
    if tensor.scales:
        tail.take(QUANTIZATION, sizes.quantization, sizes.pointer)
        tail.take(QUANTIZATION, 4 * (1 + tensor.scales), 4)


def _rows(model: FileModel, tail: _Tail, abi: int, kernels: str) -> Iterator[ArenaRow]:
    modelled = f"modelled for tflite-micro {VERSION}"
    guessed = f"estimated: ample for {', '.join(_strange(model, kernels))}, for which there are no sizes"
    trust = {OWN: f"modelled: {_OWN[abi, kernels].source}", VARIABLES: "exact", MARGIN: guessed}
    for name in (EVAL_TENSORS, TENSORS, QUANTIZATION, BUFFERS, VARIABLES, NODES, OPTIONS, HANDLES, OWN, MARGIN):
        if name in tail.used:
            yield ArenaRow(name, tail.used[name], tail.counts[name], trust.get(name, modelled))
