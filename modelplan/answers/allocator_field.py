"""Height against time for every allocator on one problem: what the chart of the field shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """One allocator's answer; `found_by` names another one whose height it is."""

    name: str
    kind: str
    height: int
    microseconds: int
    found_by: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """All the answers to one problem, lowest first, and who refused it; `facts` is a line about them."""

    title: str
    buffers: int
    lower_bound: int
    marks: tuple[Mark, ...]
    refused: tuple[str, ...]
    made_by: str
    facts: str = ""

    def excess(self, mark: Mark) -> float:
        """Percent above the lower bound."""
        return 100 * (mark.height - self.lower_bound) / self.lower_bound if self.lower_bound else 0.0

    def unbeaten(self) -> list[Mark]:
        """Those with an answer of their own that no other beats in height without taking longer, fastest first."""
        marks: list[Mark] = []
        for mark in sorted((m for m in self.marks if not m.found_by), key=lambda m: (m.microseconds, m.height)):
            if not marks or mark.height < marks[-1].height:
                marks.append(mark)
        return marks
