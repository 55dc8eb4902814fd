"""TFLM's reference kernels with weights or windows: convolutions, products, pooling, recurrent cells."""

from modelplan.runtimes.tflm.kernels.calls import Operand
from modelplan.runtimes.tflm.kernels.checks import (
    QUANTISED,
    one_of,
    rank_between,
    same_scales,
    same_types,
    scaled,
    shaped,
    zero_point,
    zero_points,
)
from modelplan.runtimes.tflm.kernels.elementwise import ARITHMETIC
from modelplan.runtimes.tflm.kernels.preparation import EVAL_TENSOR, Operator, Preparation

#: OpDataConv and OpDataFullyConnected.
CONV_DATA = (("int*4",), "int32*4", "int", "pointer*2", "int32*2", "int", "compressed*2")
FULLY_CONNECTED_DATA = ("int32", "int", "int32*2", "int", "int32*3", "int", "pointer*2", "bool", "compressed*2")
_CONV_OPTIONS = ("enum", "int*2", "enum", "int*2", "enum")
_DEPTHWISE_OPTIONS = ("enum", "int*3", "enum", "int*2")
#: ConvParams of TFLM's kernels.
CONV_PARAMS = ("int8", ("int16*4",), "int16*4", "int32*4", "int", "int32*2", "float*2")
_TRANSPOSE_DATA = (CONV_PARAMS, "int", "compressed*2", "int", "pointer*2")
POOL_DATA = (("int*4",), "int32*2", "float*2")
_POOL_OPTIONS = ("enum", "int*4", "enum", (("int*4",),))
MATMUL_DATA = ("pointer*3", "bool*3")
MATMUL_QUANTISATION = ("int32", "int", "int32*5")
SVDF_DATA = ("int32*2", "int*7")

_FC_PARAMS = ("int32*4", "int", "int32*2", "float*2", "bool*2", "int8")
_GATE = (_FC_PARAMS, _FC_PARAMS)
#: OpDataLSTM.
LSTM_DATA = (
    ("bool", "int*4"), ("float", "int16", "int32"), "enum", _GATE, _GATE, _GATE, _GATE,
    (ARITHMETIC, ARITHMETIC, ARITHMETIC), "int*4",
)  # fmt: skip

_FLOAT_QUANTISED = ("float32", "int8", "int16")


def require_weights(p: Preparation, source: Operand, weights: Operand, *, int4: bool = True) -> None:
    """Requires weights of a type that goes with the input: hybrid operators do not run."""
    narrow = ("int4", "int8") if int4 else ("int8",)
    allowed = {"float32": ("float32",), "int16": ("int8",), "int8": narrow}.get(source.dtype, ())
    hybrid = source.dtype == "float32" and weights.dtype in ("int4", "int8")
    mixed = "hybrid operators are not supported by TFLM" if hybrid else "its kernel does not take these together"
    p.require(
        weights.dtype in allowed,
        f"{source.dtype} input with {weights.dtype} weights; {mixed}",
    )


def require_channel_scales(p: Preparation, weights: Operand, axis: int, *, points: bool = False) -> None:
    """Requires one scale, or one for each channel of the weights, with as many zero points where `points` says so."""
    known = scaled(p, weights, "the filter")
    if known is None:
        return
    p.require(
        known.scales in (1, weights.dim(axis)),
        f"{known.scales} scales for a filter of {weights.dim(axis)} channels; its kernel takes one or one for each",
    )
    p.require(
        not points or known.scales == known.zero_points,
        f"{known.scales} scales and {known.zero_points} zero points for the filter; its kernel takes as many",
    )


def keep_multipliers(p: Preparation, channels: int) -> None:
    """A multiplier and a shift for each channel."""
    p.keep(4 * channels)
    p.keep(4 * channels)


