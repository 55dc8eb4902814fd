"""A graph as its plan sees it: values are runs of bytes, operators make rows of one value from rows of others.

A RESHAPE moves nothing, so its result is the same value with other rows. Since rows are counted in bytes, whoever reads
such a value waits for the bytes of its own rows, whatever the rows of the operator were that made them.

Operators of a chain run together tile by tile. Its last operator computes a part of a row, as others do; the others
compute for each part the tiles that it reads, from the map that the first one reads. Where tiles overlap values are
computed again, and of what is between only tiles are ever in memory. Where one kernel computes both operators of a
chain, the chain is one operator, whose working memory holds a tile of some channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

from modelplan.model import Graph, Kind
from modelplan.model.c_program import Repeat, TileChain
from modelplan.plain_c.kernel_records import AxisWindow, COperator, StateReference, row_axis, rows_of
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.number_types import nbytes

#: Channels of a map between two convolutions that are there at a time, where one operator computes both.
_CHANNELS = 4
#: Kernels that read and make tiles as they do maps.
_TILED = {
    "conv_2d", "depthwise_conv_2d", "average_pool_2d", "max_pool_2d", "float_convolution", "float_pool", "even_pool",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MapWindow:
    """What the rows and the columns of a result read of an operand; without `columns` a row is computed at once."""

    rows: AxisWindow
    columns: AxisWindow | None = None

    def mirrored(self, operand: MapShape, result: MapShape) -> MapWindow:
        """The same window where rows and columns are counted from the end."""
        columns = self.columns.mirrored(operand.columns, result.columns) if self.columns else None
        return MapWindow(self.rows.mirrored(operand.rows, result.rows), columns)


@dataclass(frozen=True, slots=True)
class OperatorRows:
    """How an operator is computed row by row: a window for each dynamic operand, None where it reads all of it.

    `operands` are tensors. `in_place` are the numbers of operands each element of which may lie where the same element
    of the result does; `parts` are (operand, offset) of those that become the result's bytes from there on. `scratch`
    is working memory in bytes. What runs `alone` keeps its place among all operators, since it reads or sets what the
    network remembers. What is `one_kernel` computes several rows in a call, `in_order` one after the other. A `tiled`
    one reads and makes tiles of maps. `rows` are those of a result that it computes, each of several rows of its map;
    0: those of its map. A chain computes `width` columns at a time, and has the bytes of its `tiles` that are
    alive before its last operator runs, and while it runs.
    """

    operands: tuple[int, ...]
    windows: tuple[MapWindow | None, ...]
    by_rows: bool
    in_place: tuple[int, ...] = ()
    scratch: int = 0
    alone: bool = False
    one_kernel: bool = True
    in_order: bool = True
    parts: tuple[tuple[int, int], ...] = ()
    tiled: bool = False
    width: int = 0
    tiles: tuple[int, int] = (0, 0)
    rows: int = 0


@dataclass(frozen=True)
class MapShape:
    """The rows of a tensor: their number, their columns and the bytes of each column."""

    rows: int
    columns: int
    column_bytes: int

    @cached_property
    def row_bytes(self) -> int:
        return self.columns * self.column_bytes

    @cached_property
    def nbytes(self) -> int:
        """The bytes of all rows."""
        return self.rows * self.row_bytes


@dataclass(frozen=True, slots=True)
class RowValue:
    """Bytes that one operator makes, or the caller (-1), and that others read; state is made by nobody (-2)."""

    tensors: tuple[int, ...]
    nbytes: int
    alignment: int
    producer: int
    readers: tuple[int, ...]


@dataclass(frozen=True)
class RowGraph:
    """A graph with its `operators` by number, those that run in this `order`, and the values of its tensors.

    `chains` are the operators that run tile by tile before and with one of the order, by its number. `expanded` are
    those that can compute another one too, with its number; `folded` are those that do. What runs again has a number
    of its own, by which `origins` has that of the model; `repeats` made it. `other_order` is the order of the model's
    operators where it is not the model's.
    """

    graph: Graph
    order: tuple[int, ...]
    operators: Mapping[int, OperatorRows]
    values: tuple[RowValue, ...]
    value_of: Mapping[int, int]
    chains: Mapping[int, tuple[tuple[int, OperatorRows], ...]] = field(default_factory=dict)
    expanded: Mapping[int, tuple[int, OperatorRows]] = field(default_factory=dict)
    folded: Mapping[int, int] = field(default_factory=dict)
    origins: Mapping[int, int] = field(default_factory=dict)
    repeats: tuple[Repeat, ...] = ()
    other_order: tuple[int, ...] = ()
    _shapes: dict[int, MapShape] = field(default_factory=dict, init=False, repr=False, compare=False)

    def shape(self, tensor: int) -> MapShape:
        """The rows of a tensor."""
        if tensor not in self._shapes:
            self._shapes[tensor] = map_shape(self.graph, tensor)
        return self._shapes[tensor]

    def made_shape(self, number: int, tensor: int) -> MapShape:
        """The rows that an operator makes of a result; those that readers see are columns of a single one."""
        shape, rows = self.shape(tensor), self.operators[number].rows
        if rows == 1 and shape.columns == 1:
            return MapShape(1, shape.rows, shape.row_bytes)
        return MapShape(rows, 1, shape.nbytes // rows) if rows not in (0, shape.rows) else shape

    def members(self, number: int) -> tuple[int, ...]:
        """The operators that an operator of the order stands for, itself the last."""
        if number in self.folded:
            return self.folded[number], number
        return tuple(member for member, _ in self.chains.get(number, ())) or (number,)

    def number_in_model(self, number: int) -> int:
        """The number that the model has for an operator."""
        return self.origins.get(number, number)

    def tensor_in_model(self, tensor: int) -> int:
        """The number that the model has for a tensor: that of the result of the operator which recomputes it."""
        producer = self.graph.producers[tensor]
        return self.graph.ops[self.origins[producer]].outputs[0] if producer in self.origins else tensor

    @property
    def all_chains(self) -> tuple[TileChain, ...]:
        """What made this graph of one without chains."""
        runs = [tuple(number for number, _ in members) for members in self.chains.values()]
        runs += [(first, last) for last, first in self.folded.items()]
        return tuple(TileChain(run, self.operators[run[-1]].width) for run in runs)

    @property
    def kept(self) -> frozenset[int]:
        """The values that the caller reads at the end."""
        return frozenset(self.value_of[t] for t in self.graph.outputs if t in self.value_of)


def map_shape(graph: Graph, tensor: int) -> MapShape:
    """The rows of a tensor; those of a map of one image have columns.

    >>> from modelplan.model import Tensor
    >>> map_shape(Graph("", "tflite", (Tensor("x", (1, 4, 6, 8), "int8"),), (), (0,), ()), 0)
    MapShape(rows=4, columns=6, column_bytes=8)
    """
    t = graph.tensors[tensor]
    rows = rows_of(t.shape)
    columns = t.shape[2] if len(t.shape) == 4 and row_axis(t.shape) == 1 else 1
    return MapShape(rows, columns, t.nbytes // (rows * columns))


def operator_rows(operator: COperator) -> OperatorRows:
    """What a plan has to know of an operator in C."""
    windows: list[MapWindow | None] = []
    for operand in operator.operands:
        rows = operand.window if operator.by_rows else None
        columns = AxisWindow() if element_count(operator) else operand.columns
        windows.append(MapWindow(rows, columns if operator.by_columns else None) if rows else None)
    tensors = tuple(operand.tensor for operand in operator.operands)
    places = [place for kernel in operator.kernels for place in (*kernel.operands, kernel.result)]
    alone = any(isinstance(place, StateReference) for place in places)
    one_kernel = len(operator.kernels) == 1
    facts = operator.by_rows, operator.in_place, operator.scratch, alone, one_kernel, operator.in_order, operator.parts
    tiled = one_kernel and len(windows) == 1 and windows[0] is not None and windows[0].columns is not None
    tiled = tiled and operator.kernels[0].source in _TILED
    count = operator.results[0].rows if operator.by_rows else 0
    return OperatorRows(tensors, tuple(windows), *facts, tiled=tiled, rows=count)


def element_count(operator: COperator) -> str:
    """The parameter that says how many elements of a row are computed, each from the same ones of all operands."""
    kernel = operator.kernels[0]
    if not operator.by_columns or len(operator.in_place) != len(operator.operands) or len(operator.kernels) > 1:
        return ""
    if "elements" in kernel.parameters:
        return "elements"
    merged = [kernel.parameters.get(key) for key in ("width", "a_channel", "b_channel")] == [1, 1, 1]
    return "channels" if merged and len(operator.operands) == 2 else ""


def row_graph(
    graph: Graph, operators: Mapping[int, OperatorRows], views: frozenset[int], order: Sequence[int]
) -> RowGraph:
    """The values of a graph; `operators` say how they are computed, `views` are operators that nothing need compute.

    What runs, runs in this `order`.
    """
    root: dict[int, int] = {}
    for index in graph.producers_first:
        op = graph.ops[index]
        if index in views:
            root[op.outputs[0]] = root.get(op.inputs[0], op.inputs[0])
    dynamic = [t for t, tensor in enumerate(graph.tensors) if tensor.kind is not Kind.CONSTANT]
    members: dict[int, list[int]] = {}
    for t in dynamic:
        members.setdefault(root.get(t, t), []).append(t)
    order = tuple(index for index in order if index in operators)
    used = {t for index in order for t in (*operators[index].operands, *graph.ops[index].writes)}
    used |= {*graph.inputs, *graph.outputs}
    heads = [t for t in members if used & set(members[t])]
    value_of = {t: v for v, head in enumerate(heads) for t in members[head]}
    readers: list[list[int]] = [[] for _ in heads]
    for index in order:
        for v in dict.fromkeys(value_of[t] for t in operators[index].operands):
            readers[v].append(index)
    values = []
    for v, head in enumerate(heads):
        tensors = (head, *(t for t in members[head] if t != head))
        made_by = graph.producers[head] if graph.tensors[head].kind is not Kind.STATE else -2
        alignment = max(max(nbytes(graph.tensors[t].dtype, (1,)), 1) for t in tensors)
        values.append(RowValue(tensors, graph.tensors[head].nbytes, alignment, made_by, tuple(readers[v])))
    return RowGraph(graph, order, operators, tuple(values), value_of)


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows [top, bottom) and columns [left, right) of a map; `above` rows of the window that reads it lie above."""

    top: int
    bottom: int
    left: int
    right: int
    above: int = 0

    def read(self, window: MapWindow, shape: MapShape) -> Tile:
        """What of a map an operator reads by a window to compute this tile."""
        top, bottom = window.rows.read(self.top, self.bottom)
        left, right = (window.columns or AxisWindow()).read(self.left, self.right)
        above = max(-top, 0)
        top, bottom, left, right = max(top, 0), min(bottom, shape.rows), max(left, 0), min(right, shape.columns)
        return Tile(min(top, shape.rows), max(bottom, top), left, max(right, left), above)

    @property
    def pixels(self) -> int:
        """How many elements of the map it has, each of all channels."""
        return (self.bottom - self.top) * (self.right - self.left)


