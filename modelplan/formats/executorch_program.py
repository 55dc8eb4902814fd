"""The planned memory of an ExecuTorch program (.pte) as a Problem, with the offsets that ExecuTorch gave.

A program holds methods; a method holds values, the instructions that use them, and for each tensor that ExecuTorch
planned a memory and an offset there. A part is one memory of one method. The instructions give lifetimes:

- A value is alive where it is written and wherever it may still be read, along all jumps; outputs of the method at its
  end, which is a step of its own.
- A value that is read and never written before is a view of what lies at its address, and alive as part of that; where
  nothing does it is state, alive all the time. What `et_view` makes is a view of its operand.
- A move lets its target point to the bytes of its source, which stay alive as long as the target is.

Source: pytorch/executorch, schema/program.fbs, exir/memory_planning.py, runtime/executor/method.cpp.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from operator import or_
from pathlib import Path

from modelplan.formats.buffer_table import BufferTable, PlannedBuffer, chosen_part, kept_alignment
from modelplan.formats.tflite.tflite_tables import byte_range, follow, scalar, tables, u32
from modelplan.formats.tflite.tflite_tables import field as position
from modelplan.formats.whole_files import read_model
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import rounded_up

#: Numbers of fields in the schema.
_PLANS = 1
_NAME, _VALUES, _INPUTS, _OUTPUTS, _CHAINS, _OPERATORS = 0, 2, 3, 4, 5, 6
_INSTRUCTIONS = 2
_UNION_TYPE, _UNION = 0, 1
_SCALAR_TYPE, _SIZES, _ALLOCATION = 0, 2, 6
_MEMORY, _OFFSET_LOW, _OFFSET_HIGH = 0, 1, 2
#: Members of the schema's unions.
_BOOL, _TENSOR, _LISTS = 3, 5, (10, 11)
_KERNEL, _DELEGATE, _MOVE, _JUMP, _FREE = 1, 2, 3, 4, 5

#: Bytes of an element by the number of its type.
_WIDTHS = {
    0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 8, 11: 1, 12: 1, 13: 1, 14: 4, 15: 2, 16: 1, 17: 1, 22: 2,
    23: 1, 24: 1, 25: 1, 26: 1, 27: 2, 28: 4, 29: 8,
}  # fmt: skip
#: What ExecuTorch aligns tensors to where its planner is not told otherwise, and rounds their sizes to.
_ALIGNMENT = 16
_MOST_BYTES = 1 << 60


@dataclass(slots=True)
class _Value:
    """A planned tensor: where it lies, what writes it first, the value of which it is a view, and whether it stays."""

    memory: int
    offset: int
    size: int
    name: str = ""
    written: bool = False
    base: int = -1
    state: bool = False


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction: what it is called, the values that it reads and writes, and where it may jump to, else -1.

    Of `either`, operands and then results, it is not said where the results begin; the last one is one. `always` says
    that it jumps in any case, `partial` that it writes a part of its result.
    """

    name: str
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    either: tuple[int, ...] = ()
    jump: int = -1
    always: bool = False
    partial: bool = False


def read_table(path: Path, part: str = "") -> BufferTable:
    """The buffers of a part of the program with ExecuTorch's offsets.

    Args:
        path: the file.
        part: `METHOD/MEMORY`, such as `forward/1`; may be left out where there is only one.

    Raises:
        ModelError: the file is damaged, or ExecuTorch planned no memory in it.
        RequestError: no such part, or several where none is named.
    """
    data = read_model(path)
    try:
        plans = tables(data, follow(data, 0), _PLANS)
        methods = {_text(data, plan, _NAME) or f"method {n}": plan for n, plan in enumerate(plans)}
        planned = {name: _planned(data, plan, f"{path}: method {name}") for name, plan in methods.items()}
        parts = {
            f"{name}/{memory}": (name, memory)
            for name, values in planned.items()
            for memory in sorted({value.memory for value in values.values()})
        }
        name, memory = parts[chosen_part(path, list(parts), part, "memories that ExecuTorch planned")]
        plan, values = methods[name], planned[name]
        steps = _steps(data, plan, f"{path}: method {name}")
        inputs, outputs = _integers(data, plan, _INPUTS), _integers(data, plan, _OUTPUTS)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as damage:
        raise ModelError(f"{path}: not an ExecuTorch program: an offset leads outside the file ({damage})") from None
    views = _Views(values, inputs, steps)
    return _table(path, values, _alive(views, steps, views.bases(inputs), views.bases(outputs)), memory)


