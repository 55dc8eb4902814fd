"""ONNX operators: what each does to memory. Every operator of onnx is in exactly one group.

Names of other domains than the standard one carry the domain in front. Source: onnx/docs/Operators.md, Changelog.md
(opset 1 to 28); the conditions ask for the opset where its rule changed.
"""

from __future__ import annotations

from modelplan.ops import conditions as when
from modelplan.ops import safe_overlap
from modelplan.ops.op_facts import OpFacts

_NEVER = """
AffineGrid Attention CausalConvWithState CenterCropPad Col2Im Conv ConvInteger ConvTranspose DeformConv
Det DFT DynamicQuantizeLinear Einsum GatherElements GatherND Gemm GridSample GRU ImageDecoder
LinearAttention LRN LSTM MatMul MatMulInteger MaxRoiPool MaxUnpool NegativeLogLikelihoodLoss NonMaxSuppression NonZero
OneHot QLinearConv QLinearMatMul ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare ReverseSequence RNN
RoiAlign SoftmaxCrossEntropyLoss STFT StringConcat StringNormalizer StringSplit RegexFullMatch SwiGLU TfIdfVectorizer
TopK Unique GlobalAveragePool GlobalLpPool GlobalMaxPool ArgMax ArgMin
"""
_GENERATORS = """
Constant ConstantOfShape EyeLike Range RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial
MelWeightMatrix HannWindow HammingWindow BlackmanWindow
"""
_SHAPES = "Shape Size OptionalHasElement SequenceLength"
_CONTROL = "If Loop Scan SequenceMap"
_STATE = "SequenceAt SequenceInsert SequenceErase SequenceEmpty SequenceConstruct SplitToSequence ConcatFromSequence"
_UNARY = """
Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish
LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh
ThresholdedRelu Bernoulli IsNaN IsInf
"""
_BINARY = """
Add Sub Mul Div Mod Pow And Or Xor BitwiseAnd BitwiseOr BitwiseXor BitShift Equal Greater Less GreaterOrEqual
LessOrEqual
"""
_ROWS = """
Softmax LogSoftmax Hardmax LayerNormalization RMSNormalization GroupNormalization InstanceNormalization
MeanVarianceNormalization LpNormalization
"""
_UPDATES = "ScatterElements Scatter ScatterND TensorScatter Trilu RotaryEmbedding"
_REDUCTIONS = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd"
_POOLS = "MaxPool AveragePool LpPool"
_ML = """
ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder
LinearClassifier LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor Scaler TreeEnsemble
TreeEnsembleClassifier TreeEnsembleRegressor ZipMap
"""
_TRAINING = "Adagrad Adam Gradient Momentum"

_cast = OpFacts("elementwise", view_if=when.same_type, overwrite=(0,), lead=safe_overlap.pointwise)

OPERATORS: dict[str, OpFacts] = {
    **dict.fromkeys(_NEVER.split(), OpFacts()),
    **dict.fromkeys(_GENERATORS.split(), OpFacts("generator")),
    **dict.fromkeys(_SHAPES.split(), OpFacts("shape")),
    **dict.fromkeys(_CONTROL.split(), OpFacts("control")),
    **dict.fromkeys(_STATE.split(), OpFacts("state")),
    **dict.fromkeys(_UNARY.split(), OpFacts("elementwise", overwrite=(0,), lead=safe_overlap.pointwise)),
    **dict.fromkeys(_BINARY.split(), OpFacts("elementwise", overwrite=(0, 1), lead=safe_overlap.pointwise)),
    **dict.fromkeys(_ROWS.split(), OpFacts("row", overwrite=(0,))),
    **dict.fromkeys(_UPDATES.split(), OpFacts("update", overwrite=(0,))),
    **dict.fromkeys(("CumSum", "CumProd"), OpFacts("update", overwrite=(0,), overwrite_if=when.not_reversed)),
    **dict.fromkeys(_REDUCTIONS.split(), OpFacts(view_if=when.nothing_reduced)),
    **dict.fromkeys(_POOLS.split(), OpFacts("stream", view_if=when.unit_window, lead=safe_overlap.pooled)),
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"), OpFacts("view", view=0)),
    **dict.fromkeys(("Optional", "OptionalGetElement"), OpFacts("view", view_if=when.same_width)),
    **dict.fromkeys(("Sum", "Max", "Min", "Mean"), OpFacts("elementwise", view_if=when.single, overwrite=(0,))),
    **dict.fromkeys(("Cast", "CastLike"), _cast),
    **dict.fromkeys(("Expand", "Tile"), OpFacts(view_if=when.no_growth)),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), OpFacts(view_if=when.unit_block)),
    **dict.fromkeys(("Resize", "Upsample"), OpFacts(view_if=when.unit_scales, operands=(1, 2))),
    "BitCast": OpFacts("view", view_if=when.same_width),
    "Dropout": OpFacts("view", view_if=when.inference, operands=(2,)),
    "Transpose": OpFacts(view_if=when.kept_order),
    "Concat": OpFacts("join", view_if=when.single, parts=when.axis_attribute),
    "Split": OpFacts("split", parts=when.axis_attribute, operands=(1,)),
    "Pad": OpFacts(view_if=when.no_padding, operands=(1,)),
    "Slice": OpFacts("stream", view_if=when.onnx_slice_start, lead=safe_overlap.sliced, operands=(1, 2, 3, 4)),
    "Gather": OpFacts(view_if=when.gathered_start, operands=(1,)),
    "Compress": OpFacts("stream", lead=safe_overlap.copied),
    "Clip": OpFacts("elementwise", view_if=when.no_bounds, overwrite=(0,)),
    "BatchNormalization": OpFacts("elementwise", overwrite=(0,), overwrite_if=when.is_inference),
    "PRelu": OpFacts("elementwise", overwrite=(0,)),
    "Where": OpFacts("elementwise", overwrite=(1, 2, 0)),
    "DequantizeLinear": OpFacts("elementwise", lead=safe_overlap.pointwise),
    "QuantizeLinear": OpFacts("elementwise", overwrite=(0,), lead=safe_overlap.pointwise),
    **{f"ai.onnx.ml.{name}": OpFacts() for name in _ML.split()},
    **{f"ai.onnx.preview.training.{name}": OpFacts() for name in _TRAINING.split()},
    "ai.onnx.preview.FlexAttention": OpFacts("control"),
    **{f"com.microsoft.{name}": OpFacts("elementwise", overwrite=(3,))
       for name in ("FusedConv", "NhwcFusedConv", "NchwcConv")},
    **{f"com.microsoft.{name}": OpFacts("elementwise", overwrite=(0,))
       for name in ("BiasGelu", "FastGelu", "QuickGelu")},
    "com.microsoft.SkipLayerNormalization": OpFacts("row", overwrite=(0, 1)),
    "com.microsoft.FusedMatMul": OpFacts(),
}  # fmt: skip
