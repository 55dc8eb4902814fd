"""Reading a .tflite file by columns and by the schema package's own classes: both agree on each row, or both refuse it.

Damaged files are the hard part: what comes before the damage must be the same, and nothing may be read past it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import mutations
import numpy as np
import pytest
import tflite
from flatbuffers import number_types
from shares import share
from tflite_models import branching, looping

from modelplan.formats.tflite import tflite_schema as schema
from modelplan.formats.tflite.flatbuffer_columns import DAMAGE, FlatBuffer, TableColumns, in_order
from modelplan.formats.tflite.tflite_file import QuantisationScales, TfliteFile, plain_accessors
from modelplan.model import IntArray

SEEDS = share(150)
Row = tuple[object, ...]


def rows_of(found: Iterable[object]) -> list[object]:
    """The rows up to the first one that is refused, which stands there as a word."""
    rows: list[object] = []
    try:
        for row in found:
            rows.append(row)  # noqa: PERF402 - what came before an error counts
    except DAMAGE:
        rows.append("refused")
    return rows


def counted(data: bytes, length: int) -> int:
    if 4 * length > len(data):
        raise ValueError("more elements than fit in the file")
    return length


def each(count: int, at: Callable[[int], Any], row: Callable[[Any], object]) -> Iterator[object]:
    return (row(at(i)) for i in range(count))


def numbers(table: Any, field: str) -> tuple[int, ...]:
    found = getattr(table, f"{field}AsNumpy")()
    return () if isinstance(found, int) else tuple(found.tolist())


def code_of(code: Any) -> Row:
    table = code._tab
    slot = table.Offset(4 + 2 * schema.CODE_BUILTIN)
    number = table.Get(number_types.Int32Flags, slot + table.Pos) if slot else 0
    name = schema.builtin_name(number, code.DeprecatedBuiltinCode())
    return name, code.CustomCode() or b"", code.Version()


def tensor_of(model: Any) -> Callable[[Any], Row]:
    def row(tensor: Any) -> Row:
        shape, signature, index = numbers(tensor, "Shape"), numbers(tensor, "ShapeSignature"), tensor.Buffer()
        buffer = (0, 0, 0)
        if index < model.BuffersLength():
            found = model.Buffers(index)
            buffer = found.DataLength(), found.Offset(), found.Size()
        sparse = tensor.Sparsity() is not None
        return tensor.Type(), shape, signature, index, tensor.IsVariable(), sparse, *buffer

    return row


def scales_of(tensor: Any) -> Row:
    table = tensor.Quantization()
    if table is None:
        return 0, 0.0, 0, 0, 0
    scales, zeros = table.ScaleLength(), table.ZeroPointLength()
    first = table.Scale(0) if scales else 0.0, table.ZeroPoint(0) if zeros else 0
    return scales, first[0], zeros, first[1], table.QuantizedDimension()


def operator_of(operator: Any) -> Row:
    ends = numbers(operator, "Inputs"), numbers(operator, "Outputs"), numbers(operator, "Intermediates")
    unions = operator.BuiltinOptions(), operator.BuiltinOptions2()
    types = operator.BuiltinOptionsType(), operator.BuiltinOptions2Type()
    at = [union.Pos if union else 0 for union in unions]
    return operator.OpcodeIndex(), *ends, types[0], at[0], types[1], at[1], operator.CustomOptionsLength()


def by_classes(data: bytes) -> Iterator[list[object]]:
    model = tflite.Model.GetRootAs(data, 0)
    yield rows_of(each(counted(data, model.OperatorCodesLength()), model.OperatorCodes, code_of))
    for number in range(counted(data, model.SubgraphsLength())):
        table = model.Subgraphs(number)
        count = counted(data, table.TensorsLength())
        yield rows_of(each(count, table.Tensors, lambda tensor: tensor.Name() or b""))
        yield rows_of(each(count, table.Tensors, tensor_of(model)))
        yield rows_of(each(count, table.Tensors, scales_of))
        yield rows_of(each(counted(data, table.OperatorsLength()), table.Operators, operator_of))


def by_columns(data: bytes) -> Iterator[list[object]]:
    file = TfliteFile(data)
    yield rows_of(map(tuple, file.codes()))
    for number in range(file.count(file.root, schema.MODEL_SUBGRAPHS)):
        table = file.subgraph(number)
        tensors = file.slots(table, schema.SUBGRAPH_TENSORS)
        yield rows_of(file.names(tensors))
        yield rows_of(
            (r.type, r.shape, r.signature, r.buffer, r.variable, r.sparsity != 0, r.length, r.offset, r.size)
            for r in file.tensors(tensors)
        )
        yield rows_of(map(tuple, file.scales(tensors)))
        operators = file.slots(table, schema.SUBGRAPH_OPERATORS)
        yield rows_of(
            (code, r.inputs, r.outputs, r.intermediates, *r.options, r.custom_length)
            for code, r in zip(file.code_numbers(operators), file.operators(operators), strict=True)
        )


def check_both(data: bytes) -> str:
    """Checks that both readers say the same of a file; tells whether they refused a part of it."""
    found, wanted = rows_of(by_columns(data)), rows_of(by_classes(data))
    assert found == wanted
    return "refused" if any("refused" in part for part in wanted if isinstance(part, list)) else "read"


def real_files(models: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(models.glob("*.tflite"))]


def test_both_read_real_files(models: Path) -> None:
    outcomes = [check_both(data) for data in (*real_files(models), branching(), looping())]
    assert len(outcomes) > 5
    assert "refused" not in outcomes


@pytest.mark.parametrize("make", [branching, looping])
def test_both_agree_on_damaged_files(make: Callable[[], bytes]) -> None:
    whole = make()
    outcomes = [check_both(mutations.damaged(random.Random(seed), whole)) for seed in range(SEEDS)]
    assert outcomes.count("refused") > SEEDS // 15
    assert outcomes.count("read") > SEEDS // 15


def test_both_agree_on_damaged_real_files(models: Path) -> None:
    smallest = min(real_files(models), key=len)
    for seed in range(SEEDS):
        check_both(mutations.damaged(random.Random(seed), smallest))


def test_equal_tables_of_options_are_one_object_with_the_values_of_each(models: Path) -> None:
    """The interned table answers as the operator's own does."""
    shared = 0
    for data in real_files(models):
        file, table = TfliteFile(data), tflite.Model.GetRootAs(data, 0).Subgraphs(0)
        rows = list(file.operators(file.slots(file.subgraph(0), schema.SUBGRAPH_OPERATORS)))
        seen = set()
        for i, row in enumerate(rows):
            own, interned = schema.options_of(table.Operators(i)), file.options.of(row)
            assert type(interned) is type(own)
            kind: Any = type(own)
            fields = plain_accessors(kind) if own is not None else ()
            assert [str(getattr(own, f)()) for f in fields] == [str(getattr(interned, f)()) for f in fields]
            shared += interned is not None and id(interned) in seen
            seen.add(id(interned))
    assert shared > 20


