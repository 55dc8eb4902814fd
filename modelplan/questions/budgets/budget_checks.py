"""`check`: whether models keep their budgets: those that are named, or those that a project's file states.

What a model needs is judged against its limits and a baseline: saved figures, or the model of a git revision.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.answers.check_outcomes import Check, Earlier, Figures, Findings, Judgement, Limits, Outcome, Quantity
from modelplan.formats.whole_files import read_text
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.errors import ModelError, ModelPlanError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest
from modelplan.primitives.units import human
from modelplan.questions.alternatives import given_words
from modelplan.questions.budgets.earlier_figures import Revision, SavedFigures, read_baseline, revision
from modelplan.questions.budgets.model_sizes import Measurements, setting_of
from modelplan.questions.budgets.project_budgets import (
    ONE_TEXT,
    TEXTS,
    BudgetFile,
    BudgetRow,
    found_upwards,
    matched,
    read_budgets,
)
from modelplan.questions.model_request import ModelRequest, SessionAsked, on_target, target_of
from modelplan.questions.session_needs import (
    begin_measuring,
    has_sessions,
    require_host,
    session_asked,
    with_fed_shapes,
    with_other_settings,
)
from modelplan.questions.target_request import TargetRequest, choose_target

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen

#: What a budget may state beside its limits, as the options of `check` name it in their arguments.
OPTIONS = tuple(key.replace("-", "_") for key in ("target", *ONE_TEXT, *TEXTS))


@dataclass(frozen=True, slots=True)
class CheckRequest(SettledRequest):
    """Asks whether models keep their limits.

    Args:
        models: the models, each with what it is sized for; none: the budgets of the project.
        limits: of models that are named.
        target: what the device of these models is called; empty: as its record says.
        config: the file with the project's budgets; None: the nearest upwards from the working directory.
        baseline: what to compare with: a .json file of `modelplan check --write baseline`, or a git revision.
        seconds: for what would fit in place of models that need too much; None: no limit.
    """

    models: tuple[ModelRequest, ...] = ()
    limits: Limits = field(default_factory=Limits)
    target: str = ""
    config: str | None = None
    baseline: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """A check with what its model is sized for; `place` is where a file states it, empty for none."""

    check: Check
    request: ModelRequest
    place: str = ""


def check_budgets(request: CheckRequest) -> Findings:
    """Whether models keep their limits on their runtimes, and what would need less where one does not.

    Args:
        request: the models with their limits, or the file with the project's budgets.

    Returns:
        One outcome for each check; a model that cannot be read is an outcome too.

    Raises:
        RequestError: a budget that cannot be understood, or that asks for what there is not.
    """
    source, outcomes = _start(request)
    return Findings(source, tuple(outcomes))


def outcomes_of(request: CheckRequest) -> Iterator[Outcome]:
    """The outcomes one by one, each as soon as it is known; what cannot be understood is refused at once."""
    return _start(request)[1]


def _start(request: CheckRequest) -> tuple[str, Iterator[Outcome]]:
    """The file with the budgets, empty for models that are named, and the outcomes one by one."""
    if request.models:
        source, checks, baseline = "", list(_named(request)), baseline_of(request.baseline, Path())
    else:
        file = budget_file(request.config)
        source, folder = str(file.path), file.path.parent
        stored = file.baseline if not file.baseline.endswith(".json") else str(folder / file.baseline)
        baseline, checks = baseline_of(request.baseline or stored or None, folder), from_file(file)
    measurements = Measurements(request.seconds)
    return source, (outcome(check, measurements, baseline) for check in checks)


def _named(request: CheckRequest) -> Iterator[ModelCheck]:
    for model in request.models:
        key = Path(os.path.relpath(model.path)).as_posix()
        target = request.target or (model.target.device.name if model.target else "")
        yield ModelCheck(Check(model.path, model.path, key, request.limits, target), model)


def budget_file(config: str | None) -> BudgetFile:
    """The file with budgets that is named, else the one found upwards from the working directory."""
    path = Path(config) if config else Path(os.path.relpath(found_upwards(Path.cwd())))
    return read_budgets(path)


def from_file(file: BudgetFile) -> list[ModelCheck]:
    """The checks of a file with budgets, each model with each target.

    Raises:
        RequestError: a budget that cannot be understood, or two checks of one name; names the places.
        ModelError: a file that describes a target cannot be read.
    """
    checks = [asked for row in file.rows for asked in row_checks(file, row)]
    places: dict[str, str] = {}
    for asked in checks:
        name = asked.check.name
        if name in places:
            raise RequestError(f"{asked.place}: another check is called {name!r}, of {places[name]}; state a name")
        places[name] = asked.place
    return checks


def row_checks(file: BudgetFile, row: BudgetRow) -> Iterator[ModelCheck]:
    """The checks of one budget: each model with each target."""
    models = list(matched(file, row))
    for target in row.targets or (None,):
        try:
            chosen = choose_target(_target_request(row, target, file.path.parent))
        except ModelPlanError as problem:
            raise type(problem)(f"{row.place}: {problem}") from None
        arena = row.limits.arena if row.limits.arena is not None or chosen is None else chosen.known_budget
        for path, key in models:
            name = _name(row, key, target, len(models))
            check = Check(name, str(path), key, replace(row.limits, arena=arena), target or "")
            yield ModelCheck(check, _model_request(row, str(path), key, chosen, file.path.parent), row.place)


def _name(row: BudgetRow, key: str, target: str | None, models: int) -> str:
    """What a check is called: by its budget's name, the model where there are several, and the target likewise."""
    name = f"{row.name}: {key}" if row.name and models > 1 else row.name or key
    return f"{name} on {target}" if target and (not row.name or len(row.targets) > 1) else name


