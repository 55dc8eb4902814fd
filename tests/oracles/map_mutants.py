"""Which function of `modelplan.ops.access` made which part of an access map, and that part changed: mutants and judges.

A change moves a span, shortens a window, takes another step or another axis, as a slip in that function would. Judges
are the verifier's table, which lists what is read, and dependencies that were measured on real kernels.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import prod
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
from dependencies import Dependencies

from modelplan.checking.verifier.moves import use_of
from modelplan.checking.verifier.places import OperandPlaces, places_read
from modelplan.checking.verifier.program import graph_program
from modelplan.checking.verifier.rewrites.needs import elements_behind
from modelplan.model import Graph
from modelplan.ops import access_of
from modelplan.ops.access import AccessMap, Reads, Span, builders, onnx, spans, tflite
from modelplan.ops.access.spans import whole

MODULES = {module.__name__: module.__name__.rpartition(".")[2] for module in (builders, onnx, tflite, spans)}
#: The most pairs of elements of a result and an operand.
MOST = 150_000
#: For each row, an element of a result, whether it reads each element of an operand.
Matrix = npt.NDArray[np.bool_]


def builder_names() -> set[str]:
    """Every function of the modules that returns a map, reads of one operand or spans, as "module.function"."""
    made = ("AccessMap", "Reads", "Span", "Builder")
    return {
        f"{MODULES[name]}.{function.__name__}"
        for name in MODULES
        for function in vars(sys.modules[name]).values()
        if inspect.isfunction(function) and function.__module__ == name
        if any(word in str(function.__annotations__.get("return")) for word in made)
    }


@dataclass(frozen=True)
class Built:
    """The access map of an operator, and the reads and spans of it that each builder returned."""

    access: AccessMap
    parts: dict[str, list[Any]]

    def made_by(self, builder: str, part: Reads | Span) -> bool:
        """Whether a builder returned this very object."""
        return any(part is one for one in self.parts.get(builder, ()))


def built(graph: Graph, output: int) -> Built | None:
    """The map of the only operator of a graph, made anew, with its makers."""
    graph = replace(graph)  # which remembers no map
    parts: dict[str, list[Any]] = {}

    def returned(frame: FrameType, event: str, value: Any) -> None:
        module = MODULES.get(frame.f_globals.get("__name__", ""))
        if event == "return" and module is not None:
            name = f"{module}.{frame.f_code.co_qualname.partition('.')[0]}"
            parts.setdefault(name, []).extend(_parts(value))

    before = sys.getprofile()
    sys.setprofile(returned)
    try:
        access = access_of(graph, graph.ops[0], output)
    finally:
        sys.setprofile(before)
    return Built(access, parts) if access is not None else None


def _parts(value: Any) -> Iterator[Reads | Span]:
    if isinstance(value, Reads | Span):
        yield value
    elif isinstance(value, AccessMap):
        yield from value.reads
    elif isinstance(value, list | tuple):
        yield from (part for part in value if isinstance(part, Reads | Span))


def mutants(made: Built, builder: str) -> Iterator[tuple[str, Reads, Reads]]:
    """Every change of what a builder made: its name, the reads as they are and the changed ones."""
    for reads in made.access.reads:
        if made.made_by(builder, reads):
            yield from ((change, reads, other) for change, other in _changed_reads(reads, made.access))
        for spot, span in enumerate(reads.spans):
            if made.made_by(builder, reads) or made.made_by(builder, span):
                for change, other in _changed_spans(span, reads.result):
                    yield change, reads, _with(reads, {spot: other})


def _changed_reads(reads: Reads, access: AccessMap) -> Iterator[tuple[str, Reads]]:
    """Reads that are not said, so that all may be read, those of another operand, and with two axes exchanged."""
    yield "dropped", replace(reads, spans=tuple(whole(extent) for extent in reads.source))
    for other in access.reads:
        if other is not reads and prod(other.source) == prod(reads.source):
            yield "another operand", replace(other, operand=reads.operand)
    for a, b in combinations(range(len(reads.spans)), 2):
        yield "exchanged", _with(reads, {a: reads.spans[b], b: reads.spans[a]})


def _with(reads: Reads, others: dict[int, Span]) -> Reads:
    return replace(reads, spans=tuple(others.get(spot, span) for spot, span in enumerate(reads.spans)))


def _changed_spans(span: Span, result: tuple[int, ...]) -> Iterator[tuple[str, Span]]:
    """A span one beside, one shorter, by another step, along another axis, or for all indices alike."""
    for by, change in ((1, "further"), (-1, "nearer")):
        table = tuple((a + by, b + by) for a, b in span.table)
        yield change, span._replace(lo=span.lo + by * span.div, hi=span.hi + by * span.div, table=table)
    if span.table or span.hi - span.lo >= span.div:
        shorter = tuple((a, max(a, b - 1)) for a, b in span.table), tuple((min(a + 1, b), b) for a, b in span.table)
        by = span.step * span.div
        yield "shorter behind", span._replace(hi=span.hi - by, table=shorter[0])
        yield "shorter in front", span._replace(lo=span.lo + by, table=shorter[1])
    if span.axis < 0:
        yield "at one place", Span(-1, 0, 0)
    else:
        first, last = span.table[0] if span.table else (span.lo // span.div, span.hi // span.div)
        yield "the same for all", Span(-1, first, last)
        if not span.table:
            yield from (("another step", span._replace(mul=span.mul + by)) for by in (1, -1))
            yield from (("another share", span._replace(div=n)) for n in (span.div - 1, span.div + 1) if n > 0)
    if span.hi > span.lo:
        yield "further apart", span._replace(step=span.step + 1)
    if span.clamp:
        yield "beside the border", span._replace(clamp=False)
    for axis, extent in enumerate(result):
        if axis != span.axis and (not span.table or len(span.table) >= extent):
            yield "another axis", span._replace(axis=axis) if span.axis >= 0 else Span(axis)


@lru_cache(maxsize=256)
def read_by(reads: Reads) -> Matrix:
    """What the elements of a result read as an access map has it."""
    rank = len(reads.result)
    total = np.ones((*reads.result, *(1 for _ in reads.source)), np.bool_)
    for spot, (span, extent) in enumerate(zip(reads.spans, reads.source, strict=True)):
        y = np.arange(reads.result[span.axis] if span.axis >= 0 else 1)
        if span.table:
            first, last = np.array(span.table, np.int64).reshape(-1, 2)[y].T
        else:
            first, last = (span.mul * y + span.lo) // span.div, (span.mul * y + span.hi) // span.div
        if span.clamp:
            first, last = np.clip(first, 0, extent - 1), np.clip(last, 0, extent - 1)
        places = np.arange(extent)
        inside = (places >= first[:, None]) & (places <= last[:, None]) & ((places - first[:, None]) % span.step == 0)
        along = [len(y) if axis == span.axis else 1 for axis in range(rank)]
        total = total & inside.reshape(*along, *(extent if k == spot else 1 for k in range(len(reads.source))))
    return np.broadcast_to(total, (*reads.result, *reads.source)).reshape(prod(reads.result), prod(reads.source))


def read_in(places: OperandPlaces, result: tuple[int, ...]) -> Matrix:
    """What the elements of a result read as the verifier's table has it."""
    rows = []
    for index in range(prod(result)):
        one = np.zeros(prod(result), np.bool_)
        one[index] = True
        rows.append(elements_behind(places, one.reshape(result)).reshape(-1))
    return np.array(rows)