def tiles_of(rows: RowGraph, members: Sequence[tuple[int, OperatorRows]], part: Tile) -> list[Tile]:
    """What a chain reads and makes for a part of its last result: a tile of each map, the first one's operand first."""
    tiles = [part]
    for _, operator in reversed(members):
        window = operator.windows[0]
        if window is None:
            raise TypeError("an operator of a chain reads all of its operand")
        tiles.insert(0, tiles[0].read(window, rows.shape(operator.operands[0])))
    return tiles


def with_chains(rows: RowGraph, chains: Iterable[TileChain]) -> RowGraph:
    """The graph with an operator for each chain, in the place of its last one."""
    operators, members, order = dict(rows.operators), dict(rows.chains), list(rows.order)
    folded = dict(rows.folded)
    for chain in chains:
        last = chain.operators[-1]
        if last in rows.expanded:
            folded[last], operators[last] = chain.operators[0], _expanded(rows, chain)
            order.remove(folded[last])
            continue
        members[last] = tuple((number, rows.operators[number]) for number in chain.operators)
        for number in chain.operators[:-1]:
            order.remove(number)
        operators[last] = _joined(rows, chain, members[last])
    return replace(rows, order=tuple(order), operators=operators, chains=members, folded=folded)


def _expanded(rows: RowGraph, chain: TileChain) -> OperatorRows:
    """Both operators of a chain as one, with working memory for so many columns."""
    facts = rows.expanded[chain.operators[-1]][1]
    return replace(facts, width=chain.width, scratch=tile_bytes(rows, facts, chain.width))


