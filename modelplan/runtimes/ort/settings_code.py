"""The settings of a session as lines of Python."""

from __future__ import annotations

from modelplan.runtimes.ort.measuring import SessionSettings

#: What ONNX Runtime calls its optimization levels.
LEVEL_NAMES = {
    "disable": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}  # fmt: skip


def python_settings(settings: SessionSettings, model: str) -> list[str]:
    """The settings as lines of Python."""
    lines = ["options = onnxruntime.SessionOptions()"]
    level = LEVEL_NAMES[settings.level]
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
