"""`fit` for an .onnx file: the rungs are measured on ONNX Runtime, at the settings that the user runs."""

from __future__ import annotations

import json
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelplan.cli import files, terminal
from modelplan.formats import load_model
from modelplan.outputs.report import Section, Table
from modelplan.primitives.byte_counts import parse_bytes
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.units import human

_LEVELS = {"disable": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
           "all": "ORT_ENABLE_ALL"}  # fmt: skip
#: Options of other formats with their defaults.
_FOREIGN: dict[str, object] = {
    "--objective": "arena", "--abi": None, "--kernels": None, "--tflm": None, "--max-ops": None, "--max-flash": None,
    "--header": None, "--draw": [], "--seed": 0, "--target": None,
}  # fmt: skip


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments that only .onnx files take."""
    group = parser.add_argument_group("ONNX Runtime (.onnx files)")
    group.add_argument("--ort-level", choices=list(_LEVELS), help="graph optimization level (default: all)")
    group.add_argument("--threads", metavar="N", type=int, help="intra-op threads (default: 1)")
    group.add_argument("--arena", choices=("default", "exact", "off"), help="keeps the arena so; exact: grown as asked")
    group.add_argument("--pattern", choices=("on", "off"), help="keeps memory patterns so")
    group.add_argument(
        "--tolerance", metavar="ULP", type=float, help="of outputs, in last places of their largest value (default: 0)"
    )
    group.add_argument("--dim", metavar="SYMBOL=N", action="append", default=[], help="an extent that is open")
    group.add_argument("--shape", metavar="INPUT=N,...", action="append", default=[], help="the shape of an input")


def check_format(arguments: Namespace) -> None:
    """Refuses options of ONNX Runtime for other files.

    Raises:
        RequestError: names the option.
    """
    for name in ("ort_level", "threads", "arena", "pattern", "tolerance", "dim", "shape"):
        if getattr(arguments, name):
            raise RequestError(f"--{name.replace('_', '-')} is for .onnx files, and {arguments.model} is none")


def fit_file(arguments: Namespace, max_macs: float | None, progress: Callable[[str], None]) -> int:
    """Runs the command for an .onnx file; `max_macs` is None where nothing is said of it."""
    from modelplan.rewriting.striped_onnx.ladder import climb
    from modelplan.runtimes.ort.measuring import check_measurable

    for option, default in _FOREIGN.items():
        if getattr(arguments, option[2:].replace("-", "_")) != default:
            raise RequestError(f"{option} is for .tflite files, and {arguments.model} is none")
    if not arguments.output.lower().endswith(".onnx"):
        raise RequestError(f"{arguments.output}: expected a name that ends in .onnx")
    goal = _goal(arguments, max_macs)
    check_measurable()
    graph = load_model(arguments.model, arguments.dim, arguments.shape)
    ladder = climb(arguments.model, graph, goal, progress)
    terminal.show([_rungs(arguments, ladder), *_verdict(arguments, ladder, goal)])
    if ladder.chosen is None:
        return 1
    if ladder.chosen.model is None:
        return 0
    _copy_data(ladder.chosen.model, arguments.model, arguments.output)
    files.write(arguments.output, ladder.chosen.model)
    return 0


def _goal(arguments: Namespace, max_macs: float | None) -> Any:
    from modelplan.rewriting.striped_onnx.ladder import OnnxGoal
    from modelplan.runtimes.ort.measuring import SessionSettings

    if not arguments.least and arguments.budget is None:
        raise RequestError("--budget BYTES or --least has to say what to fit")
    threads = 1 if arguments.threads is None else arguments.threads
    if not 1 <= threads <= 1024:
        raise RequestError(f"--threads is {threads}, expected 1 to 1024")
    tolerance = arguments.tolerance or 0.0
    if not 0 <= tolerance < float("inf"):
        raise RequestError(f"--tolerance is {arguments.tolerance}, expected a number from 0 on")
    settings = SessionSettings(level=arguments.ort_level or "all", threads=threads)
    fixed = set()
    if arguments.arena:
        settings, fixed = replace(settings, arena=arguments.arena), {"arena"}
    if arguments.pattern:
        settings = replace(settings, pattern=arguments.pattern == "on")
        fixed.add("pattern")
    budget = None if arguments.least else parse_bytes(arguments.budget)
    without = frozenset(word.strip() for word in arguments.without.split(",") if word.strip())
    goal = OnnxGoal(budget=budget, settings=settings, fixed=frozenset(fixed), tolerance=tolerance, without=without)
    return goal if max_macs is None else replace(goal, max_macs=max_macs)


def _rungs(arguments: Namespace, ladder: Any) -> Section:
    """The rungs with what each needs and costs."""
    headings = ("rung", ">usual: first", ">later runs", ">best: first", ">later runs", ">MACs", ">time", ">nodes",
                "best settings")  # fmt: skip
    rows = tuple(
        (
            rung.name + " *" * (rung is ladder.chosen),
            f"{rung.usual.first:,}", f"{rung.usual.steady:,}", f"{rung.best.first:,}", f"{rung.best.steady:,}",
            f"{100 * (rung.macs - ladder.macs) / max(ladder.macs, 1):+.1f} %", f"x {rung.seconds:.2f}", f"{rung.nodes}",
            rung.settings.described(),
        )
        for rung in ladder.rungs
    )  # fmt: skip
    from modelplan.runtimes.ort.measuring import ort_version

    level, threads = arguments.ort_level or "all", arguments.threads or 1
    lines = (
        f"measured on ONNX Runtime {ort_version()}, optimization level {level}, threads: {threads}",
        "bytes of a run above what the loaded session of the model needs; weights and inputs are not among them",
        "what the session of a new file needs more than that, such as weights packed for each stripe, is",
    )
    return Section(f"{arguments.model}: rungs", lines, Table(headings, rows))


def _verdict(arguments: Namespace, ladder: Any, goal: Any) -> list[Section]:
    """What was chosen, what it changes, and the settings to paste."""
    lines = []
    rung = ladder.chosen
    if rung is None:
        lines.append(
            f"nothing fits in {human(goal.budget)}; the least that was found is {human(ladder.least.best.peak)}"
        )
    else:
        lines += [f"stripes        {line}" for line in rung.regions]
        if rung.model is None:
            lines.append(f"nothing is written: {arguments.model} is the file to use, at these settings")
        else:
            lines.append(f"changes        {rung.what}")
            if rung.difference is not None:
                lines.append(f"checked        {rung.difference.described()}")
            lines.append(f"written to     {arguments.output}")
    lines += [f"remark         {remark}" for remark in ladder.remarks]
    sections = [Section("", tuple(lines))]
    if rung is not None:
        file = arguments.output if rung.model else arguments.model
        sections += [
            Section("Python", commands=tuple(python_settings(rung.settings, file))),
            Section("C++", commands=tuple(cpp_settings(rung.settings, file))),
        ]
    return sections


def python_settings(settings: Any, model: str) -> list[str]:
    """The settings as lines of Python."""
    lines = ["options = onnxruntime.SessionOptions()"]
    level = _LEVELS[settings.level]
    lines.append(f"options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.{level}")
    lines.append(f"options.intra_op_num_threads = {settings.threads}")
    if settings.arena == "off":
        lines.append("options.enable_cpu_mem_arena = False")
    if settings.arena == "exact":
        lines += [
            "arena = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR",
            'memory = onnxruntime.OrtMemoryInfo("Cpu", arena, 0, onnxruntime.OrtMemType.DEFAULT)',
            "onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg(0, 1, -1, -1))",
            'options.add_session_config_entry("session.use_env_allocators", "1")',
        ]
    if not settings.pattern:
        lines.append("options.enable_mem_pattern = False")
    if settings.order == "priority":
        lines.append("options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED")
    lines.append(f"session = onnxruntime.InferenceSession({model!r}, options, providers=['CPUExecutionProvider'])")
    if settings.shrink:
        lines += [
            "run = onnxruntime.RunOptions()",
            'run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")  # give it to session.run',
        ]
    return lines


def cpp_settings(settings: Any, model: str) -> list[str]:
    """The settings as lines of C++."""
    level = _LEVELS[settings.level]
    lines = [
        "Ort::Env env;",
        "Ort::SessionOptions options;",
        f"options.SetGraphOptimizationLevel(GraphOptimizationLevel::{level});",
    ]
    lines.append(f"options.SetIntraOpNumThreads({settings.threads});")
    if settings.arena == "off":
        lines.append("options.DisableCpuMemArena();")
    if settings.arena == "exact":
        lines += [
            "Ort::ArenaCfg arena(0, 1, -1, -1);",
            "env.CreateAndRegisterAllocator(Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault), arena);",
            'options.AddConfigEntry("session.use_env_allocators", "1");',
        ]
    if not settings.pattern:
        lines.append("options.DisableMemPattern();")
    if settings.order == "priority":
        lines.append("// the priority-based order can be chosen in Python only")
    lines.append(f"Ort::Session session(env, {json.dumps(model, ensure_ascii=False)}, options);")
    if settings.shrink:
        lines += [
            "Ort::RunOptions run;",
            'run.AddConfigEntry("memory.enable_memory_arena_shrinkage", "cpu:0");  // give it to session.Run',
        ]
    return lines


def _copy_data(model: bytes, source: str, target: str) -> None:
    """Puts the files in which a model keeps its weights beside the new file, where they are not there already.

    Raises:
        ModelError: such a file is missing or lies outside of the model's folder.
        RequestError: another file of this name is there.
    """
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
