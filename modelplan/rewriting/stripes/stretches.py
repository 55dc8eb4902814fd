"""Stretches of a model that are computed in stripes, a type for each strategy, and how their operators go by rows.

Neighbouring stripes both need some rows of the maps between their operators, the *halo*. Unrolled stripes keep it or
recompute it; a loop recomputes it in each iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from functools import cached_property
from typing import Generic, TypeVar

from modelplan.model import Graph
from modelplan.primitives import _core
from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, Layer


@dataclass(frozen=True, slots=True)
class StripedStretch:
    """Operators at positions [first, last] of an order, computed in stripes along `axis`.

    `cuts` are the borders of the stripes in rows of the last operator's output, from 0 to its height.
    """

    first: int
    last: int
    axis: int
    cuts: tuple[int, ...]

    @property
    def stripes(self) -> int:
        """The number of stripes."""
        return len(self.cuts) - 1

    def keeps_rows_of(self, op: int) -> bool:  # noqa: ARG002
        """Whether unrolled stripes keep rows that operator `op` makes for later ones that need them too."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrolledStripes(StripedStretch):
    """Each stripe has operators of its own.

    `pad` lists the operators whose input windows are padded explicitly; the others make rows too many. With `pad_early`
    maps are padded when they are made, not when they are read.
    """

    pad: frozenset[int] = frozenset()
    pad_early: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloStripes(UnrolledStripes):
    """Each stripe makes the rows of the result between two cuts.

    With `trim_late` rows too many are passed on to the next operator, which makes some more, instead of being cut off
    each time. With `backward` the last stripe comes first, which lets the result lie above the map it is made of.
    """

    trim_late: bool = False
    backward: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedHalo(HaloStripes):
    """Rows that two stripes need are recomputed for the second one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptHalo(HaloStripes):
    """Rows that two stripes need are kept, but for those that operators of `recomputed` make.

    Operators of `untrimmed` read the rows too many of their operand and make some more, which saves the operator that
    would cut these rows off.
    """

    recomputed: frozenset[int] = frozenset()
    untrimmed: frozenset[int] = frozenset()

    def keeps_rows_of(self, op: int) -> bool:
        return op not in self.recomputed


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingStripes(UnrolledStripes):
    """`cuts` are rows of the first operator's output, and the others make what they can as soon as they can.

    Each operator goes at its own rate, but a branch may wait for the other one of a sum; rows that are needed again are
    kept.
    """

    def keeps_rows_of(self, op: int) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopedStripes(StripedStretch):
    """The body of a loop makes one stripe after the other, all as high as the first.

    Where `columns` is not 0 it makes tiles of so many columns. `trim_late` as in unrolled stripes.
    """

    trim_late: bool = False
    columns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryingLoop(StripedStretch):
    """The body of a loop makes stripes of one height, and keeps rows of the maps inside for the next iteration.

    Each operator follows the one before as closely as its window allows; nothing is made twice but at the map's end.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelBlocks(StripedStretch):
    """All operators make some of their channels, then the next ones: `axis` is the last one, `cuts` are channels.

    The stretch begins with operators that read maps whole. All others make a channel of the same one of their operands,
    so that nothing is made twice.
    """


Strategy = TypeVar("Strategy", bound=StripedStretch)
StrategyT = TypeVar("StrategyT", bound=StripedStretch, covariant=True)


