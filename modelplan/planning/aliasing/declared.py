"""A table of overlaps from the caller: outputs that may run into an operand, for kernels that no table here knows."""

from __future__ import annotations

import csv

from modelplan.model import Graph, Overlap
from modelplan.primitives.errors import ModelError

_HEAD = ["output", "input", "bytes"]


def parse_overlaps(text: str, graph: Graph, name: str) -> tuple[Overlap, ...]:
    """The overlaps in lines `output,input,bytes`, headed so: tensors of one operator, by name or number.

    While the operator that writes `output` runs, the last `bytes` of it may lie over the first of `input`, or fewer.

    Raises:
        ModelError: names the line of `name`, what it holds, and what was expected.
    """
    try:
        lines = list(csv.reader(text.splitlines()))
    except csv.Error as problem:
        raise ModelError(f"{name}: not a CSV table: {problem}") from None
    if not lines or [cell.strip() for cell in lines[0]] != _HEAD:
        head = ",".join(lines[0])[:80] if lines else ""
        raise ModelError(f"{name}: line 1: found {head!r}, expected {','.join(_HEAD)}")
    overlaps = [_row(graph, row, f"{name}: line {number}") for number, row in enumerate(lines[1:], 2) if row]
    pairs = [(overlap.tensor, overlap.over) for overlap in overlaps]
    for place, pair in enumerate(pairs):
        if pair in pairs[:place]:
            names = " and ".join(repr(graph.tensors[t].name) for t in pair)
            raise ModelError(f"{name}: speaks of {names} more than once")
    return tuple(overlaps)


def _row(graph: Graph, row: list[str], where: str) -> Overlap:
    if len(row) != len(_HEAD):
        raise ModelError(f"{where}: found {len(row)} cells, expected {len(_HEAD)}")
    output, operand = (_tensor(graph, cell.strip(), where) for cell in row[:2])
    op = graph.producers[output]
    if op < 0:
        raise ModelError(f"{where}: no operator writes {graph.tensors[output].name!r}")
    if operand not in graph.ops[op].reads:
        raise ModelError(f"{where}: {graph.label(op)} does not read {graph.tensors[operand].name!r}")
    size, text = graph.tensors[output].nbytes, row[2].strip()
    shared = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
    if not 0 < shared <= size:
        raise ModelError(f"{where}: found {text[:40]!r} bytes, expected 1 to {size}, the size of the output")
    return Overlap(op, output, operand, size - shared, f"overlap: {shared} bytes on the caller's word", True)


def _tensor(graph: Graph, name: str, where: str) -> int:
    matches = [t for t, tensor in enumerate(graph.tensors) if tensor.name == name]
    if not matches and name.isascii() and name.isdecimal() and len(name) < 20 and int(name) < len(graph.tensors):
        return int(name)
    if len(matches) != 1:
        raise ModelError(f"{where}: {len(matches)} tensors are called {name[:80]!r}, expected 1")
    return matches[0]
