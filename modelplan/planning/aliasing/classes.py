"""Storage classes while they are being made: tensors that share bytes, each at its place inside the class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from modelplan.model import Graph, Member


class Classes:
    """Every planned tensor in a class of its own at first; `join` puts one class inside another.

    Cost: O(size of the class that moves) for a join, O(1) for a question.
    """

    def __init__(self, graph: Graph, classes: Iterable[tuple[Member, ...]]) -> None:
        self.graph = graph
        self.members: dict[int, list[int]] = {}
        self.home: dict[int, int] = {}
        self.delta: dict[int, int] = {}
        self.bytes: dict[int, int] = {}  # by home
        self._given: dict[int, tuple[Member, ...]] = {}  # by home, as long as the class is as it was
        sizes = graph.sizes
        for rows in classes:
            first = rows[0].tensor
            self._given[first] = rows
            for m in rows:
                self.home[m.tensor], self.delta[m.tensor] = first, m.delta
            self.members[first] = [m.tensor for m in rows]
            self.bytes[first] = max([m.delta + sizes[m.tensor] for m in rows])

    def __contains__(self, t: int) -> bool:
        return t in self.home

    def of(self, t: int) -> list[int]:
        """The tensors that share a class with `t`, itself included."""
        return self.members[self.home[t]]

    def together(self, a: int, b: int) -> bool:
        """Whether two tensors are in one class."""
        return self.home[a] == self.home[b]

    def span(self, t: int) -> int:
        """Bytes of the class of `t`."""
        return self.bytes[self.home[t]]

    def join(self, t: int, into: int, delta: int = 0) -> None:
        """Puts the class of `t` where `t` starts `delta` bytes after `into`, which must not be before that class."""
        shift = self.delta[into] + delta - self.delta[t]
        moving, kept = self.home[t], self.home[into]
        moved = self.members.pop(moving)
        for home in (moving, kept):
            self._given.pop(home, None)
        self.bytes[kept] = max(self.bytes[kept], self.bytes.pop(moving) + shift)
        for m in moved:
            self.delta[m] += shift
            self.home[m] = kept
        self.members[kept] += moved
        if (low := min(self.delta[m] for m in moved)) < 0:
            self.bytes[kept] -= low
            for m in self.members[kept]:
                self.delta[m] -= low

    def rows(self) -> Iterator[tuple[Member, ...]]:
        """The classes, the tensors of each in the order in which they were joined."""
        return map(self._row, self.members)

    def _row(self, home: int) -> tuple[Member, ...]:
        return self._given.get(home) or tuple([Member(t, self.delta[t]) for t in self.members[home]])

    def around(self, tensors: Iterable[int]) -> Classes:
        """A copy of the classes that hold `tensors`, without the others."""
        homes = dict.fromkeys(self.home[t] for t in tensors if t in self)
        return Classes(self.graph, map(self._row, homes))
