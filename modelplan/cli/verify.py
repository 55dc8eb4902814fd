"""Proves that a memory plan is safe, or says in one sentence which operator it breaks. Exit 0, or 4 when it does."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from modelplan.cli import model_options, terminal
from modelplan.errors import BrokenPlanError
from modelplan.outputs.report import Section
from modelplan.outputs.units import human
from modelplan.rewriting.plan_metadata import write_plan
from modelplan.runtimes.tflm import TFLM
from modelplan.verifier import proof
from modelplan.verifier.sources import load_subject


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
    parser.add_argument("--kernels", choices=TFLM.library_names, default=TFLM.kernels, help="whose scratch TFLM adds")
    parser.add_argument("--quick", action="store_true", help="only the levels static and fingerprint replay")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random inputs (default: 0)")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    model = Path(arguments.model) if arguments.model else None
    plan, kernels, runtime = Path(arguments.plan), arguments.kernels, arguments.runtime
    overlaps_of = partial(model_options.overlaps_of, arguments.overlaps)
    subject, model = load_subject(plan, model, kernels, runtime, overlaps_of)
    verdicts = list(proof.quick_levels(subject))
    if not arguments.quick and all(v.outcome == "ok" for v in verdicts):
        verdicts += proof.deep_levels(subject, model, write_plan, arguments.seed)
    lines = [f"{v.level:18}  {v.outcome:7}  {v.details}" for v in verdicts]
    if subject.offline is not None:
        lines.append(f"{'head on TFLM':18}  {human(subject.offline.head)}")
    terminal.show([Section(f"{arguments.plan}: levels of proof", tuple(lines))])
    broken = [v for v in verdicts if v.outcome == "broken"]
    if broken:
        raise BrokenPlanError(f"{arguments.plan}: {broken[-1].details}")
    return 0
