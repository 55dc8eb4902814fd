"""The steps that run, in order, read from the file itself, with control flow unrolled."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import islice
from math import prod
from typing import NamedTuple

import numpy as np

from modelplan.checking.verifier.operand_columns import Columns, counts_of, distinct, uses
from modelplan.formats.tflite.tflite_schema import DTYPES, PADDINGS
from modelplan.model import Graph, Kind, Op
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import nbytes
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileTensor

Attribute = Callable[[str], object]
#: Bytes of the types that hold whole numbers as operands: int32 and int64.
_WHOLE_NUMBERS = {2: 4, 4: 8}


def _nothing(_name: str) -> object:
    return None


class Value(NamedTuple):
    """What a tensor is: planned (`activation`), kept between runs (`state`), or given from outside (`constant`).

    `dtype` is empty where the program's source does not name types. Tensors alike may be one object.
    """

    nbytes: int
    shape: tuple[int, ...]
    role: str
    dtype: str = ""

    @property
    def elements(self) -> int:
        """Number of elements; a scalar has one."""
        return prod(self.shape)


class Step(NamedTuple):
    """One run of an operator: operands by tensor number, -1 absent. `op` is its number in its subgraph of the file.

    `moves` marks a step that copies input i to output i byte for byte, as control flow does.
    """

    op: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attribute: Attribute = _nothing
    moves: bool = False
    subgraph: int = 0

    @property
    def label(self) -> str:
        """The name of the step in messages."""
        return f"op {self.op} {self.kind}" + (f" of subgraph {self.subgraph}" if self.subgraph else "")

    @property
    def reads(self) -> tuple[int, ...]:
        """Distinct tensors read."""
        return tuple(dict.fromkeys(t for t in self.inputs if t >= 0))

    @property
    def writes(self) -> tuple[int, ...]:
        """Distinct tensors written."""
        return tuple(dict.fromkeys(t for t in self.outputs if t >= 0))


@dataclass(frozen=True, eq=False)
class Program:
    """A whole run: tensors, steps in order, what the caller writes before and reads after. Equal to itself alone.

    `sequential`: its kernels finish one element of their output after the other, front to back; with `plain_loops`
    convolutions and matrix products do so too. `library` names the kernels. `graph`: the one whose operators
    run, where the program was made of one.
    """

    format: str
    names: tuple[str, ...]
    values: tuple[Value, ...]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    sequential: bool = False
    plain_loops: bool = False
    library: str = "reference"
    graph: Graph | None = None

    def tensor(self, number: int) -> str:
        """The name of a tensor in messages."""
        return f"tensor {number} {self.names[number]!r}"

    @cached_property
    def columns(self) -> Columns:
        """Tensors and steps as columns."""
        values, steps = self.values, self.steps
        sizes = {shape: prod(shape) for shape in {value.shape for value in values}}
        kinds = dict.fromkeys(step.kind for step in steps)
        numbers = {kind: number for number, kind in enumerate(kinds)}
        writes = uses([step.outputs for step in steps])
        return Columns(
            nbytes=counts_of([value.nbytes for value in values]),
            elements=counts_of([sizes[value.shape] for value in values]),
            constant=np.array([value.role == "constant" for value in values], np.bool_),
            state=np.array([value.role == "state" for value in values], np.bool_),
            kinds=tuple(kinds),
            kind=np.fromiter((numbers[step.kind] for step in steps), np.int64, len(steps)),
            result=np.array([step.outputs[0] if step.outputs else -1 for step in steps], np.int64),
            reads=uses([step.inputs for step in steps]),
            writes=writes,
            written=distinct(writes),
        )


#: The steps of a run, in places those of a run inside it.
_Steps = Iterator["Step | _Steps"]
#: Most steps of a run that is verified, above so many for each operator of the file.
_MOST_STEPS = 10_000
_STEPS_OF_OP = 8
#: How the kinds of custom operators begin in a graph.
_CUSTOM = "CUSTOM:"


def graph_program(graph: Graph, order: Sequence[int]) -> Program:
    """The run of `graph` in `order`."""
    roles = {Kind.ACTIVATION: "activation", Kind.STATE: "state"}
    value = cache(lambda dtype, shape, kind: Value(nbytes(dtype, shape), shape, roles.get(kind, "constant"), dtype))
    names = tuple(t.name for t in graph.tensors)
    values = tuple(value(t.dtype, t.shape, t.kind) for t in graph.tensors)
    steps = tuple(_graph_step(graph.ops[i], i) for i in order)
    custom = {op.kind.removeprefix(_CUSTOM) for op in graph.ops if op.kind.startswith(_CUSTOM)}
    steps = _writing_work(steps, values, graph.inputs, custom)
    return Program(graph.format, names, values, steps, graph.inputs, graph.outputs, graph=graph)


def _writing_work(
    steps: tuple[Step, ...], values: Sequence[Value], inputs: Sequence[int], custom: Collection[str]
) -> tuple[Step, ...]:
    """The steps, where operands of `custom` operators that nothing writes are working memory: the step writes them."""
    if not any(step.kind in custom for step in steps):
        return steps
    written = {*inputs, *(t for step in steps for t in step.writes)}
    work = {t for t, value in enumerate(values) if value.role == "activation" and t not in written}
    return tuple(
        step._replace(
            inputs=tuple(-1 if x in work else x for x in step.inputs),
            outputs=(*step.outputs, *(x for x in step.reads if x in work)),
        )
        if step.kind in custom and not work.isdisjoint(step.inputs)
        else step
        for step in steps
    )


def _graph_step(op: Op, index: int) -> Step:
    kind = op.kind.removeprefix(_CUSTOM)
    return Step(index, kind, _data(kind, op.inputs), op.outputs, op.attribute)


def file_program(model: FileModel) -> Program:
    """The run of a .tflite file as TFLM performs it, tensors numbered over all subgraphs.

    Branches run one after the other and loops twice, so that each part runs in memory that the others have used.

    Raises:
        ModelError: an operator and the subgraph that it calls differ in their number of values, or subgraphs that call
            one another make a run of many more steps than there are operators.
    """
    names = tuple(t.name for t in model.tensors)
    value = cache(lambda nbytes, shape, kind, role: Value(nbytes, shape, role, DTYPES.get(kind, str(kind))))
    values = tuple(value(t.nbytes, t.shape, t.type, _role(t, n in model.handles)) for n, t in enumerate(model.tensors))
    main = model.subgraphs[0]
    most = _MOST_STEPS + _STEPS_OF_OP * sum(len(subgraph.ops) for subgraph in model.subgraphs)
    steps = tuple(islice(_flat(_unrolled(model, 0, ())), most + 1))
    if len(steps) > most:
        raise ModelError(f"{model.name}: its subgraphs run in more than {most:,} steps, too many to verify")
    custom = {op.kind for subgraph in model.subgraphs for op in subgraph.ops if op.custom}
    steps = _writing_work(steps, values, main.inputs, custom)
    return Program("tflite", names, values, steps, main.inputs, main.outputs)


def _role(tensor: FileTensor, handle: bool) -> str:  # noqa: FBT001
    if tensor.constant or handle:
        return "constant"
    return "state" if tensor.variable else "activation"


def _flat(steps: _Steps) -> Iterator[Step]:
    """The steps with those of nested runs in their places, however deep."""
    running = [steps]
    while running:
        following = next(running[-1], None)
        if following is None:
            running.pop()
        elif isinstance(following, Step):
            yield following
        else:
            running.append(following)


def _unrolled(model: FileModel, index: int, callers: tuple[int, ...]) -> _Steps:
    if index in callers:
        return
    base = model.firsts[index]
    for number, op in enumerate(model.subgraphs[index].ops):
        if op.calls and op.kind != "CALL_ONCE":
            yield _called(model, base, number, op, (*callers, index))
        else:
            for called in op.calls:
                yield _unrolled(model, called, (*callers, index))
            yield _step(model, index, number, op)


def _step(model: FileModel, subgraph: int, number: int, op: FileOp) -> Step:
    base = model.firsts[subgraph]
    inputs, outputs = _numbered(_data(op.kind, op.inputs), base), _numbered(op.outputs, base)
    attribute = partial(_attribute, model, model.subgraphs[subgraph].tensors, op)
    return Step(number, op.kind, inputs, outputs, attribute, subgraph=subgraph)


def _data(kind: str, inputs: tuple[int, ...]) -> tuple[int, ...]:
    """The operands that carry values: those of an Ethos-U operator follow its program, weights and two work areas.

    The work areas are the whole of the accelerator's memory: the command stream's other operands lie inside them.
    """
    return inputs[4:] if kind == "ethos-u" else inputs


def _numbered(tensors: tuple[int, ...], base: int) -> tuple[int, ...]:
    if not base and min(tensors, default=-1) >= -1:
        return tensors
    return tuple(base + t if t >= 0 else -1 for t in tensors)


def _attribute(model: FileModel, tensors: Sequence[FileTensor], op: FileOp, name: str) -> object:
    """Options by the schema's field name in lower case with underscores; "operand N" for the numbers of a constant."""
    if name.startswith("operand "):
        return _numbers(model, tensors, op.inputs, int(name.removeprefix("operand ")))
    if name == "requantises":
        return _requantises(tensors, op)
    if isinstance(op.options, dict):
        return op.options.get(name)
    accessor = getattr(op.options, "".join(part.capitalize() for part in name.split("_")), None)
    if accessor is None:
        return None
    return PADDINGS.get(accessor()) if name == "padding" else accessor()


