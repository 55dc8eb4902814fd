"""The plan that becomes C: where each value lies in the buffer, and the steps that compute all rows in order.

A value is a run of bytes in memory, front to back: row after row. A held value has room for all of its bytes. A sliding
value has room for some, and `ValueShift` moves those that are still read to its front. Addresses count from the
beginning of the buffer. Whatever a step reads or writes is named by its address, so that a plan is checked by itself.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class StoredValue:
    """Bytes [offset, offset + capacity) of the buffer, which hold a value of `nbytes` or a part of it at a time.

    `tensors` are the numbers of those that are the same bytes: the first is computed or fed, the others are views.
    A `variable` keeps its bytes from one run to the next.
    """

    tensors: tuple[int, ...]
    nbytes: int
    capacity: int
    offset: int
    variable: bool = False

    @property
    def slides(self) -> bool:
        """Whether there is room for a part only."""
        return self.capacity < self.nbytes


@dataclass(frozen=True, slots=True)
class RowsRead:
    """What a kernel is handed of a dynamic operand: `rows` rows of `tensor` from row `first` on, at `address`.

    `above` rows of the window of the first computed row lie above the map, where nothing is stored. Of a tile `width`
    columns from column `left` on are there, and rows follow each other without others; 0: a row is there as a whole.
    """

    tensor: int
    value: int
    first: int
    rows: int
    above: int
    address: int
    left: int = 0
    width: int = 0


@dataclass(frozen=True, slots=True)
class RowsWritten:
    """What a kernel writes of a result: `rows` rows of `tensor` from row `first` on, at `address`."""

    tensor: int
    value: int
    first: int
    rows: int
    address: int


@dataclass(frozen=True, slots=True)
class KernelCall:
    """An operator of the graph, by number, computes some rows of its results.

    `reads` has an entry for each dynamic operand, in the order of the operator's inputs. `columns` are those
    computed [first, end) of a row; None: all of them. The address of a result is then that of its first computed
    column, and several rows are a tile; that of an operand stays that of column 0 unless it is a tile. `scratch` is the
    address of working memory, or -1.
    """

    operator: int
    reads: tuple[RowsRead, ...]
    writes: tuple[RowsWritten, ...]
    columns: tuple[int, int] | None = None
    scratch: int = -1


@dataclass(frozen=True, slots=True)
class ValueShift:
    """`memmove(to, address, nbytes)`: what is kept of a sliding value moves to its front."""

    value: int
    address: int
    to: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class RowsArrival:
    """The caller hands over the next `nbytes` bytes of an input, which are copied to `address`."""

    value: int
    address: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class StageChoice:
    """Operators order[first:end] of the graph run together, each row in `parts` parts at most; 0: all rows at once.

    A stage that runs `backward` computes the last rows first, so that its results grow downwards.
    """

    first: int
    end: int
    parts: int = 1
    backward: bool = False


@dataclass(frozen=True, slots=True)
class TileChain:
    """Operators, each of which reads what the one before makes; the last computes so many columns at a time."""

    operators: tuple[int, ...]
    width: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """Operators, each of which reads what the one before makes, run again: `reader` reads what the last one makes."""

    operators: tuple[int, ...]
    reader: int


@dataclass(frozen=True, slots=True)
class PlanChoices:
    """What all steps of a plan follow from, beside the model: stages, tiles, and where each group of values begins.

    `bases` are those of the values, then of the working memory of operators in the order in which they need it. `spare`
    has (operator, address) of working memory for faster kernels. `repeats` follow from each other in this order.
    `order` are the operators as they run, where that is not as the model has them.
    """

    stages: tuple[StageChoice, ...]
    chains: tuple[TileChain, ...]
    bases: tuple[int, ...]
    spare: tuple[tuple[int, int], ...] = ()
    repeats: tuple[Repeat, ...] = ()
    order: tuple[int, ...] = ()


Step: TypeAlias = KernelCall | ValueShift | RowsArrival


@dataclass(frozen=True, slots=True)
class Stage:
    """Operators that run together, row by row, and their steps. Between stages values are held whole.

    A stage of one operator is one call for each of its results' rows together.
    """

    operators: tuple[int, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class CProgram:
    """All of a plan: `nbytes` of buffer, of which no placement of the same rows needs less than `bound`.

    `inputs` and `outputs` are the values that hold those of the graph, in its order, -1 for constants. `pushed` says
    that the caller hands over the rows of the input one after the other. `scratch` are the bytes of working memory of
    operators, and `kernels` names the library that computes. `choices` are what it was made from, if it was made from
    any.
    """

    values: tuple[StoredValue, ...]
    stages: tuple[Stage, ...]
    nbytes: int
    bound: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    pushed: bool = False
    scratch: Mapping[int, int] = field(default_factory=dict)
    kernels: str = "portable"
    choices: PlanChoices | None = None

    @property
    def kept(self) -> tuple[int, ...]:
        """The values that somebody reads behind the last step: outputs, and what is remembered."""
        variables = (v for v, value in enumerate(self.values) if value.variable)
        return (*(v for v in self.outputs if v >= 0), *variables)
