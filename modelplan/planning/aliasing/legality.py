"""When an output may be written over an operand: one test over storage classes, never over names.

The seven conditions, numbered in the messages: 1 as many bytes of the same width; 2 not broadcast; 3 nothing reads
the operand's class later, and the operator reads it element by element or once; 4 the operand is computed here and
not kept for the caller; 5 its place suits the output; 6 scales do not matter, element width does; 7 one output takes
one operand.
Why classes: reshape, reshape, then an addition over the second while the first is still to be read is wrong although
no name is read twice. LiteRT 2.3.0 does it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from modelplan.model import Graph, Kind, Op, Runtime
from modelplan.ops.conditions import without_leading_ones
from modelplan.planning.aliasing.classes import Classes
from modelplan.primitives.number_types import BITS


@dataclass(slots=True)
class _ClassFacts:
    """What is known of the first `count` tensors of a class: whether one must last, and who reads one.

    `reads` are the tensors with their readers, `latest` the last step of each of them and those before it.
    """

    count: int = 0
    lasts: bool = False
    reads: list[tuple[int, int]] = field(default_factory=list)
    latest: list[int] = field(default_factory=list)


@dataclass(slots=True)
class SharingContext:
    """What decides whether tensors may share bytes. `position` is the step of each op, None while no order is known."""

    graph: Graph
    classes: Classes
    runtime: Runtime
    position: Sequence[int] | None = None
    graph_outputs: frozenset[int] = field(init=False)
    graph_inputs: frozenset[int] = field(init=False)
    _facts: dict[int, _ClassFacts] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.graph_outputs, self.graph_inputs = frozenset(self.graph.outputs), frozenset(self.graph.inputs)

    def facts_of(self, t: int) -> _ClassFacts:
        """The facts of the class of `t`: a class only grows at its end, so each tensor of it is looked at once."""
        home = self.classes.home[t]
        class_facts, members = self._facts.get(home), self.classes.members[home]
        if class_facts is None:
            class_facts = self._facts[home] = _ClassFacts()
        while class_facts.count < len(members):
            member = members[class_facts.count]
            class_facts.count += 1
            class_facts.lasts = class_facts.lasts or _lasting(self, member) != ""
            if self.position is not None:
                for reader in self.graph.readers[member]:
                    before = class_facts.latest[-1] if class_facts.latest else -1
                    class_facts.latest.append(max(before, self.position[reader]))
                    class_facts.reads.append((member, reader))
        return class_facts


def refusal(context: SharingContext, index: int, operand: int, group: str) -> str:
    """Why output 0 of op `index` may not take the bytes of an operand, empty where it may.

    `group` is how the operator works: "elementwise", "row" or "update".
    """
    op = context.graph.ops[index]
    x, y = op.inputs[operand], op.outputs[0]
    return (
        _unplanned(context, x, y)
        or unlike(context.graph, x, y)
        or _shared_operand(context, op, x, y, group, context.graph.tensors[y].shape)
        or _kept(context, x)
        or _misplaced(context, x, y)
        or _read_later(context, index, x)
    )


def overlap_refusal(context: SharingContext, index: int, x: int, y: int, group: str) -> str:
    """Why output `y` of op `index` may not run into its operand `x`, which must die there; empty where it may.

    Of the conditions of an overwrite those that do not ask for equal places: 3, 4 and 7.
    """
    op = context.graph.ops[index]
    return (
        _unplanned(context, x, y)
        or _shared_operand(context, op, x, y, group, context.graph.tensors[x].shape)
        or _kept(context, x)
        or _read_later(context, index, x)
        or _in_use(context, index, y)
    )


def _in_use(context: SharingContext, index: int, y: int) -> str:
    """Whether another tensor of the output's class holds a value when the operator begins, and would be overlapped."""
    for t in context.classes.of(y):
        producer = context.graph.producers[t]
        before = context.position is not None and producer >= 0 and context.position[producer] < context.position[index]
        if producer < 0 or before:
            return f"3: the output's block already holds {context.graph.tensors[t].name!r}"
    return ""


