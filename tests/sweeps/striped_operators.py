"""Single operators, to be put into stripes: `CASES` has some of each that may stand in a stretch, and of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

#: A map and a sequence, the shapes of what an operator reads where a case says nothing else.
MAP, SEQUENCE = (1, 6, 24, 18), (2, 24, 16)
_FLOAT, _BYTE, _BOOL = 1, 2, 9


@dataclass(frozen=True)
class Case:
    """An operator between two others: `x` and what follows it, constants or shapes of further values, as operands.

    With `pair` it reads a second value, with `positive` what it reads is from 0 to 1, with `cast` of another type.
    `first` constants stand before what it reads. `made` is the shape of its output where onnx does not infer it.
    `refused` is a part of the reason for which it is not computed by rows along `axis`.
    """

    kind: str
    shape: tuple[int, ...] = MAP
    operands: tuple[Any, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    axis: int = 2
    refused: str = ""
    pair: bool = False
    positive: bool = False
    opset: int = 20
    dtype: int = _FLOAT
    domain: str = ""
    cast: int = 0
    first: int = 0
    made: tuple[int, ...] | None = None
    result: int = _FLOAT

    @property
    def name(self) -> str:
        """The case in a word."""
        told = "-".join(f"{key}={value}" for key, value in self.attributes.items())
        return f"{self.kind}-{told}-{self.opset}-{len(self.operands)}-{self.axis}".replace(" ", "")


def _floats(*shape: int) -> Any:
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7 / 7 - 0.3).astype(np.float32)


def _whole(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def model(case: Case) -> Any:
    """An element-wise operator, and the case's operator behind it."""
    nodes, weights = [], []
    first = "Identity" if case.dtype == _BYTE else "Sigmoid" if case.positive else "Relu"
    made = [("a", first), *([("b", "HardSigmoid" if case.cast else "Tanh")] if case.pair else [])]
    for name, kind in made:
        nodes.append(helper.make_node(kind, ["x"], [f"{name}0" if case.cast else name], f"make_{name}"))
        if case.cast:
            nodes.append(helper.make_node("Cast", [f"{name}0"], [name], f"cast_{name}", to=case.cast))
    operands = []
    for number, array in enumerate(case.operands):
        operands.append("" if array is None else f"w{number}")
        if array is not None:
            weights.append(numpy_helper.from_array(np.asarray(array), f"w{number}"))
    operands[case.first : case.first] = [name for name, _ in made]
    nodes.append(helper.make_node(case.kind, operands, ["y"], "op", domain=case.domain, **case.attributes))
    inputs = [helper.make_tensor_value_info("x", case.dtype, list(case.shape))]
    known = case.made is not None
    y = (
        helper.make_tensor_value_info("y", case.result, case.made)
        if known
        else helper.make_empty_tensor_value_info("y")
    )
    graph = helper.make_graph(nodes, "one", inputs, [y], weights)
    opsets = [helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1)]
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, ir_version=9, opset_imports=opsets))


def _unary() -> list[Case]:
    plain = """Acosh Asinh Abs Acos Asin Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish
    LeakyRelu Log Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh
    ThresholdedRelu IsNaN IsInf Identity Dropout"""
    found = [Case(kind, positive=True) for kind in plain.split()]
    found += [Case("Gelu", attributes={"approximate": "tanh"}), Case("LeakyRelu", attributes={"alpha": 0.2})]
    found += [Case(kind, domain="com.microsoft", made=MAP) for kind in ("Gelu", "FastGelu", "QuickGelu")]
    found.append(Case("BiasGelu", SEQUENCE, (_floats(16),), axis=1, domain="com.microsoft", made=SEQUENCE))
    found += [Case("Swish", opset=24), Case("Not", cast=_BOOL), Case("BitwiseNot", cast=_BYTE)]
    return found


