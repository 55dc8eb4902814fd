"""Outcomes of checks in words: what each model needs, what there is, what made it grow, what would fit."""

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from modelplan.answers.analysis import lower_alternatives
from modelplan.answers.check_outcomes import CheckSetting, Findings, Judgement, Outcome
from modelplan.formats.unpacking import inner_stem
from modelplan.model import SessionMemory
from modelplan.outputs.report import Pasted, Section, Table
from modelplan.outputs.reports.analysis_report import ample
from modelplan.outputs.reports.arena_report import beside_lines, libraries_line
from modelplan.outputs.reports.explanation_report import way_lines
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import counted, human
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.kernels.own_kernels import library_of

#: Said of a model for which there was no time to plan it otherwise.
_NO_TIME = "what would fit was not looked for in the time there was; `modelplan explain` and --seconds look longer"


def sections_of(findings: Findings) -> list[Section]:
    """All checks in one table, then each that fails, and each model that changed."""
    failed = [section_of(replace(outcome, causes=())) for outcome in findings.failed]
    return [_overview(findings), *failed, *map(_change, model_changes(findings))]


@dataclass(frozen=True, slots=True)
class ModelChange:
    """A model that differs from the baseline: one outcome for each setting, and what made it differ."""

    model: str
    outcomes: tuple[Outcome, ...]
    causes: tuple[str, ...]


def _change(change: ModelChange) -> Section:
    causes = (f"  {line}" for line in change.causes)
    return Section(f"{change.model}: changed", (*map(arena_change, change.outcomes), *causes))


def model_changes(findings: Findings) -> Iterator[ModelChange]:
    """The models that differ from the baseline, each once."""
    for key in dict.fromkeys(outcome.check.key for outcome in findings.outcomes):
        own = [o for o in findings.outcomes if o.check.key == key and (o.change or o.causes)]
        settings: dict[CheckSetting | None, Outcome] = {}
        for outcome in own:
            settings.setdefault(outcome.setting, outcome)
        causes = dict.fromkeys(cause for outcome in own for cause in outcome.causes)
        if own:
            yield ModelChange(key, tuple(settings.values()), tuple(causes))


def arena_change(outcome: Outcome) -> str:
    """The arena then and now, and for what it is."""
    before, now = outcome.earlier.figures if outcome.earlier else None, outcome.figures
    if outcome.earlier is None or outcome.setting is None or before is None or now is None:
        return "arena n/a"
    setting = f"ABI {outcome.setting.abi}, {library_of(outcome.setting.kernels)} kernels"
    return (
        f"arena {before.arena:,} -> {now.arena:,} bytes ({outcome.change:+,}) since {outcome.earlier.source}; {setting}"
    )


def headline(findings: Findings) -> str:
    """How many checks there were and how many failed.

    >>> headline(Findings("modelplan.toml", ()))
    'modelplan.toml: 0 checks, all passed'
    """
    failed = len(findings.failed)
    word = f"{failed:,} failed" if failed else "all passed"
    source = f"{findings.source}: " if findings.source else ""
    return f"{source}{counted(len(findings.outcomes), 'check')}, {word}"


def _overview(findings: Findings) -> Section:
    rows = [row for outcome in findings.outcomes for row in _rows(outcome)]
    compared = any(outcome.earlier for outcome in findings.outcomes)
    width = 6 if compared else 5
    headings = ("check", "limit", ">bytes", ">allowed", "verdict", ">arena since")[:width]
    return Section(
        headline(findings), tuple(unknown_lines(findings)), Table(headings, tuple(row[:width] for row in rows))
    )


def unknown_lines(findings: Findings, most: int = 5) -> list[str]:
    """Why growth is not known, each reason once with how many checks it holds for."""
    reasons = Counter(reason for outcome in findings.outcomes if (reason := _unknown(outcome)))
    lines = [f"growth n/a for {counted(count, 'check')}: {reason}" for reason, count in reasons.most_common(most)]
    rest = len(reasons) - most
    return [*lines, *([f"growth n/a for {counted(rest, 'other reason')}"] if rest > 0 else [])]


def _unknown(outcome: Outcome) -> str:
    """Why growth of a model cannot be computed although it was asked for; empty where it can."""
    if outcome.refusals:
        return ""
    if outcome.earlier:
        return outcome.earlier.reason
    return next((judged.reason for judged in outcome.judgements if judged.size is None), "")


def _rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    if outcome.refusals:
        yield outcome.check.name, "", "", "", "not judged" if outcome.problem else "does not run", ""
    for judged in () if outcome.refusals else outcome.judgements:
        if judged.size is not None and judged.limit is not None:
            word = "ok" if judged.passed else "too much"
            yield outcome.check.name, judged.quantity, f"{judged.size:,}", f"{judged.limit:,}", word, change_of(outcome)


def change_of(outcome: Outcome) -> str:
    """The bytes by which the arena grew since the baseline, n/a where that is not known."""
    return "n/a" if outcome.change is None else f"{outcome.change:+,}" if outcome.change else "0"


def section_of(outcome: Outcome) -> Section:
    """Required, available and excess bytes, what made the model grow, and what would fit."""
    if outcome.needed is None or outcome.problem:
        return Section(f"{outcome.check.name}: not judged", (outcome.problem,))
    if outcome.refusals:
        remedies = (f"remedy: {remedy}" for remedy in outcome.needed.remedies)
        title = f"{outcome.check.name}: does not run, and so does not fit"
        return Section(title, (*outcome.refusals, *remedies, outcome.needed.basis))
    word = "fits" if outcome.passed else "does not fit"
    lines = [f"required  {human(outcome.needed.arena)}: {outcome.needed.basis}"]
    lines += filter(None, [outcome.needed.estimate])
    if outcome.needed.session is not None:
        lines += beside_lines(outcome.needed.session)
    for judged in outcome.judgements:
        lines += _against(judged)
        if judged.quantity == "arena" and judged.limit is not None and not judged.passed:
            lines += libraries_line(outcome.needed, judged.limit)
    if not outcome.passed:
        lines += outlook(outcome)
    lines += since_lines(outcome)
    return Section(f"{outcome.check.name}: {word}", tuple(lines), commands=remedy_lines(outcome))


