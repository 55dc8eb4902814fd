"""Which operators read from elsewhere on the new side, given which operator became which."""

from collections.abc import Sequence
from functools import cached_property

from modelplan.model import Graph, Kind
from modelplan.planning.matching.labelling import Structure
from modelplan.primitives.lazy_records import dataclass

#: Where an operand comes from: ("op", operator of the new side, result), ("tensor", tensor of the new side), or, for
#: what the new side does not have, ("gone", tensor of the old side).
Source = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two structures with the operator of `new` that each operator of `old` became, -1 for none."""

    old: Structure
    new: Structure
    to_new: tuple[int, ...]

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The operators that both sides have."""
        return tuple((i, j) for i, j in enumerate(self.to_new) if j >= 0)

    @cached_property
    def gone(self) -> tuple[int, ...]:
        """The operators that only the old side has."""
        return tuple(i for i, j in enumerate(self.to_new) if j < 0)

    @cached_property
    def added(self) -> tuple[int, ...]:
        """The operators that only the new side has."""
        kept = set(self.to_new)
        return tuple(j for j in range(len(self.new.graph.ops)) if j not in kept)

    @cached_property
    def inputs(self) -> dict[int, int]:
        """For each tensor of the old side that no operator makes the tensor of the new side that it became.

        Those are one that the same operators read as the same operand; inputs that none reads go by their place.
        """
        old, new = self.old.graph, self.new.graph
        read = ((old.ops[i].inputs, new.ops[j].inputs) for i, j in self.pairs)
        matches: dict[int, int] = {}
        taken: set[int] = set()
        for ones, others in (*read, (old.inputs, new.inputs)):
            for t, u in zip(ones, others, strict=False):
                if _is_fed(old, t) and _is_fed(new, u) and t not in matches and u not in taken:
                    matches[t] = u
                    taken.add(u)
        return matches

    def operands(self, i: int, j: int) -> tuple[list[int], list[int]]:
        """The tensors that the operators of a pair read at run time, in operand order."""
        return runtime_operands(self.old.graph, i), runtime_operands(self.new.graph, j)

    def old_source(self, t: int) -> Source:
        """Where a tensor of the old side comes from, in the numbers of the new side."""
        maker = self.old.graph.producers[t]
        if maker >= 0 and self.to_new[maker] >= 0:
            return "op", self.to_new[maker], self.old.graph.ops[maker].outputs.index(t)
        return ("tensor", self.inputs[t], 0) if maker < 0 and t in self.inputs else ("gone", t, 0)

    def new_source(self, u: int) -> Source:
        """Where a tensor of the new side comes from."""
        maker = self.new.graph.producers[u]
        return ("tensor", u, 0) if maker < 0 else ("op", maker, self.new.graph.ops[maker].outputs.index(u))

    @cached_property
    def rewired(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """The pairs that read from elsewhere by themselves, with the tensors in question on both sides.

        Reading what an added operator makes, or no longer what one makes that is gone, follows from that one. So does
        reading another operator's result where both have changed places themselves.
        """
        elsewhere = {pair: self._elsewhere(*pair) for pair in self.pairs}
        elsewhere = {pair: rows for pair, rows in elsewhere.items() if rows}
        movers = {j for (_, j) in elsewhere}
        return {pair: rows for pair, rows in elsewhere.items() if not all(self._among(movers, *row) for row in rows)}

    def _elsewhere(self, i: int, j: int) -> list[tuple[int, int]]:
        old, new = self.operands(i, j)
        if len(old) != len(new):
            return self._others(old, new)
        return [(t, u) for t, u in zip(old, new, strict=True) if self._differs(t, u)]

    def _differs(self, t: int, u: int) -> bool:
        """Whether two operands come from different sources, each of which both sides have."""
        before, after = self.old_source(t), self.new_source(u)
        return before != after and before[0] != "gone" and not self._is_new(after)

    def _is_new(self, source: Source) -> bool:
        return source[:2] not in self._on_both_sides

    @cached_property
    def _on_both_sides(self) -> frozenset[tuple[str, int]]:
        return frozenset([*(("op", j) for _, j in self.pairs), *(("tensor", u) for u in self.inputs.values())])

    def _others(self, old: Sequence[int], new: Sequence[int]) -> list[tuple[int, int]]:
        """The tensors that one side reads in addition, though both sides make them, each with -1."""
        before, after = [self.old_source(t) for t in old], [self.new_source(u) for u in new]
        less = [(t, -1) for t, s in zip(old, before, strict=True) if s not in after and s[0] != "gone"]
        more = [(-1, u) for u, s in zip(new, after, strict=True) if s not in before and not self._is_new(s)]
        return less + more

    def _among(self, movers: set[int], t: int, u: int) -> bool:
        """Whether both tensors are made by operators that read from elsewhere."""
        sources = [self.old_source(t)] * (t >= 0) + [self.new_source(u)] * (u >= 0)
        return len(sources) == 2 and all(source[0] == "op" and source[1] in movers for source in sources)


def runtime_operands(graph: Graph, op: int) -> list[int]:
    """What an operator reads at run time, in operand order."""
    return [t for t in graph.ops[op].inputs if t >= 0 and graph.tensors[t].kind is not Kind.CONSTANT]


def _is_fed(graph: Graph, t: int) -> bool:
    return t >= 0 and graph.producers[t] < 0 and graph.tensors[t].kind is not Kind.CONSTANT
