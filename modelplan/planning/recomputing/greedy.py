"""Sequences with repetitions found step by step: the repetition that takes most off the excess for its work."""

from collections.abc import Iterator, Sequence

from modelplan.planning.recomputing.op_units import Units

#: Sequences that one search may look at.
MOST_TRIES = 20_000


def lowered(units: Units, sequence: Sequence[int], budget: int, tries: int = MOST_TRIES) -> tuple[int, ...] | None:
    """A sequence with repetitions that needs at most `budget` bytes; None where the search finds none.

    Each step repeats one value right before a reader of it, with what that needs and is not alive by then, so that the
    value is not alive at the step with the largest excess.

    Cost: up to `tries` sequences, each O(its reads and writes).
    """
    current_sequence, left = list(sequence), tries
    excess = _excess(units, current_sequence, budget)
    while excess:
        best: tuple[float, list[int]] | None = None
        for candidate in _candidates(units, current_sequence):
            left -= 1
            if left < 0:
                return None
            rest = _excess(units, candidate, budget)
            gain = (excess - rest) / (units.work_of(candidate) - units.work_of(current_sequence) + 1)
            if rest < excess and (best is None or gain > best[0]):
                best = gain, candidate
        if best is None:
            return None
        current_sequence = best[1]
        excess = _excess(units, current_sequence, budget)
    return tuple(_without_spare(units, current_sequence, budget))


def _excess(units: Units, sequence: Sequence[int], budget: int) -> int:
    """The bytes above the budget, summed over the steps."""
    return sum(max(used - budget, 0) for used in units.occupancy(sequence))


def _candidates(units: Units, sequence: list[int]) -> Iterator[list[int]]:
    """Sequences with one more repetition: of each value that is alive at the peak and idle there."""
    occupancy = units.occupancy(sequence)
    peak = occupancy.index(max(occupancy))
    writer = {v: u for u, unit in enumerate(units.units) for v in unit.writes}
    busy = {*units.units[sequence[peak]].reads, *units.units[sequence[peak]].writes}
    written = {v for u in sequence[:peak] for v in units.units[u].writes}
    for v in sorted(written - busy):
        later = ((p, units.units[sequence[p]]) for p in range(peak + 1, len(sequence)))
        at = next((p for p, unit in later if v in unit.reads or v in unit.writes), None)
        at = len(sequence) if at is None and v in units.kept else at
        if at is None or (at < len(sequence) and v in units.units[sequence[at]].writes):
            continue
        for deep in (True, False):
            again = _closure(units, sequence, writer, v, at, deep=deep)
            if again and all(units.units[u].repeatable for u in again):
                yield [*sequence[:at], *again, *sequence[at:]]


def _closure(units: Units, sequence: list[int], writer: dict[int, int], v: int, at: int, *, deep: bool) -> list[int]:
    """The units to repeat before position `at` for value `v`, producers first.

    `deep`: with all that is not alive there anyway, else the writer alone, whose operands then live longer.
    """
    if not deep:
        return [writer[v]]
    alive = _alive(units, sequence, at) - {v}
    needed = set[int]()
    stack = [writer[v]]
    while stack:
        u = stack.pop()
        if u not in needed:
            needed.add(u)
            stack += [writer[r] for r in units.units[u].reads if r not in alive and r in writer]
    return sorted(needed)


def _alive(units: Units, sequence: Sequence[int], at: int) -> set[int]:
    """The values alive right before position `at`."""
    alive = set(units.kept)
    for u in reversed(sequence[at:]):
        alive -= set(units.units[u].writes)
        alive |= set(units.units[u].reads)
    return alive


def _without_spare(units: Units, sequence: list[int], budget: int) -> list[int]:
    """The sequence without repetitions that the budget does not need, most work first."""
    counts = {u: sequence.count(u) for u in set(sequence)}
    for u in sorted(counts, key=lambda u: -units.units[u].work):
        for p in [p for p, other in enumerate(sequence) if other == u][::-1]:
            if sequence.count(u) == 1:
                break
            shorter = [*sequence[:p], *sequence[p + 1 :]]
            if runs(units, shorter) and units.peak(shorter) <= budget:
                sequence = shorter
                break
    return sequence


def runs(units: Units, sequence: Sequence[int]) -> bool:
    """Whether a sequence is valid: values are written before they are read, and every unit runs."""
    there = set(units.given)
    for u in sequence:
        if not set(units.units[u].reads) <= there:
            return False
        there |= set(units.units[u].writes)
    return set(sequence) == set(range(len(units.units)))
