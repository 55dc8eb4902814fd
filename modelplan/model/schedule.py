"""Orders of the operators: what decides the peak of one, an order with its bound, and the proof of the bound."""

from __future__ import annotations

from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes that an order keeps alive from the first of `writers` to the last of `readers` (ops).

    `from_start`: alive before any op runs; `to_end`: alive after the last.
    """

    size: int
    writers: tuple[int, ...]
    readers: tuple[int, ...]
    from_start: bool = False
    to_end: bool = False


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Op `op` may write storage `to` over storage `over` when that dies there, which saves `saved` bytes."""

    op: int
    over: int
    to: int
    saved: int


@dataclass(frozen=True, slots=True)
class OrderProblem:
    """All that decides the peak of an order: storages, bytes of scratch by op, and the overwrites that are allowed.

    `edges` are pairs (before, after) of ops that an order has to keep.
    """

    ops: int
    storages: tuple[Storage, ...]
    scratch: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    overwrites: tuple[Overwrite, ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """`amount` bytes of flow from op `source` to op `sink` through storage `storage`.

    Storage -1 is a precedence: any amount may pass from an op back to its predecessor. Source -1 is the graph's
    input, sink -1 its output.
    """

    source: int
    sink: int
    storage: int
    amount: int


@dataclass(frozen=True, slots=True)
class FlowCase:
    """One way for the critical op to run: the storages `dying` are overwritten there, which saves `saved` bytes."""

    dying: tuple[int, ...]
    saved: int
    flow: tuple[Transfer, ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """Every order has at least `bytes` in use while `op` runs, whichever case applies.

    Op -1 stands for the time before the first op or after the last, whichever holds more; it needs no flow.
    """

    op: int = -1
    bytes: int = 0
    cases: tuple[FlowCase, ...] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """An execution order: `order[step]` is an op index.

    `peak` is the most bytes alive at once in this order; `lower_bound` holds for every order of the graph;
    `method` names who found the order and `proof` what the bound rests on. `witness` proves its part of the
    bound to a checker that knows nothing of the search.
    """

    order: tuple[int, ...]
    peak: int
    lower_bound: int
    method: str
    proof: str = ""
    witness: Witness = Witness()

    @property
    def optimal(self) -> bool:
        """Whether no order has a lower peak."""
        return self.peak == self.lower_bound

    @property
    def gap(self) -> float:
        """How far the peak is above the bound, as a share of the bound."""
        return (self.peak - self.lower_bound) / self.lower_bound if self.lower_bound else 0.0
