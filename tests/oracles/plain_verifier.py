"""The rules of the verifier's first two levels written plainly, byte by byte and pair by pair: slow, for comparison.

What operators do to bytes (`moves_of`, `may_overlap`) is the verifier's; the messages leave out where bytes end.
"""

from __future__ import annotations

from modelplan.checking.verifier.addresses import AddressLayout
from modelplan.checking.verifier.moves import moves_of
from modelplan.checking.verifier.program import Program, Step
from modelplan.checking.verifier.safe_overlap import may_overlap
from modelplan.checking.verifier.semantics import is_opaque
from modelplan.primitives.errors import BrokenPlanError

#: A byte of a value: the value's number, who wrote it, for which tensor (-1: scratch), the byte's number in it.
Tag = tuple[int, str, int, int]
#: A value of a tensor: the tensor, the step that makes it, the last step that needs it.
Life = tuple[int, int, int]


def bytes_of(program: Program, layout: AddressLayout, t: int) -> range:
    at = layout.address.get(t)
    return range(0) if at is None else range(at, at + program.values[t].nbytes)


class PlainReplay:
    """Two runs over an arena that holds a tag for each byte."""

    def __init__(self, program: Program, layout: AddressLayout) -> None:
        self.program, self.layout = program, layout
        self.arena: dict[int, Tag] = {}
        self.content: dict[int, list[Tag]] = {}
        self.values = 0

    def run(self) -> int:
        state = [t for t, value in enumerate(self.program.values) if value.role == "state"]
        for number in range(2):
            for t in state if number == 0 else ():
                self.store(t, self.fresh("the start", t, self.program.values[t].nbytes))
            for t in self.program.inputs:
                if self.program.values[t].role == "activation":
                    self.store(t, self.fresh("the caller", t, self.program.values[t].nbytes))
            for index, step in enumerate(self.program.steps):
                self.perform(index, step)
            for t in self.program.outputs:
                self.read(t, "the caller")
            for t in state:
                self.read(t, "the next run")
        return 2 * len(self.program.steps)

    def perform(self, index: int, step: Step) -> None:
        for t in step.reads:
            self.read(t, step.label)
        for output in range(0 if is_opaque(step) else len(step.outputs)):
            self.check_output(step, output)
        results = {y: self.result(step, output, y) for output, y in enumerate(step.outputs) if y >= 0}
        for use in (use for use in self.layout.scratch if use.step == index):
            block = range(use.start, use.end)
            for t in (*step.reads, *step.writes):
                if shared := self.shared(t, block):
                    what = f"bytes {shared} as scratch, which hold its {self.program.tensor(t)}"
                    raise BrokenPlanError(f"{step.label} uses {what}")
            tags = self.fresh(f"{step.label}'s scratch", -1, len(block))
            self.arena.update(zip(block, tags, strict=True))
        for y, tags in results.items():
            self.store(y, tags)

    def shared(self, t: int, block: range) -> str:
        both = sorted(set(bytes_of(self.program, self.layout, t)) & set(block))
        return f"{both[0]}-{both[-1]}" if both else ""

    def fresh(self, writer: str, t: int, count: int) -> list[Tag]:
        self.values += 1
        return [(self.values, writer, t, n) for n in range(count)]

    def store(self, t: int, tags: list[Tag]) -> None:
        self.content[t] = tags
        self.arena.update(zip(bytes_of(self.program, self.layout, t), tags, strict=False))

    def result(self, step: Step, output: int, y: int) -> list[Tag]:
        moves = sorted((m for m in moves_of(self.program, step) if m.output == output), key=lambda m: m.to)
        sources = [step.inputs[m.input] for m in moves]
        if sum(m.length for m in moves) == self.program.values[y].nbytes and {*sources} <= {*self.content}:
            pairs = zip(moves, sources, strict=True)
            return [tag for m, x in pairs for tag in self.content[x][m.start : m.start + m.length]]
        return self.fresh(f"op {step.op}", y, self.program.values[y].nbytes)

    def read(self, t: int, reader: str) -> None:
        value = self.program.values[t]
        if value.role == "constant" or not value.nbytes:
            return
        what = f"{reader} reads {self.program.tensor(t)}"
        if t not in self.content:
            raise BrokenPlanError(f"{what} before anything writes it")
        for at, tag in zip(bytes_of(self.program, self.layout, t), self.content[t], strict=False):
            found = self.arena.get(at)
            if found is None:
                raise BrokenPlanError(f"{what} bytes {at}-, which nothing wrote")
            if found != tag:
                by = f" by {self.program.tensor(found[2])}" if found[2] >= 0 else ""
                raise BrokenPlanError(f"{what} bytes {at}-, overwritten at {found[1]}{by}")

    def check_output(self, step: Step, output: int) -> None:
        y = step.outputs[output]
        block = bytes_of(self.program, self.layout, y)
        for other in step.outputs[:output]:
            if other != y and (shared := self.shared(other, block)):
                names = f"{self.program.tensor(y)} and {self.program.tensor(other)}"
                raise BrokenPlanError(f"{step.label} writes {names} to the same bytes {shared}")
        for operand, x in enumerate(step.inputs):
            shared = self.shared(x, block)
            if not shared or self.keeps(step, x, output):
                continue
            if not may_overlap(self.program, self.layout, step, operand, output):
                what = (
                    f"{self.program.tensor(x)} bytes {shared}, overwritten at op {step.op} by {self.program.tensor(y)}"
                )
                raise BrokenPlanError(f"{step.label} reads {what}: {step.kind} cannot work in place there")

    def keeps(self, step: Step, x: int, output: int) -> bool:
        """Whether one move leaves all bytes that the two share where they are."""
        block = bytes_of(self.program, self.layout, step.outputs[output])
        shared = set(bytes_of(self.program, self.layout, x)) & set(block)
        for m in moves_of(self.program, step):
            home = self.layout.address.get(step.inputs[m.input])
            stays = m.output == output and home is not None and home + m.start == block[0] + m.to
            if stays and shared <= set(block[m.to : m.to + m.length]):
                return True
        return False


