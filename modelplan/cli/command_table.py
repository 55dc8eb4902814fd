"""The table of commands."""

#: Name and promise of every command; the module of its name is imported when it runs.
COMMANDS = {
    "analyze": "what the unmodified model needs: the number to declare, its parts, the peak, what would need less",
    "explain": "why a model needs what it needs: the peak, what keeps it up, and what would lower it, ranked",
    "diff": "two models, or one in two settings: arena by part, peak, operators that differ, in order of effect",
    "compare": "every allocator on a model or a problem: height, gap, time",
    "reorder": "a model file with its operators in the order that needs the least memory",
    "check": "do unmodified models keep their budgets, and which command would make them fit? exit 0 or 1",
    "budget": "write the budgets of a project, or a baseline of what its models need now, for `check`",
    "fit": "rewrite a model so that it fits: order, plan, settings, overlaps, stripes; exit 0 or 1",
    "together": "several models in one memory: every model's place in one arena, and the saving; exit 0 or 1",
    "memories": "models in several memories (SRAM, PSRAM, TCM, flash): a region and an address for every buffer",
    "spill": "a memory that is too small: what leaves it when, comes back when, and what that costs in bytes and time",
    "stream": "a model larger than memory: weights from a host, the curve of memory, bandwidth and time",
    "pack": "write a plan into a .tflite file for TFLM to obey; before and after",
    "verify": "prove that a plan is safe, or name the operator that it breaks; exit 0 or 4",
    "recompute": "what it saves to drop values and compute them again: a curve of bytes against work; exit 0 or 1",
    "sweep": "every combination of models, targets and settings on a cluster, one row each as Parquet",
    "report": "results of `sweep`: which target fits which model, settings by bytes and time, regressions; exit 0 or 1",
    "solve": "place the buffers of a CSV problem; drop-in for minimalloc's command line",
    "schema": "the JSON Schema of a document that a command writes as JSON",
    "help": "a page of the manual, such as `modelplan help tflm`, or the options of a command",
    "completion": "completion of commands, options and files for bash, zsh or fish",
    "allocators": "the table of allocators",
    "targets": "the table of devices for --target, and what a linker script or a program leaves for the arena",
}
