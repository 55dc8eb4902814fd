"""The report of a sweep: how runs ended, which target fits which model, what settings cost, what became worse."""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from modelplan.answers.sweep_summary import Changes, Fit, Settings, SweepFindings
from modelplan.outputs.report import Report, Section, Table
from modelplan.primitives.units import counted, human

#: The version of the JSON document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1

#: Lines of errors and of regressions that are shown.
_MOST = 20


def sections(findings: SweepFindings) -> Report:
    """The report as text."""
    return [
        _ended(findings),
        *([_targets(findings), _models(findings)] if findings.fits else []),
        _settings(findings.settings),
        *([_changes(findings.changes)] if findings.changes else []),
    ]


def matrix(findings: SweepFindings) -> str:
    """Which target fits which model as CSV: a row for each model, a column for each target with its bytes."""
    verdicts = {(fit.model, fit.target): fit.verdict for fit in findings.fits}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["model", *(f"{name} ({size})" for name, size in findings.targets)])
    for model in findings.models:
        writer.writerow([model, *(verdicts.get((model, target), "") for target, _ in findings.targets)])
    return text.getvalue()


def _ended(findings: SweepFindings) -> Section:
    lines = [f"{status:9} {count:,}" for status, count in findings.ended]
    lines += [f"{counted(count, 'run')}: {error}" for error, count in findings.errors[:_MOST]]
    if len(findings.errors) > _MOST:
        lines.append(f"and {len(findings.errors) - _MOST:,} other errors; the column `error` has them")
    return Section(
        f"{findings.title}: {counted(findings.rows, 'run')}, {counted(len(findings.models), 'model')}", tuple(lines)
    )


def _targets(findings: SweepFindings) -> Section:
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for fit in findings.fits:
        verdicts[fit.target][fit.verdict] += 1
    kinds = ("fits", "with a plan", "no", "unknown", "refused")
    rows = tuple(
        (name, f"{size:,}", *(f"{verdicts[name][kind] or ''}" for kind in kinds)) for name, size in findings.targets
    )
    headings = ("target", ">bytes", ">fit unmodified", ">with a plan", ">do not fit", ">unknown", ">refused")
    return Section("Which target fits which model: models by target", (), Table(headings, rows))


def _models(findings: SweepFindings) -> Section:
    order = {name: at for at, (name, _) in enumerate(findings.targets)}
    groups: dict[str, list[Fit]] = defaultdict(list)
    for fit in findings.fits:
        groups[fit.model].append(fit)
    rows = tuple(tuple(_model_row(model, fits, order)) for model, fits in groups.items())
    headings = ("model", ">arena", ">targets", "smallest that fits", "smallest with a plan", "by")
    note = "arena: the least for the unmodified file; a plan is made by `fit`, and `check` proves the number"
    return Section("Which target fits which model: the smallest target of each model", (note,), Table(headings, rows))


def _model_row(model: str, fits: Sequence[Fit], order: dict[str, int]) -> Iterator[str]:
    ranked = sorted(fits, key=lambda fit: order[fit.target])
    arenas = [fit.arena for fit in fits if fit.arena is not None]
    fitting = [fit for fit in ranked if fit.verdict == "fits"]
    planned = [fit for fit in ranked if fit.verdict == "with a plan"]
    smaller = planned[:1] if planned and (not fitting or order[planned[0].target] < order[fitting[0].target]) else []
    yield model
    yield f"{min(arenas):,}" if arenas else ""
    yield f"{len(fitting)} of {len(fits)}"
    known = {fit.verdict for fit in fits} - {"unknown", "refused"}
    yield fitting[0].target if fitting else "none" if known else "not known"
    yield smaller[0].target if smaller else ""
    yield smaller[0].setting if smaller else ""


def _settings(settings: Settings) -> Section:
    title = f"Settings over {counted(settings.plans, 'plan')} that each of them made"
    if not settings.plans:
        return Section("Settings", ("no model has a plan in every setting, so they cannot be compared",))
    rows = tuple(
        (
            f"{cost.name}{' *' if cost.unbeaten else ''}",
            f"{cost.height:,}",
            f"{cost.height / settings.bound:.4f}" if settings.bound else "",
            f"{cost.height / settings.runtime_height:.4f}" if settings.runtime_height else "",
            f"{cost.seconds:.2f}",
            f"{cost.answered:,} of {cost.asked:,}",
        )
        for cost in settings.costs
    )
    notes = (
        f"bound: {human(settings.bound)}, which no plan of these settings is below; * no other is as low in less time",
    )
    headings = ("setting", ">bytes", ">/ bound", ">/ runtime's own", ">CPU s", ">answered")
    return Section(title, notes, Table(headings, rows))


def _changes(changes: Changes) -> Section:
    runs = len({change.run for change in changes.worse})
    lines = [
        f"worse {runs:,}, better {changes.better:,}, the same {changes.same:,}",
        f"only there before {changes.only_old:,}, only there now {changes.only_new:,}",
    ]
    rows = tuple((change.run, change.what, change.before, change.after) for change in changes.worse[:_MOST])
    if len(changes.worse) > _MOST:
        lines.append(f"the first {_MOST} of {len(changes.worse):,} regressions:")
    table = Table(("run", "what", ">before", ">now"), rows) if rows else None
    return Section("Against the earlier result", tuple(lines), table)