def even_cuts(height: int, stripes: int) -> tuple[int, ...]:
    """Borders of so many stripes of about the same height."""
    return tuple(height * i // stripes for i in range(stripes + 1))


def as_strategy(stretch: StripedStretch, strategy: type[Strategy], **changes: object) -> Strategy:
    """The operators and cuts of a stretch in another strategy, with all that both strategies state."""
    pair = type(stretch), strategy
    if pair not in _STATED:
        _STATED[pair] = {f.name for f in fields(stretch)} & {f.name for f in fields(strategy)}
    return strategy(**{name: getattr(stretch, name) for name in _STATED[pair]} | changes)


#: What two strategies both state.
_STATED: dict[object, set[str]] = {}


@dataclass
class KnownOfStretch:
    """What was found out about the operators of a stretch, however it is cut; prices with whose they are.

    `stretch` is what the core was told, `unsplit` are multiply-accumulates and nanoseconds of the operators as they
    are, `tiled` the layers along both axes.
    """

    stretch: _core.Stretch | None = None
    prices: tuple[object, _core.StripePrices] | None = None
    unsplit: tuple[int, float] | None = None
    tiled: LoopLayers | None = None


@dataclass(frozen=True)
class StretchLayers(Generic[StrategyT]):
    """A stretch with how the rows of its operators depend on each other: its operators, their layers, its results.

    `inner` are the maps that the stretch makes, `exits` those of them that are read behind it. `across` are the layers
    along the other axis, where that is cut too. `axes` are the axes of the rows of the values that are not cut along
    the stretch's.

    Where maps are padded early the graph has tensors and operators of its own behind those of the model; `origin` maps
    those tensors to the maps whose type they have.
    """

    graph: Graph
    stretch: StrategyT
    ops: tuple[int, ...]
    layers: dict[int, Layer]
    inner: frozenset[int]
    exits: frozenset[int]
    origin: dict[int, int] = field(default_factory=dict)
    across: dict[int, Layer] = field(default_factory=dict)
    axes: dict[int, int] = field(default_factory=dict)
    known: KnownOfStretch = field(default_factory=KnownOfStretch, compare=False, repr=False)

    @cached_property
    def kept(self) -> frozenset[int]:
        """The maps of the stretch whose rows are kept for the next stripe, as those of its results are."""
        producers = {t: self.graph.producers[self.origin.get(t, t)] for t in self.inner}
        return self.exits | {t for t, op in producers.items() if self.stretch.keeps_rows_of(op)}

    def axis_of(self, t: int) -> int:
        """The axis of the rows of a value."""
        return self.axes.get(t, self.stretch.axis)

    def height(self, t: int) -> int:
        """How many rows a value has."""
        return self.graph.tensors[t].shape[self.axis_of(t)]

    def is_read_later(self, t: int) -> bool:
        """Whether a value is an output of the model or read behind the stretch."""
        later = (r not in self.layers and r > self.ops[-1] for r in self.graph.readers[t])
        return t in self.graph.outputs or any(later)

    def row_operands(self, op: int) -> list[int]:
        """The values that an operator reads row by row."""
        return self._row_operands[op]

    @cached_property
    def _row_operands(self) -> dict[int, list[int]]:
        return {op: [self.graph.ops[op].inputs[at] for at in layer.operands] for op, layer in self.layers.items()}

    def output(self, op: int) -> int:
        """The value that an operator makes."""
        return self.graph.ops[op].outputs[0]

    def ends(self) -> tuple[tuple[int, ...], int]:
        """The maps that enter a stretch which a loop computes, and the one that leaves it.

        Raises:
            IllegalStripeError: no map enters it, not one map leaves it, or maps have not four axes and rows along one.
        """
        result = self.output(self.ops[-1])
        entries = tuple(dict.fromkeys(t for op in self.ops for t in self.row_operands(op) if t not in self.inner))
        if self.exits != {result} or not entries:
            raise IllegalStripeError("a loop needs one map that leaves it")
        if any(len(self.graph.tensors[t].shape) != 4 for t in (*entries, *self.inner)):
            raise IllegalStripeError("a loop needs maps of four axes")
        if self.axes:
            raise IllegalStripeError("a loop needs rows along the same axis of all maps")
        return entries, result

    def row_bytes(self, t: int) -> int:
        """Bytes of a row of a value."""
        return self.graph.tensors[t].nbytes // self.height(t)

    def as_stretch(self, stretch: Strategy) -> StretchLayers[Strategy]:
        """The same operators and layers with another way to cut them."""
        maps = self.inner, self.exits, self.origin, self.across, self.axes
        return StretchLayers(self.graph, stretch, self.ops, self.layers, *maps, self.known)


AnyLayers = StretchLayers[StripedStretch]
UnrolledLayers = StretchLayers[UnrolledStripes]
LoopLayers = StretchLayers[LoopedStripes]
CarryingLayers = StretchLayers[CarryingLoop]
BlockLayers = StretchLayers[ChannelBlocks]


def with_ends(
    graph: Graph,
    stretch: Strategy,
    layers: Mapping[int, Layer],
    *,
    origin: Mapping[int, int] | None = None,
    across: Mapping[int, Layer] | None = None,
    axes: Mapping[int, int] | None = None,
) -> StretchLayers[Strategy]:
    """The layers of a stretch, in their order, with the maps that it makes and those that leave it."""
    computed = frozenset(graph.ops[op].outputs[0] for op in layers)
    exits = frozenset(t for t in computed if t in graph.outputs or not layers.keys() >= set(graph.readers[t]))
    more = dict(origin or {}), dict(across or {}), dict(axes or {})
    return StretchLayers(graph, stretch, tuple(layers), dict(layers), computed, exits, *more)
