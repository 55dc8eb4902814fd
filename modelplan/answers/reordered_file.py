"""What `reorder` makes of a model file."""

from __future__ import annotations

from dataclasses import dataclass

from modelplan.model import Plan


@dataclass(frozen=True, slots=True, eq=False)
class ReorderedFile:
    """The content of a model file with its operators in another order, and the plans of both orders."""

    content: bytes
    before: Plan
    after: Plan