def convolution_data(p: Preparation, dtype: str, axis: int) -> Operand | None:
    """The second look at the operands of a convolution, for its scales; returns the bias."""
    count = len(p.call.inputs)
    p.require(count in (2, 3), f"{count} inputs; its kernel takes 2 or 3")
    p.require(len(p.call.outputs) == 1, f"{len(p.call.outputs)} outputs; its kernel gives 1")
    source, weights, bias = p.input(0), p.input(1), p.optional(2)
    p.output()
    named = bias is not None or count == 2 or p.call.kind == "CONV_2D"
    p.require(named, "a third input that is absent; TFLM stops in an assertion")
    if dtype != "float32":
        scaled(p, source, "input 0")
        require_channels(p, weights, axis)
    return bias


def depthwise_data(p: Preparation, dtype: str) -> Operand | None:
    """The same for a depthwise convolution, whose kernels in floating point assume a bias."""
    bias = convolution_data(p, dtype, 3)
    if dtype == "float32":
        require_bias(p, bias, p.call.input(1))
    return bias


def require_bias(p: Preparation, bias: Operand | None, weights: Operand) -> None:
    """Requires a bias where a kernel compares its length with the filter's channels; later releases do without."""
    named = bias is not None or weights.dim(3) == 1 or p.later
    p.require(named, "no bias; its kernel stops in an assertion")


def require_channels(p: Preparation, weights: Operand, axis: int) -> None:
    """Requires that scales by channel are as many as the kernel has channels, along the axis that the file names."""
    known = scaled(p, weights, "the filter")
    if known is None or known.scales <= 1:
        return
    p.require(
        known.scales == weights.dim(axis) == weights.dim(known.axis),
        f"{known.scales} scales along axis {known.axis} for a filter of {weights.dim(axis)} channels",
    )


def unpacked(p: Preparation, weights: Operand) -> None:
    """Scratch into which 4-bit weights are unpacked to bytes."""
    if weights.dtype == "int4":
        p.scratch(weights.elements)


def _conv(p: Preparation) -> None:
    result, source, weights = p.output(), p.input(0), p.input(1)
    same_types(p, source, result)
    require_weights(p, source, weights)
    keep_multipliers(p, weights.dim(0))
    if source.dtype in QUANTISED:
        require_channel_scales(p, weights, 0)
    bias = convolution_data(p, source.dtype, 0)
    unpacked(p, weights)
    if source.dtype == "int16" and bias is not None:
        one_of(p, bias, "the bias", "int32", "int64")


def _depthwise(p: Preparation) -> None:
    _result, source, weights = p.output(), p.input(0), p.input(1)
    keep_multipliers(p, weights.dim(3))
    if source.dtype == "int8":
        require_channel_scales(p, weights, 3, points=True)
    require_weights(p, source, weights)
    unpacked(p, weights)
    bias = depthwise_data(p, source.dtype)
    require_bias(p, bias, weights)
    if source.dtype == "int16" and bias is not None:
        one_of(p, bias, "the bias", "int64")


def _transpose_conv(p: Preparation) -> None:
    result, source, weights = p.output(), p.input(2), p.input(1)
    require_weights(p, source, weights, int4=False)
    keep_multipliers(p, weights.dim(0))
    if source.dtype in QUANTISED:
        p.scratch({"int8": 4, "int16": 8}[source.dtype] * result.elements)
        require_channel_scales(p, weights, 0, points=True)
    transposed_data(p, source.dtype)
    same_types(p, source, result)


def transposed_data(p: Preparation, dtype: str, *, needs_bias: bool = False) -> None:
    """The second look at the operands of TRANSPOSE_CONV, with a wide copy of a 16-bit bias."""
    count = len(p.call.inputs)
    p.require(count in (3, 4), f"{count} inputs; its kernel takes 3 or 4")
    p.require(len(p.call.outputs) == 1, f"{len(p.call.outputs)} outputs; its kernel gives 1")
    if dtype == "float32":
        return
    source, weights, bias = p.input(2), p.input(1), p.optional(3)
    result = p.output()
    scaled(p, source, "input 2")
    require_channels(p, weights, 0)
    if dtype == "int16":
        one_of(p, result, "output", "int16")
        p.require(bias is not None or not needs_bias, "no bias, which its kernel looks at with 16-bit input")
        if bias is not None and bias.dtype == "int16":
            p.scratch(8 * bias.elements)


