"""A model computed stripe by stripe, as steps over values, whatever format it is written in.

The values of a program are the tensors of its graph and, behind them, those that the rewrite adds. Each format has
steps and a program of its own that say more.
"""

from dataclasses import field
from typing import Generic, TypeVar

from modelplan.model import Graph
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class StripedStep:
    """One operator; `source` is the one of the graph that it carries out, -1 where the rewrite adds it."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    source: int = -1

    @property
    def reads(self) -> tuple[int, ...]:
        """Distinct values read, absent ones left out."""
        return tuple(dict.fromkeys(t for t in self.inputs if t >= 0))


@dataclass(frozen=True, slots=True)
class AddedValue:
    """A value that the rewrite adds: the tensor of the graph whose type and quantisation it has, and its shape.

    A constant holds `numbers` instead; it and what is no map have a `dtype` of their own. A `variable` has memory
    without being written. With `part` it is a part of a constant: the axis along which it is taken, its first index
    there and the one behind its last.
    """

    name: str
    tensor: int
    shape: tuple[int, ...]
    numbers: tuple[int, ...] | None = None
    dtype: str = "int32"
    variable: bool = False
    part: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class HeldRows:
    """The value in which rows [lo, hi) of a map along `axis` stand."""

    value: int
    axis: int
    lo: int
    hi: int


StepT = TypeVar("StepT", bound=StripedStep)


@dataclass
class StripedProgram(Generic[StepT]):
    """Steps in the order in which they run, and the values that were added."""

    graph: Graph
    added: list[AddedValue] = field(default_factory=list)
    steps: list[StepT] = field(default_factory=list)

    def add(self, value: AddedValue) -> int:
        """Adds a value and returns its number."""
        self.added.append(value)
        return len(self.graph.tensors) + len(self.added) - 1

    def shape(self, value: int) -> tuple[int, ...]:
        """The extents of a value."""
        count = len(self.graph.tensors)
        return self.graph.tensors[value].shape if value < count else self.added[value - count].shape

    def name(self, value: int) -> str:
        """The name of a value, empty where an operand is absent."""
        count = len(self.graph.tensors)
        if value < 0:
            return ""
        return self.graph.tensors[value].name if value < count else self.added[value - count].name
