"""From rows to findings: pure functions over the rows of one result or two."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from modelplan.fleets.findings import Change, Changes, Fit, SettingCost, Settings, SweepFindings, Verdict
from modelplan.fleets.rows import IDENTITY, Row
from modelplan.fleets.table import USUAL

#: The best verdict first.
_RANK: tuple[Verdict, ...] = ("fits", "with a plan", "no", "unknown", "refused")


def summarized(title: str, rows: Sequence[Row], older: Sequence[Row] | None = None) -> SweepFindings:
    """What the rows say, against those of an earlier result where there is one."""
    errors = Counter(f"{row.status}: {row.error}" for row in rows if row.status != "done")
    targets = {row.target: row.target_bytes or 0 for row in rows if row.target}
    return SweepFindings(
        title,
        len(rows),
        tuple(sorted(Counter(row.status for row in rows).items())),
        tuple(errors.most_common()),
        tuple(dict.fromkeys(row.model for row in rows)),
        tuple(sorted(targets.items(), key=lambda pair: (pair[1], pair[0]))),
        tuple(fits(rows)),
        settings_of(rows),
        None if older is None else compared(older, rows),
    )


def fits(rows: Iterable[Row]) -> Iterator[Fit]:
    """The best verdict for each model and target."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.target:
            groups[row.model, row.target].append(row)
    for (model, target), group in groups.items():
        best = min(group, key=lambda row: (_RANK.index(_verdict(row)), row.height or 0))
        arenas = [row.arena for row in group if row.arena is not None]
        verdict = _verdict(best)
        yield Fit(model, target, verdict, min(arenas, default=None), name_of(best) if verdict == "with a plan" else "")


def _verdict(row: Row) -> Verdict:
    if row.status != "done":
        return "refused" if row.status == "refused" else "unknown"
    if row.fits:
        return "fits"
    if row.plan_fits is None:
        return "unknown" if row.fits is None else "no"
    return "with a plan" if row.plan_fits else "no"


def name_of(row: Row) -> str:
    """The setting of a row in words: what is not left to the default."""
    given = [getattr(row, name) for name in ("runtime", "kernels", "schedule", "alias", "allocator")]
    return " ".join(word for word in given if word != USUAL) or USUAL


def settings_of(rows: Sequence[Row]) -> Settings:
    """Each setting's bytes and seconds over the plans that all of them made; targets that share a plan count once."""
    names = dict.fromkeys(map(name_of, rows))
    plans: dict[tuple[str, ...], dict[str, Row]] = defaultdict(dict)
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for row in rows:
        asked[name_of(row)] += 1
        if row.height is not None:
            answered[name_of(row)] += 1
            kernels = row.used_kernels if row.kernels == USUAL else USUAL
            runtime = row.used_runtime if row.runtime == USUAL else USUAL
            plans[row.model, runtime, kernels, row.dims, row.shapes].setdefault(name_of(row), row)
    common = [plan for plan in plans.values() if len(plan) == len(names)]
    costs = [
        SettingCost(
            name,
            next(row.allocator for row in rows if name_of(row) == name),
            sum(plan[name].height or 0 for plan in common),
            sum(plan[name].plan_seconds or 0.0 for plan in common),
            answered[name],
            asked[name],
        )
        for name in names
    ]
    bound = sum(min(row.bound or 0 for row in plan.values()) for plan in common)
    own = sum(max(row.runtime_height or 0 for row in plan.values()) for plan in common)
    ranked = sorted(costs, key=lambda cost: (cost.height, cost.seconds, cost.name))
    return Settings(tuple(_marked(ranked) if common else ranked), bound, own, len(common))


def _marked(ranked: Sequence[SettingCost]) -> Iterator[SettingCost]:
    """The settings, those marked that no other beats in bytes without taking longer."""
    fastest = float("inf")
    for cost in ranked:
        yield replace(cost, unbeaten=cost.seconds < fastest)
        fastest = min(fastest, cost.seconds)


#: What may become worse: its name, its value in a row, and whether a greater value is the worse one.
_FIGURES: tuple[tuple[str, Callable[[Row], int | None], bool], ...] = (
    ("arena", lambda row: row.arena, True),
    ("plan", lambda row: row.height, True),
    ("fits", lambda row: None if row.fits is None else int(row.fits), False),
    ("fits with its plan", lambda row: None if row.plan_fits is None else int(row.plan_fits), False),
)


def compared(older: Sequence[Row], newer: Sequence[Row]) -> Changes:
    """What became worse since an earlier result, and how many runs became better or stayed as they were."""
    before = {_identity(row): row for row in older}
    worse: list[Change] = []
    better = same = shared = 0
    for row in newer:
        old = before.get(_identity(row))
        if old is None:
            continue
        shared += 1
        found = list(_worse(old, row))
        worse += found
        gained = not found and any(True for _ in _worse(row, old))
        better += gained
        same += not found and not gained
    return Changes(tuple(worse), better, same, len(before) - shared, len(newer) - shared)


def _worse(old: Row, new: Row) -> Iterator[Change]:
    run = ", ".join(word for word in (new.model, new.target, name_of(new), new.dims, new.shapes) if word)
    if old.status == "done" != new.status:
        yield Change(run, "answer", "done", f"{new.status}: {new.error}")
        return
    for what, value, greater in _FIGURES:
        a, b = value(old), value(new)
        if a is not None and b is not None and (b > a if greater else b < a):
            shown = (f"{a:,}", f"{b:,}") if greater else ("yes", "no")
            yield Change(run, what, *shown)


def _identity(row: Row) -> tuple[str, ...]:
    return tuple(getattr(row, name) for name in IDENTITY)
