"""Writes the best memory plan found into a .tflite file as TFLM's OfflineMemoryAllocation; all else is unchanged.

Where no plan needs less than the unmodified file, the output is a copy of the file.
"""

from argparse import ArgumentParser, Namespace

from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import shim_subject
from modelplan.cli import files, model_options, placing_options, terminal
from modelplan.cli.output_options import add_c_array, add_self_test, outputs_of_c_array, write_c_array, write_self_test
from modelplan.outputs.firmware import tflm_sources
from modelplan.outputs.report import Section
from modelplan.outputs.reports.ladder_report import helped_line
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import human
from modelplan.questions.file_rewrites import PackedFile, PackRequest, pack
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import is_group
from modelplan.runtimes.tflm.kernels.own_kernels import library_of


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a .tflite file")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the packed .tflite file to write")
    parser.add_argument(
        "--alias", choices=("none", "views", "safe"), default="views", help="what shares bytes (default: views)"
    )
    packable = [library.name for library in TFLM.libraries if library.packable]
    words = "the kernel library (default: that of the plan in MODEL, else all)"
    model_options.add_kernels(parser, words, choices=packable)
    model_options.add_abi(parser, default=None)
    model_options.add_target(parser)
    parser.add_argument(
        "--shim", metavar="plan.h", help="also a header that pins every buffer, scratch too (with --kernels)"
    )
    parser.add_argument("--header", metavar="arena.h", help="also a header with the arena's size and operators")
    add_c_array(parser)
    add_self_test(parser)
    placing_options.add_allocator(parser)
    parser.add_argument(
        "--force", action="store_true", help="write a plan that saves nothing too; OUT may take the place of MODEL"
    )


def run(arguments: Namespace) -> int:
    files.check_outputs([arguments.output], [arguments.model], force=arguments.force)
    headers = [arguments.shim, arguments.header, arguments.self_test, *outputs_of_c_array(arguments.c_array)]
    files.check_outputs(headers, [arguments.model])
    files.check_suffix(arguments.output, ".tflite")
    chosen = model_options.chosen_target(arguments)
    abi, kernels = model_options.build_of(arguments, chosen)
    packed = pack(PackRequest(arguments.model, arguments.alias, kernels or None, abi, arguments.allocator))
    if arguments.shim and is_group(packed.kernels):
        raise RequestError("--shim pins scratch, which differs by library; name the kernel library by --kernels")
    gains = packed.gains
    written = packed.packed.data if gains or arguments.force else packed.model.data
    files.write(arguments.output, written)
    file = read_tflite(written, arguments.output)
    write_headers(arguments, file, packed, abi)
    write_c_array(arguments.c_array, file, packed.kernels, abi)
    write_self_test(arguments.self_test, packed.model, file, packed.kernels, abi)
    outcome = "packed" if gains else "a plan that saves nothing" if arguments.force else "nothing saved"
    lines = [] if gains or arguments.force else [f"{arguments.output} is a copy of it; --force writes the plan"]
    needed = packed.after if gains or arguments.force else packed.before
    shown = (*lines, *outcome_lines(packed), declared_line(packed, needed.arena, abi))
    terminal.show([Section(f"{arguments.model}: {outcome}", shown)])
    return 0


def write_headers(arguments: Namespace, written: FileModel, packed: PackedFile, abi: str) -> None:
    """The headers that were asked for."""
    plan, kernels = packed.plan, packed.kernels
    if arguments.header:
        parts = arena(written, abi, kernels)
        files.write(arguments.header, tflm_sources.arena_header(written, parts, kernels, abi=abi))
    if arguments.shim:
        proof.prove(shim_subject(written, plan.pinned, kernels))
        text = tflm_sources.shim_header(written, plan.rows, plan.pinned, plan.pinned_head)
        files.write(arguments.shim, text)


def outcome_lines(packed: PackedFile) -> list[str]:
    """Before and after, what is shared, and the bound."""
    plan, before, after = packed.plan, packed.before, packed.after
    lines = [
        f"head before    {human(plan.before)}",
        f"head after     {human(plan.head)}",
        f"TFLM's own     {human(plan.own)}",
        f"lower bound    {human(plan.lower_bound)}" + (" (proven optimal)" * (plan.head == plan.lower_bound)),
        f"all pinned     {human(plan.pinned_head)} with the header of --shim",
        f"arena before   {human(before.arena)}: {before.basis}",
        f"arena after    {human(after.arena)}",
    ]
    if plan.helped:
        lines.append(f"one library    {helped_line(plan.helped, 'of head')}")
    for group in plan.shared:
        names = ", ".join(f"{m.tensor} {packed.model.tensors[m.tensor].name!r}" for m in group)
        lines.append(f"shared bytes   tensors {names}")
    if plan.used_overlaps:
        count = f"{len(plan.used_overlaps)} outputs run" if len(plan.used_overlaps) > 1 else "one output runs"
        lines.append(
            f"kernels        {library_of(packed.kernels)} kernels only: {count} into an input that is still being read"
        )
    return lines


def declared_line(packed: PackedFile, arena: int, abi: str) -> str:
    """The number to paste, and what it holds for."""
    return f"#define {packed.before.macro} {arena}  // {library_of(packed.kernels)} kernels, ABI {abi}"
