"""Prints the JSON Schema of a document that a command writes as JSON; its $id carries the version of the document.

Documents: plan (the default; analyze --json), explain, diff, compare, check, check-limits (check --format json),
baseline (check --write baseline), together, memories, moves (memories --spill --json), stream, report, targets. The
overlays of Model Explorer have Google's own form.
"""

import json
from argparse import ArgumentParser, Namespace

from modelplan.cli import files
from modelplan.outputs.schemas.documents import DOCUMENTS, schema_of


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", default="plan", choices=tuple(DOCUMENTS), help="the document (default: plan)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="the schema (default: standard output)")


def run(arguments: Namespace) -> int:
    files.check_outputs([arguments.output], [])
    files.write(arguments.output, json.dumps(schema_of(arguments.name), indent=1) + "\n")
    return 0