def _text(data: bytes, table: int, number: int) -> str:
    start, size = byte_range(data, table, number)
    return data[start : start + size].decode()


def _integers(data: bytes, table: int, number: int) -> tuple[int, ...]:
    """A vector of 32-bit integers; empty where it is absent."""
    at = position(data, table, number)
    if not at:
        return ()
    vector = follow(data, at)
    return struct.unpack_from(f"<{u32(data, vector)}i", data, vector + 4)


def _union(data: bytes, table: int) -> tuple[int, int]:
    """The member of a union and the position of its table."""
    kind, at = position(data, table, _UNION_TYPE), position(data, table, _UNION)
    return (data[kind], follow(data, at)) if kind and at else (0, 0)


def _planned(data: bytes, plan: int, place: str) -> dict[int, _Value]:
    """The tensors with a planned address, by the numbers of their values."""
    values = {}
    for number, entry in enumerate(tables(data, plan, _VALUES)):
        kind, tensor = _union(data, entry)
        details = position(data, tensor, _ALLOCATION) if kind == _TENSOR else 0
        if not details:
            continue
        where = follow(data, details)
        offset = scalar(data, where, _OFFSET_LOW) + (scalar(data, where, _OFFSET_HIGH) << 32)
        values[number] = _Value(
            scalar(data, where, _MEMORY), offset, _bytes_of(data, tensor, f"{place}, value {number}")
        )
    return values


def _bytes_of(data: bytes, tensor: int, place: str) -> int:
    at = position(data, tensor, _SCALAR_TYPE)
    kind = data[at] if at else 0
    if kind not in _WIDTHS:
        raise ModelError(f"{place}: found the scalar type {kind}, whose size is not known")
    sizes = _integers(data, tensor, _SIZES)
    if any(size < 0 for size in sizes):
        raise ModelError(f"{place}: found the sizes {sizes[:8]}, expected none below 0")
    size = prod(sizes) * _WIDTHS[kind]
    if size > _MOST_BYTES:
        raise ModelError(f"{place}: found {size:,} bytes, expected at most {_MOST_BYTES:,}")
    return size


@dataclass(frozen=True, slots=True)
class _Method:
    """What instructions refer to: names of operators, lists of values by number, and the constants that are false."""

    operators: tuple[str, ...]
    lists: dict[int, tuple[int, ...]]
    never: set[int]


def _method(data: bytes, plan: int) -> _Method:
    entries = [_union(data, entry) for entry in tables(data, plan, _VALUES)]
    return _Method(
        tuple(_text(data, operator, _NAME) for operator in tables(data, plan, _OPERATORS)),
        {number: _integers(data, at, 0) for number, (kind, at) in enumerate(entries) if kind in _LISTS},
        {number for number, (kind, at) in enumerate(entries) if kind == _BOOL and not _is_true(data, at)},
    )


def _is_true(data: bytes, table: int) -> bool:
    at = position(data, table, 0)
    return bool(at and data[at])


def _steps(data: bytes, plan: int, place: str) -> list[_Step]:
    """The instructions of a method, in the order of its chains."""
    method, steps = _method(data, plan), list[_Step]()
    for chain in tables(data, plan, _CHAINS):
        first, instructions = len(steps), tables(data, chain, _INSTRUCTIONS)
        for number, instruction in enumerate(instructions):
            step = _step(data, *_union(data, instruction), method, f"{place}, instruction {number}")
            if step.jump > len(instructions):
                raise ModelError(f"{place}, instruction {number}: jumps to {step.jump} of {len(instructions)}")
            steps.append(step if step.jump < 0 else replace(step, jump=first + step.jump))
    computed = {v for step in steps for v in step.writes}
    return [replace(step, always=False) if step.always and step.reads[0] in computed else step for step in steps]


