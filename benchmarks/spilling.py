"""Shows what it costs to run networks in less fast memory than their arena needs: traffic, time, bounds.

    python benchmarks/spilling.py [--seconds N]

First the four targets of `memories.py`: each buffer in one memory, and contents that move. Then the fast memory is a
share of the arena; activations may go to PSRAM, weights are in flash. Every layout is replayed by the simulator, whose
time is shown. `whole` is the exact choice with each buffer in one memory for its life (what planners without copies do,
such as Vela for its fast storage); `greedy` and `exact` also move contents. N is the limit of each run of the exact
program.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import reporting
from memories import hardware, networks

from modelplan import Plan, plan
from modelplan.answers.region_layout import RegionProblem
from modelplan.checking.moves_simulator import simulate
from modelplan.model import Budget
from modelplan.model.bounds import height
from modelplan.planning.memories.asking import region_problem
from modelplan.planning.memories.choice_tables import tables_of
from modelplan.planning.memories.exact_choice import linear_choice
from modelplan.planning.memories.exact_spilling import HoldingProgram
from modelplan.planning.memories.memory_choice import Choosing
from modelplan.planning.memories.prefetching import Moving, plan_moves
from modelplan.planning.memories.region_planning import moving_problem, plan_regions
from modelplan.planning.memories.spilling import spill
from modelplan.planning.memories.tracks import HOME, Costs, room
from modelplan.primitives.errors import RequestError
from modelplan.targets.device import Dma, Region

SHARES = (90, 80, 70, 60, 50, 40)
MODELS = (
    "tflite/person_detect.tflite",
    "tflite/vww_96_int8.tflite",
    "models/unet_small.tflite",
    "models/transformer_encoder.onnx",
)
FAST = 0
_RATE, _MACS, _SLOW = 400_000_000, 1e8, 64 << 20
_COLUMNS = (
    "model", "share", "fast memory", "whole", "greedy", "exact", "relaxation", "greedy to exact",
    "exact to bound", "fragmented", "slow bytes", "compulsory", "copied", "run", "no overlap", "floor", "CPU s",
)  # fmt: skip
_TARGETS = (
    "network", "memories", "arena of each region", "traffic", "run", "over LP bound",
    "greedy", "exact", "greedy to exact", "over relaxation", "slow bytes", "least", "run that moves",
)  # fmt: skip


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "Spilling: networks in less memory than their arena", page(arguments))


def page(arguments: object) -> Iterator[str]:
    """The lines of the report."""
    yield (
        "Milliseconds of accesses and copies for `whole`, `greedy`, `exact` and the linear `relaxation` (a bound for"
        " all three), with copies between steps; `fragmented` is how often sizes fitted and offsets did not, so that"
        " less room was given; `exact to bound` compares with the bound for all of the room, a star says that offsets"
        " or time kept it from being met."
    )
    yield ""
    yield (
        "The rest is of `greedy` with an engine that copies while operators run: bytes read and written outside of the"
        " fast memory, the bytes of all weights once (compulsory unless they are kept), bytes copied, the simulator's"
        " time of a run, the time without overlap, and a floor (no copies, each operand in its quickest memory)."
        " `CPU s` is that of `exact`."
    )
    yield ""
    yield (
        "Fast memory 400 MB/s, PSRAM 80 MB/s read and 40 MB/s written, flash 80 MB/s, both 100 ns; one DMA channel with"
        " a queue of 4; 100 million multiply-accumulates a second."
    )
    yield from ("", "## Four targets", "")
    yield (
        "Until `over LP bound` each buffer lies in one memory for its life (exact choice): bytes of each region in use,"
        " bytes that operators read and write there, milliseconds of a run by the simulator, and memory time over the"
        " linear relaxation. Then contents move, with the engine above: milliseconds of accesses and copies, greedy and"
        " exact, the latter over the linear relaxation; bytes read and written outside of the fast memory; `least`,"
        " which are the weights that cannot all be kept there and are read in every run; and the run by the simulator."
        " SRAM takes no time beside PSRAM or flash and 400 MB/s alone or beside a TCM, flash 50 MB/s."
    )
    yield ""
    yield from reporting.table(_TARGETS, targets(arguments), "<<<<" + ">" * (len(_TARGETS) - 4))
    for title, hidden in (("Operators reach all memories", ()), ("Operators do not reach PSRAM", (1,))):
        yield from ("", f"## {title}", "")
        yield from reporting.table(_COLUMNS, rows(arguments, frozenset(hidden)), "<" + ">" * (len(_COLUMNS) - 1))


def targets(arguments: object) -> Iterator[tuple[str, ...]]:
    """A row for each network and each of four targets."""
    corpus, seconds = arguments.corpus, arguments.seconds  # type: ignore[attr-defined]
    for name, made in networks(corpus):
        for where, regions in hardware(made):
            reporting.progress(f"{name}: {where}")
            still = plan_regions(
                [made], regions, Choosing("exact", budget=Budget(seconds=seconds)), macs_per_second=_MACS
            )
            linear = linear_choice(tables_of(still.problem))
            assert linear is not None
            yield (
                name, where, ", ".join(f"{use.region.name} {use.low:,} of {use.region.size:,}" for use in still.uses),
                ", ".join(f"{use.region.name} {use.read + use.written:,}" for use in still.uses),
                ms(simulate(still.problem, still.layout).seconds),
                percent(still.seconds / linear.bound if linear.bound else 1.0),
                *(moved(made, regions, seconds) if len(regions) > 1 else ("one memory", *[""] * 6)),
            )  # fmt: skip


def moved(made: Plan, regions: tuple[Region, ...], seconds: float) -> Iterator[str]:
    """The figures of contents that move between the regions of a target."""
    asked = moving_problem(made, regions, Dma(1, 4), (), "", _MACS)
    greedy, exact = spill(asked), spill(asked, "exact", seconds)
    yield from (ms(greedy.cost), ms(exact.cost) + ("" if exact.layout.ended == "optimal" else " *"))
    yield from (percent(greedy.cost / exact.cost), percent(exact.cost / exact.relaxed if exact.relaxed else 1.0))
    slow, compulsory, _, takes, *_ = run(asked, plan_moves(asked, shares=(1.0, 0.75)))
    least = max(0, int(compulsory.replace(",", "")) - regions[FAST].size)
    yield from (slow, f"{least:,}", takes)


def rows(arguments: object, hidden: frozenset[int]) -> Iterator[tuple[str, ...]]:
    """A row for each model and share."""
    corpus, seconds = arguments.corpus, arguments.seconds  # type: ignore[attr-defined]
    for name in MODELS:
        path = reporting.ROOT / name if name.startswith("models/") else corpus / name
        made = plan(reporting.graph_of(path))
        arena = height(made.problem, made.placement)
        for share in SHARES:
            reporting.progress(f"{name} {share} %, hidden {sorted(hidden)}")
            asked = question(made, arena * share // 100 // 64 * 64, hidden)
            yield (Path(name).stem, f"{share} %", f"{asked.regions[FAST].size:,}", *figures(asked, seconds))


def question(made: Plan, fast: int, hidden: frozenset[int]) -> RegionProblem:
    """A plan's buffers and weights with so much fast memory."""
    regions = (
        Region("sram", fast, bandwidth=_RATE),
        Region(
            "psram", 64 << 20, kind="psram", read_bandwidth=80_000_000, write_bandwidth=40_000_000, latency_ns=100.0
        ),
        Region("flash", _SLOW, kind="nvm", read_bandwidth=80_000_000, latency_ns=100.0),
    )
    try:
        asked = region_problem([made], regions, macs_per_second=_MACS)
    except RequestError:  # a buffer that only the fast memory may hold
        raise SystemExit("a buffer fits nowhere") from None
    return replace(asked, dma=Dma(1, 4), copied_only=hidden)


