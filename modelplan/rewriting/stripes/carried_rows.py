"""Which rows each operator of a loop's body makes, where rows are carried, as the core finds them.

Every iteration makes `new_rows` rows of each map and holds them behind the last rows of the iterations before, see
`core/rows/carrying.hpp`.
"""

from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.loop_rows import MOST_TILES
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, Layer
from modelplan.rewriting.stripes.stretches import CarryingLayers
from modelplan.rewriting.stripes.stripe_rows import core_stretch


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
    entries, result = checked_ends(base)
    answer = core_stretch(base).carried_rows(base.stretch.cuts[1], MOST_TILES)
    if isinstance(answer, str):
        raise IllegalStripeError(answer)
    count, maps, padded = answer
    tensors, *numbers = maps.reshape(-1, 4).T.tolist()
    new_rows, ahead, held = (dict(zip(tensors, column, strict=True)) for column in numbers)
    return CarriedRows(entries, result, count, new_rows, ahead, held, frozenset(padded))


def checked_ends(base: CarryingLayers) -> tuple[tuple[int, ...], int]:
    """`ends` of the stretch, if its stripes are even and no operator turns rows.

    Raises:
        IllegalStripeError: they are not, or there are none.
    """
    ends, cuts = base.ends(), base.stretch.cuts
    if cuts != tuple(range(0, cuts[-1] + 1, cuts[1])):
        raise IllegalStripeError("stripes do not go evenly")
    if any(layer.places or layer.axes for layer in base.layers.values()):
        raise IllegalStripeError("rows that are turned cannot be carried")
    return ends
