"""What is verified: a program with a layout, made from each form of plan."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from modelplan.checking.verifier.addresses import AddressLayout, Scratch
from modelplan.checking.verifier.moves import moves_of
from modelplan.checking.verifier.program import Program, Step, file_program, graph_program
from modelplan.checking.verifier.safe_overlap import least_lead
from modelplan.checking.verifier.semantics import is_opaque, may_overwrite, overwritable_reads
from modelplan.model import BufferKind, Graph, Kind, Merge, Overlap, Placement, Plan, Problem, Runtime
from modelplan.primitives.errors import BrokenPlanError, ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import steps_words
from modelplan.runtimes import with_kernels
from modelplan.runtimes.tflm import TFLM, planner
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.kernels import find_library

#: TFLM's planners keep offsets and sizes in an int.
_MOST_BYTES = 2**31 - 1
#: Bytes of the widest element that TFLM's kernels read, an int64.
_WIDEST = 8


@dataclass(frozen=True, slots=True)
class Offline:
    """A plan that TFLM can run: the model, an offset for each tensor, the head that TFLM should report."""

    model: FileModel
    offsets: tuple[int, ...]
    head: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A plan to verify.

    `merges` and `overlaps` are the sharing that the plan declares, `lifetimes` its half-open steps for each tensor.
    `carrier` is the .tflite file where the plan is the one that it carries, for the kernels of the name `kernels`.
    """

    program: Program
    layout: AddressLayout
    merges: tuple[Merge, ...] = ()
    lifetimes: Mapping[int, tuple[int, int]] | None = None
    offline: Offline | None = None
    overlaps: tuple[Overlap, ...] = ()
    carrier: FileModel | None = None
    kernels: str = "reference"


def offline_subject(model: FileModel, kernels: str = "reference") -> Subject:
    """The plan that a .tflite file carries, with what TFLM adds to it.

    Raises:
        BrokenPlanError: the plan is cut short or counts another number of tensors.
        ModelError: the file carries no plan.
    """
    try:
        offsets = planner.read_plan(model)
    except ModelError as problem:
        raise BrokenPlanError(str(problem)) from None
    if offsets is None:
        raise ModelError(f"{model.name}: no metadata {planner.METADATA} in it; `modelplan fit --only plan` writes one")
    return replace(online_subject(model, offsets, kernels), carrier=model, kernels=kernels)


def trusting_own_kernels(subject: Subject) -> Subject:
    """The plan that a file carries, as it is for custom operators that are not TFLM's own.

    Their kernels are its maker's, who chose which of their operands lie over each other and how far they are aligned:
    here nothing can tell whether that is right. No element is larger than `_WIDEST`, to which all must be aligned.
    """
    assert subject.carrier is not None
    program, layout, known = subject.program, subject.layout, find_library("reference").operators
    strange = {op.kind for part in subject.carrier.subgraphs for op in part.ops if op.custom} - known.keys()
    if not strange:
        return subject
    trusted = {
        (step.subgraph, step.op, y, x): layout.address[x] - layout.address[y]
        for step in program.steps
        if step.kind in strange
        for y in step.writes
        for x in step.reads
        if x in layout.address and y in layout.address
    }
    layout = replace(layout, alignment=_WIDEST, declared={**layout.declared, **trusted})
    return replace(subject, layout=layout)


def online_subject(model: FileModel, offsets: Sequence[int], kernels: str = "reference") -> Subject:
    """The plan `offsets` for a .tflite file, completed as TFLM completes it."""
    rows = planner.requests(model, kernels)
    places = planner.greedy_offsets(rows, offsets)
    return _placed(model, rows, places, tuple(offsets), kernels)


def shim_subject(
    model: FileModel, places: Sequence[int], kernels: str = "reference", rows: Sequence[planner.Request] | None = None
) -> Subject:
    """A BufferPlan for a .tflite file: an offset for each request, in the order in which TFLM adds them.

    `rows` are the requests where they are not those of a target with addresses of 64 bits.

    Raises:
        BrokenPlanError: the plan has another number of offsets than TFLM has requests.
    """
    rows = planner.requests(model, kernels) if rows is None else rows
    if len(rows) != len(places):
        raise BrokenPlanError(f"the BufferPlan has {len(places)} offsets, TFLM adds {len(rows)} buffers for this model")
    return _placed(model, rows, places, None, kernels)


