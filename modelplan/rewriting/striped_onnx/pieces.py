"""A model's operators with regions in stripes, as steps over named values: what is written, and what memory it takes.

Slice     rows of a value that a stripe reads
operator  the rows of the stripe alone
Concat    rows that were kept and new ones, and at the end all stripes of a value that leaves the region
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from modelplan.model import Graph, Kind
from modelplan.planning.session_blocks import WORKING, depth_first, workspace_bytes
from modelplan.primitives.dtypes import nbytes
from modelplan.rewriting.striped_onnx.layers import SLICE_OPERANDS, Reading, Rowed, block, ways
from modelplan.rewriting.stripes.regions import Ground, Region, Rows, stripe_rows
from modelplan.rewriting.stripes.windows import IllegalStripeError, Window
from modelplan.runtimes.ort import ORT


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows [lo, hi) along `axis` of a value."""

    axis: int
    lo: int
    hi: int


@dataclass(frozen=True, slots=True)
class Stripe:
    """What a stripe of an operator changes: `above` and `below` it pads, and `shape` is that of its output."""

    axis: int
    above: int
    below: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One node: operator `op` of the graph as it stands or in a `stripe`, or, with `op` -1, a Slice or a Concat.

    A Slice runs after the values `after` are made, though it does not read them. `workspace` is what the kernel asks
    for beside its output, in bytes.
    """

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    op: int = -1
    cut: Cut | None = None
    stripe: Stripe | None = None
    after: tuple[str, ...] = ()
    workspace: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """The value in which rows [lo, hi) along `axis` stand."""

    name: str
    axis: int
    lo: int
    hi: int


@dataclass
class Program:
    """Steps in the order in which they are written; `sizes` are the bytes of values that the steps make.

    Values that are `weightless` count nothing. `copied` are the bytes of weights of which a session keeps a copy for
    each stripe, all but one.

    With `threads` convolutions of floats are cut only where ONNX Runtime then sums up as before on so many threads.

    `pieces` are the values that stand in stripes only: regions read rows out of these, for others they are joined.
    """

    graph: Graph
    steps: list[Step] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    macs: int = 0
    threads: int = 0
    taken: set[str] = field(default_factory=set)
    pieces: dict[int, list[Held]] = field(default_factory=dict)
    weightless: frozenset[int] = frozenset()
    copied: int = 0

    def size(self, t: int, shape: tuple[int, ...]) -> int:
        """The bytes of a value of the model's, or of a stripe of it that has this shape."""
        return 0 if t in self.weightless else nbytes(self.graph.tensors[t].dtype, shape)

    def join(self, t: int) -> None:
        """Puts a value together whose rows stand in pieces so far."""
        found = self.pieces.pop(t, [])
        if not found:
            return
        tensor, axis = self.graph.tensors[t], found[0].axis
        self.sizes[tensor.name] = self.size(t, tensor.shape)
        kind = "Concat" if len(found) > 1 else "Identity"
        cut = Cut(axis, 0, tensor.shape[axis])
        self.steps.append(Step(kind, tuple(piece.name for piece in found), (tensor.name,), cut=cut))


def build(reading: Reading, regions: Sequence[Region], threads: int = 0) -> Program:
    """The whole model with these regions in stripes, which stand in order; `threads` as in a program.

    Raises:
        IllegalStripeError: a region cannot be cut in this way.
    """
    program = Program(reading.graph, threads=threads, taken=set(reading.names), weightless=reading.weightless)
    at = 0
    for region in regions:
        for index in range(at, region.first):
            add_whole(program, index)
        add_stripes(program, reading, region)
        at = region.last + 1
    for index in range(at, len(reading.graph.ops)):
        add_whole(program, index)
    for t in reading.graph.outputs:
        program.join(t)
    return program


def add_whole(program: Program, index: int) -> None:
    """An operator as it stands."""
    graph = program.graph
    op = graph.ops[index]
    for t in op.reads:
        program.join(t)
    names = ["" if t < 0 else graph.tensors[t].name for t in op.inputs]
    for t in op.writes:
        program.sizes[graph.tensors[t].name] = program.size(t, graph.tensors[t].shape)
    outputs = tuple("" if t < 0 else graph.tensors[t].name for t in op.outputs)
    own = workspace_bytes(graph, op, max(program.threads, 1))
    program.steps.append(Step(op.kind, tuple(names), outputs, index, workspace=own))


