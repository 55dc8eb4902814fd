"""Operators that run bodies: which outer tensors the bodies read, what they return, and how large that is.

A branch whose condition is known takes its If's place. Every other body becomes a subgraph of its operator.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from modelplan.formats.dims import value_option
from modelplan.formats.onnx import onnx_search_bodies as bodies
from modelplan.formats.onnx import onnx_sequences as search
from modelplan.formats.onnx.onnx_builder import GraphBuilder
from modelplan.formats.onnx.onnx_functions import bodies_of
from modelplan.formats.onnx.onnx_shapes import TypedNode, plus
from modelplan.formats.onnx.onnx_types import Extent, ImpossibleError, Type, read_type, tensor_type, with_shape
from modelplan.model import Graph, Kind
from modelplan.primitives.number_types import UNPLANNED

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto

_INT64, _BOOL = 7, 9

_Given = TypeVarTuple("_Given")
_Result = TypeVar("_Result")


def add_control(builder: GraphBuilder, node: NodeProto, inputs: tuple[int, ...], place: str) -> None:
    """Adds a node with bodies to the graph of `builder`.

    Raises:
        ValueError: a body that lacks inputs or outputs, or whose sizes stay open.
    """
    rows = {("", "If"): _add_if, ("", "Loop"): _add_loop, ("", "Scan"): _add_scan}
    rows |= {(search.DOMAIN, kind): _add_search for kind in search.SEARCHES}
    rows.get((node.domain, node.op_type), _add_other)(builder, node, inputs, place)


def _body(node: NodeProto, name: str, place: str) -> GraphProto:
    for attribute in node.attribute:
        if attribute.name == name and attribute.HasField("g"):
            body: GraphProto = attribute.g
            return body
    raise ValueError(f"{place}: found no body {name!r}")


def _run(
    builder: GraphBuilder, body: GraphProto, types: Sequence[Type | None], place: str, outer: Sequence[int] = ()
) -> tuple[GraphBuilder, Graph]:
    """The body as a graph, its inputs of the given types where those are known.

    `outer` are the tensors behind its last inputs of those: what is open in them explains what is open inside.
    """
    builder.model.walked.add("bodies")
    child = GraphBuilder(builder.model, body, builder, f"{place}: ")
    if len(types) > len(body.input):
        raise ValueError(f"{place}: the body takes {len(body.input)} inputs, expected {len(types)}")
    for value, known in zip(body.input, types, strict=False):
        if known is not None:
            child.hints[value.name] = known
    given = [value.name for value in body.input[: len(types)]]
    child.following = {
        name for name, t in zip(reversed(given), reversed(outer), strict=False) if t >= 0 and builder.follows((t,))
    }
    return child, child.graph(body.name or "body")


def _finish(
    builder: GraphBuilder,
    node: NodeProto,
    inputs: tuple[int, ...],
    types: Sequence[Type | None],
    children: Iterable[tuple[GraphBuilder, Graph]],
    place: str,
) -> None:
    """Adds the operator; the outer tensors that its bodies read come after its own inputs."""
    children = list(children)
    captured = {outer for child, _ in children for outer in child.captured}
    read = [t for t in sorted(captured - set(inputs)) if builder.tensors[t].kind is not Kind.CONSTANT]
    hints = [builder.hints.get(name) for name in node.output]
    known_types = [
        builder.claimed(name, hint if hint and not hint.is_open else own or hint, place)
        for name, hint, own in zip(node.output, hints, types, strict=True)
    ]
    follows = builder.follows((*inputs, *captured))
    outputs = tuple(
        builder.add(name, known, place, follows=follows) if name else -1
        for name, known in zip(node.output, known_types, strict=True)
    )
    if follows:
        builder.unsure.update(outputs)
    builder.op(node, (*inputs, *read), outputs, tuple(graph for _, graph in children))


def _out(child: GraphBuilder, graph: Graph) -> list[Type]:
    return [child.types[t] for t in graph.outputs]


# -- If ------------------------------------------------------------------------------------------------------


def _add_if(builder: GraphBuilder, node: NodeProto, inputs: tuple[int, ...], place: str) -> None:
    bodies = [_body(node, name, place) for name in ("then_branch", "else_branch")]
    for body in bodies:
        if len(body.output) != len(node.output):
            raise ValueError(f"{place}: a branch gives {len(body.output)} values, expected {len(node.output)}")
    condition = builder.value(inputs[0]) if inputs and inputs[0] >= 0 else None
    if condition is not None and condition.size == 1:
        _inline(builder, node, bodies[0] if condition.reshape(-1)[0] else bodies[1], place)
        return
    mark = builder.model.mark()
    children, refused = _tried_branches(builder, bodies, place)
    if refused:
        name, reason = next(iter(refused.items()))
        if len(refused) == len(bodies):
            raise ValueError(reason)
        builder.model.restore(mark)
        _inline(builder, node, bodies[name == "then_branch"], place)
        builder.model.remarks.append(f"{place}: planned without {name}, which cannot run: {reason}")
        return
    pairs = zip(*(_out(child, graph) for child, graph in children), strict=True)
    _finish(builder, node, inputs, [_larger(builder, a, b, place) for a, b in pairs], children, place)


def _tried_branches(
    builder: GraphBuilder, bodies: Sequence[GraphProto], place: str
) -> tuple[list[tuple[GraphBuilder, Graph]], dict[str, str]]:
    """The branches as graphs, and why those that no input of these extents can pass are none."""
    children, refused = [], {}
    for name, body in zip(("then_branch", "else_branch"), bodies, strict=True):
        try:
            children.append(_run(builder, body, (), place))
        except ImpossibleError as problem:
            if builder.model.largest or builder.model.dims.bounds:
                raise  # with smaller extents it may run
            refused[name] = str(problem)
    return children, refused


def _inline(builder: GraphBuilder, node: NodeProto, body: GraphProto, place: str) -> None:
    """Adds the nodes of the branch in place of the If; its outputs get the If's names, its other names stay inside."""
    hints, claims, where = builder.hints, builder.claims, builder.place
    builder.index, builder.place = builder.index.new_child(), f"{place}: "
    builder.hints = ChainMap(builder.read_hints(body), hints)
    builder.claims = ChainMap(builder.model.claims.get(id(body), {}), claims)
    builder.walk(body)
    outputs = [builder.find(value.name, place) for value in body.output]
    builder.index, builder.hints, builder.place = builder.index.parents, hints, where
    builder.claims = claims
    for name, t in zip(node.output, outputs, strict=True):
        if name:
            builder.rename(name, t, place)