def _placed(
    model: FileModel,
    rows: Sequence[planner.Request],
    places: Sequence[int],
    offsets: tuple[int, ...] | None,
    kernels: str,
) -> Subject:
    program = _with_loop_order(file_program(model), with_kernels(TFLM, kernels))
    pairs = list(zip(rows, places, strict=True))
    address = {row.tensor: at for row, at in pairs if not row.scratch}
    if offsets is not None:
        address |= _planned_state(model, offsets)
    steps: dict[tuple[int, int], list[int]] = {}
    for index, step in enumerate(program.steps if any(row.scratch for row in rows) else ()):
        steps.setdefault((step.subgraph, step.op), []).append(index)
    scratch = tuple(Scratch(i, at, at + row.size) for row, at in pairs if row.scratch for i in steps.get(row.op, ()))
    head = planner.head_bytes(rows, places)
    offline = None if offsets is None else Offline(model, offsets, head)
    return Subject(program, AddressLayout(address, planner.ALIGNMENT, _MOST_BYTES, scratch=scratch), offline=offline)


def _planned_state(model: FileModel, offsets: Sequence[int]) -> dict[int, int]:
    """The addresses of variables with an offset, which lie in the head; the others lie in the tail."""
    kept = planner.ONLINE
    return {t: at for t, (at, x) in enumerate(zip(offsets, model.tensors, strict=True)) if x.variable and at != kept}


def plan_subject(plan: Plan, model: FileModel | None = None) -> Subject:
    """A plan of modelplan's own, for the graph and in the order that it remembers; `model` where TFLM can run it."""
    program = _with_loop_order(graph_program(plan.graph, plan.schedule.order), plan.runtime)
    layout, lifetimes = _buffers(plan.problem, plan.placement)
    # A capacity is a question: a plan above it does not fit, but is sound.
    scratch = _scratch(plan.problem, plan.placement, len(program.steps))
    layout = replace(layout, alignment=plan.runtime.alignment, scratch=scratch, declared=_declared(plan.overlaps))
    offline = None
    in_file_order = plan.schedule.order == tuple(range(len(plan.graph.ops)))
    if model is not None and plan.runtime.offline_plans and in_file_order:
        offsets = tuple(layout.address.get(t, planner.ONLINE) for t in range(len(model.tensors)))
        rows = planner.requests(model)
        offline = Offline(model, offsets, planner.head_bytes(rows, planner.greedy_offsets(rows, offsets)))
    return Subject(program, layout, plan.merges, lifetimes, offline, plan.overlaps)


def _with_loop_order(program: Program, runtime: Runtime) -> Program:
    """The program with the name of the runtime's kernels, and whether they write front to back."""
    known = runtime.library
    return replace(program, sequential=known.sequential, plain_loops=known.plain_loops, library=known.name)


def _declared(overlaps: Sequence[Overlap]) -> dict[tuple[int, int, int, int], int]:
    return {(0, o.op, o.tensor, o.over): o.lead for o in overlaps if o.declared}


def _scratch(problem: Problem, placement: Placement, steps: int) -> tuple[Scratch, ...]:
    """The working memory of operators, at each of the `steps` of the run at which it is alive."""
    blocks = np.flatnonzero(problem.is_scratch)
    at, size, first, end = (
        column[blocks].tolist() for column in (placement.offsets, problem.size, problem.start, problem.end)
    )
    return tuple(
        Scratch(step, at[i], at[i] + size[i])
        for i in range(len(blocks))
        for step in range(first[i], min(end[i], steps))
    )


def _buffers(problem: Problem, placement: Placement) -> tuple[AddressLayout, dict[int, tuple[int, int]]]:
    """Addresses, reserved bytes and lifetimes of the tensors inside the buffers."""
    members = [(m.tensor, m.delta, b) for b, inside in enumerate(problem.members) for m in inside]
    far = next((m for m in members if not (0 <= m[0] < 2**31 and abs(m[1]) < 2**62)), None)
    if far is not None:
        tensor_number, distance, buffer_number = far
        what = f"tensor {tensor_number:.4g} at a distance of {distance:.4g}"
        raise BrokenPlanError(f"buffer {problem.names[buffer_number]!r} holds {what}")
    tensor, delta, buffer = np.array(members, np.int64).reshape(-1, 3).T
    tensors = tensor.tolist()
    starts, steps = (placement.offsets[buffer] + delta).tolist(), (problem.start[buffer], problem.end[buffer])
    address = dict(zip(tensors, starts, strict=True))
    reserved = dict(zip(tensors, (problem.size[buffer] - delta).tolist(), strict=True))
    inside = dict(zip(tensors, delta.tolist(), strict=True))
    lifetimes = dict(zip(tensors, zip(*(column.tolist() for column in steps), strict=True), strict=True))
    return AddressLayout(address, reserved=reserved, inside=inside), lifetimes


