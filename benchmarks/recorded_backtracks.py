"""Searches in the style of TelaMalloc with what they decided, for those who measure or train them."""

from __future__ import annotations

from dataclasses import dataclass

from modelplan.model import Ended, IntArray, Problem
from modelplan.planning.allocators.systems.telamalloc import DEFAULTS, TelamallocOptions, core_options
from modelplan.primitives import _core


@dataclass(frozen=True, eq=False)
class Record:
    """A major backtrack: the decisions in their order, and for each a row of what the trees see of it."""

    buffers: IntArray
    offsets: IntArray
    features: IntArray


@dataclass(frozen=True, eq=False)
class Backtracks:
    """How a search went: how it ended, placements tried, backtracks of both kinds, some of the major ones."""

    ended: Ended
    steps: int
    minor: int
    major: int
    records: tuple[Record, ...]


def backtracks(
    problem: Problem, capacity: int, steps: int, options: TelamallocOptions = DEFAULTS, *, most: int = 0, every: int = 1
) -> Backtracks:
    """What `decide` does within so many steps.

    Args:
        problem: at most `MOST_PAIRS` pairs in conflict.
        capacity: in bytes.
        steps: placements tried.
        options: as in `decide`.
        most: major backtracks recorded.
        every: distance between two of these.
    """
    ended, used, minor, major, rows = _core.telamalloc_backtracks(
        problem.core, capacity, *core_options(options), steps, most, every
    )
    records = tuple(Record(b, o, f.reshape(len(b), -1)) for b, o, f in rows)
    return Backtracks(ended, used, minor, major, records)