def _larger(builder: GraphBuilder, a: Type, b: Type, place: str) -> Type:
    """The type whose extents are the larger of both."""
    if a.dtype != b.dtype:
        raise ValueError(f"{place}: the branches give {a.dtype} and {b.dtype}")
    if a.shape == b.shape or a.dtype in UNPLANNED:
        return a
    if a.is_open or b.is_open or a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return with_shape(a, None)
    builder.model.largest = True
    builder.model.remarks.append(f"{place}: branches of different size, planned for the larger extents")
    return with_shape(a, _most(a.shape, b.shape))


def _most(a: Sequence[Extent], b: Sequence[Extent]) -> tuple[Extent, ...]:
    pairs = zip(a, b, strict=True)
    return tuple(max(x, y) if isinstance(x, int) and isinstance(y, int) else None for x, y in pairs)


# -- Loop ----------------------------------------------------------------------------------------------------


def _add_loop(builder: GraphBuilder, node: NodeProto, inputs: tuple[int, ...], place: str) -> None:
    body = _body(node, "body", place)
    carried = [builder.types[t] if t >= 0 else None for t in inputs[2:]]
    if len(body.output) != len(node.output) + 1 or len(body.output) < len(carried) + 1:
        raise ValueError(f"{place}: the body gives {len(body.output)} values, expected {len(node.output) + 1}")
    start = [tensor_type(_INT64, ()), tensor_type(_BOOL, ())]
    children = _stable(builder, body, start, inputs[2:], place)
    out = _out(*children)[1:]
    inside = [children[0].types[t] for t in children[1].inputs[2:]]
    types = [_grown(a, b) for a, b in zip(inside, out, strict=False)]
    builder.model.largest |= any(a is not b for a, b in zip(types, inside, strict=False))
    trips = builder.value(inputs[0]) if inputs and inputs[0] >= 0 else None
    count = int(trips.reshape(-1)[0]) if trips is not None and trips.size == 1 else None
    types += [_stacked(known, 0, max(count, 0) if count is not None else None) for known in out[len(carried) :]]
    if count is not None and len(out) > len(carried):
        builder.model.remarks.append(f"{place}: planned for all {count} iterations")
    _finish(builder, node, inputs, types, [children], place)