def _numbers(
    model: FileModel, tensors: Sequence[FileTensor], inputs: Sequence[int], operand: int
) -> tuple[int, ...] | None:
    """The whole numbers of a constant operand; None where it is absent, computed or of another type."""
    if operand >= len(inputs) or inputs[operand] < 0:
        return None
    tensor = tensors[inputs[operand]]
    first, length = tensor.content
    width = _WHOLE_NUMBERS.get(tensor.type)
    if width is None or not tensor.constant or length != tensor.nbytes:
        return None
    content = model.data[first : first + length]
    return tuple(int.from_bytes(content[i : i + width], "little", signed=True) for i in range(0, length, width))


def _requantises(tensors: Sequence[FileTensor], op: FileOp) -> bool:
    """Whether operand 0 and output 0 code their values differently."""
    if not op.inputs or not op.outputs or min(op.inputs[0], op.outputs[0]) < 0:
        return False
    x, y = tensors[op.inputs[0]], tensors[op.outputs[0]]
    a, b = x.quantization, y.quantization
    return (a.scale, a.zero_point) != (b.scale, b.zero_point)


def _called(model: FileModel, base: int, number: int, op: FileOp, callers: tuple[int, ...]) -> _Steps:
    """The steps of an operator with subgraphs: IF runs each branch in turn, WHILE its condition and body twice."""
    _check_interface(model, number, op)
    operands, results = _numbered(op.inputs, base), _numbered(op.outputs, base)
    if op.kind == "IF":
        for branch in op.calls:
            yield _body(model, branch, number, operands[1:], results, callers)
        return
    # The results start as the operands, which stay readable to the end, as in TFLM's lifetimes.
    yield Step(number, op.kind, operands, results, moves=True)
    condition, body = op.calls
    for _ in range(2):
        yield _body(model, condition, number, results, (), callers)
        yield _body(model, body, number, results, results, callers)
    yield _body(model, condition, number, results, (), callers)
    yield Step(number, op.kind, operands, ())


