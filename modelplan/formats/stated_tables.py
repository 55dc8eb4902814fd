"""What a caller states of a model's tensors in a file: contiguous lists, and overlaps that kernels allow."""

import csv
from collections.abc import Sequence

from modelplan.model import Graph, Overlap
from modelplan.primitives.errors import ModelError


def parse_lists(text: str, names: Sequence[str], source: str) -> tuple[tuple[int, ...], ...]:
    """The lists in `text`, each line one, names separated by commas; blank lines and lines after `#` are skipped.

    Args:
        text: what the file holds.
        names: what may be named; the answer holds their numbers.
        source: what messages call the file.

    Raises:
        ModelError: names the line with a name that is unknown, that several bear or that came before, or with fewer
            than two names.
    """
    number: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        number.setdefault(name, []).append(i)
    lists: list[tuple[int, ...]] = []
    taken: dict[int, int] = {}
    for line, content in enumerate(text.splitlines(), 1):
        if not content.strip() or content.startswith("#"):
            continue
        cells = [cell.strip() for cell in next(csv.reader([content], skipinitialspace=True))]
        if len(cells) < 2:
            raise ModelError(f"{source}: line {line}: found one name, expected two or more separated by commas")
        members = []
        for name in cells:
            there = number.get(name, [])
            if len(there) != 1:
                raise ModelError(f"{source}: line {line}: {len(there)} are called {name[:80]!r}, expected 1")
            if there[0] in taken:
                raise ModelError(f"{source}: line {line}: {name[:80]!r} also stands in line {taken[there[0]]}")
            taken[there[0]] = line
            members.append(there[0])
        lists.append(tuple(members))
    return tuple(lists)


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
