"""Which rows each operator of a loop's body makes, where rows are carried from one iteration to the next.

Every iteration makes `new_rows` rows of each map and holds them behind the last rows of the iterations before:

    iteration 0   | -2 -1 | 0 1 |          rows of a map in its window of four, of which two are new
    iteration 1         | 0 1 | 2 3 |
    iteration 2             | 2 3 | 4 5 |

An operator whose window reaches further down makes its rows that much later than the one before, so there are some
more iterations than stripes. Rows above a map and below it may hold anything: no row of the result is made of them.
"""

from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, Layer
from modelplan.rewriting.stripes.stretches import CarryingLayers

#: The most iterations of a loop.
_MOST_ITERATIONS = 512


@dataclass(frozen=True)
class CarriedRows:
    """The rows of a loop that carries: `entries` are the maps that it reads, `result` the one that it makes.

    In iteration k the last row of a map that is there is row `new_rows` * k + `ahead` - 1; the last `held` rows up to
    that are in its window, the last `new_rows` of them new. Operators of `padded` have rows of padding where their
    windows lie outside of the map.
    """

    entries: tuple[int, ...]
    result: int
    iterations: int
    new_rows: dict[int, int]
    ahead: dict[int, int]
    held: dict[int, int]
    padded: frozenset[int]

    def carried(self, t: int) -> int:
        """How many rows of a map go from one iteration to the next."""
        return self.held[t] - self.new_rows[t]

    def upto(self, t: int) -> list[int]:
        """For each iteration the row behind the last one of a map that is there."""
        return [self.new_rows[t] * k + self.ahead[t] for k in range(self.iterations)]

    def windows(self, layer: Layer, y: int) -> tuple[list[int], int]:
        """The first operand row of an operator in each iteration, however far outside of the map, and how many rows."""
        return [layer.reached(end - self.new_rows[y], end)[0] for end in self.upto(y)], self.extent(layer, y)

    def extent(self, layer: Layer, y: int) -> int:
        """How many operand rows of an operator make those of an iteration."""
        low, high = layer.reached(0, self.new_rows[y])
        return high - low

    def padding(self, layer: Layer, x: int, there: int, extent: int) -> tuple[int, int]:
        """How many rows of padding an operator has in front of the rows of a map that are there, and behind them.

        `extent` are the rows of its windows. One row of padding serves all of them. Above a map from outside of the
        loop there are no others, so it has rows in front whose places they take: then no row comes before its place.
        """
        lead = layer.above if x in self.entries else 0
        return lead, max(1, extent - lead - there)


def carried_rows(base: CarryingLayers) -> CarriedRows:
    """The rows of the loop of a stretch.

    Raises:
        IllegalStripeError: the stretch has not one map that leaves it, or operators whose rows cannot be carried.
    """
    entries, result = base.ends()
    new_rows = _rows_made(base, result)
    padded = frozenset(op for op in base.ops if _needs_padding(base, op))
    aligned = {base.output(op) for op in base.ops if set(entries) & set(base.row_operands(op))}
    ahead = _as_late_as_read(base, _rows_ahead(base, new_rows, {*aligned, result}), aligned)
    count = (base.height(result) - ahead[result]) // new_rows[result] + 1
    if base.stretch.stripes < 2 or count > _MOST_ITERATIONS:
        raise IllegalStripeError(f"a loop of {count} iterations")
    return CarriedRows(entries, result, count, new_rows, ahead, _rows_held(base, new_rows, ahead), padded)


def _rows_made(base: CarryingLayers, result: int) -> dict[int, int]:
    """The rows that an iteration makes of each map, in proportion to its height."""
    rows, height = base.stretch.cuts[1], base.height(result)
    new_rows = {}
    for t in base.inner:
        new_rows[t], rest = divmod(rows * base.height(t), height)
        if rest or base.stretch.cuts != tuple(range(0, height + 1, rows)):
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
