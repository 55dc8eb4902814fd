"""Small random int8 networks as .tflite files: convolutions, pools, padding, residuals, 1-D and 2-D, odd sizes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from modelplan.formats.tflite.flatbuffer_tables import MODEL, OPERATOR, OPTIONS, SUBGRAPH, TENSOR, FrontTables

_FLOAT, _INT32, _UINT8, _INT16, _INT8 = 0, 2, 3, 7, 9
#: Operators by number, version and type of their options.
_KINDS = {
    "CONV_2D": (3, 3, 1), "DEPTHWISE_CONV_2D": (4, 3, 2), "AVERAGE_POOL_2D": (1, 2, 5), "MAX_POOL_2D": (17, 2, 5),
    "ADD": (0, 2, 11), "PAD": (34, 2, 22), "CONCATENATION": (2, 2, 10), "RESIZE_BILINEAR": (23, 3, 15),
    "RESIZE_NEAREST_NEIGHBOR": (97, 3, 74), "TRANSPOSE_CONV": (67, 3, 49),
    "TRANSPOSE": (39, 2, 26), "QUANTIZE": (114, 2, 89), "DEQUANTIZE": (6, 2, 38), "LEAKY_RELU": (98, 2, 75),
    "STRIDED_SLICE": (45, 2, 32), "SPACE_TO_DEPTH": (26, 2, 19), "DEPTH_TO_SPACE": (5, 2, 94),
    "SPLIT": (49, 2, 35), "SPLIT_V": (102, 2, 79), "GATHER": (36, 2, 23), "RESHAPE": (22, 1, 17), "PACK": (83, 1, 59),
    "UNPACK": (88, 1, 64), "MEAN": (40, 2, 27), "BATCH_MATMUL": (126, 1, 101),
    "SQUEEZE": (43, 1, 30), "EXPAND_DIMS": (70, 1, 52),
    "SLICE": (65, 2, 48), "DYNAMIC_UPDATE_SLICE": (151, 1, 0), "FULLY_CONNECTED": (9, 4, 8), "SOFTMAX": (25, 2, 9),
}  # fmt: skip
_DRAWN = ("CONV_2D", "DEPTHWISE_CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "PAD", "RESIDUAL")
_LATER = ("CONCATENATION", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "TRANSPOSE_CONV")
_SAME, _RELU = 0, 1
_SCALE = (0.05, -3)
#: Data types and quantisations of inputs that a QUANTIZE takes.
_ENTRIES: tuple[tuple[int, tuple[float, int] | None], ...] = (
    (_INT8, (0.04, 5)), (_UINT8, (0.05, 125)), (_FLOAT, None), (_INT16, (0.001, 0)), (_UINT8, (0.03, 99)),
)  # fmt: skip


@dataclass
class Network:
    """Tensors and operators of a network that grows at its end."""

    rng: np.random.Generator
    front: FrontTables = field(default_factory=lambda: FrontTables(b""))
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    tensors: list[int] = field(default_factory=list)
    buffers: list[int] = field(default_factory=list)
    operators: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def tensor(
        self,
        shape: tuple[int, ...],
        kind: int = _INT8,
        scale: tuple[float, int] | None = _SCALE,
        data: bytes | None = None,
    ) -> int:
        """The number of one more tensor."""
        buffer = 0
        if data is not None:
            content = self.front.data(data)
            self.buffers.append(self.front.table((0, 8, 8), {0: content}))
            buffer = len(self.buffers)
        fields = {0: self.front.numbers(shape), 1: kind, 2: buffer, 3: self.front.text(f"t{len(self.tensors)}")}
        if scale is not None:
            fields[4] = self._quantisation(*scale)
        self.tensors.append(self.front.table(TENSOR, fields))
        self.shapes.append(tuple(shape))
        return len(self.tensors) - 1

    def _quantisation(self, scale: float, zero: int) -> int:
        scales = self.front.numbers([struct.unpack("<i", struct.pack("<f", scale))[0]])
        self.front.builder.StartVector(8, 1, 8)
        self.front.builder.PrependInt64(zero)
        zeros = self.front.builder.EndVector()
        return self.front.table((0, 0, 0, 0), {2: scales, 3: zeros})

    def operator(
        self,
        kind: str,
        inputs: list[int],
        output: int | list[int],
        layout: tuple[int, ...] = (),
        values: tuple[int, ...] = (),
    ) -> int:
        """One more operator with the fields `values` of its options; returns its last output."""
        outputs = output if isinstance(output, list) else [output]
        options = self.front.table(layout, dict(enumerate(values)))
        if kind not in self.kinds:
            self.kinds.append(kind)
        operands = {1: self.front.numbers(inputs), 2: self.front.numbers(outputs)}
        fields = {0: self.kinds.index(kind), **operands, 3: _KINDS[kind][2], 4: options}
        self.operators.append(self.front.table(OPERATOR, fields))
        return outputs[-1]

    def window(self, x: int, kind: str, channels_out: int = 0, drawn: tuple[int, int] | None = None) -> int:
        """A convolution or a pool over tensor `x`; `drawn` is the reach along both axes and the stride, with SAME."""
        rng, (_, height, width, channels) = self.rng, self.shapes[x]
        if drawn:
            padding, kh, kw, sh, sw = _SAME, min(drawn[0], height), min(drawn[0], width), drawn[1], drawn[1]
        else:
            padding = int(rng.integers(2))
            kh, kw = (int(min(rng.choice([1, 2, 3, 3, 5]), n)) for n in (height, width))
            sh, sw = (int(rng.choice([1, 1, 2])) for _ in range(2))
        dilated = "CONV" in kind and sh == sw == 1 and not drawn
        dh, dw = (int(rng.choice([1, 1, 2])) if dilated else 1 for _ in range(2))
        rh, rw = (kh - 1) * dh + 1, (kw - 1) * dw + 1
        if rh > height or rw > width:
            dh = dw = 1
            rh, rw = kh, kw
        high, wide = (
            -(-n // s) if padding == _SAME else (n - r) // s + 1 for n, s, r in ((height, sh, rh), (width, sw, rw))
        )
        if "POOL" in kind:
            y = self.tensor((1, high, wide, channels))
            return self.operator(kind, [x], y, OPTIONS[kind], (padding, sw, sh, kw, kh, 0))
        deep = (channels_out or int(rng.integers(1, 7))) if kind == "CONV_2D" else channels
        shape = (deep, kh, kw, channels) if kind == "CONV_2D" else (1, kh, kw, deep)
        weights = self.tensor(shape, scale=(0.02, 0), data=rng.integers(-90, 90, shape, dtype=np.int8).tobytes())
        values = rng.integers(-900, 900, deep, dtype=np.int32).tobytes()
        bias = self.tensor((deep,), _INT32, (0.02 * _SCALE[0], 0), values)
        y = self.tensor((1, high, wide, deep))
        steps, act = (padding, sw, sh), _RELU * int(rng.integers(2))
        options = (*steps, act, dw, dh) if kind == "CONV_2D" else (*steps, 1, act, dw, dh)
        return self.operator(kind, [x, weights, bias], y, OPTIONS[kind], options)

    def pad(self, x: int) -> int:
        """Rows and columns of zeros around tensor `x`."""
        rows = self.rng.integers(0, 3, 4, dtype=np.int32)
        if self.shapes[x][1] == 1:
            rows[:2] = 0
        pads = np.array([[0, 0], rows[:2], rows[2:], [0, 0]], dtype=np.int32)
        y = self.tensor(tuple(int(n + p.sum()) for n, p in zip(self.shapes[x], pads, strict=True)))
        return self.operator("PAD", [x, self.tensor((4, 2), _INT32, None, pads.tobytes())], y)

    def join(self, a: int, b: int, axis: int = 3) -> int:
        """Two tensors behind each other along an axis."""
        shape = self.shapes[a]
        y = self.tensor((*shape[:axis], shape[axis] + self.shapes[b][axis], *shape[axis + 1 :]))
        return self.operator("CONCATENATION", [a, b], y, (4, 1), (axis, 0))

    def resize(self, x: int, kind: str) -> int:
        """Tensor `x` twice or four times as large."""
        factor = int(self.rng.choice([2, 2, 4]))
        _, height, width, channels = self.shapes[x]
        size = (1 if height == 1 else height * factor, width * factor)
        y = self.tensor((1, *size, channels))
        values = np.array(size, dtype=np.int32).tobytes()
        half = int(self.rng.integers(2))
        return self.operator(kind, [x, self.tensor((2,), _INT32, None, values)], y, (1, 1), (0, half))

    def spread(self, x: int) -> int:
        """A transposed convolution over tensor `x`."""
        rng, (_, height, width, channels) = self.rng, self.shapes[x]
        padding, stride = int(rng.integers(2)), int(rng.integers(1, 3))
        kh, kw = (int(rng.integers(stride, 4)) if n > 1 else stride for n in (height, width))
        sh = 1 if height == 1 else stride
        kh = 1 if height == 1 else kh
        high, wide = (
            n * s if padding == _SAME else (n - 1) * s + k for n, s, k in ((height, sh, kh), (width, stride, kw))
        )
        shape = (deep := int(rng.integers(1, 5)), kh, kw, channels)
        weights = self.tensor(shape, scale=(0.02, 0), data=rng.integers(-90, 90, shape, dtype=np.int8).tobytes())
        size = self.tensor((4,), _INT32, None, np.array((1, high, wide, deep), dtype=np.int32).tobytes())
        y = self.tensor((1, high, wide, deep))
        return self.operator("TRANSPOSE_CONV", [size, weights, x], y, (1, 4, 4), (padding, stride, sh))

    def block(self, x: int, kind: str) -> int:
        """Some rows, columns and channels of tensor `x`, every second one where it is strided, by masks or numbers."""
        rng, shape = self.rng, self.shapes[x]
        begin = [0 if i == 0 or rng.random() < 0.5 else int(rng.integers(0, n // 3 + 1)) for i, n in enumerate(shape)]
        ends = [n if rng.random() < 0.5 else n - int(rng.integers(0, n // 3 + 1)) for n in shape]
        if kind == "SLICE":
            sizes = [e - b for b, e in zip(begin, ends, strict=True)]
            said = [-1 if e == n and rng.random() < 0.5 else s for s, e, n in zip(sizes, ends, shape, strict=True)]
            return self.operator(kind, [x, self.numbers(begin), self.numbers(said)], self.tensor(tuple(sizes)))
        steps = [int(rng.choice([1, 1, 2])) if 0 < i < 3 and n > 6 else 1 for i, n in enumerate(shape)]
        masks = [sum((whole and rng.random() < 0.6) << i for i, whole in enumerate(ends_whole)) for ends_whole in (
            [b == 0 for b in begin], [e == n for e, n in zip(ends, shape, strict=True)])]  # fmt: skip
        sizes = [-(-(e - b) // s) for b, e, s in zip(begin, ends, steps, strict=True)]
        negative = [e - n if e < n and rng.random() < 0.3 else e for e, n in zip(ends, shape, strict=True)]
        operands = [self.numbers(values) for values in (begin, negative, steps)]
        return self.operator(kind, [x, *operands], self.tensor(tuple(sizes)), (4, 4), tuple(masks))

    def turned(self, x: int, order: tuple[int, ...] = (0, 2, 3, 1)) -> int:
        """Tensor `x` with its axes in another order: one whose channels come first gets them last."""
        shape = tuple(self.shapes[x][axis] for axis in order)
        return self.operator("TRANSPOSE", [x, self.numbers(order)], self.tensor(shape))

    def numbers(self, values: Sequence[int]) -> int:
        """A constant vector of 32 bits."""
        return self.tensor((len(values),), _INT32, None, np.array(values, dtype=np.int32).tobytes())

    def parts(self, x: int, kind: str, axis: int) -> list[int]:
        """Tensor `x` cut along an axis into two parts, equal ones by SPLIT, or all of it where it is no even number."""
        shape, extent = self.shapes[x], self.shapes[x][axis]
        sizes = [extent // 2, extent - extent // 2] if extent > 1 else [extent]
        if kind == "SPLIT" and extent % 2:
            sizes = [extent]
        found = [self.tensor((*shape[:axis], n, *shape[axis + 1 :])) for n in sizes]
        along = self.numbers([axis])
        operands = [along, x] if kind == "SPLIT" else [x, self.numbers(sizes), along]
        self.operator(kind, operands, found, (4,), (len(sizes),))
        return found

    def unpacked(self, x: int, axis: int) -> list[int]:
        """Tensor `x` cut along an axis into one part for each index, each without that axis."""
        shape = self.shapes[x]
        found = [self.tensor((*shape[:axis], *shape[axis + 1 :])) for _ in range(shape[axis])]
        self.operator("UNPACK", [x], found, (4, 4), (shape[axis], axis))
        return found

    def connected(self, x: int, deep: int) -> int:
        """A layer that connects the numbers along the last axis of tensor `x`, to so many."""
        shape = (deep, self.shapes[x][-1])
        weights = self.tensor(shape, scale=(0.02, 0), data=self.rng.integers(-90, 90, shape, dtype=np.int8).tobytes())
        y = self.tensor((*self.shapes[x][:-1], deep))
        return self.operator("FULLY_CONNECTED", [x, weights, -1], y, (1, 1, 1), (0, 0, 1))

    def packed(self, parts: Sequence[int], axis: int) -> int:
        """Tensors of one shape behind each other along an axis of their own."""
        shape = self.shapes[parts[0]]
        y = self.tensor((*shape[:axis], len(parts), *shape[axis:]))
        return self.operator("PACK", list(parts), y, (4, 4), (len(parts), axis))

    def gathered(self, x: int, axis: int) -> int:
        """Every one or every second index of tensor `x` along an axis from some on."""
        shape, rng = self.shapes[x], self.rng
        at = list(range(int(rng.integers(0, 2)) if shape[axis] > 2 else 0, shape[axis], int(rng.integers(1, 3))))
        y = self.tensor((*shape[:axis], len(at), *shape[axis + 1 :]))
        return self.operator("GATHER", [x, self.numbers(at)], y, (4, 4), (axis, 0))

    def reshaped(self, x: int, shape: tuple[int, ...]) -> int:
        """Tensor `x` in another shape."""
        return self.operator("RESHAPE", [x, self.numbers(shape)], self.tensor(shape))

    def renamed(self, x: int, shape: tuple[int, ...]) -> int:
        """Tensor `x` in a shape with other axes of extent 1, by one of the operators that say so."""
        own, kind = self.shapes[x], str(self.rng.choice(("RESHAPE", "SQUEEZE", "EXPAND_DIMS")))
        if kind == "SQUEEZE" and len(shape) < len(own):
            axis = next(a for a in range(len(own)) if own[a] == 1 and (*own[:a], *own[a + 1 :]) == shape)
            return self.operator(kind, [x], self.tensor(shape), (0,), (self.front.numbers((axis,)),))
        if kind == "EXPAND_DIMS" and len(shape) > len(own):
            axis = next(a for a in range(len(shape)) if (*own[:a], 1, *own[a:]) == shape)
            return self.operator(kind, [x, self.numbers((axis,))], self.tensor(shape))
        return self.reshaped(x, shape)

    def rescaled(self, x: int) -> int:
        """Tensor `x` with the quantisation of all others."""
        return self.operator("QUANTIZE", [x], self.tensor(self.shapes[x]))

    def add(self, a: int, b: int) -> int:
        """The sum of two tensors of a shape."""
        return self.operator("ADD", [a, b], self.tensor(self.shapes[a]), (1,), (0,))

    def file(self, x: int, y: int) -> bytes:
        """The network from tensor `x` to tensor `y` as a file."""
        front = self.front
        subgraph = front.table(SUBGRAPH, {
            0: front.references(self.tensors), 1: front.numbers([x]), 2: front.numbers([y]),
            3: front.references(self.operators),
        })  # fmt: skip
        rows = [_KINDS[kind] for kind in self.kinds]
        codes = [front.table((1, 0, 4, 4), {0: min(code, 127), 2: version, 3: code}) for code, version, _ in rows]
        buffers = [front.table((0, 8, 8), {}), *self.buffers]
        fields = {0: 3, 1: front.references(codes), 2: front.references([subgraph]), 4: front.references(buffers)}
        return front.file(front.table(MODEL, fields))


_ALIKE = ("ROW", "PAD", "SLICE", "STRIDED_SLICE", "CONCATENATION", "SPLIT", "SPLIT_V", "GATHER")
_MOVED = (
    "SLICE",
    "STRIDED_SLICE",
    "SPACE_TO_DEPTH",
    "DEPTH_TO_SPACE",
    "DEEP_PAD",
    "SPLIT",
    "SPLIT_V",
    "GATHER",
    "UNPACK",
)


def moving_cnn(seed: int) -> bytes:
    """A network of windows between operators that only move: slices along all axes, blocks, padding of channels."""
    net = Network(np.random.default_rng(seed))
    rng = net.rng
    height = 1 if seed % 5 == 3 else int(rng.integers(10, 24))
    x = first = net.tensor((1, height, int(rng.integers(10, 24)), int(rng.integers(2, 7))))
    for _ in range(int(rng.integers(2, 5))):
        x = _moved(net, x, str(rng.choice(_MOVED)))
        x = net.window(x, str(rng.choice(_DRAWN[:5]))) if rng.random() < 0.8 else net.pad(x)
    return net.file(first, x)


def deep_cnn(seed: int) -> bytes:
    """A network of few pixels and many channels that begins by a convolution and keeps its channels, with branches."""
    net = Network(np.random.default_rng(seed))
    rng = net.rng
    x = first = net.tensor((1, *(int(n) for n in rng.integers(3, 9, 2)), int(rng.integers(2, 7))))
    x = net.window(x, "CONV_2D", deep := int(rng.integers(8, 40)))
    for _ in range(int(rng.integers(1, 4))):
        kind = str(rng.choice(("DEPTHWISE_CONV_2D", "MAX_POOL_2D", "ROW", "PAD", "RESIDUAL", "CONV_2D", "QUANTIZE")))
        if kind == "ROW":
            row = net.tensor((1, 1, 1, deep), data=rng.integers(-90, 90, deep, dtype=np.int8).tobytes())
            x = net.add(x, row)
        elif kind == "PAD":
            x = net.pad(x)
        elif kind == "RESIDUAL":
            x = _residual(net, x)
        elif kind == "QUANTIZE":
            x = net.rescaled(x)
        else:
            x = net.window(x, kind, deep)
    if seed % 3 == 0:
        x = net.operator("MEAN", [x, net.numbers((1, 2))], net.tensor((1, 1, 1, deep)), (1,), (1,))
    elif seed % 3 == 1:
        _, high, wide, _ = net.shapes[x]
        pooled = net.tensor((1, 1, 1, deep))
        x = net.operator("AVERAGE_POOL_2D", [x], pooled, OPTIONS["AVERAGE_POOL_2D"], (1, 1, 1, wide, high, 0))
    return net.file(first, net.window(x, "CONV_2D") if seed % 2 else x)


def branched_cnn(seed: int) -> bytes:
    """A network of two branches that are added, where it halves its maps or not: one has the longer windows."""
    net = Network(np.random.default_rng(seed))
    rng = net.rng
    x = first = net.tensor((1, *(int(n) for n in rng.integers(12, 26, 2)), deep := int(rng.integers(2, 5))))
    for _ in range(int(rng.integers(1, 4))):
        stride, more = (int(n) for n in rng.integers((1, 0), (3, 4)))
        long = net.window(x, "CONV_2D", deep + more, (3, stride))
        for _ in range(int(rng.integers(0, 3))):
            long = net.window(long, "DEPTHWISE_CONV_2D", drawn=(int(rng.choice([3, 5])), 1))
        if more and rng.random() < 0.5:
            short = net.window(x, "MAX_POOL_2D", drawn=(stride, stride))
            pads = net.tensor((4, 2), _INT32, None, np.array([*[0] * 7, more], dtype=np.int32).tobytes())
            short = net.operator("PAD", [short, pads], net.tensor(net.shapes[long]))
        else:
            short = net.window(x, "CONV_2D", deep + more, (1, stride))
        if rng.random() < 0.3:
            short = net.rescaled(short)
        x, deep = net.add(*((long, short) if rng.random() < 0.5 else (short, long))), deep + more
    return net.file(first, x)


def attending_net(seed: int) -> bytes:
    """A network of heads that attend to each other's rows, between layers that connect a row at a time."""
    net = Network(np.random.default_rng(seed))
    rng = net.rng
    heads, rows, deep = (int(n) for n in rng.integers((2, 3, 2), (7, 9, 8)))
    x = first = net.tensor((1, heads, rows, deep))
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.5:
            x = net.connected(x, int(rng.integers(2, 9)))
            continue
        y = net.rescaled(x)
        scores = net.operator("BATCH_MATMUL", [x, y], net.tensor((1, heads, rows, rows)), (1, 1), (0, 1))
        if rng.random() < 0.6:
            scaled = net.tensor((1, heads, rows, rows), scale=(1 / 256, -128))
            scores = net.rescaled(net.operator("SOFTMAX", [scores], scaled, (4,), (0x3F800000,)))
        x = net.operator("BATCH_MATMUL", [scores, x], net.tensor(net.shapes[x]), (1, 1), (0, 0))
    return net.file(first, net.connected(x, 4))


