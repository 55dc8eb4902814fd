"""Networks in several memories: use, traffic, memory time, run by the simulator, bounds, fast choice beside the exact.

Four networks on four kinds of hardware, the regions as small as the network makes interesting: the fast memory has a
share of what the network would need there. Then problems drawn at random: of up to 120 buffers beside HiGHS, as
tests/sweeps/region_sweep.py draws them, and of many buffers beside the linear relaxation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from reporting import ROOT, command_line, made_by, parse, progress, save, table

sys.path.insert(0, str(ROOT / "tests" / "sweeps"))

from region_problems import choice_gap, random_problem, swept_problem

from modelplan import Plan, load, plan
from modelplan.answers.region_plan import RegionPlan
from modelplan.checking.moves_simulator import simulate
from modelplan.model import Budget, Graph
from modelplan.outputs.reports.region_report import duration
from modelplan.planning.memories.choice_tables import tables_of
from modelplan.planning.memories.exact_choice import linear_choice
from modelplan.planning.memories.memory_choice import Choosing
from modelplan.planning.memories.pricing import priced_choice
from modelplan.planning.memories.region_planning import plan_regions
from modelplan.primitives.errors import ModelPlanError
from modelplan.targets.device import Kind, Region

PARSER = command_line(__file__, __doc__, "memories.md")
#: Seconds that HiGHS has for each choice.
_SECONDS = 60.0
#: Random problems of each number of buffers.
_PROBLEMS = 40
#: Multiply-accumulates that the processor computes in a second.
_MACS = 1e8
_RATES = {"psram": (80_000_000, 40_000_000), "sram": (400_000_000, 400_000_000), "flash": (50_000_000, None)}


def networks(corpus: Path) -> Iterator[tuple[str, Plan]]:
    """The plans of the networks by name."""
    paths = {
        "person_detect": corpus / "tflite" / "person_detect.tflite",
        "vww_96": next(iter(sorted((corpus / "tflite").rglob("*vww_96*.tflite"))), None),
        "unet_small": ROOT / "models" / "unet_small.tflite",
        "transformer_encoder.onnx": ROOT / "models" / "transformer_encoder.onnx",
    }
    for name, path in paths.items():
        if path is None or not path.exists():
            progress(f"{name}: no file")
            continue
        graph = load(path)
        assert isinstance(graph, Graph)
        yield name, plan(graph)


def hardware(made: Plan) -> Iterator[tuple[str, tuple[Region, ...]]]:
    """The regions of four kinds of hardware, sized for a network."""
    arena = int(max(made.problem.size[(made.problem.start <= s) & (made.problem.end > s)].sum()
                    for s in range(int(made.problem.end.max()))))  # fmt: skip
    weights = sum(t.nbytes for t in made.graph.tensors if t.kind == "constant")

    def region(name: str, kind: Kind, size: int, base: int) -> Region:
        read, write = _RATES.get(name, (None, None))
        return Region(name, -(-size // 1024) * 1024, base, kind, read_bandwidth=read, write_bandwidth=write)

    large = 4 * (arena + weights) + (1 << 20)
    yield "one SRAM", (region("sram", "ram", 2 * (arena + weights), 0x20000000),)
    yield "TCM + SRAM", (region("tcm", "tcm", arena // 2, 0x20000000), region("sram", "ram", large, 0x24000000))
    yield "SRAM + PSRAM", (Region("sram", -(-arena * 3 // 4 // 1024) * 1024, 0x20000000),
                           region("psram", "psram", large, 0x3C000000))  # fmt: skip
    yield "SRAM + flash", (Region("sram", -(-(arena + weights // 3) // 1024) * 1024, 0x20000000),
                           region("flash", "nvm", large, 0x08000000))  # fmt: skip


def rows(corpus: Path) -> Iterator[tuple[object, ...]]:
    """A line for each network and hardware."""
    for name, made in networks(corpus):
        for where, regions in hardware(made):
            progress(f"{name}: {where}")
            yield name, where, *_answers(made, regions)


def _answers(made: Plan, regions: tuple[Region, ...]) -> tuple[object, ...]:
    found: list[RegionPlan] = []
    spent: list[float] = []
    for method in ("exact", "fast"):
        begun = time.process_time()
        try:
            how = Choosing(method, budget=Budget(seconds=_SECONDS))
            found.append(plan_regions([made], regions, how, macs_per_second=_MACS))
        except ModelPlanError as problem:
            return (str(problem), *[""] * 9)
        spent.append(time.process_time() - begun)
    exact, fast = found
    used = ", ".join(f"{use.region.name} {use.low:,} of {use.region.size:,}" for use in exact.uses)
    traffic = ", ".join(f"{use.region.name} {use.read + use.written:,}" for use in exact.uses)
    run = simulate(exact.problem, exact.layout).seconds
    linear = linear_choice(tables_of(exact.problem))
    assert linear is not None
    return (used, traffic, duration(exact.seconds), duration(run), exact.layout.ended,
            _over(exact.seconds, exact.layout.bound), _over(exact.seconds, linear.bound),
            _over(fast.seconds, exact.seconds), f"{spent[0]:.1f}", f"{spent[1]:.1f}")  # fmt: skip


def _over(cost: float, bound: float) -> str:
    return f"{(cost - bound) / bound if bound else 0.0:.2%}"


def random_gaps() -> Iterator[tuple[object, ...]]:
    """The fast choice beside bounds on random problems, for each number of buffers."""
    for count in (10, 30, 60, 120):
        tables = [tables_of(swept_problem(Random(count * 1_000_003 + n), [count])) for n in range(_PROBLEMS)]
        progress(f"{count} buffers at random")
        gaps = [choice_gap(one, seconds=_SECONDS) for one in tables]
        by = [sum(gap.proved_by == name for gap in gaps) for name in ("LP", "MILP", "limit")]
        over = [sum(gap.over > limit for gap in gaps) for limit in (0.0001, 0.01, 0.02)]
        spent = [gap.spent for gap in gaps]
        yield (count, len(gaps), *by, *over, f"{max(gap.over for gap in gaps):.2%}",
               f"{sum(spent) / len(spent):.2f}", f"{max(spent):.1f}")  # fmt: skip


def crowds() -> Iterator[tuple[object, ...]]:
    """The fast choice on random problems of many buffers."""
    for count in (100, 1_000, 10_000):
        progress(f"{count} buffers")
        tables = tables_of(random_problem(Random(1), count, count // 5, 3, tight=0.5))
        begun = time.process_time()
        choice, bound = priced_choice(tables)
        spent = time.process_time() - begun
        assert choice is not None
        assert tables.fits(choice)
        cost = tables.cost_of(choice)
        yield f"{count:,}", duration(cost), duration(bound), _over(cost, bound), f"{spent:.1f}"


def main() -> None:
    """Writes the page."""
    arguments = parse(PARSER)
    headings = ("network", "memories", "in use, bytes", "traffic, bytes", "memory time", "run", "exact choice",
                "over bound", "over LP bound", "fast over exact", "CPU s exact", "CPU s fast")  # fmt: skip
    lines = [
        "Layouts without copies: every buffer lies in one region. Memory time is what operators wait for operands.",
        "SRAM costs nothing beside PSRAM or flash, and 400 MB/s alone or beside a TCM; PSRAM 80 MB/s to read, 40 MB/s",
        "to write, flash 50 MB/s. `run` is the time of the simulator, which replays the exact layout and computes 100",
        "million multiply-accumulates a second. `over bound` is the exact choice over the bound that HiGHS proves,",
        "`over LP bound` the same choice over the linear relaxation before offsets are placed. CPU seconds hold for",
        "one machine under load, planning and proof included.",
        "",
        *table(headings, rows(arguments.corpus), "<<<<>><>>>>>"),
        "",
        "## Random problems",
        "",
        "The fast choice before offsets are placed. Where the linear relaxation (LP) proves it within 2 %, that is its",
        "gap; else HiGHS solves the problem (MILP) or stops after 60 seconds, and the gap is to its bound.",
        "`python tests/sweeps/region_sweep.py --exact 1 --buffers 10 30 60 120 --count N --seed S`",
        "draws others of the kind.",
        "",
        *table(
            (
                "buffers",
                "problems",
                "LP",
                "MILP",
                "stopped",
                "above 0.01%",
                "above 1%",
                "above 2%",
                "largest",
                "CPU s",
                "most",
            ),
            random_gaps(),
            ">>>>>>>>>>",
        ),
        "",
        "## Many buffers",
        "",
        "Random problems of three memories; the fast choice and the linear relaxation, which bounds it.",
        "",
        *table(("buffers", "fast choice", "LP bound", "over it", "CPU s"), crowds()),
    ]
    save(arguments.output, made_by(PARSER, arguments), "Several memories", lines)


if __name__ == "__main__":
    main()
