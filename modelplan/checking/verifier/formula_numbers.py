"""Formulas as numbers: an operator that sums and multiplies does so modulo 2**64, any other one is a random function.

Two networks are computed on the same random numbers. Where all their outputs are equal they state the same formulas,
but for a chance below 2**-40; where one permutes weights otherwise, or has another scale, outputs differ. Codes of 8
bits end in a mark of 16 bits, so that to quantise what was only dequantised gives back the codes.
"""

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.primitives.lazy_records import dataclass

Numbers = npt.NDArray[Any]
Pair = tuple[int, int]
UNLIMITED = (-math.inf, math.inf)
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
#: Numbers are meant modulo 2**64; numpy warns of single ones.
_WRAPPING = np.errstate(over="ignore")
_MARK, _MARKED = np.uint64(0xA53D), np.uint64(0xFFFF)


@_WRAPPING
def mixed(x: Numbers) -> Numbers:
    """A random function of each number."""
    x = (x + _STEP).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return np.asarray(x ^ (x >> np.uint64(31)))


@_WRAPPING
def function(kind: str, *operands: Numbers, **options: object) -> Numbers:
    """A random function of operands at the same place, another one for each kind and options."""
    words = repr((kind, sorted(options.items()))).encode()
    total = np.array(int.from_bytes(hashlib.sha256(words).digest()[:8], "little"), np.uint64)
    for operand in operands:
        total = mixed(total * _STEP + operand)
    return total


@_WRAPPING
def number(values: object) -> Numbers:
    """Constants: 0 and 1 as they are, others as odd numbers."""
    floats = np.asarray(values).astype(np.float64) + 0.0
    odd = mixed(np.ascontiguousarray(floats).view(np.uint64).reshape(floats.shape)) | np.uint64(1)
    return np.where((floats == 0) | (floats == 1), floats, 0).astype(np.uint64) + np.where(
        (floats == 0) | (floats == 1), np.uint64(0), odd
    )


@lru_cache(maxsize=1024)
@_WRAPPING
def share(count: int) -> Numbers:
    """One part of so many; a part of a part is one of their product."""
    total, prime = np.array(1, np.uint64), 2
    while count > 1:
        if prime * prime > count:
            prime = count
        while count % prime == 0:
            count //= prime
            total = total * (function("share", number(prime)) | np.uint64(1))
        prime += 1
    return total


def inverse(x: int) -> Numbers:
    """The inverse of an odd number modulo 2**64."""
    return np.array(pow(int(x), -1, 1 << 64), np.uint64)


def drawn(shape: Sequence[int], seed: int, *, codes: bool = False) -> Numbers:
    """Random numbers of an input."""
    values = mixed(np.arange(math.prod(shape), dtype=np.uint64) + mixed(np.array([seed], np.uint64))).reshape(shape)
    return marked(values) if codes else values


def marked(values: Numbers) -> Numbers:
    """Codes, with their mark."""
    return (values & ~_MARKED) | _MARK


@_WRAPPING
def dequantised(codes: Numbers, scale: object, zero: int) -> Numbers:
    """The numbers that codes stand for."""
    return (codes - number(zero)) * number(scale)


@_WRAPPING
def quantised(x: Numbers, scale: float, zero: int) -> Numbers:
    """Codes of numbers; those of which they were dequantised, where they were."""
    before = x * inverse(int(number(scale))) + number(zero)
    codes = marked(function("quantise", x, scale=np.float32(scale).item(), zero=zero))
    return np.where((before & _MARKED) == _MARK, before, codes)


def limited(x: Numbers, limits: tuple[float, float]) -> Numbers:
    """Numbers within limits."""
    low, high = (float(np.float32(v)) for v in limits)
    return x if limits == UNLIMITED else function("limits", x, low=low, high=high)


def extreme(kind: str, x: Numbers, axes: int | tuple[int, ...], *, keep: bool = False) -> Numbers:
    """The largest or least along axes."""
    return function(kind, mixed(x).sum(axis=axes, dtype=np.uint64, keepdims=keep))


def softmax(x: Numbers, axis: int) -> Numbers:
    """Softmax along an axis."""
    return function("softmax", x, mixed(x).sum(axis=axis, dtype=np.uint64, keepdims=True))