def _stable(
    builder: GraphBuilder, body: GraphProto, start: list[Type], carried: Sequence[int], place: str
) -> tuple[GraphBuilder, Graph]:
    """The body as a graph, its carried values of a size that no iteration changes, or open."""
    types = [builder.types[t] if t >= 0 else None for t in carried]
    if carried and all(
        _is_given(builder, v.name, known) for v, known in zip(body.input[len(start) :], types, strict=False)
    ):
        return _run(builder, body, [*start, *types], place, carried)  # what changes would get the same shape again
    mark = builder.model.mark()
    builder.model.trials += 1
    try:
        trial = _run(builder, body, [*start, *types], place, carried)
    finally:
        builder.model.trials -= 1
    after = _out(*trial)[1 : 1 + len(carried)]
    if all(before is None or _same(before, now) for before, now in zip(types, after, strict=True)):
        return trial
    builder.model.restore(mark)
    loose = [before and _loosened(before, now) for before, now in zip(types, after, strict=True)]
    return _run(builder, body, [*start, *loose], place, carried)


def _is_given(builder: GraphBuilder, name: str, known: Type | None) -> bool:
    """Whether a carried value has the shape that the caller gave for values of this name, also once it is loosened."""
    given = builder.model.dims.shapes.get(name)
    return known is None or (given is not None and known.shape == given)


def _same(a: Type, b: Type) -> bool:
    return a.dtype == b.dtype and (a.shape == b.shape or a.dtype in UNPLANNED)


def _loosened(before: Type, now: Type) -> Type:
    """The type with each extent left open that an iteration changes."""
    if before.dtype in UNPLANNED or before.shape is None:
        return before
    if now.shape is None or len(now.shape) != len(before.shape):
        return with_shape(before, None)
    return with_shape(before, tuple(x if x == y else None for x, y in zip(before.shape, now.shape, strict=True)))


def _grown(a: Type, b: Type) -> Type:
    if a.is_open or b.is_open or a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return a
    return with_shape(a, _most(a.shape, b.shape)) if a.shape != b.shape else a


def _stacked(known: Type, axis: int, extent: int | None) -> Type:
    """The type with a leading axis for the iterations."""
    if known.shape is None or known.dtype in UNPLANNED:
        return known
    at = axis if axis >= 0 else len(known.shape) + 1 + axis
    return with_shape(known, (*known.shape[:at], extent, *known.shape[at:]))


# -- Scan ----------------------------------------------------------------------------------------------------


def _add_scan(builder: GraphBuilder, node: NodeProto, inputs: tuple[int, ...], place: str) -> None:
    given = {a.name: a for a in node.attribute}
    count = given["num_scan_inputs"].i if "num_scan_inputs" in given else 0
    lead = None
    batched = builder.model.opsets.get("", 1) < 9
    values = inputs[1:] if batched else inputs
    if not 1 <= count <= len(values) or min(values, default=-1) < 0:
        raise ValueError(f"{place}: found {count} scan inputs of {len(values)} inputs")
    states = [builder.types[t] for t in values[:-count]]
    scanned = [builder.types[t] for t in values[-count:]]
    axes = _axes(given.get("scan_input_axes"), count)
    if batched:
        states, axes = [_without(s, 0, place) for s in states], [0] * count
        lead = _extent(scanned[0], 0, place)
        scanned = [_without(s, 0, place) for s in scanned]
    length = _extent(scanned[0], axes[0], place)
    slices = [_without(s, axis, place) for s, axis in zip(scanned, axes, strict=True)]
    children = _run(builder, _body(node, "body", place), [*states, *slices], place, values)
    out = _out(*children)
    if len(out) != len(node.output):
        raise ValueError(f"{place}: the body gives {len(out)} values, expected {len(node.output)}")
    rest = out[len(states) :]
    after = zip(rest, _axes(given.get("scan_output_axes"), len(rest)), strict=True)
    types = [*states, *(_stacked(known, axis, length) for known, axis in after)]
    if batched:
        types = [_stacked(known, 0, lead) for known in types]
    _finish(builder, node, inputs, types, [children], place)


def _axes(attribute: AttributeProto | None, count: int) -> list[int]:
    axes = list(attribute.ints) if attribute is not None else []
    return [*axes, *[0] * (count - len(axes))][:count]


