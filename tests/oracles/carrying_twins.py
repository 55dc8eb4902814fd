"""A slow twin of the core's loops that carry rows: the rows of their maps and the price, one by one in Python."""

from __future__ import annotations

from modelplan.rewriting.striped_tflite.estimating import Cost, Prices
from modelplan.rewriting.striped_tflite.steps import JOIN
from modelplan.rewriting.stripes.carried_rows import CarriedRows
from modelplan.rewriting.stripes.loop_rows import MOST_TILES
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, Layer
from modelplan.rewriting.stripes.stretches import CarryingLayers

#: Numbers of a begin vector.
_RANK = 4


def plain_carrying_price(base: CarryingLayers, across: int, prices: Prices) -> Cost:
    """`estimate_carrying` of estimating.py."""
    return _CarryingEstimate(base, plain_carried_rows(base), prices).cost(across)


def plain_carried_rows(base: CarryingLayers) -> CarriedRows:
    """`carried_rows` of carried_rows.py.

    Raises:
        IllegalStripeError: the stretch has not one map that leaves it, or operators whose rows cannot be carried.
    """
    entries, result = base.ends()
    new_rows = _rows_made(base, result)
    padded = frozenset(op for op in base.ops if _needs_padding(base, op))
    aligned = {base.output(op) for op in base.ops if set(entries) & set(base.row_operands(op))}
    ahead = _as_late_as_read(base, _rows_ahead(base, new_rows, {*aligned, result}), aligned)
    count = (base.height(result) - ahead[result]) // new_rows[result] + 1
    if base.stretch.stripes < 2 or count > MOST_TILES:
        raise IllegalStripeError(f"a loop of {count} iterations")
    return CarriedRows(entries, result, count, new_rows, ahead, _rows_held(base, new_rows, ahead), padded)


def _rows_made(base: CarryingLayers, result: int) -> dict[int, int]:
    """The rows that an iteration makes of each map, in proportion to its height."""
    rows, height = base.stretch.cuts[1], base.height(result)
    new_rows = {}
    for t in base.inner:
        new_rows[t], rest = divmod(rows * base.height(t), height)
        if rest or height % rows or base.stretch.cuts != tuple(range(0, height + 1, rows)):
            raise IllegalStripeError(f"{base.height(t)} rows of a map do not go evenly with {rows} of {height}")
    return new_rows


def _rows_ahead(base: CarryingLayers, new_rows: dict[int, int], aligned: set[int]) -> dict[int, int]:
    """How many rows of each map are there behind iteration 0, negative where the first ones come later.

    Stripes of maps that are `aligned` begin at the border of the map.
    """
    ahead: dict[int, int] = {}
    for op in base.ops:
        layer, y = base.layers[op], base.output(op)
        if layer.kind not in ("pointwise", "window") or layer.places or layer.axes or layer.blocks:
            raise IllegalStripeError(f"{base.graph.label(op)}: its rows cannot be carried")
        inner = [x for x in base.row_operands(op) if x in base.inner]
        if any(new_rows[x] != new_rows[y] * layer.stride for x in inner):
            raise IllegalStripeError(f"{base.graph.label(op)}: its rows are not those of its operand in proportion")
        ahead[y] = min([new_rows[y], *(_rows_of(layer, ahead[x]) for x in inner)])
        if y in aligned:
            ahead[y] -= ahead[y] % new_rows[y]
    return ahead


def _rows_of(layer: Layer, upto: int) -> int:
    """How many rows an operator makes of so many rows of its operand."""
    return (upto + layer.above - layer.reach) // layer.stride + 1


def _as_late_as_read(base: CarryingLayers, ahead: dict[int, int], aligned: set[int]) -> dict[int, int]:
    """`ahead` with maps made no earlier than a reader needs them, so that fewer of their rows wait."""
    needed: dict[int, int] = {}
    for op in reversed(base.ops):
        y, layer = base.output(op), base.layers[op]
        if y in needed and y not in aligned:
            ahead[y] = min(ahead[y], needed[y])
        for x in base.row_operands(op):
            if x in base.inner:
                last = layer.reached(ahead[y] - 1, ahead[y])[1]
                needed[x] = max(needed.get(x, last), last)
    return ahead