def _target_request(row: BudgetRow, target: str | None, folder: Path) -> TargetRequest:
    """The target of a budget; files are relative to the folder of the file with budgets."""
    used = _one(row, "used")
    return TargetRequest(
        None if target is None else _target_path(target, folder),
        row.options.get("reserve", ()),
        None if used is None else str(folder / used),
        _one(row, "arena-symbol"),
        row.options.get("define", ()),
        tuple(str(folder / path) for path in row.options.get("include", ())),
    )


def _model_request(row: BudgetRow, path: str, key: str, target: Chosen | None, folder: Path) -> ModelRequest:
    """A model of a budget, called `key` there, with what it is sized for; files are relative to `folder`."""
    options, feeds = row.options_of(key), _one(row, "feeds")
    return ModelRequest(
        path,
        options.get("dim", ()),
        options.get("shape", ()),
        values=options.get("value", ()),
        runtime=_one(row, "runtime"),
        kernels=_one(row, "kernels"),
        abi=_one(row, "abi"),
        feeds=None if feeds is None else str(folder / feeds),
        target=target,
    )


def _one(row: BudgetRow, option: str) -> str | None:
    """The value of an option that may be stated only once."""
    return next(iter(row.options.get(option, ())), None)


def _target_path(target: str, folder: Path) -> str:
    """The target with its file, where it has one, relative to the working directory."""
    head, colon, path = target.rpartition("from:")
    if not head and colon:
        return f"from:{folder / path}"
    return str(folder / target) if target.partition("#")[0].endswith(".toml") else target


def baseline_of(text: str | None, folder: Path) -> Baseline | None:
    """What `--baseline` names: a file that ends in .json, else a revision of the repository that holds `folder`.

    Raises:
        RequestError: there is no such file or revision.
    """
    if text is None:
        return None
    if not text.endswith(".json"):
        return revision(text, folder)
    try:
        return read_baseline(read_text(text), text)
    except ModelError as problem:
        raise RequestError(f"--baseline: cannot read {problem}; `check --write baseline` writes one") from None


def outcome(asked: ModelCheck, measurements: Measurements, baseline: Baseline | None) -> Outcome:
    """What a check finds out; a model that cannot be read is an outcome too.

    Raises:
        RequestError: a budget in a file asks for what there is not.
    """
    try:
        return _sized(asked, measurements, baseline)
    except ModelPlanError as problem:
        if isinstance(problem, RequestError) and asked.place:
            raise RequestError(f"{asked.place}: {problem}") from None
        return Outcome(asked.check, problem=str(problem), exit_code=problem.exit_code)