def tile_bytes(rows: RowGraph, facts: OperatorRows, columns: int) -> int:
    """The working memory of an operator that computes the one before too, for so many columns at a time."""
    window = facts.windows[0]
    if window is None or window.columns is None:
        raise TypeError("an operator that computes another one reads all of its operand")
    tensor, read = facts.operands[0], (columns - 1) * window.columns.stride + window.columns.reach
    pixels = window.rows.reach * min(read, rows.shape(tensor).columns)
    return nbytes(rows.graph.tensors[tensor].dtype, (_CHANNELS * pixels,))


def _joined(rows: RowGraph, chain: TileChain, members: Sequence[tuple[int, OperatorRows]]) -> OperatorRows:
    """A chain as one operator, with the bytes of tiles that are alive before its last operator runs, and meanwhile."""
    high, wide, room = AxisWindow(), AxisWindow(), list[int]()
    for _, operator in reversed(members):
        window, shape = operator.windows[0], rows.shape(operator.operands[0])
        if window is None or window.columns is None:
            raise TypeError("an operator of a chain reads all of its operand")
        high, wide = _through(window.rows, high), _through(window.columns, wide)
        columns = min((chain.width - 1) * wide.stride + wide.reach, shape.columns)
        room.insert(0, min(high.reach, shape.rows) * columns * shape.column_bytes)
    tiles = room[1:]
    alive = max(a + b for a, b in zip([0, *tiles[:-1]], tiles, strict=True)), tiles[-1]
    operands, windows, rows_made = members[0][1].operands, (MapWindow(high, wide),), members[-1][1].rows
    return OperatorRows(operands, windows, by_rows=True, width=chain.width, tiles=alive, rows=rows_made)


def _through(inner: AxisWindow, outer: AxisWindow) -> AxisWindow:
    """What is read through two windows, of which the outer one reads what the inner one makes."""
    reach = (outer.reach - 1) * inner.stride + inner.reach
    return AxisWindow(reach, outer.stride * inner.stride, outer.before * inner.stride + inner.before)
