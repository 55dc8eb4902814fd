"""The independent checker: every placement and every flow certificate passes it; it shares no code with either."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from modelplan.model import FlowCase, OrderProblem, Overwrite, Placement, Problem, Witness
from modelplan.primitives import _core
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.units import steps_words


def check(problem: Problem, placement: Placement) -> None:
    """Returns only if `placement` answers `problem`.

    Looks at completeness, signs, alignment, pins, capacity, overlap in time and space (less what `overlaps`
    or a meeting allows), the extra conflicts, the distances inside of groups, and contiguous lists.

    Raises:
        BrokenPlanError: names the buffers, their byte ranges and the step.

    Cost: O(n log n) time, O(n) memory.
    """
    offsets = placement.offsets
    if offsets.shape != (len(problem),):
        raise BrokenPlanError(f"placement has {len(offsets)} offsets for {len(problem)} buffers")
    _check_each(problem, placement)
    earlier, later = _core.find_clash(
        problem.size, problem.start, problem.end, offsets, problem.overlaps, problem.meetings
    )
    if earlier >= 0:
        raise BrokenPlanError(_clash(problem, placement, earlier, later))
    _check_conflicts(problem, placement)
    _check_groups(problem, placement)
    _check_contiguous(problem, placement)


def _check_contiguous(problem: Problem, placement: Placement) -> None:
    """Between one buffer of a list and the next lie fewer bytes than an alignment, and the next lies above."""
    for members in problem.contiguous:
        for i in range(1, len(members)):
            a, b = members[i - 1], members[i]
            between = int(placement.offsets[b]) - int(placement.offsets[a]) - int(problem.size[a])
            if not 0 <= between < int(problem.alignment[b]):
                raise BrokenPlanError(
                    f"{_place(problem, placement, b)} does not stand right behind {_place(problem, placement, a)},"
                    " although their list is contiguous"
                )


def _check_conflicts(problem: Problem, placement: Placement) -> None:
    """Checks that no extra pair of buffers that must stay apart shares bytes."""
    pairs = np.asarray(problem.conflicts, dtype=np.int64).reshape(-1, 2)
    low, high = placement.offsets, placement.offsets + problem.size
    shared = high[pairs].min(axis=1) > low[pairs].max(axis=1)
    if shared.any():
        earlier, later = pairs[int(np.argmax(shared))].tolist()
        raise BrokenPlanError(_clash(problem, placement, earlier, later))


def _check_groups(problem: Problem, placement: Placement) -> None:
    """Checks that all buffers of a group imply the same base address."""
    buffers, groups, deltas = problem.groups.T
    bases = placement.offsets[buffers] - deltas
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    off = bases - bases[first][which]
    if off.any():
        row = int(np.argmax(off != 0))
        raise BrokenPlanError(
            f"{_place(problem, placement, int(buffers[row]))} is {int(off[row]):+} bytes off its distance to"
            f" {_place(problem, placement, int(buffers[first[which[row]]]))} in group {int(groups[row])}"
        )


def _check_each(problem: Problem, placement: Placement) -> None:
    offsets = placement.offsets
    top = problem.capacity if problem.capacity is not None else np.iinfo(np.int64).max
    rules = [
        (offsets < 0, "a non-negative offset"),
        (offsets % problem.alignment != 0, "a multiple of its alignment"),
        ((problem.pin >= 0) & (offsets != problem.pin), "its pin"),
        ((problem.size > 0) & (offsets > top - problem.size), f"an end within the capacity of {top} bytes"),
    ]
    for broken, expected in rules:
        if broken.any():
            i = int(np.argmax(broken))
            detail = f"alignment {problem.alignment[i]}, pin {problem.pin[i]}"
            raise BrokenPlanError(f"{_place(problem, placement, i)} ({detail}): expected {expected}")


def _place(problem: Problem, placement: Placement, i: int) -> str:
    low = int(placement.offsets[i])
    return f"buffer {i} {problem.names[i]!r} at bytes {low}..{low + int(problem.size[i])}"


def _clash(problem: Problem, placement: Placement, a: int, b: int) -> str:
    step = max(int(problem.start[a]), int(problem.start[b]))
    lives = [f"in steps {steps_words(problem.start[i], problem.end[i])}" for i in (a, b)]
    return (
        f"{_place(problem, placement, a)}, alive {lives[0]}, and {_place(problem, placement, b)},"
        f" alive {lives[1]}, share bytes at step {step}"
    )


def check_flow(problem: OrderProblem, witness: Witness) -> None:
    """Returns only if `witness` proves that every order of `problem` needs `witness.bytes` while its op runs.

    A case is a flow of bytes from what must have run before the op to what must run after it. Conservation at
    every other op and the capacity of every storage make its value a lower bound on the bytes that any order
    keeps alive there (weak duality of flows and cuts), besides what the op itself writes and its scratch.

    Raises:
        BrokenPlanError: names the transfer, op or storage that breaks the proof.

    Cost: O(storages + edges) for each case.
    """
    if witness.op == -1:
        _check_ends_of_time(problem, witness.bytes)
        return
    if not 0 <= witness.op < problem.ops:
        raise BrokenPlanError(f"the witness names op {witness.op}, expected one of {problem.ops}")
    before, after = _neighbours(problem)
    waiting = _closure([witness.op], after)
    values: dict[frozenset[int], int] = {}
    for case in witness.cases:
        executed = _closure([witness.op], before) - {witness.op}
        executed |= _closure(_other_readers(problem, witness.op, case.dying), before)
        if executed & waiting:
            raise BrokenPlanError(f"the witness' case {case.dying} cannot happen: it needs ops that come later")
        own = problem.scratch[witness.op] + sum(s.size for s in problem.storages if witness.op in s.writers)
        values[frozenset(case.dying)] = own + _value(problem, witness.op, case, executed, waiting, before)
    _check_cases(problem, witness, values, waiting)


def _check_ends_of_time(problem: OrderProblem, claimed: int) -> None:
    first = sum(s.size for s in problem.storages if s.from_start and (s.readers or s.to_end))
    last = sum(s.size for s in problem.storages if s.to_end and (s.writers or s.from_start))
    if claimed > max(first, last):
        raise BrokenPlanError(f"{first} bytes are alive before the first op, {last} after the last, not {claimed}")


def _neighbours(problem: OrderProblem) -> tuple[list[set[int]], list[set[int]]]:
    """Direct predecessors and successors: the edges, and from the one writer of a storage to its readers."""
    before: list[set[int]] = [set() for _ in range(problem.ops)]
    after: list[set[int]] = [set() for _ in range(problem.ops)]
    pairs = list(problem.edges)
    for storage in problem.storages:
        if len(storage.writers) == 1 and not storage.from_start:
            pairs += [(storage.writers[0], reader) for reader in storage.readers]
    for a, b in pairs:
        before[b].add(a)
        after[a].add(b)
    return before, after


def _closure(ops: Iterable[int], next_of: list[set[int]]) -> set[int]:
    """The ops and all that is reached from them."""
    reached, stack = set(), list(ops)
    while stack:
        op = stack.pop()
        if op not in reached:
            reached.add(op)
            stack.extend(next_of[op])
    return reached


def _other_readers(problem: OrderProblem, op: int, dying: Iterable[int]) -> list[int]:
    return [reader for s in dying for reader in problem.storages[s].readers if reader != op]


def _value(
    problem: OrderProblem, op: int, case: FlowCase, executed: set[int], waiting: set[int], before: list[set[int]]
) -> int:
    """The bytes that a flow carries from the executed side, checked transfer by transfer."""
    held: dict[int, int] = defaultdict(int)
    used: dict[int, int] = defaultdict(int)
    value = 0
    for t in case.flow:
        if t.amount <= 0:
            raise BrokenPlanError(f"{t} carries nothing")
        if t.storage < 0 and t.sink not in before[t.source]:
            raise BrokenPlanError(f"{t} is no precedence")
        if t.storage >= 0:
            _check_ends(problem, t.source, t.sink, t.storage, op)
            used[t.storage] += t.amount
        held[t.source] -= 0 if t.source == -1 else t.amount
        held[t.sink] += 0 if t.sink == -1 else t.amount
        value += t.amount * ((t.source == -1 or t.source in executed) - (t.sink in executed))
    for storage, amount in used.items():
        if amount > problem.storages[storage].size:
            size = problem.storages[storage].size
            raise BrokenPlanError(f"{amount} bytes flow through storage {storage}, which holds {size}")
    for node, balance in held.items():
        if balance and node != -1 and node not in executed and node not in waiting:
            raise BrokenPlanError(f"op {node} takes in {balance} bytes of flow more than it passes on")
    return value


def _check_ends(problem: OrderProblem, source: int, sink: int, storage: int, op: int) -> None:
    s = problem.storages[storage]
    if op in s.writers:
        raise BrokenPlanError(f"storage {storage} is written by the op itself and already counted")
    if not (s.from_start if source == -1 else source in s.writers):
        raise BrokenPlanError(f"op {source} does not write storage {storage}")
    if not (s.to_end if sink == -1 else sink in s.readers):
        raise BrokenPlanError(f"op {sink} does not read storage {storage}")


def _check_cases(
    problem: OrderProblem, witness: Witness, values: Mapping[frozenset[int], int], waiting: set[int]
) -> None:
    """Checks that a case covers each set of overwrites that can happen: one that assumes no other storage dead."""
    there = [o for o in problem.overwrites if o.op == witness.op]
    most = sum(max((o.saved for o in there if o.to == to), default=0) for to in {o.to for o in there})
    if values.get(frozenset(), -1) - most >= witness.bytes:
        return
    for dying, saved in _matchings(there):
        if any(problem.storages[s].to_end for s in dying):
            continue
        if waiting & set(_other_readers(problem, witness.op, dying)):
            continue
        if max((v for d, v in values.items() if d <= dying), default=-1) - saved < witness.bytes:
            raise BrokenPlanError(
                f"no flow proves {witness.bytes} bytes at op {witness.op} when it overwrites {sorted(dying)}"
            )


def _matchings(overwrites: list[Overwrite]) -> Iterator[tuple[frozenset[int], int]]:
    """Every choice of overwrites in which no storage is used twice: what dies, and the bytes it saves."""
    if not overwrites:
        yield frozenset(), 0
        return
    first, *rest = overwrites
    yield from _matchings(rest)
    free = [o for o in rest if o.over != first.over and o.to != first.to]
    for dying, saved in _matchings(free):
        yield dying | {first.over}, saved + first.saved
