"""The program of a model with some regions in stripes, unrolled or as loops."""

from __future__ import annotations

from collections.abc import Sequence

from modelplan.model import Graph
from modelplan.rewriting.stripes.loops import looped
from modelplan.rewriting.stripes.program import Program
from modelplan.rewriting.stripes.regions import Region, ground
from modelplan.rewriting.stripes.unrolled import Builder


def built(graph: Graph, order: Sequence[int], regions: Sequence[Region], file_ops: Sequence[int] = ()) -> Program:
    """The program that runs `graph` in `order` with `regions` (apart, ascending) in stripes.

    `file_ops` are the operators of the file behind those of the graph, by default the same ones.

    Raises:
        IllegalStripeError: a region has no stripes of this form.
    """
    builder, at = Builder(graph, file_ops), 0
    for region in regions:
        for index in order[at : region.first]:
            builder.whole(index)
        base = ground(graph, order, region)
        if region.loop:
            looped(builder.program, base)
        else:
            builder.striped(base)
        at = region.last + 1
    for index in order[at:]:
        builder.whole(index)
    return builder.program
