"""Spills random problems of several memories and has every layout checked by the simulator.

python tests/sweeps/moving_sweep.py [--count 10000] [--first 0] [--exact]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from moving_problems import region_problem

from modelplan.checking.moves_simulator import simulate
from modelplan.planning.memories.prefetching import plan_moves
from modelplan.primitives.errors import RequestError


def main() -> None:
    """Stops at the first layout that is not what it claims; else says how many there were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--exact", action="store_true", help="decide by the exact program")
    given = parser.parse_args()
    checked = refused = 0
    for seed in range(given.first, given.first + given.count):
        asked = region_problem(seed, *((7, 8), (20, 30))[seed % 10 == 0])
        try:
            found = plan_moves(asked, "exact" if given.exact else "greedy")
        except RequestError:
            refused += 1
            continue
        simulate(asked, replace(found.spilled.layout, bound=0.0))
        run = simulate(asked, found.layout)
        if abs(run.seconds - found.seconds) > 1e-9 * run.seconds:
            raise SystemExit(f"problem {seed}: promised {found.seconds}, replayed {run.seconds}")
        checked += 1
    print(f"{checked} problems checked, {refused} do not fit")


if __name__ == "__main__":
    main()
