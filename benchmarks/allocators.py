"""Measures our allocator beside omnimalloc and the best of seven first-fit orders.

    python benchmarks/allocators.py [--only set_a_to_k,fresh,...] [--long]

Seconds are those of the solver call in this process, on one thread but for the section of the second one; a row of
several seeds gives the median. `--long` adds a minute for each of five seeds of D and J. Peers are measured in the same
run: `greedy_by_all` and `supermalloc` of omnimalloc, the latter with its own default time limit, and its default `omni`
where there are many buffers.
Memory is the peak of a process that only solves.
"""

from __future__ import annotations

import importlib.util
import math
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import reporting
from networks import read

from modelplan import Budget, Placement, Problem, Progress, check, height, load_bound, place
from modelplan.planning.allocators.greedy import GapRule, in_order

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "sweeps"))
from problem_families import FAMILIES

OPEN = ("D.1048576", "J.1048576")  # whose optimum is above the load bound or hard to find
SEEDS = range(1, 6)
LONG_STEPS = 4_000_000  # for D and J
PAIRS = 21  # runs on one thread and on two, in turn
FRESH_SEEDS = range(100, 105)
COPIES = 20
FRESH = {"pinwheel": (33, 65, 129, 257, 1025, 4097), "tiling": (64, 128, 256, 1024, 4096), "mix": (100, 200, 400),
         "skew_bimodal": (2048,), "skew_zipf": (2048,), "skew_log_uniform": (2048,), "skew_dominant": (2048,),
         "rand_short": (1000,), "rand_sparse": (1000,), "rand_unif": (1000,)}  # fmt: skip
LARGE = {100_000: ("rand_short", "rand_sparse", "nn_unet", "nn_dense", "nn_multi", "nn_train"),
         1_000_000: ("rand_short", "rand_sparse")}  # fmt: skip
PATIENCE = 60  # seconds for a peer with a large problem


@dataclass(frozen=True)
class Run:
    """One call of our allocator: its answer, wall and CPU seconds, and each improvement with its time."""

    placement: Placement
    tall: int
    seconds: float
    worked: float
    trace: tuple[tuple[float, int], ...]

    @property
    def proved(self) -> bool:
        return self.tall == self.placement.lower_bound

    def height_at(self, seconds: float) -> float:
        """The height that was known after so many seconds."""
        return min((tall for at, tall in self.trace if at <= seconds), default=float("inf"))


def solve(problem: Problem, seconds: float, seed: int = 0) -> Run:
    trace: list[tuple[float, int]] = []
    began, worked = time.perf_counter(), time.process_time()

    def note(progress: Progress) -> None:
        trace.append((time.perf_counter() - began, progress.height))

    placement = place(problem, "modelplan", Budget(seconds=seconds, seed=seed, progress=note))
    spent, used = time.perf_counter() - began, time.process_time() - worked
    check(problem, placement)
    tall = height(problem, placement)
    return Run(placement, tall, spent, used, (*trace, (spent, tall)))


def named(corpus: Path, folder: str) -> Iterator[tuple[str, Problem]]:
    return ((Path(name).name, problem) for name, problem in reporting.problems(corpus, f"{folder}/"))


def seven_first_fits(problem: Problem) -> tuple[int, float]:
    """The best of seven orders by our own first fit, and the time of all."""
    began = time.perf_counter()
    life = problem.end - problem.start
    begun = np.searchsorted(np.sort(problem.start), problem.end)
    alive = begun - np.searchsorted(np.sort(problem.end), problem.start, side="right") - 1  # conflicts
    keys = [-problem.size, -problem.size * life, -life, problem.start, -alive, -alive * problem.size,
            np.arange(len(problem))]  # fmt: skip
    heights = [height(problem, in_order(problem, np.argsort(key, kind="stable"), GapRule.LOWEST)) for key in keys]
    return min(heights), time.perf_counter() - began


