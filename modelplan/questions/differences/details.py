"""What differs between two operators that are one by structure, in words; what of it is their own and what follows.

A shape follows where what the operator reads has another shape too. A shape of weights follows where its extents change
as those of what the operator reads do. Small constants and options that hold extents follow where they change as the
extents of the result do. A type and a quantisation follow where the operator hands on those of what it reads. Bodies
that operators run are compared operator by operator.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import zip_longest

from modelplan.formats.model_contents import Quantisation
from modelplan.model import Graph, Kind, Tensor, Value
from modelplan.planning.matching.labelling import Structure
from modelplan.planning.matching.matching import matched_ops
from modelplan.planning.matching.wiring import Pairing
from modelplan.primitives.lazy_records import dataclass

_WEIGHTED = {1: "weights", 2: "bias"}
#: What operands are called, by kind of operator; others by their number.
_OPERANDS = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "CONV_3D", "Conv", "Gemm"), _WEIGHTED),
    "ConvTranspose": _WEIGHTED,
    "TRANSPOSE_CONV": {0: "output shape", 1: "weights", 3: "bias"},
}
#: The axis of the weights that is the operator's own choice: how many filters or units there are.
_FREE_AXES = {
    **dict.fromkeys(("CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "Conv"), 0),
    **dict.fromkeys(("CONV_3D", "MatMul", "BATCH_MATMUL"), -1),
    "ConvTranspose": 1,
}
_INTEGERS = ("int32", "int64")
#: Longest text of an option's value.
_MOST_SHOWN = 60


@dataclass(slots=True)
class Details:
    """What differs between the operators of a pair: by itself, in values only, and because of what it reads."""

    own: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    following: list[str] = field(default_factory=list)

    @property
    def all(self) -> tuple[str, ...]:
        """All differences, the operator's own first."""
        return (*self.own, *self.values, *self.following)


@dataclass(frozen=True, slots=True)
class _Reads:
    """What changed in what an operator reads at run time: extents, types and quantisations, each from what to what."""

    extents: frozenset[tuple[int, int]]
    types: frozenset[tuple[str, str]]
    quantisations: frozenset[tuple[Quantisation, Quantisation]]

    @property
    def resized(self) -> bool:
        """Whether a shape or a type changed."""
        return bool(self.extents or self.types)


def details_of(pairing: Pairing, i: int, j: int, sizes: tuple[Graph, Graph]) -> Details:
    """What differs between operator `i` of the old side and operator `j` of the new one.

    `sizes` are the graphs with the types that values have in the runtime's memory.
    """
    details, reads = Details(), _reads(pairing, i, j)
    old, new = pairing.old.graph.ops[i], pairing.new.graph.ops[j]
    if old.kind != new.kind:
        details.own.append(f"{old.kind} -> {new.kind}")
    details.own += [_wire(pairing, t, u) for t, u in pairing.rewired.get((i, j), [])]
    _add_options(details, pairing, i, j, reads)
    _add_constants(details, pairing, i, j, reads)
    _add_outputs(details, pairing, i, j, reads, sizes)
    if old.kind == new.kind and old.version != new.version and pairing.new.graph.format == "tflite":
        (details.following if details.all else details.own).append(f"version {old.version} -> {new.version}")
    return details


def _reads(pairing: Pairing, i: int, j: int) -> _Reads:
    extents, types, quantisations = set(), set(), set()
    for t, u in zip(*pairing.operands(i, j), strict=False):
        before, after = pairing.old.graph.tensors[t], pairing.new.graph.tensors[u]
        extents |= _changed_extents(before.shape, after.shape)
        if before.dtype != after.dtype:
            types.add((before.dtype, after.dtype))
        scales = pairing.old.contents.quantisation[t], pairing.new.contents.quantisation[u]
        if scales[0] != scales[1]:
            quantisations.add(scales)
    return _Reads(frozenset(extents), frozenset(types), frozenset(quantisations))


def _changed_extents(old: Sequence[int], new: Sequence[int]) -> set[tuple[int, int]]:
    """The extents that changed, axis by axis; of shapes with another number of axes every pair that differs."""
    if len(old) == len(new):
        return {(a, b) for a, b in zip(old, new, strict=True) if a != b}
    return {(a, b) for a in old for b in new if a != b} or {(len(old), len(new))}


def _wire(pairing: Pairing, t: int, u: int) -> str:
    if u < 0:
        return f"reads no longer {_origin(pairing.old, t)}"
    if t < 0:
        return f"reads {_origin(pairing.new, u)} too"
    return f"reads {_origin(pairing.new, u)} in place of {_origin(pairing.old, t)}"


