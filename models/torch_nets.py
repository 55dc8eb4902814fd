"""The PyTorch networks behind the ONNX models: each class is one untrained `torch.nn.Module`, in float32.

Weights depend on torch's generator only; the images are NCHW, as PyTorch has them.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn

#: (expansion, channels, repeats, stride of the first)
MOBILENET_STAGES = ((1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 3, 2), (6, 32, 3, 2), (6, 48, 2, 1), (6, 80, 1, 2))


def _conv(
    inputs: int,
    outputs: int,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    active: type[nn.Module] | None = nn.ReLU,
) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(conv.weight)
    tail = [active()] if active else []
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), *tail)


def _classify(channels: int, classes: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes), nn.Softmax(dim=-1))


class Residual(nn.Module):
    """Two 3 x 3 convolutions and a skip, projected where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_conv(inputs, outputs, 3, stride), _conv(outputs, outputs, active=None))
        self.skip = nn.Identity() if stride == 1 else _conv(inputs, outputs, 1, stride, active=None)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both paths, rectified."""
        return torch.relu(self.body(x) + self.skip(x))


class ResNet8(nn.Sequential):
    """Three residual stages of 16, 32 and 64 channels on a 32 x 32 image.

    Source: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR, 2016, section 4.2.
    """

    def __init__(self) -> None:
        stages = (Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2))
        super().__init__(_conv(3, 16), *stages, _classify(64, 10))


class Inverted(nn.Module):
    """Widen, filter each channel, narrow; add the input where the shape allows it."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        widen = [_conv(inputs, wide, 1, active=nn.ReLU6)] if expansion > 1 else []
        filtered = _conv(wide, wide, 3, stride, groups=wide, active=nn.ReLU6)
        self.body = nn.Sequential(*widen, filtered, _conv(wide, outputs, 1, active=None))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return the narrow tensor, plus the input where the shapes agree."""
        narrow: Tensor = self.body(x)
        return x + narrow if self.adds else narrow


def _inverted_stages(channels: int) -> list[nn.Module]:
    blocks: list[nn.Module] = []
    for expansion, outputs, repeats, stride in MOBILENET_STAGES:
        for index in range(repeats):
            blocks.append(Inverted(channels, outputs, stride if index == 0 else 1, expansion))
            channels = outputs
    return blocks


class MobileNetV2Like(nn.Sequential):
    """Inverted residuals with linear bottlenecks on a 96 x 96 image.

    Source: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR, 2018, table 2.
    """

    def __init__(self) -> None:
        stem, head = _conv(3, 16, 3, 2, active=nn.ReLU6), _conv(80, 160, 1, active=nn.ReLU6)
        super().__init__(stem, *_inverted_stages(16), head, _classify(160, 10))


class Branches(nn.Module):
    """Several paths from one input, concatenated along the channels."""

    def __init__(self, *paths: nn.Module) -> None:
        super().__init__()
        self.paths = nn.ModuleList(paths)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of all paths side by side."""
        return torch.cat([path(x) for path in self.paths], dim=1)


def _inception(inputs: int, one: int, three: tuple[int, int], five: tuple[int, int], pool: int) -> Branches:
    return Branches(
        _conv(inputs, one, 1),
        nn.Sequential(_conv(inputs, three[0], 1), _conv(*three)),
        nn.Sequential(_conv(inputs, five[0], 1), _conv(*five), _conv(five[1], five[1])),
        nn.Sequential(nn.MaxPool2d(3, 1, 1), _conv(inputs, pool, 1)),
    )


def _reduction(inputs: int, three: int, five: tuple[int, int]) -> Branches:
    return Branches(
        _conv(inputs, three, 3, 2),
        nn.Sequential(_conv(inputs, five[0], 1), _conv(*five), _conv(five[1], five[1], 3, 2)),
        nn.MaxPool2d(3, 2, 1),
    )


