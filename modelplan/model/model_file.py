"""A model file, and what it runs on."""

from __future__ import annotations

from dataclasses import dataclass

from modelplan.model.graph import Graph
from modelplan.model.runtime_facts import Runtime

#: No microcontroller has addresses of 64 bits.
USUAL_ABI = "32"


@dataclass(frozen=True, slots=True)
class Target:
    """A runtime, the name of the ABI that it is built for, and the options that tell `reorder` of the runtime."""

    runtime: Runtime
    abi: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file: its path, its content, the graph in it."""

    path: str
    content: bytes
    graph: Graph
