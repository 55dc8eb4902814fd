"""Drawn .onnx models as plain C, whole or by rows, beside ONNX Runtime: single nodes of each kind, and small networks.

python tests/sweeps/onnx_c_nodes.py COUNT [KIND...] compares so many of each kind, and exits with 1 if any differs. What
comes before COUNT says how:

* nothing: each in a program of its own, in a layout and by rows, or drawn stages, as its seed draws them
* --together: a hundred in one program, whole, so that ten thousand take minutes; the layouts come in turn
* --modes: each in both layouts and in all modes that it has
* --formulas: nothing is compiled; two readings of the files are compared with each other, in both layouts

Kinds that begin with coded_ are the same nodes quantised by the tools of ONNX Runtime, in its two formats; where every
third begins and ends with conversions these are taken out, so that its inputs and outputs are codes.
"""

from __future__ import annotations

import logging
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.compose
from c_plans import random_stages
from onnx import TensorProto, helper, numpy_helper

from modelplan.checking.verifier.c_execution import execute_network
from modelplan.checking.verifier.network_formulas import formulas_verdict
from modelplan.checking.verifier.session_outputs import take_conversions_out
from modelplan.checking.verifier.verdicts import Skipped
from modelplan.plain_c.onnx_networks.network_reading import NetworkRequest, network_of
from modelplan.plain_c.stated_plan import stated_verdict
from modelplan.plain_c.writing.c_source import c_files
from modelplan.plain_c.writing.plan_data import stated_request
from modelplan.primitives.errors import BrokenPlanError, ModelError
from modelplan.questions.c_fitting import FitCRequest, fit_c

#: Models in one program.
_TOGETHER = 100


class Drawn(random.Random):
    """Models of which the last value is the output."""

    def start(self, shape: Sequence[int]) -> None:
        self.nodes: list[Any] = []
        self.tables: list[Any] = []
        self.input = tuple(shape)
        self.last = "x"

    def values(self, *shape: int, least: float = -1.0) -> np.ndarray[Any, Any]:
        return np.random.default_rng(self.getrandbits(32)).uniform(least, 1.0, shape).astype(np.float32)

    def table(self, values: Any) -> str:
        name = f"t{len(self.tables)}"
        self.tables.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind: str, *inputs: str, first: str | None = None, **attributes: Any) -> str:
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [first or self.last, *inputs], [result], **attributes))
        self.last = result
        return result

    def map(self, least: int = 3, most: int = 12) -> tuple[int, int, int, int]:
        return 1, self.randint(1, 8), self.randint(least, most), self.randint(least, most)

    def channels(self) -> int:
        return self.shape()[1]

    def shape(self) -> tuple[int, ...]:
        """The extents of the last value."""
        extents = self.model().graph.output[0].type.tensor_type.shape.dim
        return tuple(d.dim_value for d in extents)

    def model(self, opset: int = 17) -> onnx.ModelProto:
        """The model so far."""
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.input)
        output = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "drawn", [given], [output], self.tables)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        inferred = onnx.shape_inference.infer_shapes(made)
        if self.last == "x":
            inferred.graph.output[0].CopyFrom(given)
        return inferred


def _windows(d: Drawn, taps: Sequence[int], extents: Sequence[int], *, apart: bool = True) -> dict[str, Any]:
    """Strides, paddings and dilations with which windows fit."""
    given: dict[str, Any] = {"kernel_shape": list(taps), "strides": [d.randint(1, 3) for _ in taps]}
    reach = list(taps)
    padded = d.random() < 0.8
    if apart and padded and d.random() < 0.2:
        given["dilations"] = [d.randint(1, 2) for _ in taps]
        reach = [(t - 1) * a + 1 for t, a in zip(taps, given["dilations"], strict=True)]
    if not padded:
        given["auto_pad"] = d.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    else:
        given["pads"] = [d.randint(0, t - 1) for t in [*taps, *taps]]
    before = given.get("pads", [0] * 2 * len(taps))
    for axis, extent in enumerate(extents):
        if given.get("auto_pad", "").startswith("SAME"):
            continue  # windows always fit
        if extent + before[axis] + before[len(taps) + axis] < reach[axis]:
            return _windows(d, [1] * len(taps), extents, apart=apart)
    return given


