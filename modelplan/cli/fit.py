"""Rewrites a .tflite or .onnx model so that it fits on an unmodified TFLM or ONNX Runtime, with equal results.

The rungs of a ladder are tried from the cheapest: the unmodified file; its best order; an offline plan with views;
with outputs that run into operands; without TRANSPOSEs that cancel; convolutions that do their own padding; the
largest maps in stripes. The result is proved to compute what the model does, and run beside it where tflite-micro and
ai-edge-litert are installed.
With `--runtime c` the plan becomes plain C that needs no interpreter.
"""

from __future__ import annotations

import signal
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from modelplan.cli import files, fit_c, fit_onnx, model_options, region_options
from modelplan.cli.output_options import add_c_array, add_draw, add_self_test, outputs_of_c_array
from modelplan.cli.terminal import show_line
from modelplan.formats.unpacking import inner_suffix, is_wrapped
from modelplan.plain_c import C_RUNGS
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_share
from modelplan.rewriting.striped_tflite.interface import INTERFACES
from modelplan.rewriting.striped_tflite.rungs import RUNGS, UNPLANNED
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm.abi import ABI_NAMES
from modelplan.runtimes.tflm.kernels import KERNELS
from modelplan.targets.stated_regions import parse_memories

if TYPE_CHECKING:
    from modelplan.targets.device import Region


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--budget", "--capacity", metavar="BYTES", help="the cheapest rung that needs no more")
    goal.add_argument("--least", action="store_true", help="the lowest need found")
    region_options.add_memory(
        goal, "one memory, or for TFLM two as 256KiB+8MiB: the planned part fits the first, what stays the second"
    )
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write, of the same kind")
    parser.add_argument(
        "--objective", choices=("arena", "head"), default="arena", help="bytes to minimise (default: the whole arena)"
    )
    _add_build(parser)
    _add_limits(parser)
    parser.add_argument(
        "--without",
        metavar="RUNG,...",
        default="",
        help=f"steps to skip: {', '.join(name for name in RUNGS if name not in UNPLANNED)}; with --runtime c:"
        f" {', '.join(C_RUNGS)}",
    )
    parser.add_argument(
        "--interface",
        choices=INTERFACES,
        default=INTERFACES[0],
        help="type of inputs and outputs: the program converts in place of QUANTIZE and DEQUANTIZE (default: as-is)",
    )
    parser.add_argument("--header", metavar="arena.h", help="also a header with the arena's size and operators")
    add_c_array(parser)
    add_self_test(parser)
    add_draw(parser, "LadderChart")
    parser.add_argument("--seed", type=int, default=0, help="of the search (default: 0)")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="ends the search with the best so far, as Ctrl-C and SIGTERM do"
    )
    parser.add_argument("--force", action="store_true", help="OUT may take the place of MODEL")
    fit_c.configure(parser)
    fit_onnx.configure(parser)


def _add_build(parser: ArgumentParser) -> None:
    """Declares what says how the runtime is built."""
    parser.add_argument(
        "--abi", choices=ABI_NAMES, help="32 or 64: any ABI of that width (default: the target's, else 32)"
    )
    words = "the kernel library (default: the target's, else as the file says, else all)"
    model_options.add_kernels(parser, words, choices=(*KERNELS, "portable"))
    model_options.add_target(parser)
    parser.add_argument(
        "--tflm", metavar="VERSION", help="the TFLM that will run it: a day like 2025-11-10, or 0.dev20251110"
    )


def _add_limits(parser: ArgumentParser) -> None:
    """Declares what a rewritten file may take more."""
    parser.add_argument(
        "--max-macs", metavar="PERCENT", help="extra multiply-accumulates (default: 10%%; .onnx: 25%%; plain C: none)"
    )
    parser.add_argument(
        "--max-time",
        metavar="PERCENT",
        help="extra time of an invocation, estimated for reference kernels (default: 15%%; plain C: none)",
    )
    parser.add_argument("--max-ops", metavar="N", type=int, help="operators of the file")
    parser.add_argument("--max-flash", metavar="BYTES", help="bytes of the file")


def run(arguments: Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the best so far is kept
    files.check_outputs([arguments.output], [arguments.model], force=arguments.force)
    others = [arguments.header, arguments.self_test, *outputs_of_c_array(arguments.c_array), *arguments.draw]
    files.check_outputs(others, [arguments.model, arguments.output])
    second = _second_memory(arguments) if arguments.memory else None
    work = arguments.max_macs, arguments.max_time
    if arguments.runtime == C.name:
        return fit_c.fit_file(arguments, [parse_share(text or "0") for text in work], show_line)
    fit_c.check_runtime(arguments)
    if is_wrapped(arguments.model) and inner_suffix(arguments.model) == ".onnx":
        raise RequestError(f"{arguments.model}: fit takes an .onnx file that lies beside its weights; unpack it first")
    if arguments.model.lower().endswith(".onnx"):
        most = parse_share(arguments.max_macs) if arguments.max_macs else None
        return fit_onnx.fit_file(arguments, most, show_line)
    fit_onnx.check_format(arguments)
    from modelplan.cli import fit_tflite  # here, since other files need nothing of it

    return fit_tflite.fit_file(arguments, second, show_line)


def _second_memory(arguments: Namespace) -> Region | None:
    """The second memory that --memory names; the first becomes the budget, for the planned part where there are two."""
    first, *others = parse_memories(arguments.memory)
    arguments.budget = str(first.size)
    if others and (arguments.runtime == C.name or not arguments.model.endswith(".tflite") or len(others) > 1):
        raise RequestError("--memory of two is for TFLM, which has two arenas; `modelplan memories` plans all else")
    arguments.objective = "head" if others else arguments.objective
    return others[0] if others else None
