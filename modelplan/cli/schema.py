"""Prints the JSON Schema of the plans that --json writes; its $id carries the version of the document."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from modelplan.cli import files
from modelplan.outputs.plan_schema import plan_schema


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="the schema (default: standard output)")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    files.check_outputs([arguments.output], [])
    files.write(arguments.output, json.dumps(plan_schema(), indent=1) + "\n")
    return 0
