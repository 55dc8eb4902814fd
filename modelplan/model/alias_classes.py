"""Which tensors share memory: classes that become one buffer each, and the reason for every merge."""

from __future__ import annotations

from collections.abc import Sequence

from modelplan.model.graph import Graph
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """A tensor inside a buffer, `delta` bytes after the buffer's start."""

    tensor: int
    delta: int = 0


@dataclass(frozen=True, slots=True)
class Merge:
    """Tensor `tensor` shares the memory of tensor `into` at op `op`, by `rule`, which saves `saved` bytes."""

    tensor: int
    into: int
    op: int
    rule: str
    saved: int


@dataclass(frozen=True, slots=True)
class Offer:
    """Op `op` may write tensor `tensor` over tensor `over`, `rule` says why, if nothing reads `over`'s class later."""

    op: int
    tensor: int
    over: int
    rule: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """While op `op` runs, tensor `tensor` may reach into the bytes of tensor `over` if it starts `lead` bytes before.

    At least `lead` bytes: the more, the fewer are shared. `rule` says why; `declared`: no table
    knows it, the caller answers for it.
    """

    op: int
    tensor: int
    over: int
    lead: int
    rule: str
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Aliases:
    """Which tensors share memory: each class becomes one buffer, each merge is the reason for one shared tensor.

    `offers` are the merges that depend on the order; they are taken or left once it is known.
    """

    classes: tuple[tuple[Member, ...], ...]
    merges: tuple[Merge, ...] = ()
    offers: tuple[Offer, ...] = ()

    @property
    def class_of(self) -> dict[int, int]:
        """The class of each tensor that has memory."""
        return {m.tensor: number for number, members in enumerate(self.classes) for m in members}


def class_bytes(graph: Graph, members: Sequence[Member]) -> int:
    """Bytes from the start of a class to the end of its last member, before padding."""
    return max(m.delta + graph.sizes[m.tensor] for m in members)
