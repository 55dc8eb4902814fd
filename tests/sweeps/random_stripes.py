"""Random networks in stripes at random legal cuts: python tests/sweeps/random_stripes.py [SEEDS [KIND [FIRST]]]

KIND `moving` has many operators that only move, `exported` has channels first between TRANSPOSEs, `headed` has heads as
detectors, `branched` adds branches of which one has the longer windows, `deep` has many channels and goes in blocks of
them, `attending` has heads of an attention, `renamed` renames maps of a sequence. Each network, from seed FIRST on, is
rewritten, run on the tflite-micro wheel with and without its plan, and compared with itself.
Prints the seeds that differ, and exits with 1 if there are any.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from program_replay import replay_steps
from random_cnns import (
    attending_net,
    branched_cnn,
    deep_cnn,
    exported_cnn,
    headed_cnn,
    moving_cnn,
    random_cnn,
    renamed_cnn,
)

from modelplan import runtimes
from modelplan.formats import load_model
from modelplan.model import Graph
from modelplan.rewriting.striped_tflite import placing
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.folded_convolutions import Folded
from modelplan.rewriting.striped_tflite.interface import reloaded
from modelplan.rewriting.striped_tflite.joining import with_joins
from modelplan.rewriting.striped_tflite.layers import stretch_layers
from modelplan.rewriting.striped_tflite.slicing import with_slices
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.striped_tflite.turning import with_fewer_transposes
from modelplan.rewriting.striped_tflite.writing import write_striped
from modelplan.rewriting.stripes.group_packing import pack
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import (
    CarryingLoop,
    ChannelBlocks,
    KeptHalo,
    LoopedStripes,
    RecomputedHalo,
    RollingStripes,
    StripedStretch,
)
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.runner import run_tflm

#: A network as a file, by seed.
Network = Callable[[int], bytes]
#: Networks beside those of convolutions, by what they have many of.
KINDS: dict[str, Network] = {
    "moving": moving_cnn, "exported": exported_cnn, "headed": headed_cnn, "branched": branched_cnn, "deep": deep_cnn,
    "attending": attending_net, "renamed": renamed_cnn,
}  # fmt: skip


def random_stretch(graph: Graph, rng: random.Random) -> StripedStretch | None:
    """Some operators in a row with random cuts and ways; None where none of them can be split."""
    first = rng.randrange(len(graph.ops))
    last = rng.randrange(first, len(graph.ops))
    shape = graph.tensors[graph.ops[last].outputs[0]].shape
    axis = 2 if shape[1] == 1 else 1
    try:
        stretch_layers(graph, range(len(graph.ops)), StripedStretch(first, last, axis, (0, shape[axis])))
    except IllegalStripeError:
        return None
    if shape[axis] < 2:
        return None
    inner = sorted(rng.sample(range(1, shape[axis]), rng.randrange(1, min(6, shape[axis]))))
    pad = frozenset(i for i in range(first, last + 1) if rng.random() < 0.5)
    carry = rng.random() < 0.5
    if rng.random() < 0.25:
        rows = rng.randrange(1, shape[axis])
        columns = rng.randrange(1, shape[2]) if axis == 1 and shape[2] > 1 and rng.random() < 0.5 else 0
        cuts, late = (*range(0, shape[axis], rows), shape[axis]), rng.random() < 0.4
        return LoopedStripes(first, last, axis, cuts, trim_late=late, columns=columns)
    if rng.random() < 0.25:
        rows = rng.choice([n for n in range(1, shape[axis]) if not shape[axis] % n])
        return CarryingLoop(first, last, axis, tuple(range(0, shape[axis] + 1, rows)))
    early = carry and rng.random() < 0.4
    height = graph.tensors[graph.ops[first].outputs[0]].shape[axis]
    if carry and height > 1 and rng.random() < 0.4:
        rows = rng.randrange(1, max(2, height // 2))
        cuts = (*range(0, height, rows), height)
        return RollingStripes(first, last, axis, cuts, pad=pad, pad_early=early)
    late, backward = (not carry and rng.random() < 0.5 for _ in range(2))
    again, untrimmed = (frozenset(i for i in range(first, last + 1) if carry and rng.random() < 0.4) for _ in range(2))
    cuts = (0, *inner, shape[axis])
    if carry:
        return KeptHalo(first, last, axis, cuts, pad=pad, pad_early=early, recomputed=again, untrimmed=untrimmed)
    return RecomputedHalo(first, last, axis, cuts, pad=pad, trim_late=late, backward=backward)


def random_blocks(graph: Graph, rng: random.Random) -> StripedStretch | None:
    """Some operators in a row in random blocks of channels; None where they have too few."""
    first = rng.randrange(len(graph.ops) - 1)
    last = rng.randrange(first, len(graph.ops))
    shape = graph.tensors[graph.ops[last].outputs[0]].shape
    blocks = rng.randrange(2, max(3, min(shape[-1] // 2, 10) + 1))
    if shape[-1] < 2 * blocks:
        return None
    spare = sorted(rng.randrange(shape[-1] - 2 * blocks + 1) for _ in range(blocks - 1))
    cuts = (0, *(at + 2 * i for i, at in enumerate(spare, 1)), shape[-1])
    return ChannelBlocks(first, last, len(shape) - 1, cuts)


def rewritten(
    data: bytes,
    name: str,
    program: TfliteProgram,
    overlaps: placing.KernelOverlaps,
    written_as: TfliteProgram | None = None,
) -> tuple[bytes, bytes, int]:
    """The file of a program with its plan, and the head that is predicted; `written_as`: with this one's constants."""
    packing = pack(placing.problem_of(program, overlaps, planner.ALIGNMENT), 200)
    replay_steps(program, packing, overlaps)
    model, values = write_striped(data, written_as or program)
    file = read_tflite(model, name)
    place = placing.value_addresses(program, packing)
    planned = write_plan(file, [place.get(value, planner.ONLINE) for value in values])
    return model, planned, planner.predicted_head(read_tflite(planned, name))


