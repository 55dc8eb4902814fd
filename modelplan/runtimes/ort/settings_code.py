"""The settings of a session as lines of Python and of C++."""

from __future__ import annotations

import json

from modelplan.runtimes.ort.measuring import SessionSettings

#: What ONNX Runtime calls its optimization levels.
_LEVELS = {
    "disable": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}  # fmt: skip


def python_settings(settings: SessionSettings, model: str) -> list[str]:
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


def cpp_settings(settings: SessionSettings, model: str) -> list[str]:
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