class InceptionLike(nn.Sequential):
    """Five four-branch modules around a three-branch reduction on a 64 x 64 image.

    Source: Szegedy et al., "Going Deeper with Convolutions", CVPR, 2015, section 5; the reduction and the
    stacked 3 x 3 follow Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR,
    2016, sections 3 and 5.
    """

    def __init__(self) -> None:
        stem = (_conv(3, 16, 3, 2), _conv(16, 32), nn.MaxPool2d(3, 2, 1))
        small = [_inception(inputs, 16, (16, 24), (8, 12), 12) for inputs in (32, 64, 64)]
        large = [_inception(inputs, 32, (24, 32), (12, 24), 16) for inputs in (120, 104)]
        super().__init__(*stem, *small, _reduction(64, 32, (16, 24)), *large, _classify(104, 10))


class UNetSmall(nn.Module):
    """U-Net of three levels with transposed convolutions: a mask of a 64 x 64 image.

    Source: Ronneberger, Fischer, Brox, "U-Net: Convolutional Networks for Biomedical Image Segmentation",
    MICCAI, 2015, section 2.
    """

    def __init__(self) -> None:
        super().__init__()
        widths = (1, 8, 16, 32, 64)
        self.down = nn.ModuleList(nn.Sequential(_conv(a, b), _conv(b, b)) for a, b in pairwise(widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * n, n, 2, 2) for n in (32, 16, 8))
        self.merge = nn.ModuleList(nn.Sequential(_conv(2 * n, n), _conv(n, n)) for n in (32, 16, 8))
        self.mask = nn.Conv2d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the probability of each pixel."""
        x, skips = self.down[0](x), []
        for down in self.down[1:]:
            skips.append(x)
            x = down(nn.functional.max_pool2d(x, 2))
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skips.pop(), up(x)], dim=1))
        return torch.sigmoid(self.mask(x))


WIDTH, HEADS, INNER, VOCABULARY, LONGEST = 64, 4, 128, 128, 128


def _split(x: Tensor, heads: int) -> Tensor:
    return x.view(x.shape[0], x.shape[1], heads, WIDTH // HEADS).transpose(1, 2)


def _merge(x: Tensor) -> Tensor:
    x = x.transpose(1, 2).contiguous()
    return x.view(x.shape[0], x.shape[1], WIDTH)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
    return torch.softmax(scores if mask is None else scores + mask, dim=-1) @ value


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward pair, each with a skip and a normalisation behind it (post-norm)."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.feed = nn.Sequential(nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH))
        self.after_attention, self.after_feed = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return x, [batch, sequence, width], attended under the additive mask."""
        query, key, value = (_split(project(x), HEADS) for project in (self.query, self.key, self.value))
        x = self.after_attention(x + self.out(_merge(_attend(query, key, value, mask))))
        fed: Tensor = self.after_feed(x + self.feed(x))
        return fed


class TransformerEncoder(nn.Module):
    """Two encoder layers over 32 feature frames of 20 numbers, pooled into 12 classes.

    Source: Vaswani et al., "Attention Is All You Need", NeurIPS, 2017, section 3.
    """

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(20, WIDTH)
        self.position = nn.Parameter(torch.randn(32, WIDTH))
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(2))
        self.head = nn.Linear(WIDTH, 12)

    def forward(self, frames: Tensor) -> Tensor:
        """Return the class probabilities of frames, [batch, 32, 20]."""
        x = self.embed(frames) + self.position
        for layer in self.layers:
            x = layer(x)
        return torch.softmax(self.head(x.mean(dim=1)), dim=-1)


