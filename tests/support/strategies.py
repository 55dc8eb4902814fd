"""Random problems and graphs for property tests."""

from __future__ import annotations

import random

import numpy as np
from graphs import problem
from hypothesis import strategies as st

from modelplan import Graph, Op, Problem, Tensor


@st.composite
def problems(draw: st.DrawFn, most: int = 14, alignments: tuple[int, ...] = (1,), pins: bool = False) -> Problem:
    """Up to `most` buffers over a few steps; pins, where asked, are far apart so that they never clash."""
    n = draw(st.integers(0, most))
    rows, alignment, pin = [], [], []
    for i in range(n):
        start = draw(st.integers(0, 8))
        rows.append((draw(st.integers(0, 40)), start, start + draw(st.integers(1, 6))))
        alignment.append(draw(st.sampled_from(alignments)))
        pin.append(48 * i if pins and draw(st.booleans()) else None)
    return problem(rows, alignment=alignment, pin=pin)


@st.composite
def overlapping(draw: st.DrawFn, most: int = 8) -> Problem:
    """Problems with facts: some pairs may share bytes, some distant pairs must not."""
    base = draw(problems(most))
    n = len(base)
    ids = st.integers(0, max(n - 1, 0))
    pairs = draw(st.lists(st.tuples(ids, ids), max_size=4, unique_by=lambda p: frozenset(p))) if n > 1 else []
    pairs = [(a, b) for a, b in pairs if a != b]
    half = len(pairs) // 2
    overlaps = [(a, b, draw(st.integers(0, int(base.size[a])))) for a, b in pairs[:half]]
    return Problem(
        base.names,
        base.size,
        base.start,
        base.end,
        overlaps=np.array(overlaps, dtype=np.int64).reshape(-1, 3),
        conflicts=np.array(pairs[half:], dtype=np.int64).reshape(-1, 2),
    )


@st.composite
def dags(draw: st.DrawFn, most: int = 10) -> Graph:
    """A random DAG whose ops stand in topological order, with one tensor per op and one graph input."""
    n = draw(st.integers(1, most))
    tensors = [Tensor(f"t{i}", (draw(st.integers(0, 30)),), "int8") for i in range(n + 1)]
    ops = []
    for i in range(n):
        reads = draw(st.lists(st.integers(0, i), min_size=1, max_size=3, unique=True))
        kind = draw(st.sampled_from(["CONV_2D", "ADD", "RESHAPE"]))
        ops.append(Op("", kind, tuple(reads), (i + 1,)))
    unread = set(range(1, n + 1)) - {t for op in ops for t in op.inputs}
    return Graph("random", "tflite", tuple(tensors), tuple(ops), (0,), tuple(sorted(unread)))


def crowded(count: int, largest: int) -> Problem:
    """`count` seeded buffers of which nearly all are alive together, in sizes from 1 to `largest`."""
    draw = random.Random(count)
    return problem([(draw.randint(1, largest), draw.randrange(20), 20 + draw.randint(1, 20)) for _ in range(count)])
