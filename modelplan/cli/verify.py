"""Proves that a memory plan is safe, or that a rewritten model computes what the original does, bit for bit.

Exit 0, or 4 with one sentence that names the operator.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from modelplan.cli import model_options, terminal
from modelplan.outputs.reports.proof_report import sections_of
from modelplan.primitives.errors import BrokenPlanError
from modelplan.questions.verifying import VerifyRequest, verify
from modelplan.runtimes.tflm import TFLM


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
    request = VerifyRequest(
        arguments.plan,
        arguments.against,
        arguments.model,
        arguments.runtime,
        arguments.kernels,
        arguments.overlaps,
        arguments.quick,
        arguments.seed,
    )
    proof = verify(request)
    terminal.show(sections_of(proof))
    if proof.fault:
        raise BrokenPlanError(proof.fault)
    return 0
