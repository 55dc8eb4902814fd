"""Every combination of models and settings as a run; a run holds all that decides its row."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from itertools import product
from math import prod
from typing import NamedTuple

from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.version import __version__

#: The setting that leaves the choice to the runtime, the target or modelplan.
USUAL = "default"


@dataclass(frozen=True, slots=True)
class RunBlock:
    """A target as a run needs it: bytes of its largest block; ABI and kernels are empty where it names none."""

    name: str
    size: int
    abi: str = ""
    kernels: str = ""


class OpenInputs(NamedTuple):
    """What a file leaves open, as `load` takes it."""

    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunTable:
    """What is combined: paths of models, targets, and for each setting the names to try.

    `dims`, `shapes` and `values` hold for every model, as `load` takes them; `inputs` has those of single models.
    """

    models: tuple[str, ...]
    targets: tuple[RunBlock, ...] = ()
    runtimes: tuple[str, ...] = (USUAL,)
    kernels: tuple[str, ...] = (USUAL,)
    schedules: tuple[str, ...] = (USUAL,)
    aliases: tuple[str, ...] = (USUAL,)
    allocators: tuple[str, ...] = (USUAL,)
    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    inputs: Mapping[str, OpenInputs] = field(default_factory=dict)

    def __len__(self) -> int:
        settings = (self.runtimes, self.kernels, self.schedules, self.aliases, self.allocators)
        return prod(map(len, settings), start=len(self.models) * max(len(self.targets), 1))


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One model in one setting. `sha256` is that of the file, empty where it could not be read.

    Without a target `target` is empty and `target_bytes` None.
    """

    model: str
    sha256: str
    target: str
    target_bytes: int | None
    target_abi: str
    target_kernels: str
    runtime: str
    kernels: str
    schedule: str
    alias: str
    allocator: str
    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A digest of all that decides the row but the machine: the run, the file's content, modelplan's version."""
        words = json.dumps([__version__, asdict(self)], sort_keys=True)
        return hashlib.sha256(words.encode()).hexdigest()[:32]


def runs_of(table: RunTable, digests: Mapping[str, str]) -> Iterator[SweepRun]:
    """Every combination, all of a model together and its targets innermost; `digests` are the SHA-256 of the files."""
    settings = (table.runtimes, table.kernels, table.schedules, table.aliases, table.allocators)
    targets: Sequence[RunBlock | None] = table.targets or (None,)
    common = (table.dims, table.shapes, table.values)
    for model in table.models:
        own = table.inputs.get(model, OpenInputs())
        for (runtime, kernels, schedule, alias, allocator), block in product(product(*settings), targets):
            yield SweepRun(
                model,
                digests[model],
                block.name if block else "",
                block.size if block else None,
                block.abi if block else "",
                block.kernels if block else "",
                runtime,
                kernels,
                schedule,
                alias,
                allocator,
                *(every + single for every, single in zip(common, own, strict=True)),
            )
