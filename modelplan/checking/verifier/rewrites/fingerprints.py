"""A number for each byte of a tensor that says which map, row, column, channel and byte it belongs to."""

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.rewrites.contents import UNWRITTEN, Catalogue, Content

U64 = npt.NDArray[np.uint64]
#: Odd constants of splitmix64, and one for the bytes of an element.
_MIX = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93], dtype=np.uint64)
#: What nobody wrote, and what kernels leave in their working memory; no fingerprint is one of them.
EMPTY, JUNK = np.uint64(0), np.uint64(1)


class Fingerprints:
    """Fingerprints of the rows of a catalogue.

    Cost: those of an axis are computed once.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.prints: dict[tuple[int, int, tuple[int, ...]], U64] = {}
        self.needed: dict[tuple[int, int, tuple[int, ...]], npt.NDArray[np.bool_]] = {}
        self.views: U64 = np.zeros(0, dtype=np.uint64)
        self.origins: U64 = np.zeros(0, dtype=np.uint64)

    def join(self, views: U64, origins: U64) -> None:
        """Notes that bytes with the fingerprints `views` are those with the fingerprints `origins`, one for one."""
        known, first = np.unique(np.concatenate([self.views, views]), return_index=True)
        self.origins = np.concatenate([self.origins, self.first_of(origins)])[first]
        self.views = known

    def first_of(self, prints: U64) -> U64:
        """For each fingerprint the one under which its byte was first known."""
        if not len(self.views):
            return prints
        at = np.minimum(np.searchsorted(self.views, prints), len(self.views) - 1)
        return np.where(self.views[at] == prints, self.origins[at], prints)

    def _axis_prints(self, base: int, axis: int, symbols: tuple[int, ...]) -> U64:
        key = base, axis, symbols
        if key not in self.prints:
            seeds = np.array([base + 2, axis + 1], dtype=np.uint64) * _MIX[:2]
            mixed = np.array(symbols, dtype=np.int64).view(np.uint64) * _MIX[2] + seeds[0] + seeds[1]
            for shift, factor in ((30, _MIX[1]), (27, _MIX[2]), (31, _MIX[0])):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
            self.prints[key] = mixed ^ (mixed >> np.uint64(29))
            wanted = [not self.catalogue.is_new_row(base, axis, s) and s != UNWRITTEN for s in symbols]
            self.needed[key] = np.array(wanted, dtype=np.bool_)
        return self.prints[key]

    def of_bytes(self, content: Content, width: int) -> U64:
        """A fingerprint for each byte of a tensor with this content, by element and byte.

        A renamed map has those of the map that it is.
        """
        first = self.catalogue.unrenamed(content)
        total = np.array([first.base + 2], dtype=np.uint64) * _MIX[3] * _MIX[0]
        for axis, symbols in reversed(list(enumerate(first.axes))):  # so that few sums are as large as the tensor
            behind = (1,) * (len(first.axes) - 1 - axis)
            total = (self._axis_prints(first.base, axis, symbols) * _MIX[0]).reshape(-1, *behind) + total
        prints: U64 = total.reshape(*content.shape, 1) + np.arange(width, dtype=np.uint64) * _MIX[1]
        prints |= np.uint64(2)
        return prints if not content.filled else np.where(_filled(content)[..., None], prints, EMPTY)

    def wanted(self, content: Content) -> npt.NDArray[np.bool_] | None:
        """Which elements belong to rows that the result depends on; None where all do."""
        parts = []
        for axis, symbols in enumerate(content.axes):
            self._axis_prints(content.base, axis, symbols)
            parts.append(self.needed[content.base, axis, symbols])
        if all(part.all() for part in parts) and not content.filled:
            return None
        whole = _filled(content)
        for axis, part in enumerate(parts):
            shape = [1] * len(parts)
            shape[axis] = len(part)
            whole = whole & part.reshape(shape)
        return whole


def _filled(content: Content) -> npt.NDArray[np.bool_]:
    """Which elements of a tensor are written, as far as it is written tile by tile."""
    whole = np.ones(content.shape, dtype=np.bool_)
    for row, columns in enumerate(content.filled):
        whole[:, row] = np.array([columns >> i & 1 for i in range(content.shape[2])], dtype=np.bool_)[:, None]
    return whole
