"""The rows of each map that each stripe of a stretch makes, reads and keeps, as the core finds them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import get_args

import numpy as np

from modelplan.model import IntArray
from modelplan.primitives import _core
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, InputWindow, Layer, LayerKind
from modelplan.rewriting.stripes.stretches import (
    AnyLayers,
    HaloStripes,
    RollingStripes,
    UnrolledLayers,
    UnrolledStripes,
)

_KINDS = {kind: number for number, kind in enumerate(get_args(LayerKind))}

#: How the core is told of a stretch's form: its cuts, operators that are padded explicitly and those whose rows are
#: kept, whether stripes are rolling and whether they run backward.
CoreForm = tuple[list[int], list[int], list[int], bool, bool]


@dataclass
class StripeRows:
    """What one stripe does: the rows of each map that readers see, the rows made, and the window of each operator."""

    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    computed: dict[int, tuple[int, int]] = field(default_factory=dict)
    windows: dict[int, InputWindow] = field(default_factory=dict)


def stripe_rows(base: UnrolledLayers) -> list[StripeRows]:
    """For each stripe the rows of each map that are seen and made, from the last operator backwards.

    Raises:
        IllegalStripeError: the rows do not come out in order, or a map is not made to its end.
    """
    answer = core_stretch(base).rows(*core_form(base.ops, base.stretch))
    if isinstance(answer, str):
        raise IllegalStripeError(answer)
    count, seen, computed, windows = answer
    stripes = [StripeRows() for _ in range(count)]
    for stripe, t, first, end in seen.reshape(-1, 4).tolist():
        stripes[stripe].seen[t] = first, end
    for stripe, t, first, end in computed.reshape(-1, 4).tolist():
        stripes[stripe].computed[t] = first, end
    for stripe, op, lo, hi, above, below, skip, computed_rows, padded in windows.reshape(-1, 9).tolist():
        stripes[stripe].windows[op] = InputWindow(lo, hi, above, below, skip, computed_rows, bool(padded))
    return stripes


def core_form(ops: tuple[int, ...], stretch: UnrolledStripes) -> CoreForm:
    """A stretch in stripes as the core takes it."""
    if not isinstance(stretch, HaloStripes | RollingStripes):
        raise TypeError(f"stripes of the unknown strategy {type(stretch).__name__}")
    kept = [op for op in ops if stretch.keeps_rows_of(op)]
    backward = isinstance(stretch, HaloStripes) and stretch.backward
    return list(stretch.cuts), list(stretch.pad), kept, isinstance(stretch, RollingStripes), backward


def core_stretch(base: AnyLayers) -> _core.Stretch:
    """The operators of a stretch and their maps as the core takes them, whichever way the stretch is cut."""
    if base.known.stretch is None:
        operators, maps, reads = map(_table, _columns(base))
        base.known.stretch = _core.Stretch(operators, maps, reads, _turned(base))
    return base.known.stretch


def layer_table(layers: Mapping[int, Layer], ops: Sequence[int]) -> IntArray:
    """How operators go by rows, as the core takes it."""
    return _table([tuple(_layer_row(layers[op])) for op in ops])


def _table(rows: list[tuple[int, ...]]) -> IntArray:
    return np.array(rows, dtype=np.int64).reshape(len(rows), -1 if rows else 3)


def _turned(base: AnyLayers) -> IntArray | None:
    """Rows of the operators, by place, that read rows along another axis of a map of four.

    Bytes of an element with its channels, how many there are along the other axis, and bytes behind each row.
    """
    rows, axis = list[tuple[int, ...]](), base.stretch.axis
    for at, op in enumerate(base.ops):
        places = base.layers[op].places
        x = base.graph.tensors[base.graph.ops[op].inputs[0]] if places else None
        if x and len(x.shape) == len(places) == 4 and axis in (1, 2):
            pixel = x.nbytes // (x.shape[places[1]] * x.shape[places[2]])
            room = x.nbytes // prod(x.shape[: places[axis] + 1])  # of planes the first makes room
            rows.append((at, pixel, x.shape[places[3 - axis]], room))
    return _table(rows) if rows else None


def _columns(base: AnyLayers) -> tuple[list[tuple[int, ...]], ...]:
    """Rows of operators, of maps, and of (operator, map, whether by rows), by their places in the first two."""
    graph, axis = base.graph, base.axis_of
    place = {op: at for at, op in enumerate(base.ops)}
    maps = list(dict.fromkeys(t for op in base.ops for t in (*base.row_operands(op), base.output(op))))
    number = {t: at for at, t in enumerate(maps)}
    operators, rows, reads = (list[tuple[int, ...]]() for _ in range(3))
    for op in base.ops:
        inputs = graph.ops[op].inputs
        first = number.get(inputs[0], -1) if inputs else -1
        operators.append((op, *_layer_row(base.layers[op]), number[base.output(op)], first))
        by_rows = base.layers[op].operands
        reads += [(place[op], number[t], at in by_rows) for at, t in enumerate(inputs) if t in number]
    for t in maps:
        shape = graph.tensors[t].shape
        height = base.height(t) if axis(t) < len(shape) else 1  # what enters may have fewer axes
        turned = any(base.layers[r].places for r in graph.readers[t] if r in base.layers)
        inner = t in base.inner
        maker, owner = (place.get(graph.producers[at], -1) if inner else -1 for at in (t, base.origin.get(t, t)))
        flags = inner, t in base.exits, base.is_read_later(t), turned
        columns = shape[3 - axis(t)] if len(shape) == 4 and axis(t) in (1, 2) else 1
        channels = shape[-1] if shape else 1
        rows.append((t, height, *flags, graph.tensors[t].nbytes // max(height, 1), columns, channels, maker, owner))
    return operators, rows, reads


def _layer_row(layer: Layer) -> Iterator[int]:
    yield from (_KINDS[layer.kind], layer.rows_in, layer.rows_out, layer.row_macs)
    yield from (layer.reach, layer.stride, layer.above, layer.own, layer.paddable, layer.blocks, sum(layer.across))