def _origin(side: Structure, t: int) -> str:
    maker = side.graph.producers[t]
    if maker >= 0:
        return f"op {maker} {side.graph.ops[maker].kind}"
    return f"input {side.graph.inputs.index(t)}" if t in side.graph.inputs else f"tensor {t}"


# Options --------------------------------------------------------------------------------------------------------------


def _add_options(details: Details, pairing: Pairing, i: int, j: int, reads: _Reads) -> None:
    if pairing.old.graph.ops[i].kind != pairing.new.graph.ops[j].kind:
        return
    before, after = dict(pairing.old.options[i]), dict(pairing.new.options[j])
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            follows = reads.resized and _as_results(old, new, pairing, i, j)
            (details.following if follows else details.own).append(f"{name} {_text(old)} -> {_text(new)}")


def _as_results(old: Value | None, new: Value | None, pairing: Pairing, i: int, j: int) -> bool:
    """Whether an attribute's numbers change exactly as the extents of the results do."""
    if not isinstance(old, tuple) or not isinstance(new, tuple) or len(old) != len(new):
        return False
    known = set[tuple[int, int]]()
    for t, u in zip(pairing.old.graph.ops[i].writes, pairing.new.graph.ops[j].writes, strict=False):
        known |= set(zip(pairing.old.graph.tensors[t].shape, pairing.new.graph.tensors[u].shape, strict=False))
    return all(pair in known for pair in zip(old, new, strict=True) if pair[0] != pair[1])


def _text(value: Value | None) -> str:
    if value is None:
        return "none"
    text = "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


# Constants ------------------------------------------------------------------------------------------------------------


def _add_constants(details: Details, pairing: Pairing, i: int, j: int, reads: _Reads) -> None:
    old, new = pairing.old.graph.ops[i].inputs, pairing.new.graph.ops[j].inputs
    if pairing.old.graph.ops[i].kind != pairing.new.graph.ops[j].kind:
        return
    others, scales = list[str](), list[str]()
    for place, (t, u) in enumerate(zip_longest(old, new, fillvalue=-1)):
        before, after = _constant(pairing.old.graph, t), _constant(pairing.new.graph, u)
        name = _OPERANDS.get(pairing.new.graph.ops[j].kind, {}).get(place, f"operand {place}")
        if before is None or after is None:
            details.own += _appeared(name, before, after, is_same=len(old) == len(new))
            continue
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            follows = _follows_reads(pairing.new.graph.ops[j].kind, before, after, reads)
            (details.following if follows else details.own).append(f"{name} {became(before, after)}")
        elif pairing.old.contents.values[t] != pairing.new.contents.values[u]:
            numbers = (
                pairing.old.graph.ops[i].attribute(f"operand {place}"),
                pairing.new.graph.ops[j].attribute(f"operand {place}"),
            )
            if before.dtype not in _INTEGERS or None in numbers:
                others.append(name)
                continue
            follows = reads.resized and _as_results(*numbers, pairing, i, j)
            (details.following if follows else details.own).append(f"{name} {_text(numbers[0])} -> {_text(numbers[1])}")
        if pairing.old.contents.quantisation[t] != pairing.new.contents.quantisation[u]:
            scales.append(name)
    # Weights of another shape have other values and scales anyway.
    if not any(word in text for text in (*details.own, *details.following) for word in ("weights ", "bias ")):
        # A bias has the scale of what is read times that of the weights.
        caused = bool(reads.quantisations) and {*others, *scales} <= {"bias"}
        differences = details.following if caused else details.values
        differences += [f"other values of {', '.join(others)}"] * bool(others)
        differences += [f"other quantisation of {', '.join(scales)}"] * bool(scales)


def _follows_reads(kind: str, before: Tensor, after: Tensor, reads: _Reads) -> bool:
    """Whether a constant changed its extents because another operand did."""
    if before.dtype != after.dtype:
        return False
    axis = _FREE_AXES.get(kind)
    weights = len(before.shape) == len(after.shape) > 1
    if weights and axis is not None and before.shape[axis] != after.shape[axis]:
        return False
    return _changed_extents(before.shape, after.shape) <= reads.extents


def _constant(graph: Graph, t: int) -> Tensor | None:
    return graph.tensors[t] if t >= 0 and graph.tensors[t].kind is Kind.CONSTANT else None


def _appeared(name: str, before: Tensor | None, after: Tensor | None, *, is_same: bool) -> Iterator[str]:
    """A constant that only one side has: added, gone, or computed on the other side."""
    if before is not None:
        yield f"{name} {described(before)} {'computed at run time' if is_same else 'gone'}"
    if after is not None:
        yield f"{name} {described(after)} {'constant' if is_same else 'added'}"