def table_subject(
    graph: Graph, problem: Problem, placement: Placement, runtime: Runtime, overlaps: Sequence[Overlap] = ()
) -> Subject:
    """A table of named buffers with offsets, for `graph` in the order given by the buffers' first steps.

    Where those give no order, the order of the file holds. A tensor without a row is a view, part or join of tensors
    with one, and gets its address from them. `overlaps` are what the caller declares.

    Raises:
        BrokenPlanError: a row names no tensor of the graph, or one of several with the same name.
    """
    numbers: dict[str, list[int]] = {}
    for t, tensor in enumerate(graph.tensors):
        numbers.setdefault(tensor.name, []).append(t)
    address: dict[int, int] = {}
    reserved: dict[int, int] = {}
    born: dict[int, int] = {}
    for buffer, at in zip(problem, placement.offsets.tolist(), strict=True):
        if buffer.kind is BufferKind.SCRATCH:
            continue
        ids = numbers.get(buffer.name, []) or _numbered(buffer.name, graph)
        if len(ids) != 1:
            raise BrokenPlanError(
                f"row {buffer.name!r} names {len(ids)} tensors of {graph.name}, expected 1, or 'scratch' in a column"
                " 'kind'"
            )
        address[ids[0]], reserved[ids[0]], born[ids[0]] = at, buffer.size, buffer.start
    program = graph_program(graph, _order_by_first_steps(graph, born) or range(len(graph.ops)))
    program = _with_loop_order(program, runtime)
    _add_implied_addresses(program, address)
    scratch = _scratch(problem, placement, len(program.steps))
    layout = AddressLayout(address, runtime.alignment, None, reserved, {}, scratch, _declared(overlaps))
    return Subject(program, layout)


def _numbered(name: str, graph: Graph) -> list[int]:
    """The tensor that a table calls `NAME (tensor N)`, as it does where several have the name."""
    match = re.fullmatch(r"(.*) \(tensor ([0-9]{1,9})\)", name, re.DOTALL)
    number = int(match[2]) if match else len(graph.tensors)
    return [number] if match and number < len(graph.tensors) and graph.tensors[number].name == match[1] else []


def check_scratch(subject: Subject, graph: Graph, runtime: Runtime) -> None:
    """Checks that a table gives each operator the working memory of its kernel, and some for the bodies that it runs.

    Raises:
        BrokenPlanError: names the operator and what it needs.
    """
    given: dict[int, list[int]] = {}
    for block in subject.layout.scratch:
        given.setdefault(block.step, []).append(block.end - block.start)
    for index, step in enumerate(subject.program.steps):
        op = graph.ops[step.op]
        asked = list(runtime.scratch(graph, op, runtime.kernels) if runtime.scratch else ())
        # A body keeps its largest tensor in memory at least.
        inside = (t.nbytes for body in op.subgraphs for t in body.tensors if t.kind is Kind.ACTIVATION)
        asked += filter(None, [max(inside, default=0)])
        sizes = sorted(given.get(index, []), reverse=True)
        missing = len(sizes) < len(asked) or any(
            size < wanted for size, wanted in zip(sizes, sorted(asked, reverse=True), strict=False)
        )
        if missing:
            raise BrokenPlanError(
                f"{step.label} needs working memory of {asked} bytes at step {index}, the table has {sizes}"
            )


def _order_by_first_steps(graph: Graph, born: Mapping[int, int]) -> list[int]:
    """The order in which each operator runs at the first step of its results; empty where there is none.

    Operators without a result of their own in the table fill the steps between, in file order.
    """
    steps = {i: born[t] for i, op in enumerate(graph.ops) for t in op.writes if t in born}
    waiting = dict.fromkeys(range(len(graph.ops)), 0)
    followers: dict[int, list[int]] = {i: [] for i in waiting}
    for first, then in graph.flows:
        waiting[then] += 1
        followers[first].append(then)
    ready = {i for i, count in waiting.items() if not count}
    order: list[int] = []
    while ready:
        due = [i for i in ready if steps.get(i) == len(order)] or [i for i in ready if i not in steps]
        if not due:
            return []
        order.append(min(due))
        ready.remove(order[-1])
        for reader in followers[order[-1]]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.add(reader)
    return order


