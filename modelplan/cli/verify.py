"""Proves that a memory plan is safe, or says in one sentence which operator it breaks. Exit 0, or 4 when it does."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path

from modelplan.cli import model_options, terminal
from modelplan.errors import BrokenPlanError, ModelError, RequestError
from modelplan.outputs.report import Section
from modelplan.runtimes import runtime
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import KERNELS
from modelplan.verifier import proof
from modelplan.verifier.subject import Subject, offline_subject, plan_subject, shim_subject, table_subject


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "plan",
        metavar="FILE",
        help="a packed .tflite, a plan as .json, a .csv with offsets, or a .h with a BufferPlan",
    )
    parser.add_argument("--model", metavar="MODEL", help="the model that a .json, .csv or .h plan is for")
    parser.add_argument("--runtime", metavar="NAME", help="whose alignment and kernels hold for a .csv")
    model_options.add_overlaps(parser)
    parser.add_argument("--kernels", choices=KERNELS, default="reference", help="whose scratch TFLM adds")
    parser.add_argument("--quick", action="store_true", help="only the levels static and fingerprint replay")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random inputs (default: 0)")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    subject, model = subject_of(arguments)
    verdicts = list(proof.quick_levels(subject))
    if not arguments.quick and all(v.outcome == "ok" for v in verdicts):
        verdicts += proof.deep_levels(subject, model, arguments.seed)
    lines = tuple(f"{v.level:18}  {v.outcome:7}  {v.details}" for v in verdicts)
    terminal.show([Section(f"{arguments.plan}: levels of proof", lines)])
    broken = [v for v in verdicts if v.outcome == "broken"]
    if broken:
        raise BrokenPlanError(f"{arguments.plan}: {broken[-1].details}")
    return 0


def subject_of(arguments: Namespace) -> tuple[Subject, Path | None]:
    """The plan in the file, and the model that it can be run from.

    Raises:
        RequestError: an unknown kind of file, or a model is needed.
    """
    suffix = Path(arguments.plan).suffix.lower()
    model = Path(arguments.model) if arguments.model else None
    if suffix == ".tflite":
        return offline_subject(_file_model(arguments.plan), arguments.kernels), Path(arguments.plan)
    if suffix == ".json":
        return _json_subject(arguments.plan, model), model
    if suffix not in (".csv", ".h"):
        raise RequestError(f"{arguments.plan}: no plan is read from {suffix!r}; expected .tflite, .json, .csv or .h")
    if model is None:
        raise RequestError(f"{arguments.plan} does not say which model it is for; give --model")
    if suffix == ".h":
        places = buffer_plan(_text(arguments.plan), arguments.plan)
        return shim_subject(_file_model(arguments.model), places, arguments.kernels), model
    return _csv_subject(arguments), model


def _json_subject(path: str, model: Path | None) -> Subject:
    from modelplan.outputs.json_plan import read

    plan = read(_text(path), path)
    runnable = model is not None and model.suffix.lower() == ".tflite"
    return plan_subject(plan, _file_model(str(model)) if runnable else None)


def _csv_subject(arguments: Namespace) -> Subject:
    from modelplan.loaders.problem_csv import read_solution

    graph = model_options.load_model(arguments.model)
    problem, placement = read_solution(Path(arguments.plan))
    if placement is None:
        raise ModelError(f"{arguments.plan}: has no column offset")
    overlaps = model_options.overlaps_of(arguments.overlaps, graph)
    return table_subject(graph, problem, placement, runtime(arguments.runtime, graph.format), overlaps)


def buffer_plan(text: str, name: str) -> list[int]:
    """The offsets of the BufferPlan in a C header.

    Raises:
        ModelError: there is none, or its count is not that of its offsets.
    """
    found = re.search(r"modelplan_buffer_plan\s*=\s*\{\s*(\d+)\s*,\s*\{([^}]*)\}", text)
    if not found:
        raise ModelError(f"{name}: found no modelplan_buffer_plan, expected a header of `modelplan pack --shim`")
    offsets = [int(number) for number in re.findall(r"-?\d+", re.sub(r"//[^\n]*", "", found[2]))]
    if len(offsets) != int(found[1]):
        raise BrokenPlanError(f"{name}: counts {found[1]} buffers and holds {len(offsets)} offsets")
    return offsets


def _file_model(path: str) -> FileModel:
    try:
        return read_tflite(Path(path).read_bytes(), path)
    except OSError as problem:
        raise ModelError(f"{path}: {problem.strerror}") from None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise ModelError(f"{path}: not text: {problem.reason}") from None
    except OSError as problem:
        raise ModelError(f"{path}: {problem.strerror}") from None
