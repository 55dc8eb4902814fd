"""The operators of a whole .tflite file as TFLM's kernels see them, and the scratch that they request."""

import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import TypeAlias, cast

from modelplan.formats.tflite.tflite_file import TensorScales
from modelplan.formats.tflite.tflite_options import attributes
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileSubgraph, FileTensor, SameBytes, SameFile
from modelplan.runtimes.tflm.kernels import Call, Operand, Subgraph
from modelplan.runtimes.tflm.kernels.calls import WEIGHTED, Option
from modelplan.runtimes.tflm.performing import scratch_sizes

#: Constants up to so many bytes are given to kernels with their values: shapes, axes, paddings.
_SHORT = 256

#: The options of an operator by name.
Options: TypeAlias = Mapping[str, Option]

#: How many models are remembered as kernels see them: a command asks several questions about one.
_REMEMBERED = 4


@dataclass(frozen=True, slots=True)
class FileCalls:
    """The operators of a file as their kernels see them, with the shapes of the file.

    Many are alike: `numbers` says for each operator of each subgraph which of the `distinct` ones it is.
    """

    distinct: tuple[Call, ...]
    numbers: tuple[tuple[int, ...], ...]


def scratch_requests(model: FileModel, kernels: str = "reference", pointer: int = 8) -> Iterator[tuple[int, int, int]]:
    """(subgraph, operator, bytes) of every request of every kernel, in TFLM's order."""
    calls = calls_of(model)
    sizes = [scratch_sizes(call, kernels, pointer) for call in calls.distinct]
    asking = {number for number, asked in enumerate(sizes) if asked}
    for subgraph, numbers in enumerate(calls.numbers if asking else ()):
        for index, number in enumerate(numbers):
            if number in asking:
                yield from ((subgraph, index, size) for size in sizes[number])


def calls_of(model: FileModel) -> FileCalls:
    """The operators of a file; those of the files that were asked for last are remembered.

    Raises:
        ModelError: the options of an operator cannot be read.
    """
    return _calls_of(SameFile(model))


@lru_cache(maxsize=_REMEMBERED)
def _calls_of(file: SameFile) -> FileCalls:
    calls = [list(_calls(file.model, subgraph)) for subgraph in range(len(file.model.subgraphs))]
    distinct = {id(call): call for called in calls for call in called}
    number = {key: index for index, key in enumerate(distinct)}
    numbers = tuple(tuple([number[id(call)] for call in called]) for called in calls)
    return FileCalls(tuple(distinct.values()), numbers)


def _calls(model: FileModel, number: int) -> Iterator[Call]:
    """The operators of a subgraph; those alike are one object, whatever their weights hold."""
    subgraph = model.subgraphs[number]
    operands = _operands(model, subgraph)
    ids = list(map(id, operands))
    known: dict[tuple[object, ...], Call] = {}
    for op in subgraph.ops:
        inputs, outputs = tuple([ids[t] for t in op.inputs]), tuple([ids[t] for t in op.outputs])
        key = op.kind, op.custom, id(op.options), op.calls, inputs, outputs
        call = known.get(key)
        if call is None:
            call = _call(model, op, *(tuple([operands[t] for t in ts]) for ts in (op.inputs, op.outputs)))
            known[key] = call
        yield call


#: What of a tensor decides its operand, but for the place of its values; and that of none.
_DECIDING = attrgetter("type", "shape", "constant", "variable", "assumed", "quantization", "compressed")
_NOWHERE = (0, 0)


def _operands(model: FileModel, subgraph: FileSubgraph) -> list[Operand | None]:
    """The tensors of a subgraph as kernels see them, and behind them tensor -1, an operand that is absent."""
    looked_at = {t for op in subgraph.ops if op.kind not in WEIGHTED for t in op.inputs}
    known: dict[tuple[object, ...], Operand] = {}
    operands: list[Operand | None] = []
    for number, tensor in enumerate(subgraph.tensors):
        content = tensor.content if number in looked_at else _NOWHERE
        key = content, _DECIDING(tensor)
        operand = known.get(key)
        if operand is None:
            operand = known[key] = _operand(model, tensor, tensor.shape, content)
        operands.append(operand)
    return [*operands, None]


