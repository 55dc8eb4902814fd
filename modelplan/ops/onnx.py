"""ONNX operators: what planners need to know of each. Every operator of onnx is in exactly one group.

Names of other domains than the standard one carry the domain in front. Source: onnx/docs/Operators.md, Changelog.md
(opset 1 to 28); the conditions ask for the opset where its rule changed.
"""

from dataclasses import replace

from modelplan.ops import conditions as when
from modelplan.ops import safe_overlap, work
from modelplan.ops.access import builders
from modelplan.ops.access import onnx as access
from modelplan.ops.op_facts import ONNX_RESHAPES, OpFacts

_NEVER = """
AffineGrid Attention CausalConvWithState CenterCropPad Col2Im DeformConv
Det DFT DynamicQuantizeLinear Einsum GatherElements GatherND GridSample GRU ImageDecoder
LinearAttention LSTM MaxRoiPool MaxUnpool NegativeLogLikelihoodLoss NonMaxSuppression NonZero
OneHot ReduceLogSum ReverseSequence RNN
RoiAlign SoftmaxCrossEntropyLoss STFT StringConcat StringNormalizer StringSplit RegexFullMatch SwiGLU TfIdfVectorizer
TopK Unique GlobalLpPool ArgMax ArgMin
"""
_GENERATORS = """
Constant ConstantOfShape EyeLike Range MelWeightMatrix HannWindow HammingWindow BlackmanWindow
"""
_RANDOM = "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial"
_SHAPES = "Shape Size OptionalHasElement SequenceLength"
_CONTROL = "If Loop Scan SequenceMap"
_SEARCHES = "BeamSearch GreedySearch Sampling WhisperBeamSearch"
_STATE = "SequenceAt SequenceInsert SequenceErase SequenceEmpty SequenceConstruct SplitToSequence ConcatFromSequence"
_UNARY = """
Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Erf Exp Floor Log Mish Neg Not Reciprocal Round Selu
Shrink Sign Sin Sinh Softplus Softsign Sqrt Swish Tan ThresholdedRelu IsNaN IsInf
"""
_ACTIVATIONS = "Relu LeakyRelu Sigmoid Tanh Elu Gelu HardSwish HardSigmoid"
_BINARY = """
Add Sub Mul Div Mod Pow And Or Xor BitwiseAnd BitwiseOr BitwiseXor BitShift Equal Greater Less GreaterOrEqual
LessOrEqual
"""
_UPDATES = "ScatterElements Scatter ScatterND TensorScatter Trilu RotaryEmbedding"
_REDUCTIONS = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd"
_NORMS = "ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp"
_NEVER_IN_PLACE = "QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu Gelu"
_ML = """
ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder
LinearClassifier LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor Scaler TreeEnsemble
TreeEnsembleClassifier TreeEnsembleRegressor ZipMap
"""
_TRAINING = "Adagrad Adam Gradient Momentum"

_unary = OpFacts("elementwise", builders.pointwise, overwrite=(0,), lead=safe_overlap.pointwise)
_unary_of_rows = replace(_unary, rows="pointwise", fused=True)
_variadic = OpFacts("elementwise", builders.pointwise, overwrite=(0,), rows="pointwise", fused=True)
_cast = replace(_unary, access=builders.converted, passes_on="all")
_view = OpFacts("view", builders.reshaped, view=0)
_row = OpFacts("row", overwrite=(0,))
_whole = "it takes all rows together"
_product = OpFacts(access=access.product(0, 1), rows="product")
_update = OpFacts("update", overwrite=(0,))


def _convolution(weights: int) -> OpFacts:
    return OpFacts(access=access.convolution(weights), weights=weights, rows="window")


