"""Graphs and problems drawn as short literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from modelplan import Buffer, Graph, Kind, Op, Problem, Tensor


def graph(
    ops: str, sizes: dict[str, int], inputs: str = "", outputs: str = "", kinds: dict[str, Kind] | None = None
) -> Graph:
    """A graph from lines like `a b -> c : CONV_2D`; every tensor is a row of bytes."""
    index = {name: i for i, name in enumerate(sizes)}
    made = []
    for line in filter(None, map(str.strip, ops.splitlines())):
        flow, kind = line.split(":")
        reads, writes = flow.split("->")
        made.append(
            Op("", kind.strip(), tuple(index[t] for t in reads.split()), tuple(index[t] for t in writes.split()))
        )
    tensors = tuple(
        Tensor(name, (size,), "int8", (kinds or {}).get(name, Kind.ACTIVATION)) for name, size in sizes.items()
    )
    return Graph(
        "drawn",
        "tflite",
        tensors,
        tuple(made),
        tuple(index[t] for t in inputs.split()),
        tuple(index[t] for t in outputs.split()),
    )


def chain() -> Graph:
    """input -> conv -> reshape -> fully connected -> output."""
    return graph(
        """
        x w -> a : CONV_2D
        a   -> b : RESHAPE
        b   -> y : FULLY_CONNECTED
        """,
        {"x": 10, "w": 99, "a": 30, "b": 30, "y": 25},
        inputs="x",
        outputs="y",
        kinds={"w": Kind.CONSTANT},
    )


def fork() -> Graph:
    """Two branches whose file order is not the best: the big one should be finished before the other starts."""
    return graph(
        """
        x   -> p : CONV_2D
        x   -> q : CONV_2D
        p   -> r : CONV_2D
        q   -> s : CONV_2D
        r s -> y : ADD
        """,
        {"x": 16, "p": 160, "q": 160, "r": 16, "s": 16, "y": 16},
        inputs="x",
        outputs="y",
    )


def problem(rows: Sequence[tuple[int, int, int]], **facts: Any) -> Problem:
    """A problem from (size, start, end) rows; `alignment` and `pin` may be given per row as lists."""
    alignment: Sequence[int] = facts.pop("alignment", [1] * len(rows))
    pin: Sequence[int | None] = facts.pop("pin", [None] * len(rows))
    return Problem.of(
        (
            Buffer(f"b{i}", size, start, end, a, p)
            for i, ((size, start, end), a, p) in enumerate(zip(rows, alignment, pin, strict=True))
        ),
        **facts,
    )


def inclusive(rows: list[tuple[int, int, int]]) -> Problem:
    """A problem from (size, first, last) rows whose last step is part of the lifetime."""
    return problem([(size, first, last + 1) for size, first, last in rows])