def add_stripes(program: Program, reading: Reading, region: Region) -> None:
    """A region in stripes.

    Raises:
        IllegalStripeError: it cannot be cut in this way.
    """
    _Stripes(program, reading, ground(reading, region)).build()


def ground(reading: Reading, region: Region) -> Ground:
    """What the stripes of a region stand on.

    Raises:
        IllegalStripeError: an operator is not computed by rows.
    """
    ops = tuple(range(region.first, region.last + 1))
    try:
        found, axes = ways(reading, ops, region.axis)
    except ValueError as problem:
        raise IllegalStripeError(str(problem)) from None
    graph, inside = reading.graph, set(ops)
    made = frozenset(graph.ops[i].outputs[0] for i in ops)
    exits = frozenset(t for t in made if t in graph.outputs or not set(graph.readers[t]) <= inside)
    layers = {index: way.layer for index, way in found.items()}
    return Ground(graph, region, ops, layers, made, exits, axes=axes)


class _Stripes:
    def __init__(self, program: Program, reading: Reading, base: Ground) -> None:
        self.program, self.reading, self.base, self.graph = program, reading, base, reading.graph
        self.ways, self.axes = ways(reading, base.ops, base.region.axis)
        self.held: dict[int, Held] = {}
        self.pieces: dict[int, list[Held]] = {t: [] for t in base.exits}
        self.cuts: dict[tuple[str, int, int], str] = {}
        self.before: tuple[str, ...] = ()

    def build(self) -> None:
        for index in self.base.ops:
            op, way = self.graph.ops[index], self.ways[index]
            rowed = {op.inputs[position] for position in way.layer.operands}
            axes = dict(zip((op.inputs[position] for position in way.layer.operands), way.axes, strict=True))
            for t in op.reads:  # rows along another axis, or all of them, are in no piece
                if t in self.program.pieces and (t not in rowed or self.program.pieces[t][0].axis != axes[t]):
                    self.program.join(t)
        for number, rows in enumerate(stripe_rows(self.base)):
            self.cuts = {}
            for index in self.base.ops:
                if index in rows.windows:
                    self._run(number, rows, index, rows.windows[index])
            ends = [pieces[-1].name for pieces in self.pieces.values() if pieces]
            if len(self.pieces) > 1 and self.reading.opset >= SLICE_OPERANDS:
                self.before = tuple(ends)  # or results that are read late would be made late, of values kept for them
            elif self.base.region.carry:  # or stripes of the first operators would run before those of the last
                self.before = self.program.steps[-1].outputs[:1]
        self.program.pieces |= self.pieces

    def _run(self, number: int, rows: Rows, index: int, window: Window) -> None:
        op, way = self.graph.ops[index], self.ways[index]
        y = op.outputs[0]
        axis, (a, b) = self.axes[y], rows.made[y]
        inputs = ["" if t < 0 else self.graph.tensors[t].name for t in op.inputs]
        for position, place in zip(way.layer.operands, way.axes, strict=True):
            inputs[position] = self._rows_of(number, op.inputs[position], place, window)
        if self.program.threads and way.inner and self._other_sums(way, window.made):
            raise IllegalStripeError(f"{self.graph.label(index)}: fewer columns are summed up in another way")
        wrong = window.made != b - a
        shape = self._shape(y, window.made)
        raw = self._value(f"{self.graph.tensors[y].name}/stripe_{number}" + "_made" * wrong, y, window.made)
        stripe = Stripe(axis, window.above, window.below, shape)
        own = self._workspace(index, window)
        self.program.copied += self.reading.own_weights(index) if number else 0
        self.program.steps.append(Step(op.kind, tuple(inputs), (raw,), index, stripe=stripe, workspace=own))
        self.program.macs += way.layer.row_macs * window.made
        if wrong:
            raw = self._cut(number, y, Held(raw, axis, a - window.skip, a - window.skip + window.made), (a, b))
        if y in self.pieces:
            self.pieces[y].append(Held(raw, axis, a, b))
        held, lo = self.held.get(y), rows.seen[y][0]
        if lo < a:
            raw = self._continued(number, y, held, (lo, a, b), raw)
        self.held[y] = Held(raw, axis, min(lo, a), b)

    def _workspace(self, index: int, window: Window) -> int:
        """What the kernel of a stripe asks for beside its output."""
        op, way = self.graph.ops[index], self.ways[index]
        if op.kind not in WORKING:
            return 0
        read = self._shape(op.inputs[0], window.hi - window.lo, way.axes[0])
        made = self._shape(op.outputs[0], window.made)
        return workspace_bytes(self.graph, op, max(self.program.threads, 1), (read, made))

    def _continued(self, number: int, y: int, held: Held | None, place: tuple[int, int, int], new: str) -> str:
        """Rows that were kept and behind them the new ones."""
        lo, a, b = place
        if held is None or held.lo > lo or held.hi < a:
            raise IllegalStripeError(f"stripe {number} needs row {lo} of {self.graph.tensors[y].name!r}, which is gone")
        return self._concat(number, y, [self._cut(number, y, held, (lo, a)), new], Cut(held.axis, lo, b))

    def _concat(self, number: int, t: int, parts: Sequence[str], cut: Cut) -> str:
        name = f"{self.graph.tensors[t].name}/stripe_{number}_joined_{cut.lo}_{cut.hi}"
        joined = self._value(name, t, cut.hi - cut.lo, cut.axis)
        self.program.steps.append(Step("Concat", tuple(parts), (joined,), cut=cut))
        return joined

    def _rows_of(self, number: int, t: int, axis: int, window: Window) -> str:
        """The value that holds exactly the rows of a window."""
        tensor, rows = self.graph.tensors[t], (window.lo, window.hi)
        if t in self.program.pieces:
            return self._out_of_pieces(number, t, rows)
        if t not in self.base.inner:
            return self._cut(number, t, Held(tensor.name, axis, 0, tensor.shape[axis]), rows)
        if t not in self.held:
            raise IllegalStripeError(f"stripe {number} reads {tensor.name!r} before it is made")
        return self._cut(number, t, self.held[t], rows)

    def _out_of_pieces(self, number: int, t: int, rows: tuple[int, int]) -> str:
        """Rows of a value that stands in the stripes of a region before."""
        key = self.graph.tensors[t].name, *rows
        if key not in self.cuts:
            lo, hi = rows
            found = [piece for piece in self.program.pieces[t] if piece.lo < hi and piece.hi > lo]
            parts = [self._cut(number, t, piece, (max(lo, piece.lo), min(hi, piece.hi))) for piece in found]
            joined = parts[0] if len(parts) == 1 else self._concat(number, t, parts, Cut(found[0].axis, lo, hi))
            self.cuts[key] = joined
        return self.cuts[key]

    def _cut(self, number: int, t: int, held: Held, rows: tuple[int, int]) -> str:
        lo, hi = rows
        if (held.lo, held.hi) == rows:
            return held.name
        if lo < held.lo or hi > held.hi:
            raise IllegalStripeError(f"stripe {number} needs rows {lo} to {hi} of {self.graph.tensors[t].name!r}")
        key = held.name, lo - held.lo, hi - held.lo
        if key not in self.cuts:
            name = f"{self.graph.tensors[t].name}/stripe_{number}_rows_{lo}_{hi}"
            self.cuts[key] = self._value(name, t, hi - lo, held.axis)
            after = () if t in self.base.inner else self.before
            cut = Cut(held.axis, *key[1:])
            self.program.steps.append(Step("Slice", (held.name,), (self.cuts[key],), cut=cut, after=after))
        return self.cuts[key]

    def _other_sums(self, way: Rowed, rows: int) -> bool:
        """Whether so few rows of a convolution are computed with other partial sums than all rows."""
        before, now = (way.columns * count for count in (way.layer.rows_out, rows))
        threads = {1, self.program.threads}
        if (before == 1) != (now == 1):  # one column is multiplied by another kernel
            return True
        return any(block(before, way.inner, n) != block(now, way.inner, n) for n in threads)

    def _shape(self, t: int, rows: int, axis: int | None = None) -> tuple[int, ...]:
        shape, place = self.graph.tensors[t].shape, self.axes[t] if axis is None else axis
        return (*shape[:place], rows, *shape[place + 1 :])

    def _value(self, name: str, t: int, rows: int, axis: int | None = None) -> str:
        while name in self.program.taken:
            name += "_"
        self.program.taken.add(name)
        self.program.sizes[name] = self.program.size(t, self._shape(t, rows, axis))
        return name


