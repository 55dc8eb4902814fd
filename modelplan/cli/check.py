"""Checks whether unmodified models keep their budgets on their runtimes: exit 0 when all do, 1 when one does not.

For TensorFlow Lite Micro the whole arena counts: with exactly the budget the model allocates and runs there, or it does
not. A model that its runtime would refuse fits no budget. Beside a model that does not fit stands what an
order or a plan, as `fit --only` writes them, would make of it.

Without MODEL the budgets of the project are checked: [[budget]] in modelplan.toml or [[tool.modelplan.budget]] in
pyproject.toml, of the working directory or the nearest folder above. docs/budgets.md has their keys.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.cli import files, model_options, terminal
from modelplan.model import Alternative
from modelplan.outputs import names_of, render
from modelplan.outputs.checks import SCHEMA
from modelplan.outputs.report import Section, printable
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import human, parse_memory

if TYPE_CHECKING:
    from modelplan.answers.check_outcomes import Findings, Outcome
    from modelplan.questions.budgets.budget_checks import CheckRequest
    from modelplan.targets.choosing import Chosen

#: Seconds for what would make models fit that need too much, where a file states the budgets.
_SECONDS = 2.0
#: Options that say what a layout of --layout says already.
_STATED_BY_LAYOUT = (
    "budget", "config", "baseline", "format", "seconds", "runtime", "kernels", "abi", "target", "reserve", "used",
    "arena_symbol", "define", "include", "measure", "threads", "feeds",
)  # fmt: skip


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "models", metavar="MODEL", nargs="*", help="a .tflite or .onnx file; none: the project's budgets"
    )
    _add_limits(parser)
    parser.add_argument("--config", metavar="FILE", help="the file with the budgets, in place of the nearest")
    parser.add_argument(
        "--baseline",
        metavar="FILE|REVISION",
        help="what to compare with: a .json file of `modelplan check --write baseline`, or a git revision such as main",
    )
    model_options.add_repeated(
        parser,
        "--format",
        "NAME[=FILE]",
        f"{', '.join(names_of('Findings'))}: to standard output, or into FILE; may be repeated (default: text)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help=f"for what would fit in place of models that need too much (default: {_SECONDS:g} for a file with budgets,"
        " else no limit)",
    )
    model_options.add_runtime(parser)
    model_options.add_abi(parser, default=None)
    model_options.add_target(parser)
    model_options.add_session(parser)
    parser.add_argument("--json", metavar="FILE", help="the verdicts as one JSON object; - for standard output")


def _add_limits(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--budget",
        "--capacity",
        metavar="BYTES",
        help="such as 64KiB or 1MiB (default: the largest block of the target)",
    )
    parser.add_argument(
        "--growth",
        metavar="LIMIT",
        help="by how much the arena may grow since the baseline: bytes, or a share such as 5%%",
    )
    parser.add_argument(
        "--layout",
        metavar="FILE",
        help="a layout of `memories --json`, with --spill too: does MODEL still fit its memories, in no more time and"
        " traffic (--growth 5%% allows more)",
    )


def run(arguments: Namespace) -> int:
    outputs = requested_formats(arguments)
    arguments.models = files.models_of(arguments.models)
    files.check_outputs([arguments.json, *outputs.values()], arguments.models)
    if arguments.seconds is not None and not 0 <= arguments.seconds < float("inf"):
        raise RequestError(f"--seconds is {arguments.seconds:g}, expected 0 or more")
    if arguments.layout is not None:
        return check_saved_layout(arguments)
    return check_models(arguments, outputs) if arguments.models else check_project(arguments, outputs)


def requested_formats(arguments: Namespace) -> dict[str, str]:
    """The formats that are asked for, each with the file that it goes to, `-` for standard output."""
    formats: dict[str, str] = {}
    for text in arguments.format:
        name, _, path = text.partition("=")
        if name not in names_of("Findings"):
            raise RequestError(f"--format {name}: no such format; there are: {', '.join(names_of('Findings'))}")
        formats[name] = path or "-"
    places = [*formats.values(), *([arguments.json] if arguments.json else [])]
    if len(set(places)) < len(places):
        raise RequestError("--format: two outputs go to one place; write one as NAME=FILE")
    return formats if "-" in places else {"text": "-"} | formats


def check_saved_layout(arguments: Namespace) -> int:
    """Checks models against a saved layout, which states what they are planned for."""
    from modelplan.outputs.reports import region_report
    from modelplan.questions.memories.rechecking import LayoutRequest, check_layout

    given = [name.replace("_", "-") for name in _STATED_BY_LAYOUT if getattr(arguments, name)]
    if given:
        raise RequestError(f"--{given[0]}: --layout {arguments.layout} states what models are planned for")
    bound = tuple(arguments.dim), tuple(arguments.shape), tuple(arguments.value)
    models, growth = tuple(arguments.models), arguments.growth or "0%"
    check = check_layout(LayoutRequest(arguments.layout, models, growth, *bound))
    if arguments.json:
        files.write(arguments.json, region_report.check_json(check, SCHEMA))
    if arguments.json != "-":
        terminal.show([region_report.section_of(model, check.layout) for model in check.models])
    return 0 if check.passed else 1


def check_project(arguments: Namespace, outputs: dict[str, str]) -> int:
    """Checks the budgets of a file."""
    from modelplan.questions.budgets.budget_checks import OPTIONS, CheckRequest, check_budgets

    given = [name for name in ("budget", "growth", "measure", "threads", *OPTIONS) if getattr(arguments, name)]
    if given:
        option = f"--{given[0].replace('_', '-')}"
        raise RequestError(f"{option} is for a MODEL that is named; without one the file with the budgets states it")
    seconds = _SECONDS if arguments.seconds is None else arguments.seconds
    findings = check_budgets(CheckRequest(config=arguments.config, baseline=arguments.baseline, seconds=seconds))
    write_formats(replace(findings, folder=folder_in_workspace()), outputs)
    if arguments.json:
        document = {
            "schema": SCHEMA,
            "budgets": findings.source,
            "models": [{"name": outcome.check.name} | as_json(outcome) for outcome in findings.outcomes],
        }
        files.write(arguments.json, json.dumps(document, indent=1) + "\n")
    return max(outcome.exit_code for outcome in findings.outcomes)


def check_models(arguments: Namespace, outputs: dict[str, str]) -> int:
    """Checks the models that are named, each against the same budget; text is shown model by model."""
    from modelplan.answers.check_outcomes import Findings
    from modelplan.questions.budgets.budget_checks import outcomes_of

    if arguments.config:
        raise RequestError("--config names a file with budgets, which state their models; name no MODEL beside it")
    chosen = model_options.chosen_target(arguments)
    request = named_models(arguments, chosen)
    outcomes = outcomes_of(request)
    shows = outputs.get("text") == "-"
    if chosen and shows:
        terminal.show([Section("", tuple(available(arguments.budget, chosen)))])
    reported_outcomes = [shown(outcome, shows=shows) for outcome in outcomes]
    unseen = {name: path for name, path in outputs.items() if not (shows and name == "text")}
    write_formats(Findings("", tuple(reported_outcomes), folder_in_workspace()), unseen)
    sized = [outcome for outcome in reported_outcomes if outcome.needed is not None]
    if arguments.json and (sized or len(reported_outcomes) > 1):
        facts = {"budget": request.limits.arena, **model_options.target_facts(chosen)}
        document = {"schema": SCHEMA, **facts, "models": [as_json(outcome) for outcome in sized]}
        files.write(arguments.json, json.dumps(document, indent=1) + "\n")
    return max(outcome.exit_code for outcome in reported_outcomes)


def named_models(arguments: Namespace, chosen: Chosen | None) -> CheckRequest:
    """The checks of the models on the command line."""
    from modelplan.answers.check_outcomes import Limits
    from modelplan.questions.budgets.budget_checks import CheckRequest
    from modelplan.questions.budgets.project_budgets import parse_growth
    from modelplan.questions.model_request import ModelRequest

    growth = None if arguments.growth is None else parse_growth(arguments.growth)
    return CheckRequest(
        tuple(model_options.request_of(ModelRequest, arguments, path, chosen) for path in arguments.models),
        Limits(budget_of(arguments.budget, chosen), growth=growth),
        arguments.target or "",
        baseline=arguments.baseline,
        seconds=arguments.seconds,
    )


def shown(outcome: Outcome, *, shows: bool) -> Outcome:
    """The outcome, which is printed where `shows` says so; what cannot be read is told on standard error."""
    from modelplan.outputs.checks.check_report import section_of

    if outcome.needed is None:
        sys.stdout.flush()
        sys.stderr.write(f"modelplan: {printable(outcome.problem)}\n")
    elif shows:
        terminal.show([section_of(outcome)])
    return outcome


def folder_in_workspace() -> str:
    """The working directory relative to the checkout of a GitHub workflow; empty elsewhere."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    inside = workspace and Path.cwd().is_relative_to(Path(workspace).resolve())
    return Path(os.path.relpath(Path.cwd(), Path(workspace).resolve())).as_posix() if workspace and inside else ""


