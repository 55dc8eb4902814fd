"""Which rows of an operand a run of output rows needs, free of file formats.

A *row* is a slice along the axis that stripes are cut along: the height of a map, or its width where the height is 1.
A stripe of an operator that pads on its own ("SAME") would be padded at borders that are none. Two ways out:

* *trim*: the operator keeps its padding, gets a window that is a bit larger, and makes some rows too many;
* *pad*: the window is padded explicitly, at the true borders only, and the operator runs without padding.
"""

from typing import Literal

from modelplan.ops.access.spans import same_padding
from modelplan.primitives.lazy_records import dataclass

#: How the rows of an operator depend on those of its operands, see `Layer`.
LayerKind = Literal["window", "pointwise", "pad", "cut", "grow"]


class IllegalStripeError(ValueError):
    """No stripes of this form; says why."""


@dataclass(frozen=True, slots=True)
class Layer:
    """How the output rows of an operator depend on the rows of its operands.

    Of every kind: `operands` are the positions of the operands that have rows, `rows_in` of theirs become `rows_out`,
    each by `row_macs` multiply-accumulates. `axes` are the axes of the rows in these operands, empty where they are
    that of the output; `places` all axes of an operand that become the axes of the output, empty where they are the
    same. What a kind does not use of the rest stays as it is by default:

    * "pointwise" reads the row of the same number: nothing of it.
    * "window" reads `reach` rows, `stride` rows further on for each output row, from `above` rows above the map on.
      `own`: the operator pads by itself, and the other axis by `across`, before and behind; `paddable`: it may be
      padded explicitly in its place; `blocks`: it is given a multiple of `stride` rows. `products` of floats are summed
      up for each of the `columns` that a row of a convolution has, where that matters.
    * "pad" puts `above` rows above the map and the rest of `rows_out` below it.
    * "cut" takes them off again; `above` is negative.
    * "grow" makes `stride` rows of each row, which has a part in `reach` rows from row * `stride` - `above` on. Without
      `own` it makes `reach` rows of the last one.
    """

    kind: LayerKind
    operands: tuple[int, ...]
    rows_in: int
    rows_out: int
    row_macs: int = 0
    reach: int = 1
    stride: int = 1
    above: int = 0
    own: bool = False
    across: tuple[int, int] = (0, 0)
    paddable: bool = True
    axes: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    products: int = 0
    columns: int = 0
    blocks: bool = False

    @property
    def bordered(self) -> bool:
        """Whether the operator pads, so that stripes must not let it pad at their own borders."""
        return self.kind == "window" and self.own and (self.reach > 1 or self.above > 0)

    def reached(self, a: int, b: int) -> tuple[int, int]:
        """The operand's rows behind output rows [a, b), however far they lie outside of the map."""
        return a * self.stride - self.above, (b - 1) * self.stride - self.above + self.reach


@dataclass(frozen=True, slots=True)
class InputWindow:
    """Operand rows [lo, hi), rows to pad `above` and `below` them, and rows made: `skip` too many first.

    `padded` says that the window is padded explicitly (across too), so that the operator itself does not pad.
    """

    lo: int
    hi: int
    above: int = 0
    below: int = 0
    skip: int = 0
    computed: int = 0
    padded: bool = False


def rows_of_window(layer: Layer, a: int, b: int, i0: int, i1: int) -> tuple[int, int] | None:
    """(rows too many first, rows made) where the operator is fed rows [i0, i1); None where that makes [a, b) wrong.

    Rows that it does not need may hold anything. At a true border of the map no row may stand beyond it.
    """
    if layer.kind in ("pad", "cut", "grow") or i0 < 0 or i1 > layer.rows_in:
        return None
    if layer.kind == "pointwise":
        return (a - i0, i1 - i0) if i0 <= a and b <= i1 else None
    n = i1 - i0
    if layer.blocks and n % layer.stride:
        return None
    computed = -(-n // layer.stride) if layer.own else (n - layer.reach) // layer.stride + 1
    above = same_padding(n, computed, layer.reach, layer.stride) // 2 if layer.own else 0
    shift, rest = divmod(i0 - above + layer.above, layer.stride)
    first, last = layer.reached(a, b)
    whole = i0 <= max(0, first) and i1 >= min(layer.rows_in, last)
    return (a - shift, computed) if whole and not rest and shift <= a and b - shift <= computed else None
