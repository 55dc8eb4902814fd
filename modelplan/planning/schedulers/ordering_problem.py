"""From a graph to the problem of ordering it: what each storage keeps alive, and which op runs before which.

Beside the data, side effects order operators, which keep the order of the file, and weights to unpack late.
"""

from collections.abc import Iterable, Iterator, Sequence

from modelplan.model import Aliases, Graph, Member, OrderProblem, Overwrite, Runtime, Storage
from modelplan.ops import facts
from modelplan.planning.lifetimes import class_sizes, padded
from modelplan.runtimes.tflm.file import DECODE

#: The kind of operator that unpacks constants, which does nothing else.
UNPACKING = f"CUSTOM:{DECODE}"


def with_late_unpacking(graph: Graph, order: Sequence[int]) -> tuple[int, ...]:
    """The order with each operator that unpacks weights just before the first operator that reads them.

    Weights then live no longer than before, so that no step needs more. Memory that the application gives for them
    (SetDecompressionMemory) holds what one such operator unpacks at a time.
    """
    unpacking = {op for op in order if graph.ops[op].kind == UNPACKING}
    unpacked_by = {t: op for op in unpacking for t in graph.ops[op].writes}
    late: list[int] = []
    for op in order:
        if op in unpacking:
            continue
        ready = dict.fromkeys(unpacked_by[t] for t in graph.ops[op].reads if unpacked_by.get(t) in unpacking)
        unpacking -= ready.keys()
        late += [*ready, op]
    return (*late, *(op for op in order if op in unpacking))


def has_side_effects(file_format: str, kind: str) -> bool:
    """Whether an operator of this kind may touch more than its outputs; what a custom one does is unknown."""
    if kind == UNPACKING:
        return False
    custom = kind.startswith(("CUSTOM", "DELEGATE", "PLACEHOLDER", "BUILTIN_")) or "." in kind or "::" in kind
    return custom or facts(file_format, kind).effects


def precedences(graph: Graph) -> Iterator[tuple[int, int]]:
    """Pairs (before, after) of ops that the data alone does not order.

    Ops with side effects follow each other as in the file; so do ops that touch the same state tensor.
    """
    last_effect, state = -1, set(graph.state)
    last_touch: dict[int, int] = {}
    with_effects = {kind for kind in graph.kinds if has_side_effects(graph.format, kind)}
    for index, op in enumerate(graph.ops if state or with_effects else ()):
        if op.kind in with_effects:
            if last_effect >= 0:
                yield last_effect, index
            last_effect = index
        for t in state & {*op.reads, *op.writes}:
            if t in last_touch:
                yield last_touch[t], index
            last_touch[t] = index


def order_problem(
    graph: Graph, aliases: Aliases, runtime: Runtime, extra: Iterable[tuple[int, int]] = ()
) -> OrderProblem:
    """The order problem of `graph`, its storages in the order of `aliases.classes`; `extra` are more precedences.

    Agrees with `lifetimes.buffers` on what is alive at each step, with two exceptions that keep a bound a bound: an
    input that no op reads counts nothing, and scratch that several ops use counts only while they run.

    Cost: O(tensors + ops + edges).
    """
    edges = {*graph.flows, *precedences(graph), *extra}
    sizes = class_sizes(graph, aliases.classes, runtime).tolist()
    ends = _Ends(graph, runtime)
    storages = tuple(ends.storage(*row) for row in zip(aliases.classes, sizes, strict=True))
    scratch = tuple([sum(padded(size, runtime) for size in op.scratch) if op.scratch else 0 for op in graph.ops])
    return OrderProblem(len(graph.ops), storages, scratch, tuple(sorted(edges)), tuple(_overwrites(aliases, storages)))


def _overwrites(aliases: Aliases, storages: Sequence[Storage]) -> Iterator[Overwrite]:
    """The overwrites that the aliasing offers, between the storages that the operator reads and writes."""
    of = aliases.class_of
    for offer in aliases.offers:
        losing, to = of[offer.over], of[offer.tensor]
        if offer.op in storages[losing].readers and offer.op in storages[to].writers:
            yield Overwrite(offer.op, losing, to, min(storages[losing].size, storages[to].size))


class _Ends:
    """What is there before the first operator and after the last, and so what storages are alive."""

    def __init__(self, graph: Graph, runtime: Runtime) -> None:
        self.graph, self.state, self.fed = graph, frozenset(graph.state), frozenset(graph.inputs)
        self.state_apart = runtime.state == "separate"
        self.kept = frozenset((*graph.outputs, *(graph.inputs if runtime.inputs == "live" else ())))

    def storage(self, members: tuple[Member, ...], size: int) -> Storage:
        """The storage of a class of `size` bytes."""
        tensors = [m.tensor for m in members]
        readers = _distinct([self.graph.readers[t] for t in tensors])
        if not self.state.isdisjoint(tensors):
            apart = self.state_apart
            return Storage(0, (), (), from_start=True) if apart else Storage(size, (), readers, True, True)
        producers = _distinct([(p,) for t in tensors if (p := self.graph.producers[t]) >= 0])
        fed, kept = not self.fed.isdisjoint(tensors), not self.kept.isdisjoint(tensors)
        if not producers and not fed:  # scratch that no op fills: alive while its users run
            return Storage(size, readers, (), to_end=kept)
        # An op that reads and writes the storage leaves its bytes in place, so it counts as a reader.
        writers = () if fed else tuple(sorted({*producers} - {*readers}))
        return Storage(size, writers, readers, fed, kept)


def _distinct(ops: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The ops of ascending rows, each once, ascending."""
    return ops[0] if len(ops) == 1 else tuple(sorted({op for row in ops for op in row}))
