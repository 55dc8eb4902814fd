"""The program of an ONNX model with stretches in stripes: the nodes that are written, and the memory that they take.

Slice     rows of a value that a stripe reads
operator  the rows of the stripe alone
Concat    rows that were kept and new ones, and at the end all stripes of a value that leaves the stretch
"""

from collections.abc import Iterable, Sequence
from dataclasses import field

from modelplan.model import Graph, Kind
from modelplan.planning.session_blocks import WORKING, workspace_bytes
from modelplan.planning.session_nodes import depth_first
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import nbytes
from modelplan.rewriting.striped_onnx.layers import REPEATING, Reading, stretch_layers, summed_block
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, InputWindow, Layer
from modelplan.rewriting.stripes.stretches import KeptHalo, StripedStretch, UnrolledLayers, UnrolledStripes
from modelplan.rewriting.stripes.stripe_program import AddedValue, HeldRows, StripedProgram, StripedStep, StripeLowering
from modelplan.runtimes.ort import ORT


def free_name(name: str, taken: set[str]) -> str:
    """The name, made longer where it is taken; it is taken from then on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


@dataclass(frozen=True, slots=True)
class OnnxStep(StripedStep):
    """One node: an unsplit operator of the graph or one in a stripe, or a Slice, Concat or Identity that is added.

    A Slice takes the `rows` of its operand along `axis`, a Concat joins along it. A stripe of an operator makes `rows`
    of its value and pads `padding` rows before and behind; None for unsplit operators. A Slice runs after the values
    `after` are made, though it does not read them. `workspace` is what the kernel asks for beside its output, in bytes.
    """

    axis: int = 0
    rows: tuple[int, int] = (0, 0)
    padding: tuple[int, int] | None = None
    after: tuple[int, ...] = ()
    workspace: int = 0


@dataclass
class OnnxProgram(StripedProgram[OnnxStep]):
    """A program of nodes; `sizes` are the bytes of values that the steps make, and of those that live before them.

    Values that are `weightless` count nothing. `copied` are the bytes of weights of which a session keeps a copy for
    each stripe, all but one. `taken` are names that new values do not get.

    With `threads` convolutions of floats are cut only where ONNX Runtime then sums up as before on so many threads.

    `pieces` are the values that stand in stripes only: stretches read rows out of these, for others they are joined.
    """

    sizes: dict[int, int] = field(default_factory=dict)
    macs: int = 0
    threads: int = 0
    taken: set[str] = field(default_factory=set)
    pieces: dict[int, list[HeldRows]] = field(default_factory=dict)
    weightless: frozenset[int] = frozenset()
    copied: int = 0

    def allocate(self, t: int) -> None:
        """Counts the bytes of a value of the model from now on."""
        self.sizes[t] = self._bytes(t, self.graph.tensors[t].shape)

    def add_rows(self, name: str, t: int, shape: tuple[int, ...]) -> int:
        """Adds a value of some rows of a value of the model, which gets a new name."""
        value = self.add(AddedValue(free_name(name, self.taken), t, shape))
        self.sizes[value] = self._bytes(t, shape)
        return value

    def join(self, t: int) -> None:
        """Concatenates the pieces of a value."""
        pieces = self.pieces.pop(t, [])
        if pieces:
            self.allocate(t)
            kind = "Concat" if len(pieces) > 1 else "Identity"
            self.steps.append(OnnxStep(kind, tuple(piece.value for piece in pieces), (t,), axis=pieces[0].axis))

    def _bytes(self, t: int, shape: tuple[int, ...]) -> int:
        return 0 if t in self.weightless else nbytes(self.graph.tensors[t].dtype, shape)


def striped_onnx_program(reading: Reading, stretches: Sequence[StripedStretch], threads: int = 0) -> OnnxProgram:
    """The whole model with these stretches in stripes, which stand in order; `threads` as in a program."""
    program = OnnxProgram(reading.graph, threads=threads, taken=set(reading.names), weightless=reading.weightless)
    at = 0
    for stretch in stretches:
        for index in range(at, stretch.first):
            append_whole(program, index)
        append_stripes(program, reading, stretch)
        at = stretch.last + 1
    for index in range(at, len(reading.graph.ops)):
        append_whole(program, index)
    for t in reading.graph.outputs:
        program.join(t)
    return program


def append_whole(program: OnnxProgram, index: int) -> None:
    """Appends an operator unsplit."""
    graph = program.graph
    op = graph.ops[index]
    for t in op.reads:
        program.join(t)
    for t in op.writes:
        program.allocate(t)
    own = workspace_bytes(graph, op, max(program.threads, 1))
    program.steps.append(OnnxStep(op.kind, op.inputs, op.outputs, index, workspace=own))


def append_stripes(program: OnnxProgram, reading: Reading, stretch: StripedStretch) -> None:
    """Appends a stretch in stripes."""
    if not isinstance(stretch, UnrolledStripes):
        raise IllegalStripeError("ONNX models are computed in unrolled stripes")
    _Stripes(program, reading, stretch_layers(reading, stretch)).append()


class _Stripes(StripeLowering):
    def __init__(self, program: OnnxProgram, reading: Reading, base: UnrolledLayers) -> None:
        super().__init__(base)
        self.program, self.reading = program, reading
        self.cuts: dict[tuple[int, int, int], int] = {}
        self.before: tuple[int, ...] = ()
        self.makers: dict[int, OnnxStep] = {}

    def append(self) -> None:
        for index, layer in self.base.layers.items():
            axes = dict(zip(self.base.row_operands(index), layer.axes, strict=True))
            for t in self.graph.ops[index].reads:  # rows along another axis, or all of them, are in no piece
                if t in self.program.pieces and self.program.pieces[t][0].axis != axes.get(t):
                    self.program.join(t)
        super().append()
        self.program.pieces |= self.pieces

    def begin_stripe(self) -> None:
        self.cuts = {}
        if not self.number:
            return
        ends = [pieces[-1].value for pieces in self.pieces.values() if pieces]
        if len(self.pieces) > 1 and self.reading.opset >= REPEATING:
            self.before = tuple(ends)  # or results that are read late would be made late, of values kept for them
        elif isinstance(self.base.stretch, KeptHalo):  # or first operators of stripes would run before the last ones
            self.before = self.program.steps[-1].outputs[:1]

    def append_operator(self, index: int, window: InputWindow) -> None:
        op, layer = self.graph.ops[index], self.base.layers[index]
        y = op.outputs[0]
        axis, (a, b) = self.base.axes[y], self.rows.computed[y]
        inputs = list(op.inputs)
        for position, place in zip(layer.operands, layer.axes, strict=True):
            inputs[position] = self._rows_of(op.inputs[position], place, window)
        if self.program.threads and layer.products and self._other_sums(layer, window.computed):
            raise IllegalStripeError(f"{self.graph.label(index)}: fewer columns are summed up in another way")
        if y in self.reading.blocks and not self._in_blocks(inputs):
            raise IllegalStripeError(f"{self.graph.label(index)}: another kernel would compute it")
        wrong = window.computed != b - a
        raw = self._value("_made" * wrong, y, axis, window.computed)
        padding, own = (window.above, window.below), self._workspace(index, window)
        self.program.copied += self.reading.own_weights(index) if self.number else 0
        computed_rows = a - window.skip, a - window.skip + window.computed
        step = OnnxStep(op.kind, tuple(inputs), (raw,), index, axis, computed_rows, padding, workspace=own)
        self._append(step)
        self.program.macs += layer.row_macs * window.computed
        if wrong:
            raw = self._cut(y, HeldRows(raw, axis, *computed_rows), (a, b))
        if y in self.pieces:
            self.pieces[y].append(HeldRows(raw, axis, a, b))
        lo = self.rows.seen[y][0]
        if lo < a:  # rows that were kept, and behind them the new ones
            raw = self._concat(y, [self._cut(y, self.kept_rows(y, lo, a), (lo, a)), raw], (axis, lo, b))
        self.held[y] = HeldRows(raw, axis, min(lo, a), b)

    def _workspace(self, index: int, window: InputWindow) -> int:
        """What the kernel of a stripe asks for beside its output."""
        op = self.graph.ops[index]
        if op.kind not in WORKING:
            return 0
        read = self.shape_of(op.inputs[0], self.base.layers[index].axes[0], window.hi - window.lo)
        computed = self.shape_of(op.outputs[0], self.base.axes[op.outputs[0]], window.computed)
        return workspace_bytes(self.graph, op, max(self.program.threads, 1), (read, computed))

    def _concat(self, t: int, parts: Sequence[int], place: tuple[int, int, int]) -> int:
        axis, lo, hi = place
        joined = self._value(f"_joined_{lo}_{hi}", t, axis, hi - lo)
        self._append(OnnxStep("Concat", tuple(parts), (joined,), axis=axis))
        return joined

    def _append(self, step: OnnxStep) -> None:
        self.program.steps.append(step)
        self.makers |= dict.fromkeys(step.outputs, step)

    def _in_blocks(self, inputs: Sequence[int]) -> bool:
        """Whether convolutions of the stripe make these values, with no Slice or Concat behind them."""
        pending = list(inputs)
        while pending:
            step = self.makers.get(pending.pop())
            if step is not None and step.source < 0:
                return False
            if step is not None and step.kind != "Conv":
                pending += step.inputs
        return True

    def _rows_of(self, t: int, axis: int, window: InputWindow) -> int:
        """The value that holds exactly the rows of a window."""
        tensor, rows = self.graph.tensors[t], (window.lo, window.hi)
        if t in self.program.pieces:
            return self._out_of_pieces(t, rows)
        if t not in self.base.inner:
            return self._cut(t, HeldRows(t, axis, 0, tensor.shape[axis]), rows)
        if t not in self.held:
            raise IllegalStripeError(f"stripe {self.number} reads {tensor.name!r} before it is made")
        return self._cut(t, self.held[t], rows)

    def _out_of_pieces(self, t: int, rows: tuple[int, int]) -> int:
        """Rows of a value whose stripes an earlier stretch left apart."""
        key = t, *rows
        if key not in self.cuts:
            lo, hi = rows
            pieces = [piece for piece in self.program.pieces[t] if piece.lo < hi and piece.hi > lo]
            parts = [self._cut(t, piece, (max(lo, piece.lo), min(hi, piece.hi))) for piece in pieces]
            joined = parts[0] if len(parts) == 1 else self._concat(t, parts, (pieces[0].axis, lo, hi))
            self.cuts[key] = joined
        return self.cuts[key]

    def _cut(self, t: int, held: HeldRows, rows: tuple[int, int]) -> int:
        lo, hi = rows
        if (held.lo, held.hi) == rows:
            return held.value
        if lo < held.lo or hi > held.hi:
            raise IllegalStripeError(f"stripe {self.number} needs rows {lo} to {hi} of {self.graph.tensors[t].name!r}")
        key = held.value, lo - held.lo, hi - held.lo
        if key not in self.cuts:
            self.cuts[key] = self._value(f"_rows_{lo}_{hi}", t, held.axis, hi - lo)
            after = () if t in self.base.inner else self.before
            step = OnnxStep("Slice", (held.value,), (self.cuts[key],), axis=held.axis, rows=key[1:], after=after)
            self._append(step)
        return self.cuts[key]

    def _other_sums(self, layer: Layer, rows: int) -> bool:
        """Whether a convolution of so few rows adds partial sums in another order than one of all rows."""
        before, now = (layer.columns * count for count in (layer.rows_out, rows))
        threads = {1, self.program.threads}
        if (before == 1) != (now == 1):  # one column is multiplied by another kernel
            return True
        return any(summed_block(before, layer.products, n) != summed_block(now, layer.products, n) for n in threads)

    def _value(self, note: str, t: int, axis: int, rows: int) -> int:
        name = f"{self.graph.tensors[t].name}/stripe_{self.number}{note}"
        return self.program.add_rows(name, t, self.shape_of(t, axis, rows))


def peak(
    program: OnnxProgram, steps: Sequence[OnnxStep], before: Iterable[int] = (), behind: Iterable[int] = ()
) -> int:
    """The most bytes alive at once while the steps run one after the other.

    Values of `before` are there when they begin, those of `behind` are read later. What comes from elsewhere counts
    nothing: weights, and the inputs of the model, which are the caller's.
    """
    last: dict[int, int] = {}
    for place, step in enumerate(steps):
        for t in (*step.inputs, *step.outputs, *step.after):
            last[t] = place
    last |= dict.fromkeys(behind, len(steps))
    for step in reversed(steps):  # what is made without memory is made where it is read, from what it is made of
        if step.outputs and not program.sizes.get(step.outputs[0], 1):
            read = last[step.outputs[0]]
            last |= {t: max(last[t], read) for t in step.inputs}
    alive = {t: program.sizes[t] for t in before if t in program.sizes}
    ends: list[list[int]] = [[] for _ in range(len(steps) + 1)]
    for t, place in last.items():
        ends[place].append(t)
    now = sum(alive.values())
    most = now
    for place, step in enumerate(steps):
        computed = {t: program.sizes[t] for t in step.outputs if t in program.sizes}
        over = _overwritten(program, step, alive, last, place)
        most = max(most, now + sum(computed.values()) - over + step.workspace)
        now += sum(computed.values())
        alive |= computed
        for t in ends[place]:
            now -= alive.pop(t, 0)
    return most


def run_order(steps: Sequence[OnnxStep]) -> list[OnnxStep]:
    """The steps in ONNX Runtime's default order: from the last ones backwards, depth first, latest operands first."""
    maker = {t: place for place, step in enumerate(steps) for t in step.outputs if t >= 0}
    sources = [[maker[t] for t in (*step.inputs, *step.after) if t in maker] for step in steps]
    return [steps[place] for place in depth_first(sources)]


#: The operands that ONNX Runtime puts the output of an operator over, if they die there.
_IN_PLACE = dict.fromkeys(ORT.sharing.views, (0,)) | dict(ORT.sharing.overwrites)


def _overwritten(program: OnnxProgram, step: OnnxStep, alive: dict[int, int], last: dict[int, int], place: int) -> int:
    """Bytes of the output that need no place of their own."""
    over = (t for x in _IN_PLACE.get(step.kind, ()) for t in step.inputs[x : x + 1])
    dying = {alive.get(t) for t in over if last[t] == place}
    return size if (size := program.sizes.get(step.outputs[0], 0)) in dying else 0


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
    alive: list[set[int]] = [set() for _ in range(len(graph.ops) + 1)]
    for t, tensor in enumerate(graph.tensors):
        if tensor.kind is Kind.ACTIVATION and first[t] >= 0:
            for place in range(first[t] + 1, last[t] + 1):
                alive[place].add(t)
    return [frozenset(values) for values in alive]