def _add_implied_addresses(program: Program, address: dict[int, int]) -> None:
    """Adds the addresses of views, joined parts and split parts that have none, as their moves imply."""
    for steps in (program.steps, program.steps[::-1]):
        for step in steps:
            for m in moves_of(program, step):
                x, y = step.inputs[m.input], step.outputs[m.output]
                if x in address and y not in address:
                    address[y] = address[x] + m.start - m.to
                elif y in address and x not in address and program.values[x].role == "activation":
                    address[x] = address[y] + m.to - m.start


def check_declared(subject: Subject) -> None:
    """Checks that operators allow the sharing that the plan declares, and that its lifetimes cover all uses.

    Raises:
        BrokenPlanError: names the operator and the tensors.
    """
    steps = {step.op: step for step in subject.program.steps}
    overwrites = _overwrites(subject.program) if subject.merges else set()
    for merge in subject.merges:
        step = steps.get(merge.op)
        a, b = merge.tensor, merge.into
        free = (merge.op, a, b) in overwrites or (merge.op, b, a) in overwrites
        if step is None or not (free or _moves_between(subject.program, step, {a, b})):
            label = step.label if step else f"op {merge.op}"
            raise BrokenPlanError(
                f"{label} does not let {subject.program.tensor(merge.tensor)} share the bytes of"
                f" {subject.program.tensor(merge.into)} ({merge.rule})"
            )
    for overlap in subject.overlaps:
        step = steps.get(overlap.op)
        if step is None or not (overlap.declared or is_opaque(step) or _allows_overlap(subject, step, overlap)):
            label = step.label if step else f"op {overlap.op}"
            raise BrokenPlanError(
                f"{label} does not let {subject.program.tensor(overlap.tensor)} start only {overlap.lead} bytes before"
                f" {subject.program.tensor(overlap.over)} ({overlap.rule})"
            )
    _check_lifetimes(subject)


def _allows_overlap(subject: Subject, step: Step, overlap: Overlap) -> bool:
    """Whether the operator computes the same with the overlap that the plan declares."""
    if step.outputs[:1] != (overlap.tensor,):
        return False
    operands = [i for i, x in enumerate(step.inputs) if x == overlap.over]
    if overlap.lead == 0 and any(may_overwrite(subject.program, step, operand, 0) for operand in operands):
        return True
    leads = [least_lead(subject.program, step, operand, 0) for operand in operands]
    return bool(leads) and all(lead is not None and lead <= overlap.lead for lead in leads)


def _overwrites(program: Program) -> set[tuple[int, int, int]]:
    """All operators that may write their first output over an operand: (operator, operand, output)."""
    reads, rows = program.columns.reads, np.flatnonzero(overwritable_reads(program))
    index = reads.step[rows]
    ops = np.array([step.op for step in program.steps], np.int64)[index]
    columns = (ops, reads.tensor[rows], program.columns.result[index])
    return set(zip(*(column.tolist() for column in columns), strict=True))


def _moves_between(program: Program, step: Step, pair: set[int]) -> bool:
    """Whether the step moves bytes between the two tensors."""
    return any({step.inputs[m.input], step.outputs[m.output]} <= pair for m in moves_of(program, step))


def _check_lifetimes(subject: Subject) -> None:
    if not subject.lifetimes:
        return
    columns, tensors = subject.program.columns, len(subject.program.values)
    first, end = np.zeros(tensors, np.int64), np.full(tensors, len(subject.program.steps))
    planned = np.fromiter(subject.lifetimes, np.int64)
    first[planned], end[planned] = np.array([*subject.lifetimes.values()], np.int64).T
    late = [
        (rows.step[row], order, row)
        for order, rows in enumerate((columns.reads, columns.written))
        for row in np.flatnonzero((rows.step < first[rows.tensor]) | (rows.step >= end[rows.tensor]))[:1].tolist()
    ]
    if late:
        index, order, row = min(late)
        t = int((columns.written if order else columns.reads).tensor[row])
        raise BrokenPlanError(
            f"{subject.program.steps[index].label} uses {subject.program.tensor(t)} at step {index},"
            f" the plan keeps it for steps {steps_words(first[t], end[t])}"
        )
