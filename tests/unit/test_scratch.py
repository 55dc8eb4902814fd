"""The scratch table: one figure worked out by hand for each formula."""

import pytest

from modelplan.errors import RequestError
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.kernels import Call, Operand, scratch_sizes


def operand(dtype, *shape, constant=False):
    return Operand(dtype, shape, constant)


def conv(dtype="int8", weights="int8", taps=(3, 3), channels=8, stride=1, kind="CONV_2D", out=16, padding="SAME"):
    options = {"stride_w": stride, "stride_h": stride, "padding": padding}
    inputs = operand(dtype, 1, 10, 10, channels), operand(weights, out, *taps, channels, constant=True)
    return Call(kind, inputs, (operand(dtype, 1, 10, 10, out),), options)


LSTM = Call(
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    (operand("int8", 1, 28, 28), *[None] * 17, operand("int8", 1, 20), operand("int16", 1, 20)),
    (operand("int8", 1, 28, 20),),
)
TRANSPOSE = Call(
    "TRANSPOSE_CONV",
    (operand("int32", 4), operand("int8", 4, 2, 2, 8), operand("int16", 1, 5, 5, 8), operand("int16", 4)),
    (operand("int16", 1, 10, 10, 4),),
)
SVDF = Call("SVDF", (operand("int8", 1, 40), operand("int8", 64, 40)), (operand("int8", 1, 32),), {"rank": 2})
MEAN = Call("MEAN", (operand("int8", 1, 4, 4, 8), operand("int32", 2)), (operand("int8", 1, 8),))


@pytest.mark.parametrize(
    ("call", "kernels", "sizes"),
    [
        (conv(), "reference", ()),
        (conv(weights="int4"), "reference", (1152,)),
        (conv(), "cmsis-dsp", (288,)),
        (conv(), "cmsis-mve", (320,)),
        (conv(taps=(1, 1)), "cmsis-dsp", ()),
        (conv(taps=(1, 1), stride=2), "cmsis-dsp", ()),
        (conv(taps=(1, 1)), "cmsis-mve", ()),
        (conv("int16"), "cmsis-mve", (576,)),
        (conv("float32", "float32"), "cmsis-dsp", ()),
        (conv(kind="DEPTHWISE_CONV_2D", taps=(5, 5), out=1), "cmsis-dsp", (400,)),
        (conv(kind="DEPTHWISE_CONV_2D", out=1), "cmsis-dsp", (144,)),
        (conv(kind="DEPTHWISE_CONV_2D", out=1), "cmsis-mve", (4464,)),
        (SVDF, "reference", (256, 128)),
        (LSTM, "reference", (40, 40, 40, 40)),
        (LSTM, "cmsis-dsp", (40, 40, 40)),
        (TRANSPOSE, "reference", (3200, 32)),
        (MEAN, "reference", (32, 16, 8)),
        (Call("ADD_N", (operand("int8", 4),) * 3, (operand("int8", 4),), pointer=4), "reference", (12,)),
        (Call("MIRROR_PAD", (operand("int8", 4, 4), None), (operand("int8", 6, 6),)), "reference", (8, 8)),
        (Call("RESHAPE", (operand("int8", 4),), (operand("int8", 4),)), "cmsis-mve", ()),
    ],
)
def test_formula(call, kernels, sizes):
    assert scratch_sizes(call, kernels) == sizes


def test_unknown_kernels_list_the_known():
    with pytest.raises(RequestError, match=", ".join(TFLM.library_names)):
        scratch_sizes(conv(), "neon")
