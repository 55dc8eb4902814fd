"""The option that writes a self-test for firmware: a C++ file that runs the model with the firmware's own kernels."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING

from modelplan.cli import files
from modelplan.outputs import render

if TYPE_CHECKING:
    from modelplan.runtimes.tflm.file import FileModel


def add_self_test(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--self-test",
        metavar="FILE.cc",
        help="also a C++ file that runs the model in its arena on your device and compares what comes out",
    )


def write_self_test(
    path: str | None, original: FileModel, model: FileModel, kernels: str, abi: str | None, seed: int = 0
) -> None:
    """The self-test of `model`, which has to compute what `original` does; nothing without a path."""
    if path:
        from modelplan.questions.self_testing import expected_runs

        files.write(path, render(expected_runs(original, model, kernels, abi, seed), "self-test"))