def call_of(model: FileModel, number: int, op: FileOp, shapes: Mapping[int, tuple[int, ...]] | None = None) -> Call:
    """The operator `op` of subgraph `number` as its kernel sees it.

    `shapes` holds shapes that kernels have given to tensors, numbered over all subgraphs.

    Raises:
        ModelError: its options cannot be read.
    """
    tensors, base = model.subgraphs[number].tensors, model.firsts[number]

    def operand(index: int) -> Operand | None:
        if index < 0:
            return None
        tensor = tensors[index]
        shape = shapes.get(base + index, tensor.shape) if shapes else tensor.shape
        return _operand(model, tensor, shape, tensor.content)

    return _call(model, op, tuple([operand(t) for t in op.inputs]), tuple([operand(t) for t in op.outputs]))


def _call(
    model: FileModel, op: FileOp, inputs: tuple[Operand | None, ...], outputs: tuple[Operand | None, ...]
) -> Call:
    calls = tuple([_called(model, called) for called in op.calls])
    return _ALIKE.call(op.kind, inputs, outputs, _options(model, op), calls, op.custom)


def _operand(model: FileModel, tensor: FileTensor, shape: tuple[int, ...], place: tuple[int, int]) -> Operand:
    """A tensor with another shape, and the values that lie in this place of the file."""
    start, length = place
    content = model.data[start : start + min(length, _SHORT)] if length else None
    known = None if tensor.assumed else tensor.quantization
    return _ALIKE.operand(tensor.type, shape, tensor.constant, known, tensor.variable, content, tensor.compressed)


_NO_OPTIONS: Options = {}


class _Alike:
    """A cache that makes equal operands and operators one object, across files.

    Networks repeat few operators many times, and files are written and read again with all of theirs.
    """

    def __init__(self) -> None:
        self.operands: dict[tuple[object, ...], Operand] = {}
        self.settings: dict[tuple[object, ...], Options] = {}
        self.calls: dict[tuple[object, ...], Call] = {}

    def operand(
        self,
        number: int,
        shape: tuple[int, ...],
        constant: bool,  # noqa: FBT001 - a field of the tensor
        quantization: TensorScales | None,
        variable: bool,  # noqa: FBT001
        content: bytes | None,
        compressed: bool,  # noqa: FBT001
    ) -> Operand:
        """The operand of a tensor with type `number`."""
        key = (number, shape, constant, quantization, variable, content, compressed)
        operand = self.operands.get(key)
        if operand is None:
            if max(len(self.operands), len(self.settings), len(self.calls)) > _MOST_ALIKE:
                self.operands, self.settings, self.calls = {}, {}, {}
            operand = self.operands[key] = Operand(DTYPES[number], *key[1:])
        return operand

    def call(
        self,
        kind: str,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand | None, ...],
        options: Options,
        calls: tuple[Subgraph, ...],
        custom: bool,  # noqa: FBT001
    ) -> Call:
        """The operator with operands and options of this table, which the operator keeps alive.

        They are told apart by identity: contents decide what a kernel asks for, but do not count in `Operand.__eq__`.
        """
        key = (kind, tuple(map(id, inputs)), tuple(map(id, outputs)), id(options), calls, custom)
        call = self.calls.get(key)
        if call is None:
            call = self.calls[key] = Call(kind, inputs, outputs, options, calls, custom)
        return call

    def named(self, options: Options) -> Options:
        """The options with these names and values."""
        return self.settings.setdefault(tuple(options.items()), options)


#: So many different operands or operators are remembered.
_MOST_ALIKE = 100_000
_ALIKE = _Alike()


def _called(model: FileModel, number: int) -> Subgraph:
    if not 0 <= number < len(model.subgraphs):
        return Subgraph(None, None)
    return Subgraph(len(model.subgraphs[number].inputs), len(model.subgraphs[number].outputs))


def _options(model: FileModel, op: FileOp) -> Options:
    if op.options is None:
        return _NO_OPTIONS
    if isinstance(op.options, dict):
        return op.options
    known = _known_options(SameBytes(model.data))
    if op.options in known:
        return known[op.options]
    try:
        return known.setdefault(op.options, _ALIKE.named(cast("Options", dict(attributes(op.options, None)))))
    except (struct.error, IndexError, TypeError, ValueError) as error:
        raise ModelError(f"{model.name}: the options of a {op.kind} cannot be read: {error}") from None


@lru_cache(maxsize=_REMEMBERED)
def _known_options(file: SameBytes) -> dict[object, Options]:  # noqa: ARG001 - the key
    """The cache of a file's option tables, which edits of its graph keep."""
    return {}
