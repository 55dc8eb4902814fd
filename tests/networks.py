"""Reads Glow's allocation traces of real networks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graphs import problem

from modelplan import Problem


@dataclass(frozen=True)
class Network:
    name: str
    problem: Problem
    expected: int


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
    rows = [(size[i], start[i], end[i]) for i in size]
    return Network(facts["MODEL"], problem(rows, alignment=[step] * len(rows)), int(facts["MEM"]))
