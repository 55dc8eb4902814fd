"""Changes of a model as data, carried out on its records: the graph, and the .tflite file as TFLM reads it.

Tensors keep their numbers while edits follow one another; `compacted` takes those off the list that nothing uses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import TypeVar

from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model import Graph, Op, Tensor, Value
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileSubgraph, FileTensor
from modelplan.runtimes.tflm.kernels.calls import ELEMENT_BYTES
from modelplan.runtimes.tflm.scratch import call_of

T = TypeVar("T")

_TYPE_NUMBERS = {name: number for number, name in DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Edit:
    """What becomes of tensors and operators, by number.

    `shapes` and `dtypes` are the new ones of tensors. `without` are operators that go. `renamed` says which tensor
    stands in place of another wherever that was read, written, fed or returned. `options` are attributes of operators
    that change.
    """

    shapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    dtypes: Mapping[int, str] = field(default_factory=dict)
    without: frozenset[int] = frozenset()
    renamed: Mapping[int, int] = field(default_factory=dict)
    options: Mapping[int, Mapping[str, int | str]] = field(default_factory=dict)

    @property
    def keeps_operators(self) -> bool:
        """Whether operators stay as they are, but for the shapes and types of their operands."""
        return not (self.without or self.renamed or self.options)

    def numbers(self, tensors: Sequence[int]) -> tuple[int, ...]:
        """The replacements of these tensors."""
        return tuple(self.renamed.get(t, t) for t in tensors)


def edited_graph(graph: Graph, edit: Edit) -> Graph:
    """The graph after an edit.

    Raises:
        ValueError: two operators would write one tensor, or an operator its own operand.
    """

    def tensor(number: int, old: Tensor) -> Tensor:
        shape, dtype = edit.shapes.get(number, old.shape), edit.dtypes.get(number, old.dtype)
        return old if (shape, dtype) == (old.shape, old.dtype) else replace(old, shape=shape, dtype=dtype, stored=None)

    def op(number: int, old: Op) -> Op:
        changed = edit.options.get(number, {})
        kept = tuple((name, value) for name, value in old.attributes if name not in changed)
        attributes: tuple[tuple[str, Value], ...] = (*kept, *changed.items())
        return replace(old, inputs=edit.numbers(old.inputs), outputs=edit.numbers(old.outputs), attributes=attributes)

    return replace(
        graph,
        tensors=tuple(tensor(number, old) for number, old in enumerate(graph.tensors)),
        ops=graph.ops if edit.keeps_operators else tuple(_edited(graph.ops, edit, op)),
        inputs=edit.numbers(graph.inputs),
        outputs=edit.numbers(graph.outputs),
        fingerprint="",
    )


def _edited(ops: Sequence[T], edit: Edit, change: Callable[[int, T], T]) -> Iterator[T]:
    """The operators that stay, each as `change` makes it."""
    return (change(number, old) for number, old in enumerate(ops) if number not in edit.without)


def edited_file(model: FileModel, edit: Edit) -> FileModel:
    """The .tflite model after an edit of its one subgraph; it carries no offline plan, which was for the old one."""
    (main,) = model.subgraphs

    def op(number: int, old: FileOp) -> FileOp:
        options = old.options
        if number in edit.options:
            options = {**call_of(model, 0, old).options, **edit.options[number]}
        return replace(old, inputs=edit.numbers(old.inputs), outputs=edit.numbers(old.outputs), options=options)

    changed = replace(
        main,
        tensors=tuple(_file_tensor(old, number, edit) for number, old in enumerate(main.tensors)),
        ops=main.ops if edit.keeps_operators else tuple(_edited(main.ops, edit, op)),
        inputs=edit.numbers(main.inputs),
        outputs=edit.numbers(main.outputs),
    )
    return replace(model, subgraphs=(changed,), plan=())


def _file_tensor(old: FileTensor, number: int, edit: Edit) -> FileTensor:
    """A tensor with its new shape and type; one that becomes quantised has scales that nobody knows yet."""
    dtype = edit.dtypes.get(number, DTYPES[old.type])
    shape = edit.shapes.get(number, old.shape)
    if number not in edit.dtypes and shape == old.shape:
        return old
    nbytes = prod(shape) * ELEMENT_BYTES[dtype]
    if dtype == DTYPES[old.type]:
        return replace(old, shape=shape, nbytes=nbytes)
    known = old.quantization._replace(scales=1, zero_points=1)
    return replace(old, type=_TYPE_NUMBERS[dtype], shape=shape, nbytes=nbytes, quantization=known, assumed=True)


def orphans(before: Graph, after: Graph) -> frozenset[int]:
    """The tensors that operators or callers used before an edit and nothing uses after it."""
    if (before.ops, before.inputs, before.outputs) == (after.ops, after.inputs, after.outputs):
        return frozenset()
    return frozenset(_used(before) - _used(after))


def _used(graph: Graph) -> set[int]:
    return {*graph.inputs, *graph.outputs, *(t for op in graph.ops for t in (*op.reads, *op.writes))}


def compacted(graph: Graph, model: FileModel | None, gone: frozenset[int]) -> tuple[Graph, FileModel | None]:
    """The graph and the file without the tensors `gone`: TFLM plans every listed tensor, used or not."""
    if not gone:
        return graph, model
    kept = [t for t in range(len(graph.tensors)) if t not in gone]
    number = {old: new for new, old in enumerate(kept)} | {-1: -1}

    def new(tensors: Sequence[int]) -> tuple[int, ...]:
        return tuple(number[t] for t in tensors)

    ops = tuple(replace(op, inputs=new(op.inputs), outputs=new(op.outputs)) for op in graph.ops)
    tensors = tuple(graph.tensors[t] for t in kept)
    graph = replace(graph, tensors=tensors, ops=ops, inputs=new(graph.inputs), outputs=new(graph.outputs))
    if model is None:
        return graph, None
    (main,) = model.subgraphs
    file_ops = tuple(
        replace(op, inputs=new(op.inputs), outputs=new(op.outputs), intermediates=new(op.intermediates))
        for op in main.ops
    )
    listed = tuple(main.tensors[t] for t in kept)
    changed = FileSubgraph(listed, file_ops, new(main.inputs), new(main.outputs))
    return graph, replace(model, subgraphs=(changed,))
