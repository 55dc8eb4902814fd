"""What a wake word takes on ESPHome."""

from __future__ import annotations

from dataclasses import dataclass

from modelplan.model import LibraryNeed


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
