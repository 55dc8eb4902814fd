"""A slow twin of the core's windows: which rows of an operand output rows need, in Python."""

from __future__ import annotations

from functools import lru_cache

from modelplan.rewriting.stripes.row_windows import IllegalStripeError, InputWindow, Layer, rows_of_window


@lru_cache(maxsize=1 << 16)
def input_window(layer: Layer, a: int, b: int, *, pad: bool) -> InputWindow:
    """The window for output rows [a, b); `pad` prefers explicit padding to rows too many.

    Raises:
        IllegalStripeError: the rows consist of padding alone.
    """
    if layer.kind == "pointwise":
        return InputWindow(a, b, computed=b - a)
    if layer.kind == "grow":
        return _grown(layer, a, b)
    lo, hi = source_rows(layer, a, b)
    first, last = layer.reached(a, b)
    if layer.kind in ("pad", "cut"):
        return InputWindow(lo, hi, lo - first, last - hi, computed=b - a, padded=True)
    if not layer.bordered:
        return InputWindow(lo, hi, computed=b - a)
    if pad and layer.paddable:
        return InputWindow(lo, hi, lo - first, last - hi, computed=b - a, padded=True)
    return _trimmed(layer, a, b, lo, hi)


def source_rows(layer: Layer, a: int, b: int) -> tuple[int, int]:
    """The rows [lo, hi) of an operand that output rows [a, b) are made of, however large a window is.

    Raises:
        IllegalStripeError: the rows consist of padding alone.
    """
    if layer.kind == "pointwise":
        return a, b
    if layer.kind == "grow":
        window = _grown(layer, a, b)
        return window.lo, window.hi
    first, last = layer.reached(a, b)
    lo, hi = max(0, first), min(layer.rows_in, last)
    if lo >= hi:
        raise IllegalStripeError(f"output rows {a} to {b - 1} consist of padding alone")
    return lo, hi


def _grown(layer: Layer, a: int, b: int) -> InputWindow:
    """The window of an enlarging operator: the operand rows that contribute to output rows [a, b)."""
    lo = max(0, -(-(a + layer.above - layer.reach + 1) // layer.stride))
    hi = min(layer.rows_in, (b - 1 + layer.above) // layer.stride + 1)
    computed = (hi - lo) * layer.stride if layer.own else (hi - lo - 1) * layer.stride + layer.reach
    skip = a - lo * layer.stride
    if skip < 0 or skip + b - a > computed:
        raise IllegalStripeError(f"output rows {a} to {b - 1} are not made of rows in a row")
    return InputWindow(lo, hi, skip=skip, computed=computed)


def _trimmed(layer: Layer, a: int, b: int, lo: int, hi: int) -> InputWindow:
    """The cheapest window of at least [lo, hi) in which the operator's own padding makes rows [a, b) as they are.

    In a window of n rows from i0 on the operator makes o = ceil(n / stride) rows and pads p above; its row l is row
    l + (i0 - p + above) / stride of the whole, which must be integral.
    """
    slack = layer.stride + layer.reach
    best: tuple[int, int, InputWindow] | None = None
    for i0 in range(max(0, lo - slack), lo + 1):
        for i1 in range(hi, min(layer.rows_in, hi + slack) + 1):
            skip, computed = rows_of_window(layer, a, b, i0, i1) or (0, 0)
            if computed and (best is None or (computed, i1 - i0) < best[:2]):
                best = computed, i1 - i0, InputWindow(i0, i1, skip=skip, computed=computed)
    if best is None:
        raise IllegalStripeError(f"no window makes output rows {a} to {b - 1} as they are")
    return best[2]