def _extent(known: Type, axis: int, place: str) -> int | None:
    if known.shape is None or not -len(known.shape) <= axis < len(known.shape):
        raise ValueError(f"{place}: axis {axis} of a scan input of rank {len(known.shape or ())}")
    extent = known.shape[axis]
    return extent if isinstance(extent, int) else None


def _without(known: Type, axis: int, place: str) -> Type:
    _extent(known, axis, place)
    shape = list(known.shape or ())
    del shape[axis]
    return with_shape(known, tuple(shape))


# -- searches for sequences ----------------------------------------------------------------------------------


def _add_search(builder: GraphBuilder, node: NodeProto, inputs: tuple[int, ...], place: str) -> None:
    typed = builder.typed(node, inputs)
    if missing := search.undecided(typed):
        raise ValueError(f"{place}: {_undecided(builder, missing)}")
    known = builder.contributed(node, inputs, place)
    children: list[tuple[GraphBuilder, Graph]] = []
    if not builder.follows(inputs):
        children = _searching(builder, typed, place)
        scores = node.output[2] if len(node.output) > 2 else ""
        if scores in known:
            known[scores] = bodies.with_vocabulary(known[scores], _out(*children[-1])[0])
        builder.model.largest = True
        builder.model.remarks.append(f"{place}: planned for all {search.search_of(typed).length} tokens")
    _finish(builder, node, inputs, [known.get(name) for name in node.output], children, place)


def _undecided(builder: GraphBuilder, names: Sequence[str]) -> str:
    """That sizes follow from operands of which no constant is known, and how these are given."""
    inputs = {value.name for value in builder.proto.input} if builder.parent is None else set()
    options = [value_option(name, "N") for name in names if name in inputs]
    inner = ["--value of the inputs that they are computed from"] if len(options) < len(names) else []
    start = f"its sizes follow from {', '.join(map(repr, names))}, which a run decides"
    return f"{start}; it is planned with {' '.join((*options, *inner))}"


def _searching(builder: GraphBuilder, typed: TypedNode, place: str) -> list[tuple[GraphBuilder, Graph]]:
    """The bodies of a search as graphs, as they run; that of a decoder which runs last is the last."""
    node, sizes = typed.node, search.search_of(typed)
    decoder = _body(node, "decoder", place)
    if search.has_encoder(typed):
        encoder = _body(node, "encoder", place)
        encoded = _run(builder, encoder, _fed(place, bodies.encoder_feeds, encoder, typed, sizes), place)
        feeds = _fed(place, bodies.decoder_behind_encoder, decoder, typed, sizes, _out(*encoded))
        return [encoded, _decoded(builder, decoder, feeds, place)]
    begins = next((a.g for a in node.attribute if a.name == "init_decoder" and a.HasField("g")), decoder)
    runs = [_decoded(builder, begins, _fed(place, bodies.first_feeds, begins, sizes), place)]
    if plus(sizes.length, -1) != sizes.prompt:
        runs.append(_decoded(builder, decoder, _fed(place, bodies.last_feeds, decoder, sizes), place))
    return runs


def _decoded(builder: GraphBuilder, body: GraphProto, feeds: list[Type], place: str) -> tuple[GraphBuilder, Graph]:
    """A run of a decoder, which has to keep what the next run reads."""
    child = _run(builder, body, feeds, place)
    _fed(place, bodies.check_kept, body, feeds, _out(*child))
    return child


def _fed(place: str, asked: Callable[[*_Given], _Result], *arguments: *_Given) -> _Result:
    """What is told of a body; where it takes or gives something else, the error names the place."""
    try:
        return asked(*arguments)
    except ValueError as problem:
        raise ValueError(f"{place}: {problem}") from None


# -- others --------------------------------------------------------------------------------------------------


def _add_other(builder: GraphBuilder, node: NodeProto, inputs: tuple[int, ...], place: str) -> None:
    """SequenceMap and custom operators: bodies over elements, sizes from the file or onnx's inference."""
    elements = [_element(builder.types[t]) if t >= 0 else None for t in inputs]
    children = [
        _run(builder, body, elements[: len(body.input)] if node.op_type == "SequenceMap" else (), place)
        for body in bodies_of(node)
    ]
    _finish(builder, node, inputs, builder.output_types(node, inputs, place), children, place)


def _element(known: Type) -> Type | None:
    """The type of an element of a sequence; any other type as it is."""
    proto = known.proto
    return read_type(proto.sequence_type.elem_type) if proto.WhichOneof("value") == "sequence_type" else known