def _fully_connected(p: Preparation) -> None:
    source, weights, bias, result = p.input(0), p.input(1), p.optional(2), p.output()
    same_types(p, source, result)
    require_weights(p, source, weights)
    unpacked(p, weights)
    fully_connected_data(p, source, weights, bias, result)


def fully_connected_data(
    p: Preparation, source: Operand, weights: Operand, bias: Operand | None, result: Operand
) -> None:
    """Multipliers by channel where the weights have scales by channel; else one scale that fits the bias."""
    if source.dtype == "float32":
        return
    if weights.per_channel:
        p.require(weights.dtype == "int8", f"{weights.dtype} weights with a scale for each channel")
        known = weights.quantization
        p.require(
            known is None or known.scales == weights.dim(known.axis),
            f"{weights.scales} scales for weights of shape {list(weights.shape)}",
        )
        keep_multipliers(p, weights.scales)
    else:
        _require_bias_scale(p, source, weights, bias, result)
    zero_point(p, weights, "input 1")


def _require_bias_scale(
    p: Preparation, source: Operand, weights: Operand, bias: Operand | None, result: Operand
) -> None:
    """Requires that the scale of the bias is about that of the products."""
    operands = [o.quantization for o in (source, weights, bias, result) if o is not None]
    if bias is None or any(q is None for q in operands):
        return
    first, second, third, last = (q.scale if q is not None and q.scales else 0.0 for q in operands)
    p.require(
        last > 0 and abs(first * second - third) / last <= 0.02,
        f"the bias has scale {third:.9g}; its kernel takes about that of input and weights, {first * second:.9g}",
    )


def pooling(p: Preparation) -> None:
    """AVERAGE_POOL_2D and MAX_POOL_2D."""
    source, result = p.input(), p.output()
    source.dim(1), source.dim(2)
    if source.dtype in QUANTISED:
        same_scales(p, source, result, 1e-6)


def _l2_pool(p: Preparation) -> None:
    p.counts(1)
    result, source = p.output(), p.input()
    rank_between(p, source, "input 0", 4, 4)
    rank_between(p, result, "output", 4, 4)
    same_types(p, source, result)
    p.keep_shape(result.rank)


def _batch_matmul(p: Preparation) -> None:
    p.counts(2)
    left, right, result = p.input(0), p.input(1), p.output()
    same_types(p, left, right, result)
    rank_between(p, left, "input 0", 2, 5)
    rank_between(p, right, "input 1", 2, 5)
    if left.dtype in QUANTISED:
        p.keep_struct(MATMUL_QUANTISATION)
    keep_turned(p, left, right)
    if left.dtype == "int16":
        zero_points(p, left, right, result)
    require_product(p, left, right)
    reshape_product(p, left, right, result)


def keep_turned(p: Preparation, left: Operand, right: Operand) -> None:
    """Keeps copies of the left operand if it is transposed, of the right one if it is not."""
    for operand, turned in ((left, bool(p.call.number("adj_x"))), (right, not p.call.number("adj_y"))):
        if turned:
            p.keep_struct(EVAL_TENSOR)
            p.keep_shape(operand.rank)
            p.keep(operand.nbytes)


def require_product(p: Preparation, left: Operand, right: Operand) -> None:
    """Requires that the sides fit each other."""
    depth, other = left.dim(-2 if p.call.number("adj_x") else -1), right.dim(-1 if p.call.number("adj_y") else -2)
    p.require(depth == other, f"shapes {list(left.shape)} and {list(right.shape)}, which do not fit each other")
    for a, b in zip(left.shape[-3::-1], right.shape[-3::-1], strict=False):
        p.require(a in (b, 1) or b == 1, f"shapes {list(left.shape)} and {list(right.shape)}, which do not fit")


def reshape_product(p: Preparation, left: Operand, right: Operand, result: Operand) -> None:
    """Gives the output the shape of the product, which must have as many elements as the file says."""
    rank = max(left.rank, right.rank)
    p.require(rank <= result.rank, f"an output of {result.rank} dimensions for a product of {rank}")
    p.keep_shape(result.rank)