OPERATORS: dict[str, OpFacts] = {
    **dict.fromkeys(_NEVER.split(), OpFacts()),
    **dict.fromkeys(_GENERATORS.split(), OpFacts("generator")),
    **dict.fromkeys(_RANDOM.split(), OpFacts("generator", effects=True)),
    **dict.fromkeys(_SHAPES.split(), OpFacts("shape")),
    **dict.fromkeys(_CONTROL.split(), OpFacts("control", effects=True)),
    **dict.fromkeys(_STATE.split(), OpFacts("state")),
    **dict.fromkeys(_UNARY.split(), _unary_of_rows),
    **dict.fromkeys(_ACTIVATIONS.split(), replace(_unary_of_rows, activation=True)),
    "Bernoulli": replace(_unary, effects=True),
    **dict.fromkeys(_BINARY.split(), replace(_unary_of_rows, overwrite=(0, 1))),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), replace(_row, access=access.softmax, rows="softmax")),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), replace(
        _row, access=access.normalisation, rows="normalise")),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), replace(_row, unsplit=_whole)),
    **dict.fromkeys(("MeanVarianceNormalization", "LpNormalization"), _row),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), OpFacts(access=access.global_pool, unsplit=_whole)),
    **dict.fromkeys(_UPDATES.split(), _update),
    **dict.fromkeys(("CumSum", "CumProd"), replace(_update, overwrite_if=when.not_reversed)),
    **dict.fromkeys(_REDUCTIONS.split(), OpFacts(
        access=access.reduction, operands=(1,), passes_on="all", rows="reduce")),
    **dict.fromkeys(_NORMS.split(), OpFacts(access=access.reduction, operands=(1,), rows="reduce")),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), OpFacts(
        "stream", access.pool, lead=safe_overlap.apart, rows="window")),
    **dict.fromkeys(ONNX_RESHAPES, replace(_view, rows="reshape")),
    "Identity": replace(_view, rows="pointwise", fused=True),
    **dict.fromkeys(("Optional", "OptionalGetElement", "BitCast"), OpFacts(
        "view", view=0, view_if=when.same_width)),
    "Dropout": OpFacts(
        "view", builders.reshaped, view=0, view_if=when.inference, operands=(2,), effects=True, rows="pointwise",
        fused=True),
    "Cast": replace(_cast, rows="pointwise", fused=True),
    "CastLike": _cast,
    **dict.fromkeys(("Expand", "Tile"), OpFacts(access=builders.repeated, passes_on="all")),
    "DepthToSpace": OpFacts(access=access.depth_to_space, passes_on="all", rows="blocks"),
    "SpaceToDepth": OpFacts(access=access.space_to_depth, passes_on="all", rows="blocks"),
    **dict.fromkeys(("Resize", "Upsample"), OpFacts(operands=(1, 2), rows="resize")),
    **dict.fromkeys(("Conv", "ConvInteger"), _convolution(1)),
    "QLinearConv": replace(_convolution(3), operands=(5,)),
    "ConvTranspose": OpFacts(access=access.transposed_convolution, macs=work.transposed_macs, rows="spread"),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _product),
    "QLinearMatMul": replace(_product, access=access.product(0, 3)),
    "Gemm": OpFacts(access=access.gemm, rows="gemm"),
    "LRN": OpFacts(access=access.by_channel, rows="by channel"),
    "Transpose": OpFacts(access=access.transposition, passes_on="all", rows="permute"),
    "Concat": OpFacts("join", access.concatenation, parts=when.axis_attribute, rows="join"),
    "Split": OpFacts("split", access.splitting, parts=when.axis_attribute, operands=(1,)),
    "Pad": OpFacts(access=access.padding, operands=(1,), passes_on="all", rows="pad"),
    "Slice": OpFacts(
        "stream", access.slice_of, lead=safe_overlap.sliced, operands=(1, 2, 3, 4), passes_on="part",
        rows="slice"),
    "Gather": OpFacts(access=access.gathering, operands=(1,), passes_on="part", rows="gather"),
    "Compress": OpFacts("stream", lead=safe_overlap.copied),
    "BatchNormalization": OpFacts(
        "elementwise", builders.first_pointwise, overwrite=(0,), overwrite_if=when.is_inference,
        rows="normalise batch"),
    **dict.fromkeys(("Sum", "Max", "Min", "Mean"), _variadic),
    **dict.fromkeys(("Clip", "PRelu"), replace(_variadic, activation=True)),
    "Where": replace(_variadic, overwrite=(1, 2, 0)),
    "DequantizeLinear": OpFacts(
        "elementwise", builders.first_pointwise, lead=safe_overlap.pointwise, rows="quantise", fused=True),
    "QuantizeLinear": replace(_unary_of_rows, access=builders.first_pointwise, rows="quantise"),
    **{f"ai.onnx.ml.{name}": OpFacts() for name in _ML.split()},
    **{f"ai.onnx.preview.training.{name}": OpFacts() for name in _TRAINING.split()},
    "ai.onnx.preview.FlexAttention": OpFacts("control"),
    **{f"com.microsoft.{name}": OpFacts("control", effects=True) for name in _SEARCHES.split()},
    **{f"com.microsoft.{name}": OpFacts("elementwise", overwrite=(3,))
       for name in ("FusedConv", "NhwcFusedConv", "nchwc.Conv")},
    **{f"com.microsoft.{name}": _variadic for name in ("BiasGelu", "FastGelu", "QuickGelu")},
    **{f"com.microsoft.{name}": OpFacts(access=builders.pointwise, rows="pointwise", fused=True)
       for name in _NEVER_IN_PLACE.split()},
    "com.microsoft.SkipLayerNormalization": OpFacts("row", overwrite=(0, 1)),
    "com.microsoft.FusedMatMul": OpFacts(),
    "com.microsoft.DequantizeLinear": OpFacts(access=builders.first_pointwise, rows="quantise", fused=True),
    "com.microsoft.QuantizeLinear": OpFacts(access=builders.first_pointwise, rows="quantise", fused=True),
    "com.microsoft.QLinearWhere": OpFacts(access=builders.pointwise, rows="pointwise", fused=True),
    "com.microsoft.QLinearConcat": OpFacts(access=access.quantised_concatenation, rows="join"),
    "com.microsoft.QLinearSoftmax": OpFacts(access=access.softmax, rows="softmax"),
    "com.microsoft.QLinearAveragePool": OpFacts(access=access.pool, rows="window"),
    "com.microsoft.QLinearGlobalAveragePool": OpFacts(unsplit=_whole),
    "SimplifiedLayerNormalization": OpFacts(access=access.normalisation, rows="normalise"),
}  # fmt: skip