def with_other_moves(data: bytes, path: Path) -> tuple[bytes, Graph]:
    """A network with fewer TRANSPOSEs, slices for other operators, parts of joins in place, as stripes are searched."""
    path.write_bytes(data)
    graph = load_model(str(path))
    for moves in (with_fewer_transposes, with_slices):
        program = moves(data, graph)
        if program is not None:
            data, _ = write_striped(data, program)
            graph = reloaded(data, graph)
    return data, with_joins(Folded(graph, tuple(range(len(graph.ops))))).graph


def legal_program(graph: Graph, seed: int, network: Network = random_cnn) -> TfliteProgram | None:
    """A program with a random stretch of a random network in stripes, or of a deep one in blocks of channels."""
    rng, drawn = random.Random(seed), random_blocks if network is deep_cnn else random_stretch
    for _ in range(60):
        stretch = drawn(graph, rng)
        if stretch is None:
            continue
        try:
            return striped_program(graph, range(len(graph.ops)), [stretch])
        except IllegalStripeError:
            continue
    return None


def split(seed: int, folder: Path, network: Network = random_cnn) -> tuple[bytes, bytes, TfliteProgram] | None:
    """A random network, the same with other moves, and a program of it in stripes; None where none can be split."""
    data = network(seed)
    moved, graph = with_other_moves(data, folder / "random.tflite")
    program = legal_program(graph, seed, network)
    return (data, moved, program) if program is not None else None


def differences(seed: int, folder: Path, network: Network = random_cnn) -> list[str] | None:
    """What a random network in stripes does otherwise than before; None where no operator of it can be split."""
    parts = split(seed, folder, network)
    if parts is None:
        return None
    data, moved, program = parts
    overlaps = placing.proved_overlaps(runtimes.runtime("tflm", "tflite"))
    plain, planned, head = rewritten(moved, "random", program, overlaps)
    own, ours = run_tflm(data, rounds=1), run_tflm(planned, rounds=1)
    found = []
    if ours.outputs != own.outputs:
        found.append("outputs with the plan")
    if planner.padded(ours.head) != head:
        found.append(f"head {ours.head}, predicted {head}")
    if not any(step.loop for step in program.steps) and run_tflm(plain, rounds=1).outputs != own.outputs:
        found.append("outputs without the plan")
    return found


def main() -> int:
    """Runs the seeds and tells which differ."""
    seeds, split, wrong = int(sys.argv[1]) if len(sys.argv) > 1 else 500, 0, 0
    network = KINDS[sys.argv[2]] if sys.argv[2:] else random_cnn
    first = int(sys.argv[3]) if sys.argv[3:] else 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + seeds):
            found = differences(seed, Path(folder), network)
            split += found is not None
            wrong += bool(found)
            if found:
                print(f"seed {seed}: {'; '.join(found)}")
    print(f"{seeds} networks, {split} split, {wrong} differ")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