def interpolated(x: Numbers, axis: int, extent: int, placed: str) -> Numbers:
    """An axis of another extent, between two places each; `placed` as ONNX names where they are."""
    had, at = x.shape[axis], np.arange(extent)
    if placed == "align_corners":
        place = at * (had - 1) / max(extent - 1, 1)
    elif placed == "asymmetric":
        place = at * had / extent
    else:
        place = np.maximum((at + 0.5) * had / extent - 0.5, 0)
    first = np.minimum(np.floor(place).astype(int), had - 1)
    shape = [1] * x.ndim
    shape[axis] = extent
    part = number(np.round(place - first, 5)).reshape(shape)
    low, high = x.take(first, axis), x.take(np.minimum(first + 1, had - 1), axis)
    return np.asarray(low + part * (high - low))


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over a map [n, c, h, w]: extents, distances, what is added above and left, and how many there are."""

    taps: Pair
    strides: Pair
    apart: Pair
    before: Pair
    count: Pair

    def parts(self, x: Numbers) -> list[tuple[Pair, Numbers]]:
        """For each place in the windows what stands there in all of them; 0 beside the map."""
        reach = [
            (n - 1) * s + (t - 1) * a + 1
            for n, s, t, a in zip(self.count, self.strides, self.taps, self.apart, strict=True)
        ]
        extents = [max(r, b + n) for r, b, n in zip(reach, self.before, x.shape[2:], strict=True)]
        grown = np.zeros((*x.shape[:2], *extents), np.uint64)
        (top, left), (h, w) = self.before, x.shape[2:]
        grown[:, :, top : top + h, left : left + w] = x
        (a, b), (s, t), (rows, columns) = self.apart, self.strides, self.count
        return [
            ((i, j), grown[:, :, i * a : i * a + (rows - 1) * s + 1 : s, j * b : j * b + (columns - 1) * t + 1 : t])
            for i in range(self.taps[0])
            for j in range(self.taps[1])
        ]

    def products(self, x: Numbers, weights: Numbers, groups: int) -> Numbers:
        """The sums of products with weights [o, i, h, w]."""
        n, results, parts = x.shape[0], weights.shape[0], self.parts(x)
        total = np.zeros((n, groups, results // groups, math.prod(self.count)), np.uint64)
        for (i, j), part in parts:
            matrix = weights[:, :, i, j].reshape(groups, results // groups, -1)
            total += np.matmul(matrix, part.reshape(n, groups, matrix.shape[2], -1))
        return total.reshape(n, results, *self.count)

    def largest(self, x: Numbers) -> Numbers:
        """The largest inside the map."""
        total = np.zeros((*x.shape[:2], *self.count), np.uint64)
        for _, part in self.parts(mixed(x)):
            total += part
        return function("max", total)

    def means(self, x: Numbers, *, whole: bool) -> Numbers:
        """The means of what is inside the map, or of `whole` windows."""
        total = np.zeros((*x.shape[:2], *self.count), np.uint64)
        counts = np.zeros(self.count, int)
        ones = np.ones((1, 1, *x.shape[2:]), np.uint64)
        for (_, part), (_, inside) in zip(self.parts(x), self.parts(ones), strict=True):
            total += part
            counts += 1 if whole else inside[0, 0].astype(int)
        shares = np.array([share(int(c)) for c in counts.ravel()], np.uint64)
        return total * shares.reshape(self.count)

    def spread(self, x: Numbers, weights: Numbers) -> Numbers:
        """The sums that a transposed convolution with weights [i, o, h, w] makes; `count` are its places."""
        n, _, h, w = x.shape
        grown = np.zeros((n, weights.shape[1], *(
            max((e - 1) * s + t, b + c)
            for e, s, t, b, c in zip((h, w), self.strides, self.taps, self.before, self.count, strict=True)
        )), np.uint64)  # fmt: skip
        for i in range(self.taps[0]):
            for j in range(self.taps[1]):
                computed = np.matmul(weights[:, :, i, j].T, x.reshape(n, x.shape[1], -1)).reshape(n, -1, h, w)
                (s, t) = self.strides
                grown[:, :, i : i + (h - 1) * s + 1 : s, j : j + (w - 1) * t + 1 : t] += computed
        (top, left), (rows, columns) = self.before, self.count
        return grown[:, :, top : top + rows, left : left + columns]
