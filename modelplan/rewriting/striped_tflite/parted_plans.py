"""What plans need and cost, from what each of their stretches, and each run of whole operators between, brings to them.

Neighbouring plans differ in one stretch: the others are built, and looked at, once.
"""

from collections.abc import Sequence
from dataclasses import field
from functools import cache, cached_property, lru_cache

import numpy as np

from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_tflite import costs, placing
from modelplan.rewriting.striped_tflite.building import Part, append_part, parts_of, program_before
from modelplan.rewriting.striped_tflite.folded_convolutions import Folded
from modelplan.rewriting.striped_tflite.rungs import ModelOnTarget
from modelplan.rewriting.striped_tflite.steps import GroupOffset, TfliteProgram
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import StripedStretch

#: Parts that are kept: many more than neighbours of one plan share.
_KEPT = 256

#: Where tensors of the graph lie before a part.
Places = tuple[tuple[int, GroupOffset], ...]


class PlanPart:
    """A stretch in stripes, or a run of whole operators, by itself; equal ones have the same program.

    In its program the `places` of tensors were there before its first step, in the first groups.
    """

    def __init__(self, program: TfliteProgram, places: Places, model: ModelOnTarget) -> None:
        self._program, self._model = program, model
        self.groups = program.groups
        self.added = len(program.group_offsets) - len(places)
        count, before = len(program.graph.tensors), {t for t, _ in places}
        #: The tensors of the graph that it puts somewhere.
        self.placed = {t: at for t, at in program.group_offsets.items() if t < count and t not in before}
        self.constants = program.constants.keys()
        self.steps = len(program.steps)
        self.rows = placing.PackingRows(program, model.overlaps, model.scratch_of)
        self._same = places, tuple(program.steps), tuple(program.group_offsets.items()), tuple(program.added)
        self._hash = hash(self._same)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlanPart) and self._same == other._same

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def kept(self) -> int:
        """Bytes that TFLM keeps for its steps."""
        return costs.kept_for_steps(self._program, self._model.bits)

    @cached_property
    def macs(self) -> int:
        """Its multiply-accumulates."""
        return costs.program_macs(self._program)

    @cached_property
    def slower(self) -> float:
        """The time that it is expected to take, as a multiple of that of the model."""
        return self._model.slower(self._program)

    @cached_property
    def legal(self) -> bool:
        """Whether the target's TFLM has its operators and can run them where they lie."""
        program, model = self._program, self._model
        legal = model.runs(program) and placing.is_aligned(program, model.runtime)
        return legal and placing.moves_front_to_back(program, model.overlaps)


@dataclass(frozen=True)
class PartedPlan:
    """A plan in parts, with sums over them; `values` lie in memory."""

    parts: tuple[PlanPart, ...]
    program: placing.PartedProgram = field(compare=False)
    values: int = field(compare=False)

    @property
    def steps(self) -> int:
        """Operators of its main graph."""
        return sum(part.steps for part in self.parts)

    @property
    def macs(self) -> int:
        """Its multiply-accumulates."""
        return sum(part.macs for part in self.parts)

    @property
    def slower(self) -> float:
        """How many times longer than the model it is expected to take."""
        return sum(part.slower for part in self.parts)

    @property
    def legal(self) -> bool:
        """Whether the target's TFLM has its operators and can run them where they lie."""
        return all(part.legal for part in self.parts)

    def kept(self, bits: int) -> int:
        """Bytes that TFLM keeps for its steps and constants on addresses of `bits`."""
        constants = set[tuple[int, ...]]().union(*(part.constants for part in self.parts))
        return sum(part.kept for part in self.parts) + costs.kept_for_constants(len(constants), bits)


class PlanParts:
    """The parts of plans of a model in one order; those that were asked for last are kept."""

    def __init__(self, whole: Folded, order: Sequence[int], model: ModelOnTarget) -> None:
        self._graph, self._file_ops, self._order, self._model = whole.graph, whole.file_ops, order, model
        self._before = program_before(whole.graph, whole.file_ops)
        self._part, self._touched = lru_cache(_KEPT)(self._built), cache(self._tensors)
        self._alike = lru_cache(_KEPT)(lambda part: part)

    def plan(self, stretches: Sequence[StripedStretch]) -> PartedPlan:
        """The plan of some stretches, apart and ascending.

        Raises:
            IllegalStripeError: a stretch has no stripes of this form.
        """
        places, groups, tick = dict(self._before.group_offsets), self._before.groups, 0
        parts, placed, values = list[PlanPart](), list[placing.PlacedRows](), len(places)
        for part in parts_of(len(self._order), stretches):
            numbers: dict[int, int] = {}  # those groups that the part has in front, by their numbers in the plan
            before = ((t, places[t]) for t in self._touched(*_span(part)) if t in places)
            known = [(t, GroupOffset(numbers.setdefault(group, len(numbers)), delta)) for t, (group, delta) in before]
            built = self._part(part, tuple(known))
            if built is None:
                raise IllegalStripeError("no stripes of this form")
            new = built.groups - len(numbers)
            own = [*numbers, *range(groups, groups + new)]
            places |= {t: GroupOffset(own[group], delta) for t, (group, delta) in built.placed.items()}
            parts.append(built)
            placed.append(placing.PlacedRows(built.rows, tick, np.array(own, dtype=np.int64)))
            groups, tick, values = groups + new, tick + built.rows.ticks, values + built.added
        return PartedPlan(tuple(parts), placing.PartedProgram(self._graph, places, groups, placed), values)

    def _tensors(self, first: int, behind: int) -> tuple[int, ...]:
        """The tensors of operators."""
        ops = (self._graph.ops[op] for op in self._order[first:behind])
        return tuple(sorted({t for op in ops for t in (*op.inputs, *op.outputs) if t >= 0}))

    def _built(self, steps: Part, places: Places) -> PlanPart | None:
        """A part by itself, None where there are no such stripes."""
        groups = 1 + max((place.group for _, place in places), default=-1)
        program = TfliteProgram(self._graph, group_offsets=dict(places), groups=groups, file_ops=self._file_ops)
        try:
            append_part(program, self._order, steps)
        except IllegalStripeError:
            return None
        part: PlanPart = self._alike(PlanPart(program, places, self._model))  # that came first
        return part


def _span(part: Part) -> tuple[int, int]:
    """The first step of a part and the one behind its last."""
    return (part.start, part.stop) if isinstance(part, range) else (part.first, part.last + 1)