def _sized(asked: ModelCheck, measurements: Measurements, baseline: Baseline | None) -> Outcome:
    """The outcome for a model that can be read; alternatives are planned where it needs too much and could run."""
    asked = replace(asked, request=with_fed_shapes(asked.request))
    check, bound, session = asked.check, (asked.request.dims, asked.request.shapes), session_asked(asked.request)
    begin_measuring(asked.request)
    file = measurements.file(check.model, *bound, asked.request.values)
    runs_on = replace(target_of(on_target(asked.request, file), file.graph), given=given_words(asked.request))
    if asked.request.target:
        require_host(file, runs_on, asked.request.target.device.name, asked.request.target.device.abi)
    needed = measurements.requirement(file, runs_on, session)
    if has_sessions(file, runs_on) and needed.session is None and not needed.refusals:
        return Outcome(check, problem=f"{check.model}: {needed.basis}", exit_code=1)
    judged = Outcome(check, needed, len(file.content), setting_of(runs_on, *bound), build=runs_on.build)
    figures = judged.figures
    if figures is None:
        return replace(judged, exit_code=1)
    if needed.guessed:
        return replace(judged, exit_code=1, problem=f"{check.model}: not known to fit: {needed.estimate}")
    target = asked.request.target
    if target is not None and target.block is None and check.limits.arena is None:
        return replace(
            judged, exit_code=2, problem=f"needs {human(figures.arena)} ({needed.basis}); {target.not_known}"
        )
    if baseline is not None:
        earlier, causes = compared(baseline, check.key, file, runs_on, bound, measurements, session)
        judged = replace(judged, earlier=earlier, causes=causes)
    judged = replace(judged, judgements=tuple(judgements(check.limits, figures, judged.earlier)))
    if judged.passed:
        return judged
    short = any(not judgement.passed for judgement in judged.judgements if judgement.quantity != "flash")
    short = short and not needed.measured  # of other forms the plan alone is known
    judged = replace(judged, needed=with_other_settings(file, runs_on, needed, session) if short else needed)
    judged = replace(judged, exit_code=1, others=measurements.others(file, runs_on) if short else ())
    ways, searches = measurements.ways(file, runs_on, needed, check.limits.arena)
    return replace(judged, ways=ways, searches=searches)


Baseline = SavedFigures | Revision
#: Extents and shapes that are bound.
Bound = tuple[tuple[str, ...], tuple[str, ...]]
#: Said where growth is limited and nobody told what to compare with.
NO_BASELINE = "no baseline is given; --baseline FILE.json or a git revision names one"


def judgements(limits: Limits, figures: Figures, earlier: Earlier | None) -> Iterator[Judgement]:
    """Each limit with what was measured. Growth without an earlier figure cannot be judged, and says why."""
    quantities: tuple[Quantity, ...] = ("arena", "head", "flash")
    for quantity in quantities:
        if getattr(limits, quantity) is not None:
            yield Judgement(quantity, getattr(figures, quantity), getattr(limits, quantity))
    if limits.growth is not None:
        before = earlier.figures if earlier else None
        if before is None:
            yield Judgement("growth", None, None, earlier.reason if earlier else NO_BASELINE)
        else:
            yield Judgement("growth", figures.arena - before.arena, limits.growth.allowed(before.arena))


def compared(
    baseline: Baseline,
    key: str,
    file: ModelFile,
    target: Target,
    bound: Bound,
    measurements: Measurements,
    asked: SessionAsked,
) -> tuple[Earlier, tuple[str, ...]]:
    """What the model called `key` needed, and in one line each what made it need more or less since.

    `bound` are the extents and shapes that were bound for the file, `asked` how a session of it is sized.
    """
    if isinstance(baseline, SavedFigures):
        return baseline.earlier(key, setting_of(target, *bound)), ()
    old = measurements.earlier_file(baseline, key, *bound)
    if isinstance(old, str):
        return Earlier(baseline.name, None, old), ()
    try:
        needed = measurements.requirement(old, target, asked)
    except ModelPlanError as problem:
        return Earlier(baseline.name, None, str(problem)), ()
    if needed.refusals:
        return Earlier(baseline.name, None, f"{old.path} does not run: {needed.refusals[0]}"), ()
    earlier = Earlier(baseline.name, Figures(needed.arena, needed.head, len(old.content)))
    return earlier, measurements.causes(old, file, target, asked)