def omnimalloc(problem: Problem, allocator: str) -> tuple[int, float] | None:
    """Height and seconds of one of omnimalloc's allocators, or None where it is absent or gives up."""
    if importlib.util.find_spec("omnimalloc") is None:
        return None
    import omnimalloc as peer

    rows = zip(problem.size.tolist(), problem.start.tolist(), problem.end.tolist(), strict=True)
    entries = [peer.Allocation(id=i, size=z, start=a, end=b) for i, (z, a, b) in enumerate(rows) if z]
    began = time.perf_counter()
    try:
        placed = peer.allocate(entries, allocator)
    except (RuntimeError, ValueError) as complaint:
        reporting.progress(f"omnimalloc {allocator}: {complaint}")
        return None
    spent = time.perf_counter() - began
    return max((a.offset + a.size for a in placed), default=0), spent


def lines_of(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A Markdown table whose rows are also told as they come."""
    for line in reporting.table(headings, rows):
        reporting.progress(line)
        yield line


PEERS = ("first fits / bound", "s", "ours by then", "omnimalloc all", "s", "supermalloc", "s")
Figures = tuple[float, ...]  # under PEERS: ratios and seconds; nan where nothing was measured


def peers(problem: Problem, bound: int) -> Figures:
    """What the first fits reach, ours when stopped after their time, and the peers."""
    lowest, spent = seven_first_fits(problem)
    figures = [lowest / bound, spent, solve(problem, spent).tall / bound]
    for allocator in ("greedy_by_all", "supermalloc"):
        tall, seconds = omnimalloc(problem, allocator) or (math.nan, math.nan)
        figures += [tall / bound, seconds]
    return tuple(figures)


def shown(figures: Figures) -> Iterator[str]:
    for figure in figures:
        yield "" if math.isnan(figure) else f"{figure:.4f}"


def single(problems: Iterator[tuple[str, Problem]], seconds: float) -> Iterator[Sequence[object]]:
    """One row per problem: the median of five seeds."""
    total = worked = 0.0
    for name, problem in problems:
        runs = [solve(problem, seconds, seed) for seed in SEEDS]
        bound = max(load_bound(problem), *(run.placement.lower_bound for run in runs))
        tall = statistics.median_low([run.tall for run in runs])
        taken, used = (statistics.median(x) for x in zip(*((r.seconds, r.worked) for r in runs), strict=True))
        total, worked = total + taken, worked + used
        proved = sum(run.proved for run in runs)
        yield (name, f"{len(problem):,}", f"{tall:,}", f"{tall / bound:.5f}", f"{taken:.4f}", f"{used:.4f}",
               f"{proved} of {len(runs)}", *shown(peers(problem, bound)))  # fmt: skip
    yield ("together", "", "", "", f"{total:.4f}", f"{worked:.4f}", "", *[""] * len(PEERS))


SINGLE = ("problem", "n", "height", "/ bound", "s", "CPU s", "proved", *PEERS)


def set_a_to_k(corpus: Path) -> Iterator[str]:
    """The nine problems of MiniMalloc's set that meet their load bound."""
    nine = ((name, p) for name, p in named(corpus, "minimalloc") if name not in OPEN and len(p) > 5)
    yield from lines_of(SINGLE, single(nine, 10))


def set_d_and_j(corpus: Path, seconds: float = 10) -> Iterator[str]:
    """D and J, five seeds."""

    def rows() -> Iterator[Sequence[object]]:
        for name, problem in named(corpus, "minimalloc"):
            if name in OPEN:
                runs = [solve(problem, seconds, seed) for seed in SEEDS]
                tall = [run.tall for run in runs]
                yield (name, f"{seconds:g}", f"{load_bound(problem):,}", f"{statistics.median_low(tall):,}",
                       f"{min(tall):,}", f"{max(tall):,}", sum(run.proved for run in runs))  # fmt: skip

    yield from lines_of(("problem", "s each", "load bound", "median", "least", "most", "proved"), rows())


def second_thread(corpus: Path) -> Iterator[str]:
    """The same answers on one thread and on two, runs in turn; the least of each, by the clock."""

    def measured(problem: Problem, seed: int, steps: int, pairs: int) -> tuple[float, float]:
        taken: dict[int, list[float]] = {1: [], 2: []}
        answers = set()
        for _ in range(pairs):
            for threads, spent in taken.items():
                began = time.perf_counter()
                placement = place(problem, "modelplan", Budget(seed=seed, steps=steps, threads=threads))
                spent.append(time.perf_counter() - began)
                answers.add(tuple(placement.offsets))
        assert len(answers) == 1, "the answer depends on the threads"
        return min(taken[1]), min(taken[2])

    def rows() -> Iterator[Sequence[object]]:
        for name, problem in named(corpus, "minimalloc"):
            if len(problem) <= 5:
                continue
            seeds, steps, pairs = (SEEDS, LONG_STEPS, 1) if name in OPEN else ((0,), 200_000, PAIRS)
            for seed in seeds:
                alone, both = measured(problem, seed, steps, pairs)
                yield name, seed, f"{alone:.4f}", f"{both:.4f}", f"{alone / both:.2f}"

    yield from lines_of(("problem", "seed", "s, one thread", "s, two", "times"), rows())


def copies(corpus: Path) -> Iterator[str]:
    """Shuffled copies of the nine, every other one reversed in time."""

    def rows() -> Iterator[Sequence[object]]:
        for name, problem in named(corpus, "minimalloc"):
            if name in OPEN or len(problem) <= 5:
                continue
            runs = [solve(copy_of(problem, seed), 3, seed) for seed in range(COPIES)]
            worked = sorted(run.worked for run in runs)
            yield (name, f"{sum(run.proved for run in runs)} of {COPIES}", sum(w <= 0.5 for w in worked),
                   f"{statistics.median(worked):.4f}", f"{worked[-1]:.4f}")  # fmt: skip

    yield from lines_of(("problem", "proved", "within 0.5 CPU s", "median CPU s", "most"), rows())


def copy_of(problem: Problem, seed: int) -> Problem:
    order = np.random.default_rng(seed).permutation(len(problem))
    start, end = problem.start[order], problem.end[order]
    if seed % 2:
        start, end = end.max() - end, end.max() - start
    return replace(problem, names=tuple(problem.names[i] for i in order), size=problem.size[order], start=start,
                   end=end, alignment=problem.alignment[order], pin=problem.pin[order])  # fmt: skip


def fresh(_corpus: Path) -> Iterator[str]:
    """Seeds on which nothing was tuned, five for each family and size; the worst of the five."""

    def rows() -> Iterator[Sequence[object]]:
        for family, sizes in FRESH.items():
            for n in sizes:
                problems = [FAMILIES[family](n, seed) for seed in FRESH_SEEDS]
                runs = [solve(problem, 4) for problem in problems]
                bounds = [max(load_bound(p), r.placement.lower_bound) for p, r in zip(problems, runs, strict=True)]
                seconds = [run.worked for run in runs]
                figures = [peers(p, b) for p, b in zip(problems, bounds, strict=True)]
                worst = tuple(map(max, zip(*figures, strict=True)))
                yield (family, f"{n:,}", f"{sum(run.proved for run in runs)} of {len(runs)}",
                       f"{max(r.tall / b for r, b in zip(runs, bounds, strict=True)):.5f}",
                       f"{statistics.median(seconds):.4f}", f"{max(seconds):.4f}", *shown(worst))  # fmt: skip

    yield from lines_of(("family", "n", "proved", "/ bound", "median CPU s", "most", *PEERS), rows())


def published(corpus: Path) -> Iterator[str]:
    """SOMAS's and IOPDDL's problems."""
    chosen = (row for folder in ("somas", "iopddl") for row in named(corpus, folder))
    yield from lines_of(SINGLE, single(chosen, 10))


def synthetic(corpus: Path) -> Iterator[str]:
    """The corpus's synthetic problems."""
    yield from lines_of(SINGLE, single(named(corpus, "synthetic"), 10))


def large(_corpus: Path) -> Iterator[str]:
    """100,000 and 1,000,000 buffers: the first answer, then the best of 12 seconds; omnimalloc has a minute."""

    def rows() -> Iterator[Sequence[object]]:
        for n, families in LARGE.items():
            for family in families:
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    ours = pool.apply(_alone, (family, n))
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    try:
                        peer = pool.apply_async(_peer_alone, (family, n)).get(PATIENCE)
                    except multiprocessing.TimeoutError:
                        peer = ("no answer", f"over {PATIENCE}")
                yield (*ours, *peer)

    headings = ("family", "n", "first answer s", "/ bound", "after 2 s", "after 5 s", "end s", "CPU s", "/ bound",
                "proved", "peak MB", "of these before solving", "omnimalloc omni", "s")  # fmt: skip
    yield from lines_of(headings, rows())


def _resident(what: str) -> float:
    """Resident megabytes of this process: VmRSS now, VmHWM at most."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(what))
    return int(line.split()[1]) * 1024 / 1e6


def _peer_alone(family: str, n: int) -> Sequence[object]:
    problem = FAMILIES[family](n, FRESH_SEEDS[0])
    answer = omnimalloc(problem, "omni")
    return (f"{answer[0] / load_bound(problem):.6f}", f"{answer[1]:.2f}") if answer else ("no answer", "")


def _alone(family: str, n: int) -> Sequence[object]:
    problem = FAMILIES[family](n, FRESH_SEEDS[0])
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = _resident("VmRSS")
    run = solve(problem, 12)
    peak = _resident("VmHWM")
    bound = max(load_bound(problem), run.placement.lower_bound)
    at, first = run.trace[0]
    return (family, f"{n:,}", f"{at:.2f}", f"{first / bound:.5f}", f"{run.height_at(2) / bound:.5f}",
            f"{run.height_at(5) / bound:.5f}", f"{run.seconds:.2f}", f"{run.worked:.2f}", f"{run.tall / bound:.6f}",
            "yes" if run.proved else "no", f"{peak:.0f}", f"{before:.0f}")  # fmt: skip


def networks(corpus: Path) -> Iterator[str]:
    """The networks of Glow's allocation traces."""
    problems = [network.problem for network in read(corpus / "problems" / "glow" / "traces.txt")]
    runs = [solve(problem, 10) for problem in problems]
    met = sum(run.tall == load_bound(problem) for run, problem in zip(runs, problems, strict=True))
    spent = sum(run.seconds for run in runs)
    yield f"{met} of {len(problems)} at the load bound, all together in {spent:.4f} s."


SECTIONS: dict[str, Callable[[Path], Iterator[str]]] = {
    "set_a_to_k": set_a_to_k,
    "copies": copies,
    "set_d_and_j": set_d_and_j,
    "second_thread": second_thread,
    "fresh": fresh,
    "published": published,
    "synthetic": synthetic,
    "large": large,
    "networks": networks,
}


PARSER = reporting.command_line(__file__, __doc__, "allocators.md")
PARSER.add_argument("--only", default=",".join(SECTIONS), metavar="SECTIONS", help="these sections")
PARSER.add_argument("--long", action="store_true", help="a minute for each of five seeds of D and J too")


def main() -> None:
    arguments = reporting.parse(PARSER)
    chosen = arguments.only.split(",")
    if unknown := set(chosen) - set(SECTIONS):
        PARSER.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    absent = "" if importlib.util.find_spec("omnimalloc") else "; omnimalloc is not installed, so not measured"
    machine = f"; {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} when it began{absent}"
    lines = ['"Ours by then" is our height over the bound when stopped after the time of the seven first-fit orders.']
    for name in chosen:
        lines += ["", f"## {name}: {SECTIONS[name].__doc__}", "", *SECTIONS[name](arguments.corpus)]
    if arguments.long:
        lines += ["", "## set_d_and_j for a minute", "", *set_d_and_j(arguments.corpus, 60)]
    first = reporting.made_by(PARSER, arguments, machine)
    reporting.save(arguments.output, first, "Our allocator, measured", lines)


if __name__ == "__main__":
    main()
