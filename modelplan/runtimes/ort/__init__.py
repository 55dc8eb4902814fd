"""ONNX Runtime: what it does with memory."""

from modelplan.model import InPlace, Runtime, Sharing
from modelplan.ops.op_facts import ONNX_RESHAPES

_OVERWRITTEN = """
Celu Elu HardSigmoid LeakyRelu Relu Selu Sigmoid Softplus Softsign Tanh ThresholdedRelu Clip Softmax LogSoftmax Shrink
Cast BitCast Trilu Scatter ScatterElements TensorScatter DFT ai.onnx.ml.Normalizer ai.onnx.ml.Scaler
"""
#: Convolutions that add an operand to what they compute, in its place.
_ADDING = ("com.microsoft.FusedConv", "com.microsoft.nchwc.Conv")

ORT = Runtime(
    "ort",
    alignment=256,
    pad="tensor",
    state="separate",
    allocator="onnxruntime",
    source="onnxruntime, framework/allocator.h kAllocAlignment, execution_frame.cc; inputs are the caller's,"
    " outputs are allocated apart from the plan (allocation_planner.cc kAllocateOutput)",
    inputs="live",
    outputs="apart",
    sharing=Sharing(
        views=ONNX_RESHAPES | {"Identity", "Optional", "OptionalGetElement"},
        overwrites={**dict.fromkeys(_OVERWRITTEN.split(), (0,)), **dict.fromkeys(_ADDING, (3,))},
        same_shape=True,
        proved={
            **{kind: InPlace((0,)) for kind in _OVERWRITTEN.split() if kind != "DFT"},
            **dict.fromkeys(_ADDING, InPlace((3,))),
        },
        source="onnxruntime, framework/allocation_planner.cc FindReusableInput,"
        " the MayInplace and Alias of providers/cpu",
    ),
    default_for="onnx",
    runs=("onnx",),
    sorts=True,
)
