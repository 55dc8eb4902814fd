"""Single operators with generated parameters: what plain C computes, whole or in slices of rows, and what TFLM does.

Many operators that have nothing to do with each other are in one model, so that one program runs them all:
python tests/sweeps/c_operators.py COUNT [KIND...] compares so many of each kind, and exits with 1 if any differs. One
program of four has sanitizers, which take as long to compile as all else does.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from tflm_models import Op, S, T, build, ints

from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.plain_c.operator_calls.expressions import EXPRESSIONS
from modelplan.runtimes.tflm.runner import tflm_values

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from standalone_c import SANITIZERS, CNetwork

_BATCH = 500
SCHEMA_TYPES = {name: code for code, name in DTYPES.items()}
#: Expressions of one operand.
_OF_ONE = {kind for kind, found in EXPRESSIONS.items() if not any("y" in e.text for e in found)}


@dataclass(frozen=True)
class Single:
    """One operator: sources that are no constants become inputs of the model."""

    kind: str
    sources: tuple[T | None, ...]
    results: tuple[T, ...]
    table: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    places: int = 0  # that whole numbers of 32 bits, which are fed, may name


class Drawn(random.Random):
    """Shapes, of maps with `most_channels` at most, scales and constants."""

    most_channels = 9

    def shape(self, least: int = 1, most: int = 9) -> tuple[int, int, int, int]:
        batch = 1 if self.random() < 0.85 else 2
        return (batch, self.randint(least, most), self.randint(least, most), self.randint(1, self.most_channels))

    def scale(self) -> float:
        return float(np.float32(10 ** self.uniform(-2.5, -0.5)))

    def zero(self) -> int:
        return self.choice((self.randint(-128, 127), -128, 0, 127))

    def tensor(self, shape: Sequence[int], like: T | None = None, dtype: str = "int8") -> T:
        if like is not None:
            return replace(like, shape=tuple(shape), values=None)
        return T(dtype, tuple(shape), scales=(self.scale(),), zero=self.zero() if dtype == "int8" else 0)

    def constant(self, t: T) -> T:
        low, high = (-127, 127) if self.random() < 0.9 else (-128, 127)
        values = np.random.default_rng(self.getrandbits(32)).integers(low, high + 1, t.shape)
        return replace(t, values=values.astype(t.dtype).tobytes())

    def weights(self, t: T, source: T) -> T:
        """Constants of 8 bits, and beside maps of 8 bits some of 4, two in a byte."""
        if source.dtype != "int8" or self.random() < 0.85:
            return self.constant(t)
        values = np.random.default_rng(self.getrandbits(32)).integers(-7, 8, t.shape).ravel() & 15
        pairs = np.append(values, 0)[: (values.size + 1) // 2 * 2].reshape(-1, 2)
        return replace(t, dtype="int4", values=(pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8).tobytes())

    def bias(self, count: int, size: float) -> T:
        values = [int(self.gauss(0, size)) for _ in range(count)]
        return T("int32", (count,), values)


def _window(d: Drawn, extent: int, same: bool, most: int = 4) -> tuple[int, int, int, int]:
    """Reach, stride, dilation and how many results, along one axis."""
    reach, stride, dilation = d.randint(1, most), d.randint(1, 3), d.choice((1, 1, 1, 2, 3))
    span = (reach - 1) * dilation + 1
    if same:
        return reach, stride, dilation, -(-extent // stride)
    if span > extent:
        reach, dilation, span = min(reach, extent), 1, min(reach, extent)
    return reach, stride, dilation, (extent - span) // stride + 1


def _convolution(d: Drawn, kind: str) -> Single:
    same = d.random() < 0.5
    batch, height, width, channels = d.shape()
    kh, sh, dh, rows = _window(d, height, same)
    kw, sw, dw, columns = _window(d, width, same)
    depthwise = kind == "DEPTHWISE_CONV_2D"
    groups = 1 if depthwise else d.choice([g for g in range(1, channels + 1) if channels % g == 0] + [1] * 4)
    out = channels * d.choice((1, 1, 2, 3, 4)) if depthwise else groups * d.randint(1, max(9 // groups, 1))
    source = d.tensor((batch, height, width, channels), dtype=d.choice(("int8", "int8", "int16")))
    shape = (1, kh, kw, out) if depthwise else (out, kh, kw, channels // groups)
    scales = tuple(d.scale() / 10 for _ in range(out if d.random() < 0.7 else 1))
    weights = d.weights(T("int8", shape, scales=scales, zero=0, axis=3 if depthwise else 0), source)
    terms = kh * kw * (1 if depthwise else channels // groups)
    result = result_of_sums(d, source, scales, terms, (batch, rows, columns, out))
    bias = d.bias(out, 3000 * sqrt(terms)) if depthwise or d.random() < 0.9 else None
    if bias and source.dtype == "int16" and (depthwise or d.random() < 0.5):
        bias = replace(bias, dtype="int64")
    options = {"Padding": 0 if same else 1, "StrideH": sh, "StrideW": sw, "FusedActivationFunction": d.randint(0, 3)}
    options |= {"DilationHFactor": dh, "DilationWFactor": dw}
    options |= {"DepthMultiplier": out // channels} if depthwise else {}
    sources = (source, weights, bias) if bias else (source, weights)
    return Single(kind, sources, (result,), "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions", options)


def result_of_sums(d: Drawn, source: T, scales: Sequence[float], terms: int, shape: Sequence[int]) -> T:
    """A result whose scale lets some of the sums saturate."""
    product = source.quantisation[0][0] * max(scales)
    result = d.tensor(shape, dtype=source.dtype)
    return replace(result, scales=(float(np.float32(product * sqrt(terms) * 70 * d.uniform(0.3, 3))),))


def _fully_connected(d: Drawn, kind: str) -> Single:
    lines, depth, out = d.choice((1, 1, 3)), d.randint(1, 40), d.randint(1, 12)
    before = d.choice(((lines,), (lines,), (1, lines), (1, lines, 2), (2, lines)))
    source = d.tensor((*before, depth), dtype=d.choice(("int8", "int8", "int16")))
    scales = tuple(d.scale() / 10 for _ in range(out if d.random() < 0.3 else 1))
    weights = T("int8", (out, depth), scales=scales, zero=0)
    weights = d.weights(weights, source) if len(scales) == 1 else d.constant(weights)
    before = d.choice((before, before, (1, *before), (prod(before),)))
    result = result_of_sums(d, source, scales, depth, (*before, out))
    product = float(np.float32(source.quantisation[0][0]) * np.float32(scales[0]))
    bias = replace(d.bias(out, 3000 * sqrt(depth)), scales=(product,), zero=0)
    if source.dtype == "int16" and d.random() < 0.5:
        bias = replace(bias, dtype="int64")
    sources = (source, weights, bias) if d.random() < 0.8 else (source, weights, None)
    return Single(kind, sources, (result,), "FullyConnectedOptions", {"FusedActivationFunction": d.randint(0, 3)})


def _pool(d: Drawn, kind: str) -> Single:
    same = d.random() < 0.5
    batch, height, width, channels = d.shape()
    kh, sh, _, rows = _window(d, height, same)
    kw, sw, _, columns = _window(d, width, same)
    if not same:
        rows, columns = (height - kh) // sh + 1, (width - kw) // sw + 1
    source = d.tensor((batch, height, width, channels), dtype=d.choice(("int8", "int8", "int16")))
    options = {"Padding": 0 if same else 1, "StrideH": sh, "StrideW": sw, "FusedActivationFunction": d.randint(0, 3)}
    options |= {"FilterHeight": kh, "FilterWidth": kw}
    return Single(kind, (source,), (d.tensor((batch, rows, columns, channels), source),), "Pool2DOptions", options)


def _binary(d: Drawn, kind: str) -> Single:
    shape = d.choice((d.shape(), d.shape(), (d.randint(1, 5), d.randint(1, 20)), (d.randint(1, 30),)))
    dtype = "int8" if kind == "DIV" else d.choice(("int8", "int8", "int16"))
    a, b = d.tensor(shape, dtype=dtype), d.tensor(shape, dtype=dtype)
    if d.random() < 0.5:
        shape = (1, *shape[1:]) if len(shape) == 4 else shape
        a, b = replace(a, shape=shape), replace(b, shape=shape)
        other = tuple(1 if d.random() < 0.5 else n for n in shape)
        a, b = (a, replace(b, shape=other)) if d.random() < 0.6 or kind == "PRELU" else (replace(a, shape=other), b)
    if b.shape[0] == 1 < len(b.shape) and d.random() < 0.3:
        b = replace(b, shape=b.shape[1 + (b.shape[1] == 1 < len(b.shape) - 1) :])
    if kind in ("MAXIMUM", "MINIMUM"):
        b, result = replace(b, scales=a.scales, zero=a.zero), d.tensor(shape, a)
    else:
        result = d.tensor(shape, dtype=dtype)
        size = max(t.quantisation[0][0] for t in (a, b))
        if kind == "DIV":
            size = a.quantisation[0][0] / b.quantisation[0][0] / 5
        if kind in ("MUL", "PRELU"):
            size = a.quantisation[0][0] * b.quantisation[0][0] * (60 if dtype == "int8" else 16000)
        result = replace(result, scales=(float(np.float32(size * d.uniform(0.3, 3))),))
    if kind == "PRELU" and dtype == "int16":
        b = replace(b, dtype="int8", zero=d.zero())
    if kind in ("PRELU", "DIV") or d.random() < 0.3:
        b = d.constant(b)
    if kind == "DIV":  # by 0 TFLM does anything
        b = replace(
            b, zero=d.choice((-128, 127)), values=bytes(int(v) if v not in (127, 128) else 3 for v in b.values or b"")
        )
    table = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}.get(kind, "")
    options = {"FusedActivationFunction": d.randint(0, 3)} if table else {}
    return Single(kind, (a, b), (result,), table, options)


def _unary(d: Drawn, kind: str) -> Single:
    wide = ("LOGISTIC", "TANH", "RELU", "RELU6", "LEAKY_RELU", "SOFTMAX", "ABS")
    dtype = d.choice(("int8", "int16")) if kind in wide else "int8"
    source = d.tensor(d.shape(), dtype=dtype)
    if kind == "RSQRT":
        source = replace(source, zero=-128)  # TFLM ends at a number below 0
    result = d.tensor(source.shape, dtype=dtype)
    fixed = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0), "SOFTMAX": (1 / 256, -128)}
    if dtype == "int16" and kind in fixed:
        result = replace(result, scales=(1 / 32768,))
        power = (1 / 4096, 1 / 2048) if kind == "TANH" else (1 / 4096,)
        source = replace(source, scales=(d.choice((*power, float(np.float32(d.uniform(1e-5, 1e-3))))),))
    elif kind in fixed:
        result = replace(result, scales=(fixed[kind][0],), zero=fixed[kind][1])
    elif kind == "RELU6":
        result = replace(result, scales=source.scales, zero=source.zero)
    else:
        result = replace(result, scales=(float(np.float32(source.quantisation[0][0] * d.uniform(0.3, 3))),))
    if kind == "SOFTMAX":
        shape = d.choice((source.shape, (d.randint(1, 4), d.randint(1, 40))))
        source, result = replace(source, shape=shape), replace(result, shape=shape)
        return Single(kind, (source,), (result,), "SoftmaxOptions", {"Beta": d.choice((1.0, 1.0, 0.5, 2.0))})
    if kind == "LEAKY_RELU":
        return Single(kind, (source,), (result,), "LeakyReluOptions", {"Alpha": d.choice((0.1, 0.3, 1.5, 0.01))})
    return Single(kind, (source,), (result,))


def _expressed(d: Drawn, kind: str) -> Single:
    """An operator that is one expression of C, of operands of one type, some of them repeated or constant."""
    if kind in ("ABS", "RSQRT", "ELU") and d.random() < 0.5:
        return _unary(d, kind)
    count = 3 if kind == "SELECT_V2" else 1 if kind in _OF_ONE else 2
    dtype = d.choice([t for e in EXPRESSIONS[kind] for t in e.types.split()]).replace("float", "float32")
    found = d.choice([e for e in EXPRESSIONS[kind] if dtype.replace("float32", "float") in e.types.split()])
    result = found.result or dtype
    if kind == "CAST":
        narrow = ("int8", "int16") if dtype in ("int8", "int16", "bool") else ()
        result = d.choice(("float32", "int32", *narrow, *(("uint32",) if dtype != "float32" else ())))
    choices: list[tuple[int, ...]] = [d.shape(), d.shape(), (d.randint(1, 5), d.randint(1, 20)), (d.randint(1, 30),)]
    shape = d.choice(choices)
    shapes = [shape] * count
    if count > 1 and kind != "ADD_N" and d.random() < 0.5:
        shape = (1, *shape[1:]) if len(shape) == 4 else shape
        shapes = [shape] * count
        shapes[d.randrange(count)] = tuple(1 if d.random() < 0.5 else n for n in shape)
    types = ["bool", dtype, dtype] if count == 3 else [dtype] * count
    scale = float(np.float32(d.uniform(0.01, 0.9)))
    sources = [replace(d.tensor(s), dtype=t, scales=(float(np.float32(scale * d.uniform(0.5, 1))),))
               for s, t in zip(shapes, types, strict=True)]  # fmt: skip
    sources = [replace(t, zero=0 if t.dtype != "int8" else t.zero) for t in sources]
    size = float(np.float32((scale * 100) ** 2 / 128 * (256 if dtype == "int16" else 1)))
    y = T(result, shape, scales=(size,), zero=d.zero() if result == "int8" else 0)
    sources = [replace(t, scales=()) if t.dtype not in ("int8", "int16") else t for t in sources]
    if not found.scaled and dtype == "int8":
        sources = [replace(t, scales=sources[-1].scales, zero=sources[-1].zero) for t in sources]
        y = replace(y, scales=sources[-1].scales, zero=sources[-1].zero)
    divides = kind in ("FLOOR_DIV", "FLOOR_MOD", "DIV")  # TFLM ends where it is by 0
    if divides or (count > 1 and d.random() < 0.2):
        at = 1 if divides else d.randrange(count)
        values = np.random.default_rng(d.getrandbits(32)).integers(0, 2, shapes[at]) - divides * 1.75
        values = values * 4 if kind == "DIV" else values  # -7 or 1
        sources[at] = replace(sources[at], values=values.astype(sources[at].dtype).tobytes())
    table = f"{kind.capitalize()}Options" if kind in ("ADD", "SUB", "MUL", "DIV", "CAST") else ""
    codes = {"InDataType": SCHEMA_TYPES[dtype], "OutDataType": SCHEMA_TYPES[result]} if kind == "CAST" else {}
    options = {"FusedActivationFunction": 0} if table and kind != "CAST" else codes
    return Single(kind, tuple(sources), (replace(y, scales=() if result not in ("int8", "int16") else y.scales),),
                  table, options)  # fmt: skip


def _quantise(d: Drawn, kind: str) -> Single:
    shape = d.shape()
    pairs = [("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"), ("int8", "int16"), ("int16", "int8")]
    pairs += [("int16", "int16"), ("int32", "int8"), ("int32", "int16"), ("int8", "int32"), ("int16", "int32")]
    pairs += [("float32", "int8"), ("float32", "int16")]
    source, result = d.choice(pairs)
    zeros = {"int8": d.zero(), "uint8": d.randint(0, 255), "int16": 0, "int32": 0}
    scale = d.scale()
    sizes = {"int8": 1.0, "uint8": 1.0, "int16": 1 / 256, "int32": 1 / 2**20}
    a = T(source, shape, scales=(), zero=0)
    if source != "float32":
        a = replace(a, scales=(float(np.float32(scale * sizes[source])),), zero=zeros[source])
    zeros["int8"] = d.zero()
    b = T(result, shape, scales=(float(np.float32(scale * sizes[result] * d.uniform(0.4, 2.5))),), zero=zeros[result])
    return Single(kind, (a,), (b,), "QuantizeOptions")


def _dequantise(d: Drawn, kind: str) -> Single:
    dtype = d.choice(("int8", "uint8", "int16"))
    zero = {"int8": d.zero(), "uint8": d.randint(0, 255), "int16": 0}[dtype]
    shape = d.shape()
    source = T(dtype, shape, scales=(d.scale(),), zero=zero)
    return Single(kind, (source,), (T("float32", shape, scales=()),), "DequantizeOptions")


def _pad(d: Drawn, kind: str) -> Single:
    shape = d.choice((d.shape(), d.shape(), d.shape(), (d.randint(1, 5), d.randint(1, 20))))
    dtype = d.choice(("int8", "int8", "int16", "float32"))
    pads = [(d.randint(0, 3), d.randint(0, 3)) if d.random() < 0.6 else (0, 0) for _ in shape]
    source = d.tensor(shape, dtype=dtype) if dtype != "float32" else T(dtype, shape, scales=())
    result = replace(source, shape=tuple(n + sum(p) for n, p in zip(shape, pads, strict=True)))
    paddings = T("int32", (len(shape), 2), [n for pair in pads for n in pair])
    if kind == "PADV2":
        value = replace(source, shape=(1,), values=[d.randint(-100, 100)])
        return Single(kind, (source, paddings, value), (result,), "PadV2Options")
    return Single(kind, (source, paddings), (result,), "PadOptions")


def _sum_of_all(d: Drawn, kind: str) -> Single:
    """ADD_N of maps of one scale."""
    source = d.tensor(d.choice((d.shape(), (d.randint(1, 5), d.randint(1, 20)))))
    count = d.randint(2, 6)
    result = replace(d.tensor(source.shape), scales=(float(np.float32(source.quantisation[0][0] * d.uniform(0.5, 4))),))
    return Single(kind, tuple(replace(source) for _ in range(count)), (result,), "AddNOptions")


def _concatenation(d: Drawn, kind: str) -> Single:
    shape = d.choice((d.shape(), d.shape(), (d.randint(1, 5), d.randint(1, 20))))
    axis, first = d.randrange(len(shape)), d.tensor(shape)
    parts = [replace(first, shape=(*shape[:axis], d.randint(1, 6), *shape[axis + 1 :])) for _ in range(d.randint(2, 4))]
    if d.random() < 0.2:
        parts[-1] = d.constant(parts[-1])
    total = sum(p.shape[axis] for p in parts)
    result = replace(first, shape=(*shape[:axis], total, *shape[axis + 1 :]))
    return Single(kind, tuple(parts), (result,), "ConcatenationOptions", {"Axis": d.choice((axis, axis - len(shape)))})


def _split(d: Drawn, kind: str) -> Single:
    shape = list(d.shape())
    axis, count = d.randrange(4), d.randint(2, 3)
    sizes = [d.randint(1, 3)] * count if kind == "SPLIT" else [d.randint(1, 4) for _ in range(count)]
    shape[axis] = sum(sizes)
    source = d.tensor(shape)
    results = tuple(replace(source, shape=(*shape[:axis], n, *shape[axis + 1 :])) for n in sizes)
    if kind == "SPLIT":
        return Single(kind, (ints(axis), source), results, "SplitOptions", {"NumSplits": count})
    return Single(kind, (source, ints(*sizes), ints(axis)), results, "SplitVOptions", {"NumSplits": count})


def _strided_slice(d: Drawn, kind: str) -> Single:
    shape = d.shape()
    picks, masks = [], {"BeginMask": 0, "EndMask": 0, "ShrinkAxisMask": 0}
    for axis, n in enumerate(shape):
        begin, end = sorted((d.randint(0, n), d.randint(0, n)))
        begin, end, step = (begin, end, d.choice((1, 1, 2, 3))) if begin < end else (0, n, 1)
        if d.random() < 0.15 and kind == "STRIDED_SLICE":
            begin, end, step = end - 1, begin - 1 if begin else -n - 1, -step
        if d.random() < 0.15:
            masks["BeginMask"] |= 1 << axis
        if d.random() < 0.15:
            masks["EndMask"] |= 1 << axis
        picks.append((begin, end, step))
    if kind == "SLICE":
        sizes = [end - begin for begin, end, _ in picks]
        source = d.tensor(shape)
        result = replace(source, shape=tuple(sizes))
        return Single(kind, (source, ints(*(b for b, _, _ in picks)), ints(*sizes)), (result,), "SliceOptions")
    extents = []
    for axis, (n, (begin, end, step)) in enumerate(zip(shape, picks, strict=True)):
        first = None if masks["BeginMask"] >> axis & 1 else begin
        last = None if masks["EndMask"] >> axis & 1 else end
        extents.append(len(range(n)[slice(first, last, step)]))
    if 0 in extents:
        return _strided_slice(d, kind)
    source = d.tensor(shape)
    if d.random() < 0.3:
        axis = d.randrange(4)
        masks["ShrinkAxisMask"] = 1 << axis
        picks[axis] = (picks[axis][0], picks[axis][1], 1)
        if not 0 <= picks[axis][0] < shape[axis]:
            return _strided_slice(d, kind)
        del extents[axis]
    vectors = [ints(*column) for column in zip(*picks, strict=True)]
    return Single(kind, (source, *vectors), (replace(source, shape=tuple(extents)),), "StridedSliceOptions", masks)


def _transpose(d: Drawn, kind: str) -> Single:
    shape, order = d.shape(), d.sample(range(4), 4)
    source = d.tensor(shape)
    result = replace(source, shape=tuple(shape[axis] for axis in order))
    return Single(kind, (source, ints(*order)), (result,), "TransposeOptions")


def _joined(d: Drawn, kind: str) -> Single:
    """PACK of maps, or UNPACK into them."""
    rank, count = d.randint(1, 3), d.randint(1, 4)
    part = d.tensor([d.randint(1, 6) for _ in range(rank)])
    axis = d.randrange(rank + 1)
    whole = replace(part, shape=(*part.shape[:axis], count, *part.shape[axis:]))
    options = {"Axis": d.choice((axis, axis - rank - 1))}
    parts = tuple(replace(part) for _ in range(count))
    if kind == "PACK":
        return Single(kind, parts, (whole,), "PackOptions", {"ValuesCount": count, **options})
    return Single(kind, (whole,), parts, "UnpackOptions", {"Num": count, **options})


def _rearranged(d: Drawn, kind: str) -> Single:
    """Elements in another order, or several times."""
    source = d.tensor(d.shape())
    n, h, w, c = source.shape
    if kind == "REVERSE_V2":
        return Single(kind, (source, ints(d.randrange(4))), (replace(source),), "ReverseV2Options")
    if kind == "MIRROR_PAD":
        mode = d.randint(0, 1)
        pads = [
            (d.randint(0, k - 1 + mode), d.randint(0, k - 1 + mode)) if d.random() < 0.5 else (0, 0) for k in (h, w)
        ]
        result = replace(source, shape=(n, h + sum(pads[0]), w + sum(pads[1]), c))
        paddings = T("int32", (4, 2), [0, 0, *pads[0], *pads[1], 0, 0])
        return Single(kind, (source, paddings), (result,), "MirrorPadOptions", {"Mode": mode})
    if kind == "GATHER" and d.random() < 0.5:
        return _picked(d, kind)
    if kind == "GATHER":
        axis = d.randrange(4)
        picks = [d.randrange(source.shape[axis]) for _ in range(d.randint(1, 5))]
        result = replace(source, shape=(*source.shape[:axis], len(picks), *source.shape[axis + 1 :]))
        return Single(kind, (source, ints(*picks)), (result,), "GatherOptions", {"Axis": axis})
    if kind == "BROADCAST_TO":
        kept = [extent if d.random() < 0.5 else 1 for extent in source.shape]
        return Single(kind, (replace(source, shape=tuple(kept)), ints(n, h, w, c)), (source,), "BroadcastToOptions")
    block = d.randint(1, 3)
    space, depth = (n, h * block, w * block, c), (n, h, w, c * block * block)
    pair = (space, depth) if kind == "SPACE_TO_DEPTH" else (depth, space)
    name = "SpaceToDepthOptions" if kind == "SPACE_TO_DEPTH" else "DepthToSpaceOptions"
    first, second = (replace(source, shape=shape) for shape in pair)
    return Single(kind, (first,), (second,), name, {"BlockSize": block})


def _picked(d: Drawn, kind: str) -> Single:
    """An operator whose places are fed, or a constant that becomes a result."""
    source = d.tensor(d.shape())
    shape = source.shape
    if d.random() < 0.4:
        source = T("float32", shape, scales=())
    if kind == "FILL":
        value = replace(source, shape=(), values=[d.randint(-9, 9)] if d.random() < 0.5 else None)
        return Single(kind, (ints(*shape), value), (source,), "FillOptions")
    if kind == "SHAPE":
        return Single(kind, (source,), (T("int32", (len(shape),)),), "ShapeOptions", {"OutType": 2})
    if kind == "EMBEDDING_LOOKUP":
        source = d.constant(source) if source.dtype == "int8" else source
        names = T("int32", (d.randint(1, 6),))
        result = replace(source, shape=(names.shape[0], *shape[1:]), values=None)
        return Single(kind, (names, source), (result,), places=shape[0]) if source.dtype != "int8" else _picked(d, kind)
    if kind == "GATHER_ND":
        count, lines = d.randint(1, 4), d.randint(1, 5)
        result = replace(source, shape=(lines, *shape[count:]))
        return Single(kind, (source, T("int32", (lines, count))), (result,), "GatherNdOptions", {}, min(shape[:count]))
    if kind == "DYNAMIC_UPDATE_SLICE":
        part = replace(source, shape=tuple(d.randint(1, n) for n in shape))
        starts = T("int32", (4,), None) if d.random() < 0.7 else ints(*(d.randint(-2, 9) for _ in shape))
        return Single(kind, (source, part, starts), (source,), places=12)
    axis, rank = d.randrange(4), d.randint(1, 2)
    names = T("int32", tuple(d.randint(1, 4) for _ in range(rank)))
    batches = 0
    if d.random() < 0.3 and axis:
        names, batches = replace(names, shape=(shape[0], *names.shape)), 1
    result = replace(source, shape=(*shape[:axis], *names.shape[batches:], *shape[axis + 1 :]))
    options = {"Axis": axis, "BatchDims": batches}
    return Single(kind, (source, names), (result,), "GatherOptions", options, shape[axis])


def _mean(d: Drawn, kind: str) -> Single:
    shape = d.shape()
    axes = d.choice(((1, 2), (2, 1), (1,), (2,), (3,), (2, 3), (1, 2, 3), (-1,), (0, 2), (1, 3), (3, 1), (0, 2, 3)))
    reduced, keep = {axis % 4 for axis in axes}, d.random() < 0.5
    source = d.tensor(shape)
    extents = [1 if axis in reduced else n for axis, n in enumerate(shape) if keep or axis not in reduced]
    size = source.quantisation[0][0] * (prod(shape[a] for a in reduced) / 2 if kind == "SUM" else 1)
    result = replace(d.tensor(extents), scales=(float(np.float32(size * d.uniform(0.3, 2))),))
    if kind.startswith("REDUCE"):
        result = replace(source, shape=tuple(extents))
    return Single(kind, (source, ints(*axes)), (result,), "ReducerOptions", {"KeepDims": keep})


def _running_sum(d: Drawn, kind: str) -> Single:
    source = d.tensor(d.choice((d.shape(), (d.randint(1, 30),))))
    size = source.quantisation[0][0] * d.uniform(0.3, 3)
    options = {"Exclusive": d.random() < 0.5, "Reverse": d.random() < 0.5}
    axis = ints(d.randrange(len(source.shape)))
    result = replace(d.tensor(source.shape), scales=(float(np.float32(size)),))
    return Single(kind, (source, axis), (result,), "CumsumOptions", options)


def _of_lines(d: Drawn, kind: str) -> Single:
    """An operator along the last axis."""
    source = d.tensor(d.choice((d.shape(), (d.randint(1, 5), d.randint(1, 20)))))
    if kind == "LOG_SOFTMAX":
        result = replace(source, scales=(1 / 16,), zero=127)
        return Single(kind, (source,), (result,), "LogSoftmaxOptions")
    result = replace(source, scales=(1 / 128,), zero=0)
    return Single(kind, (source,), (result,), "L2NormOptions", {"FusedActivationFunction": 0})


def _matrices(d: Drawn, kind: str) -> Single:
    dtype = d.choice(("int8", "int8", "int16"))
    batches = d.choice(((), (d.randint(1, 3),), (d.randint(1, 3), d.randint(1, 3))))
    rows, depth, columns = (d.randint(1, 9) for _ in range(3))
    turned = d.random() < 0.4, d.random() < 0.4
    a = (*batches, depth, rows) if turned[0] else (*batches, rows, depth)
    b = (*batches, columns, depth) if turned[1] else (*batches, depth, columns)
    if len(batches) == 1 and d.random() < 0.3:
        a = (1, *a[1:])
    first, second = d.tensor(a, dtype=dtype), d.tensor(b, dtype=dtype)
    result = result_of_sums(d, first, second.quantisation[0], depth, (*batches, rows, columns))
    if d.random() < 0.3:
        second = d.constant(second)
    options = {"AdjX": turned[0], "AdjY": turned[1]}
    return Single(kind, (first, second), (result,), "BatchMatMulOptions", options)


def _batched(d: Drawn, kind: str) -> Single:
    """SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND."""
    n, h, w, c = d.shape(1, 4)
    block = (d.randint(1, 3), d.randint(1, 3))
    whole, parts = (n, h * block[0], w * block[1], c), (n * block[0] * block[1], h, w, c)
    pads = [0, 0, 0, 0]
    if d.random() < 0.6:  # the whole is smaller by what is padded or cropped
        pads = [d.randint(0, (extent - 1) // 2) for extent in whole[1:3] for _ in "ab"]
    whole = (n, whole[1] - sum(pads[:2]), whole[2] - sum(pads[2:]), c)
    source = d.tensor(whole if kind == "SPACE_TO_BATCH_ND" else parts)
    if any(pads) and kind == "SPACE_TO_BATCH_ND":
        source = replace(source, zero=0) if d.random() < 0.5 else T("float32", whole, scales=())
    result = replace(source, shape=parts if kind == "SPACE_TO_BATCH_ND" else whole)
    name = "SpaceToBatchNDOptions" if kind == "SPACE_TO_BATCH_ND" else "BatchToSpaceNDOptions"
    return Single(kind, (source, ints(*block), T("int32", (2, 2), pads)), (result,), name)


def _extreme(d: Drawn, kind: str) -> Single:
    """ARG_MAX or ARG_MIN of numbers of which some are equal."""
    shape = d.choice((d.shape(), d.shape()[1:], d.shape()[2:]))
    axis = d.randrange(len(shape))
    result = T("int32", (*shape[:axis], *shape[axis + 1 :]))
    name = "ArgMaxOptions" if kind == "ARG_MAX" else "ArgMinOptions"
    place = T("int32", (), [d.choice((axis, axis - len(shape)))])
    return Single(kind, (d.tensor(shape), place), (result,), name, {"OutputType": 2})


def _resize(d: Drawn, kind: str) -> Single:
    shape = d.shape()
    size = (d.randint(1, 20), d.randint(1, 20)) if d.random() < 0.6 else (shape[1] * 2, shape[2] * 2)
    source = d.tensor(shape)
    result = replace(source, shape=(shape[0], *size, shape[3]))
    corners = d.random() < 0.3
    options = {"AlignCorners": corners, "HalfPixelCenters": not corners and d.random() < 0.5}
    name = "ResizeBilinearOptions" if kind == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    return Single(kind, (source, ints(*size)), (result,), name, options)


def _svdf(d: Drawn, kind: str) -> Single:
    batch, depth, units, rank, memory = (d.randint(1, n) for n in (2, 12, 6, 3, 6))
    wide = d.choice(("int8", "int16"))
    source = d.tensor((batch, depth))
    features = d.constant(T("int8", (units * rank, depth), scales=(d.scale() / 10,), zero=0))
    times = d.constant(T(wide, (units * rank, memory), scales=(d.scale() / 10,), zero=0))
    product = source.quantisation[0][0] * features.quantisation[0][0] * sqrt(depth) * 70
    kept = float(np.float32(product * d.uniform(0.5, 2) / (256 if wide == "int16" else 1)))
    zero = d.randint(-20, 20) if wide == "int8" else 0
    state = T(wide, (batch, units * rank * memory), scales=(kept,), zero=zero, variable=True)
    summed = float(np.float32(kept) * np.float32(times.quantisation[0][0]))
    bias = replace(d.bias(units, 500), scales=(summed,), zero=0)
    result = replace(d.tensor((batch, units)), scales=(float(np.float32(summed * sqrt(rank * memory) * 70 * 70)),))
    options = {"Rank": rank, "FusedActivationFunction": 0}
    return Single(kind, (source, features, times, bias, state), (result,), "SVDFOptions", options)


def _lstm(d: Drawn, kind: str) -> Single:
    batches, steps, depth, units = (d.randint(1, n) for n in (2, 4, 12, 8))
    major = d.random() < 0.4
    dtype = d.choice(("int8", "int8", "int16"))
    source = d.tensor((steps, batches, depth) if major else (batches, steps, depth), dtype=dtype)

    def weights(wide: int) -> T:
        return d.constant(T("int8", (units, wide), scales=(float(np.float32(d.uniform(0.002, 0.02))),), zero=0))

    gates = [weights(depth) for _ in range(4)] + [weights(units) for _ in range(4)]
    biases = [replace(d.bias(units, 1000), scales=(0.001,), zero=0) for _ in range(4)]
    if dtype == "int16":
        biases = [replace(bias, dtype="int64") for bias in biases]
    hidden = d.tensor((batches, units), dtype=dtype)
    size = float(np.float32(1 / d.uniform(100, 140) / (256 if dtype == "int16" else 1)))
    hidden = replace(hidden, scales=(size,), variable=True)
    cell = T("int16", (batches, units), scales=(2.0 ** -d.randint(10, 13),), zero=0, variable=True)
    sources = (source, *gates, None, None, None, *biases, None, None, hidden, cell, None, None, None, None)
    result = replace(hidden, shape=(*source.shape[:2], units), variable=False)
    options = {"FusedActivationFunction": 4, "TimeMajor": major, "CellClip": d.choice((0.0, 10.0, 1.0))}
    return Single(kind, sources, (result,), "UnidirectionalSequenceLSTMOptions", options)


def _transposed(d: Drawn, kind: str) -> Single:
    same = d.random() < 0.5
    batch, height, width, channels = d.shape(1, 6)
    (kh, kw, out), (sh, sw) = (d.randint(1, 4) for _ in range(3)), (d.randint(1, 3) for _ in range(2))
    rows = height * sh if same else (height - 1) * sh + kh
    columns = width * sw if same else (width - 1) * sw + kw
    source = d.tensor((batch, height, width, channels), dtype=d.choice(("int8", "int8", "int16")))
    scales = tuple(d.scale() / 10 for _ in range(out if d.random() < 0.7 else 1))
    weights = d.constant(T("int8", (out, kh, kw, channels), scales=scales, zero=0))
    result = result_of_sums(d, source, scales, kh * kw * channels, (batch, rows, columns, out))
    bias = replace(d.bias(out, 3000), dtype="int32" if source.dtype == "int8" else "int64")
    extents = ints(*result.shape)
    extents = replace(extents, values=None) if d.random() < 0.2 else extents  # which TFLM's kernel does not read
    sources = (extents, weights, source, bias) if d.random() < 0.7 else (extents, weights, source)
    options = {"Padding": 0 if same else 1, "StrideH": sh, "StrideW": sw}
    return Single(kind, sources, (result,), "TransposeConvOptions", options)


DRAWS: dict[str, Callable[[Drawn, str], Single]] = {
    "CONV_2D": _convolution, "DEPTHWISE_CONV_2D": _convolution, "FULLY_CONNECTED": _fully_connected,
    "TRANSPOSE_CONV": _transposed,
    "AVERAGE_POOL_2D": _pool, "MAX_POOL_2D": _pool,
    "ADD": _binary, "SUB": _binary, "MUL": _binary, "MAXIMUM": _binary, "MINIMUM": _binary, "PRELU": _binary,
    "DIV": _binary,
    **{kind: _expressed for kind in EXPRESSIONS if kind not in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")},
    "LOGISTIC": _unary, "TANH": _unary, "HARD_SWISH": _unary, "LEAKY_RELU": _unary, "RELU": _unary, "RELU6": _unary,
    "SOFTMAX": _unary, "QUANTIZE": _quantise, "DEQUANTIZE": _dequantise, "PAD": _pad, "PADV2": _pad,
    "CONCATENATION": _concatenation, "SPLIT": _split, "SPLIT_V": _split, "STRIDED_SLICE": _strided_slice,
    "SLICE": _strided_slice, "TRANSPOSE": _transpose, "MEAN": _mean, "SUM": _mean,
    "PACK": _joined, "UNPACK": _joined, "REVERSE_V2": _rearranged, "MIRROR_PAD": _rearranged, "GATHER": _rearranged,
    "BROADCAST_TO": _rearranged, "SPACE_TO_DEPTH": _rearranged, "DEPTH_TO_SPACE": _rearranged,
    "ARG_MAX": _extreme, "ARG_MIN": _extreme,
    "REDUCE_MAX": _mean, "REDUCE_MIN": _mean, "CUMSUM": _running_sum, "L2_NORMALIZATION": _of_lines,
    "LOG_SOFTMAX": _of_lines, "BATCH_MATMUL": _matrices, "SPACE_TO_BATCH_ND": _batched, "BATCH_TO_SPACE_ND": _batched,
    "L2_POOL_2D": _pool, "GATHER_ND": _picked, "EMBEDDING_LOOKUP": _picked, "FILL": _picked, "SHAPE": _picked,
    "DYNAMIC_UPDATE_SLICE": _picked,
    "RESIZE_NEAREST_NEIGHBOR": _resize, "RESIZE_BILINEAR": _resize,
    "ADD_N": _sum_of_all, "SVDF": _svdf, "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}  # fmt: skip


#: Kinds whose last operand says which axes or extents.
_STEERED = ("MEAN", "SUM", "ARG_MAX", "ARG_MIN", "REDUCE_MAX", "REDUCE_MIN", "CUMSUM", "RESIZE_BILINEAR")
#: Kinds that are drawn as operators on floats too.
FLOATS = frozenset((
    "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MAX_POOL_2D", "ADD", "SUB", "MUL", "DIV",
    "MAXIMUM", "MINIMUM", "PRELU", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "RELU", "RELU6", "SOFTMAX", "MEAN",
    "SUM", "ARG_MAX", "ARG_MIN", "REDUCE_MAX", "REDUCE_MIN", "CUMSUM", "L2_NORMALIZATION", "BATCH_MATMUL", "L2_POOL_2D",
    "RESIZE_BILINEAR", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM", "ADD_N", "LOG_SOFTMAX", "SVDF",
))  # fmt: skip


def drawn_single(d: Drawn, kind: str) -> Single:
    """An operator of a kind; some have floats instead of quantised numbers."""
    whole = kind in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "DIV") and d.random() < 0.2  # of whole numbers
    found = _expressed(d, kind) if whole else DRAWS[kind](d, kind)
    if whole:
        return found
    if kind not in FLOATS or (d.random() < 0.7 and kind not in ("DIV", "L2_POOL_2D")):
        return found
    rng = np.random.default_rng(d.getrandbits(32))
    indices = (
        sum(t is not None and t.dtype != "int32" for t in found.sources) if kind in _STEERED else len(found.sources)
    )

    def floated(t: T | None) -> T | None:
        if t is None or (kind == "TRANSPOSE_CONV" and t is found.sources[0]):
            return t
        values = None if t.values is None else rng.standard_normal(t.shape).astype(np.float32).tobytes()
        return T("float32", t.shape, values, scales=(), variable=t.variable)

    sources = (*map(floated, found.sources[:indices]), *found.sources[indices:])
    results = tuple(t if t.dtype == "int32" else T("float32", t.shape, scales=()) for t in found.results)
    return replace(found, sources=sources, results=results)


def batch(singles: Sequence[Single]) -> bytes:
    """A model of operators side by side."""
    tensors: list[T] = []
    ops: list[Op] = []
    inputs: list[int] = []
    outputs: list[int] = []
    for single in singles:
        reads = []
        for t in single.sources:
            reads.append(-1 if t is None else len(tensors))
            if t is not None:
                inputs += [] if t.values is not None or t.variable else [len(tensors)]
                tensors.append(t)
        writes = tuple(range(len(tensors), len(tensors) + len(single.results)))
        tensors += single.results
        outputs += writes
        ops.append(Op(single.kind, tuple(reads), writes, single.options, single.table))
    return build(S(tuple(tensors), tuple(ops), tuple(inputs), tuple(outputs)))


def feeds(singles: Sequence[Single], seed: int, runs: int = 3) -> list[list[bytes]]:
    """Inputs for some runs: random numbers, and at last the least and the largest ones."""
    rng = np.random.default_rng(seed)
    found = []
    for run in range(runs):
        fed = []
        sources = ((single, t) for single in singles for t in single.sources)
        for single, t in ((s, t) for s, t in sources if t and t.values is None and not t.variable):
            if single.places and t.dtype == "int32":
                fed.append(rng.integers(0, single.places, t.shape, np.int32).tobytes())
                continue
            if t.dtype == "float32":
                drawn = rng.standard_normal(t.shape) * 3
                drawn = np.where(rng.random(t.shape) < 0.2, np.round(drawn * 2) / 2, drawn)  # some are halves
                fed.append(drawn.astype(np.float32).tobytes())
                continue
            if t.dtype == "bool":
                fed.append(rng.integers(0, 2, t.shape, np.uint8).tobytes())
                continue
            limits = np.iinfo(t.dtype)
            span = (max(limits.min, -(2**30)), min(limits.max, 2**30))
            values = rng.integers(*span, t.shape, endpoint=True)
            if run == runs - 1:
                values = np.where(rng.integers(0, 2, t.shape) == 1, *span)
            fed.append(values.astype(t.dtype).tobytes())
        found.append(fed)
    return found


def differing(singles: Sequence[Single], seed: int, folder: Path, flags: Sequence[str] = SANITIZERS) -> list[Single]:
    """The operators of which plain C computes something else than TFLM, some of them in slices of rows."""
    content, runs = batch(singles), feeds(singles, seed)
    wanted = tflm_values(content, runs, seconds=600)
    owners = [single for single in singles for _ in single.results]
    net = CNetwork(folder, content, flags, random.Random(seed))
    outputs = net.model.subgraphs[0].outputs
    wrong: dict[int, Single] = {}
    for (arrays, _), values in zip(wanted, net.run(runs), strict=True):
        for owner, tensor, array in zip(owners, outputs, arrays, strict=True):
            if values[tensor] != array.tobytes():
                wrong[id(owner)] = owner
    return list(wrong.values())


def sweep(kinds: Sequence[str], count: int, seed: int, folder: Path) -> list[Single]:
    """The operators of these kinds, so many of each, that differ."""
    wrong = []
    drawn = Drawn(seed)
    singles = [drawn_single(drawn, kind) for kind in kinds for _ in range(count)]
    for number, start in enumerate(range(0, len(singles), _BATCH)):
        flags = ["-O1"] if number % 4 else SANITIZERS
        wrong += differing(singles[start : start + _BATCH], seed + start, folder, flags)
    return wrong


def main() -> int:
    """Runs the kinds that are named, or all, and tells which operators differ."""
    wrong = 0
    for kind in sys.argv[2:] or DRAWS:
        with tempfile.TemporaryDirectory() as box:
            bad = sweep([kind], int(sys.argv[1]), 0, Path(box))
        wrong += len(bad)
        print(f"{kind}: {len(bad)} of {sys.argv[1]} differ", flush=True)
        for single in bad[:2]:
            print(f"   {str(single)[:1500]}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
