"""Writes the best memory plan found into a .tflite file as TFLM's OfflineMemoryAllocation; all else stays as it is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from modelplan.cli import files, model_options, terminal
from modelplan.loaders import load_model
from modelplan.outputs import tflm_headers
from modelplan.outputs.report import Section
from modelplan.outputs.units import human
from modelplan.rewriting import packing
from modelplan.rewriting.packing import Packing, SharedTensors
from modelplan.rewriting.plan_metadata import write_plan
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.abi import ABI_NAMES
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, load_tflite, read_tflite
from modelplan.verifier import proof
from modelplan.verifier.subject import offline_subject, shim_subject


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a .tflite file")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the packed .tflite file to write")
    parser.add_argument(
        "--alias", choices=("none", "views", "safe"), default="views", help="what shares bytes (default: views)"
    )
    parser.add_argument(
        "--kernels",
        choices=[library.name for library in TFLM.libraries if library.packable],
        default=TFLM.kernels,
        help=f"whose scratch to count (default: {TFLM.kernels})",
    )
    parser.add_argument(
        "--abi", choices=ABI_NAMES, default="32", help="the target's, or 32 or 64 for any of so many bits (default: 32)"
    )
    parser.add_argument("--shim", metavar="plan.h", help="also a header that pins every buffer, scratch too")
    parser.add_argument("--header", metavar="arena.h", help="also a header with the arena's size and operators")
    model_options.add_allocator(parser)


def run(arguments: Namespace) -> int:
    """Runs the command."""
    model = load_tflite(arguments.model)
    sharing: SharedTensors = ([], ())
    if len(model.subgraphs) == 1:
        sharing = packing.shared_tensors(load_model(arguments.model), arguments.alias, arguments.kernels)
    plan = packing.offline_plan(model, *sharing, arguments.allocator, kernels=arguments.kernels)
    packed = read_tflite(write_plan(model, plan.offsets), arguments.output)
    proof.prove(offline_subject(packed, arguments.kernels))
    files.write(arguments.output, packed.data)
    write_headers(arguments, packed, plan)
    terminal.show([verdict(arguments.model, model, plan)])
    return 0


def write_headers(arguments: Namespace, packed: FileModel, plan: Packing) -> None:
    """The headers that were asked for."""
    if arguments.header:
        parts = arena(packed, arguments.abi, arguments.kernels)
        files.write(arguments.header, tflm_headers.arena_header(packed, parts))
    if arguments.shim:
        proof.prove(shim_subject(packed, plan.pinned, arguments.kernels))
        text = tflm_headers.shim_header(packed, plan.rows, plan.pinned, plan.pinned_head)
        files.write(arguments.shim, text)


def verdict(path: str, model: FileModel, plan: Packing) -> Section:
    """Before and after, what is shared, and the bound."""
    lines = [
        f"head before    {human(plan.before)}",
        f"head after     {human(plan.head)}",
        f"TFLM's own     {human(plan.own)}",
        f"lower bound    {human(plan.lower_bound)}" + (" (proven optimal)" * (plan.head == plan.lower_bound)),
        f"all pinned     {human(plan.pinned_head)} with the header of --shim",
    ]
    for group in plan.shared:
        names = ", ".join(f"{m.tensor} {model.tensors[m.tensor].name!r}" for m in group)
        lines.append(f"shared bytes   tensors {names}")
    if plan.used_overlaps:
        count = f"{len(plan.used_overlaps)} outputs run" if len(plan.used_overlaps) > 1 else "one output runs"
        lines.append(f"kernels        TFLM's reference kernels only: {count} into an input that is still being read")
    return Section(f"{path}: packed", tuple(lines))
