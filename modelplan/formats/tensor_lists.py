"""Contiguous lists as a file states them: in each line the names of what stands side by side, in order."""

from __future__ import annotations

import csv
from collections.abc import Sequence

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
