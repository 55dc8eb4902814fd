"""The plan that a .tflite file carries, by buffers as TFLM places them, also where it keeps parts of tensors only."""

from collections.abc import Iterator, Sequence

import numpy as np

from modelplan.answers import drawing
from modelplan.answers.drawing import KINDS, Drawing
from modelplan.answers.page_views import View
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model import (  # fmt: skip
    Buffer,
    BufferKind,
    Graph,
    Member,
    Merge,
    Op,
    Placement,
    Problem,
    Requirement,
    Runtime,
    Tensor,
)
from modelplan.model.model_file import ModelFile
from modelplan.primitives.lazy_records import dataclass
from modelplan.questions.alternatives import carried_offsets, carries_plan
from modelplan.runtimes.tflm import planner, scopes
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.scopes import Scope

#: What is said of such a plan.
ABOUT = (
    "Buffers may hold some rows of a tensor only, and one may be written over another that is still read: bytes alive"
    " are counted once. The steps are those that TFLM plans, with each loop run once: from a loop on, steps have higher"
    " numbers than operators in the file."
)
#: What is said of an operand that nothing writes before the loop.
_UNWRITTEN = (
    "an operand of the loop that nothing writes before it: TFLM plans it from the start, but its bytes hold no value"
    " until then"
)
#: Above so many steps the page has no names for them.
_MOST_STEPS = 100_000


def needs_own_view(file: ModelFile, runtime: Runtime) -> bool:
    """Whether a file carries a plan that is none of whole tensors of its main graph."""
    return carries_plan(file, runtime) and not carried_offsets(file, runtime)