class BertLike(nn.Module):
    """Token, position and segment embeddings, two encoder layers under a padding mask, a tanh pooler.

    Source: Devlin, Chang, Lee, Toutanova, "BERT: Pre-training of Deep Bidirectional Transformers for Language
    Understanding", NAACL, 2019, section 3.
    """

    positions: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.segments, self.norm = nn.Embedding(2, WIDTH), nn.LayerNorm(WIDTH)
        self.register_buffer("positions", torch.arange(LONGEST).unsqueeze(0))
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(2))
        self.pooler = nn.Linear(WIDTH, WIDTH)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the hidden states, [batch, sequence, width], and the pooled first token."""
        places = self.places(self.positions[:, : input_ids.shape[1]])
        x = self.norm(self.words(input_ids) + places + self.segments(token_type_ids))
        hidden = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, hidden)
        return x, torch.tanh(self.pooler(x[:, 0]))


class RootMeanSquare(nn.Module):
    """Divide by the root of the mean square, then scale each channel.

    Source: Zhang, Sennrich, "Root Mean Square Layer Normalization", NeurIPS, 2019, section 4.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Return x at unit root mean square, scaled."""
        return self.scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def _rotate(x: Tensor, angles: Tensor) -> Tensor:
    left, right = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat((-right, left), dim=-1) * angles.sin()


def _share(x: Tensor, times: int) -> Tensor:
    batch, heads, length, width = x.shape
    return x[:, :, None].expand(batch, heads, times, length, width).reshape(batch, heads * times, length, width)


class DecoderLayer(nn.Module):
    """Rotary, grouped-query attention over a growing cache, and a gated feed-forward, both pre-norm.

    Source: Su et al., "RoFormer", arXiv:2104.09864, 2021, section 3.2; Ainslie et al., "GQA", EMNLP, 2023,
    section 2.2; Shazeer, "GLU Variants Improve Transformer", arXiv:2002.05202, 2020.
    """

    CACHED_HEADS = 2

    def __init__(self) -> None:
        super().__init__()
        cached = self.CACHED_HEADS * (WIDTH // HEADS)
        self.query, self.out = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.key, self.value = nn.Linear(WIDTH, cached, bias=False), nn.Linear(WIDTH, cached, bias=False)
        self.gate, self.rise = nn.Linear(WIDTH, INNER, bias=False), nn.Linear(WIDTH, INNER, bias=False)
        self.fall = nn.Linear(INNER, WIDTH, bias=False)
        self.before_attention, self.before_feed = RootMeanSquare(), RootMeanSquare()

    def forward(
        self, x: Tensor, angles: Tensor, mask: Tensor, past_key: Tensor, past_value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return x attended over past and present, and both caches grown by the new positions."""
        seen = self.before_attention(x)
        query = _rotate(_split(self.query(seen), HEADS), angles)
        key = torch.cat((past_key, _rotate(_split(self.key(seen), self.CACHED_HEADS), angles)), dim=2)
        value = torch.cat((past_value, _split(self.value(seen), self.CACHED_HEADS)), dim=2)
        times = HEADS // self.CACHED_HEADS
        x = x + self.out(_merge(_attend(query, _share(key, times), _share(value, times), mask)))
        seen = self.before_feed(x)
        return x + self.fall(nn.functional.silu(self.gate(seen)) * self.rise(seen)), key, value


class DecoderWithCache(nn.Module):
    """Two decoder layers that read past keys and values and return the grown ones beside the logits.

    Source: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", arXiv:2302.13971, 2023,
    section 2.2.
    """

    frequencies: Tensor

    def __init__(self) -> None:
        super().__init__()
        half = WIDTH // HEADS // 2
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(2))
        self.norm, self.head = RootMeanSquare(), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.register_buffer("frequencies", (10000.0 ** (-torch.arange(half) / half)).repeat(2))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        """Return the logits, then the key and the value cache of each layer in turn."""
        before, total = past[0].shape[2], attention_mask.shape[1]
        places = torch.arange(before, total)
        angles = places[:, None].to(torch.float32) * self.frequencies
        visible = (torch.arange(total)[None, :] <= places[:, None]) & attention_mask[:, None, None, :].bool()
        mask = torch.where(visible, 0.0, torch.finfo(torch.float32).min)
        x, present = self.words(input_ids), []
        for layer, key, value in zip(self.layers, past[0::2], past[1::2], strict=True):
            x, *grown = layer(x, angles, mask, key, value)
            present += grown
        return self.head(self.norm(x)), *present