def test_scales_of_the_good_tensors_are_known_where_one_is_damaged() -> None:
    data = branching()
    file = TfliteFile(data)
    slots = file.slots(file.subgraph(0), schema.SUBGRAPH_TENSORS)
    outside = np.append(slots, len(data))  # a slot behind the file
    scales = QuantisationScales(file, outside)
    assert [scales.of(t) for t in range(len(slots))] == [
        QuantisationScales(file, slots).of(t) for t in range(len(slots))
    ]
    with pytest.raises(IndexError, match="found position"):
        scales.of(len(slots))


def test_the_rows_before_a_damaged_one_come_first_and_few_reads_find_it() -> None:
    reads = 0

    def read(slots: IntArray) -> list[int]:
        nonlocal reads
        reads += 1
        if (slots == 700).any():
            raise IndexError("at 700")
        found: list[int] = slots.tolist()
        return found

    assert rows_of(in_order(np.arange(1000), read)) == [*range(700), "refused"]
    assert reads < 25
    assert not list(in_order(np.arange(0), read))


def test_vectors_that_overlap_are_not_read_all_at_once() -> None:
    """A thousand fields that all lead to one long vector: a row is read, all rows together are refused."""
    count = 2000
    words = np.zeros(8 + count, "<u4")
    words[0], words[1] = 6 | 8 << 16, 4  # a vtable of one field, which lies 4 bytes behind its table
    words[2], words[3] = 8, 4  # the table: its vtable lies 8 bytes before it, its vector 4 bytes behind the field
    words[4] = count
    file = FlatBuffer(words.tobytes())
    assert len(TableColumns(file, np.array([8])).integers(0)[0]) == count
    with pytest.raises(ValueError, match="overlap"):
        TableColumns(file, np.full(1000, 8)).integers(0)
