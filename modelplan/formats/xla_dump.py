"""The temporary memory of a program that XLA compiled as a Problem, with the offsets that XLA gave.

`XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_as_text"` writes for each module, beside others,

    NAME-buffer-assignment.txt          allocations, and the values in each with sizes and offsets
    NAME-buffer-assignment-values.txt   the positions at which instructions hold each value
    NAME-live-range.txt                 the first and the last instruction of each value
    NAME.txt                            the module: what loops and branches pass on

and all four are read. A part is an allocation that XLA planned: `preallocated-temp`. Values are one buffer where XLA
has them at one place while both are alive, as operands that are overwritten, and where a loop or a branch passes one
on as the other. A buffer that is dead between two values is a rigid group of its parts.

Source: openxla/xla, xla/service/buffer_assignment.cc, hlo_live_range.cc, hlo_alias_analysis.cc.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np

from modelplan.formats.buffer_table import BufferTable, Piece, PlannedBuffer, chosen_part, kept_alignment
from modelplan.formats.whole_files import read_text
from modelplan.model import IntArray
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass

_ENDING = "-buffer-assignment.txt"
#: What XLA's CPU client aligns values to; others use multiples of it.
_ALIGNMENT = 64
_ALLOCATION = re.compile(r"^allocation (\d{1,9}): size (\d{1,18})(.*):$", re.MULTILINE)
_VALUE = re.compile(r"^ value: <(\d{1,18}) (.+) @\d+> \(size=(\d{1,18}),offset=(\d{1,18})\)", re.MULTILINE)
_RANGE = re.compile(r"^    (\S+)\{([\d,]*)\}:(\d{1,18})-(\d{1,18})$", re.MULTILINE)
_POSITIONS = re.compile(r"^<(\d{1,18}) .+ @\d+>\n positions:\n((?:  .+\n)+)", re.MULTILINE)
_POSITION = re.compile(r"^  (\S+)(?: \{([\d,]*)\})?$", re.MULTILINE)
#: The name of a value: that of its instruction, the place in a tuple, and what follows.
_NAME = re.compile(r"(\S+?)(?:\{([\d,]*)\})?(?: \(phi\))?")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?(\S+) (?:\(.*)?\{\s*$")
_PARAMETER = re.compile(r"^\s+(?:ROOT )?%?(\S+) = .* parameter\(0\)")
_ROOT = re.compile(r"^\s+ROOT %?(\S+) = ")
_LOOP = re.compile(r"^\s+(?:ROOT )?%?(\S+) = .* while\(%?([^\s,)]+)\), condition=%?([^\s,]+), body=%?([^\s,]+)")
_BRANCH = re.compile(r"^\s+(?:ROOT )?%?(\S+) = .* conditional\(.*\), (?:branch_computations=\{([^}]*)\}|.*)")
_TWO_WAYS = re.compile(r"(?:true|false)_computation=%?([^\s,]+)")


def read_table(path: Path, part: str = "") -> BufferTable:
    """The values in a temporary allocation with XLA's offsets.

    Args:
        path: the file NAME-buffer-assignment.txt; the three others of the module lie beside it.
        part: the number of the allocation; may be left out where only one is temporary.

    Raises:
        ModelError: one of the files is missing or damaged, or they do not belong together.
        RequestError: XLA planned no temporary memory, no such part, or several where none is named.
    """
    if not path.name.endswith(_ENDING):
        raise ModelError(f"{path}: found another name, expected one that ends with {_ENDING}")
    stem = str(path)[: -len(_ENDING)]
    text = read_text(path)
    starts = {match[1]: match for match in _ALLOCATION.finditer(text) if "preallocated-temp" in match[3]}
    chosen = starts[chosen_part(path, list(starts), part, "allocations of temporary memory")]
    following = _ALLOCATION.search(text, chosen.end())
    values = _values(path, text[chosen.end() : following.start() if following else None], int(chosen[2]))
    start, end = _lifetimes(Path(f"{stem}-live-range.txt"), values)
    links = _passed_on(Path(f"{stem}.txt"), Path(f"{stem}-buffer-assignment-values.txt"), values)
    sets = list(_sets(path, values, [*links, *_shared_while_alive(values, start, end)]))
    pieces = [piece for number, members in enumerate(sets) for piece in _pieces(number, members, start, end)]
    planned = [PlannedBuffer(f"{values.names[i]} <{values.ids[i]}>", int(values.size[i]), int(values.offset[i]))
               for i, *_ in sets]  # fmt: skip
    return BufferTable.of_planner(path, "XLA", planned, pieces, kept_alignment(values.offset.tolist(), _ALIGNMENT))


@dataclass(frozen=True, eq=False)
class _Values:
    """The values of an allocation in columns; `ids` are XLA's numbers, names need not be unique."""

    names: tuple[str, ...]
    ids: IntArray
    size: IntArray
    offset: IntArray


