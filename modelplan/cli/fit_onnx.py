"""`fit` for an .onnx file: the rungs are measured on ONNX Runtime, at the settings that the user runs."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.cli import files, terminal
from modelplan.cli.model_options import add_feeds, add_repeated
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.units import parse_memory
from modelplan.runtimes.ort.measuring import LEVELS, SessionSettings

if TYPE_CHECKING:
    from modelplan.questions.onnx_fitting import FitOnnxRequest

#: Options of TFLite files, with their defaults.
_TFLITE_OPTIONS: dict[str, object] = {
    "--objective": "arena", "--abi": None, "--kernels": None, "--tflm": None, "--max-ops": None, "--max-flash": None,
    "--header": None, "--self-test": None, "--draw": [], "--seed": 0, "--target": None,
    "--c-array": None, "--interface": "as-is", "--custom": [],
}  # fmt: skip


#: Options of ONNX Runtime alone.
_OWN = (
    "ort_level", "threads", "arena", "pattern", "shrinkage", "execution_order", "tolerance", "dim", "shape", "value",
    "feeds",
)  # fmt: skip


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments that only .onnx files take."""
    group = parser.add_argument_group("ONNX Runtime (.onnx files)")
    group.add_argument("--ort-level", choices=LEVELS, help="graph optimization level (default: all)")
    group.add_argument("--threads", metavar="N", type=int, help="intra-op threads (default: 1)")
    group.add_argument("--arena", choices=("default", "exact", "off"), help="keeps the arena so; exact: grown as asked")
    group.add_argument("--pattern", choices=("on", "off"), help="keeps memory patterns so")
    group.add_argument("--shrinkage", choices=("on", "off"), help="keeps shrinking the arena behind each run so")
    group.add_argument("--execution-order", choices=("default", "priority"), help="keeps the order of nodes so")
    group.add_argument(
        "--tolerance", metavar="ULP", type=float, help="of outputs, in last places of their largest value (default: 0)"
    )
    add_repeated(group, "--dim", "SYMBOL=N", "an extent that is open")
    add_repeated(group, "--shape", "INPUT=N,...", "the shape of an input")
    add_repeated(group, "--value", "INPUT=N,...", "the value of an input")
    add_feeds(group)


def check_format(arguments: Namespace) -> None:
    """Refuses options of ONNX Runtime for other files."""
    for name in _OWN:
        if getattr(arguments, name):
            raise RequestError(f"--{name.replace('_', '-')} is for .onnx files, and {arguments.model} is none")


def fit_file(arguments: Namespace, max_macs: float | None, progress: Callable[[str], None]) -> int:
    """Runs the command for an .onnx file; `max_macs` is None where nothing is said of it."""
    for option, default in _TFLITE_OPTIONS.items():
        if getattr(arguments, option[2:].replace("-", "_")) != default:
            raise RequestError(f"{option} is for .tflite files, and {arguments.model} is none")
    if not arguments.output.lower().endswith(".onnx"):
        raise RequestError(f"{arguments.output}: expected a name that ends in .onnx")
    from modelplan.outputs.reports import onnx_ladder_report as report  # here, since other files need nothing of it
    from modelplan.questions.onnx_fitting import fit_onnx

    request = _request(arguments, max_macs)
    ladder = fit_onnx(request, progress)
    progress("")
    sections = [*report.first_section(ladder), report.rungs_section(request, ladder)]
    terminal.show([*sections, *report.verdict(request, ladder, arguments.output)])
    if ladder.chosen is None:
        return 1
    if ladder.chosen.model is None:
        return 0
    _copy_data(ladder.chosen.model, arguments.model, arguments.output)
    files.write(arguments.output, ladder.chosen.model)
    return 0


def _request(arguments: Namespace, max_macs: float | None) -> FitOnnxRequest:
    from modelplan.questions.onnx_fitting import FitOnnxRequest

    if not arguments.least and arguments.budget is None:
        raise RequestError("--budget BYTES or --least has to say what to fit")
    threads = 1 if arguments.threads is None else arguments.threads
    if not 1 <= threads <= 1024:
        raise RequestError(f"--threads is {threads}, expected 1 to 1024")
    tolerance = arguments.tolerance or 0.0
    if not 0 <= tolerance < float("inf"):
        raise RequestError(f"--tolerance is {arguments.tolerance}, expected a number from 0 on")
    named = {
        "arena": arguments.arena,
        "pattern": arguments.pattern and arguments.pattern == "on",
        "shrink": arguments.shrinkage and arguments.shrinkage == "on",
        "order": arguments.execution_order,
    }
    kept = {name: value for name, value in named.items() if value is not None}
    if kept.get("arena") == "off" and kept.get("shrink"):
        raise RequestError("--shrinkage on needs an arena, and --arena is off")
    settings = SessionSettings(level=arguments.ort_level or "all", threads=threads, **kept)
    if arguments.seconds is not None and not 0 <= arguments.seconds < float("inf"):
        raise RequestError(f"--seconds is {arguments.seconds:g}, expected 0 or more")
    budget = None if arguments.least else parse_memory(arguments.budget)
    without = frozenset(word.strip() for word in arguments.without.split(",") if word.strip())
    request = FitOnnxRequest(
        arguments.model,
        budget=budget,
        settings=settings,
        fixed=frozenset(kept),
        tolerance=tolerance,
        without=without,
        dims=tuple(arguments.dim),
        shapes=tuple(arguments.shape),
        values=tuple(arguments.value),
        feeds=arguments.feeds or "",
        seconds=arguments.seconds,
    )
    return request if max_macs is None else replace(request, max_macs=max_macs)


def _copy_data(model: bytes, source: str, target: str) -> None:
    """Puts the files in which a model keeps its weights beside the new file, where they are not there already."""
    import onnx
    from onnx.external_data_helper import uses_external_data

    here, there = Path(source).resolve().parent, Path(target).resolve().parent
    proto = onnx.load_model_from_string(model)
    tensors = [t for t in proto.graph.initializer if uses_external_data(t)]
    for name in {e.value for t in tensors for e in t.external_data if e.key == "location"}:
        old, new = (here / name).resolve(), (there / name).resolve()
        if here not in old.parents or not old.is_file():
            raise ModelError(f"{source}: its data file {name!r} is missing or outside of its folder")
        if old == new:
            continue
        if new.exists() and not new.samefile(old):
            if new.stat().st_size != old.stat().st_size or new.read_bytes() != old.read_bytes():
                raise RequestError(f"{new} is in the way: the model keeps its weights in a file of this name")
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(old, new)