def _step(data: bytes, kind: int, at: int, method: _Method, place: str) -> _Step:
    """What an instruction does; a jump leads to an instruction of its chain."""
    if kind == _KERNEL:
        return _kernel(method.operators[scalar(data, at, 0)], _integers(data, at, 1), method.lists)
    if kind == _DELEGATE:
        return _Step("delegate", either=_integers(data, at, 1))
    if kind == _MOVE:
        return _Step("move", (scalar(data, at, 0),), (scalar(data, at, 1),))
    if kind == _JUMP:
        condition = scalar(data, at, 0)
        return _Step("jump", (condition,), jump=scalar(data, at, 1), always=condition in method.never)
    if kind == _FREE:
        return _Step("free")
    raise ModelError(f"{place}: found an instruction of the unknown kind {kind}")


def _kernel(name: str, arguments: tuple[int, ...], lists: dict[int, tuple[int, ...]]) -> _Step:
    """A call of a kernel: results stand among the arguments, and once more at the end, several as a list."""
    if name == "executorch_prim::et_copy_index":  # copies an operand to an index of the first one
        return _Step(name, arguments[1:2], arguments[:1], partial=True)
    *others, last = arguments or (-1,)
    writes = lists.get(last, (last,))
    reads = [v for a in others for v in lists.get(a, (a,)) if v not in writes]
    updated = [v for v in writes if v in others[:1]]  # as by copy_, whose first operand is its result
    return _Step(name, (*reads, *updated), writes)


class _Views:
    """Follows the instructions: which values are views of others, which are state, and what writes a value first."""

    def __init__(self, values: dict[int, _Value], inputs: Iterable[int], steps: Sequence[_Step]) -> None:
        self.values = values
        #: The value that was written last at a memory and offset.
        self.there: dict[tuple[int, int], int] = {}
        for number, v in enumerate(inputs):
            self._write(v, f"input {number}")
        used = [self._run(step, f"{step.name} {at}") for at, step in enumerate(steps)]
        self._join_moved(steps)
        #: What each instruction reads and writes, views as their bases.
        self.reads = [self.bases(reads) for reads, _ in used]
        self.writes = [self.bases(writes) for _, writes in used]

    def base(self, v: int) -> int:
        """The value whose bytes `v` has."""
        while v in self.values and self.values[v].base >= 0:
            v = self.values[v].base
        return v

    def bases(self, numbers: Iterable[int]) -> set[int]:
        """The planned values whose bytes these have."""
        return {self.base(v) for v in numbers if v in self.values}

    def _run(self, step: _Step, name: str) -> tuple[list[int], list[int]]:
        for v in step.reads:
            self._read(v)
        last = step.either[-1:]
        unwritten = [v for v in step.either if v in self.values and not self.values[v].written]
        fresh = [v for v in unwritten if v in last or self._view_of(v) < 0]
        for v in step.either:
            self._write(v, name) if v in fresh else self._read(v)
        for v in step.writes:
            if step.name.endswith("::et_view") and v in self.values and step.reads[:1] and step.reads[0] in self.values:
                self._make_view(v, self.base(step.reads[0]))
            self._write(v, name)
        return [*step.reads, *(v for v in step.either if v not in fresh)], [*step.writes, *fresh]

    def _join_moved(self, steps: Sequence[_Step]) -> None:
        """Makes one value of those that branches move to one target, where they lie at one place."""
        first: dict[tuple[int, int, int, int], int] = {}
        for step in steps:
            if step.name == "move" and step.reads[0] in self.values:
                source = self.base(step.reads[0])
                value = self.values[source]
                self._make_view(
                    source, first.setdefault((step.writes[0], value.memory, value.offset, value.size), source)
                )

    def _read(self, v: int) -> None:
        value = self.values.get(v)
        if value is None or value.written:
            return
        self._make_view(v, self._view_of(v))
        if value.base < 0:
            value.name, value.state = "state", True
        self._write(v, "")

    def _write(self, v: int, name: str) -> None:
        value = self.values.get(v)
        if value is not None:
            value.written = True
            value.name = value.name or name
            self.there[value.memory, value.offset] = v

    def _make_view(self, v: int, base: int) -> None:
        if base != v:
            self.values[v].base = base

    def _view_of(self, v: int) -> int:
        """The value of the same size whose bytes lie at the address of `v`, -1 without one."""
        value = self.values[v]
        base = self.there.get((value.memory, value.offset), -1)
        return self.base(base) if base >= 0 and self.values[base].size == value.size else -1


