"""Writes the budgets of a project, or a baseline of what its models need now.

`budgets` puts into each budget that states bytes what its models need now and the headroom; a MODEL without a budget
gets one, in modelplan.toml where there is no file yet. `baseline` writes the figures that `check --baseline FILE`
compares with. `modelplan check` judges the budgets.
"""

import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

from modelplan.answers.check_outcomes import Check, Limits, Outcome
from modelplan.cli import files, model_options, terminal
from modelplan.formats.whole_files import read_text
from modelplan.outputs.report import Section
from modelplan.primitives.errors import ModelError, RefusedModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import counted, human
from modelplan.questions.budgets.budget_checks import OPTIONS, ModelCheck, budget_file, from_file, outcome, row_checks
from modelplan.questions.budgets.budget_edits import with_budget, with_number
from modelplan.questions.budgets.earlier_figures import baseline_document
from modelplan.questions.budgets.model_sizes import Measurements
from modelplan.questions.budgets.project_budgets import (
    BudgetFile,
    BudgetRow,
    found_upwards,
    matched,
    read_budgets,
)
from modelplan.questions.budgets.project_defaults import OWN, SHARED
from modelplan.questions.model_request import ModelRequest

_QUANTITIES = ("arena", "head", "flash")


def configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="budgets|baseline", required=True)
    setting = actions.add_parser("budgets", aliases=["set"], help="write what models need now, and the headroom")
    setting.add_argument("models", metavar="MODEL", nargs="*", help="only the budgets of these; none: all budgets")
    setting.add_argument("--headroom", metavar="SHARE", default="0%", help="what is added, such as 25%% (default: 0%%)")
    model_options.add_feeds(model_options.add_runtime(setting, "of a new budget"))
    model_options.add_abi(setting, default=None)
    model_options.add_target(setting)
    baseline = actions.add_parser("baseline", help="write what all models with budgets need now")
    baseline.add_argument("-o", "--output", metavar="FILE", required=True, help="a .json file; - for standard output")
    for action in (setting, baseline):
        action.add_argument("--config", metavar="FILE", help="the file with the budgets, in place of the nearest")


def run(arguments: Namespace) -> int:
    return write_baseline(arguments) if arguments.action == "baseline" else set_budgets(arguments)


def write_baseline(arguments: Namespace) -> int:
    """Writes the baseline of all models that their runtimes would run."""
    if arguments.output != "-" and not arguments.output.endswith(".json"):
        raise RequestError(f"-o {arguments.output}: a baseline is told from a git revision by its suffix, .json")
    file = budget_file(arguments.config)
    asked = from_file(file)
    files.check_outputs([arguments.output], [str(file.path), *(model_check.check.model for model_check in asked)])
    measurements = Measurements()
    outcomes = [outcome(model_check, measurements, None) for model_check in asked]
    for model_outcome in outcomes:
        if model_outcome.needed is None:
            raise ModelError(model_outcome.problem)
    files.write(arguments.output, baseline_document(outcomes))
    if arguments.output != "-":
        refused = [f"left out, since it does not run: {o.check.name}" for o in outcomes if o.refusals]
        sizes = len({(o.check.key, o.setting) for o in outcomes if o.figures})
        lines = (f"{counted(sizes, 'figure')} of {counted(len({o.check.key for o in outcomes}), 'model')}", *refused)
        terminal.show([Section(arguments.output, lines)])
    return 0


def set_budgets(arguments: Namespace) -> int:
    """Writes what the models need into their budgets, and new budgets for those that have none."""
    share = headroom(arguments.headroom)
    arguments.models = files.models_of(arguments.models)
    file = project_file(arguments)
    edit = BudgetEdit(read_text(file.path) if file.path.exists() else "", file, share)
    named = {Path(path).resolve() for path in arguments.models}
    known: set[Path] = set()
    for number, row in enumerate(file.rows, 1):
        own = {path.resolve() for path, _ in matched(file, row)}
        known |= own
        if not named or named & own:
            edit = with_row(edit, number, row)
    new = [path for path in arguments.models if Path(path).resolve() not in known]
    given = [name for name in OPTIONS if getattr(arguments, name)]
    if given and not new:
        raise RequestError(f"--{given[0].replace('_', '-')} is for a MODEL without a budget, of which none is named")
    for path in new:
        edit = with_model(edit, path, arguments)
    files.write(str(file.path), edit.text)
    terminal.show([Section(str(file.path), edit.lines or ("no budget states bytes; nothing to set",))])
    return 0