def check_pairs(program: Program, layout: AddressLayout) -> int:
    """Every pair of values that are alive at the same time and share bytes: one class, or the one over the other."""
    classes = list(range(len(program.values)))
    for step in program.steps:
        for m in moves_of(program, step):
            x, y = step.inputs[m.input], step.outputs[m.output]
            if {x, y} <= set(layout.address) and layout.address[x] + m.start == layout.address[y] + m.to:
                classes = [classes[x] if c == classes[y] else c for c in classes]
    found = lives(program, layout)
    rows = sorted(found, key=lambda life: life[1])
    for number, later in enumerate(rows):
        alive = [life for life in rows[:number] if life[2] >= later[1]]
        for earlier in sorted(alive, key=lambda life: (layout.address[life[0]], found.index(life))):
            a, b = (bytes_of(program, layout, life[0]) for life in (earlier, later))
            shared, pair = sorted(set(a) & set(b)), (classes[earlier[0]], classes[later[0]])
            if not shared or pair[0] == pair[1]:
                continue
            follows = earlier[2] == later[1] and pair in overwrites(program, layout, classes, later[1])
            if follows or (later[2] == earlier[1] and pair[::-1] in overwrites(program, layout, classes, earlier[1])):
                continue
            names = program.tensor(later[0]), program.tensor(earlier[0])
            raise BrokenPlanError(f"needs {names[0]} at bytes {shared[0]}-{shared[-1]}, where {names[1]} is alive")
    return len(rows)


def overwrites(program: Program, layout: AddressLayout, classes: list[int], index: int) -> set[tuple[int, int]]:
    """The classes of operands with those of the outputs that a step may write over them."""
    if index < 0 or not program.steps:
        return set()
    step = program.steps[index]
    pairs = {(x, y) for x in step.reads for y in step.writes}
    if not is_opaque(step):
        y = step.outputs[0] if step.outputs else -1
        operands = [(i, x) for i, x in enumerate(step.inputs) if min(x, y) >= 0]
        pairs = {
            (x, y)
            for i, x in operands
            if set(bytes_of(program, layout, x)) & set(bytes_of(program, layout, y))
            and may_overlap(program, layout, step, i, 0)
        }
    return {(classes[x], classes[y]) for x, y in pairs}


def lives(program: Program, layout: AddressLayout) -> list[Life]:
    """Each value that has bytes in the plan, tensors in the order of their first use."""
    end = max(len(program.steps) - 1, 0)
    spans: dict[int, list[list[int]]] = {t: [[-1, -1]] for t in program.inputs}
    for index, step in enumerate(program.steps):
        for t in step.reads:
            spans.setdefault(t, [[index, index]])[-1][1] = index
        for t in step.writes:
            spans.setdefault(t, []).append([index, index])
    for t in program.outputs:
        spans.setdefault(t, [[0, end]])[-1][1] = end
    for t, value in enumerate(program.values):
        if value.role == "state":
            spans[t] = [[-1, end]]
    planned = {t for t, value in enumerate(program.values) if value.nbytes and value.role != "constant"}
    planned -= {t for t, value in enumerate(program.values) if value.role == "state" and t not in layout.address}
    for t in spans:
        if t in planned and t not in layout.address:
            need = program.values[t].nbytes
            raise BrokenPlanError(f"{program.tensor(t)} needs {need} bytes, but the plan has no address for it")
    return [(t, first, last) for t, of_tensor in spans.items() if t in planned for first, last in of_tensor]
