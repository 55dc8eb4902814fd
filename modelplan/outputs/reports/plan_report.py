"""The plan in words: verdict, parts of the number, the peak, the bound, what was merged."""

from collections import Counter
from collections.abc import Iterator

from modelplan.answers.summary import RuntimePlan, Summary, summary
from modelplan.model import Overlap, Plan, Schedule
from modelplan.outputs.report import Report, Section, Table, folded_apart, printable
from modelplan.primitives.units import counted, human, stand_in, steps_words
from modelplan.runtimes.tflm.kernels.own_kernels import library_of

_MOST_ROWS = 12


def sections_of(plan: Plan, title: str = "") -> Report:
    """The report under a title, else under the name of the model."""
    figures = summary(plan)
    first = _verdict(plan, figures, title or printable(plan.graph.name))
    return [first, _parts(figures), _peak(figures), *_details(plan)]


def plan_sections(plan: Plan, unmodified: Plan) -> Report:
    """The plan's report under its own title, below that of the unmodified file, whose peak is not repeated."""
    sections = sections_of(plan, "The planned activations")
    return [section for section in sections if section != peak_section(unmodified)]


def peak_section(plan: Plan) -> Section:
    """The step at which most is alive, and what is."""
    return _peak(summary(plan))


def _details(plan: Plan) -> list[Section]:
    sections = [_schedule(plan)]
    if plan.merges:
        sections.append(_merges(plan))
    if used := list(used_overlaps(plan)):
        sections.append(_overlaps(plan, used))
    if plan.graph.remarks:
        sections.append(Section("Remarks of the loader", tuple(map(printable, plan.graph.remarks))))
    return sections


def verdict(figures: Summary) -> str:
    """One line: the number and whether it can be beaten."""
    proof = "proven optimal for this order" if figures.optimal else f"at most {figures.gap:.2%} above the least"
    if figures.jointly_optimal:
        proof = "order and layout jointly optimal"
    return f"planned activations {human(figures.planned)}, {proof}"


def _verdict(plan: Plan, figures: Summary, title: str) -> Section:
    graph, placement = plan.graph, plan.placement
    lines = [verdict(figures)]
    if placement.found_by:
        lines.append(f"{plan.allocator}: {stand_in(placement.found_by, placement.own_height)}")
    if figures.runtime_plan is not None:
        lines.append(_compared(figures.runtime_plan, figures.planned))
    if figures.capacity is not None:
        spare = figures.capacity - figures.planned
        word = f"{human(spare)} to spare" if spare >= 0 else f"{human(-spare)} too much"
        lines.append(f"capacity {human(figures.capacity)}: {word}, for the activations alone")
    lines.append(
        f"{graph.format}, {counted(len(graph.ops), 'operator')}, {counted(len(plan.problem), 'buffer')};"
        f" runtime {plan.runtime.name}, alignment {plan.runtime.alignment}, aliases {plan.alias},"
        f" allocator {plan.allocator}"
    )
    return Section(title, tuple(lines))


def _compared(own: RuntimePlan, planned: int) -> str:
    """The runtime's own plan, and what this one saves."""
    saved = (own.height - planned) / own.height if own.height else 0.0
    word = f"this plan needs {saved:.1%} less" if saved > 0 else "this plan saves nothing"
    if saved < 0:
        word = f"this plan needs {-saved:.1%} more, sharing less than the runtime does: try --alias runtime or safe"
    return f"{own.runtime} by itself ({own.allocator}): {human(own.height)}; {word}"


def _parts(figures: Summary) -> Section:
    rows = [
        ("activations alive at the peak", figures.activations),
        ("alignment loss at the peak", figures.alignment_loss),
        ("fragmentation", figures.fragmentation),
        *([("written over what is still read", -figures.overlapped)] if figures.overlapped else []),
        ("planned in all", figures.planned),
        *([("of it inputs and outputs, which the runtime keeps apart", figures.outside)] if figures.outside else []),
        ("lower bound", figures.lower_bound),
        ("state kept between runs", figures.state),
        ("constants in flash", figures.constants),
    ]
    return Section("Parts", (), Table(("part", ">bytes"), tuple((name, f"{size:,}") for name, size in rows)))


