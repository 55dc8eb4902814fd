"""The options that write C++ for firmware: a model as source with the header of its arena, and a self-test of it."""

from __future__ import annotations

from argparse import ArgumentParser, _ArgumentGroup
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.cli import files
from modelplan.outputs import render
from modelplan.primitives.errors import RequestError

if TYPE_CHECKING:
    from modelplan.runtimes.tflm.file import FileModel

_SUFFIXES = (".cc", ".cpp")


def add_c_array(parser: ArgumentParser | _ArgumentGroup) -> None:
    parser.add_argument(
        "--c-array",
        metavar="FILE.cc",
        help="the .tflite as an aligned constant array in C++, and FILE.h with the arena's size and operators",
    )


def outputs_of_c_array(path: str | None) -> list[str]:
    """The two files that --c-array writes, the source first; none without it."""
    if path is None:
        return []
    if Path(path).suffix not in _SUFFIXES:
        raise RequestError(
            f"--c-array {path}: expected a name that ends in {' or '.join(_SUFFIXES)}; .h goes beside it"
        )
    return [path, str(Path(path).with_suffix(".h"))]


def write_c_array(path: str | None, model: FileModel, kernels: str, abi: str, added: Sequence[str] = ()) -> None:
    """The array and its header for a model on an ABI with these kernels; nothing without a path."""
    if path is None:
        return
    from modelplan.outputs.firmware.model_source import model_header, model_source
    from modelplan.runtimes.tflm.arena import arena

    source, header = outputs_of_c_array(path)
    files.write(header, model_header(path, model, arena(model, abi, kernels), kernels, added, abi))
    files.write(source, model_source(path, model))


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