def _svdf(p: Preparation) -> None:
    svdf_scratch(p)


def svdf_scratch(p: Preparation) -> Operand:
    """The operands of SVDF and its sums by filter and, quantised, by unit; returns the weights of the features."""
    source, features, times, bias, state = p.input(0), p.input(1), p.input(2), p.optional(3), p.input(4)
    rank = p.call.number("rank", 1)
    filters, batches = features.dim(0), source.dim(0)
    p.require(rank > 0 and filters % rank == 0, f"{filters} filters, which rank {rank} does not divide")
    one_of(p, source, "input 0", "float32", "int8")
    result = p.output()
    _require_svdf_shapes(p, (source, features, times, state, result), filters // rank)
    p.require(len(p.call.inputs) == 5, f"{len(p.call.inputs)} inputs; its kernel takes 5")
    p.require(state.variable or state.quantization is None, "input 4 is no variable")
    p.require(bias is not None, "no bias, which its kernel looks at")
    _require_svdf_types(p, source.dtype, features, times, bias, state, result)
    p.scratch(4 * batches * filters)
    if source.dtype == "int8":
        p.scratch(4 * batches * (filters // rank))
    return features


def _require_svdf_shapes(p: Preparation, operands: tuple[Operand, ...], units: int) -> None:
    source, features, times, state, result = operands
    for operand, what in zip(operands, ("input 0", "input 1", "input 2", "input 4", "output"), strict=True):
        rank_between(p, operand, what, 2, 2)
    filters, memory = times.shape
    shapes = (features.shape, state.shape, result.shape)
    wanted = ((filters, source.shape[1]), (source.shape[0], memory * filters), (source.shape[0], units))
    p.require(shapes == wanted, f"shapes {[list(s) for s in shapes]}; its kernel takes {[list(s) for s in wanted]}")


def _require_svdf_types(
    p: Preparation, dtype: str, features: Operand, times: Operand, bias: Operand | None, state: Operand, result: Operand
) -> None:
    quantised = dtype == "int8"
    one_of(p, features, "input 1", dtype)
    one_of(p, times, "input 2", *(QUANTISED if quantised else ("float32",)))
    one_of(p, state, "input 4", *(QUANTISED if quantised else ("float32",)))
    if bias is not None:
        one_of(p, bias, "the bias", "int32" if quantised else "float32")
    one_of(p, result, "output", dtype)


#: Inputs of UNIDIRECTIONAL_SEQUENCE_LSTM: weights, biases, and those that TFLM's kernel does not have.
_LSTM_WEIGHTS, _LSTM_BIASES, _LSTM_ABSENT = range(1, 9), range(12, 16), (9, 10, 11, 16, 17, 20, 21, 22, 23)
_LSTM_STATE, _LSTM_CELL = 18, 19


def lstm_operands(p: Preparation) -> tuple[Operand, Operand, Operand]:
    """All operands of the cell; returns its input, its hidden state and its cell state."""
    p.require(len(p.call.outputs) == 1, f"{len(p.call.outputs)} outputs; its kernel gives 1")
    p.require(len(p.call.inputs) == 24, f"{len(p.call.inputs)} inputs; its kernel takes 24")
    operands = [p.optional(i) for i in range(24)]
    result = p.output()
    source, state, cell = p.call.input(0), p.call.input(_LSTM_STATE), p.call.input(_LSTM_CELL)
    for operand, what in ((state, "input 18"), (cell, "input 19")):
        p.require(operand.variable or operand.quantization is None, f"{what} is no variable")
    same_types(p, source, state, result)
    for group in (_LSTM_WEIGHTS, _LSTM_BIASES):
        same_types(p, *(p.call.input(i) for i in group))
    for index in _LSTM_ABSENT:
        p.require(
            operands[index] is None, f"an input {index}; its kernel has no peepholes, projection or normalisation"
        )
    return source, state, cell


def require_lstm_shapes(p: Preparation, source: Operand, state: Operand, cell: Operand) -> tuple[int, int]:
    """Requires the shapes of weights, biases and states; returns batch and units."""
    batch, units = source.dim(1 if p.call.number("time_major") else 0), state.dim(1)
    for index in _LSTM_WEIGHTS:
        wanted = (units, source.dim(2) if index < 5 else units)
        _require_shape(p, index, wanted)
    for index in _LSTM_BIASES:
        _require_shape(p, index, (units,))
    p.require(
        state.elements == cell.elements == batch * units, f"states of {state.elements} and {cell.elements} values"
    )
    shaped(p, p.call.output(), (*source.shape[:2], units))
    return batch, units


def _require_shape(p: Preparation, index: int, wanted: tuple[int, ...]) -> None:
    shape = p.call.input(index).shape
    p.require(shape == wanted, f"input {index} has shape {list(shape)}; its kernel takes {list(wanted)}")


def lstm_gates(p: Preparation, cell: Operand) -> None:
    """Requires a cell of a type that the kernel has; weights with scales by channel keep their multipliers."""
    one_of(p, cell, "the cell state", "float32", "int16")
    if cell.dtype == "int16":
        for index in (2, 6, 1, 5, 3, 7, 4, 8):  # of each gate those of the input, then those of the state
            weights = p.call.input(index)
            if weights.per_channel:
                keep_multipliers(p, weights.scales)


def _lstm(p: Preparation) -> None:
    source, state, cell = lstm_operands(p)
    batch, units = require_lstm_shapes(p, source, state, cell)
    lstm_gates(p, cell)
    lstm_scratch(p, 4, batch * units, cell)
    wanted = "float32" if source.dtype == "float32" else "int8"
    one_of(p, p.call.input(1), "the weights", wanted)


def lstm_scratch(p: Preparation, count: int, cells: int, cell: Operand) -> None:
    """Working memory of the gates."""
    for _ in range(count):
        p.scratch(cells * {"float32": 4, "int16": 2}[cell.dtype])


OPERATORS: dict[str, Operator] = {
    "CONV_2D": Operator(
        _CONV_OPTIONS, CONV_DATA, _conv, _FLOAT_QUANTISED, unpacks=(1, 2), front_to_back=_FLOAT_QUANTISED
    ),
    "DEPTHWISE_CONV_2D": Operator(
        _DEPTHWISE_OPTIONS, CONV_DATA, _depthwise, _FLOAT_QUANTISED, unpacks=(1, 2), front_to_back=_FLOAT_QUANTISED
    ),
    "TRANSPOSE_CONV": Operator(
        ("enum", "int*2", "enum", "enum"),
        _TRANSPOSE_DATA,
        _transpose_conv,
        _FLOAT_QUANTISED,
        typed=2,
        unpacks=(1, 3),
        front_to_back=QUANTISED,
    ),
    "FULLY_CONNECTED": Operator(
        ("enum", "enum", "bool*2", "enum"),
        FULLY_CONNECTED_DATA,
        _fully_connected,
        _FLOAT_QUANTISED,
        unpacks=(1, 2),
        front_to_back=_FLOAT_QUANTISED,
    ),
    "BATCH_MATMUL": Operator(("bool*3",), MATMUL_DATA, _batch_matmul, _FLOAT_QUANTISED),
    "AVERAGE_POOL_2D": Operator(_POOL_OPTIONS, POOL_DATA, pooling, _FLOAT_QUANTISED, front_to_back=_FLOAT_QUANTISED),
    "MAX_POOL_2D": Operator(_POOL_OPTIONS, POOL_DATA, pooling, _FLOAT_QUANTISED, front_to_back=_FLOAT_QUANTISED),
    "L2_POOL_2D": Operator(_POOL_OPTIONS, (), _l2_pool, ("float32",)),
    "SVDF": Operator(("int", "enum", "bool"), SVDF_DATA, _svdf, ("float32", "int8")),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Operator(("enum", "float*2", "bool*3"), LSTM_DATA, _lstm, _FLOAT_QUANTISED),
}
