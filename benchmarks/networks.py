"""Every allocator on the 79 real networks of Glow's traces, and on MobileNet v1 and v2: heights over the load.

    python benchmarks/networks.py

Traces: pytorch/glow, tests/unittests/MemoryAllocatorTestModels.txt, Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import reporting

from modelplan import Buffer, Problem, RequestError, height, load_bound, place
from modelplan.model import Budget
from modelplan.planning.allocators import ALLOCATORS
from modelplan.planning.allocators.systems.gpu_delegate import shared_bound

MIB = 2**20


@dataclass(frozen=True)
class Network:
    """A network's activations as a problem, and the peak that Glow's own test expects."""

    name: str
    problem: Problem
    expected: int


@dataclass(frozen=True)
class Score:
    """How an allocator did on a set of networks: how many at the load, mean and worst of height over load.

    `lent` counts the networks on which it shows the height of another allocator, having none of its own.
    """

    allocator: str
    at_load: int
    mean: float
    worst: float
    worst_on: str
    lent: int = 0


def read(path: Path) -> list[Network]:
    """One problem per network: a step is an event of its trace, sizes are rounded up to the alignment."""
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    begins = [i for i, line in enumerate(lines) if line[0] == "MODEL"]
    return [_network(lines[a:b]) for a, b in zip(begins, [*begins[1:], len(lines)], strict=True)]


def _network(lines: list[list[str]]) -> Network:
    facts = {line[0]: line[1] for line in lines}
    step = int(facts["ALIGN"])
    size, start, end = {}, {}, {}
    for tick, line in enumerate(line for line in lines if line[0] in ("ALLOC", "FREE")):
        if line[0] == "ALLOC":
            size[line[1]], start[line[1]] = -(-int(line[2]) // step) * step, tick
        else:
            end[line[1]] = tick
    buffers = (Buffer(i, size[i], start[i], end[i], step) for i in size)
    return Network(facts["MODEL"], Problem.of(buffers), int(facts["MEM"]))


def score(allocator: str, networks: Sequence[Network]) -> Score | None:
    """How `allocator` did, or None where it refuses one of the networks."""
    ratios, lent = [], 0
    for network in networks:
        try:
            found = place(network.problem, allocator)
        except RequestError:
            return None
        ratios.append((height(network.problem, found) / load_bound(network.problem), network.name))
        lent += bool(found.found_by)
    worst, name = max(ratios, key=lambda pair: pair[0])
    at_load = sum(ratio == 1 for ratio, _ in ratios)
    mean = sum(ratio for ratio, _ in ratios) / len(ratios)
    return Score(allocator, at_load, mean, worst, name if worst > 1 else "", lent)


def _problem(name: str, sizes: Sequence[int], last_use: dict[int, int]) -> Problem:
    """A chain of float32 tensors, each read by the next op, some again later; the output of op i is tensor i."""
    return Problem.of(Buffer(f"{name}{i}", 4 * size, i, last_use.get(i, i + 1) + 1) for i, size in enumerate(sizes))


def mobilenet_v1() -> Problem:
    """The 30 intermediate tensors at 224 x 224: no network input, no softmax output.

    Source: Howard et al., MobileNets, 2017, arXiv 1704.04861, table 1.
    """
    side, channels, sizes = 112, 32, [112 * 112 * 32]
    strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1]
    widths = [64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024]
    for stride, width in zip(strides, widths, strict=True):
        side //= stride
        sizes += [side * side * channels, side * side * width]
        channels = width
    return _problem("v1.", [*sizes, 1024, 1001, 1001], {})


def mobilenet_v2() -> Problem:
    """The 65 intermediate tensors at 224 x 224: no network input, no softmax output.

    Source: Sandler et al., MobileNetV2, CVPR 2018, table 2.
    """
    side, channels, sizes = 112, 32, [112 * 112 * 32]
    last_use: dict[int, int] = {}
    for factor, width, repeats, first_stride in V2_BLOCKS:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            block = len(sizes) - 1
            if factor > 1:
                sizes.append(side * side * channels * factor)
            side //= stride
            sizes += [side * side * channels * factor, side * side * width]
            if stride == 1 and channels == width:
                last_use[block] = len(sizes)
                sizes.append(side * side * width)
            channels = width
    return _problem("v2.", [*sizes, side * side * 1280, 1280, 1001, 1001], last_use)


#: expansion, output channels, repeats, stride of the first
V2_BLOCKS = [
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
]  # fmt: skip


def mobilenet_rows() -> Iterator[tuple[str, float, float]]:
    """Name, MiB for v1, MiB for v2: the bounds, then every planner of the GPU delegate."""
    nets = (mobilenet_v1(), mobilenet_v2())
    yield "bound of shared objects", shared_bound(nets[0]) / MIB, shared_bound(nets[1]) / MIB
    yield "load (bound of offsets)", load_bound(nets[0]) / MIB, load_bound(nets[1]) / MIB
    for row in ALLOCATORS.values():
        if row.share:
            one, two = (row.share(net, Budget()).total / MIB for net in nets)
            yield f"{row.name} (objects)", one, two
        elif row.name.startswith("tflite"):
            one, two = (height(net, place(net, row.name)) / MIB for net in nets)
            yield row.name, one, two


def report(networks: Sequence[Network]) -> Iterator[str]:
    """The page reports/networks.md below its title."""
    scores = [found for name in ALLOCATORS if (found := score(name, networks))]
    ranked = sorted(scores, key=lambda s: (s.mean, -s.at_load))
    refused = [name for name in ALLOCATORS if name not in {s.allocator for s in scores}]
    exact = sum(height(n.problem, place(n.problem, "glow")) == n.expected for n in networks)
    yield f"{len(networks)} networks of Glow's allocation traces: activations only, sizes rounded up to 64 bytes,"
    yield f"nothing in place. `glow` reaches the peak that Glow's own test expects on {exact} of them."
    yield "Shared objects lie end to end; their height is the sum of the objects. `not its own` counts the networks on"
    yield "which a search has no solution below that of `first-fit-size` and shows that one's height."
    yield ""
    rows = [(s.allocator, s.lent or "", s.at_load, f"{s.mean:.4f}", f"{s.worst:.3f}", s.worst_on) for s in ranked]
    headings = ("allocator", "not its own", "at the load", "mean height/load", "worst", "on")
    yield from reporting.table(headings, rows, "<>>>><")
    yield ""
    yield f"Refused at least one of them: {', '.join(refused)}."
    yield ""
    yield "## MobileNet at 224 x 224, float32, MiB"
    yield ""
    sizes = ((name, f"{one:.3f}", f"{two:.3f}") for name, one, two in mobilenet_rows())
    yield from reporting.table(("planner", "v1, 30 tensors", "v2, 65 tensors"), sizes)


PARSER = reporting.command_line(__file__, __doc__, "networks.md")


def main() -> None:
    arguments = reporting.parse(PARSER)
    networks = read(arguments.corpus / "problems" / "glow" / "traces.txt")
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Real networks", report(networks))


if __name__ == "__main__":
    main()
