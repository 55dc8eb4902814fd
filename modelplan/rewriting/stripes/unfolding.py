"""Convolutions whose padding is done once for each row: the maps between them are kept with their borders on.

conv -> map -> PAD -> padded map -> conv (VALID)        a convolution reads rows of the padded map as they stand
                         |-> SLICE -> map again -> ADD  who reads the map itself gets its rows cut out
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from modelplan.model import Graph, Op, Tensor
from modelplan.rewriting.stripes.windows import Layer


@dataclass(frozen=True)
class Unfolded:
    """A graph with the operators of a region, those that pad and cut in between, and what the new tensors stand for.

    New operators and tensors stand behind those of the graph. `origin` is the map that a new tensor has the type of.
    """

    graph: Graph
    ops: tuple[int, ...]
    layers: dict[int, Layer]
    origin: dict[int, int]


def unfolded(
    graph: Graph, ops: tuple[int, ...], layers: Mapping[int, Layer], pad: frozenset[int], axis: int
) -> Unfolded:
    """A region in which every map that operators of `pad` read is padded as soon as it is made.

    Maps that leave the region, or that are padded in more than one way, stay as they are.
    """
    work = _Unfolding(graph, ops, dict(layers), pad, axis)
    for op in ops:
        work.follow(op)
    return Unfolded(
        replace(graph, tensors=tuple(work.tensors), ops=tuple(work.ops)), tuple(work.sequence), work.layers, work.origin
    )


class _Unfolding:
    def __init__(
        self, graph: Graph, ops: tuple[int, ...], layers: dict[int, Layer], pad: frozenset[int], axis: int
    ) -> None:
        self.graph, self.region, self.layers, self.pad, self.axis = graph, frozenset(ops), layers, pad, axis
        self.tensors, self.ops = list(graph.tensors), list(graph.ops)
        self.sequence = list(ops)
        self.origin: dict[int, int] = {}

    def follow(self, op: int) -> None:
        """Pads what an operator makes, if operators of the region read it padded."""
        y = self.graph.ops[op].outputs[0]
        readers = self.graph.readers[y]
        if y in self.graph.outputs or not set(readers) <= self.region:
            return
        margins = {self._margins(r) for r in readers if self._pads(r, y)}
        if len(margins) != 1:
            return
        (margin,) = margins
        shape = tuple(n + sum(pair) for n, pair in zip(self.tensors[y].shape, margin, strict=True))
        if prod(shape[: self.axis]) != 1:
            return
        padded = self._tensor(y, f"{self.tensors[y].name}/padded", shape)
        self._insert(self._pad(y, padded, margin), self.sequence.index(op) + 1)
        others = [r for r in readers if not self._pads(r, y)]
        if others:
            again = self._tensor(y, f"{self.tensors[y].name}/again", self.tensors[y].shape)
            self._insert(self._cut(padded, again, margin), min(self.sequence.index(r) for r in others))
        for r in readers:
            self._reads(r, y, padded if self._pads(r, y) else again)

    def _pads(self, reader: int, y: int) -> bool:
        layer = self.layers[reader]
        return reader in self.pad and layer.bordered and layer.paddable and self.ops[reader].inputs[0] == y

    def _margins(self, reader: int) -> tuple[tuple[int, int], ...]:
        layer = self.layers[reader]
        below = (layer.rows_out - 1) * layer.stride + layer.reach - layer.above - layer.rows_in
        pairs = [(0, 0)] * 4
        pairs[self.axis], pairs[3 - self.axis] = (layer.above, max(below, 0)), layer.across
        return tuple(pairs)

    def _tensor(self, y: int, name: str, shape: tuple[int, ...]) -> int:
        self.tensors.append(Tensor(name, shape, self.tensors[y].dtype))
        self.origin[len(self.tensors) - 1] = y
        return len(self.tensors) - 1

    def _insert(self, found: tuple[Op, Layer], position: int) -> None:
        self.ops.append(found[0])
        self.layers[len(self.ops) - 1] = found[1]
        self.sequence.insert(position, len(self.ops) - 1)

    def _pad(self, y: int, padded: int, margin: tuple[tuple[int, int], ...]) -> tuple[Op, Layer]:
        numbers = tuple(n for pair in margin for n in pair)
        rows, above = self.tensors[y].shape[self.axis], margin[self.axis][0]
        layer = Layer("pad", (0,), rows, rows + sum(margin[self.axis]), above=above)
        return Op("pad", "PAD", (y, -1), (padded,), (("operand 1", numbers),)), layer

    def _cut(self, padded: int, again: int, margin: tuple[tuple[int, int], ...]) -> tuple[Op, Layer]:
        rows, above = self.tensors[again].shape[self.axis], margin[self.axis][0]
        layer = Layer("cut", (0,), rows + sum(margin[self.axis]), rows, above=-above)
        begin = tuple(pair[0] for pair in margin)
        return Op("cut", "SLICE", (padded, -1, -1), (again,), (("operand 1", begin),)), layer

    def _reads(self, reader: int, old: int, new: int) -> None:
        op = self.ops[reader]
        attributes = op.attributes
        if self._pads(reader, old):
            attributes = tuple((k, "VALID" if k == "padding" else v) for k, v in attributes)
            layer = self.layers[reader]
            rows = layer.rows_in + sum(self._margins(reader)[self.axis])
            self.layers[reader] = replace(layer, rows_in=rows, above=0, own=False, across=(0, 0))
        inputs = tuple(new if t == old else t for t in op.inputs)
        self.ops[reader] = replace(op, inputs=inputs, attributes=attributes)
