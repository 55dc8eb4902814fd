"""What differs in the bodies that operators run, in words."""

from __future__ import annotations

from modelplan.planning.matching.labelling import Structure
from modelplan.planning.matching.matching import matched_ops
from modelplan.planning.matching.wiring import Pairing
from modelplan.questions.differences.details import details_of

#: How many changes inside a body stand in the line of the operator that runs it.
_MOST_SHOWN = 3


class Bodies:
    """Compares bodies, each pair once however many operators run them."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], list[str]] = {}

    def inside(self, pairing: Pairing, i: int, j: int) -> list[str]:
        """The differences of the bodies of two matched operators; deeper bodies are only said to differ."""
        ones, others = pairing.old.graph.ops[i].subgraphs, pairing.new.graph.ops[j].subgraphs
        if len(ones) != len(others):
            return [f"bodies {len(ones)} -> {len(others)}"]
        differences: list[str] = []
        for number in range(len(ones)):
            lines = self._lines(pairing.old.body(i, number), pairing.new.body(j, number))
            differences += [f"in body {number}: {line}" for line in lines[:_MOST_SHOWN]]
            if len(lines) > _MOST_SHOWN:
                differences.append(f"in body {number}: [{len(lines) - _MOST_SHOWN} others]")
        return differences

    def _lines(self, old: Structure, new: Structure) -> list[str]:
        key = id(old.graph), id(new.graph)
        if key not in self.known:
            self.known[key] = self._compared(Pairing(old, new, matched_ops(old, new)))
        return self.known[key]

    def _compared(self, pairing: Pairing) -> list[str]:
        """A line for each operator of two bodies that differs by itself."""
        old, new = pairing.old.graph, pairing.new.graph
        lines = []
        for i, j in pairing.pairs:
            details = details_of(pairing, i, j, (old, new))
            details.own += ["its bodies differ"] if self.inside(pairing, i, j) else []
            if details.own or details.values:
                lines.append(f"{new.label(j)}: {', '.join(details.all)}")
        lines += [f"{old.label(i)} gone" for i in pairing.gone]
        return [*lines, *(f"{new.label(j)} added" for j in pairing.added)]
