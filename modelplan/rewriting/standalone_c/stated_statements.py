"""Reads the statements of a stage in C: calls of kernels at named or counted addresses, in loops or one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from modelplan.rewriting.standalone_c.kernel_records import COperator
from modelplan.rewriting.standalone_c.step_tables import SHIFT, StepForm

_PLACE = re.compile(r"RAM \+ (AT_\d+|at\[\d+\]|\d+)(?: ([+-]) (\d+)\b(?! \*))?")
_TITLE = re.compile(r"/\* (\w+)(?: -> (\d+) .*)? \*/")
_CALL = re.compile(r"\w+\(&op_(\d+)(?:_(\d+))?, (.*)\);$")
_LOOP = re.compile(r"for \(int32_t n = 0; n < (\d+); n\+\+\) \{$")
_COUNTED = re.compile(r"at\[(\d+)\] ([+-])= (\d+);$")
_MOVE = re.compile(r"\(void\)memmove\((.*), (.*), (\d+)\);$")


class UnreadSourceError(Exception):
    """A source does not state its steps as `fit` writes them: says where."""


def counted_from(text: str, *, progress: bool = False) -> list[int]:
    """The addresses from which a stage counts; with `progress` those that are kept from one row to the next."""
    if progress:
        return [int(n) for n in re.findall(r"^    progress\.at\[\d+\] = (-?\d+);$", text, re.MULTILINE)]
    listed = re.search(r"int32_t at\[\d+\] = \{([^}]*)\}", text)
    return [int(n) for n in re.findall(r"-?\d+", listed[1])] if listed else []


@dataclass
class _OpenStep:
    """A step whose calls of kernels are being read: the last of them, and what they say."""

    operator: int
    kernel: int
    rows: tuple[int, int, int]
    places: list[int]


@dataclass
class StatedStatements:
    """Reads statements with these operators, named offsets, and the place of each tensor's value."""

    operators: Mapping[int, COperator]
    offsets: Mapping[str, int]
    at_value: Callable[[int], int]
    counters: list[int] = field(default_factory=list)
    step: _OpenStep | None = None

    def forms(self, lines: Sequence[str]) -> Iterator[StepForm]:
        """The steps as forms with all addresses; a shift of a named value has its number as the last place."""
        yield from self._block(lines)
        yield from self._closed()

    def titled(self, text: str) -> int:
        """The operator that a comment names by its kind and first result."""
        title = _TITLE.search(text)
        for index, operator in self.operators.items():
            results = [str(result.tensor) for result in operator.results]
            if title and operator.kind == title[1] and results[:1] == [title[2]][: len(results)]:
                return index
        raise UnreadSourceError(f"no operator is named in {text.strip()[:60]!r}")

    def _block(self, lines: Sequence[str]) -> Iterator[StepForm]:
        at = 0
        while at < len(lines):
            loop = _LOOP.match(lines[at])
            end = at
            if loop:
                end = lines.index("}", at)
                inner = lines[at + 1 : end]
                batch = any(" + n * " in line for line in inner)
                for _ in range(1 if batch else int(loop[1])):
                    yield from self._block(inner)
            else:
                yield from self._statement(lines[at])
            at = end + 1

    def _statement(self, line: str) -> Iterator[StepForm]:
        if line.startswith("int32_t at["):
            self.counters = counted_from(line)
        elif counted := _COUNTED.match(line):
            self.counters[int(counted[1])] += int(counted[2] + counted[3])
        elif line.startswith("/*"):
            yield from self._closed()
            if not self.counters:
                self._open(self.titled(line))
        elif call := _CALL.match(line):
            yield from self._called(int(call[1]), int(call[2] or 0), call[3].split(", "))
        elif move := _MOVE.match(line):
            yield from self._closed()
            name = re.search(r"AT_(\d+)", move[1])
            places = self._address(move[1]), self._address(move[2]), int(move[3]), int(name[1]) if name else -1
            yield StepForm(SHIFT, 0, 0, 0, places)
        else:
            raise UnreadSourceError(f"no step is {line[:60]!r}")

    def _open(self, index: int) -> _OpenStep:
        """Begins a step, whose operands and results lie where their values begin unless a call says otherwise."""
        operator = self.operators[index]
        tensors = [o.tensor for o in operator.operands] + [r.tensor for r in operator.results]
        rows = operator.operands[0].rows if operator.operands else 0
        computed = operator.results[0].rows if operator.results else 1
        self.step = _OpenStep(index, -1, (rows, 0, computed), [self.at_value(t) for t in tensors])
        return self.step

    def _closed(self) -> Iterator[StepForm]:
        if self.step:
            yield StepForm(self.step.operator, *self.step.rows, tuple(self.step.places))
        self.step = None

    def _called(self, index: int, position: int, arguments: Sequence[str]) -> Iterator[StepForm]:
        """Takes in the call of a kernel; gives the step before where this one begins another."""
        step = self.step
        if step is None or step.operator != index or step.kernel >= position:
            if step and step.kernel >= 0:
                yield from self._closed()
            step = self._open(index)
        operator, kernel = self.operators[index], self.operators[index].kernels[position]
        if len(arguments) < len(kernel.operands) + 4:
            raise UnreadSourceError(f"a call of op {index} has {len(arguments)} arguments")
        step.kernel = position
        for operand, argument in zip(kernel.operands, arguments, strict=False):
            if isinstance(operand, int):
                step.places[operand] = self._address(argument)
        numbers = arguments[len(kernel.operands) :]
        if isinstance(kernel.result, int):
            step.places[len(operator.operands) + kernel.result] = self._address(numbers[3])
        if operator.by_rows:
            step.rows = int(numbers[0]), int(numbers[1]), int(numbers[2])

    def _address(self, text: str) -> int:
        place = _PLACE.search(text)
        if place is None:
            raise UnreadSourceError(f"{text!r} is no place in the buffer")
        name = place[1]
        base = self.counters[int(name[3:-1])] if name[0] == "a" else self.offsets.get(name, -1)
        return (int(name) if name.isdigit() else base) + (int(place[2] + place[3]) if place[2] else 0)
