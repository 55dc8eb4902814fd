"""TRANSPOSEs that cancel, through operators that treat all axes alike: maps between them keep other orders of axes.

conv -> TRANSPOSE (0, 3, 1, 2) -> LOGISTIC -> PAD -> TRANSPOSE (0, 2, 3, 1) -> conv     as exporters write it
conv ->                           LOGISTIC -> PAD ->                           conv     the same elements

A RESHAPE between two TRANSPOSEs is passed where it keeps axes apart that they put elsewhere, as that of a head from
(1, C, H, W) to (1, C, H * W).
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from math import prod

from modelplan.model import Graph, Kind, Op
from modelplan.ops import facts
from modelplan.ops.access.other_extents import groups
from modelplan.ops.conditions import number, numbers
from modelplan.rewriting.striped_tflite.layers import taken_places
from modelplan.rewriting.striped_tflite.steps import JOIN, TfliteProgram, TfliteStep
from modelplan.rewriting.striped_tflite.writing import newer_operators
from modelplan.rewriting.stripes.stripe_program import AddedValue
from modelplan.runtimes.tflm.file import FileTensor, read_tflite

#: Axis i of what is kept is axis `order[i]` of the tensor.
AxisOrder = tuple[int, ...]
#: Axes of an operand that become axes of an output, as many elements each.
AxisGroups = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
#: Rules of rows whose operators can treat all axes alike.
_ALIKE = frozenset({"pointwise", "pad", "join", "slice"})
#: How often all groups of maps are tried in other orders.
_ROUNDS = 4


def with_fewer_transposes(model: bytes, graph: Graph) -> TfliteProgram | None:
    """The program of a model that keeps maps in the orders of axes that need the fewest bytes transposed.

    `graph` is that of the file `model`. None where no order needs fewer than it does.
    """
    turning = _Turning(graph, read_tflite(model, graph.name).subgraphs[0].tensors, newer_operators(model))
    return _Emission(turning).program() if turning.improve() else None


class _Turning:
    """The choice of an order for each group of maps that operators between them tie together.

    `turns` are the TRANSPOSEs by constants with their orders, `alike` the operators that tie, `reshapes` RESHAPEs with
    the axes that they keep apart. `group` is the group of
    each tensor, named by one of its tensors, and `order` what is chosen for a group, its own where there is none.
    """

    def __init__(self, graph: Graph, tensors: Sequence[FileTensor], newer: Collection[int]) -> None:
        self.graph, self.tensors = graph, tensors
        known = [index for index in range(len(graph.ops)) if index not in newer]
        self.turns = {index: order for index in known if (order := self._turn(index))}
        self.alike = {index for index in known if self._treats_axes_alike(index)}
        self.reshapes = {index: groups for index in known if (groups := self._kept_apart(index))}
        self.group = list(range(len(graph.tensors)))
        for index in sorted(self.alike):
            for a, b in pairwise(self.maps(index)):
                old, new = self.group[a], self.group[b]
                self.group = [new if group == old else group for group in self.group]
        self.order: dict[int, AxisOrder] = {}

    def maps(self, index: int) -> list[int]:
        """What an operator reads and makes that is no constant."""
        op = self.graph.ops[index]
        return [t for t in (*op.reads, *op.writes) if self.graph.tensors[t].kind is not Kind.CONSTANT]

    def _turn(self, index: int) -> AxisOrder | None:
        """The order of a TRANSPOSE by constants of a tensor with at most one scale."""
        op = self.graph.ops[index]
        order = numbers(op, "operand 1") if op.kind == "TRANSPOSE" and len(op.reads) == 2 else None
        if order is None or self.graph.tensors[op.inputs[0]].kind is not Kind.ACTIVATION:
            return None
        x, y = (self.tensors[t] for t in (op.inputs[0], op.outputs[0]))
        if sorted(order) != list(range(len(x.shape))) or y.shape != tuple(x.shape[axis] for axis in order):
            return None
        single = max(x.quantization.scales, x.quantization.zero_points) <= 1
        return order if x.quantization == y.quantization and single else None

    def _kept_apart(self, index: int) -> AxisGroups:
        """The axes that a RESHAPE of one scale keeps apart; none where it mixes them, or is no RESHAPE."""
        op, tensors = self.graph.ops[index], self.graph.tensors
        if op.kind != "RESHAPE" or tensors[op.inputs[0]].kind is not Kind.ACTIVATION:
            return ()
        x, y = (self.tensors[t] for t in (op.inputs[0], op.outputs[0]))
        single = max(x.quantization.scales, x.quantization.zero_points) <= 1 and x.quantization == y.quantization
        return axis_groups(x.shape, y.shape) if single else ()

    def order_before(self, index: int) -> AxisOrder | None:
        """The order of what a RESHAPE reads if it makes the order that is kept, None where no order does."""
        groups, order = {behind[0]: (before, behind) for before, behind in self.reshapes[index]}, list[int]()
        kept = self.kept(self.graph.ops[index].outputs[0])
        while kept:
            before, behind = groups.get(kept[0], ((), ()))
            if not behind or kept[: len(behind)] != behind:
                return None
            order += before
            kept = kept[len(behind) :]
        return tuple(order)

    def _treats_axes_alike(self, index: int) -> bool:
        """Whether an operator computes the same elements on maps whose axes stand in another order."""
        op, tensors = self.graph.ops[index], self.graph.tensors
        row, maps = facts("tflite", op.kind), self.maps(index)
        if row.effects or not op.outputs or len(maps) < 2 or min(op.outputs) < 0:
            return False
        shape = tensors[op.outputs[0]].shape
        if any(tensors[t].kind is not Kind.ACTIVATION or len(tensors[t].shape) != len(shape) for t in maps):
            return False
        if any(max(coding.scales, coding.zero_points) > 1 for t in maps for coding in [self.tensors[t].quantization]):
            return False
        constants = [t for t in op.reads if t not in maps]
        if row.rows == "pointwise":
            return all(self._runs_along_one_axis(t, len(shape)) for t in constants) and all(
                tensors[t].shape == shape for t in maps
            )
        if row.rows == "join":
            return not constants and not op.attribute("fused_activation_function")
        if any(tensors[t].dtype != "int32" for t in constants):
            return False
        if row.group == "split":
            axis = row.parts(self.graph, op) if row.parts else None
            return axis is not None and -len(shape) <= axis < len(shape)
        if row.rows == "slice":
            return taken_places(self.graph, op) is not None
        return op.kind == "PAD" and len(numbers(op, "operand 1") or ()) == 2 * len(shape)

    def _runs_along_one_axis(self, t: int, rank: int) -> bool:
        """Whether a constant of one scale has numbers for the indices of one axis at most, so that turned it stays."""
        shape, coding = self.graph.tensors[t].shape, self.tensors[t].quantization
        return max(coding.scales, coding.zero_points) <= 1 and len(shape) <= rank and sum(n != 1 for n in shape) <= 1

    def kept(self, t: int) -> AxisOrder:
        """The order that is chosen for the group of a tensor."""
        return self.order.get(self.group[t]) or tuple(range(len(self.graph.tensors[t].shape)))

    def natural(self, t: int) -> AxisOrder:
        """The order in which a tensor is made."""
        maker = self.graph.producers[t]
        if maker in self.alike or (maker in self.reshapes and self.order_before(maker)):
            return self.kept(t)
        return tuple(range(len(self.graph.tensors[t].shape)))

    def order_read(self, index: int, t: int) -> AxisOrder | None:
        """The order in which an operator reads a tensor, None for its own."""
        if index in self.reshapes:
            return self.order_before(index)
        return self.kept(t) if index in self.alike else None

    def resolved(self, t: int, order: AxisOrder | None = None) -> tuple[int, AxisOrder]:
        """The tensor before all TRANSPOSEs that a tensor is, and in which order of its axes."""
        order = order or tuple(range(len(self.graph.tensors[t].shape)))
        while (turn := self.turns.get(self.graph.producers[t])) is not None:
            t, order = self.graph.ops[self.graph.producers[t]].inputs[0], tuple(turn[axis] for axis in order)
        return t, order

    def _wanted(self) -> Iterator[tuple[int, AxisOrder]]:
        """What operators but TRANSPOSEs read, and the outputs of the model, in the orders in which they are needed."""
        for index, op in enumerate(self.graph.ops):
            if index not in self.turns:
                for t in self.maps(index)[: -len(op.writes) or None]:
                    yield self.resolved(t, self.order_read(index, t))
        yield from map(self.resolved, self.graph.outputs)

    def transposed(self) -> int:
        """Bytes that are transposed."""
        return sum(self.graph.tensors[t].nbytes for t, order in set(self._wanted()) if order != self.natural(t))

    def improve(self) -> bool:
        """Gives groups other orders while fewer bytes are transposed then; whether it is fewer than in the model."""
        best = self.transposed()
        for _ in range(_ROUNDS if self.turns else 0):
            last = best
            for group, order in self._candidates():
                before = self.order
                self.order = before | {group: order}
                transposed = self.transposed()
                best, self.order = (transposed, self.order) if transposed < best else (best, before)
            if best == last:
                break
        return best < sum(self.graph.tensors[self.graph.ops[i].outputs[0]].nbytes for i in self.turns)

    def _candidates(self) -> Iterator[tuple[int, AxisOrder]]:
        """Groups with orders in which a TRANSPOSE before or behind them is none."""
        for index, turn in self.turns.items():
            x, y = self.graph.ops[index].inputs[0], self.graph.ops[index].outputs[0]
            yield self.group[x], tuple(turn[axis] for axis in self.kept(y))
            yield self.group[y], tuple(turn.index(axis) for axis in self.natural(x))


class _Emission:
    """The program of a model whose maps are kept in chosen orders; `values` are the tensors in the orders that exist.

    `named` are tensors of the model that are others in another order, those at the outputs first.
    """

    def __init__(self, turning: _Turning) -> None:
        self.turning, self.graph = turning, turning.graph
        self.result = TfliteProgram(self.graph, file_ops=tuple(range(len(self.graph.ops))))
        ends = self.graph.outputs
        turned = [self.graph.ops[index].outputs[0] for index in turning.turns]
        resolved = {t: turning.resolved(t) for t in (*turned, *ends)}
        self.named = {key: t for t, key in resolved.items() if t in ends or list(key[1]) != sorted(key[1])}
        self.values: dict[tuple[int, AxisOrder], int] = {}

    def program(self) -> TfliteProgram | None:
        """The program; None where an output of the model would be another tensor too."""
        for index, op in enumerate(self.graph.ops):
            if index in self.turning.alike:
                self._append_turned(index)
            elif index in self.turning.reshapes and self.turning.order_before(index):
                self._append_reshape(index)
            elif index not in self.turning.turns:
                maps = self.turning.maps(index)
                inputs = tuple(self._value(t) if t in maps else t for t in op.inputs)
                outputs = tuple(self._new(t, self.turning.natural(t)) if t >= 0 else t for t in op.outputs)
                self.result.steps.append(TfliteStep(op.kind, inputs, outputs, index))
        return self.result if tuple(map(self._value, self.graph.outputs)) == self.graph.outputs else None

    def _value(self, t: int, order: AxisOrder | None = None) -> int:
        """The value that holds a tensor in an order, transposed where none does."""
        t, order = self.turning.resolved(t, order)
        natural_order = self.turning.natural(t)
        if (t, order) not in self.values and order == natural_order:
            return t  # what operators make that are not turned
        if (t, order) not in self.values:
            x, y = self._value(t, natural_order), self._new(t, order)
            turn = self.result.constant([natural_order.index(axis) for axis in order])
            self.result.steps.append(TfliteStep("TRANSPOSE", (x, turn), (y,)))
        return self.values[t, order]

    def _new(self, t: int, order: AxisOrder) -> int:
        """A value for a tensor in an order: a tensor of the model that is the same, or one more."""
        shape = self.graph.tensors[t].shape
        number = self.named.get((t, order), t if order == tuple(range(len(shape))) else -1)
        if number < 0:
            name = f"{self.graph.tensors[t].name}/axes_{'_'.join(map(str, order))}"
            number = self.result.add(AddedValue(name, t, tuple(shape[axis] for axis in order)))
        self.values[t, order] = number
        return number

    def _append_reshape(self, index: int) -> None:
        """Appends a RESHAPE that makes the order that is kept out of the order that this takes."""
        op = self.graph.ops[index]
        order, y = self.turning.natural(op.outputs[0]), op.outputs[0]
        x = self._value(op.inputs[0], self.turning.order_before(index))
        operands = list(op.inputs[1:])
        if list(order) != sorted(order):
            operands = [self.result.constant([self.graph.tensors[y].shape[axis] for axis in order])]
        self.result.steps.append(TfliteStep(op.kind, (x, *operands), (self._new(y, order),), index))

    def _append_turned(self, index: int) -> None:
        """Appends an operator that treats all axes alike, on its maps as they are kept."""
        op = self.graph.ops[index]
        order, maps = self.turning.kept(op.outputs[0]), self.turning.maps(index)
        by_element = facts("tflite", op.kind).rows == "pointwise"
        constant = self._constant if by_element else lambda t, _: t
        inputs = [self._value(t, order) if t in maps else constant(t, order) for t in op.inputs]
        outputs, source = tuple(self._new(t, order) for t in op.outputs), index
        changes: tuple[tuple[str, int], ...] = ()
        if order != tuple(range(len(order))):
            if op.kind in (JOIN, "STRIDED_SLICE"):  # whose options speak of axes
                source = -1
            if op.kind == JOIN:
                changes = (("axis", order.index(number(op, "axis", 0) % len(order))),)
            for position, words in self._steering(op, order).items():
                inputs[position] = self.result.constant(*words)
        self.result.steps.append(TfliteStep(op.kind, tuple(inputs), outputs, source, changes))

    def _constant(self, t: int, order: AxisOrder) -> int:
        """The numbers of a constant along the axis that its own has in this order; the same where it has one number."""
        shape, rank = self.graph.tensors[t].shape, len(order)
        if t < 0 or self.turning.tensors[t].elements == 1 or order == tuple(range(rank)):
            return t
        if (t, order) not in self.values:
            whole = (*(1,) * (rank - len(shape)), *shape)
            name = f"{self.graph.tensors[t].name}/axes_{'_'.join(map(str, order))}"
            self.values[t, order] = self.result.add(AddedValue(name, t, tuple(whole[axis] for axis in order)))
        return self.values[t, order]

    def _steering(self, op: Op, order: AxisOrder) -> dict[int, tuple[list[int], tuple[int, ...]]]:
        """The constants, by position, with their shapes, that say the same of axes in another order."""
        rank, row = (len(order),), facts("tflite", op.kind)
        if row.group == "split":
            along = row.parts(self.graph, op) if row.parts else 0
            axis = [order.index((along or 0) % len(order))]
            return {0: (axis, ())} if op.kind == "SPLIT" else {2: (axis, ())}
        if op.kind == "PAD":
            pads = numbers(op, "operand 1") or ()
            return {1: ([n for axis in order for n in pads[2 * axis : 2 * axis + 2]], (*rank, 2))}
        if row.rows != "slice":
            return {}
        places, sizes = taken_places(self.graph, op) or [], self.graph.tensors[op.outputs[0]].shape
        begin, size = [places[axis][0] for axis in order], [sizes[axis] for axis in order]
        if op.kind == "SLICE":
            return {1: (begin, rank), 2: (size, rank)}
        step = [places[axis][1] for axis in order]
        end = [at + (n - 1) * s + 1 for at, n, s in zip(begin, size, step, strict=True)]
        return {1: (begin, rank), 2: (end, rank), 3: (step, rank)}


def axis_groups(x: Sequence[int], y: Sequence[int]) -> AxisGroups:
    """The axes of two shapes in as many groups as have equal products; none where axes are left over.

    >>> axis_groups((1, 3, 4, 5), (1, 3, 20))
    (((0,), (0,)), ((1,), (1,)), ((2, 3), (2,)))
    """
    if prod(x) != prod(y) or 0 in x:
        return ()
    pairs = tuple((tuple(range(a, b)), tuple(range(c, d))) for a, b, c, d in groups(tuple(x), tuple(y)))
    return pairs if all(before and behind for before, behind in pairs) else ()