def exported_cnn(seed: int) -> bytes:
    """A network as exporters write those of channels first: windows between TRANSPOSEs, all else on channels first."""
    net = Network(np.random.default_rng(seed))
    rng = net.rng
    x = first = net.tensor((1, int(rng.integers(2, 7)), *(int(n) for n in rng.integers(10, 22, 2))))
    for _ in range(int(rng.integers(2, 5))):
        x = net.turned(net.window(net.turned(x), str(rng.choice(_DRAWN[:5]))), (0, 3, 1, 2))
        for _ in range(int(rng.integers(0, 4))):
            x = _on_all_axes_alike(net, x)
    if seed % 4 == 3:
        _, deep, high, wide = net.shapes[x]
        x = net.turned(net.rescaled(net.reshaped(x, (1, deep, high * wide))), (0, 2, 1))
    elif seed % 2:
        x = net.turned(x)
    return net.file(first, x)


def renamed_cnn(seed: int) -> bytes:
    """A network over a sequence, whose windows go over maps of one row or column, and all else over two axes."""
    net = Network(np.random.default_rng(seed))
    rng = net.rng
    x = first = net.tensor((1, 1, int(rng.integers(16, 40)), int(rng.integers(2, 7))))
    for _ in range(int(rng.integers(2, 6))):
        x = net.window(x, str(rng.choice(_DRAWN[:5])))
        _, high, wide, deep = net.shapes[x]
        if rng.random() < 0.8:
            x = net.renamed(x, (1, high * wide, deep))
            if rng.random() < 0.6:
                y = net.rescaled(x)
                x = net.join(x, y, 2) if rng.random() < 0.3 else net.add(x, y)
            length, deep = net.shapes[x][1:]
            x = net.renamed(x, (1, 1, length, deep) if rng.random() < 0.5 else (1, length, 1, deep))
    if rng.random() < 0.3:
        _, high, wide, deep = net.shapes[x]
        x = net.renamed(x, (1, high * wide, deep))
    return net.file(first, x)


