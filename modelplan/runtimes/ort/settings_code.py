"""The settings of a session as lines of Python and of C++."""

import json
from collections.abc import Iterator

from modelplan.runtimes.ort.measuring import SessionSettings

#: What ONNX Runtime calls its optimization levels.
_LEVELS = {
    "disable": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}  # fmt: skip


def python_settings(settings: SessionSettings, model: str) -> list[str]:
    """The settings as lines of Python."""
    return [line for python, _ in _pieces(settings, model) for line in python]


def cpp_settings(settings: SessionSettings, model: str) -> list[str]:
    """The settings as lines of C++."""
    return [line for _, cpp in _pieces(settings, model) for line in cpp]


def _pieces(settings: SessionSettings, model: str) -> Iterator[tuple[list[str], list[str]]]:
    """Piece by piece what sets a session up, as lines of Python and of C++."""
    level = _LEVELS[settings.level]
    yield ["options = onnxruntime.SessionOptions()"], ["Ort::Env env;", "Ort::SessionOptions options;"]
    yield (
        [f"options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.{level}"],
        [f"options.SetGraphOptimizationLevel(GraphOptimizationLevel::{level});"],
    )
    yield from _option_pieces(settings)
    yield (
        [f"session = onnxruntime.InferenceSession({model!r}, options, providers=['CPUExecutionProvider'])"],
        [f"Ort::Session session(env, {json.dumps(model, ensure_ascii=False)}, options);"],
    )
    if not settings.keep_outputs:
        yield (
            ["# let go of what session.run returned before the next run, as by `del outputs`"],
            ["// let go of what session.Run returned before the next run, or bind outputs of the program's own"],
        )
    if settings.shrink:
        shrink = '"memory.enable_memory_arena_shrinkage", "cpu:0"'
        yield (
            ["run = onnxruntime.RunOptions()", f"run.add_run_config_entry({shrink})  # give it to session.run"],
            ["Ort::RunOptions run;", f"run.AddConfigEntry({shrink});  // give it to session.Run"],
        )


def _option_pieces(settings: SessionSettings) -> Iterator[tuple[list[str], list[str]]]:
    """What sets threads, arena, pattern and order."""
    threads = settings.threads
    yield [f"options.intra_op_num_threads = {threads}"], [f"options.SetIntraOpNumThreads({threads});"]
    if settings.arena == "off":
        yield ["options.enable_cpu_mem_arena = False"], ["options.DisableCpuMemArena();"]
    if settings.arena == "exact":
        python = [
            "arena = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR",
            'memory = onnxruntime.OrtMemoryInfo("Cpu", arena, 0, onnxruntime.OrtMemType.DEFAULT)',
            "onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg(0, 1, -1, -1))",
            'options.add_session_config_entry("session.use_env_allocators", "1")',
        ]
        cpp = [
            "Ort::ArenaCfg arena(0, 1, -1, -1);",
            "env.CreateAndRegisterAllocator(Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault), arena);",
            'options.AddConfigEntry("session.use_env_allocators", "1");',
        ]
        yield python, cpp
    if not settings.pattern:
        yield ["options.enable_mem_pattern = False"], ["options.DisableMemPattern();"]
    if settings.order == "priority":
        only = "// the priority-based order can be chosen in Python only"
        yield ["options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED"], [only]


def changed_options(settings: SessionSettings, usual: SessionSettings) -> list[str]:
    """The options of the command that turn the usual settings into these; level and threads are not among them."""
    values = {
        "--arena": (settings.arena, usual.arena),
        "--pattern": (_switched(settings.pattern), _switched(usual.pattern)),
        "--shrinkage": (_switched(settings.shrink), _switched(usual.shrink)),
        "--execution-order": (settings.order, usual.order),
    }
    return [f"{option} {value}" for option, (value, before) in values.items() if value != before]


def _switched(on: bool) -> str:  # noqa: FBT001
    return "on" if on else "off"
