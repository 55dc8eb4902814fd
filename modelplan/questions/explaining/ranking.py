"""Tries the changes of the table on a model and ranks what needs less; finds combinations that beat single changes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from modelplan.answers.explanation import Advice, Needs, Suggestion
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.questions.explaining.changes import CHANGES, Place, TriedChange, apply_change, place_name
from modelplan.questions.explaining.subjects import Measure, ModelSubject, OutOfTimeError, RefusedChangeError, measured

#: One change at one place.
Step = tuple[TriedChange, Place]

#: Operators of all models that are planned anew where no time is stated, so that a limit is the same on each machine:
#: the most, bytes of the file for each, and those that are planned of a small file too.
_MOST_WORK, _WORK_BYTES, _LEAST_WORK = 300_000, 2, 60_000
#: Bodies that operators run are planned by themselves, which takes as long as so many operators.
_BODY_WORK = 150
#: For combinations: changes that may help only together with others are tried too.
_ENABLING = frozenset({"best order"})


@dataclass
class Trials:
    """Every combination of changes that was tried: what it needs, or why it cannot be made."""

    base: ModelSubject
    start: Measure
    known: dict[tuple[tuple[str, Place], ...], tuple[ModelSubject, Measure] | RefusedChangeError] = field(
        default_factory=dict
    )
    work: int = 0
    most_work: int | None = None

    def attempt(self, steps: Iterable[Step]) -> tuple[ModelSubject, Measure]:
        """The model after these changes, made in the order of the table, and what it needs.

        Raises:
            RefusedChangeError: one of them cannot be made.
            OutOfTimeError: the deadline has passed, or there was as much work as there may be.
        """
        ordered = in_order(steps)
        key = tuple((change.name, place) for change, place in ordered)
        if key not in self.known:
            self.base.check_time()
            try:
                self.known[key] = self._apply(ordered)
            except RefusedChangeError as problem:
                self.known[key] = problem
        result = self.known[key]
        if isinstance(result, RefusedChangeError):
            raise result
        return result

    @cached_property
    def _most(self) -> int:
        """The operators that are planned anew."""
        if self.most_work is not None:
            return self.most_work
        size = len(self.base.source.content) if self.base.source else 0
        return min(_MOST_WORK, max(_LEAST_WORK, size // _WORK_BYTES))

    def _apply(self, ordered: tuple[Step, ...]) -> tuple[ModelSubject, Measure]:
        before = self.base if len(ordered) == 1 else self.attempt(ordered[:-1])[0]
        after = apply_change(ordered[-1][0], before, ordered[-1][1])
        graph = self.base.graph
        self.work += sum(_BODY_WORK + len(body.ops) for body in graph.bodies) + len(graph.ops)
        if self.base.deadline is None and self.work > self._most:
            raise OutOfTimeError
        return after, measured(after)

    def saved(self, needs: Measure) -> int:
        """Bytes below the unmodified file, of the arena or of the planned part where only that can be compared."""
        if needs.whole != self.start.whole:
            return self.start.head - needs.head
        return self.start.arena - needs.arena

    def suggestion(self, steps: Iterable[Step]) -> Suggestion:
        """The changes with what they save and cost."""
        ordered = in_order(steps)
        subject, needs = self.attempt(ordered)
        alike = needs.whole == self.start.whole
        return Suggestion(
            tuple(step_name(self.base, step) for step in ordered),
            needs.arena if alike else None,
            needs.head,
            self.start.arena - needs.arena if alike else None,
            self.start.head - needs.head,
            subject.costs,
            max(change.needs for change, _ in ordered),
            subject.commands,
            subject.todo,
            max(change.way for change, _ in ordered),
        )


def step_name(base: ModelSubject, step: Step) -> str:
    """The name of a change, with its place where it has several."""
    name = place_name(base, step[1])
    return f"{step[0].name}: {name}" if name else step[0].name


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Changes in the order of the table, and of their places."""
    rank = {name: number for number, name in enumerate(CHANGES)}
    return tuple(sorted(steps, key=lambda step: (rank[step[0].name], str(step[1]).zfill(9))))


def advice(
    base: ModelSubject,
    start: Measure,
    effort: int = 2,
    at: frozenset[int] | None = None,
    report: Report = report_nothing,
    *,
    alone: bool = False,
    most_work: int | None = None,
) -> Advice:
    """What would lower the bytes of a model, each figure of a plan that was made for the changed model.

    Args:
        base: the unmodified model, with the deadline.
        start: what it needs.
        effort: the dearest changes to try, as in the table; combinations are searched from 2 on.
        at: of changes of single operators only those of these are tried; None: of all.
        report: is called with a line for each change that helps, as soon as it is known.
        alone: whether only changes that go with no other are tried.
        most_work: operators of all models that are planned anew where no time is stated; None: by the file's bytes.
    """
    trials = Trials(base, start, most_work=most_work)
    helpful: list[Step] = []
    same, refused, untried = list[str](), list[tuple[str, str]](), list[str]()
    for step in (step for step in _steps(base, effort, at) if step[0].alone or not alone):
        name = step_name(base, step)
        try:
            _, needs = trials.attempt([step])
        except RefusedChangeError as problem:
            refused.append((name, str(problem)))
        except OutOfTimeError:
            untried.append(name)
        else:
            if needs.head < start.head or (needs.whole == start.whole and needs.arena < start.arena):
                helpful.append(step)
                report(f"{name}: {trials.saved(needs):,} bytes less")
            else:
                same.append(name)
    helpful = [*_merge_steps(trials, helpful)]
    distinct = list(_distinct(trials, helpful))
    same += [step_name(base, step) for step in helpful if step not in distinct]
    suggestions = [trials.suggestion([step]) for step in distinct]
    if effort > 1 and not alone:
        try:
            suggestions += _combinations(trials, helpful)
        except OutOfTimeError:
            untried.append("combinations")
    return Advice(ranked(suggestions), tuple(same), tuple(refused), tuple(untried))