def headed_cnn(seed: int) -> bytes:
    """A network with heads, as detectors have: convolutions of one depth whose pixels are joined as rows."""
    net = Network(np.random.default_rng(seed))
    rng = net.rng
    x = first = net.tensor((1, *(int(n) for n in rng.integers(10, 24, 2)), int(rng.integers(2, 6))))
    deep, heads = int(rng.integers(1, 9)), []
    for _ in range(int(rng.integers(2, 5))):
        head = net.window(x, "CONV_2D", deep)
        if rng.random() < 0.3:
            head = net.add(head, net.rescaled(head))
        heads.append(net.reshaped(head, (1, net.shapes[head][1] * net.shapes[head][2], deep)))
        x = net.window(x, str(rng.choice(_DRAWN[:5])))
    if rng.random() < 0.3:
        _, rows, _ = net.shapes[heads[-1]]
        pair = net.packed([heads[-1], net.rescaled(heads[-1])], 1)
        heads[-1] = net.reshaped(pair, (1, 2 * rows, deep))
    if rng.random() < 0.3:
        heads = [net.join(heads[0], heads[1], 1), *heads[2:], heads[0]]
    y = heads[0]
    for head in heads[1:]:
        y = net.join(y, head, 1)
    return net.file(first, net.rescaled(y) if seed % 2 else y)


