"""What commands make of a file: a model in another order, a change that is not made, an arena for ESPHome."""

from __future__ import annotations

from typing import NamedTuple

from modelplan.model import LibraryNeed, Plan, Requirement
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReorderedFile(Shown):
    """The content of a model file with its operators in another order, the plans of both orders, and their needs.

    `needed_before` and `needed_after` are what the runtime needs for the two files as they are.
    """

    content: bytes
    before: Plan
    after: Plan
    needed_before: Requirement
    needed_after: Requirement


class HelpedLibrary(NamedTuple):
    """A library whose bytes a change takes from `before` to `after`, and another one whose bytes it raises."""

    change: str
    name: str
    before: int
    after: int
    raised: str
    raised_before: int
    raised_after: int


@dataclass(frozen=True, slots=True)
class EsphomeArena:
    """The tensor arena of a wake word's manifest, in bytes.

    `stated` is the size in the manifest, `needed` the one that is enough everywhere, `libraries` what each version of
    ESP-NN takes. `manifest` is the text of the manifest with `needed` in it.
    """

    model: str
    stated: int
    needed: int
    libraries: tuple[LibraryNeed, ...]
    manifest: str

    @property
    def enough(self) -> bool:
        """Whether the stated size is enough for every version."""
        return self.stated >= self.needed
