"""Runs models in one memory step by step and in random order, with a mark on every byte; shares no code with planning.

Every buffer of every model writes its mark into its bytes when its life begins, and all marks of buffers that are alive
must still be there at each later step, whatever other models have done in between.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from modelplan import Kind
from modelplan.answers.shared_plan import ModelPart, Pipe, Place, SharedPlan


@dataclass
class Simulation:
    """One memory and the models in it. `problems` collects what went wrong, in words."""

    made: SharedPlan
    rng: random.Random
    memory: np.ndarray = field(init=False)
    marks: dict[tuple[int, int], int] = field(default_factory=dict)
    kept: dict[tuple[int, int], int] = field(default_factory=dict)
    count: int = 0
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory = np.zeros(self.made.height, dtype=np.int64)

    def run(self, ticks: int) -> list[str]:
        """What goes wrong where each unit runs by itself, then in so many steps of models that run as they may."""
        for model, part in enumerate(self.made.parts):
            for number in range(len(part.problem)):
                if self._is_state(part, number):
                    self._write(model, number)
        units = units_of(self.made)
        for unit in units:  # in random order one may never find all others idle that exclude it
            for model, step in self._steps(unit):
                self._step(model, step)
                self._check_kept()
        active: dict[int, list[tuple[int, int]]] = {}
        for _ in range(ticks):
            idle = [
                u for u in range(len(units)) if u not in active and all(self._may_meet(units, u, v) for v in active)
            ]
            chosen = self.rng.choice([*active, *idle])
            if chosen not in active:
                active[chosen] = self._steps(units[chosen])
            self._step(*active[chosen].pop(0))
            if not active[chosen]:
                del active[chosen]
            self._check_kept()
        return self.problems

    def _steps(self, unit: list[int]) -> list[tuple[int, int]]:
        """The steps of a run of a unit: the model and its own step."""
        return [(m, s) for m in unit for s in range(steps_of(self.made.parts[m]))]

    def _may_meet(self, units: list[list[int]], a: int, b: int) -> bool:
        """Whether two units may be active at the same time."""
        turns = self.made.relation.turns
        return not any((min(x, y), max(x, y)) in turns for x in units[a] for y in units[b])

    def _step(self, model: int, step: int) -> None:
        problem = self.made.parts[model].problem
        fed = {pipe.target.tensor: pipe for pipe in self.made.relation.pipes if pipe.target.model == model}
        for number in range(len(problem)):
            if problem.start[number] != step or self._is_state(self.made.parts[model], number):
                continue
            pipe = next((fed[m.tensor] for m in problem.members[number] if m.tensor in fed), None)
            if pipe is None:
                self._write(model, number)
            else:
                self._receive(pipe, number)
        for number in range(len(problem)):
            if problem.start[number] <= step < problem.end[number] or self._is_state(self.made.parts[model], number):
                self._check(model, number, f"at its step {step}")

    def _receive(self, pipe: Pipe, number: int) -> None:
        """What a pipeline hands on must lie where the reader looks for it, as it was written."""
        source = self._number(pipe.source)
        a, b = self._range(pipe.source.model, source), self._range(pipe.target.model, number)
        if a[0] != b[0]:
            self.problems.append(f"{pipe} hands on nothing: {a} is not {b}")
        self._check(pipe.source.model, source, "when it is handed on")
        self.marks[pipe.target.model, number] = self.marks[pipe.source.model, source]

    def _number(self, place: Place) -> int:
        members = self.made.parts[place.model].problem.members
        return next(i for i, group in enumerate(members) if any(m.tensor == place.tensor for m in group))

    def _write(self, model: int, number: int) -> None:
        self.count += 1
        self.marks[model, number] = self.count
        low, high = self._range(model, number)
        self.memory[low:high] = self.count
        if any(place.model == model and self._number(place) == number for place in self.made.relation.kept):
            self.kept[model, number] = self.count

    def _check(self, model: int, number: int, when: str) -> None:
        low, high = self._range(model, number)
        if (self.memory[low:high] != self.marks[model, number]).any():
            part = self.made.parts[model]
            self.problems.append(f"{part.name}: {part.problem.names[number]} at {low}..{high} is overwritten {when}")

    def _check_kept(self) -> None:
        for (model, number), mark in self.kept.items():
            low, high = self._range(model, number)
            if (self.memory[low:high] != mark).any():
                self.problems.append(f"kept buffer {number} of model {model} is overwritten")

    def _range(self, model: int, number: int) -> tuple[int, int]:
        low = self.made.offsets_of(model)[number]
        return low, low + int(self.made.parts[model].problem.size[number])

    def _is_state(self, part: ModelPart, number: int) -> bool:
        members = part.problem.members[number] if part.problem.members else ()
        return any(part.graph.tensors[m.tensor].kind is Kind.STATE for m in members)


def steps_of(part: ModelPart) -> int:
    """How many steps a run of a model takes."""
    return int(part.problem.end.max(initial=1))


def units_of(made: SharedPlan) -> list[list[int]]:
    """Models that pipelines connect, in the order of running."""
    sets = [{m} for m in range(len(made.parts))]
    for pipe in made.relation.pipes:
        joined = [s for s in sets if s & {pipe.source.model, pipe.target.model}]
        sets = [s for s in sets if s not in joined] + [set().union(*joined)]
    return [[m for m in made.relation.order if m in s] for s in sets]