def _on_all_axes_alike(net: Network, x: int) -> int:
    """An operator on tensor `x` that computes the same on any order of axes, or a few that branch and join again."""
    kind, axis = str(net.rng.choice(_ALIKE)), int(net.rng.integers(1, 4))
    if kind in ("SPLIT", "SPLIT_V"):
        parts = net.parts(x, kind, axis)
        return net.join(parts[-1], net.rescaled(parts[0]), axis) if len(parts) > 1 else parts[0]
    if kind == "GATHER":
        return net.gathered(x, axis)
    if kind == "ROW":
        shape = [n if a == axis else 1 for a, n in enumerate(net.shapes[x])][int(net.rng.integers(0, 2)) :]
        row = net.tensor(tuple(shape), data=net.rng.integers(-90, 90, shape, dtype=np.int8).tobytes())
        return net.add(x, row)
    if kind == "CONCATENATION":
        return net.join(x, net.add(x, net.rescaled(x)), axis)
    if kind == "PAD":
        return net.pad(x)
    return net.block(x, kind)


def _moved(net: Network, x: int, kind: str) -> int:
    shape = net.shapes[x]
    if kind in ("SLICE", "STRIDED_SLICE"):
        return net.block(x, kind)
    if kind == "GATHER":
        return net.gathered(x, 2 if shape[1] == 1 else int(net.rng.integers(1, 4)))
    if kind.startswith("SPLIT"):
        parts = net.parts(x, kind, 3)
        return net.join(parts[-1], parts[0]) if net.rng.random() < 0.5 else parts[0]
    if kind == "UNPACK" and shape[1] > 1 and net.rng.random() < 0.3:
        row = net.unpacked(x, 1)[int(net.rng.integers(shape[1]))]
        return net.reshaped(row, (1, 1, *shape[2:]))
    if kind == "UNPACK":
        parts = net.unpacked(x, 3)
        return net.packed([net.add(parts[0], parts[-1]), *reversed(parts)], 3)
    if kind == "DEEP_PAD":
        pads = np.array([[0, 0], [0, 0], [0, 0], net.rng.integers(0, 3, 2)], dtype=np.int32)
        y = net.tensor((*shape[:3], shape[3] + int(pads.sum())))
        return net.operator("PAD", [x, net.tensor((4, 2), _INT32, None, pads.tobytes())], y)
    if kind == "SPACE_TO_DEPTH" and shape[1] % 2 == shape[2] % 2 == 0:
        y = net.tensor((1, shape[1] // 2, shape[2] // 2, 4 * shape[3]))
        return net.operator(kind, [x], y, (4,), (2,))
    if kind == "DEPTH_TO_SPACE" and shape[3] % 4 == 0 and shape[1] > 1:
        return net.operator(kind, [x], net.tensor((1, 2 * shape[1], 2 * shape[2], shape[3] // 4)), (4,), (2,))
    return net.window(x, "CONV_2D")


def random_cnn(seed: int, shape: tuple[int, ...] | None = None) -> bytes:
    """A network of a few operators; every fourth is 1-D (height 1), every third has operators that enlarge or join.

    Every fifth begins by a TRANSPOSE, every fifth by a QUANTIZE of a data type in turn. `shape` is that of its input,
    where it is to take what another network gives; then it begins by neither.
    """
    rng = np.random.default_rng(seed)
    net = Network(rng)
    height = 1 if seed % 4 == 3 else int(rng.integers(9, 22))
    drawn = (1, height, int(rng.integers(9, 22)), int(rng.integers(1, 5)))
    if shape:
        x = first = net.tensor(shape)
    elif seed % 5 == 2:  # images with their channels first, as other frameworks export them
        first = net.tensor((drawn[0], drawn[3], *drawn[1:3]))
        x = net.turned(first)
    elif seed % 5 == 4:
        first = net.tensor(drawn, *_ENTRIES[seed // 5 % len(_ENTRIES)])
        x = net.rescaled(first)
    else:
        x = first = net.tensor(drawn)
    for _ in range(int(rng.integers(2, 6))):
        kind = str(rng.choice(_DRAWN if seed % 3 else _DRAWN + _LATER))
        if kind == "PAD":
            x = net.pad(x)
        elif kind == "RESIDUAL":
            x = _residual(net, x)
        elif kind == "CONCATENATION":
            x = _branches(net, x)
        elif kind == "TRANSPOSE_CONV":
            x = net.spread(x)
        elif kind.startswith("RESIZE"):
            x = net.resize(x, kind)
        else:
            x = net.window(x, kind)
    return net.file(first, x)


def _residual(net: Network, x: int) -> int:
    """A branch of one depthwise convolution that keeps the shape, added to where it began; else the branch alone."""
    y = net.window(x, "DEPTHWISE_CONV_2D")
    return net.add(x, y) if net.shapes[x] == net.shapes[y] else y


def _branches(net: Network, x: int) -> int:
    """Where it began and a branch of one convolution that keeps height and width, joined; else the branch alone."""
    y = net.window(x, "CONV_2D")
    return net.join(x, y) if net.shapes[x][:3] == net.shapes[y][:3] else y
