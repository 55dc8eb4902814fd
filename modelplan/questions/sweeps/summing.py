"""From rows to findings: pure functions over the rows of one result or two."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from modelplan.answers.sweep_summary import Changes, Fit, SettingCost, Settings, SweepChange, SweepFindings, Verdict
from modelplan.questions.sweeps.run_table import USUAL
from modelplan.questions.sweeps.sweep_rows import IDENTITY, SweepRow

#: The columns that name a run.
_NAMING = attrgetter(*IDENTITY)
#: The best verdict first.
_RANK: tuple[Verdict, ...] = ("fits", "with a plan", "no", "unknown", "refused")


def summarized(title: str, rows: Iterable[SweepRow], older: Iterable[SweepRow] | None = None) -> SweepFindings:
    """What the rows say, against those of an earlier result where there is one.

    Both are read once, in order of what names runs. Memory: the findings, and a little for each plan of one model.
    """
    ended, errors = Counter[str](), Counter[str]()
    targets: dict[str, int] = {}
    models: dict[str, None] = {}
    verdicts, settings, changes = _Fits(), _Settings(), _Changes(older or ())
    for row in rows:
        ended[row.status] += 1
        if row.status != "done":
            errors[f"{row.status}: {row.error}"] += 1
        if row.target:
            targets[row.target] = row.target_bytes or 0
        models[row.model] = None
        verdicts.add(row)
        settings.add(row)
        changes.add(row)
    return SweepFindings(
        title,
        ended.total(),
        tuple(sorted(ended.items())),
        tuple(errors.most_common()),
        tuple(models),
        tuple(sorted(targets.items(), key=lambda pair: (pair[1], pair[0]))),
        verdicts.summary(),
        settings.summary(),
        None if older is None else changes.summary(),
    )


class _Fits:
    """Collects the best verdict for each model and target."""

    def __init__(self) -> None:
        self.best: dict[tuple[str, str], tuple[int, int, Fit]] = {}

    def add(self, row: SweepRow) -> None:
        """Adds a row; the first of equal ones is kept."""
        if not row.target:
            return
        verdict = _verdict(row)
        rank, height = _RANK.index(verdict), row.height or 0
        fit = Fit(row.model, row.target, verdict, row.arena, name_of(row) if verdict == "with a plan" else "")
        before = self.best.get((row.model, row.target))
        if before is not None:
            arena = min((size for size in (before[2].arena, row.arena) if size is not None), default=None)
            if before[:2] <= (rank, height):
                rank, height, fit = before
            fit = fit if fit.arena == arena else replace(fit, arena=arena)
        self.best[row.model, row.target] = rank, height, fit

    def summary(self) -> tuple[Fit, ...]:
        """The verdicts, in the order of the first rows."""
        return tuple(fit for _, _, fit in self.best.values())


def _verdict(row: SweepRow) -> Verdict:
    if row.status != "done":
        return "refused" if row.status == "refused" else "unknown"
    if row.fits:
        return "fits"
    if row.plan_fits is None:
        return "unknown" if row.fits is None else "no"
    return "with a plan" if row.plan_fits else "no"


def name_of(row: SweepRow) -> str:
    """The setting of a row in words: what is not left to the default."""
    given = [getattr(row, name) for name in ("runtime", "kernels", "schedule", "alias", "allocator")]
    return " ".join(word for word in given if word != USUAL) or USUAL


class _Settings:
    """Each setting's bytes and seconds over the plans that all of them made; targets that share a plan count once.

    Rows of one model come together: its plans are put into sums, by which settings have made them, when it ends.
    """

    def __init__(self) -> None:
        self.allocators: dict[str, str] = {}
        self.asked, self.answered = Counter[str](), Counter[str]()
        self.sums: dict[frozenset[str], _Sum] = defaultdict(_Sum)
        self.model = ""
        self.plans: dict[tuple[str, ...], dict[str, _Figures]] = defaultdict(dict)

    def add(self, row: SweepRow) -> None:
        if row.model != self.model:
            self._end_model()
            self.model = row.model
        name = name_of(row)
        self.allocators.setdefault(name, row.allocator)
        self.asked[name] += 1
        if row.height is not None:
            self.answered[name] += 1
            kernels = row.used_kernels if row.kernels == USUAL else USUAL
            runtime = row.used_runtime if row.runtime == USUAL else USUAL
            figures = row.height, row.plan_seconds or 0.0, row.bound or 0, row.runtime_height or 0
            self.plans[runtime, kernels, row.dims, row.shapes, row.values].setdefault(name, figures)

    def _end_model(self) -> None:
        for plan in self.plans.values():
            self.sums[frozenset(plan)].add(plan)
        self.plans.clear()

    def summary(self) -> Settings:
        """The settings side by side."""
        self._end_model()
        common = self.sums.get(frozenset(self.allocators), _Sum())
        costs = [
            SettingCost(
                name, allocator, common.heights[name], common.seconds[name], self.answered[name], self.asked[name]
            )
            for name, allocator in self.allocators.items()
        ]
        ranked = sorted(costs, key=lambda cost: (cost.height, cost.seconds, cost.name))
        marked = _marked(ranked) if common.plans else ranked
        return Settings(tuple(marked), common.bound, common.runtime_height, common.plans)


#: Height, seconds, bound and the runtime's own height of a plan.
_Figures = tuple[int, float, int, int]


@dataclass
class _Sum:
    """Sums over the plans that a set of settings has all made."""

    plans: int = 0
    bound: int = 0
    runtime_height: int = 0
    heights: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, plan: Mapping[str, _Figures]) -> None:
        """Adds the figures of one plan by setting."""
        self.plans += 1
        self.bound += min(bound for _, _, bound, _ in plan.values())
        self.runtime_height += max(own for _, _, _, own in plan.values())
        for name, (height, seconds, _, _) in plan.items():
            self.heights[name] += height
            self.seconds[name] += seconds


def _marked(ranked: Sequence[SettingCost]) -> Iterator[SettingCost]:
    """The settings, those marked that no other beats in bytes without taking longer."""
    fastest = float("inf")
    for cost in ranked:
        yield replace(cost, unbeaten=cost.seconds < fastest)
        fastest = min(fastest, cost.seconds)


#: What may become worse: its name, its value in a row, and whether a greater value is the worse one.
_FIGURES: tuple[tuple[str, Callable[[SweepRow], int | None], bool], ...] = (
    ("arena", lambda row: row.arena, True),
    ("plan", lambda row: row.height, True),
    ("fits", lambda row: None if row.fits is None else int(row.fits), False),
    ("fits with its plan", lambda row: None if row.plan_fits is None else int(row.plan_fits), False),
)


class _Changes:
    """What became worse since an earlier result, and how many runs became better or stayed as they were.

    Rows of both come in order of what names runs, and those of the earlier result are read as far as they are needed.
    """

    def __init__(self, older: Iterable[SweepRow]) -> None:
        self.older = ((_identity(row), row) for row in older)
        self.next = next(self.older, None)
        self.worse: list[SweepChange] = []
        self.better = self.same = self.only_old = self.only_new = 0

    def add(self, row: SweepRow) -> None:
        """Compares a row of the newer result."""
        name = _identity(row)
        while self.next is not None and self.next[0] < name:
            self._pass()
        if self.next is None or self.next[0] != name:
            self.only_new += 1
            return
        old = self.next[1]
        sweep_changes = list(_worse(old, row))
        gained = not sweep_changes and any(True for _ in _worse(row, old))
        self.worse += sweep_changes
        self.better += gained
        self.same += not sweep_changes and not gained
        self.next = next(self.older, None)

    def _pass(self) -> None:
        self.only_old += 1
        self.next = next(self.older, None)

    def summary(self) -> Changes:
        """Both results side by side."""
        while self.next is not None:
            self._pass()
        return Changes(tuple(self.worse), self.better, self.same, self.only_old, self.only_new)


def _worse(old: SweepRow, new: SweepRow) -> Iterator[SweepChange]:
    run = ", ".join(word for word in (new.model, new.target, name_of(new), new.dims, new.shapes, new.values) if word)
    if old.status == "done" != new.status:
        yield SweepChange(run, "answer", "done", f"{new.status}: {new.error}")
        return
    for what, value, greater in _FIGURES:
        a, b = value(old), value(new)
        if a is not None and b is not None and (b > a if greater else b < a):
            shown = (f"{a:,}", f"{b:,}") if greater else ("yes", "no")
            yield SweepChange(run, what, *shown)


def _identity(row: SweepRow) -> tuple[tuple[bool, str], ...]:
    """The key of a row's run, in the order in which rows are sorted; missing texts come last."""
    return tuple([(text is None, text or "") for text in _NAMING(row)])