def _peak(figures: Summary) -> Section:
    shown, rest = figures.alive[:_MOST_ROWS], figures.alive[_MOST_ROWS:]
    names = folded_apart([" = ".join(alive.names) for alive in shown])
    rows = [
        (name, f"{alive.size:,}", f"{alive.share:.1%}", steps_words(alive.start, alive.end))
        for name, alive in zip(names, shown, strict=True)
    ]
    if rest:
        share = sum(a.share for a in rest)
        rows.append((f"[{len(rest)} others]", f"{sum(a.size for a in rest):,}", f"{share:.1%}", ""))
    title = f"Peak at step {figures.peak_step}: {printable(figures.peak_op)}"
    return Section(title, (), Table(("alive", ">bytes", ">share", "steps"), tuple(rows)))


def order_line(schedule: Schedule) -> str:
    """The peak of an order, who found it, and how good it is."""
    word = f"optimal ({schedule.proof})"
    if not schedule.optimal:
        least = human(schedule.lower_bound)
        word = f"within {schedule.gap:.2%} of the least: no order is below {least} ({schedule.proof})"
    return f"{human(schedule.peak)} by {schedule.method}, {word}"


def _schedule(plan: Plan) -> Section:
    lines = [f"peak {order_line(plan.schedule)}"]
    if plan.streams:
        ran = Counter(plan.streams)
        each = ", ".join(f"stream {stream}: {ran[stream]:,}" for stream in sorted(ran))
        pairs = counted(len(plan.problem.conflicts), "pair")
        lines.append(f"operators by stream: {each}; {pairs} of buffers with lifetimes apart may still meet")
    if plan.overlaps:
        lines.append("counted without what operators write over while they read it; orders are compared by this figure")
    return Section("Order", tuple(lines))


def _merges(plan: Plan) -> Section:
    tensors, shown = plan.graph.tensors, plan.merges[:_MOST_ROWS]
    merged = folded_apart([tensors[merge.tensor].name for merge in shown])
    into = folded_apart([tensors[merge.into].name for merge in shown])
    rows = [(a, b, merge.rule, f"{merge.saved:,}") for a, b, merge in zip(merged, into, shown, strict=True)]
    if len(plan.merges) > _MOST_ROWS:
        saved = sum(m.saved for m in plan.merges[_MOST_ROWS:])
        rows.append((f"[{len(plan.merges) - _MOST_ROWS} others]", "", "", f"{saved:,}"))
    return Section("Shared memory", (), Table(("tensor", "shares", "rule", ">bytes saved"), tuple(rows)))


def used_overlaps(plan: Plan) -> Iterator[tuple[Overlap, int]]:
    """The overlaps that the placement makes use of, with the bytes that the two tensors have in common."""
    place: dict[int, int] = {}
    for members, start in zip(plan.problem.members, plan.placement.offsets.tolist(), strict=False):
        place |= {m.tensor: start + m.delta for m in members}
    for overlap in plan.overlaps:
        ends = [place[t] + plan.graph.tensors[t].nbytes for t in (overlap.tensor, overlap.over)]
        shared = min(ends) - max(place[overlap.tensor], place[overlap.over])
        if shared > 0:
            yield overlap, shared


def _overlaps(plan: Plan, used: list[tuple[Overlap, int]]) -> Section:
    tensors, shown = plan.graph.tensors, used[:_MOST_ROWS]
    outputs = folded_apart([tensors[overlap.tensor].name for overlap, _ in shown])
    operands = folded_apart([tensors[overlap.over].name for overlap, _ in shown])
    rows = [
        (output, operand, overlap.rule, f"{overlap.lead:,}", f"{shared:,}")
        for output, operand, (overlap, shared) in zip(outputs, operands, shown, strict=True)
    ]
    if len(used) > _MOST_ROWS:
        more = sum(shared for _, shared in used[_MOST_ROWS:])
        rows.append((f"[{len(used) - _MOST_ROWS} others]", "", "", "", f"{more:,}"))
    heads = ("tensor", "runs into", "rule", ">bytes ahead at least", ">bytes shared")
    choice = len(plan.runtime.libraries) > 1
    lines = (f"right for the {library_of(plan.runtime.kernels)} kernels of {plan.runtime.name} only",) if choice else ()
    return Section("Written over what is being read", lines, Table(heads, tuple(rows)))
