"""What each runtime shares by itself, and which kernels were proved to work in place: tables of facts with sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Operand numbers by operator kind.
Operands = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a runtime shares memory today ("faithful"), and what its kernels are known to stand ("safe").

    `views` and `overwrites` are what it does by itself: with `ends` also at the graph's inputs and outputs, with
    `sole_reader` only where one operator reads the operand at all, from `least` bytes up, with `same_shape` only
    between equal shapes. `safe` lists the overwrites that were executed in place with equal results, by kind, operand
    numbers and data types (none listed: every type). `front_to_back` lists the kernels that were executed with the
    output running into operand 0, or into any for joins, by kind and data types of the operand. `sequential`: kernels
    finish one element after the other, as operators without a known kernel are taken to do in mode max.
    """

    views: frozenset[str] = frozenset()
    overwrites: Operands = field(default_factory=dict)
    safe: Mapping[str, tuple[tuple[int, ...], frozenset[str]]] = field(default_factory=dict)
    front_to_back: Mapping[str, frozenset[str]] = field(default_factory=dict)
    sequential: bool = False
    ends: bool = False
    view_of_output: bool = True
    sole_reader: bool = False
    same_shape: bool = False
    least: int = 0
    source: str = ""


def _safe(
    kinds: str, dtypes: str, operands: tuple[int, ...] = (0,)
) -> dict[str, tuple[tuple[int, ...], frozenset[str]]]:
    return dict.fromkeys(kinds.split(), (operands, frozenset(dtypes.split())))


def _operands(kinds: str, operands: tuple[int, ...] = (0,)) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(kinds.split(), operands)


_FRONT_TO_BACK = """
CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED MAX_POOL_2D AVERAGE_POOL_2D CONCATENATION PAD PADV2 SLICE
"""

_TFLM = Sharing(
    safe={
        **_safe("RELU RELU6 HARD_SWISH ABS RSQRT ELU L2_NORMALIZATION", "float32 int8"),
        **_safe("LOGISTIC TANH LEAKY_RELU SOFTMAX", "float32 int16 int8"),
        **_safe("PRELU", "float32 int8"),
        **_safe("NEG EXP SQRT SQUARE LOG SIN COS FLOOR CEIL ROUND LOG_SOFTMAX CUMSUM", "float32"),
        **_safe("ADD SUB MUL", "float32 int16 int8", (0, 1)),
        **_safe("MAXIMUM MINIMUM", "float32 int8", (0, 1)),
        **_safe("DIV FLOOR_DIV FLOOR_MOD SQUARED_DIFFERENCE", "float32", (0, 1)),
        **_safe("LOGICAL_AND LOGICAL_OR", "bool", (0, 1)),
        **_safe("LOGICAL_NOT", "bool"),
        **_safe("EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL", "int8", (0, 1)),
    },
    front_to_back={
        **dict.fromkeys(_FRONT_TO_BACK.split(), frozenset({"float32", "int16", "int8"})),
        "TRANSPOSE_CONV": frozenset({"int16", "int8"}),
        "QUANTIZE": frozenset({"float32"}),
        "DEQUANTIZE": frozenset({"int8"}),
    },
    sequential=True,
    source="tflite-micro reference kernels, each executed through an offline plan: tests/e2e/test_in_place.py",
)

_LITERT_OVERWRITES = {**_operands("ADD SUB MUL DIV", (0, 1)), **_operands("SOFTMAX DYNAMIC_UPDATE_SLICE")}
_LITERT = Sharing(
    views=frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "BITCAST"}),
    overwrites=_LITERT_OVERWRITES,
    safe={kind: (operands, frozenset()) for kind, operands in _LITERT_OVERWRITES.items()},
    view_of_output=False,
    sole_reader=True,
    least=5,
    source="LiteRT, tflite/core/c/common.h TfLiteInPlaceOp, arena_planner.cc, kernels/{add,sub,mul,div,activations}.cc",
)

_ORT_OVERWRITES = _operands(
    "Celu Elu HardSigmoid LeakyRelu Relu Selu Sigmoid Softplus Softsign Tanh ThresholdedRelu Clip Softmax LogSoftmax"
    " Shrink Cast BitCast Trilu Scatter ScatterElements TensorScatter DFT ai.onnx.ml.Normalizer ai.onnx.ml.Scaler"
)
_ORT_SAFE = {kind: (operands, frozenset[str]()) for kind, operands in _ORT_OVERWRITES.items() if kind != "DFT"}
_ORT = Sharing(
    views=frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Optional", "OptionalGetElement"}),
    overwrites=_ORT_OVERWRITES,
    safe=_ORT_SAFE,
    view_of_output=False,
    same_shape=True,
    source="onnxruntime, framework/allocation_planner.cc FindReusableInput, the MayInplace and Alias of providers/cpu",
)

_EXECUTORCH = Sharing(
    views=frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "RESHAPE", "SQUEEZE", "EXPAND_DIMS"}),
    source="ExecuTorch, exir/passes/replace_view_copy_with_view_pass.py; reinplace.py does index_put only",
)

_GENERIC = Sharing(
    views=frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}),
    ends=True,
    sequential=True,
    source="no kernels are known: only views are safe",
)

SHARING: dict[str, Sharing] = {
    "tflm": _TFLM, "litert": _LITERT, "ort": _ORT, "executorch": _EXECUTORCH, "generic": _GENERIC,
}  # fmt: skip
