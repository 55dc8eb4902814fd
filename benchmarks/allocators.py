"""Measures our allocator beside every installed peer and writes reports/allocators.md.

    python benchmarks/allocators.py [--seconds 10] [--only minimalloc,synthetic,...]

Seconds are those of the solver call in this process, one thread, the median of three (one for 100,000 and more
buffers). Peers that are not installed are named as absent.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from problem_families import FAMILIES

from modelplan import Budget, Placement, Problem, check, height, load, load_bound, place
from modelplan.allocators.greedy import Fit, in_order

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("MODELPLAN_CORPUS", ROOT.parent / "shared" / "corpus")) / "problems"
PEERS = ("omnimalloc", "minimalloc", "supermalloc")
SMALL = {"tiling": (64, 256, 1024, 4096), "pinwheel": (33, 257, 1025, 4097), "mix": (100, 400),
         "skew_bimodal": (2048,), "skew_zipf": (2048,), "skew_log_uniform": (2048,), "skew_dominant": (2048,),
         "rand_short": (1000,), "rand_sparse": (1000,), "rand_unif": (1000,)}  # fmt: skip
LARGE = ("rand_short", "rand_sparse", "nn_unet", "nn_dense", "nn_multi", "nn_train")
HEADINGS = ("problem", "n", "height", "/ bound", "s", "CPU s", "proved", "first fits / bound", "s",
            "omnimalloc all", "s", "supermalloc", "s")  # fmt: skip
FRESH_SEEDS = range(100, 103)


def corpus(folder: str) -> Iterator[tuple[str, Problem]]:
    for path in sorted((CORPUS / folder).glob("*.csv")):
        problem = load(path)
        assert isinstance(problem, Problem)
        yield path.stem, problem


def fresh() -> Iterator[tuple[str, Problem]]:
    for family, sizes in SMALL.items():
        for n in sizes:
            for seed in FRESH_SEEDS:
                yield f"{family} {n} seed {seed}", FAMILIES[family](n, seed)


def large(n: int) -> Iterator[tuple[str, Problem]]:
    for family in LARGE if n < 1_000_000 else LARGE[:2]:
        yield f"{family} {n:,}", FAMILIES[family](n, 100)


def copies() -> Iterator[tuple[str, Problem]]:
    """Shuffled copies of A to K, every other one reversed in time."""
    for name, problem in corpus("minimalloc"):
        for seed in range(4):
            order = np.random.default_rng(seed).permutation(len(problem))
            start, end = problem.start[order], problem.end[order]
            if seed % 2:
                start, end = end.max() - end, end.max() - start
            names = tuple(problem.names[i] for i in order)
            yield f"{name} copy {seed}", Problem(names, problem.size[order], start, end)


GROUPS: dict[str, Callable[[], Iterator[tuple[str, Problem]]]] = {
    "minimalloc": lambda: corpus("minimalloc"),
    "copies": copies,
    "synthetic": lambda: corpus("synthetic"),
    "somas": lambda: corpus("somas"),
    "iopddl": lambda: corpus("iopddl"),
    "fresh": fresh,
    "100k": lambda: large(100_000),
    "1M": lambda: large(1_000_000),
}


def ours(problem: Problem, seconds: float, seed: int) -> tuple[Placement, float, float]:
    """The placement, seconds, CPU seconds."""
    began, worked = time.perf_counter(), time.process_time()
    placement = place(problem, "modelplan", Budget(seconds=seconds, seed=seed))
    return placement, time.perf_counter() - began, time.process_time() - worked


def seven_first_fits(problem: Problem) -> tuple[int, float]:
    """The best of seven orders by our own first fit, and the time of all."""
    began = time.perf_counter()
    life = problem.end - problem.start
    alive = np.searchsorted(np.sort(problem.start), problem.end) - np.searchsorted(np.sort(problem.end), problem.start)
    keys = [-problem.size, -problem.size * life, -life, problem.start, -alive, -alive * problem.size,
            np.arange(len(problem))]  # fmt: skip
    heights = [height(problem, in_order(problem, np.argsort(key, kind="stable"), Fit.LOWEST)) for key in keys]
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
    except (RuntimeError, ValueError) as problem_of_peer:
        print(f"omnimalloc {allocator}: {problem_of_peer}", flush=True)
        return None
    spent = time.perf_counter() - began
    return max((a.offset + a.size for a in placed), default=0), spent


def row(name: str, problem: Problem, seconds: float) -> str:
    runs = [ours(problem, seconds, seed) for seed in range(1 if len(problem) >= 50_000 else 3)]
    for placement, _, _ in runs:
        check(problem, placement)
    bound = max(load_bound(problem), max(p.lower_bound for p, _, _ in runs))
    tall = statistics.median_low([height(problem, p) for p, _, _ in runs])
    taken = statistics.median(t for _, t, _ in runs)
    worked = statistics.median(c for _, _, c in runs)
    proved = "yes" if all(height(problem, p) == p.lower_bound for p, _, _ in runs) else "no"
    fits = ("", "")
    if len(problem) <= 5000:
        lowest, spent = seven_first_fits(problem)
        fits = (f"{lowest / max(bound, 1):.4f}", f"{spent:.4f}")
    peers: list[str] = []
    for allocator in ("greedy_by_all", "supermalloc"):
        answer = omnimalloc(problem, allocator) if len(problem) <= 5000 else None
        peers += [f"{answer[0] / max(bound, 1):.4f}", f"{answer[1]:.4f}"] if answer else ["", ""]
    figures = (f"{len(problem):,}", f"{tall:,}", f"{tall / max(bound, 1):.5f}", f"{taken:.4f}", f"{worked:.4f}", proved)
    return f"| {' | '.join((name, *figures, *fits, *peers))} |"


def table(group: str, seconds: float) -> list[str]:
    lines = [f"\n## {group}\n"]
    lines.append(f"| {' | '.join(HEADINGS)} |")
    lines.append("|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|")
    for name, problem in GROUPS[group]():
        lines.append(row(name, problem, seconds))
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--output", type=Path, default=ROOT / "reports" / "allocators.md")
    arguments = parser.parse_args()
    absent = [name for name in PEERS if importlib.util.find_spec(name) is None]
    present = [name for name in PEERS if name not in absent]
    command = f"python benchmarks/allocators.py --seconds {arguments.seconds:g} --only {arguments.only}"
    machine = f"{os.cpu_count()} cores shared with other work, load average {os.getloadavg()[0]:.1f} when it began"
    lines = [
        "# Our allocator, measured",
        "",
        f"`{command}`; one thread; {machine}. On a busy machine the CPU seconds say more than the others.",
        f"Peers that are not installed, so not measured: {', '.join(absent) or 'none'}.",
    ]
    if "omnimalloc" in present:
        lines.append(
            "omnimalloc's `greedy_by_all` and `supermalloc` (as it ships it, its own time limit) run beside ours."
        )
    for group in arguments.only.split(","):
        lines += table(group, arguments.seconds)
    arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