def _against(judged: Judgement) -> list[str]:
    """A measured quantity beside its limit, with the bytes left or missing."""
    if judged.quantity == "arena" and judged.limit is not None:
        lines = [f"available {human(judged.limit)}"]
    elif judged.size is None or judged.limit is None:
        return [f"{judged.quantity:9} n/a: {judged.reason}"]
    else:
        lines = [f"{judged.quantity:9} {human(judged.size)}, allowed {human(judged.limit)}"]
    return [*lines, f"spare     {human(-judged.excess)}" if judged.passed else f"excess    {human(judged.excess)}"]


def remedy_commands(outcome: Outcome) -> str:
    """The commands after which the model fits, in one line; empty where it fits or none is known."""
    return " && ".join(outcome.remedies[0].commands) if outcome.remedies and not outcome.passed else ""


def remedy_lines(outcome: Outcome) -> tuple[str, ...]:
    """The line with the remedy's commands, or the lines that make a session which fits; nothing without a remedy."""
    if outcome.fitting_session and not outcome.passed:
        return outcome.fitting_session.code
    commands = remedy_commands(outcome)
    if commands:
        return (f"fits after: {commands}",)
    known = outcome.ways or outcome.searches
    return (f"try: {command}",) if not known and (command := _fit_command(outcome)) else ()


def _fit_command(outcome: Outcome) -> str:
    """The command that tries rewritten files where an arena is too small; empty where there is none."""
    setting, limit = outcome.setting, outcome.check.limits.arena
    short = any(judged.quantity == "arena" and not judged.passed for judged in outcome.judgements)
    if setting is None or limit is None or not short or outcome.refusals:
        return ""
    model, stem = outcome.check.model, inner_stem(outcome.check.model)
    if setting.runtime == C.name:
        command = ["modelplan", "fit", model, "--runtime", C.name, *outcome.build, "--budget", str(limit)]
        return shlex.join([*command, "-o", f"{stem}.c"])
    if setting.runtime != TFLM.name:
        return ""
    return shlex.join(
        ["modelplan", "fit", model, *outcome.build, "--budget", str(limit), "-o", f"{stem}_fitted.tflite"]
    )


def fitting_lines(outcome: Outcome) -> list[str]:
    """The ways that fit, the least change first; that there are none where they were looked for; what was not tried."""
    looked = outcome.others and not outcome.remedies and outcome.setting and outcome.setting.runtime == TFLM.name
    lines = ["nothing tried fits; `modelplan explain` tries changes together"] if looked else []
    if outcome.ways:
        lines = ["what fits, the least change first:", *way_lines(outcome.ways)]
    for search in outcome.searches:
        lines += [f"not tried: {search.name}, a search of up to about {ample(search.seconds)}"]
        lines += [Pasted(f"  {search.command}")]
    return lines


def outlook(outcome: Outcome) -> list[str]:
    """The changes that would fit, or how far the best is from fitting."""
    return [*_order_or_plan(outcome), *fitting_lines(outcome)]


def _order_or_plan(outcome: Outcome) -> list[str]:
    """What other settings, the best order or a plan do."""
    if outcome.needed is not None and outcome.needed.session is not None:
        return session_outlook(outcome, outcome.needed.session)
    if outcome.remedies and outcome.remedies[0].requirement is not None:
        return [f"{outcome.remedies[0].change}: {human(outcome.remedies[0].requirement.arena)}"]
    if outcome.others is None:
        return [_NO_TIME]
    if outcome.needed is None or not outcome.others:
        return []
    lower = lower_alternatives(outcome.needed, outcome.others)
    if not lower or lower[-1].requirement is None:
        # Plain C, whose rows no order or plan changes.
        plain_c = outcome.setting is not None and outcome.setting.runtime == C.name
        return [] if plain_c else ["no other order of its operators and no other plan needs less"]
    best = lower[-1].requirement
    shortfalls = outcome.shortfalls(lower[-1])
    missing = [f"{quantity} still {human(size)} too much" for quantity, size in shortfalls if size > 0]
    least = f"{lower[-1].change}: {human(best.arena)}, {', '.join(missing)}"
    return [least]


def session_outlook(outcome: Outcome, session: SessionMemory) -> list[str]:
    """The settings with which the session fits, or the least that settings do."""
    fitting = outcome.fitting_session
    if fitting is not None:
        return [f"fits with other settings of the session: {fitting.settings}: {human(fitting.most)}"]
    if not session.others:
        return ["no settings of the session need less"]
    least = session.others[0]
    more = "`modelplan fit` rewrites the file, `--least` as far as that goes"
    return [f"the least by settings alone: {least.settings}: {human(least.most)}; nothing tried fits", more]


def since_lines(outcome: Outcome) -> list[str]:
    """How the arena changed since the baseline, and what made it; nothing without a baseline."""
    if outcome.earlier is None:
        return []
    if outcome.change is None or outcome.earlier.figures is None:
        return [f"since     n/a: {outcome.earlier.reason}"]
    if not outcome.change and not outcome.causes:
        return [f"since     {outcome.earlier.source}: the same arena"]
    before = outcome.earlier.figures.arena
    grown = f"{human(before)} then, {outcome.change:+,} bytes"
    return [f"since     {outcome.earlier.source}: {grown}", *(f"  {line}" for line in outcome.causes)]
