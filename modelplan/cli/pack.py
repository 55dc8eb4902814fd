"""Writes the best memory plan found into a .tflite file as TFLM's OfflineMemoryAllocation; all else stays as it is.

Where no plan needs less than the file as it stands, the output is a copy of the file.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import shim_subject
from modelplan.cli import files, model_options, terminal
from modelplan.model import Requirement
from modelplan.model.model_file import ModelFile, Target
from modelplan.outputs.firmware import tflm_headers
from modelplan.outputs.report import Section
from modelplan.primitives.errors import ModelError
from modelplan.primitives.units import human
from modelplan.questions.alternatives import load_file, unmodified_requirement, with_proved_plan
from modelplan.rewriting import packing
from modelplan.rewriting.packing import Packing
from modelplan.runtimes import with_kernels
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, load_tflite, read_tflite


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
    model_options.add_abi(parser)
    parser.add_argument("--shim", metavar="plan.h", help="also a header that pins every buffer, scratch too")
    parser.add_argument("--header", metavar="arena.h", help="also a header with the arena's size and operators")
    model_options.add_allocator(parser)
    parser.add_argument(
        "--force", action="store_true", help="write a plan that gains nothing too; OUT may take the place of MODEL"
    )


def run(arguments: Namespace) -> int:
    """Runs the command."""
    files.check_outputs([arguments.output], [arguments.model], force=arguments.force)
    files.check_outputs([arguments.shim, arguments.header], [arguments.model])
    files.check_suffix(arguments.output, ".tflite")
    model = load_tflite(arguments.model)
    file = load_file(arguments.model)
    target = Target(with_kernels(TFLM, arguments.kernels), arguments.abi)
    before = runnable(file, target)
    packed, plan = packing.packed(model, file.graph, arguments.alias, arguments.allocator, arguments.kernels)
    after = with_proved_plan(ModelFile(file.path, packed.data, file.graph), target)
    gains = after.arena < before.arena or after.head < before.head
    written = packed.data if gains or arguments.force else model.data
    files.write(arguments.output, written)
    write_headers(arguments, read_tflite(written, arguments.output), plan)
    outcome = "packed" if gains else "a plan that gains nothing" if arguments.force else "nothing gained"
    lines = [] if gains or arguments.force else [f"{arguments.output} is a copy of it; --force writes the plan"]
    terminal.show(
        [Section(f"{file.path}: {outcome}", (*lines, *outcome_lines(model, plan, before, after, arguments.kernels)))]
    )
    return 0


def runnable(file: ModelFile, target: Target) -> Requirement:
    """What the file needs as it stands.

    Raises:
        ModelError: TFLM would not run it; names the operators and the reasons.
    """
    needed = unmodified_requirement(file, target)
    if needed.refusals:
        raise ModelError(f"{file.path}: {target.runtime.name} would not run it: {'; '.join(needed.refusals)}")
    return needed


def write_headers(arguments: Namespace, written: FileModel, plan: Packing) -> None:
    """The headers that were asked for."""
    if arguments.header:
        parts = arena(written, arguments.abi, arguments.kernels)
        files.write(arguments.header, tflm_headers.arena_header(written, parts))
    if arguments.shim:
        proof.prove(shim_subject(written, plan.pinned, arguments.kernels))
        text = tflm_headers.shim_header(written, plan.rows, plan.pinned, plan.pinned_head)
        files.write(arguments.shim, text)


def outcome_lines(model: FileModel, plan: Packing, before: Requirement, after: Requirement, kernels: str) -> list[str]:
    """Before and after, what is shared, and the bound."""
    lines = [
        f"head before    {human(plan.before)}",
        f"head after     {human(plan.head)}",
        f"TFLM's own     {human(plan.own)}",
        f"lower bound    {human(plan.lower_bound)}" + (" (proven optimal)" * (plan.head == plan.lower_bound)),
        f"all pinned     {human(plan.pinned_head)} with the header of --shim",
        f"arena before   {human(before.arena)}: {before.basis}",
        f"arena after    {human(after.arena)}",
    ]
    for group in plan.shared:
        names = ", ".join(f"{m.tensor} {model.tensors[m.tensor].name!r}" for m in group)
        lines.append(f"shared bytes   tensors {names}")
    if plan.used_overlaps:
        count = f"{len(plan.used_overlaps)} outputs run" if len(plan.used_overlaps) > 1 else "one output runs"
        lines.append(f"kernels        {kernels} kernels only: {count} into an input that is still being read")
    return lines
