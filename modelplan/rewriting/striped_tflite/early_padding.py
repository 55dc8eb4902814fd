"""Convolutions whose padding is done once for each row: the maps between them are kept with their borders on.

conv -> map -> PAD -> padded map -> conv (VALID)        a convolution reads rows of the padded map as they stand
                         |-> SLICE -> map again -> ADD  who reads the map itself gets its rows cut out
"""

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from modelplan.model import Graph, Op, Tensor
from modelplan.rewriting.stripes.row_windows import Layer
from modelplan.rewriting.stripes.stretches import UnrolledLayers, UnrolledStripes, with_ends


def padded_early(graph: Graph, stretch: UnrolledStripes, layers: Mapping[int, Layer]) -> UnrolledLayers:
    """The layers of a stretch in which every map that operators of its `pad` read is padded as soon as it is made.

    The operators that pad and cut, and their tensors, stand behind those of the graph. Maps that leave the stretch, or
    that are padded in more than one way, stay as they are.
    """
    work = _EarlyPadding(graph, stretch, dict(layers))
    for op in layers:
        work.follow(op)
    whole = replace(graph, tensors=tuple(work.tensors), ops=tuple(work.ops))
    return with_ends(whole, stretch, {op: work.layers[op] for op in work.sequence}, origin=work.origin)


class _EarlyPadding:
    def __init__(self, graph: Graph, stretch: UnrolledStripes, layers: dict[int, Layer]) -> None:
        self.graph, self.stretch, self.layers = graph, frozenset(layers), layers
        self.pad, self.axis = stretch.pad, stretch.axis
        self.tensors, self.ops = list(graph.tensors), list(graph.ops)
        self.sequence = list(layers)
        self.origin: dict[int, int] = {}

    def follow(self, op: int) -> None:
        """Pads what an operator makes, if operators of the stretch read it padded."""
        y = self.graph.ops[op].outputs[0]
        readers = self.graph.readers[y]
        if y in self.graph.outputs or not set(readers) <= self.stretch:
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

    def _insert(self, operator: tuple[Op, Layer], position: int) -> None:
        self.ops.append(operator[0])
        self.layers[len(self.ops) - 1] = operator[1]
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