def _unplanned(context: SharingContext, x: int, y: int) -> str:
    """Why one of the two has no arena address to share, or both share one already; else empty."""
    home, tensors = context.classes.home, context.graph.tensors
    if x not in home or tensors[x].kind is not Kind.ACTIVATION:
        return f"4: the operand is {tensors[x].kind}"
    if y not in home or tensors[y].kind is not Kind.ACTIVATION:
        return "4: the output has no memory in the arena"
    return "" if home[x] != home[y] else "7: they share memory already"


def unlike(graph: Graph, x: int, y: int) -> str:
    """Why the two cannot share bytes: their sizes, element widths or shapes differ; else empty."""
    a, b, sizes = graph.tensors[x], graph.tensors[y], graph.sizes
    if sizes[x] != sizes[y] or BITS.get(a.dtype) != BITS.get(b.dtype):
        return f"1: {a.nbytes} bytes of {a.dtype} for {b.nbytes} bytes of {b.dtype}"
    if not _alike(a.shape, b.shape):
        return f"2: shape {list(a.shape)} is not the output's {list(b.shape)}"
    return ""


def _alike(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes differ at most in the ones that broadcasting adds."""
    return a == b or without_leading_ones(a) == without_leading_ones(b)


def _shared_operand(context: SharingContext, op: Op, x: int, y: int, group: str, shape: tuple[int, ...]) -> str:
    """Whether the operator reads the operand's bytes through another operand too, or puts another output there.

    Operands of the same bytes and the same `shape` are read together where the operator goes element by element.
    """
    home, delta, tensors = context.classes.home, context.classes.delta, context.graph.tensors
    own = home[x]
    shared = [t for t in op.inputs if home.get(t) == own]
    if len(shared) > 1 and group != "elementwise":
        return "3: the operator reads these bytes through two operands"
    for t in shared:
        if delta[t] != delta[x] or not _alike(tensors[t].shape, shape):
            return "3: the operator reads these bytes in two places"
    for t in op.outputs:
        if t != y and home.get(t) == own:
            return "7: another output lies there"
    return ""


def _kept(context: SharingContext, x: int) -> str:
    """Why the operand's class must last: an output, a kept input, state, what nothing here writes; empty where not."""
    if not context.facts_of(x).lasts:
        return ""
    t, what = next((t, what) for t in context.classes.of(x) if (what := _lasting(context, t)))
    return f"4: shares memory with {context.graph.tensors[t].name!r}, {what}"


def _lasting(context: SharingContext, t: int) -> str:
    """What makes one tensor last beyond its readers; empty where nothing does."""
    tensor = context.graph.tensors[t]
    if tensor.kind is not Kind.ACTIVATION:
        return f"which is {tensor.kind}"
    if t in context.graph_outputs:
        return "an output of the model"
    if t in context.graph_inputs and context.runtime.inputs == "live":
        return f"an input that {context.runtime.name} keeps"
    if context.graph.producers[t] < 0 and t not in context.graph_inputs:
        return "which nothing here writes"
    return ""


def _misplaced(context: SharingContext, x: int, y: int) -> str:
    """Why the operand's place in its class does not suit the output; else empty."""
    classes, size, inside = context.classes, context.graph.sizes[y], context.classes.delta[x]
    if inside % context.runtime.alignment:
        return f"5: the operand lies {inside} bytes into its block, the alignment is {context.runtime.alignment}"
    if classes.span(x) != size or classes.span(y) != size or inside or classes.delta[y]:
        return "5: one of the two is part of a larger block, which would stay alive with it"
    return ""


def _read_later(context: SharingContext, index: int, x: int) -> str:
    """Whether the class still has readers, or writers, after the operator: what the order decides."""
    if context.position is None:
        return ""
    step, known = context.position[index], context.facts_of(x)
    first = bisect_right(known.latest, step)
    if first == len(known.latest):
        return ""
    t, reader = known.reads[first]
    name = context.graph.tensors[t].name
    return f"3: {context.graph.label(reader)} reads {name!r} of the same bytes at step {known.latest[first]}"