def _values(path: Path, text: str, size: int) -> _Values:
    rows = _VALUE.findall(text)
    lines = text.count("\n value: ")
    if len(rows) != lines:
        raise ModelError(f"{path}: found {lines} values, {len(rows)} of them with a size and an offset")
    numbers = np.array([(row[0], row[2], row[3]) for row in rows], np.int64).reshape(-1, 3).T
    values = _Values(tuple(row[1] for row in rows), *numbers)
    beyond = np.flatnonzero(values.offset + values.size > size)
    if len(beyond):
        raise ModelError(f"{path}: value {values.names[beyond[0]]!r} ends beyond its allocation of {size} bytes")
    return values


def _lifetimes(path: Path, values: _Values) -> tuple[IntArray, IntArray]:
    """The first instruction of each value, and the one after its last."""
    ranges = {(name, at): (int(a), int(b) + 1) for name, at, a, b in _RANGE.findall(read_text(path))}
    spans = []
    for name in values.names:
        match = _NAME.fullmatch(name)
        key = (match[1], match[2] or "") if match else (name, "")
        if key not in ranges:
            raise ModelError(f"{path}: found no live range of the value {name!r}")
        spans.append(ranges[key])
    start, end = np.array(spans, np.int64).reshape(-1, 2).T
    return start, end


def _passed_on(module: Path, positions: Path, values: _Values) -> Iterator[list[int]]:
    """Values of which a loop or a branch takes one for another, as indices."""
    index = {number: i for i, number in enumerate(values.ids.tolist())}
    there: dict[str, dict[str, int]] = {}
    for number, places in _POSITIONS.findall(read_text(positions)):
        if int(number) in index:
            for name, at in _POSITION.findall(places):
                there.setdefault(name, {})[at] = index[int(number)]
    for together in _instructions_together(module):
        for at in {at for name in together for at in there.get(name, {})}:
            indices = [there[name][at] for name in together if at in there.get(name, {})]
            if len(indices) > 1:
                yield indices


def _instructions_together(path: Path) -> Iterator[list[str]]:
    """Instructions whose results are one value: of a loop its result, its begin, its parameters and its root."""
    parameters: dict[str, str] = {}
    roots: dict[str, str] = {}
    loops: list[re.Match[str]] = []
    branches: list[tuple[str, str]] = []
    computation = ""
    for line in read_text(path).splitlines():
        if line[:1].strip() and (header := _COMPUTATION.match(line)):
            computation = header[1]
        elif " parameter(0)" in line and (match := _PARAMETER.match(line)):
            parameters[computation] = match[1]
        elif " while(" in line and (match := _LOOP.match(line)):
            loops.append(match)
        elif " conditional(" in line and (match := _BRANCH.match(line)):
            branches.append((match[1], match[2] or ",".join(_TWO_WAYS.findall(line))))
        if "ROOT " in line and (match := _ROOT.match(line)):
            roots[computation] = match[1]
    for result, first, condition, body in (loop.groups() for loop in loops):
        yield [result, first, *_known(path, parameters, (condition, body)), *_known(path, roots, (body,))]
    for result, names in branches:
        yield [result, *_known(path, roots, (name.strip(" %") for name in names.split(",")))]


def _known(path: Path, of: dict[str, str], computations: Iterable[str]) -> list[str]:
    try:
        return [of[name] for name in computations]
    except KeyError as missing:
        raise ModelError(f"{path}: found no computation {missing}, which a loop or branch runs") from None


def _shared_while_alive(values: _Values, start: IntArray, end: IntArray) -> Iterator[list[int]]:
    """Pairs of values that lie at one place while both are alive."""
    order = np.lexsort((start, values.size, values.offset))
    latest, alive_until = -1, -1
    for i in order.tolist():
        same = latest >= 0 and values.offset[i] == values.offset[latest] and values.size[i] == values.size[latest]
        if same and start[i] < alive_until:
            yield [latest, i]
        alive_until = max(alive_until if same else -1, int(end[i]))
        latest = i


def _sets(path: Path, values: _Values, links: Iterable[list[int]]) -> Iterator[list[int]]:
    """The sets of values that are linked, all at one place."""
    together = nx.Graph()
    together.add_nodes_from(range(len(values.names)))
    for first, *others in links:
        together.add_edges_from((first, other) for other in others)
    for members in nx.connected_components(together):
        linked = sorted(members)
        if len({(int(values.offset[i]), int(values.size[i])) for i in linked}) > 1:
            names = ", ".join(repr(values.names[i]) for i in linked[:3])
            raise ModelError(f"{path}: a loop or branch passes {names} on, which lie at several places")
        yield linked


def _pieces(number: int, members: list[int], start: IntArray, end: IntArray) -> Iterator[Piece]:
    """The times at which one of these values is alive, of the buffer with this number."""
    spans = sorted((int(start[i]), int(end[i])) for i in members)
    begin, until = spans[0]
    for first, after in spans[1:]:
        if first > until:
            yield number, begin, until
            begin = first
        until = max(until, after)
    yield number, begin, until