def peak(program: Program, steps: Sequence[Step], before: Iterable[str] = (), behind: Iterable[str] = ()) -> int:
    """The most bytes alive at once while the steps run one after the other.

    Values of `before` are there when they begin, those of `behind` are read later. What comes from elsewhere counts
    nothing: weights, and the inputs of the model, which are the caller's.
    """
    last: dict[str, int] = {}
    for place, step in enumerate(steps):
        for name in (*step.inputs, *step.outputs, *step.after):
            last[name] = place
    last |= dict.fromkeys(behind, len(steps))
    for step in reversed(steps):  # what is made without memory is made where it is read, from what it is made of
        if step.outputs and not program.sizes.get(step.outputs[0], 1):
            read = last[step.outputs[0]]
            last |= {name: max(last[name], read) for name in step.inputs}
    alive = {name: program.sizes[name] for name in before if name in program.sizes}
    ends: list[list[str]] = [[] for _ in range(len(steps) + 1)]
    for name, place in last.items():
        ends[place].append(name)
    now = sum(alive.values())
    most = now
    for place, step in enumerate(steps):
        made = {name: program.sizes[name] for name in step.outputs if name in program.sizes}
        over = _overwritten(program, step, alive, last, place)
        most = max(most, now + sum(made.values()) - over + step.workspace)
        now += sum(made.values())
        alive |= made
        for name in ends[place]:
            now -= alive.pop(name, 0)
    return most


