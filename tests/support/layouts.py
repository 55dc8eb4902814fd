"""Layouts in several memories that were made by hand, for tests of what shows them."""

from __future__ import annotations

from modelplan import Buffer, Problem
from modelplan.answers.region_layout import Copy, Layout, RegionProblem, Stay
from modelplan.targets.device import Region

#: What the buffers of `two_memories` are for.
KINDS = ("activation", "activation", "weights")


def two_memories() -> tuple[RegionProblem, Layout]:
    """Three buffers in two memories and a flash: one moves to the slow memory, weights come from their home."""
    problem = Problem.of([Buffer("early", 2000, 0, 6), Buffer("late", 2000, 2, 6), Buffer("weights", 1000, 0, 3)])
    regions = (Region("DTCM", 8192), Region("SDRAM", 1 << 20, kind="psram"), Region("FLASH", 1 << 21, kind="nvm"))
    asked = RegionProblem(problem, regions, (), ((0, 1), (0, 1), (0, 2)), (-1, -1, 2), (0.001,) * 6)
    stays = (Stay(0, 0, 0, 0, 4), Stay(0, 1, 2000, 2, 6), Stay(1, 0, 0, 4, 6), Stay(2, 0, 2000, 0, 3))
    return asked, Layout(stays, (Copy(0, 1, 2, 4), Copy(-1, 3, 0, 1)), method="hand")
