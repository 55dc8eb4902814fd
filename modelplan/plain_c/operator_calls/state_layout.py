"""What a network remembers from one run to the next: where it lies, and what it is before the first run."""

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.plain_c.operator_calls.reading import OperatorReader
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel, FileTensor, SameFile
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES

#: A variable by container and name, or a tensor of the main subgraph that is one by itself.
StateKey: TypeAlias = tuple[str, str] | int


@dataclass(frozen=True, slots=True)
class StatePlace:
    """Bytes [offset, offset + nbytes) of the state, what they are before the first run, and what they are called."""

    offset: int
    nbytes: int
    initial: bytes
    title: str


@dataclass(frozen=True, slots=True)
class StateLayout:
    """All that a network remembers, in `nbytes` bytes at a multiple of `alignment`."""

    nbytes: int
    alignment: int
    places: dict[StateKey, StatePlace]


def handle_key(r: OperatorReader) -> StateKey:
    """The variable that a VAR_HANDLE stands for."""
    texts = ((r.option(name) or b"").decode("utf-8", "replace") for name in ("Container", "SharedName"))
    container, name = texts
    return container, name


def variable_of(r: OperatorReader, position: int = 0) -> StateKey:
    """The variable that operand `position` is the handle of."""
    for index, op in enumerate(r.model.subgraphs[r.subgraph].ops):
        if op.kind == "VAR_HANDLE" and op.outputs[0] == r.op.inputs[position]:
            return handle_key(OperatorReader(r.model, index, r.subgraph))
    raise r.refuse("a handle that no VAR_HANDLE makes")


def state_layout(model: FileModel) -> StateLayout:
    """The variables of a model, each at a multiple of its element."""
    return _layout(SameFile(model))


@lru_cache(maxsize=4)
def _layout(file: SameFile) -> StateLayout:
    sizes: dict[StateKey, tuple[FileTensor, bytes]] = {}
    for key, tensor in _tensors(file.model):
        # TFLM fills a variable with its zero point where it has 8 bits, else with 0.
        zero = tensor.quantization.zero_point if DTYPES[tensor.type] == "int8" else 0
        sizes.setdefault(key, (tensor, bytes([zero % 256]) * tensor.nbytes))
    for key, tensor, content in _assigned_first(file.model):
        sizes[key] = (tensor, content)
    offset, alignment, places = 0, 1, {}
    for key, (tensor, initial) in sizes.items():
        width = ELEMENT_BYTES[DTYPES[tensor.type]]
        offset = -(-offset // width) * width
        title = tensor.name if isinstance(key, int) else key[1]
        places[key] = StatePlace(offset, tensor.nbytes, initial, title)
        offset, alignment = offset + tensor.nbytes, max(alignment, width)
    return StateLayout(offset, alignment, places)


def _tensors(model: FileModel) -> Iterator[tuple[StateKey, FileTensor]]:
    """Variables with the tensors that are assigned to them, and tensors that are variables."""
    for number, subgraph in enumerate(model.subgraphs):
        for index, op in enumerate(subgraph.ops):
            if op.kind == "ASSIGN_VARIABLE":
                r = OperatorReader(model, index, number)
                yield variable_of(r), r.input(1)
    main = model.subgraphs[0]
    for t, tensor in enumerate(main.tensors):
        if tensor.variable:
            yield t, tensor


def _assigned_first(model: FileModel) -> Iterator[tuple[StateKey, FileTensor, bytes]]:
    """What the subgraphs that are called once assign to variables."""
    ops = model.subgraphs[0].ops
    for index, op in enumerate(ops):
        if op.kind != "CALL_ONCE":
            continue
        r = OperatorReader(model, index)
        late = any(other.kind in ("READ_VARIABLE", "ASSIGN_VARIABLE") for other in ops[:index])
        r.require(holds=not late, why="it runs behind operators that use variables")
        number = int(r.option("InitSubgraphIndex"))
        for position, other in enumerate(model.subgraphs[number].ops):
            inner = OperatorReader(model, position, number)
            if other.kind == "ASSIGN_VARIABLE":
                yield variable_of(inner), inner.input(1), inner.constant(1).tobytes()
            elif other.kind != "VAR_HANDLE":
                raise r.refuse(f"its subgraph computes first values by {other.kind}")
