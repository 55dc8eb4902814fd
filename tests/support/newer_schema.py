"""Models as a newer schema would write them: with fields that modelplan does not know, in every table of the way."""

from __future__ import annotations

from collections.abc import Collection

from modelplan.formats.tflite.flatbuffer_tables import MODEL, OPERATOR, SUBGRAPH, TENSOR, FrontTables
from modelplan.formats.tflite.tflite_tables import child, field, root_table, tables

#: A number and a string behind the known fields.
_MORE = (4, 0)
_NUMBER = 1_234_567
_SUBGRAPHS, _TENSORS, _OPERATORS = 2, 0, 3


def with_newer_fields(data: bytes, operators: Collection[int] = (), tensors: Collection[int] = ()) -> bytes:
    """The model with unknown fields in its root, its main graph, and the operators and tensors of these numbers."""
    front = FrontTables(data)
    main = tables(data, root_table(data), _SUBGRAPHS)[0]

    def vector(number: int, layout: tuple[int, ...], chosen: Collection[int]) -> int:
        old = tables(data, main, number)
        return front.references(
            [_newer(front, layout, at) if i in chosen else front.at(at) for i, at in enumerate(old)]
        )

    lists = {_TENSORS: vector(_TENSORS, TENSOR, tensors), _OPERATORS: vector(_OPERATORS, OPERATOR, operators)}
    subgraphs = front.references([_newer(front, SUBGRAPH, main, lists)])
    return front.file(_newer(front, MODEL, root_table(data), {_SUBGRAPHS: subgraphs}))


def _newer(front: FrontTables, layout: tuple[int, ...], table: int, values: dict[int, int] | None = None) -> int:
    count = len(layout)
    more = {count: _NUMBER, count + 1: front.text(f"newer {count}")}
    return front.table((*layout, *_MORE), {**(values or {}), **more}, table)


def newer_fields(data: bytes) -> dict[str, list[bool]]:
    """Of root, main graph, operators and tensors: which have the unknown fields as they were written."""
    main = tables(data, root_table(data), _SUBGRAPHS)[0]
    return {
        "model": [_has(data, root_table(data), len(MODEL))],
        "subgraph": [_has(data, main, len(SUBGRAPH))],
        "operators": [_has(data, table, len(OPERATOR)) for table in tables(data, main, _OPERATORS)],
        "tensors": [_has(data, table, len(TENSOR)) for table in tables(data, main, _TENSORS)],
    }


def _has(data: bytes, table: int, count: int) -> bool:
    at, text = field(data, table, count), child(data, table, count + 1)
    if not at or not text:
        return False
    wanted = f"newer {count}".encode()
    return int.from_bytes(data[at : at + 4], "little") == _NUMBER and data[text + 4 : text + 4 + len(wanted)] == wanted
