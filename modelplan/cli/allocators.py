"""Lists every allocator: what it is, what it guarantees, what it costs, where it comes from."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from modelplan.allocators import ALLOCATORS
from modelplan.cli import terminal
from modelplan.outputs.report import Section, Table


def configure(parser: ArgumentParser) -> None:
    """There are no arguments."""


def run(arguments: Namespace) -> int:  # noqa: ARG001
    """Runs the command."""
    rows = tuple((a.name, a.kind, a.guarantees, a.cost, a.source) for a in ALLOCATORS.values())
    terminal.show([Section("", (), Table(("allocator", "kind", "guarantees", "cost", "source"), rows))])
    return 0
