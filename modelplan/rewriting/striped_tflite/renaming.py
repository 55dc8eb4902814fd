"""Renames that neighbours can do without: RESHAPE, EXPAND_DIMS and SQUEEZE that only say another shape are left out.

conv (1, 1, 48, 22) -> RESHAPE (1, 48, 22) -> RELU -> EXPAND_DIMS (1, 1, 48, 22) -> conv     as exporters write it
conv                ->                        RELU ->                               conv     the same elements

Kernels that go element by element take any shape that all of their maps have: those of TFLM compare it at most.
"""

from collections.abc import Iterable, Iterator, Sequence

from modelplan.model import Graph, Kind
from modelplan.ops import facts
from modelplan.ops.op_facts import TFLITE_RESHAPES
from modelplan.rewriting.striped_tflite.steps import TfliteProgram, TfliteStep
from modelplan.rewriting.striped_tflite.writing import newer_operators
from modelplan.rewriting.stripes.stripe_program import AddedValue
from modelplan.runtimes.tflm.file import read_tflite

Shape = tuple[int, ...]
#: How often all groups of maps are tried in other shapes.
_ROUNDS = 4
#: The axes of a map that all of TFLM's kernels take which repeat an operand.
_MOST_AXES = 4


def with_fewer_renames(model: bytes, graph: Graph) -> TfliteProgram | None:
    """The program of a model whose maps have the shapes that need the fewest renames.

    `graph` is that of the file `model`. None where it needs as many as it has.
    """
    renaming = _Renaming(model, graph)
    return _Emission(renaming).program() if renaming.improve() else None


class _Renaming:
    """The choice of a shape for each group of maps that operators between them tie together.

    `renames` only change a shape, `alike` are the operators that tie. `group` is the group of each tensor, named by one
    of its tensors, and `shape` what is chosen for a group, its own where there is none.
    """

    def __init__(self, model: bytes, graph: Graph) -> None:
        self.graph, self.tensors = graph, read_tflite(model, graph.name).subgraphs[0].tensors
        newer = newer_operators(model)
        known = [index for index in range(len(graph.ops)) if index not in newer]
        self.renames = {index for index in known if self._only_renames(index)}
        self.alike = {index for index in known if self._takes_any_shape(index)}
        self.group = _tied(len(graph.tensors), map(self.maps, sorted(self.alike)))
        self._first = list(range(len(graph.tensors)))
        for index in sorted(self.renames):
            op = graph.ops[index]
            self._first[op.outputs[0]] = self._first[op.inputs[0]]
        self.shape: dict[int, Shape] = {}
        others = [(index, op) for index, op in enumerate(graph.ops) if index not in self.renames]
        read = [(index, t) for index, op in others for t in op.reads if graph.tensors[t].kind is not Kind.CONSTANT]
        self._read = list(dict.fromkeys((t, index in self.alike) for index, t in read))

    def maps(self, index: int) -> list[int]:
        """What an operator reads and makes that is no constant."""
        op = self.graph.ops[index]
        return [t for t in (*op.reads, *op.writes) if self.graph.tensors[t].kind is not Kind.CONSTANT]

    def _only_renames(self, index: int) -> bool:
        """Whether an operator gives the elements of its operand, of one scale at most, another shape by constants."""
        op, tensors = self.graph.ops[index], self.graph.tensors
        if op.kind not in TFLITE_RESHAPES or len(op.outputs) != 1 or len(self.maps(index)) != 2:
            return False
        x, y = op.inputs[0], op.outputs[0]
        if any(tensors[t].kind is not Kind.ACTIVATION for t in (x, y)):
            return False
        own, other = self.tensors[x].quantization, self.tensors[y].quantization
        same = own == other and tensors[x].dtype == tensors[y].dtype
        axes = [[n for n in tensors[t].shape if n != 1] for t in (x, y)]
        return same and max(own.scales, own.zero_points) <= 1 and axes[0] == axes[1]

    def _takes_any_shape(self, index: int) -> bool:
        """Whether an operator goes element by element over maps of one shape, and repeats constants alike over them."""
        op, tensors, maps = self.graph.ops[index], self.graph.tensors, self.maps(index)
        row = facts("tflite", op.kind)
        if row.rows != "pointwise" or row.effects or len(op.outputs) != 1 or len(maps) < 2:
            return False
        shape = tensors[op.outputs[0]].shape
        if max((*op.reads, *op.writes)) >= len(self.tensors):
            return False
        if any(tensors[t].kind is not Kind.ACTIVATION or tensors[t].shape != shape for t in maps):
            return False
        codings = [self.tensors[t].quantization for t in (*op.reads, *op.writes)]
        single = all(max(coding.scales, coding.zero_points) <= 1 for coding in codings)
        return single and all(self._is_repeated(t, shape) for t in op.reads if t not in maps)

    def _is_repeated(self, t: int, shape: Shape) -> bool:
        """Whether a constant is one number, or has numbers along the last axis of a shape."""
        constant, elements = self.graph.tensors[t].shape, self.tensors[t].elements
        return len(constant) <= len(shape) and (elements == 1 or elements == constant[-1] == shape[-1])

    def _fits(self, group: int, shape: Shape) -> bool:
        """Whether the operators of a group repeat their constants alike over maps of another shape."""
        operators = [self.graph.ops[index] for index in self.alike if self.group[self.maps(index)[0]] == group]
        constants = [t for op in operators for t in op.reads if self.graph.tensors[t].kind is Kind.CONSTANT]
        return len(shape) <= _MOST_AXES and all(self._is_repeated(t, shape) for t in constants)

    def kept(self, t: int) -> Shape:
        """The shape that is chosen for the group of a tensor."""
        return self.shape.get(self.group[t]) or self.graph.tensors[t].shape

    def natural(self, t: int) -> Shape:
        """The shape in which a tensor is made."""
        return self.kept(t) if self.graph.producers[t] in self.alike else self.graph.tensors[t].shape

    def first(self, t: int) -> int:
        """The tensor before all renames that a tensor is."""
        return self._first[t]

    def _wanted(self) -> Iterator[tuple[int, Shape]]:
        """What operators but renames read, and the outputs of the model, in the shapes in which they are needed."""
        for t, alike in self._read:
            yield self.first(t), self.kept(t) if alike else self.graph.tensors[t].shape
        yield from ((self.first(t), self.graph.tensors[t].shape) for t in self.graph.outputs)

    def needed(self) -> int:
        """How many renames there are with the shapes that are chosen."""
        return sum(shape != self.natural(t) for t, shape in set(self._wanted()))

    def improve(self) -> bool:
        """Gives groups other shapes while fewer renames are needed then; whether it is fewer than in the model."""
        best = self.needed()
        for _ in range(_ROUNDS if self.renames else 0):
            last = best
            for group, shape in self._candidates():
                if not self._fits(group, shape):
                    continue
                before = self.shape
                self.shape = before | {group: shape}
                needed = self.needed()
                best, self.shape = (needed, self.shape) if needed < best else (best, before)
            if best == last:
                break
        return best < len(self.renames)

    def _candidates(self) -> Iterator[tuple[int, Shape]]:
        """Groups with shapes in which a rename before or behind them is none."""
        for index in sorted(self.renames):
            x, y = self.graph.ops[index].inputs[0], self.graph.ops[index].outputs[0]
            yield self.group[x], self.kept(y)
            yield self.group[y], self.natural(self.first(x))