@dataclass(frozen=True, slots=True)
class BudgetEdit:
    """The text of a file with budgets as edited so far, the share of headroom, and a line for each edit."""

    text: str
    file: BudgetFile
    share: Fraction
    lines: tuple[str, ...] = ()


def headroom(text: str) -> Fraction:
    """The share that is added to what a model needs.

    Raises:
        RequestError: it is no share in percent.
    """
    match = re.fullmatch(r"\s*(\d{1,6}(?:\.\d{1,6})?)\s*%\s*", text)
    if not match:
        raise RequestError(f"--headroom {text}: expected a share such as 25%")
    return Fraction(match[1]) / 100


def project_file(arguments: Namespace) -> BudgetFile:
    """The file with budgets; for models that are named a new modelplan.toml where there is none."""
    try:
        path = Path(arguments.config) if arguments.config else Path(os.path.relpath(found_upwards(Path.cwd())))
    except RequestError as problem:
        if not arguments.models:
            raise RequestError(f"{problem}; name models to begin one: check --write budgets MODEL...") from None
        return BudgetFile(Path(OWN), ())
    if not path.exists() and arguments.models and path.name != SHARED:
        return BudgetFile(path, ())
    return read_budgets(path, may_be_empty=bool(arguments.models))


def with_row(edit: BudgetEdit, number: int, row: BudgetRow) -> BudgetEdit:
    """The edit with the numbers of one budget set to the most that its models need."""
    outcomes = sized(list(row_checks(edit.file, row)))
    place = row.place.removeprefix(f"{edit.file.path}: ")
    stated = [key for key in _QUANTITIES if getattr(row.limits, key) is not None]
    if not stated:
        return replace(edit, lines=(*edit.lines, f"{place}: states no bytes; left as it is"))
    for key in stated:
        needed = most(outcomes, key)
        value = with_headroom(needed, edit.share)
        line = f"{place}: {key} {human(getattr(row.limits, key))} -> {human(value)}, needed {human(needed)}"
        text = with_number(edit.text, edit.file.prefix, number, key, written(value))
        edit = replace(edit, text=text, lines=(*edit.lines, line))
    return edit


def with_model(edit: BudgetEdit, path: str, arguments: Namespace) -> BudgetEdit:
    """The edit with a budget for a model that has none."""
    folder = edit.file.path.parent
    key = Path(os.path.relpath(path, folder)).as_posix()
    options = {name: getattr(arguments, name) for name in OPTIONS if getattr(arguments, name)}
    target = arguments.target or ""
    in_files = target.startswith("from:") or target.partition("#")[0].endswith(".toml") or arguments.used
    if folder.resolve() != Path.cwd() and (in_files or arguments.include or arguments.feeds):
        raise RequestError(f"files of a target and of inputs are relative to {edit.file.path}; run this in its folder")
    check = Check(path, path, key, Limits(), target)
    request = model_options.request_of(ModelRequest, arguments, path, model_options.chosen_target(arguments))
    needed = most(sized([ModelCheck(check, request)]), "arena")
    value = with_headroom(needed, edit.share)
    row = {"model": key, "arena": written(value)} | {name.replace("_", "-"): choice for name, choice in options.items()}
    line = f"{key}: arena {human(value)}, needed {human(needed)}"
    return replace(edit, text=with_budget(edit.text, edit.file.prefix, row), lines=(*edit.lines, line))


def sized(asked: Sequence[ModelCheck]) -> list[Outcome]:
    """What the models need; the first that has no figure is an error."""
    measurements = Measurements()
    outcomes = [outcome(model_check, measurements, None) for model_check in asked]
    for model_outcome in outcomes:
        if model_outcome.refusals:
            if model_outcome.needed is None:
                raise ModelError(model_outcome.refusals[0])
            what = f"{model_outcome.check.name} does not run"
            raise RefusedModelError(what, model_outcome.refusals, model_outcome.needed.remedies)
    return outcomes


def most(outcomes: Sequence[Outcome], quantity: str) -> int:
    """The most bytes of a quantity that one of the models needs."""
    sizes: list[int] = [getattr(model_outcome.figures, quantity) for model_outcome in outcomes]
    return max(sizes)


def with_headroom(size: int, share: Fraction) -> int:
    """The bytes with a share added, rounded up.

    >>> with_headroom(22768, Fraction(1, 4))
    28460
    """
    return ceil(size * (1 + share))


def written(size: int) -> str:
    """The bytes with their unit, as `parse_bytes` reads them.

    >>> written(65536), written(28460)
    ('64KiB', '28460B')
    """
    return f"{size // 1024}KiB" if size and size % 1024 == 0 else f"{size}B"
