"""Proves that a memory plan is safe, or that a rewritten model computes what the original does, bit for bit.

Exit 0, or 4 with one sentence that names the operator.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from modelplan.checking.verifier import proof
from modelplan.checking.verifier.rewrites.executing import ExecutionEffort
from modelplan.checking.verifier.rewrites.proving import rewrite_levels
from modelplan.checking.verifier.sources import kernels_of_plan, load_subject
from modelplan.checking.verifier.verdicts import Verdict
from modelplan.cli import model_options, terminal
from modelplan.outputs.report import Section
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.primitives.units import human
from modelplan.questions import option_files
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.plan_metadata import write_plan


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "plan",
        metavar="FILE",
        help="a packed .tflite, a plan or a layout in several memories as .json, a .csv with offsets, or a .h with a"
        " BufferPlan; with --against the original .tflite",
    )
    parser.add_argument(
        "--against", metavar="REWRITTEN", help="a .tflite that must compute what FILE does, with its own plan"
    )
    parser.add_argument("--model", metavar="MODEL", help="the model that a .json, .csv or .h plan is for")
    parser.add_argument("--runtime", metavar="NAME", help="whose alignment and kernels hold for a .csv")
    model_options.add_overlaps(parser)
    parser.add_argument(
        "--kernels",
        choices=TFLM.library_names,
        help="the kernel library (default: as the file says, else all)",
    )
    parser.add_argument("--quick", action="store_true", help="only the levels that run no kernel")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random inputs (default: 0)")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    if arguments.against:
        return _compare(arguments)
    model = Path(arguments.model) if arguments.model else None
    plan, kernels, runtime = Path(arguments.plan), arguments.kernels, arguments.runtime
    several = _regions_kind(plan) if plan.suffix.lower() == ".json" else ""
    if several:
        return _verify_moves(plan, model) if several == "moves" else _verify_regions(plan, model)
    overlaps_of = partial(option_files.overlaps_of, arguments.overlaps)
    subject, model = load_subject(plan, model, kernels, runtime, overlaps_of)
    verdicts = list(proof.quick_levels(subject))
    if not arguments.quick and not any(v.outcome == "broken" for v in verdicts):
        parts = any(v.level == proof.BY_BYTE for v in verdicts)
        verdicts += proof.deep_levels(subject, model, write_plan, arguments.seed, parts=parts)
    lines = [_line(v) for v in verdicts]
    if subject.offline is not None:
        lines.append(f"{'head on TFLM':18}  {human(subject.offline.head)}")
    terminal.show([Section(f"{arguments.plan}: levels of proof", tuple(lines))])
    broken = [v for v in verdicts if v.outcome == "broken"]
    if broken:
        raise BrokenPlanError(f"{arguments.plan}: {broken[-1].details}")
    return 0


def _regions_kind(path: Path) -> str:
    """What a JSON file is, if it is a layout for several memories: `memories`, or `moves`; else empty."""
    from modelplan.formats.files import read_text
    from modelplan.questions.memories.region_document import kind_of

    return kind_of(read_text(path)) if path.is_file() else ""


def _verify_regions(path: Path, model: Path | None) -> int:
    """Proves a layout for several memories: the referee, and a replay of each model in it."""
    from modelplan.formats.files import read_text
    from modelplan.outputs.reports.region_report import sections_of
    from modelplan.questions.memories.region_document import read

    made = read(read_text(path), str(path))
    _check_model(path, model, [plan.graph.fingerprint for plan in made.plans])
    rows = [
        Verdict("referee", "ok", f"{len(made.layout.stays):,} stays, {len(made.layout.copies):,} copies"),
        *(Verdict("replay", "ok", plan.graph.name) for plan in made.plans),
    ]
    terminal.show([Section(f"{path}: levels of proof", tuple(map(_line, rows))), *sections_of(made)])
    return 0


def _verify_moves(path: Path, model: Path | None) -> int:
    """Proves a layout that moves: the referee, and the simulator's replay with time."""
    from modelplan.formats.files import read_text
    from modelplan.outputs.reports.moves_report import milliseconds, sections_of
    from modelplan.questions.memories.moves_document import read

    made = read(read_text(path), str(path))
    _check_model(path, model, [made.plan.graph.fingerprint])
    rows = [
        Verdict("plan", "ok", f"{made.title}: order and sharing"),
        Verdict("simulator", "ok", f"one run takes {milliseconds(made.simulated.seconds)}, as promised"),
        Verdict("referee", "ok", f"{len(made.layout.stays):,} stays, {len(made.layout.copies):,} copies"),
    ]
    terminal.show([Section(f"{path}: levels of proof", tuple(map(_line, rows))), *sections_of(made)])
    return 0


def _check_model(path: Path, model: Path | None, fingerprints: Sequence[str]) -> None:
    from modelplan.formats.files import fingerprint, read_bytes

    if model is not None and fingerprint(read_bytes(model)) not in fingerprints:
        raise BrokenPlanError(f"{path}: was not made for {model}: SHA-256 differs")


def _line(verdict: Verdict) -> str:
    return f"{verdict.level:18}  {verdict.outcome:7}  {verdict.details}"


def _compare(arguments: Namespace) -> int:
    """Proves that --against computes what FILE does.

    Raises:
        BrokenPlanError: it does not, or that cannot be proved.
        RequestError: other forms of plans are named as well.
    """
    given = [f"--{name}" for name in ("model", "runtime", "overlaps") if getattr(arguments, name)]
    if given:
        raise RequestError(f"{given[0]} is for plans, --against compares two .tflite files")
    files = load_tflite(arguments.plan), load_tflite(arguments.against)
    kernels = arguments.kernels or kernels_of_plan(files[1])
    levels = rewrite_levels(*files, kernels, None if arguments.quick else ExecutionEffort(arguments.seed))
    verdicts = list(levels)
    lines = [_line(v) for v in verdicts]
    if arguments.quick:
        lines.append(_line(Verdict("TFLM, LiteRT", "skipped", "--quick: no kernel was run")))
    terminal.show([Section(f"{arguments.against} against {arguments.plan}", tuple(lines))])
    for verdict in verdicts:
        if verdict.outcome in ("broken", "unproved"):
            equal = "is not proved equal to" if verdict.outcome == "unproved" else "does not compute what"
            rest = "" if verdict.outcome == "unproved" else " does"
            raise BrokenPlanError(f"{arguments.against} {equal} {arguments.plan}{rest}: {verdict.details}")
    return 0