def _binary() -> list[Case]:
    found = [Case(kind, pair=True) for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow")]
    found += [Case(kind, pair=True) for kind in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")]
    found += [
        *(Case(kind, pair=True, cast=_BOOL) for kind in ("And", "Or", "Xor")),
        *(Case(kind, pair=True, cast=_BYTE) for kind in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
        Case("BitShift", pair=True, cast=_BYTE, attributes={"direction": "LEFT"}),
        Case("Where", cast=_BOOL, operands=(_floats(6, 24, 18), _floats(1))),
        Case("Add", operands=(_floats(24, 1),)),
        Case("Mul", operands=(_floats(6, 1, 1),)),
        Case("Mod", operands=(_floats(1) + 1,), attributes={"fmod": 1}),
        Case("PRelu", operands=(_floats(6, 1, 1),)),
        Case("PRelu", operands=(_floats(24, 1),)),
        Case("Clip", operands=(np.float32(0.1), np.float32(0.6))),
        Case("Clip", attributes={"min": 0.1, "max": 0.6}, opset=6),
    ]
    return found


def _windows() -> list[Case]:
    pads = [1, 1, 1, 1]
    square: dict[str, Any] = {"kernel_shape": [3, 3], "pads": pads}
    return [
        Case("Conv", operands=(_floats(4, 6, 3, 3), _floats(4)), attributes=square),
        Case("Conv", operands=(_floats(4, 6, 3, 3),), attributes={**square, "strides": [2, 2], "dilations": [2, 2]}),
        Case("Conv", operands=(_floats(6, 1, 5, 3),), attributes={"group": 6, "auto_pad": "SAME_UPPER"}),
        Case("Conv", operands=(_floats(6, 1, 5, 3),), attributes={"group": 6, "auto_pad": "SAME_LOWER"}),
        Case("Conv", (1, 6, 48), (_floats(4, 6, 5),), {"pads": [2, 2]}),
        *(
            Case("AveragePool", attributes={**square, "count_include_pad": n, "strides": [k, k]})
            for n in (0, 1) for k in (1, 2)
        ),
        Case("AveragePool", attributes={"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER", "count_include_pad": 1}),
        Case("AveragePool", attributes={"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [2, 2, 2, 2]}),
        Case("AveragePool", attributes={"kernel_shape": [5, 5], "strides": [2, 2], "ceil_mode": 1}, refused="beyond"),
        Case("MaxPool", attributes={**square, "strides": [2, 2]}),
        Case("MaxPool", attributes={"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        Case("LpPool", attributes={**square, "p": 2}),
        Case("ConvTranspose", operands=(_floats(6, 4, 2, 2),), attributes={"strides": [2, 2]}),
        Case("ConvTranspose", operands=(_floats(6, 4, 4, 4),), attributes={"strides": [2, 2], "pads": pads}),
        Case(
            "ConvTranspose", operands=(_floats(6, 4, 3, 3), _floats(4)),
            attributes={"strides": [2, 2], "pads": pads, "output_padding": [1, 1]},
        ),
        Case("ConvTranspose", operands=(_floats(6, 4, 3, 3),), attributes={"strides": [2, 2]}, refused="height"),
        Case(
            "ConvTranspose", operands=(_floats(6, 4, 3, 3),), attributes={"strides": [2, 2], "auto_pad": "SAME_UPPER"},
            refused="padding depends",
        ),
        Case("GlobalAveragePool", refused="rows", axis=2),
        Case("GlobalMaxPool", refused="rows", axis=2),
    ]  # fmt: skip


def _norms() -> list[Case]:
    channels = (_floats(6) + 1, _floats(6))
    return [
        Case("BatchNormalization", operands=(*channels, _floats(6), _floats(6) + 1)),
        Case("LRN", attributes={"size": 3}),
        Case("InstanceNormalization", operands=channels, refused="all rows"),
        Case(
            "GroupNormalization",
            operands=channels,
            attributes={"num_groups": 3},
            opset=21,
            made=MAP,
            refused="all rows",
        ),
        Case("LayerNormalization", SEQUENCE, (_floats(16) + 1, _floats(16)), axis=1),
        Case("LayerNormalization", operands=(_floats(18),), attributes={"axis": 3}),
        Case("LayerNormalization", operands=(_floats(6, 24, 18),), attributes={"axis": 1}, refused="all rows"),
        Case("RMSNormalization", SEQUENCE, (_floats(16) + 1,), axis=1, opset=23),
        *(Case(kind, attributes={"axis": 1}) for kind in ("Softmax", "LogSoftmax", "Hardmax")),
        *(Case(kind, attributes={"axis": 3}) for kind in ("Softmax", "LogSoftmax", "Hardmax")),
        Case("Softmax", attributes={"axis": 2}, refused="all rows"),
        Case("Softmax", attributes={"axis": 1}, opset=11, refused="all rows"),
        Case("LpNormalization", attributes={"axis": 1}, refused="not computed row by row"),
        Case("MeanVarianceNormalization", made=MAP, refused="not computed row by row"),
    ]


def _moved() -> list[Case]:
    half: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    floor = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    twice = (None, np.array([1, 1, 2, 2], np.float32))
    return [
        Case("Slice", operands=(_whole(1), _whole(5), _whole(1))),
        Case("Slice", operands=(_whole(5), _whole(-(2**31)), _whole(1), _whole(-2))),
        Case("Slice", operands=(_whole(0, 2), _whole(2**31, 9), _whole(2, 3))),
        Case("Slice", operands=(_whole(0, 0, 0, 3), _whole(1, 4, 24, 17))),
        Case("Slice", attributes={"starts": [1], "ends": [4], "axes": [1]}, opset=9),
        Case("Slice", operands=(_whole(2), _whole(20), _whole(2))),
        Case("Slice", operands=(_whole(1, 1), _whole(2**31, 2**31), _whole(3, 2), _whole(2, 2))),
        Case("Slice", operands=tuple(np.array([n], np.int32) for n in (2, 20, 2)), refused="32 bits"),
        Case("Slice", operands=(_whole(-21), _whole(-1), _whole(-2), _whole(3))),
        Case("Slice", attributes={"starts": [1, -9], "ends": [4, 24], "axes": [1, 2]}, opset=9),
        Case("Slice", operands=(_whole(-1), _whole(-(2**31)), _whole(2), _whole(-1)), refused="the rows backwards"),
        Case("Gather", operands=(_whole(3, 0, 0, 5),), attributes={"axis": 1}),
        Case("Gather", operands=(_whole(3, 0, 7).reshape(1, 3),), attributes={"axis": 3}),
        Case("Gather", operands=(np.array(2, np.int64),), attributes={"axis": 1}, axis=1),
        Case("Gather", operands=(np.tile(_whole(5, 1, 0), 9),), attributes={"axis": 2}, refused="reads all rows"),
        Case("Concat", pair=True, attributes={"axis": 1}),
        Case("Concat", pair=True, attributes={"axis": 2}, refused="joins"),
        Case("Pad", operands=(_whole(0, 0, 2, 1, 0, 0, 1, 2), np.float32(0.3))),
        Case("Pad", operands=(_whole(0, 0, 0, 1, 0, 0, 0, 2),), attributes={"mode": "reflect"}),
        Case("Pad", operands=(_whole(0, 0, 2, 1, 0, 0, 1, 2),), attributes={"mode": "reflect"}, refused="one constant"),
        Case("Resize", operands=twice, attributes=half),
        Case("Resize", operands=twice, attributes=floor),
        Case("Resize", operands=twice, attributes={"mode": "cubic"}, refused="interpolates"),
        Case("Resize", operands=(None, np.array([1, 1, 1.5, 2], np.float32)), attributes=half, refused="power of two"),
        Case("Upsample", operands=(np.array([1, 1, 2, 2], np.float32),), attributes={"mode": "nearest"}, opset=9),
        Case("Transpose", attributes={"perm": [0, 3, 1, 2]}, axis=3),
        Case("Reshape", SEQUENCE, (_whole(2, 24, 4, 4),), axis=1),
        Case("Reshape", SEQUENCE, (_whole(2, 96, 4),), axis=1, refused="keep the rows"),
        Case("Flatten", (24, 6, 8), axis=0),
        Case("Squeeze", (1, 24, 16), (_whole(0),), axis=0),
        Case("Unsqueeze", (24, 16), (_whole(0),), axis=1),
        Case("DepthToSpace", (1, 8, 24, 18), (), {"blocksize": 2}),
        Case("DepthToSpace", (1, 8, 24, 18), (), {"blocksize": 2, "mode": "CRD"}),
        Case("SpaceToDepth", (1, 8, 24, 18), (), {"blocksize": 2}),
        Case("CumSum", operands=(np.array(2, np.int64),), refused="not computed row by row"),
        Case("Tile", operands=(_whole(1, 1, 2, 1),), refused="not computed row by row"),
        Case("Expand", (1, 6, 24, 1), (_whole(1, 6, 24, 5),), refused="not computed row by row"),
        Case("ArgMax", attributes={"axis": 1}, refused="not computed row by row"),
    ]  # fmt: skip


def _products() -> list[Case]:
    reduced = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp"
    return [
        Case("MatMul", SEQUENCE, (_floats(16, 8),), axis=1),
        Case("MatMul", (6, 24, 24), (), axis=0, pair=True),
        Case("MatMul", (2, 24, 24), (), axis=1, pair=True, refused="reads all rows"),
        Case("MatMul", (2, 24, 24), (), axis=2, pair=True, refused="columns of a matrix"),
        Case("Gemm", (24, 16), (_floats(16, 8), _floats(8)), axis=0),
        Case("Gemm", (24, 16), (_floats(24, 8),), {"transA": 1}, axis=0, refused="columns of a matrix"),
        *(Case(kind, operands=(_whole(1),), opset=20) for kind in reduced.split()),
        Case("ReduceSum", operands=(_whole(2),), refused="all rows"),
        Case("ReduceMean", operands=(_whole(1),), attributes={"keepdims": 0}, refused="drops axes"),
    ]


def _bytes() -> list[Case]:
    scale, zero, none = np.float32(0.05), np.uint8(128), np.int8(0)
    w = (np.arange(4 * 6 * 9).reshape(4, 6, 3, 3) % 11 - 5).astype(np.int8)
    b = (np.arange(16 * 8).reshape(16, 8) % 11 - 5).astype(np.int8)
    other = (np.arange(6 * 24 * 18).reshape(MAP) % 251).astype(np.uint8)
    params, joined = (scale, zero, scale, zero), (scale, zero, scale, zero, other, scale, zero)
    odd = np.arange(24 * 18).reshape(24, 18) % 2 > 0

    def added(kind: str, operands: tuple[Any, ...], attributes: dict[str, Any], **more: Any) -> Case:
        more = {"made": MAP, **more}
        return Case(kind, MAP, operands, attributes, dtype=_BYTE, result=_BYTE, domain="com.microsoft", **more)

    return [
        Case("QuantizeLinear", operands=(scale, zero)),
        Case("DequantizeLinear", operands=(scale, zero), dtype=_BYTE),
        Case("DequantizeLinear", operands=(_floats(6) + 1, np.full(6, 3, np.uint8)), dtype=_BYTE),
        Case("MaxPool", attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, dtype=_BYTE),
        Case("Cast", attributes={"to": 10}),
        Case("QLinearConv", MAP, (scale, zero, w, scale, none, scale, zero), {"pads": [1, 1, 1, 1]}, dtype=_BYTE),
        Case("ConvInteger", MAP, (w, zero), {"pads": [1, 1, 1, 1]}, dtype=_BYTE),
        Case("QLinearMatMul", SEQUENCE, (scale, zero, b, scale, none, scale, zero), axis=1, dtype=_BYTE),
        Case("MatMulInteger", SEQUENCE, (b, zero), axis=1, dtype=_BYTE),
        *(
            Case(f"QLinear{word}", MAP, (scale, zero, other, scale, zero, scale, zero), dtype=_BYTE, made=MAP,
                 result=_BYTE, domain="com.microsoft")
            for word in ("Add", "Mul")
        ),
        *(
            Case(f"QLinear{word}", MAP, (scale, zero, scale, zero), dtype=_BYTE, made=MAP, result=_BYTE,
                 domain="com.microsoft")
            for word in ("Sigmoid", "LeakyRelu")
        ),
        added("QLinearAveragePool", params, {"kernel_shape": [2, 2], "strides": [2, 2]}, made=(1, 6, 12, 9)),
        added("QLinearAveragePool", params, {"kernel_shape": [3, 3], "pads": [1] * 4}),
        added("QLinearSoftmax", params, {"opset": 13, "axis": 3}),
        added("QLinearSoftmax", params, {"opset": 13, "axis": 2}, refused="all rows together"),
        added("QLinearGlobalAveragePool", params, {"channels_last": 0}, made=(1, 6, 1, 1), axis=1,
              refused="takes all rows together"),
        added("QLinearConcat", joined, {"axis": 1}, first=2, made=(1, 12, 24, 18)),
        added("QLinearConcat", joined, {"axis": 2}, first=2, made=(1, 6, 48, 18), refused="joins its operands along"),
        added("QLinearWhere", (odd, scale, zero, other, scale, zero, scale, zero), {}, first=1),
        Case("QuantizeLinear", operands=(scale, np.uint16(3)), made=MAP, result=4, domain="com.microsoft"),
        Case("DequantizeLinear", operands=(scale, zero), dtype=_BYTE, made=MAP, domain="com.microsoft"),
        Case("SimplifiedLayerNormalization", operands=(_floats(18) + 1,), attributes={"axis": -1}, made=MAP),
    ]  # fmt: skip


CASES: Sequence[Case] = [*_unary(), *_binary(), *_windows(), *_norms(), *_moved(), *_products(), *_bytes()]
