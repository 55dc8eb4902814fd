"""Models cut off behind an operator, so that a whole map becomes the output: ten bytes of a classifier prove little.

The file is changed where it stands: the vector of operators gets shorter, the vector of outputs names one tensor, or a
longer one stands behind the file.
Bodies that nothing runs any more lose their operators, since TFLM prepares all subgraphs and plans only what runs.
"""

import struct
from collections.abc import Sequence
from typing import Any

from modelplan.checking.verifier.rewrites.comparing import Compared
from modelplan.checking.verifier.rewrites.needs import Mask, counting_elements
from modelplan.checking.verifier.rewrites.reading import Operation, Source
from modelplan.checking.verifier.rewrites.running import Trace
from modelplan.checking.verifier.semantics import CONCATENATIONS
from modelplan.formats.tflite import tflite_schema as schema
from modelplan.primitives.lazy_records import dataclass

#: Places of the fields `outputs` and `operators` in a subgraph's table of fields.
_OUTPUTS, _OPERATORS = 8, 10
#: Operators that end a stretch: they put a map together.
_ENDS = CONCATENATIONS | {"WHILE", "DYNAMIC_UPDATE_SLICE"}


@dataclass(frozen=True, slots=True)
class TruncatedModel:
    """A map that both files make whole: its name, and in each file its tensor and the operator that finishes it."""

    name: str
    original: tuple[int, int]
    rewritten: tuple[int, int]


def stretch_ends(original: Source, rewritten: Source, compared: Compared) -> list[TruncatedModel]:
    """The maps that the second file puts together out of stripes and the first computes in one piece.

    Those of which some elements decide no output are left out: a plan may have other bytes in their place.
    """
    known = {}
    for op in original.parts[0].ops:
        for t in op.outputs:
            content = compared.original.values.get(t)
            if content is not None and op.kind not in _ENDS:
                known[content] = (t, op.number)
    cuts: dict[int, TruncatedModel] = {}
    for op in rewritten.parts[0].ops:
        for t in _joined_by(op, compared):
            content = compared.rewritten.values.get(t)
            if content is not None and content in known:
                name = original.parts[0].cells[known[content][0]].name
                cuts[known[content][0]] = TruncatedModel(name, known[content], (t, op.number))
    partial = _partly_counting(original, compared.original) if cuts else set()
    return [cut for t, cut in cuts.items() if original.parts[0].cells[t].number not in partial]


def _partly_counting(source: Source, trace: Trace) -> set[int]:
    """The cells of which some elements decide no output."""
    counting: dict[int, Mask | None] = {}
    for event, masks in zip(trace.events, counting_elements(source, trace), strict=True):
        for (x, _), mask in zip(event.reads, masks or (None,) * len(event.reads), strict=True):
            known = counting.get(x, mask)
            counting[x] = None if mask is None or known is None else mask | known
    ends = {source.parts[0].cells[t].number for t in source.parts[0].outputs}
    return {x for x, mask in counting.items() if mask is not None and not mask.all()} - ends


def _joined_by(op: Operation, compared: Compared) -> list[int]:
    """The tensors that an operator concatenates; a loop also returns its inputs, which may be overwritten then."""
    if op.kind not in _ENDS:
        return []
    taken = [compared.rewritten.values.get(t) for t in op.inputs]
    return [t for t in op.outputs if op.kind != "WHILE" or compared.rewritten.values.get(t) not in taken]


def cut_off(source: Source, tensor: int, last: int) -> bytes:
    """The file with only its operators up to number `last`, and one tensor of the main graph as its output."""
    data = bytearray(source.model.data)
    subgraphs = schema.tables_in(schema.model_table(source.model.data), schema.MODEL_SUBGRAPHS, "SubGraph")
    outputs, operators = (_vector(subgraphs[0], field) for field in (_OUTPUTS, _OPERATORS))
    struct.pack_into("<I", data, operators - 4, last + 1)
    struct.pack_into("<Ii", data, outputs - 4, 1, tensor)
    for number in set(range(len(source.parts))) - _run_up_to(source, last):
        if source.parts[number].ops:
            struct.pack_into("<I", data, _vector(subgraphs[number], _OPERATORS) - 4, 0)
    return bytes(data)


def with_outputs(source: Source, tensors: Sequence[int]) -> bytes:
    """The file whole, with tensors of the main graph as further outputs; a runtime then keeps them to the end."""
    data = bytearray(source.model.data)
    data += bytes(-len(data) % 4)
    outputs = list(dict.fromkeys((*source.parts[0].outputs, *tensors)))
    main = schema.tables_in(schema.model_table(source.model.data), schema.MODEL_SUBGRAPHS, "SubGraph")[0]._tab  # noqa: SLF001
    field = main.Pos + main.Offset(_OUTPUTS)
    struct.pack_into("<I", data, field, len(data) - field)
    return bytes(data) + struct.pack(f"<I{len(outputs)}i", len(outputs), *outputs)


def _vector(subgraph: Any, field: int) -> int:
    """The byte behind the length of a vector of a subgraph."""
    table = subgraph._tab  # noqa: SLF001
    return int(table.Vector(table.Offset(field)))


def _run_up_to(source: Source, last: int) -> set[int]:
    """The main graph and the bodies that its operators up to number `last` run, at any depth."""
    reached, waiting = {0}, [op for op in source.parts[0].ops if op.number <= last]
    while waiting:
        for number in set(waiting.pop().calls) - reached:
            reached.add(number)
            waiting += source.parts[number].ops
    return reached