def _needs_padding(base: CarryingLayers, op: int) -> bool:
    """Whether an operator pads by itself in the model and must not pad each of its windows.

    Raises:
        IllegalStripeError: it must not, and does not take padding.
    """
    layer = base.layers[op]
    if layer.kind == "pointwise" or not layer.own:
        return False
    outside = layer.above > 0 or layer.reached(0, layer.rows_out)[1] > layer.rows_in
    if (outside or layer.reach > layer.stride) and not layer.paddable:
        raise IllegalStripeError(f"{base.graph.label(op)}: its windows take no padding")
    return outside or layer.reach > layer.stride


def _rows_held(base: CarryingLayers, new_rows: dict[int, int], ahead: dict[int, int]) -> dict[int, int]:
    """The rows of each map that its window must have, so that all rows are there when they are read."""
    held = dict(new_rows)
    for op in base.ops:
        y = base.output(op)
        first, _ = base.layers[op].reached(ahead[y] - new_rows[y], ahead[y])
        for x in base.row_operands(op):
            if x in base.inner:
                held[x] = max(held[x], ahead[x] - first)
    return held


class _CarryingEstimate:
    """The operators of a body in their order, and what each needs."""

    def __init__(self, base: CarryingLayers, rows: CarriedRows, prices: Prices) -> None:
        self.base, self.rows, self.prices = base, rows, prices
        self.row = {t: base.row_bytes(t) for t in (*rows.entries, *base.inner)}
        self.last = {x: op for op in base.ops for x in base.row_operands(op)}
        self.ops, self.tail, self.time = 0, 0, 0.0

    def cost(self, across: int) -> Cost:
        base, rows, prices = self.base, self.rows, self.prices
        windows = sum(rows.held[t] * self.row[t] for t in base.inner if rows.carried(t))
        held: dict[int, int] = {}
        worst = macs = 0
        for kind, new in (("WHILE", 3), ("DYNAMIC_UPDATE_SLICE", 3), ("SLICE", 2), ("SLICE", 2), ("SLICE", 2)):
            self.count(kind, _RANK, 1, new)
        for op in base.ops:
            y = base.output(op)
            copies = sum(self.operand(op, x) for x in base.row_operands(op))
            new_bytes = rows.new_rows[y] * self.row[y]
            whole = base.graph.tensors[y].nbytes
            scratch = prices.scratch(op) * new_bytes // max(1, whole)
            worst = max(worst, sum(held.values()) + max(copies, new_bytes * (not rows.carried(y))) + scratch)
            macs += base.layers[op].row_macs * rows.new_rows[y]
            self.time += prices.time(base.graph, op) * new_bytes / max(1, whole)
            if rows.carried(y):
                self.count(JOIN, 0, 1, 1)
                self.count("SLICE", rows.carried(y) * self.row[y], base.graph.tensors[y].shape[-1], 5)
            else:
                held[y] = new_bytes
            held = {x: size for x, size in held.items() if self.last.get(x) != op}
        count, around = rows.iterations, self.around()
        return Cost(peak=across + windows + worst + around, macs=count * macs, ops=self.ops, tail=self.tail,
                    time=count * (self.time + prices.iteration))  # fmt: skip

    def around(self) -> int:
        """Bytes of the maps around the loop at its beginning or its end, whichever are more."""
        tensors, rows = self.base.graph.tensors, self.rows
        entering = sum(tensors[t].nbytes for t in rows.entries)
        kept = sum(tensors[t].nbytes for t in rows.entries if self.base.is_read_later(t))
        return max(entering, kept + tensors[rows.result].nbytes)

    def operand(self, op: int, x: int) -> int:
        """Bytes of copies of rows that an operator reads."""
        base, rows, shape = self.base, self.rows, self.base.graph.tensors[x].shape
        extent = rows.extent(base.layers[op], base.output(op))
        there = rows.held[x] if x in base.inner else min(extent, base.height(x))
        copied = 0 if x in base.inner else there * self.row[x]
        if copied or (op not in rows.padded and there != extent):
            self.count("SLICE", copied, shape[-1], 2)
        if op not in rows.padded:
            return copied
        wide = (
            self.row[x] * (shape[3 - base.stretch.axis] + sum(base.layers[op].across)) // shape[3 - base.stretch.axis]
        )
        padded = (there + sum(rows.padding(base.layers[op], x, there, extent))) * wide
        self.count("PAD", padded, shape[-1], 1)
        self.count("SLICE", _RANK, 1, 2)
        self.count("GATHER", extent * wide, wide, 1)
        return copied + padded

    def count(self, kind: str, elements: int, width: int, new: int) -> None:
        """Counts one operator that the loop adds, with so many new tensors."""
        self.ops += 1
        self.tail += self.prices.tail(kind, 0, new)
        self.time += self.prices.added(kind, elements, width)