def figures(asked: RegionProblem, seconds: float) -> Iterator[str]:
    """The figures of one row."""
    try:
        greedy = plan_moves(asked, "greedy", shares=(1.0, 0.75))
    except RequestError as problem:
        step = str(problem).partition("step ")[2].partition(" ")[0]
        yield from ("", f"step {step} does not fit", *[""] * 12)
        return
    began = time.process_time()
    exact = spill(asked, "exact", seconds)
    spent = time.process_time() - began
    own = spill(asked).cost
    yield whole(asked, seconds)
    yield from (
        ms(own),
        ms(exact.cost) + ("" if exact.layout.ended == "optimal" else " *"),
        ms(exact.relaxed),
    )
    yield from (percent(own / exact.cost), percent(exact.cost / exact.layout.bound), str(exact.rounds))
    yield from run(asked, greedy)
    yield f"{spent:.1f}"


def whole(asked: RegionProblem, seconds: float) -> str:
    """The cost of the exact choice of one memory for each buffer; empty where there is none."""
    found = HoldingProgram(Costs(asked), split=False).solve(
        [room(asked, r) for r in range(len(asked.regions))], seconds
    )
    return ms(found.cost) if found.held is not None else "none"


def run(asked: RegionProblem, found: Moving) -> Iterator[str]:
    """Traffic and times of a layout, as the simulator has them."""
    replay = simulate(asked, found.layout)
    slow = sum(replay.read[1:]) + sum(replay.written[1:])
    compulsory = sum(track.size for track in Costs(asked).tracks if track.home != HOME and track.last_used >= 0)
    yield from (f"{slow:,}", f"{compulsory:,}", f"{replay.copied:,}")
    yield from (ms(replay.seconds), ms(found.blocking), ms(found.floor))


def ms(seconds: float) -> str:
    """Milliseconds."""
    return f"{seconds * 1e3:,.3f}"


def percent(share: float) -> str:
    """How much above 1."""
    return f"{round(share - 1, 6) + 0.0:.2%}"


PARSER = reporting.command_line(__file__, __doc__, "spilling.md")
PARSER.add_argument("--seconds", type=float, default=60.0, metavar="N", help="limit of each exact run (default: 60)")

if __name__ == "__main__":
    main()