class _Emission:
    """The program of a model whose maps have the chosen shapes; `values` are the tensors in the shapes that exist."""

    def __init__(self, renaming: _Renaming) -> None:
        self.renaming, self.graph = renaming, renaming.graph
        self.result = TfliteProgram(self.graph, file_ops=tuple(range(len(self.graph.ops))))
        self.values: dict[tuple[int, Shape], int] = {}
        renamed = [self.graph.ops[index].outputs[0] for index in sorted(renaming.renames)]
        ends = self.graph.outputs
        keys = {t: (renaming.first(t), self.graph.tensors[t].shape) for t in (*renamed, *ends)}
        other = [t for t, (first, shape) in keys.items() if shape != self.graph.tensors[first].shape]
        self.named = {keys[t]: t for t in (*other, *ends)}

    def program(self) -> TfliteProgram | None:
        """The program; None where an output of the model would be another tensor too."""
        renaming = self.renaming
        for index, op in enumerate(self.graph.ops):
            if index not in renaming.renames:
                inputs = tuple(self._value(t, alike=index in renaming.alike) for t in op.inputs)
                outputs = tuple(self._new(t, renaming.natural(t)) if t >= 0 else t for t in op.outputs)
                self.result.steps.append(TfliteStep(op.kind, inputs, outputs, index))
        ends = tuple(self._value(t, alike=False) for t in self.graph.outputs)
        return self.result if ends == self.graph.outputs else None

    def _value(self, t: int, *, alike: bool) -> int:
        """The value that holds a tensor in the shape in which it is read, renamed where none does."""
        if t < 0 or self.graph.tensors[t].kind is not Kind.ACTIVATION:
            return t
        shape = self.renaming.kept(t) if alike else self.graph.tensors[t].shape
        first = self.renaming.first(t)
        natural = self.renaming.natural(first)
        if self.graph.producers[first] < 0:
            self.values.setdefault((first, natural), first)  # an input
        if (first, shape) not in self.values:
            x, y = self.values[first, natural], self._new(first, shape)
            self._rename(x, y, natural, shape)
        return self.values[first, shape]

    def _rename(self, x: int, y: int, natural: Shape, shape: Shape) -> None:
        """Appends a rename: that of the model between the same shapes, or a RESHAPE."""
        own = self.graph.producers[y] if y < len(self.graph.tensors) else -1
        before = self.graph.tensors[self.graph.ops[own].inputs[0]].shape if own in self.renaming.renames else None
        if before == natural:
            op = self.graph.ops[own]
            self.result.steps.append(TfliteStep(op.kind, (x, *op.inputs[1:]), (y,), own))
            return
        self.result.steps.append(TfliteStep("RESHAPE", (x, self.result.constant(list(shape))), (y,)))

    def _new(self, t: int, shape: Shape) -> int:
        """A value for a tensor in a shape: a tensor of the model that is the same, or one more."""
        number = self.named.get((t, shape), t if shape == self.graph.tensors[t].shape else -1)
        if number < 0:
            name = f"{self.graph.tensors[t].name}/shape_{'_'.join(map(str, shape))}"
            number = self.result.add(AddedValue(name, t, shape))
        self.values[t, shape] = number
        return number


def _tied(count: int, ties: Iterable[Sequence[int]]) -> list[int]:
    """For each of so many numbers one that stands for all that are tied to it.

    Cost: O(count log count): the fewer change who stands for them. networkx has this, and takes longer to import.
    """
    group = list(range(count))
    members = {number: [number] for number in group}
    for first, *others in filter(None, ties):
        for other in others:
            fewer, more = sorted((group[first], group[other]), key=lambda number: len(members[number]))
            if fewer != more:
                for number in members[fewer]:
                    group[number] = more
                members[more] += members.pop(fewer)
    return group
