"""Generators of network families whose order of operators matters, as `Graph`s: structure and int8 sizes, no weights.

Cells follow the published genotypes; each function names its source. `fine` writes a separable convolution as its
six operators (ReLU, depthwise, pointwise, twice), else as one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from modelplan.model import Graph, Kind, Op, Tensor


@dataclass(frozen=True)
class Map:
    """A feature map while a network is written down."""

    tensor: int
    height: int
    channels: int


@dataclass
class Net:
    """Collects operators in the order in which a converter would emit them: branch by branch."""

    name: str
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def input(self, height: int, channels: int) -> Map:
        return self._map(height, channels)

    def _map(self, height: int, channels: int) -> Map:
        self.tensors.append(Tensor(f"t{len(self.tensors)}", (1, height, height, channels), "int8", Kind.ACTIVATION))
        return Map(len(self.tensors) - 1, height, channels)

    def op(self, kind: str, inputs: Sequence[Map], channels: int | None = None, stride: int = 1) -> Map:
        first = inputs[0]
        out = self._map(-(-first.height // stride), first.channels if channels is None else channels)
        number = len(self.ops)
        self.ops.append(Op(f"{kind.lower()}{number}", kind, tuple(m.tensor for m in inputs), (out.tensor,)))
        return out

    def conv(self, x: Map, channels: int, stride: int = 1) -> Map:
        return self.op("CONV_2D", [x], channels, stride)

    def add(self, *maps: Map) -> Map:
        """A sum of any number of maps, as a chain of ADDs."""
        total = maps[0]
        for other in maps[1:]:
            total = self.op("ADD", [total, other])
        return total

    def concat(self, maps: Sequence[Map]) -> Map:
        return self.op("CONCATENATION", maps, sum(m.channels for m in maps))

    def separable(self, x: Map, channels: int, stride: int = 1, *, fine: bool = True, times: int = 2) -> Map:
        if not fine:
            return self.op("SEPARABLE_CONV", [x], channels, stride)
        for i in range(times):
            x = self.op("DEPTHWISE_CONV_2D", [self.op("RELU", [x])], stride=stride if i == 0 else 1)
            x = self.conv(x, channels)
        return x

    def graph(self, outputs: Sequence[Map]) -> Graph:
        written = {t for op in self.ops for t in op.outputs}
        read = {t for op in self.ops for t in op.inputs}
        inputs = tuple(sorted(read - written))
        last = tuple(m.tensor for m in outputs)
        return Graph(self.name, "tflite", tuple(self.tensors), tuple(self.ops), inputs, last)


def inception_like(blocks: int = 9) -> Graph:
    """Four-branch blocks. Szegedy et al., Going deeper with convolutions, CVPR 2015, table 1."""
    table = [
        (28, 64, 96, 128, 16, 32, 32),
        (28, 128, 128, 192, 32, 96, 64),
        (14, 192, 96, 208, 16, 48, 64),
        (14, 160, 112, 224, 24, 64, 64),
        (14, 128, 128, 256, 24, 64, 64),
        (14, 112, 144, 288, 32, 64, 64),
        (14, 256, 160, 320, 32, 128, 128),
        (7, 256, 160, 320, 32, 128, 128),
        (7, 384, 192, 384, 48, 128, 128),
    ]
    net = Net("inception-like")
    x = net.conv(net.input(224, 3), 64, 2)
    x = net.op("MAX_POOL_2D", [x], stride=2)
    x = net.conv(net.conv(x, 64), 192)
    x = net.op("MAX_POOL_2D", [x], stride=2)
    for height, one, three_in, three, five_in, five, pool in table[:blocks]:
        if height < x.height:
            x = net.op("MAX_POOL_2D", [x], stride=2)
        branches = [
            net.conv(x, one),
            net.conv(net.conv(x, three_in), three),
            net.conv(net.conv(x, five_in), five),
            net.conv(net.op("MAX_POOL_2D", [x]), pool),
        ]
        x = net.concat(branches)
    return net.graph([net.op("MEAN", [x], stride=x.height)])


def densenet121() -> Graph:
    """Huang et al., Densely connected convolutional networks, CVPR 2017; blocks 6, 12, 24, 16 of growth 32."""
    net = Net("DenseNet-121")
    x = net.op("MAX_POOL_2D", [net.conv(net.input(224, 3), 64, 2)], stride=2)
    for block, layers in enumerate((6, 12, 24, 16)):
        for _ in range(layers):
            new = net.conv(net.op("RELU", [net.conv(net.op("RELU", [x]), 128)]), 32)
            x = net.concat([x, new])
        if block < 3:
            x = net.op("AVERAGE_POOL_2D", [net.conv(x, x.channels // 2)], stride=2)
    return net.graph([net.op("MEAN", [x], stride=x.height)])


def unet(height: int = 128, channels: int = 16) -> Graph:
    """Ronneberger et al., U-Net, MICCAI 2015; four levels."""
    net = Net("U-Net")
    x, skips = net.input(height, 3), []
    for level in range(3):
        x = net.conv(net.conv(x, channels << level), channels << level)
        skips.append(x)
        x = net.op("MAX_POOL_2D", [x], stride=2)
    x = net.conv(net.conv(x, channels << 3), channels << 3)
    for level in reversed(range(3)):
        up = net.op("RESIZE_BILINEAR", [net.conv(x, channels << level)])
        skip = skips[level]
        up = Map(_resized(net, up, skip.height), skip.height, up.channels)
        x = net.conv(net.conv(net.concat([skip, up]), channels << level), channels << level)
    return net.graph([net.conv(x, 2)])


def _resized(net: Net, x: Map, height: int) -> int:
    """Gives the map of a resize its new extent."""
    old = net.tensors[x.tensor]
    net.tensors[x.tensor] = Tensor(old.name, (1, height, height, x.channels), old.dtype)
    return x.tensor


def bifpn(layers: int = 6, channels: int = 64) -> Graph:
    """Tan et al., EfficientDet, CVPR 2020, figure 3: five levels, top-down then bottom-up, `layers` times."""
    net = Net(f"BiFPN x{layers}")
    x = net.conv(net.input(512, 3), 24, 8)
    levels = [net.conv(x, channels)]
    for _ in range(4):
        x = net.conv(x, x.channels * 2 if x.channels < 200 else x.channels, 2)
        levels.append(net.conv(x, channels))

    def node(*maps: Map) -> Map:
        return net.conv(net.op("DEPTHWISE_CONV_2D", [net.op("RELU", [net.add(*maps)])]), channels)

    def resize(x: Map, height: int) -> Map:
        out = net.op("RESIZE_NEAREST_NEIGHBOR" if height > x.height else "MAX_POOL_2D", [x])
        return Map(_resized(net, out, height), height, out.channels)

    for _ in range(layers):
        down = [levels[-1]]
        for level in reversed(levels[:-1]):
            down.insert(0, node(level, resize(down[0], level.height)))
        up = [down[0]]
        for i in range(1, len(levels)):
            smaller = resize(up[-1], levels[i].height)
            up.append(node(levels[i], down[i], smaller) if i < len(levels) - 1 else node(levels[i], smaller))
        levels = up
    return net.graph(levels)


Genotype = Sequence[tuple[str, int]]

NASNET_NORMAL: Genotype = (
    ("sep", 0), ("sep", 1), ("sep", 1), ("sep", 1), ("avg", 0),
    ("skip", 1), ("avg", 1), ("avg", 1), ("sep", 0), ("skip", 0),
)  # fmt: skip
NASNET_REDUCE: Genotype = (
    ("sep", 0), ("sep", 1), ("max", 0), ("sep", 1), ("avg", 0),
    ("sep", 1), ("skip", 3), ("avg", 2), ("sep", 2), ("max", 0),
)  # fmt: skip
DARTS_NORMAL: Genotype = (
    ("sep", 0), ("sep", 1), ("sep", 0), ("sep", 1), ("sep", 1), ("skip", 0), ("skip", 0), ("dil", 2),
)  # fmt: skip
DARTS_REDUCE: Genotype = (
    ("max", 0), ("max", 1), ("skip", 2), ("max", 1), ("max", 0), ("skip", 2), ("skip", 2), ("max", 1),
)  # fmt: skip
AMOEBA_NORMAL: Genotype = (
    ("avg", 0), ("max", 1), ("sep", 0), ("sep", 2), ("sep", 0),
    ("avg", 3), ("sep", 1), ("skip", 1), ("skip", 0), ("avg", 1),
)  # fmt: skip
AMOEBA_REDUCE: Genotype = (
    ("avg", 0), ("sep", 1), ("max", 0), ("sep", 2), ("sep", 0),
    ("avg", 1), ("max", 0), ("max", 1), ("dil", 0), ("sep", 5),
)  # fmt: skip


@dataclass
class Cells:
    """Stacks cells of two kinds; each cell reads the two outputs before it."""

    net: Net
    fine: bool

    def branch(self, kind: str, x: Map, channels: int, stride: int) -> Map:
        if kind == "skip":
            return x if stride == 1 else self.net.conv(x, channels, stride)
        if kind in ("avg", "max"):
            return self.net.op("AVERAGE_POOL_2D" if kind == "avg" else "MAX_POOL_2D", [x], stride=stride)
        return self.net.separable(x, channels, stride, fine=self.fine, times=1 if kind == "dil" else 2)

    def squeeze(self, x: Map, height: int, channels: int) -> Map:
        stride = 2 if x.height > height else 1
        return self.net.conv(self.net.op("RELU", [x]), channels, stride)

    def cell(
        self, genotype: Genotype, joined: Sequence[int], now: Map, last: Map, channels: int, *, reduce: bool
    ) -> Map:
        states = [self.squeeze(now, now.height, channels), self.squeeze(last, now.height, channels)]
        for left, right in zip(genotype[::2], genotype[1::2], strict=True):
            sides = [self.branch(kind, states[i], channels, 2 if reduce and i < 2 else 1) for kind, i in (left, right)]
            states.append(self.net.add(*sides))
        return self.net.concat([states[i] for i in joined])

    def stack(
        self, x: Map, kinds: str, channels: int, normal: Genotype, reduce: Genotype, joined: tuple[Sequence[int], ...]
    ) -> Map:
        last = x
        for kind in kinds:
            channels *= 2 if kind == "r" else 1
            genotype, joins = (normal, joined[0]) if kind == "n" else (reduce, joined[1])
            last, x = x, self.cell(genotype, joins, x, last, channels, reduce=kind == "r")
        return x


NASNET_JOINS = ((1, 2, 3, 4, 5, 6), (3, 4, 5, 6))


def nasnet_cifar() -> Graph:
    """Zoph et al., Learning transferable architectures, CVPR 2018: NASNet-A (6 @ 768) on 32 x 32, coarse."""
    net = Net("NASNet-A cifar")
    x = net.conv(net.input(32, 3), 96)
    x = Cells(net, fine=False).stack(x, "nnnnnnrnnnnnnrnnnnnn", 32, NASNET_NORMAL, NASNET_REDUCE, NASNET_JOINS)
    return net.graph([net.op("MEAN", [x], stride=x.height)])


def nasnet_n4() -> Graph:
    """As `nasnet_cifar`, four normal cells a stage, 44 channels at 56 x 56, fine."""
    net = Net("NASNet-A N=4")
    x = net.conv(net.input(112, 3), 32, 2)
    x = Cells(net, fine=True).stack(x, "nnnnrnnnnrnnnn", 44, NASNET_NORMAL, NASNET_REDUCE, NASNET_JOINS)
    return net.graph([net.op("MEAN", [x], stride=x.height)])


def darts(cells: int = 20) -> Graph:
    """Liu et al., DARTS, ICLR 2019: the second-order CIFAR genotype, 36 channels, reductions at one and two thirds."""
    net = Net(f"DARTS {cells} cells")
    x = net.conv(net.input(32, 3), 108)
    kinds = "".join("r" if i in (cells // 3, 2 * cells // 3) else "n" for i in range(cells))
    x = Cells(net, fine=True).stack(x, kinds, 36, DARTS_NORMAL, DARTS_REDUCE, ((2, 3, 4, 5),) * 2)
    return net.graph([net.op("MEAN", [x], stride=x.height)])


def darts_cell(channels: int = 48, height: int = 28, *, fine: bool = True) -> Graph:
    """One DARTS normal cell of the ImageNet network (48 channels at 28 x 28), its two inputs given."""
    net = Net("DARTS ImageNet cell" + ("" if fine else ", coarse"))
    now, last = net.input(height, 4 * channels), net.input(height, 4 * channels)
    out = Cells(net, fine=fine).cell(DARTS_NORMAL, (2, 3, 4, 5), now, last, channels, reduce=False)
    return net.graph([out])


def amoebanet(cells: int = 18) -> Graph:
    """Real et al., Regularized evolution, AAAI 2019: the genotype of AmoebaNet-A as given in the DARTS code."""
    net = Net("AmoebaNet-like")
    x = net.conv(net.input(32, 3), 108)
    kinds = "".join("r" if i in (cells // 3, 2 * cells // 3) else "n" for i in range(cells))
    x = Cells(net, fine=True).stack(x, kinds, 36, AMOEBA_NORMAL, AMOEBA_REDUCE, ((4, 5, 6), (3, 4, 6)))
    return net.graph([net.op("MEAN", [x], stride=x.height)])


def randwire(nodes: int, degree: int, chance: float, seed: int, height: int = 16, channels: int = 78) -> Graph:
    """Xie et al., Exploring randomly wired networks, ICCV 2019: Watts-Strogatz wiring, one stage."""
    net = Net(f"RandWire WS({nodes},{degree},{chance:g}) seed {seed}" + (f" at {height}" if height != 16 else ""))
    x = net.conv(net.input(height, channels), channels)
    return net.graph([_wired(net, x, nodes, degree, chance, seed)])


def randwire_stages(stages: int = 3, seed: int = 0) -> Graph:
    """Several stages of 32 nodes, each at half the extent and twice the channels of the one before."""
    net = Net(f"RandWire {stages} stages")
    x = net.conv(net.input(16, 78), 78)
    for stage in range(stages):
        x = _wired(net, x, 32, 4, 0.75, seed + stage)
        if stage < stages - 1:
            x = net.conv(x, x.channels * 2, 2)
    return net.graph([x])


def _wired(net: Net, x: Map, nodes: int, degree: int, chance: float, seed: int) -> Map:
    before = watts_strogatz(nodes, degree, chance, seed)
    made: list[Map] = []
    for node in range(nodes):
        total = net.add(*(made[p] for p in before[node])) if before[node] else x
        made.append(net.separable(total, total.channels, times=1))
    read = {p for ps in before for p in ps}
    return net.add(*(made[node] for node in range(nodes) if node not in read))


def watts_strogatz(nodes: int, degree: int, chance: float, seed: int) -> list[list[int]]:
    """A ring whose edges are rewired with a chance, made acyclic by number: the predecessors of each node."""
    rng = random.Random(seed)
    edges = {(i, (i + k) % nodes) for i in range(nodes) for k in range(1, degree // 2 + 1)}
    for k in range(1, degree // 2 + 1):
        for i in range(nodes):
            edge = (i, (i + k) % nodes)
            if rng.random() >= chance:
                continue
            taken = {b for a, b in edges if a == i} | {a for a, b in edges if b == i} | {i}
            free = [j for j in range(nodes) if j not in taken]
            if free:
                edges.remove(edge)
                edges.add((i, rng.choice(free)))
    before: list[set[int]] = [set() for _ in range(nodes)]
    for a, b in edges:
        before[max(a, b)].add(min(a, b))
    return [sorted(ps) for ps in before]


def swiftnet_like(branches: int = 8, height: int = 48, channels: int = 32) -> Graph:
    """Many narrow branches of different length over one input, joined late, as in the drawings of SwiftNet cells."""
    net = Net("SwiftNet-like cell")
    x = net.input(height, channels)
    ends = []
    for i in range(branches):
        wide = net.conv(x, 4 * channels)
        middle = net.op("DEPTHWISE_CONV_2D", [wide])
        for _ in range(i % 3):
            middle = net.op("DEPTHWISE_CONV_2D", [middle])
        ends.append(net.conv(middle, channels // 4))
        if i % 4 == 3:
            ends = [net.concat(ends)]
    return net.graph([net.conv(net.concat([*ends, x]), channels)])


def bert(layers: int, heads: int, tokens: int = 128, width: int = 768) -> Graph:
    """Devlin et al., BERT, NAACL 2019; attention heads written as separate operators."""
    net = Net(f"BERT {layers} x {heads} heads")
    net.tensors.append(Tensor("x", (tokens, width), "int8"))
    x = Map(0, 0, 0)

    def op(kind: str, inputs: Sequence[Map], *shape: int) -> Map:
        net.tensors.append(Tensor(f"t{len(net.tensors)}", shape, "int8"))
        net.ops.append(
            Op(f"{kind.lower()}{len(net.ops)}", kind, tuple(m.tensor for m in inputs), (len(net.tensors) - 1,))
        )
        return Map(len(net.tensors) - 1, 0, 0)

    size = width // heads
    for _ in range(layers):
        made = []
        for _ in range(heads):
            q, k, v = (op("FULLY_CONNECTED", [x], tokens, size) for _ in range(3))
            scores = op("SOFTMAX", [op("BATCH_MATMUL", [q, k], tokens, tokens)], tokens, tokens)
            made.append(op("BATCH_MATMUL", [scores, v], tokens, size))
        joined = op("FULLY_CONNECTED", [op("CONCATENATION", made, tokens, width)], tokens, width)
        x = op("LAYER_NORM", [op("ADD", [x, joined], tokens, width)], tokens, width)
        wide = op("GELU", [op("FULLY_CONNECTED", [x], tokens, 4 * width)], tokens, 4 * width)
        x = op(
            "LAYER_NORM", [op("ADD", [x, op("FULLY_CONNECTED", [wide], tokens, width)], tokens, width)], tokens, width
        )
    return net.graph([x])


def random_dag(ops: int, seed: int, reach: int = 30) -> Graph:
    """Unstructured wiring: each op reads one to three recent results, half of the time one that nothing read yet."""
    rng = random.Random(seed)
    net = Net(f"random n={ops} seed {seed}")
    maps = [net.input(1, 32_000)]
    unread: list[Map] = list(maps)
    for _ in range(ops):
        recent = maps[-reach:]
        taken = rng.sample(recent, min(len(recent), rng.choice((1, 1, 2, 2, 3))))
        if unread and rng.random() < 0.5:
            taken[0] = rng.choice(unread)
        distinct = list({m.tensor: m for m in taken}.values())
        unread = [m for m in unread if m not in distinct]
        maps.append(net.op("OP", distinct, rng.randint(1, 64) * 1000))
        unread.append(maps[-1])
    return net.graph(unread)


#: The rows of the table, in its order.
FAMILIES: tuple[Callable[[], Graph], ...] = (
    inception_like,
    densenet121,
    unet,
    bifpn,
    nasnet_cifar,
    nasnet_n4,
    darts,
    amoebanet,
    lambda: randwire(32, 4, 0.75, 0),
    lambda: randwire(32, 4, 0.75, 1),
    lambda: randwire(32, 4, 0.75, 2),
    randwire_stages,
    lambda: bert(2, 4),
    lambda: bert(12, 12),
)

#: Where the reference stops: unstructured wiring of a hundred nodes and more.
HARD: tuple[Callable[[], Graph], ...] = (
    lambda: randwire(48, 4, 0.75, 0),
    lambda: randwire(64, 4, 0.75, 0),
    lambda: randwire(64, 6, 0.75, 0),
    lambda: random_dag(60, 0),
    *(lambda seed=seed: random_dag(120, seed) for seed in range(4)),
)

#: Single cells, for the published figures on cells.
CELLS: tuple[Callable[[], Graph], ...] = (
    darts_cell,
    lambda: darts_cell(fine=False),
    lambda: randwire(32, 4, 0.75, 0, height=32, channels=16),
    lambda: randwire(32, 4, 0.75, 1, height=32, channels=16),
    swiftnet_like,
)

#: Said under the table of cells.
NOT_REBUILT = """
Serenity (Ahn et al., MLSys 2020) gives peaks for nine cells: DARTS ImageNet 1656 to 903 KB (1.83 times less), three
SwiftNet HPD cells (552 to 251, 194 to 82, 70 to 33) and five RandWire cells (645 to 459, 330 to 260, 605 to 359,
350 to 280, 160 to 115). Liberis and Lane (arXiv 1910.05110) give 351 to 301 KB for a SwiftNet cell. What is public of
these: the DARTS genotype and the extent of its cell, and the random graph model of RandWire. What is not: which cell of
the network with which of the two inputs kept, the precision and batch that their kilobytes count, the seeds of the
RandWire wirings, and the SwiftNet cells themselves (only drawn in figures). So the rows above rebuild the DARTS cell
and wirings of the same model, and a cell in the manner of SwiftNet (many narrow branches that join late); their ratios
file order / peak can be compared with the published ratios, their bytes cannot. The rewriting of convolutions after a
concatenation (Serenity's second column) changes the arithmetic and is not part of this scheduler.
"""

#: Ten thousand operators: cells, unstructured wiring near and far.
LARGE: tuple[Callable[[], Graph], ...] = (
    lambda: darts(250),
    lambda: random_dag(10_000, 0),
    lambda: randwire(2_400, 4, 0.75, 0),
)