# Results --------------------------------------------------------------------------------------------------------------


def _add_outputs(details: Details, pairing: Pairing, i: int, j: int, reads: _Reads, sizes: tuple[Graph, Graph]) -> None:
    old, new = pairing.old.graph.ops[i].outputs, pairing.new.graph.ops[j].outputs
    own_before = bool(details.own)
    for place, (t, u) in enumerate(zip_longest(old, new, fillvalue=-1)):
        name = "output" if len(old) == len(new) == 1 else f"output {place}"
        if t < 0 or u < 0:
            _add_lone(details, name, pairing.old.graph, t, "gone")
            _add_lone(details, name, pairing.new.graph, u, "added")
            continue
        before, after = pairing.old.graph.tensors[t], pairing.new.graph.tensors[u]
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            passed = before.dtype == after.dtype or (before.dtype, after.dtype) in reads.types
            follows = reads.resized and passed and not own_before
            count = f"{sizes[0].tensors[t].nbytes:,} -> {sizes[1].tensors[u].nbytes:,} bytes"
            (details.following if follows else details.own).append(f"{name} {count} ({became(before, after)})")
        scales = pairing.old.contents.quantisation[t], pairing.new.contents.quantisation[u]
        if scales[0] != scales[1] and before.dtype == after.dtype and scales not in reads.quantisations:
            details.values.append(f"{name} quantised {_scaled(scales[0])} -> {_scaled(scales[1])}")


def _add_lone(details: Details, name: str, graph: Graph, t: int, word: str) -> None:
    if t >= 0:
        details.own.append(f"{name} {described(graph.tensors[t])} {word}")


def _scaled(scales: Quantisation) -> str:
    if scales is None:
        return "not at all"
    return f"{scales[0][0]:g}/{scales[1][0] if scales[1] else 0}" if len(scales[0]) == 1 else "by axis"


def described(tensor: Tensor) -> str:
    """Shape and type of a tensor.

    >>> described(Tensor("x", (1, 24, 24, 8), "int8"))
    '1x24x24x8 int8'
    """
    return f"{shape_text(tensor.shape)} {tensor.dtype}"


def shape_text(shape: Sequence[int]) -> str:
    """The extents of a shape with crosses between them."""
    return "x".join(map(str, shape)) or "scalar"


def became(before: Tensor, after: Tensor) -> str:
    """Shape and type before and after, what is equal said once.

    >>> became(Tensor("x", (1, 8), "int8"), Tensor("x", (1, 16), "int8"))
    '1x8 -> 1x16 int8'
    """
    if before.dtype == after.dtype:
        return f"{shape_text(before.shape)} -> {described(after)}"
    if before.shape == after.shape:
        return f"{described(before)} -> {after.dtype}"
    return f"{described(before)} -> {described(after)}"


#: How many changes inside a body stand in the line of the operator that runs it.
_MOST_LINES = 3


class Bodies:
    """Compares bodies, each pair once however many operators run them."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], list[str]] = {}

    def inside(self, pairing: Pairing, i: int, j: int) -> list[str]:
        """The differences of the bodies of two matched operators; deeper bodies are only said to differ."""
        ones, others = pairing.old.graph.ops[i].subgraphs, pairing.new.graph.ops[j].subgraphs
        if len(ones) != len(others):
            return [f"bodies {len(ones)} -> {len(others)}"]
        differences: list[str] = []
        for number in range(len(ones)):
            lines = self._lines(pairing.old.body(i, number), pairing.new.body(j, number))
            differences += [f"in body {number}: {line}" for line in lines[:_MOST_LINES]]
            if len(lines) > _MOST_LINES:
                differences.append(f"in body {number}: [{len(lines) - _MOST_LINES} others]")
        return differences

    def _lines(self, old: Structure, new: Structure) -> list[str]:
        key = id(old.graph), id(new.graph)
        if key not in self.known:
            self.known[key] = self._compared(Pairing(old, new, matched_ops(old, new)))
        return self.known[key]

    def _compared(self, pairing: Pairing) -> list[str]:
        """A line for each operator of two bodies that differs by itself."""
        old, new = pairing.old.graph, pairing.new.graph
        lines = []
        for i, j in pairing.pairs:
            details = details_of(pairing, i, j, (old, new))
            details.own += ["its bodies differ"] if self.inside(pairing, i, j) else []
            if details.own or details.values:
                lines.append(f"{new.label(j)}: {', '.join(details.all)}")
        lines += [f"{old.label(i)} gone" for i in pairing.gone]
        return [*lines, *(f"{new.label(j)} added" for j in pairing.added)]
