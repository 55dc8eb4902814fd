"""Writes the best memory plan found into a .tflite file as TFLM's OfflineMemoryAllocation; all else stays as it is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from modelplan import pipeline
from modelplan.cli import files, model_options, terminal
from modelplan.errors import ModelError
from modelplan.outputs import tflm_headers
from modelplan.outputs.report import Section
from modelplan.outputs.units import human
from modelplan.pipeline import Options
from modelplan.rewriting import packing
from modelplan.rewriting.packing import Packing
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.arena import ABIS, arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import KERNELS
from modelplan.types import Member, Overlap
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
        "--kernels", choices=KERNELS, default="reference", help="whose scratch to count (default: reference)"
    )
    parser.add_argument("--abi", type=int, choices=sorted(ABIS), default=32, help="bits of an address (default: 32)")
    parser.add_argument("--shim", metavar="plan.h", help="also a header that pins every buffer, scratch too")
    parser.add_argument("--header", metavar="arena.h", help="also a header with the arena's size and operators")
    model_options.add_allocator(parser)


def run(arguments: Namespace) -> int:
    """Runs the command."""
    model = read_model(arguments.model)
    shared, overlaps = shared_tensors(model, arguments.alias, arguments.kernels)
    plan = packing.offline_plan(model, shared, overlaps, arguments.allocator, kernels=arguments.kernels)
    packed = read_tflite(planner.write_plan(model, plan.offsets), arguments.output)
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


def read_model(path: str) -> FileModel:
    """The file as TFLM sees it, one subgraph or several.

    Raises:
        ModelError: it is missing, damaged or no TFLite model.
    """
    try:
        return read_tflite(Path(path).read_bytes(), path)
    except OSError as problem:
        raise ModelError(f"{path}: {problem.strerror}") from None


def shared_tensors(
    model: FileModel, alias: str, kernels: str = "reference"
) -> tuple[list[tuple[Member, ...]], tuple[Overlap, ...]]:
    """The groups of tensors that share memory under alias mode `alias`, and the outputs that may run into operands.

    None where several subgraphs run.
    """
    if len(model.subgraphs) > 1:
        return [], ()
    options = Options(runtime="tflm", schedule="file", alias=alias, allocator="tflm-greedy", kernels=kernels)
    plan = pipeline.plan(model_options.load_model(model.name), options)
    return [members for members in plan.problem.members if len(members) > 1], plan.overlaps


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
    if plan.running:
        count = f"{len(plan.running)} outputs run" if len(plan.running) > 1 else "one output runs"
        lines.append(f"kernels        TFLM's reference kernels only: {count} into an input that is still being read")
    return Section(f"{path}: packed", tuple(lines))
