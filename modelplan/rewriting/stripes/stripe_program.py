"""A model computed stripe by stripe, as steps over values, whatever format it is written in.

The values of a program are the tensors of its graph and, behind them, those that the rewrite adds. Each format has
steps and a program of its own that say more.
"""

from abc import ABC, abstractmethod
from dataclasses import field
from typing import Generic, TypeVar

from modelplan.model import Graph
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, InputWindow
from modelplan.rewriting.stripes.stretches import UnrolledLayers
from modelplan.rewriting.stripes.stripe_rows import StripeRows, stripe_rows


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


class StripeLowering(ABC):
    """Appends the operators of a stretch in stripes to a program, in the order in which they run.

    `held` are the values in which rows of maps stand that later operators and stripes read, `pieces` the stripes of
    each result. `number` and `rows` are those of the present stripe.
    """

    def __init__(self, base: UnrolledLayers) -> None:
        self.base, self.graph = base, base.graph
        self.held: dict[int, HeldRows] = {}
        self.pieces: dict[int, list[HeldRows]] = {t: [] for t in base.exits}
        self.number, self.rows = 0, StripeRows()

    def append(self) -> None:
        """Appends all stripes.

        Raises:
            IllegalStripeError: the stretch has no stripes of this form.
        """
        for number, rows in enumerate(stripe_rows(self.base)):
            self.number, self.rows = number, rows
            self.begin_stripe()
            for op in self.base.ops:
                if op in rows.windows:
                    self.append_operator(op, rows.windows[op])

    @abstractmethod
    def begin_stripe(self) -> None:
        """Called before the operators of a stripe are appended."""

    @abstractmethod
    def append_operator(self, index: int, window: InputWindow) -> None:
        """Appends an operator on its rows of this stripe, with what cuts and joins them."""

    def kept_rows(self, t: int, lo: int, hi: int) -> HeldRows:
        """The value that holds rows [lo, hi) of a map since stripes before.

        Raises:
            IllegalStripeError: they are gone.
        """
        held = self.held.get(t)
        if held is None or held.lo > lo or held.hi < hi:
            name = self.graph.tensors[t].name
            raise IllegalStripeError(f"stripe {self.number} needs row {lo} of {name!r}, which is gone")
        return held

    def shape_of(self, t: int, axis: int, rows: int) -> tuple[int, ...]:
        """The shape of so many rows of a map."""
        shape = self.graph.tensors[t].shape
        return (*shape[:axis], rows, *shape[axis + 1 :])