def _check_interface(model: FileModel, number: int, op: FileOp) -> None:
    """Checks that the called subgraphs take and return as many values as the operator has."""
    given = len(op.inputs) - (op.kind == "IF")
    for position, index in enumerate(op.calls):
        subgraph = model.subgraphs[index]
        wanted = 1 if op.kind == "WHILE" and position == 0 else len(op.outputs)
        if (len(subgraph.inputs), len(subgraph.outputs)) != (given, wanted):
            raise ModelError(
                f"{model.name}: op {number} {op.kind} hands {given} values to subgraph {index} and takes {wanted},"
                f" which has {len(subgraph.inputs)} inputs and {len(subgraph.outputs)} outputs"
            )
    if op.kind == "WHILE" and given != len(op.outputs):
        raise ModelError(f"{model.name}: op {number} WHILE has {given} inputs and {len(op.outputs)} outputs")


def _body(
    model: FileModel,
    index: int,
    number: int,
    operands: tuple[int, ...],
    results: tuple[int, ...],
    callers: tuple[int, ...],
) -> _Steps:
    """One run of a called subgraph: its inputs are copied in, its operators run, its outputs are copied out."""
    subgraph, base = model.subgraphs[index], model.firsts[index]
    entered, left = _numbered(subgraph.inputs, base), _numbered(subgraph.outputs, base)
    yield Step(number, f"entering subgraph {index}", operands, entered, moves=True)
    yield _unrolled(model, index, callers)
    yield Step(number, f"leaving subgraph {index}", left, results, moves=bool(results))