def write_formats(findings: Findings, outputs: dict[str, str]) -> None:
    """Writes each format to its place; text on a terminal has its colours."""
    from modelplan.outputs.checks.check_report import sections_of

    for name, path in outputs.items():
        if (name, path) == ("text", "-"):
            terminal.show(sections_of(findings))
        else:
            files.write(path, render(findings, name))


def budget_of(text: str | None, chosen: Chosen | None) -> int | None:
    """The bytes that --budget states, else those of the target's block; None where they are not known."""
    if text is not None:
        return parse_memory(text)
    if chosen is None:
        raise RequestError("--budget BYTES or --target NAME has to say how much memory there is")
    return chosen.known_budget


def available(text: str | None, chosen: Chosen) -> list[str]:
    """Which block of the target counts, and that a budget in bytes is taken in its place."""
    place = ", in place of the block" if chosen.block else ""
    stated = [f"budget    {human(parse_memory(text))} as --budget says{place}"] if text else []
    return [*model_options.target_lines(chosen), *stated]


def as_json(outcome: Outcome) -> dict[str, object]:
    """The outcome as an object."""
    from modelplan.outputs.reports.explanation_report import suggestion_fields

    check, needed, limit = outcome.check, outcome.needed, outcome.check.limits.arena
    if needed is None:
        return {"model": check.model, "fits": False, "problem": outcome.problem}
    known = not needed.refusals
    return {
        "model": check.model,
        "fits": None if outcome.problem else outcome.passed,
        "required": needed.arena if known else None,
        "excess": needed.arena - limit if known and limit is not None else None,
        **({"problem": outcome.problem} if outcome.problem else {}),
        "refusals": needed.refusals,
        "basis": needed.basis,
        "parts": [asdict(part) for part in needed.parts],
        "libraries": [asdict(library) for library in needed.libraries],
        "ways": [suggestion_fields(way) for way in outcome.ways],
        "searches": [{"name": s.name, "seconds": s.seconds, "command": s.command} for s in outcome.searches],
        "alternatives": [_alternative(alternative, outcome.remedies) for alternative in outcome.others or ()],
        **({"session": asdict(needed.session)} if needed.session else {}),
    }


def _alternative(alternative: Alternative, remedies: Sequence[Alternative]) -> dict[str, object]:
    needed = alternative.requirement
    figures = {"required": needed.arena, "head": needed.head, "fits": alternative in remedies} if needed else {}
    commands: Sequence[str] = alternative.commands
    return {"change": alternative.change, "commands": commands, "refusal": alternative.refusal, **figures}
