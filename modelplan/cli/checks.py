"""From the command line or a file with budgets to checks, and from a check to its outcome."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.answers.check_outcomes import Check, Outcome
from modelplan.cli import model_options
from modelplan.formats.files import read_text
from modelplan.primitives.errors import ModelError, ModelPlanError, RequestError
from modelplan.questions.budgets.baselines import Baseline, compared
from modelplan.questions.budgets.judging import judgements
from modelplan.questions.budgets.measuring import Measurements, setting_of
from modelplan.questions.budgets.project_budgets import (
    ONE_TEXT,
    TEXTS,
    BudgetFile,
    Row,
    found_upwards,
    matched,
    read_budgets,
)
from modelplan.questions.budgets.revisions import revision
from modelplan.questions.budgets.saved_figures import read_baseline

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen

#: What a budget may state beside its limits, as the options of `check` name it in their arguments.
OPTIONS = tuple(key.replace("-", "_") for key in ("target", *ONE_TEXT, *TEXTS))


@dataclass(frozen=True, slots=True)
class Asked:
    """A check with the options that its model is sized by; `place` is where a file states it, empty for none."""

    check: Check
    options: Namespace
    chosen: Chosen | None
    place: str = ""


def budget_file(config: str | None) -> BudgetFile:
    """The file with budgets that is named, else the one found upwards from the working directory."""
    path = Path(config) if config else Path(os.path.relpath(found_upwards(Path.cwd())))
    return read_budgets(path)


def from_file(file: BudgetFile) -> list[Asked]:
    """The checks of a file with budgets, each model with each target.

    Raises:
        RequestError: a budget that cannot be understood, or two checks of one name; names the places.
        ModelError: a file that describes a target cannot be read.
    """
    found = [asked for row in file.rows for asked in row_checks(file, row)]
    places: dict[str, str] = {}
    for asked in found:
        name = asked.check.name
        if name in places:
            raise RequestError(f"{asked.place}: another check is called {name!r}, of {places[name]}; state a name")
        places[name] = asked.place
    return found


def row_checks(file: BudgetFile, row: Row) -> Iterator[Asked]:
    """The checks of one budget: each model with each target."""
    models = list(matched(file, row))
    for target in row.targets or (None,):
        options = _options(row, target, file.path.parent)
        with _located(row.place):
            chosen = model_options.chosen_target(options)
        arena = row.limits.arena if row.limits.arena is not None or chosen is None else chosen.budget
        for path, key in models:
            name = _name(row, key, target, len(models))
            check = Check(name, str(path), key, replace(row.limits, arena=arena), target or "")
            yield Asked(check, options, chosen, row.place)


def _name(row: Row, key: str, target: str | None, models: int) -> str:
    """What a check is called: by its budget's name, the model where there are several, and the target likewise."""
    name = f"{row.name}: {key}" if row.name and models > 1 else row.name or key
    return f"{name} on {target}" if target and (not row.name or len(row.targets) > 1) else name


def _options(row: Row, target: str | None, folder: Path) -> Namespace:
    """The options of a budget as `check` has them; files are relative to the folder of the file with budgets."""
    found = row.options
    lists = {key: list(found.get(key, ())) for key in TEXTS}
    lists["include"] = [str(folder / one) for one in lists["include"]]
    single = {key.replace("-", "_"): next(iter(found.get(key, ())), None) for key in ONE_TEXT}
    if single["used"] is not None:
        single["used"] = str(folder / single["used"])
    return Namespace(**lists, **single, target=None if target is None else _target_path(target, folder))


def _target_path(target: str, folder: Path) -> str:
    """The target with its file, where it has one, relative to the working directory."""
    head, colon, path = target.rpartition("from:")
    if not head and colon:
        return f"from:{folder / path}"
    return str(folder / target) if target.partition("#")[0].endswith(".toml") else target


@contextmanager
def _located(place: str) -> Iterator[None]:
    """Puts the place of a budget in front of what is wrong with it."""
    try:
        yield
    except ModelPlanError as problem:
        raise type(problem)(f"{place}: {problem}" if place else str(problem)) from None


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
        raise RequestError(f"--baseline: cannot read {problem}; `modelplan budget baseline` writes one") from None


def outcome(asked: Asked, measurements: Measurements, baseline: Baseline | None) -> Outcome:
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


def _sized(asked: Asked, measurements: Measurements, baseline: Baseline | None) -> Outcome:
    """The outcome for a model that can be read; alternatives are planned where it needs too much and could run."""
    check, options = asked.check, asked.options
    bound = tuple(options.dim), tuple(options.shape)
    file = measurements.file(check.model, *bound)
    target = model_options.target_of(model_options.on_target(options, asked.chosen, file.graph), file.graph)
    needed = measurements.needed(file, target)
    found = Outcome(check, needed, len(file.content), setting_of(target, *bound))
    figures = found.figures
    if figures is None:
        return replace(found, exit_code=1)
    if baseline is not None:
        earlier, causes = compared(baseline, check.key, file, target, bound, measurements)
        found = replace(found, earlier=earlier, causes=causes)
    found = replace(found, judgements=tuple(judgements(check.limits, figures, found.earlier)))
    if found.passed:
        return found
    short = any(not one.passed for one in found.judgements if one.quantity != "flash")
    return replace(found, exit_code=1, others=measurements.others(file, target) if short else ())
