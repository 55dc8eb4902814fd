"""Real kernels judge what both maps say that operators read: no element outside changes a result, and mutants are told.

`modelplan.ops.access` computes for planning, `modelplan.checking.verifier.places` enumerates for proofs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import tflm_models
from dependencies import Dependencies, all_measured, loaded, open_measured, outside
from map_mutants import Judged, builder_names, judged, mutants
from shares import share

from modelplan.checking.verifier.places import OperandPlaces
from modelplan.ops.access import Reads
from modelplan.runtimes.tflm.runner import installed

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(not installed(), reason="tflite-micro is not installed")


@cache
def measured() -> tuple[Dependencies, ...]:
    """A model of every fourth kind and type with its dependencies, in long runs some of all."""
    return tuple(all_measured(share(4), 11, part=4 // share(4)))


def test_no_element_outside_of_a_map_changes_a_result() -> None:
    wrong = [(found.name, found.operand, found.output, *outside(found)) for found in measured() if any(outside(found))]
    assert wrong == []
    assert sum(len(those) for found in measured() for _, those in found.pairs) > 2000


def moved_spans(reads: Reads) -> Reads:
    """Each index one place further along the last axis of several places that it follows."""
    spans = list(reads.spans)
    for axis in reversed(range(len(spans))):
        span = spans[axis]
        if span.axis >= 0 and reads.source[axis] > 1:
            further = tuple((a + 1, b + 1) for a, b in span.table)
            spans[axis] = span._replace(lo=span.lo + span.div, hi=span.hi + span.div, table=further)
            break
    return replace(reads, spans=tuple(spans))


def moved_places(reads: OperandPlaces) -> OperandPlaces:
    """The same of the verifier's."""
    axes = list(reads.axes)
    for axis in reversed(range(len(axes))):
        if axes[axis] and axes[axis][0].axis >= 0 and reads.shape[axis] > 1:
            first, *others = axes[axis]
            taps = tuple(tuple(place + 1 for place in tap) for tap in first.taps)
            axes[axis] = (first._replace(taps=taps), *others)
            break
    return reads._replace(axes=tuple(axes), linear=False)


def told(change: dict[str, Callable[..., Any]], side: int, original: Callable[[Dependencies], bool]) -> Counter[str]:
    """For each kind in how many of the measured maps that `original` says can be changed a pair lies outside then."""
    counts = Counter[str]()
    for found in measured():
        if original(found):
            counts[found.graph.ops[0].kind] += bool(outside(found, **change)[side])
    return counts


def changes(found: Dependencies, change: str) -> bool:
    """Whether a change of the maps makes another one of it, of which something was measured."""
    different = list[bool]()

    def noted(reads: Any) -> Any:
        moved: Any = moved_spans(reads) if change == "planned" else moved_places(reads)
        same = moved == reads._replace(linear=False) if change == "proved" else moved == reads
        different.append(not same)
        return reads

    outside(found, **{change: noted})
    return any(different)


@pytest.mark.parametrize(("change", "mutant", "side"), [("planned", moved_spans, 0), ("proved", moved_places, 1)])
def test_a_map_one_place_beside_is_told_for_every_kind(change: str, mutant: Callable[..., Any], side: int) -> None:
    counts = told({change: mutant}, side, lambda found: changes(found, change))
    assert len(counts) > 20
    assert [kind for kind, count in counts.items() if not count] == []


#: Operators of TFLite by which each builder is judged.
_JUDGED = 6


@cache
def drawn_operators() -> tuple[Judged, ...]:
    """Operators of every builder, with what judges their maps."""
    return (*known_operators(), *measured_operators())


def known_operators() -> Iterator[Judged]:
    """Those of TFLite until each builder made some: the verifier judges them."""
    made = Counter[str]()
    for name, content in tflm_models.sweep(1, 11):
        graph = loaded(content, ".tflite")
        for output in range(len(graph.ops[0].outputs)) if graph is not None and len(graph.ops) == 1 else ():
            one = judged(name, graph, output) if graph is not None else None
            if one is not None and any(made[builder] < _JUDGED for builder in one.made.parts):
                made.update(one.made.parts.keys())
                yield one


def measured_operators() -> Iterator[Judged]:
    """Those of both formats that are given all that they read: kernels judge them too."""
    for seed in range(share(8)):
        by_graph = defaultdict[int, list[Dependencies]](list)
        for found in open_measured(seed):
            by_graph[id(found.graph)].append(found)
        for those in by_graph.values():
            graph = those[0].graph
            results = (judged(those[0].name, graph, output, those) for output in range(len(graph.ops[0].outputs)))
            yield from (one for one in results if one is not None)


@pytest.mark.slow
def test_each_change_of_what_a_builder_makes_is_told() -> None:
    """The table tells every one of what it lists; of weights and the like a kernel tells each in some operator."""
    told, builders = defaultdict[tuple[str, int, str], bool](bool), set[str]()
    for one in drawn_operators():
        assert not any(one.told_by_table(reads) or one.told_by_kernel(reads) for reads in one.made.access.reads)
        for builder in one.made.parts:
            for change, reads, other in mutants(one.made, builder):
                if one.speaks_of(reads.operand) and one.matters(reads, other):
                    by_table, case = one.told_by_table(other), (builder, reads.operand, change)
                    assert by_table or reads.operand not in one.listed, (one.name, *case)
                    told[case] |= by_table or one.told_by_kernel(other)
                    builders.add(builder)
    assert [case for case, is_told in told.items() if not is_told] == []
    assert builder_names() - builders == set()
    assert len(told) > 1000


@pytest.mark.slow
def test_each_operand_that_a_builder_names_has_a_judge() -> None:
    judges = defaultdict[tuple[str, int], bool](bool)
    for one in drawn_operators():
        for builder in one.made.parts:
            for reads in one.made.access.reads:
                if one.made.made_by(builder, reads):
                    judges[builder, reads.operand] |= one.speaks_of(reads.operand)
    assert [case for case, judge in judges.items() if not judge] == []