def _alive(views: _Views, steps: Sequence[_Step], inputs: set[int], outputs: set[int]) -> list[set[int]]:
    """The values that are alive in each instruction, and at the end, when the caller reads the outputs.

    A value is alive where it may have been written and may still be read, and where it is written.
    """
    numbers = sorted(views.values)
    bits = {v: 1 << i for i, v in enumerate(numbers)}

    def mask(values: Iterable[int]) -> int:
        return reduce(or_, (bits[v] for v in values), 0)

    states = mask(v for v, value in views.values.items() if value.state)
    writes = [*map(mask, views.writes), 0]
    replaced = [0 if step.partial else new for step, new in zip(steps, writes, strict=False)] + [0]
    reads = [*map(mask, views.reads), mask(outputs)]
    given = [mask(inputs) | states] + [0] * len(steps)
    following = [*map(_following, range(len(steps)), steps), ()]
    preceding: list[list[int]] = [[] for _ in following]
    for at, targets in enumerate(following):
        for target in targets:
            preceding[target].append(at)
    read = _settled(range(len(steps), -1, -1), following, lambda at, after: reads[at] | after & ~replaced[at])
    written = _settled(range(len(steps) + 1), preceding, lambda at, before: given[at] | writes[at] | before)
    alive = [r & w | new | states for r, w, new in zip(read, written, writes, strict=True)]
    alive[0] |= given[0]
    alive_values = [{numbers[i] for i in _ones(here)} for here in alive]
    _keep_moved(views, steps, following, alive_values)
    return alive_values


def _settled(order: range, neighbours: Sequence[Sequence[int]], rule: Callable[[int, int], int]) -> list[int]:
    """For each step what `rule` makes of its number and of what holds at its neighbours, until nothing changes."""
    states = [0] * len(order)
    changed = True
    while changed:  # without loops in the program once, and once more to see that
        changed = False
        for at in order:
            new = rule(at, reduce(or_, (states[neighbour] for neighbour in neighbours[at]), 0))
            changed |= new != states[at]
            states[at] = new
    return states


def _ones(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _following(at: int, step: _Step) -> tuple[int, ...]:
    """The instructions that may run after this one."""
    if step.jump < 0:
        return (at + 1,)
    return (step.jump,) if step.always else (at + 1, step.jump)


def _keep_moved(
    views: _Views, steps: Sequence[_Step], following: Sequence[tuple[int, ...]], alive: list[set[int]]
) -> None:
    """Keeps the source of a move alive where its target is read, which then points to the bytes of the source."""
    for at, step in enumerate(steps):
        if step.name != "move" or not {step.reads[0], step.writes[0]} <= views.values.keys():
            continue
        source, target = views.base(step.reads[0]), views.base(step.writes[0])
        reached, ahead = set[int](), list(following[at])
        while ahead:
            here = ahead.pop()
            if here in reached or target not in alive[here]:
                continue
            reached.add(here)
            alive[here].add(source)
            if here < len(steps) and target not in views.writes[here]:
                ahead += following[here]


def _table(path: Path, values: dict[int, _Value], alive: Sequence[set[int]], memory: int) -> BufferTable:
    """The table of the buffers in a memory; sizes are rounded up as ExecuTorch does it."""
    times: dict[int, list[int]] = {}
    for step, here in enumerate(alive):
        for v in sorted(here):
            if values[v].memory == memory:
                times.setdefault(v, []).append(step)
    alignment = kept_alignment((values[v].offset for v in times), _ALIGNMENT)
    planned = [
        PlannedBuffer(f"{values[v].name} ({v})", rounded_up(values[v].size, alignment), values[v].offset) for v in times
    ]
    pieces = [(number, *run) for number, steps in enumerate(times.values()) for run in _runs(steps)]
    return BufferTable.of_planner(path, "ExecuTorch", planned, pieces, alignment)


def _runs(steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The half-open runs of consecutive numbers."""
    first = steps[0]
    for step, following in zip(steps, (*steps[1:], -1), strict=True):
        if following != step + 1:
            yield first, step + 1
            first = following