def run_order(steps: Sequence[Step]) -> list[Step]:
    """The steps in ONNX Runtime's default order: from the last ones backwards, depth first, latest operands first."""
    maker = {name: place for place, step in enumerate(steps) for name in step.outputs if name}
    sources = [[maker[name] for name in (*step.inputs, *step.after) if name in maker] for step in steps]
    return [steps[place] for place in depth_first(sources)]


#: Operators whose output ONNX Runtime puts over their first operand, if that dies there.
_IN_PLACE = ORT.sharing.views | ORT.sharing.overwrites.keys()


def _overwritten(program: Program, step: Step, alive: dict[str, int], last: dict[str, int], place: int) -> int:
    """Bytes of the output that need no place of their own."""
    if step.kind not in _IN_PLACE:
        return 0
    size = program.sizes[step.outputs[0]]
    return size if any(last[name] == place and alive.get(name) == size for name in step.inputs[:1]) else 0


def live_after(graph: Graph, weightless: frozenset[int] = frozenset()) -> list[frozenset[int]]:
    """The values alive between operators in the order of the file: entry k stands before operator k.

    What a `weightless` value is made of lives until that is read.
    """
    first = {t: -1 if graph.producers[t] < 0 else graph.producers[t] for t in range(len(graph.tensors))}
    last = {t: max(readers, default=first[t]) for t, readers in enumerate(graph.readers)}
    last |= dict.fromkeys(graph.outputs, len(graph.ops))
    for op in reversed(graph.ops):
        if weightless.intersection(op.writes):
            last |= {t: max(last[t], *(last[y] for y in op.writes)) for t in op.reads}
    found: list[set[int]] = [set() for _ in range(len(graph.ops) + 1)]
    for t, tensor in enumerate(graph.tensors):
        if tensor.kind is Kind.ACTIVATION and first[t] >= 0:
            for place in range(first[t] + 1, last[t] + 1):
                found[place].add(t)
    return [frozenset(values) for values in found]
