"""The Keras networks behind the int8 TFLite models: each function returns one untrained `keras.Model`.

Every input has batch 1, so that the converter sees static shapes; weights depend on the caller's seed only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import keras
from keras import layers

Net: TypeAlias = keras.Model
Node: TypeAlias = keras.KerasTensor
Extent: TypeAlias = int | tuple[int, int]

#: (expansion, channels, repeats, stride of the first)
MOBILENET_STAGES = ((1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 3, 2), (6, 32, 3, 2), (6, 48, 2, 1), (6, 80, 1, 2))
MOBILENET_V2 = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


# He's initialisation keeps the variance of the activations; with Keras' default the outputs of the deep nets
# would all quantise to one value.


def _conv(x: Node, channels: int, kernel: Extent = 3, stride: Extent = 1, *, relu: bool = True) -> Node:
    conv = layers.Conv2D(channels, kernel, stride, "same", use_bias=False, kernel_initializer="he_normal")
    x = layers.BatchNormalization()(conv(x))
    return layers.ReLU()(x) if relu else x


def _depthwise(x: Node, stride: int = 1, limit: float | None = None) -> Node:
    # HeNormal would count every channel into the fan-in of a kernel that sees one
    weights = keras.initializers.RandomNormal(stddev=(2 / 9) ** 0.5)
    conv = layers.DepthwiseConv2D(3, stride, "same", use_bias=False, depthwise_initializer=weights)
    return layers.ReLU(limit)(layers.BatchNormalization()(conv(x)))


def _classify(x: Node, classes: int) -> Node:
    x = layers.GlobalAveragePooling2D()(x)
    return layers.Softmax()(layers.Dense(classes)(x))


def ds_cnn_kws() -> Net:
    """Depthwise-separable keyword spotter over 49 frames of 10 MFCCs, 12 words.

    Source: Zhang, Suda, Lai, Chandra, "Hello Edge: Keyword Spotting on Microcontrollers", 2017,
    arXiv:1711.07128.
    """
    frames = keras.Input((49, 10, 1), batch_size=1, name="frames")
    x = _conv(frames, 64, (10, 4), stride=2)
    for _ in range(4):
        x = _conv(_depthwise(x), 64, 1)
    return keras.Model(frames, _classify(x, 12), name="ds_cnn_kws")


def _residual(x: Node, channels: int, stride: int) -> Node:
    body = _conv(_conv(x, channels, 3, stride), channels, relu=False)
    skip = x if stride == 1 else _conv(x, channels, 1, stride, relu=False)
    return layers.ReLU()(layers.Add()([body, skip]))


def resnet8() -> Net:
    """Three residual stages of 16, 32 and 64 channels on a 32 x 32 image.

    Source: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR, 2016, section 4.2.
    """
    image = keras.Input((32, 32, 3), batch_size=1, name="image")
    x = _conv(image, 16)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        x = _residual(x, channels, stride)
    return keras.Model(image, _classify(x, 10), name="resnet8")


def _inverted(x: Node, channels: int, stride: int, expansion: int) -> Node:
    wide = x
    if expansion > 1:
        wide = _conv(x, expansion * x.shape[-1], 1, relu=False)
        wide = layers.ReLU(6.0)(wide)
    narrow = _conv(_depthwise(wide, stride, 6.0), channels, 1, relu=False)
    return layers.Add()([x, narrow]) if stride == 1 and x.shape[-1] == channels else narrow


def mobilenet_v2_like() -> Net:
    """Inverted residuals with linear bottlenecks on a 96 x 96 image.

    Source: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR, 2018, table 2.
    """
    image = keras.Input((96, 96, 3), batch_size=1, name="image")
    x = layers.ReLU(6.0)(_conv(image, 16, 3, 2, relu=False))
    for expansion, channels, repeats, stride in MOBILENET_STAGES:
        for index in range(repeats):
            x = _inverted(x, channels, stride if index == 0 else 1, expansion)
    x = layers.ReLU(6.0)(_conv(x, 160, 1, relu=False))
    return keras.Model(image, _classify(x, 10), name="mobilenet_v2_like")


def mobilenet_v2_224() -> Net:
    """The same for 224 x 224 images and 1000 classes, with all the blocks of the paper.

    Source: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR, 2018, table 2.
    """
    image = keras.Input((224, 224, 3), batch_size=1, name="image")
    x = layers.ReLU(6.0)(_conv(image, 32, 3, 2, relu=False))
    for expansion, channels, repeats, stride in MOBILENET_V2:
        for index in range(repeats):
            x = _inverted(x, channels, stride if index == 0 else 1, expansion)
    x = layers.ReLU(6.0)(_conv(x, 1280, 1, relu=False))
    return keras.Model(image, _classify(x, 1000), name="mobilenet_v2_224")


def _inception(x: Node, one: int, three: tuple[int, int], five: tuple[int, int], pool: int) -> Node:
    branches = [
        _conv(x, one, 1),
        _conv(_conv(x, three[0], 1), three[1]),
        _conv(_conv(_conv(x, five[0], 1), five[1]), five[1]),
        _conv(layers.MaxPooling2D(3, 1, "same")(x), pool, 1),
    ]
    return layers.Concatenate()(branches)


def _reduction(x: Node, three: int, five: tuple[int, int]) -> Node:
    branches = [
        _conv(x, three, 3, 2),
        _conv(_conv(_conv(x, five[0], 1), five[1]), five[1], 3, 2),
        layers.MaxPooling2D(3, 2, "same")(x),
    ]
    return layers.Concatenate()(branches)


def inception_like() -> Net:
    """Five four-branch modules around a three-branch reduction on a 64 x 64 image.

    Source: Szegedy et al., "Going Deeper with Convolutions", CVPR, 2015, section 5; the reduction and the
    stacked 3 x 3 follow Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR,
    2016, sections 3 and 5.
    """
    image = keras.Input((64, 64, 3), batch_size=1, name="image")
    x = _conv(_conv(image, 16, 3, 2), 32)
    x = layers.MaxPooling2D(3, 2, "same")(x)
    for _ in range(3):
        x = _inception(x, 16, (16, 24), (8, 12), 12)
    x = _reduction(x, 32, (16, 24))
    for _ in range(2):
        x = _inception(x, 32, (24, 32), (12, 24), 16)
    return keras.Model(image, _classify(x, 10), name="inception_like")


def audio_1d() -> Net:
    """Keyword spotter on a raw waveform: a quarter of a second at 16 kHz, maps of height 1, separable convolutions.

    Source: Dai, Dai, Qu, Li, Das, "Very Deep Convolutional Neural Networks for Raw Waveforms", ICASSP, 2017 (the first
    layer and the pools), with the separable convolutions of `ds_cnn_kws`.
    """
    wave = keras.Input((1, 4000, 1), batch_size=1, name="wave")
    x = _conv(wave, 32, (1, 80), (1, 4))
    weights = keras.initializers.RandomNormal(stddev=(2 / 9) ** 0.5)
    for channels, pool in ((32, 2), (48, 4), (64, 4), (96, 4)):
        x = layers.DepthwiseConv2D((1, 9), padding="same", activation="relu", depthwise_initializer=weights)(x)
        x = layers.MaxPooling2D((1, pool))(_conv(x, channels, 1))
    return keras.Model(wave, _classify(x, 12), name="audio_1d")


def _double(x: Node) -> Node:
    # layers.UpSampling2D would become RESHAPE and TILE
    return keras.ops.image.resize(x, (2 * x.shape[1], 2 * x.shape[2]), interpolation="nearest")


def autoencoder() -> Net:
    """Convolutional autoencoder of a 32 x 32 patch with a 16-number code.

    Source: Masci, Meier, Ciresan, Schmidhuber, "Stacked Convolutional Auto-Encoders for Hierarchical Feature
    Extraction", ICANN, 2011 (strided convolutions and nearest-neighbour upsampling in place of pooling).
    """
    patch = keras.Input((32, 32, 1), batch_size=1, name="patch")
    x = patch
    for channels in (8, 16, 32):
        x = _conv(x, channels, 3, 2)
    code = layers.Dense(16)(layers.Reshape((512,))(x))
    x = layers.Reshape((4, 4, 32))(layers.Dense(512, activation="relu")(code))
    for channels in (16, 8, 8):
        x = _conv(_double(x), channels)
    return keras.Model(patch, layers.Conv2D(1, 3, padding="same")(x), name="autoencoder")


def unet_small() -> Net:
    """U-Net of three levels with transposed convolutions: a mask of a 64 x 64 image.

    Source: Ronneberger, Fischer, Brox, "U-Net: Convolutional Networks for Biomedical Image Segmentation",
    MICCAI, 2015, section 2.
    """
    image = keras.Input((64, 64, 1), batch_size=1, name="image")
    skips: list[Node] = []
    x = image
    for channels in (8, 16, 32):
        skips.append(_conv(_conv(x, channels), channels))
        x = layers.MaxPooling2D(2)(skips[-1])
    x = _conv(_conv(x, 64), 64)
    for channels in (32, 16, 8):
        up = layers.Conv2DTranspose(channels, 2, strides=2)(x)
        x = _conv(_conv(layers.Concatenate()([skips.pop(), up]), channels), channels)
    return keras.Model(image, layers.Conv2D(1, 1, activation="sigmoid")(x), name="unet_small")


def ssd_like() -> Net:
    """Single-shot detector: boxes and scores of 4 classes from maps of 24, 12, 6 and 3 squared of a 192 x 192 image.

    Three default boxes of a place, four offsets for each; a depthwise-separable trunk, as for microcontrollers.

    Source: Liu et al., "SSD: Single Shot MultiBox Detector", ECCV, 2016, section 2.1; Howard et al., "MobileNets",
    2017, arXiv:1704.04861, section 3.
    """
    image = keras.Input((192, 192, 3), batch_size=1, name="image")
    x = _conv(image, 8, 3, 2)
    boxes: list[Node] = []
    scores: list[Node] = []
    for channels, stride in ((16, 1), (32, 2), (64, 2), (96, 2), (128, 2), (128, 2)):
        x = _conv(_depthwise(x, stride), channels, 1)
        if channels >= 64:
            places = 3 * x.shape[1] * x.shape[2]
            boxes.append(layers.Reshape((places, 4))(layers.Conv2D(12, 3, padding="same")(x)))
            scores.append(layers.Reshape((places, 4))(layers.Conv2D(12, 3, padding="same")(x)))
    found = [layers.Concatenate(axis=1)(boxes), layers.Activation("sigmoid")(layers.Concatenate(axis=1)(scores))]
    return keras.Model(image, found, name="ssd_like")


def _normalize(x: Node) -> Node:
    # layers.LayerNormalization would become a float NEG between DEQUANTIZE and QUANTIZE
    centred = x - keras.ops.mean(x, axis=-1, keepdims=True)
    variance = keras.ops.mean(keras.ops.square(centred), axis=-1, keepdims=True)
    return centred * keras.ops.rsqrt(variance + 1e-3)


def _attention(x: Node, heads: int) -> Node:
    _, length, width = x.shape
    split = (length, heads, width // heads)
    heads_first = layers.Permute((2, 1, 3))
    query, key, value = (heads_first(layers.Reshape(split)(layers.Dense(width)(x))) for _ in range(3))
    scores = keras.ops.matmul(query, keras.ops.transpose(key, (0, 1, 3, 2))) * (width // heads) ** -0.5
    mixed = heads_first(keras.ops.matmul(layers.Softmax()(scores), value))
    return layers.Dense(width)(layers.Reshape((length, width))(mixed))


def transformer_encoder() -> Net:
    """Two pre-norm encoder layers of width 64 and 4 heads over 32 feature frames.

    Source: Vaswani et al., "Attention Is All You Need", NeurIPS, 2017, section 3.
    """
    frames = keras.Input((32, 20), batch_size=1, name="frames")
    x = layers.Dense(64)(frames)
    for _ in range(2):
        x = layers.Add()([x, _attention(_normalize(x), heads=4)])
        inner = layers.Dense(128, activation="relu")(_normalize(x))
        x = layers.Add()([x, layers.Dense(64)(inner)])
    pooled = layers.GlobalAveragePooling1D()(_normalize(x))
    return keras.Model(frames, layers.Softmax()(layers.Dense(12)(pooled)), name="transformer_encoder")


NETS: dict[str, Callable[[], Net]] = {
    net.__name__: net
    for net in (
        ds_cnn_kws,
        resnet8,
        mobilenet_v2_like,
        mobilenet_v2_224,
        inception_like,
        autoencoder,
        unet_small,
        ssd_like,
        audio_1d,
        transformer_encoder,
    )
}
