"""Which elements STRIDED_SLICE and SLICE take, as slices of numpy."""

from __future__ import annotations

from modelplan.rewriting.standalone_c.reading import OperatorReader


def sliced_axes(r: OperatorReader) -> tuple[slice, ...]:
    """A slice for each axis of operand 0; an axis that is taken away has one of a single element."""
    begin, end = ([int(v) for v in r.constant(i).ravel()] for i in (1, 2))
    shape = r.input(0).shape
    if r.op.kind == "SLICE":
        ends = [n if size < 0 else b + size for n, b, size in zip(shape, begin, end, strict=True)]
        return tuple(slice(b, e) for b, e in zip(begin, ends, strict=True))
    steps = [int(v) for v in r.constant(3).ravel()]
    masks = {name: int(r.option(f"{name}Mask")) for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}
    r.require(holds=not masks["Ellipsis"] and not masks["NewAxis"], why="an ellipsis or a new axis")
    r.require(holds=len(begin) == len(shape) and 0 not in steps, why=f"{len(begin)} steps for {len(shape)} axes")
    slices = []
    for i, n in enumerate(shape):
        first = None if masks["Begin"] >> i & 1 else begin[i]
        last = None if masks["End"] >> i & 1 else end[i]
        found = _axis(n, first, last, steps[i])
        slices.append(slice(found.start, found.start + 1) if masks["ShrinkAxis"] >> i & 1 else found)
    return tuple(slices)


def _axis(extent: int, begin: int | None, end: int | None, step: int) -> slice:
    """The slice of one axis as TFLM clamps it; without begin or end it goes as far as there are elements."""
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    places = []
    for place, missing in ((begin, low if step > 0 else high), (end, high if step > 0 else low)):
        if place is None:
            places.append(missing)
        else:
            places.append(min(max(place + extent if place < 0 else place, low), high))
    return slice(places[0], None if places[1] < 0 else places[1], step)
