"""Custom operators that TFLM itself brings along: its signal library, detection, streaming, decoding, Ethos-U."""

from collections.abc import Callable

from modelplan.runtimes.tflm.abi import Struct
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES, Operand, Refusal
from modelplan.runtimes.tflm.kernels.checks import constant, one_of, rank_between, same_types
from modelplan.runtimes.tflm.kernels.preparation import Operator, Preparation

#: TensorType numbers in the option T of transforms.
_TRANSFORMED = {0: "float32", 2: "int32", 7: "int16"}

_CIRCULAR_BUFFER: Struct = ("size*3", "int32*2", "pointer")
_DELAY: Struct = ("int32*3", "pointer*2")
_FRAMER: Struct = ("int32*4", "bool", "pointer*2")
_STACKER: Struct = ("int32*4", "size*2", "bool", "pointer*2")
_OVERLAP: Struct = ("int32*4", "enum", "pointer")
_RFFT: Struct = ("int32*4", "enum", "pointer", "int", "pointer")
_IRFFT: Struct = ("int32*4", "enum", "pointer")
_FILTER_BANK: Struct = (("int32", "pointer*5", "int32*2"), "pointer")
_SUBTRACTION: Struct = (("int32*8", "bool"), "pointer", "size")
_DETECTION: Struct = ("int*3", "float*2", "int", "bool", ("float*4",), "int*11", *(("float", "int32"),) * 3)


def _operands(p: Preparation, sources: tuple[str, ...], results: tuple[str, ...]) -> None:
    """Requires these types of inputs and outputs, each with one dimension; "type:rank" names another rank."""
    p.counts(len(sources), len(results))
    listed = [(p.input(i), f"input {i}", sources[i]) for i in range(len(sources))]
    listed += [(p.output(i), f"output {i}", results[i]) for i in range(len(results))]
    for operand, what, wanted in listed:
        dtype, _, dimensions = wanted.partition(":")
        one_of(p, operand, what, dtype)
        rank_between(p, operand, what, int(dimensions or 1), int(dimensions or 1))


def _require_option(p: Preparation, name: str) -> int:
    """An option without which the kernel cannot size its buffers."""
    p.require(name in p.call.options, f"no option {name}, which its kernel reads")
    return p.call.number(name)


def _keep_ring(p: Preparation, capacity: int) -> None:
    """A circular buffer of 16-bit values: its head, and twice its capacity."""
    p.keep(4 * capacity, _CIRCULAR_BUFFER)


def _filter_bank_work(p: Preparation) -> None:
    p.keep(8 * (_require_option(p, "num_channels") + 1))


def _noise(p: Preparation) -> None:
    p.keep(4 * _require_option(p, "num_channels"))


def _window(p: Preparation) -> None:
    p.counts(2)
    source, weights, result = p.input(0), p.input(1), p.output()
    for operand, what in ((source, "input 0"), (weights, "input 1"), (result, "output")):
        one_of(p, operand, what, "int16")
    rank_between(p, weights, "input 1", 1, 1)
    p.require(1 <= source.rank == result.rank, "as many dimensions in as out are needed")