@dataclass(frozen=True)
class Judged:
    """The map of a result of an operator, and what judges say that the elements of the result read, by operand.

    `listed` is the verifier's table, `measured` what changed with what on a real kernel.
    """

    name: str
    made: Built
    listed: dict[int, Matrix]
    measured: dict[int, Matrix]

    def speaks_of(self, operand: int) -> bool:
        """Whether there is a judge of what is read of an operand."""
        return operand in self.listed or operand in self.measured

    def matters(self, reads: Reads, other: Reads) -> bool:
        """Whether changed reads leave out what was said; of a copy that the table lists also whether they add to it."""
        return self._differs(read_by(reads), read_by(other), exact=reads.operand in self.listed and self._copied(reads))

    def told_by_table(self, reads: Reads) -> bool:
        """Whether the table lists what is not among the reads, or of a copy less than these."""
        listed = self.listed.get(reads.operand)
        return listed is not None and self._differs(listed, read_by(reads), exact=self._copied(reads))

    def told_by_kernel(self, reads: Reads) -> bool:
        """Whether an element of the result changed with one that is not among the reads."""
        measured = self.measured.get(reads.operand)
        return measured is not None and self._differs(measured, read_by(reads), exact=False)

    def _copied(self, reads: Reads) -> bool:
        return self.made.access.moves and reads.exact

    @staticmethod
    def _differs(said: Matrix, read: Matrix, *, exact: bool) -> bool:
        return bool((said != read).any() if exact else (said & ~read).any())


def judged(name: str, graph: Graph, output: int, found: Sequence[Dependencies] = ()) -> Judged | None:
    """A result of the only operator of a graph with its judges; None where it has no map, or one of large tensors.

    Of a convolution in groups the table says less than the map, that all channels may be read, and is not asked.
    """
    op, made = graph.ops[0], built(graph, output)
    if made is None or not all(0 < prod(reads.result) * prod(reads.source) <= MOST for reads in made.access.reads):
        return None
    shapes = [graph.tensors[t].shape if t >= 0 else () for t in op.inputs]
    result, program = graph.tensors[op.outputs[output]].shape, graph_program(graph, [0])
    in_groups = op.kind == "CONV_2D" and shapes[0][-1] != shapes[1][-1]
    table = () if in_groups else places_read(use_of(program, program.steps[0], output)) or ()
    measured = {one.operand: np.zeros((prod(result), prod(shapes[one.operand])), np.bool_) for one in found}
    for one in found:
        for element, results in one.pairs if one.output == output else ():
            measured[one.operand][list(results), element] = True
    return Judged(name, made, {read.operand: read_in(read, result) for read in table}, measured)
