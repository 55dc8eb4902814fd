"""The table of commands, in the groups in which they are listed, and the modes of a command that have own options."""

from collections.abc import Mapping

from modelplan.primitives.lazy_records import dataclass

#: Name and promise of every command by group. The module of its name is imported when it runs: `configure` declares the
#: arguments, `run` runs the command and returns the exit code.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "every day": {
        "analyze": "what a model needs: the number to declare, the peak, what would lower it (MODEL alone does it too)",
        "explain": "why it needs that: what keeps the peak up, and every change that would lower it, ranked",
        "fit": "rewrite a model so that it fits, with equal results; exit 0 or 1",
        "check": "do models keep their budgets, and what would make them fit? exit 0 or 1",
        "verify": "prove that a plan is safe, or name the operator that it breaks; exit 0 or 4",
        "diff": "two models, or one in two settings: what differs, in order of effect",
        "targets": "devices for --target, and what a linker script or a program leaves for the arena",
    },
    "several models, several memories": {
        "together": "several models in one arena: every model's place, and the saving; exit 0 or 1",
        "memories": "models in several memories (SRAM, PSRAM, TCM, flash): a region and an address for every buffer",
        "esphome": "the tensor arena in a wake word's manifest, enough for every ESP-NN; exit 0 or 1",
        "stream": "a model larger than memory: weights from a host, bandwidth and time",
    },
    "research": {
        "compare": "every allocator on a model or a problem: height, gap, time",
        "solve": "place the buffers of a CSV problem; drop-in for minimalloc's command line",
        "recompute": "what it saves to drop values and compute them again: a curve of bytes against work; exit 0 or 1",
        "sweep": "every combination of models, targets and settings on a cluster, one row each as Parquet",
        "report": "results of `sweep`: which target fits which model, and what became worse; exit 0 or 1",
        "allocators": "the table of allocators",
    },
    "this program": {
        "help": "a page of the manual such as `help tflm`, a word such as `help arena`, or a command's options",
        "schema": "the JSON Schema of a document that a command writes as JSON",
        "completion": "completion of commands, options and files for bash, zsh or fish",
    },
}


@dataclass(frozen=True, slots=True)
class Mode:
    """An option of a command that makes it another program with options of its own.

    `module` is what runs, with the words `first` before those of the caller. `value` is what the option takes, empty
    for a flag. The module's name was a command of its own.
    """

    command: str
    option: str
    value: str
    module: str
    promise: str
    first: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The command with the option."""
        return " ".join(filter(None, (self.command, self.option, self.value)))

    @property
    def spellings(self) -> tuple[tuple[str, ...], ...]:
        """The words by which a caller chooses it."""
        if not self.value:
            return ((self.option,),)
        return ((self.option, self.value), (f"{self.option}={self.value}",))

    @property
    def program(self) -> str:
        """What stands before the words that the module takes."""
        return f"{self.command} {self.option}" if self.first else self.name


MODES = (
    Mode("fit", "--only", "order", "reorder", "only the order of operators that needs the least memory"),
    Mode("fit", "--only", "plan", "pack", "only a plan for TFLM to obey, written into the .tflite file"),
    Mode("check", "--write", "budgets", "budget", "write what models need now into the budgets", ("budgets",)),
    Mode("check", "--write", "baseline", "budget", "write the figures for --baseline", ("baseline",)),
    Mode("memories", "--spill", "", "spill", "a memory that is too small: what leaves it when, and comes back"),
)

#: Name and promise of every command, in the order of the groups.
COMMANDS = {name: promise for group in GROUPS.values() for name, promise in group.items()}
#: Names of commands that are modes now, which still run.
RENAMED = tuple(dict.fromkeys(mode.module for mode in MODES))
_DRAW, _FIT = "analyze MODEL --draw picture.png", "fit MODEL --budget BYTES -o OUT"
#: What people call a command, and the command that does it.
SPOKEN = {
    **dict.fromkeys(("draw", "plot", "picture", "image", "map", "show", "visualize", "visualise"), _DRAW),
    **dict.fromkeys(("optimize", "optimise", "shrink", "reduce", "convert", "rewrite"), _FIT),
    **dict.fromkeys(("size", "info", "memory", "measure", "inspect", "profile", "plan"), "analyze MODEL"),
    **dict.fromkeys(("ci", "gate", "test", "assert"), "check MODEL --budget BYTES"),
    **dict.fromkeys(("board", "boards", "devices"), "targets"),
}
#: All modules of commands.
MODULES = (*COMMANDS, *RENAMED)
