"""LiteRT (TensorFlow Lite): what it does with memory."""

from modelplan.model import InPlace, Runtime, Sharing
from modelplan.ops.op_facts import TFLITE_RESHAPES

_OVERWRITES = {**dict.fromkeys(("ADD", "SUB", "MUL", "DIV"), (0, 1)), "SOFTMAX": (0,), "DYNAMIC_UPDATE_SLICE": (0,)}

#: What its own resolver registers (tensorflow/lite/core/kernels/register.cc).
_CUSTOM_KINDS = frozenset(
    f"CUSTOM:{name}" for name in ("NumericVerify", "Mfcc", "AudioSpectrogram", "TFLite_Detection_PostProcess")
)

LITERT = Runtime(
    "litert",
    alignment=64,
    pad="arena",
    state="separate",
    allocator="tflite-arena",
    source="LiteRT, tflite/util.h kDefaultTensorAlignment, arena_planner.cc: inputs are never freed",
    inputs="live",
    runs=("tflite",),
    interprets=True,
    custom_kinds=_CUSTOM_KINDS,
    sharing=Sharing(
        views=TFLITE_RESHAPES | {"BITCAST"},
        overwrites=_OVERWRITES,
        sole_reader=True,
        least_bytes=5,
        proved={kind: InPlace(operands) for kind, operands in _OVERWRITES.items()},
        source="LiteRT, tflite/core/c/common.h TfLiteInPlaceOp, arena_planner.cc,"
        " kernels/{add,sub,mul,div,activations}.cc",
    ),
)
