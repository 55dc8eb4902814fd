"""Proves that a memory plan is safe, or that a rewritten model computes what the original does, bit for bit.

Exit 0, or 4 with one sentence that names the operator.
"""

from argparse import ArgumentParser, Namespace

from modelplan.checking.verifier.sources import kernels_of_plan
from modelplan.cli import files, model_options, terminal
from modelplan.cli.output_options import add_self_test, write_self_test
from modelplan.outputs.reports.proof_report import sections_of
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.questions.verifying import VerifyRequest, verify
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.kernels.own_kernels import with_library


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "plan",
        metavar="FILE",
        help="a packed .tflite, a plan or a layout in several memories as .json, a .csv with offsets, or a .h with a"
        " BufferPlan; with --against the original .tflite",
    )
    parser.add_argument(
        "--against", metavar="REWRITTEN", help="a .tflite that must compute what FILE does, or a .c that `fit` wrote"
    )
    parser.add_argument("--model", metavar="MODEL", help="the model that a .json, .csv or .h plan is for")
    parser.add_argument("--runtime", metavar="NAME", help="whose alignment and kernels hold for a .csv")
    model_options.add_overlaps(parser)
    words = "the kernel library (default: as the file says, else all)"
    model_options.add_kernels(parser, words, choices=TFLM.library_names, metavar=None)
    model_options.add_abi(parser, None)
    add_self_test(parser)
    parser.add_argument("--quick", action="store_true", help="only the levels that run no kernel")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random inputs (default: 0)")


def run(arguments: Namespace) -> int:
    files.check_outputs([arguments.self_test], [arguments.plan, *filter(None, [arguments.against])])
    tested = arguments.against or arguments.plan
    if arguments.self_test:
        files.check_suffix(tested, ".tflite")
    elif arguments.abi:
        raise RequestError("--abi is for the arena of --self-test")
    request = VerifyRequest(
        arguments.plan,
        arguments.against,
        arguments.model,
        arguments.runtime,
        model_options.kernels_of(arguments),
        arguments.overlaps,
        arguments.quick,
        arguments.seed,
    )
    proof = verify(request)
    terminal.show(sections_of(proof))
    if proof.fault:
        raise BrokenPlanError(proof.fault)
    if arguments.self_test:
        model = load_tflite(tested)
        kernels = with_library(request.kernels, kernels_of_plan(model))
        write_self_test(arguments.self_test, load_tflite(arguments.plan), model, kernels, arguments.abi, arguments.seed)
    return 0