def carried_view(file: ModelFile, requirement: Requirement, runtime: Runtime, capacity: int | None, name: str) -> View:
    """The buffers that TFLM plans for a file, at the addresses where the plan in the file and TFLM put them.

    Tensors that lie in the same bytes at the same time are one buffer: the operands of a loop, the inputs of its body
    and what the body leaves there. The steps are TFLM's scopes without the first, in which the inputs are
    written: so operator 0 is step 0, as in other views. Where something is used in that scope alone, it is kept.
    """
    model = read_tflite(file.content, file.path)
    rows = planner.requests(model, runtime.kernels)
    plan = planner.read_plan(model) or ()
    places = planner.greedy_offsets(rows, plan or None)
    run = _run_of(model, {row.tensor: at for row, at in zip(rows, places, strict=True) if row.tensor >= 0 <= row.last})
    used = [row._replace(first=run.unwritten.get(row.tensor, row.first)) for row in rows]
    held = _held(used, places)
    lead = 0 if any(row.last == 0 for row in used) else 1
    buffers = [_buffer(model, run, used, same, lead) for same in held]
    offsets = np.array([places[same[0]] for same in held], dtype=np.int64)
    drawn = Drawing(
        title=file.graph.name,
        problem=Problem.of(buffers, capacity, overlaps=_overlaps(buffers, offsets.tolist())),
        placement=Placement(offsets),
        planned=planner.head_bytes(rows, places),
        kinds=np.array([KINDS.index(drawing.kind_of(run.graph, buffer)) for buffer in buffers], dtype=np.int64),
        ops=tuple(run.graph.ops[op].kind for op in run.order[lead:]),
        made_by="",
        kept=requirement.kept,
    )
    return View(
        name,
        ABOUT,
        drawn,
        graph=run.graph,
        order=run.order[lead:],
        merges=tuple(_merges(run, buffers)),
        facts=tuple(("refused by the runtime", why) for why in requirement.refusals),
        refused=bool(requirement.refusals),
        parts=True,
        op_labels=run.labels,
        op_callers=run.callers,
        given=tuple(
            number
            for number, same in enumerate(held)
            if any(rows[i].tensor >= 0 and plan[rows[i].tensor] != planner.ONLINE for i in same)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """One invocation: operators of all subgraphs, and where these begin, as the operators of one graph.

    `order` names the operator of each scope, `labels` and `callers` are those
    of `View`. `tensors` numbers the planned tensors of the file
    in the graph, `origins` the operator that each comes from. `unwritten` are the operands of loops that nothing
    writes before, by their numbers in the file, with the scope of the loop.
    """

    graph: Graph
    order: tuple[int, ...]
    labels: tuple[str, ...]
    callers: tuple[int, ...]
    tensors: dict[int, int]
    origins: dict[int, int]
    unwritten: dict[int, int]


def _run_of(model: FileModel, places: dict[int, int]) -> _Run:
    """One invocation of the model as TFLM runs it, restricted to tensors with these addresses."""
    tensors = {tensor: number for number, tensor in enumerate(places)}
    run_scopes = scopes.scopes_of(model, _MOST_STEPS)
    first: dict[tuple[int, int], Scope] = {}
    for scope in run_scopes:
        first.setdefault((scope.subgraph, scope.op), scope)
    numbers = {key: number for number, key in enumerate(first)}
    flows = [_flow(model, scope) for scope in first.values()]
    ops = tuple(_op(model, scope, flow, places, tensors) for scope, flow in zip(first.values(), flows, strict=True))
    main = model.subgraphs[0]
    graph = Graph(
        model.name,
        "tflite",
        tuple(_tensor(model, tensor) for tensor in tensors),
        ops,
        tuple(tensors[t] for t in main.inputs if t in tensors),
        tuple(tensors[t] for t in main.outputs if t in tensors),
    )
    return _Run(
        graph,
        tuple(numbers[scope.subgraph, scope.op] for scope in run_scopes),
        tuple(scopes.words_of(model, scope) for scope in first.values()),
        tuple(numbers.get(scope.caller, -1) for scope in first.values()),
        tensors,
        {tensors[t]: number for number, (_, writes) in enumerate(flows) for t in writes if t in tensors},
        _unwritten(model, run_scopes, {t for _, writes in flows for t in writes}),
    )


def _unwritten(model: FileModel, run_scopes: Sequence[Scope], written: set[int]) -> dict[int, int]:
    """The operands of loops that nothing writes before, with the scope of the loop.

    TFLM plans them from the start, since it sees no writer; until the loop writes there, the bytes hold no value.
    """
    starts: dict[int, int] = {}
    readers: dict[int, int] = {}
    for step, scope in enumerate(run_scopes):
        if scope.op < 0:
            continue
        here, base = model.subgraphs[scope.subgraph], model.firsts[scope.subgraph]
        op = here.ops[scope.op]
        for t in (base + t for t in op.reads):
            if readers.setdefault(t, step) == step and op.kind == "WHILE" and t not in written:
                starts[t] = step
    return {t: step for t, step in starts.items() if t - model.firsts[0] not in model.subgraphs[0].inputs}


def _tensor(model: FileModel, number: int) -> Tensor:
    row = model.tensors[number]
    return Tensor(row.name, row.shape, DTYPES[row.type])  # a variable with a place in the plan is no state


def _flow(model: FileModel, scope: Scope) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tensors that a scope takes and gives: where a called subgraph begins, operands become its inputs."""
    here, base = model.subgraphs[scope.subgraph], model.firsts[scope.subgraph]
    if scope.op >= 0:
        op = here.ops[scope.op]
        return tuple(base + t for t in op.reads), tuple(base + t for t in op.writes)
    if scope.caller[0] < 0:
        return (), ()  # the inputs of the model have no writer
    caller = model.subgraphs[scope.caller[0]].ops[scope.caller[1]]
    return tuple(model.firsts[scope.caller[0]] + t for t in caller.reads), tuple(base + t for t in here.inputs)


def _op(
    model: FileModel,
    scope: Scope,
    flow: tuple[tuple[int, ...], tuple[int, ...]],
    places: dict[int, int],
    tensors: dict[int, int],
) -> Op:
    """A scope as an operator. What a call only hands on, since it has the same address inside, it does not write."""
    reads, writes = flow
    kind = model.subgraphs[scope.subgraph].ops[scope.op].kind if scope.op >= 0 else "BEGIN" if writes else "START"
    inside: set[int] = set()
    if scope.op < 0:
        inside = {places[t] for t in reads if t in places}
        reads = () if all(places.get(t) in inside for t in writes) else reads
    else:
        for called in model.subgraphs[scope.subgraph].ops[scope.op].calls:
            first = model.firsts[called]
            inside |= {places[first + t] for t in model.subgraphs[called].outputs if first + t in places}
    name = model.tensors[writes[0]].name if writes and scope.op >= 0 else ""
    outputs = tuple(tensors[t] for t in writes if t in tensors and places[t] not in inside)
    return Op(name, kind, tuple(tensors[t] for t in reads if t in tensors), outputs)


def _held(rows: Sequence[planner.Request], places: Sequence[int]) -> list[list[int]]:
    """The requests of each buffer: those with the same bytes that share a step. Those that are never used have none."""
    by_bytes: dict[tuple[int, int, int], list[int]] = {}
    for i, row in enumerate(rows):
        if row.last >= 0:
            alone = i if row.scratch else -1
            by_bytes.setdefault((places[i], row.size, alone), []).append(i)
    groups: list[list[int]] = []
    for same in by_bytes.values():
        end = -2
        for i in sorted(same, key=lambda i: (rows[i].first, i)):
            if rows[i].first <= end:
                groups[-1].append(i)
            else:
                groups.append([i])
            end = max(end, rows[i].last)
    return [sorted(group) for group in sorted(groups, key=min)]


def _buffer(model: FileModel, run: _Run, rows: Sequence[planner.Request], same: Sequence[int], lead: int) -> Buffer:
    """The buffer of these requests; step 0 is the scope `lead`."""
    row = rows[same[0]]
    start = max(min(rows[i].first for i in same) - lead, 0)  # what is never written is there from the beginning
    end = max(rows[i].last for i in same) + 1 - lead
    if row.scratch:
        subgraph, op = row.op
        kind = model.subgraphs[subgraph].ops[op].kind
        where = f" of subgraph {subgraph}" if subgraph else ""
        return Buffer(f"scratch of op {op} {kind}{where}", row.size, start, end, kind=BufferKind.SCRATCH)
    members = tuple(Member(run.tensors[rows[i].tensor]) for i in same)
    return Buffer(model.tensors[row.tensor].name, row.size, start, end, members=members)


def _merges(run: _Run, buffers: Sequence[Buffer]) -> Iterator[Merge]:
    """Why the tensors of a buffer share it."""
    operands = {run.tensors[t]: run.order[step] for t, step in run.unwritten.items() if t in run.tensors}
    for buffer in buffers:
        for member in buffer.members[1:]:
            if member.tensor in operands:
                yield Merge(member.tensor, buffer.members[0].tensor, operands[member.tensor], _UNWRITTEN, buffer.size)
                continue
            op = run.origins.get(member.tensor, 0)
            kind = run.graph.ops[op].kind if run.graph.ops else ""
            rule = {
                "BEGIN": "the called subgraph gets its operands in place",
                "WHILE": "the loop keeps one address for each of its values",
            }.get(kind, "the plan in the file has both at this address while both are alive")
            yield Merge(member.tensor, buffer.members[0].tensor, op, rule, buffer.size)


def _overlaps(buffers: Sequence[Buffer], offsets: Sequence[int]) -> list[tuple[int, int, int]]:
    """Rows (below, above, bytes) of buffers that share bytes while both are alive."""
    overlaps = []
    ranked = sorted(range(len(buffers)), key=lambda i: offsets[i])
    for place, low in enumerate(ranked):
        end = offsets[low] + buffers[low].size
        for high in ranked[place + 1 :]:
            if offsets[high] >= end:
                break
            if buffers[low].start < buffers[high].end and buffers[high].start < buffers[low].end:
                overlaps.append((low, high, end - offsets[high]))
    return overlaps