def _delay(p: Preparation) -> None:
    p.counts(1)
    source, result = p.input(), p.output()
    one_of(p, source, "input 0", "int16")
    one_of(p, result, "output", "int16")
    rank_between(p, source, "input 0", 1, 6)
    frame = source.dim(-1)
    _rings(p, source.elements // frame if frame else 0, frame + _require_option(p, "delay_length"))


def _rings(p: Preparation, rows: int, capacity: int) -> None:
    """For each row of the input a circular buffer, and two tables of addresses."""
    p.keep_pointers(rows)
    p.keep_pointers(rows)
    for _ in range(rows):
        _keep_ring(p, capacity)


def _framer(p: Preparation) -> None:
    p.counts(1, 2)
    source, result, valid = p.input(), p.output(), p.output(1)
    p.require(source.rank + 1 == result.rank and valid.rank == 0, "an output of one dimension more is needed")
    one_of(p, source, "input 0", "int16")
    one_of(p, result, "output 0", "int16")
    one_of(p, valid, "output 1", "bool")
    rank_between(p, source, "input 0", 1, 6)
    frame, step, extent = _require_option(p, "frame_size"), _require_option(p, "frame_step"), source.dim(-1)
    p.require(0 < step <= extent and extent % step == 0, f"a step of {step} for frames of {extent}")
    _rings(p, source.elements // extent, -(-frame // step) * step)


def _stacker_state(p: Preparation) -> None:
    rows = _require_option(p, "stacker_left_context") + _require_option(p, "stacker_right_context") + 1
    _keep_ring(p, _require_option(p, "num_channels") * rows)


def _transformed(p: Preparation) -> str:
    """The data type that a transform computes in."""
    dtype = _TRANSFORMED.get(_require_option(p, "T"), "")
    p.require(bool(dtype), "a type that its kernel does not compute")
    return dtype


def _transform_state(p: Preparation) -> None:
    """The state of a real transform: three addresses, the half-length transform, its buffer and twiddles.

    Source: mborgerding/kissfft, kiss_fftr.c and _kiss_fft_guts.h.
    """
    length = _require_option(p, "fft_length")
    p.require(length % 2 == 0 and length > 0, f"a transform of {length} values; its kernel takes an even number")
    half, cell = length // 2, 2 * ELEMENT_BYTES[_transformed(p)]
    inner = 8 + 4 * 64 + cell + cell * (half - 1)
    wrapped = p.call.kind == "SignalIrfft" and _transformed(p) == "float32"
    own: Struct = (("int32", "pointer"), "pointer*3") if wrapped else ("pointer*3",)
    p.keep(inner + cell * (half * 3 // 2), own)


def _rfft(p: Preparation) -> None:
    _transform(p)
    p.scratch(_require_option(p, "fft_length") * ELEMENT_BYTES[_transformed(p)])


def _transform(p: Preparation) -> None:
    p.counts(1)
    source, result = p.input(), p.output()
    p.require(source.rank == result.rank, "as many dimensions in as out are needed")
    one_of(p, source, "input 0", _transformed(p))
    one_of(p, result, "output", _transformed(p))


def _overlap_add(p: Preparation) -> None:
    p.counts(1)
    dtype = _transformed(p)
    p.require(dtype != "int32", "int32, which its kernel does not compute")
    source, result = p.input(), p.output()
    one_of(p, source, "input 0", dtype)
    same_types(p, source, result)
    p.require(source.rank == result.rank + 1 >= 2, "an input of one dimension more is needed")
    rank_between(p, source, "input 0", 2, 6)
    frame, count = source.dim(-1), source.dim(-2)
    rows = source.elements // (frame * count) if frame * count else 0
    p.keep_pointers(rows)
    for _ in range(rows):
        p.keep(frame * ELEMENT_BYTES[dtype])


def _circular_buffer(p: Preparation) -> None:
    source, result = p.input(), p.output()
    rank_between(p, source, "input 0", 4, 4)
    rank_between(p, result, "output", 4, 4)
    p.require(source.shape[1] == 1, f"{source.shape[1]} rows; its kernel takes one at a time")
    p.require(source.shape[::2] == result.shape[::2] and source.shape[3] == result.shape[3], "shapes that differ")
    same_types(p, source, result)


def _detection(p: Preparation) -> None:
    """Eleven buffers of the non-maximum suppression."""
    p.counts(3, 4)
    encodings, scores, anchors = p.input(0), p.input(1), p.input(2)
    rank_between(p, encodings, "input 0", 3, 3)
    rank_between(p, scores, "input 1", 3, 3)
    rank_between(p, anchors, "input 2", 2, 2)
    boxes, most, classes = encodings.shape[1], p.call.number("max_detections"), p.call.number("num_classes")
    for size in (
        boxes, 16 * boxes, 4 * scores.shape[1] * scores.shape[2], 4 * boxes, 4 * boxes, 4 * most * boxes,
        4 * most * boxes, 4 * boxes, 4 * most * boxes, 4 * max(classes, most) * boxes, 4 * min(boxes, most) * boxes,
    ):  # fmt: skip
        p.scratch(size)


#: Structures that TFLM_DECODE keeps, by the number of the scheme in the second operand.
_DECODED: dict[int, Struct] = {
    0: ("pointer*3", "pointer", "size*3", "pointer", "int8*2", "bool"),
    1: ("pointer*3", "pointer", "size", "pointer", "bool", "int8"),
    2: ("pointer*3", "pointer", "size*3", "pointer*2", "int8", "bool"),
}
_PRUNED = 2


def _decode(p: Preparation) -> None:
    outputs = len(p.call.outputs)
    p.require(outputs > 0 and len(p.call.inputs) == 2 * outputs, "two inputs for each output are needed")
    p.keep_pointers(outputs)
    for index in range(outputs):
        packed, table, result = p.input(2 * index), p.input(2 * index + 1), p.output(index)
        constant(p, packed, "the packed values")
        constant(p, table, "the table")
        _decoded(p, table, result)


def _decoded(p: Preparation, table: Operand, result: Operand) -> None:
    if table.content is None or len(table.content) < 2:
        raise Refusal("a table whose scheme is not known")
    scheme = table.content[0]
    p.require(scheme in _DECODED and table.content[1] == 1, f"scheme {scheme}, version {table.content[1]}")
    p.keep_struct(_DECODED[scheme])
    if scheme == _PRUNED and result.per_channel and result.quantization is not None and result.quantization.zero_point:
        p.keep(result.scales)


def _ethos_u(p: Preparation) -> None:
    """Addresses and sizes of the operands for the accelerator's driver; the network's own memory is an operand.

    Source: tflite-micro, kernels/ethos_u/ethosu.cc.
    """
    operands = len(p.call.inputs) + len(p.call.outputs)
    p.require(bool(p.call.inputs), "no inputs")
    p.scratch(8 * operands)
    p.scratch_pointers(operands)
    p.input(0)


def _typed(sources: tuple[str, ...], results: tuple[str, ...]) -> Callable[[Preparation], None]:
    """A kernel that requires these types of vectors and keeps nothing."""
    return lambda p: _operands(p, sources, results)


OPERATORS: dict[str, Operator] = {
    "SignalEnergy": Operator((), ("int32*2",), _typed(("int16",), ("uint32",))),
    "SignalFftAutoScale": Operator((), (), _typed(("int16",), ("int16", "int32:0"))),
    "SignalFilterBank": Operator(
        (), _FILTER_BANK, _typed(("uint32", *("int16",) * 5), ("uint64",)), initialise=_filter_bank_work
    ),
    "SignalFilterBankLog": Operator((), ("int*2",), _typed(("uint32",), ("int16",))),
    "SignalFilterBankSquareRoot": Operator((), (), _typed(("uint64", "int32:0"), ("uint32",))),
    "SignalFilterBankSpectralSubtraction": Operator(
        (), _SUBTRACTION, _typed(("uint32",), ("uint32", "uint32")), initialise=_noise
    ),
    "SignalPCAN": Operator((), ("int",), _typed(("uint32", "uint32", "int16"), ("uint32",))),
    "SignalWindow": Operator((), ("int32*2",), _window),
    "SignalDelay": Operator((), _DELAY, _delay),
    "SignalFramer": Operator((), _FRAMER, _framer),
    "SignalStacker": Operator((), _STACKER, _typed(("int16",), ("int16", "bool:0")), initialise=_stacker_state),
    "SignalOverlapAdd": Operator((), _OVERLAP, _overlap_add),
    "SignalRfft": Operator((), _RFFT, _rfft, initialise=_transform_state),
    "SignalIrfft": Operator((), _IRFFT, _transform, initialise=_transform_state),
    "CIRCULAR_BUFFER": Operator((), ("int*2",), _circular_buffer, ("int8",)),
    "TFLite_Detection_PostProcess": Operator((), _DETECTION, _detection),
    "TFLM_DECODE": Operator((), (), _decode),
    "ethos-u": Operator((), ("int*3",), _ethos_u),
}
