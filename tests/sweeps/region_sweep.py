"""Random problems of several memories, each layout run by the simulator, and the fast choice beside the exact.

    python tests/sweeps/region_sweep.py [--count 100000] [--first 0] [--seed 1] [--exact N] [--buffers 10 40 120]

prints how many layouts passed and how many problems had none; with `--exact N`, every N-th problem is also solved by
HiGHS for at most 60 seconds, and the largest gaps of the fast choice are printed. Both are choices of regions under the
same room, before offsets are placed: the gap is between the seconds of the fast choice and HiGHS's bound. HiGHS is not
asked where the bound of the linear relaxation already proves the fast choice within 2 %.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from random import Random

from region_problems import choice_gap, swept_problem

from modelplan.checking.moves_simulator import simulate
from modelplan.model import Budget
from modelplan.planning.memories.choice_tables import tables_of
from modelplan.planning.memories.memory_choice import Choosing, ShortageError, chosen_layout


def main() -> None:
    """Runs the sweep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="go on at problem N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exact", type=int, default=0, metavar="N")
    parser.add_argument("--buffers", type=int, nargs="+", default=[2, 5, 8, 12], metavar="N")
    arguments = parser.parse_args()
    passed = short = 0
    gaps: list[tuple[float, int]] = []
    for number in range(arguments.first, arguments.count):
        if number > arguments.first and number % 5_000 == 0:
            print(f"{number:,} problems: {passed:,} layouts passed, {short:,} have none", flush=True)
        random = Random(arguments.seed * 1_000_003 + number)
        problem = swept_problem(random, arguments.buffers)
        how = Choosing("fast", both_ends=random.random() < 0.3, budget=Budget(steps=2_000))
        try:
            layout = chosen_layout(problem, how)
        except ShortageError:
            short += 1
            continue
        simulate(problem, replace(layout, bound=0.0))
        passed += 1
        if arguments.exact and number % arguments.exact == 0:
            gaps.append((choice_gap(tables_of(problem)).over, number))
    print(f"{passed} layouts passed the simulator, {short} problems have none that was found")
    if gaps:
        over = sum(gap > 0.02 for gap, _ in gaps)
        print(f"{len(gaps)} solved exactly: {over} gaps above 2 %, the largest {sorted(gaps)[-5:]}")


if __name__ == "__main__":
    main()
