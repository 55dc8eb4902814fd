"""Writes into the manifest of a wake word for ESPHome the tensor arena that every known version of ESP-NN fits into.

The kernels of ESP-NN ask for scratch that differs by version and chip, so that an arena which was enough for one build
of ESPHome is too small for the next. Nothing else in the manifest changes.
"""

from argparse import ArgumentParser, Namespace

from modelplan.answers.file_changes import EsphomeArena
from modelplan.cli import files, terminal
from modelplan.outputs.report import Report, Section, Table
from modelplan.questions.esphome_manifest import EsphomeRequest, esphome_arena
from modelplan.runtimes.tflm.arena import RELEASE


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("manifest", metavar="MANIFEST.json", help="the manifest, beside its .tflite file")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the stated size is too small")
    parser.add_argument("-o", "--output", metavar="FILE", help="the manifest to write (default: MANIFEST.json itself)")


def run(arguments: Namespace) -> int:
    files.check_outputs([arguments.output], [arguments.manifest], force=True)
    answer = esphome_arena(EsphomeRequest(arguments.manifest))
    output = arguments.output or arguments.manifest
    if not arguments.check:
        files.write(output, answer.manifest)
    terminal.show(_sections(arguments, answer, output))
    return 1 if arguments.check and not answer.enough else 0


def _sections(arguments: Namespace, answer: EsphomeArena, output: str) -> Report:
    """What each version takes, and what was written or would be."""
    rows = tuple(
        (need.library, f"{need.arena:,}", "yes" if need.arena <= answer.stated else "no", need.explains)
        for need in answer.libraries
    )
    table = Table(("ESP-NN", ">arena", "fits", "which"), rows)
    done = f"write {answer.needed}" if arguments.check else f"{answer.needed} written to {output}"
    lines = (
        f"tensor_arena_size {answer.stated} in {arguments.manifest}; enough for all is {answer.needed}: {done}",
        f"sized for {RELEASE}; the arena alone, without the stack of the task and the audio buffers",
    )
    return [Section(answer.model, lines, table)]
