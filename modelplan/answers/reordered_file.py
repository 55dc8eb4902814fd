"""What `reorder` makes of a model file."""

from __future__ import annotations

from dataclasses import dataclass

from modelplan.model import Plan, Requirement


@dataclass(frozen=True, slots=True, eq=False)
class ReorderedFile:
    """The content of a model file with its operators in another order, the plans of both orders, and their needs.

    `needed_before` and `needed_after` are what the runtime needs for the two files as they are.
    """

    content: bytes
    before: Plan
    after: Plan
    needed_before: Requirement
    needed_after: Requirement