def ranked(suggestions: Iterable[Suggestion]) -> tuple[Suggestion, ...]:
    """Suggestions that keep the model and the platform first, then those that keep the model; most saved first."""
    return tuple(sorted(suggestions, key=lambda s: (class_of(s.needs), -s.saved, s.needs, len(s.steps))))


def class_of(needs: Needs) -> int:
    """0: a command rewrites the file; 1: the platform changes; 2: the model changes."""
    return max(needs - Needs.WORK, 0)


def _steps(base: ModelSubject, effort: int, at: frozenset[int] | None) -> Iterator[Step]:
    """Every change at each of its places, the quick ones first."""
    for change in sorted(CHANGES.values(), key=lambda change: change.effort):
        if change.effort > effort:
            continue
        for place in change.places(base):
            if at is None or isinstance(place, str) or place in at:
                yield change, place


def _distinct(trials: Trials, steps: Iterable[Step]) -> Iterator[Step]:
    """The steps without those that come to the same bytes as an earlier one of the same group."""
    seen: set[tuple[str, Measure]] = set()
    for step in steps:
        key = step[0].group, trials.attempt([step])[1]
        if not step[0].group or key not in seen:
            yield step
        seen.add(key)


def _merge_steps(trials: Trials, steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, where those that only lower what the runtime keeps are one step for each change.

    They stay apart where they cannot all be made, or where there is no time to try that.
    """
    several: dict[str, list[int]] = {}
    for change, place in steps:
        if isinstance(place, int) and trials.attempt([(change, place)])[1].head == trials.start.head:
            several.setdefault(change.name, []).append(place)
        else:
            yield change, place
    for name, places in several.items():
        together = CHANGES[name], tuple(places)
        if len(places) > 1 and _can_be_made(trials, together):
            yield together
        else:
            yield from ((CHANGES[name], place) for place in places)


def _can_be_made(trials: Trials, step: Step) -> bool:
    """Whether a change applies and there is time to try it."""
    try:
        trials.attempt([step])
    except (RefusedChangeError, OutOfTimeError):
        return False
    return True


def _combinations(trials: Trials, helpful: list[Step]) -> Iterator[Suggestion]:
    """For each class of changes the best combination, where it beats every single change of its class."""
    enabling = [(CHANGES[name], place) for name in _ENABLING for place in CHANGES[name].places(trials.base)]
    helpful = [step for step in helpful if not step[0].alone and _saved(trials, (step,)) is not None]
    best: set[tuple[Step, ...]] = set()
    for most in (Needs.WORK, Needs.PLATFORM, Needs.MODEL):
        steps = [step for step in [*helpful, *(s for s in enabling if s not in helpful)] if step[0].needs <= most]
        chosen = climb(trials, steps)
        singles = [trials.saved(trials.attempt([step])[1]) for step in helpful if step[0].needs <= most]
        if len(chosen) > 1 and chosen not in best and trials.saved(trials.attempt(chosen)[1]) > max(singles, default=0):
            best.add(chosen)
            yield trials.suggestion(chosen)


def climb(trials: Trials, steps: list[Step]) -> tuple[Step, ...]:
    """Changes added one by one, or two at once where one alone gains nothing, each time those that save the most."""
    chosen: tuple[Step, ...] = ()
    saved = 0
    while True:
        options = [in_order((*chosen, *more)) for more in _additions(chosen, steps)]
        results = {option: result for option in options if (result := _saved(trials, option)) is not None}
        top = max(results, key=lambda option: (results[option], -len(option)), default=())
        if not top or results[top] <= saved:
            return chosen
        chosen, saved = top, results[top]


def _additions(chosen: tuple[Step, ...], steps: list[Step]) -> Iterator[tuple[Step, ...]]:
    """Steps that may be added to those chosen: single ones, and pairs where one may help only with the other."""
    free = [step for step in steps if _goes_with(step, chosen)]
    yield from ((step,) for step in free)
    for first in free:
        if first[0].name in _ENABLING:
            yield from ((first, step) for step in free if step != first and _goes_with(step, (first,)))


def _goes_with(step: Step, chosen: Iterable[Step]) -> bool:
    """Whether a step may be added: one of each group, and a search is not made again for other kernels."""
    return all(step != other and not _excluded(step[0], other[0]) for other in chosen)


def _excluded(change: TriedChange, other: TriedChange) -> bool:
    same = bool(change.group) and change.group == other.group
    return same or any(a.effort > 1 and b.group == "platform" for a, b in ((change, other), (other, change)))


def _saved(trials: Trials, steps: tuple[Step, ...]) -> int | None:
    """Bytes that a combination saves; None where it does not apply or its bytes do not compare."""
    try:
        needs = trials.attempt(steps)[1]
    except RefusedChangeError:
        return None
    return trials.saved(needs) if needs.whole == trials.start.whole else None