def convolution(d: Drawn) -> None:
    if d.random() < 0.15:
        d.start((1, d.randint(1, 6), d.randint(4, 20)))
    else:
        d.start(d.map())
    _, c, *extents = d.input
    taps = [d.randint(1, min(5, e)) for e in extents]
    groups = d.choice([g for g in (1, c, *range(2, c)) if c % g == 0])
    outs = groups * d.randint(1, 4)
    more = [d.table(d.values(outs))] if d.random() < 0.7 else []
    weights, given = d.values(outs, c // groups, *taps), _windows(d, taps, extents)
    inside: Any = (..., *(slice(n) for n in given["kernel_shape"]))
    d.node("Conv", d.table(weights[inside]), *more, group=groups, **given)
    if d.random() < 0.4:
        d.node(*(("Relu",) if d.random() < 0.5 else ("Clip", d.table(np.float32(-0.5)), d.table(np.float32(0.75)))))


def transposed(d: Drawn) -> None:
    d.start(d.map(2, 7))
    _, c, *_ = d.input
    outs, taps, strides = d.randint(1, 5), [d.randint(1, 4) for _ in "hw"], [d.randint(1, 3) for _ in "hw"]
    pads = [d.randint(0, t - 1) for t in taps]
    more = [d.randint(0, s - 1) for s in strides]
    extents = [
        (n - 1) * s + m + t - 2 * p for n, s, m, t, p in zip(d.input[2:], strides, more, taps, pads, strict=True)
    ]
    if min(extents) < 1:
        pads = [0, 0]
    bias = [d.table(d.values(outs))] if d.random() < 0.5 else []
    d.node(
        "ConvTranspose", d.table(d.values(c, outs, *taps)), *bias, strides=strides, pads=[*pads, *pads],
        output_padding=more, kernel_shape=taps,
    )  # fmt: skip


def pool(d: Drawn) -> None:
    d.start(d.map())
    if d.random() < 0.1:
        d.node("AveragePool", kernel_shape=d.input[2:])
        return
    taps = [d.randint(1, min(4, e)) for e in d.input[2:]]
    if d.random() < 0.5:
        d.node("MaxPool", **_pool_windows(d, taps))
    else:
        d.node("AveragePool", count_include_pad=d.randint(0, 1), **_pool_windows(d, taps))


def _pool_windows(d: Drawn, taps: Sequence[int]) -> dict[str, Any]:
    """Windows that ONNX Runtime pools, which pads nothing by less than nothing."""
    given = _windows(d, taps, d.input[2:], apart=False)
    if given.get("auto_pad", "").startswith("SAME"):
        given["strides"] = [min(pair) for pair in zip(given["strides"], given["kernel_shape"], strict=True)]
    return given


def mean(d: Drawn) -> None:
    d.start(d.map())
    kind = d.choice(("GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceL1"))
    if kind.startswith("Global"):
        d.node(kind)
    else:
        d.node(kind, axes=d.choice(([2, 3], [1], [3], [-1], [1, 2, 3])), keepdims=d.randint(0, 1))


def product(d: Drawn) -> None:
    lines, deep, outs = d.randint(1, 4), d.randint(1, 30), d.randint(1, 12)
    d.start((lines, deep))
    if d.random() < 0.5:
        turned = d.randint(0, 1)
        shape = (outs, deep) if turned else (deep, outs)
        more = [d.table(d.values(outs))] if d.random() < 0.7 else []
        factors: dict[str, Any] = {"alpha": 0.5, "beta": 2.0} if d.random() < 0.2 else {}
        d.node("Gemm", d.table(d.values(*shape)), *more, transB=turned, **factors)
    else:
        d.node("MatMul", d.table(d.values(deep, outs)))
        if d.random() < 0.5:
            d.node("Add", d.table(d.values(outs)))


def flattened(d: Drawn) -> None:
    d.start(d.map(2, 6))
    convolved(d)
    d.node("Flatten") if d.random() < 0.5 else d.node("Reshape", d.table(np.array([1, -1], np.int64)))
    size = int(np.prod(d.shape()))
    d.node("Gemm", d.table(d.values(5, size)), d.table(d.values(5)), transB=1)


def convolved(d: Drawn) -> None:
    """A convolution, so that channels stand last."""
    c, outs = d.channels() if d.last != "x" else d.input[1], d.randint(1, 6)
    d.node("Conv", d.table(d.values(outs, c, 3, 3)), pads=[1, 1, 1, 1])


def element_wise(d: Drawn) -> None:
    d.start(d.choice((d.map(), (d.randint(1, 3), d.randint(1, 9)))))
    if len(d.input) == 4:
        convolved(d)
    shape = d.shape() if d.nodes else d.input
    kind = d.choice(("Add", "Sub", "Mul", "Div", "Max", "Min"))
    other = tuple(n if d.random() < 0.6 else 1 for n in shape)[d.randint(0, 1) if d.random() < 0.3 else 0 :]
    d.node(kind, d.table(d.values(*other, least=0.25)))


def residual(d: Drawn) -> None:
    d.start(d.map())
    convolved(d)
    skip, outs = d.last, d.channels()
    d.node("Conv", d.table(d.values(outs, outs, 3, 3)), pads=[1, 1, 1, 1])
    d.node(d.choice(("Add", "Mul")), skip)
    if d.random() < 0.5:
        d.node("Relu")


def unary(d: Drawn) -> None:
    d.start(d.map())
    if d.random() < 0.5:
        convolved(d)
    kind = d.choice(
        ("Sigmoid", "Tanh", "Relu", "LeakyRelu", "Elu", "HardSwish", "HardSigmoid", "Abs", "Exp", "Neg", "Softplus",
         "Erf", "Clip", "PRelu", "Floor", "Ceil", "Selu", "Softsign")
    )  # fmt: skip
    if kind == "PRelu":
        d.node(kind, d.table(d.values(d.channels() if d.nodes else d.input[1], 1, 1)))
    elif kind == "Clip":
        d.node(kind, d.table(np.float32(-0.25)), d.table(np.float32(0.5)))
    else:
        slope: dict[str, Any] = {"alpha": d.uniform(0.2, 2.0)} if kind == "Elu" and d.random() < 0.5 else {}
        d.node(kind, **slope)


def softmax(d: Drawn) -> None:
    d.start(d.choice((d.map(), (d.randint(1, 3), d.randint(1, 9)))))
    if len(d.input) == 4:
        convolved(d)
        d.node("Softmax", axis=d.choice((1, -1, 3)))
    else:
        d.node("Softmax", axis=-1)


def moved(d: Drawn) -> None:
    d.start(d.map(4, 8))
    convolved(d)
    c, h, w = d.shape()[1:]
    kind = d.choice(("Transpose", "Reshape", "Slice", "Pad", "Split", "Gather", "Squeeze", "Concat", "Flatten"))
    if kind == "Transpose":
        order = d.sample(range(4), 4)
        d.node(kind, perm=order)
    elif kind == "Reshape":
        d.node(kind, d.table(np.array(d.choice(((1, c, h * w), (1, -1), (1, c * h, w), (c, h, w))), np.int64)))
    elif kind == "Slice":
        axis = d.randint(1, 3)
        extent = (1, c, h, w)[axis]
        first = d.randint(0, extent - 1)
        tables = ([first], [d.randint(first + 1, extent)], [axis], [d.choice((1, 1, 2))])
        d.node(kind, *(d.table(np.array(v, np.int64)) for v in tables))
    elif kind == "Pad":
        pads = np.array([0, d.randint(0, 1), d.randint(0, 2), 1, 0, 0, 1, d.randint(0, 2)], np.int64)
        d.node(kind, d.table(pads), mode=d.choice(("constant", "reflect")) if c > 1 else "constant")
    elif kind == "Split":
        axis = d.choice([a for a, n in ((1, c), (2, h), (3, w)) if n > 1])
        extent = (1, c, h, w)[axis]
        sizes = np.array([1, extent - 1], np.int64)
        names = [f"s{k}" for k in range(2)]
        d.nodes.append(helper.make_node(kind, [d.last, d.table(sizes)], names, axis=axis))
        d.last = names[d.randint(0, 1)]
        d.node("Relu")
    elif kind == "Gather":
        axis = d.randint(1, 3)
        extent = (1, c, h, w)[axis]
        d.node(kind, d.table(np.array([d.randint(0, extent - 1) for _ in range(3)], np.int64)), axis=axis)
    elif kind == "Squeeze":
        d.node(kind, d.table(np.array([0], np.int64)))
    elif kind == "Concat":
        other = d.node("Relu", first="v0")
        d.node(kind, "v0", first=other, axis=d.randint(1, 3))
    else:
        d.node(kind)


def resized(d: Drawn) -> None:
    d.start(d.map(2, 6))
    c, h, w = d.input[1:]
    size = np.array([1, c, h * d.randint(1, 3), w * d.randint(1, 3)], np.int64)
    places = ("asymmetric", "half_pixel", "align_corners")
    mode, place = d.choice([("nearest", p) for p in places[:2]] + [("linear", p) for p in places])
    way = "floor" if place == "asymmetric" else d.choice(("round_prefer_floor", "round_prefer_ceil"))
    more = {"nearest_mode": way} if mode == "nearest" else {}
    d.node("Resize", "", "", d.table(size), mode=mode, coordinate_transformation_mode=place, **more)


def upsampled(d: Drawn) -> None:
    """A map that is made larger between convolutions, as heads of detectors and decoders do."""
    d.start((1, d.randint(1, 4), d.randint(4, 10), d.randint(4, 10)))
    convolved(d)
    d.node("Relu")
    c, h, w = d.shape()[1:]
    size = d.randint(2, 3)
    if d.random() < 0.5:
        place: dict[str, Any] = {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        }
        d.node("Resize", "", "", d.table(np.array([1, c, h * size, w * d.randint(1, 3)], np.int64)), **place)
    else:
        taps = d.randint(1, 5)
        pad = d.randint(0, max(taps - size, 0) // 2)
        more: dict[str, Any] = {
            "output_padding": [d.randint(0, size - 1)] * 2,
            "strides": [size, size],
            "pads": [pad] * 4,
        }
        d.node("ConvTranspose", d.table(d.values(c, d.randint(1, 4), taps, taps)), kernel_shape=[taps, taps], **more)
    convolved(d)
    d.node("Relu")
    convolved(d)


def blocks(d: Drawn) -> None:
    size = d.randint(2, 3)
    if d.random() < 0.5:
        d.start((1, size * size * d.randint(1, 3), d.randint(2, 5), d.randint(2, 5)))
        d.node("DepthToSpace", blocksize=size, mode=d.choice(("DCR", "CRD")))
    else:
        d.start((1, d.randint(1, 3), size * d.randint(1, 4), size * d.randint(1, 4)))
        d.node("SpaceToDepth", blocksize=size)


def normalised(d: Drawn) -> None:
    if d.random() < 0.4:
        d.start(d.choice((d.map(), (1, d.randint(1, 6), d.randint(2, 16)))))
        if len(d.input) == 4 and d.random() < 0.5:
            convolved(d)
        c = d.channels() if d.nodes else d.input[1]
        d.node("InstanceNormalization", d.table(d.values(c)), d.table(d.values(c)))
    elif d.random() < 0.5:
        d.start(d.map())
        c = d.input[1]
        d.node("BatchNormalization", *(d.table(d.values(c, least=0.1)) for _ in range(4)))
    else:
        d.start((1, d.randint(1, 6), d.randint(2, 16)))
        deep = d.input[-1]
        d.node("LayerNormalization", d.table(d.values(deep)), d.table(d.values(deep)), axis=-1)


def chosen(d: Drawn) -> None:
    """Values that are compared and chosen, repeated, bounded by a computed one, and summed."""
    d.start(d.choice((d.map(), (d.randint(1, 3), d.randint(1, 9)))))
    if len(d.input) == 4 and d.random() < 0.5:
        convolved(d)
    value, shape = d.last, d.shape() if d.nodes else d.input
    kind = d.choice(("Where", "Cast", "Clip", "Expand", "Sum", "Mean"))
    if kind in ("Where", "Cast"):
        d.node(d.choice(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")), d.table(np.float32(0.1)))
    if kind == "Cast":
        d.node(kind, to=TensorProto.FLOAT)
    elif kind == "Where":
        d.node(kind, *d.sample([value, d.table(d.values(*shape[1:]))], 2))
    elif kind == "Expand":
        least = d.node("ReduceMin", axes=[1], keepdims=1)
        d.node(kind, d.table(np.array(shape, np.int64)), first=least)
    elif kind == "Clip":
        low, high = (d.node(f"Reduce{k}", keepdims=0, first=value) for k in ("Mean", "Max"))
        half = d.node("Mul", d.table(np.float32(0.5)), first=high)
        d.node(kind, *d.choice(((low, half), (low, ""), ("", half))), first=value)
    else:
        other = d.node("Relu", first=value)
        d.node(kind, other, *d.sample([value, d.table(d.values(*shape[1:]))], d.randint(0, 2)), first=value)


def network(d: Drawn) -> None:
    """Some convolutions, pools, sums and joins, then a head."""
    d.start((1, d.randint(1, 4), d.randint(10, 24), d.randint(10, 24)))
    for _ in range(d.randint(2, 5)):
        c, before = d.channels() if d.last != "x" else d.input[1], d.last
        h, w = (d.shape() if d.last != "x" else d.input)[2:]
        choice = d.random()
        if choice < 0.45 or min(h, w) < 4:
            d.node("Conv", d.table(d.values(d.randint(2, 8), c, 3, 3)), pads=[1, 1, 1, 1])
            d.node("Relu")
        elif choice < 0.6:
            d.node("Conv", d.table(d.values(c, 1, 3, 3)), pads=[1, 1, 1, 1], group=c)
            d.node("Add", before)
        elif choice < 0.7:
            d.node("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
        elif choice < 0.85:
            wide, stride = c * d.randint(2, 6), d.randint(1, 2)
            d.node("Conv", d.table(d.values(wide, c, 1, 1)))
            d.node("Relu")
            d.node("Conv", d.table(d.values(wide, 1, 3, 3)), pads=[1, 1, 1, 1], group=wide, strides=[stride, stride])
            d.node("Relu")
            d.node("Conv", d.table(d.values(d.randint(2, 8), wide, 1, 1)))
        elif choice < 0.95:
            d.node("Conv", d.table(d.values(d.randint(2, 8), c, 3, 3)), pads=[1, 1, 1, 1], strides=[2, 2])
        else:
            one = d.node("Conv", d.table(d.values(3, c, 1, 1)))
            d.node("Conv", d.table(d.values(2, c, 3, 3)), pads=[1, 1, 1, 1], first=before)
            d.node("Concat", one, axis=1)
    if d.random() < 0.6:
        if d.random() < 0.5:
            pads: dict[str, Any] = {"pads": [0, 0, d.randint(0, 1), 1]} if d.random() < 0.2 else {}
            d.node("Conv", d.table(d.values(d.randint(2, 40), d.channels(), 1, 1)), **pads)
            d.node("Relu")
        h, w = d.shape()[2:]
        d.node("GlobalAveragePool") if d.random() < 0.7 else d.node("AveragePool", kernel_shape=[h, w])
        d.node("Flatten")
        d.node("Gemm", d.table(d.values(4, d.shape()[1])), d.table(d.values(4)), transB=1)
        if d.random() < 0.5:
            d.node("Softmax", axis=-1)


DRAWS: dict[str, Callable[[Drawn], None]] = {
    draw.__name__: draw
    for draw in (
        convolution, transposed, pool, mean, product, flattened, element_wise, residual, unary, softmax, moved, resized,
        upsampled, blocks, normalised, chosen, network,
    )
}  # fmt: skip
#: Those whose quantised nodes are compared byte for byte.
CODED = ("convolution", "product", "flattened", "residual", "network")


def quantised(path: Path, target: Path, seed: int, name: str = "x") -> None:
    """The model of a file, quantised by ONNX Runtime's own tools in one of four ways."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    model, draw = onnx.load(path), np.random.default_rng(seed)
    shape = tuple(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim)

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        left = 4

        def get_next(self) -> dict[str, Any] | None:
            self.left -= 1
            return {name: draw.standard_normal(shape).astype(np.float32)} if self.left >= 0 else None

    logging.disable(logging.CRITICAL)
    kinds = QuantType.QInt8 if seed % 2 else QuantType.QUInt8
    made = QuantFormat.QOperator if seed % 4 < 2 else QuantFormat.QDQ
    quantize_static(
        str(path), str(target), Reader(), quant_format=made, per_channel=seed % 8 < 4, activation_type=kinds,
        weight_type=QuantType.QInt8,
    )  # fmt: skip


@dataclass(frozen=True)
class Way:
    """How C is written: `pushed` is the input row by row; `drawn` stages have parts, tiles and operators again."""

    layout: str = "nchw"
    pushed: bool = False
    drawn: bool = False
    whole: bool = False


#: Ways that are told apart, those with rows only for maps.
MODES = (Way(whole=True), Way("nhwc", whole=True), Way(), Way("nhwc"), Way(drawn=True), Way("nhwc", drawn=True))
PUSHED = (Way("nhwc", pushed=True), Way("nhwc", pushed=True, drawn=True))


def drawn(kind: str, seed: int, folder: Path, *, coded: bool = False) -> tuple[Path, Drawn]:
    """The file of a drawn model, `coded` one that ONNX Runtime's tools quantised, and what drew it."""
    d, path = Drawn(f"{kind} {seed}"), folder / f"drawn{seed}.onnx"
    DRAWS[kind](d)
    onnx.save(d.model(), path)
    if coded:
        quantised(path, folder / f"coded{seed}.onnx", seed)
        path = folder / f"coded{seed}.onnx"
        if seed % 3 == 2:
            take_conversions_of_ends_out(path)
    return path, d


def take_conversions_of_ends_out(path: Path) -> None:
    """Leaves codes at the ends of a file, where all of them are converted."""
    model = onnx.load(path)
    with suppress(Skipped):
        take_conversions_out(model)
        onnx.save(model, path)


def compare(kind: str, seed: int, folder: Path, *, coded: bool = False) -> str:
    """What happened to a drawn model: "equal", "refused: ..." or "DIFFERS: ..."."""
    path, d = drawn(kind, seed, folder, coded=coded)
    pushed = d.random() < 0.4 and len(d.input) == 4
    layout = "nhwc" if pushed or d.random() < 0.3 else "nchw"
    return executed(path, Way(layout, pushed, drawn=d.random() < 0.3), seed)


def compare_modes(kind: str, seed: int, folder: Path, *, coded: bool = False) -> str:
    """What happened to a drawn model in the first way in which it is not equal to ONNX Runtime's, or "equal"."""
    path, d = drawn(kind, seed, folder, coded=coded)
    for way in (*MODES, *(PUSHED if len(d.input) == 4 else ())):
        if (said := executed(path, way, seed)) != "equal":
            return f"{said} ({way})"
    return "equal"


def executed(path: Path, way: Way, seed: int = 0) -> str:
    """What a file computes in C that is written in a way, beside ONNX Runtime, in the words of `compare`."""
    source = path.with_suffix(".c")
    request = FitCRequest(str(path), output=str(source), name="net", layout=way.layout, pushed=way.pushed)
    if way.whole or way.drawn:
        request = replace(request, budget=1 << 40)  # so that the first rung will do
    try:
        chosen = fit_c(request).chosen
    except BrokenPlanError as problem:
        return f"DIFFERS: {problem}"
    except ModelError as problem:
        return f"refused: {problem}"
    assert chosen is not None
    files = chosen.files
    if way.drawn:
        plan, operators = random_stages(chosen.model, random.Random(f"{seed} {way}"), pushed=way.pushed)
        files = c_files(chosen.model.file, operators, plan, chosen.names)
        verdict = stated_verdict(chosen.model, files.source, files.header)
        if verdict.outcome != "ok":
            return f"DIFFERS: {verdict.details}"
    source.write_text(files.source)
    source.with_suffix(".h").write_text(files.header)
    try:
        execute_network(str(path), stated_request(source.read_text()), source, seed)
    except BrokenPlanError as problem:
        return f"DIFFERS: {problem}"
    except Skipped as reason:
        return f"skipped: {reason}"
    except ModelError as problem:  # which ONNX Runtime itself does not run
        return f"not run: {problem}"
    return "equal"


def together(paths: Sequence[Path], target: Path) -> None:
    """Writes a model of those of files, which have nothing to do with each other, to another one."""
    first, *others = (onnx.compose.add_prefix(onnx.load(path), f"{path.stem}_") for path in paths)
    for other in others:
        for part in ("node", "input", "output", "initializer", "value_info"):
            getattr(first.graph, part).extend(getattr(other.graph, part))
        known = {entry.domain for entry in first.opset_import}
        first.opset_import.extend(entry for entry in other.opset_import if entry.domain not in known)
    onnx.save(first, target)


def compare_together(paths: Sequence[Path], way: Way) -> list[str]:
    """What happened to each of many files, in one program where all is well, else in ever smaller ones."""
    if len(paths) == 1:
        return [executed(paths[0], way)]
    whole = paths[0].with_name("together.onnx")
    together(paths, whole)
    if executed(whole, way) == "equal":
        return ["equal"] * len(paths)
    half = len(paths) // 2
    return [*compare_together(paths[:half], way), *compare_together(paths[half:], way)]


def compare_many(kind: str, seeds: Sequence[int], folder: Path, *, coded: bool = False) -> Iterator[tuple[int, str]]:
    """What happened to the drawn models of seeds, a hundred in a program, in both layouts in turn.

    Nothing is left in the folder.
    """
    for number, at in enumerate(range(0, len(seeds), _TOGETHER)):
        some = seeds[at : at + _TOGETHER]
        paths = [drawn(kind, seed, folder, coded=coded)[0] for seed in some]
        yield from zip(some, compare_together(paths, Way("nhwc" if number % 2 else "nchw", whole=True)), strict=True)
        for path in folder.iterdir():
            path.unlink()


def compare_formulas(kind: str, seed: int, folder: Path, *, coded: bool = False) -> str:
    """What both readings of a drawn model's file say of each other, in the words of `compare`."""
    path, _ = drawn(kind, seed, folder, coded=coded)
    for layout in ("nchw", "nhwc"):
        try:
            verdict = formulas_verdict(str(path), network_of(str(path), NetworkRequest(layout=layout)))
        except ModelError as problem:
            return f"refused: {problem}"
        if verdict.outcome != "ok":
            return f"{'DIFFERS' if verdict.outcome == 'broken' else verdict.outcome}: {verdict.details}"
    return "equal"


#: How each model is compared by itself, by the option that asks for it.
_HOW = {"": compare, "--modes": compare_modes, "--formulas": compare_formulas}


def main(arguments: Sequence[str]) -> int:
    how = arguments[0] if arguments[0].startswith("--") else ""
    arguments = arguments[bool(how) :]
    count, kinds = int(arguments[0]), arguments[1:] or [*DRAWS, *(f"coded_{kind}" for kind in CODED)]
    wrong = 0
    for name in kinds:
        kind, coded = name.removeprefix("coded_"), name.startswith("coded_")
        found = Counter[str]()
        for seed, said in _answers(how, kind, range(count), coded=coded):
            word = said.partition(":")[0]
            found[word] += 1
            if word != "equal":
                print(f"  {name} {seed}: {said[:300]}", flush=True)
        wrong += found["DIFFERS"]
        print(f"{name}: {', '.join(f'{n} {word}' for word, n in sorted(found.items()))}", flush=True)
    return int(wrong > 0)


def _answers(how: str, kind: str, seeds: Sequence[int], *, coded: bool) -> Iterator[tuple[int, str]]:
    with tempfile.TemporaryDirectory() as name:
        if how == "--together":
            yield from compare_many(kind, seeds, Path(name), coded=coded)
            return
        for seed in seeds:
            with tempfile.TemporaryDirectory(dir=name) as folder:
                yield seed, _HOW[how](kind, seed, Path(folder), coded=coded)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
