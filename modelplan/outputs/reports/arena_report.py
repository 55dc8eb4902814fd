"""What a model file needs on its runtime, in words: the number to declare, its parts, and what would need less."""

from collections.abc import Sequence

from modelplan.answers.analysis import lower_alternatives
from modelplan.model import Alternative, LibraryNeed, Requirement, SessionMemory
from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import counted, human

#: What a runtime's own plan of an ONNX model is.
ALONE = "tensors alone, as its planner would pack them; a session allocates otherwise"


def headline(model: str, needed: Requirement, capacity: int | None = None) -> Section:
    """The number to paste or to expect, for what it holds, and whether it fits; or why the runtime would not run it."""
    if needed.refusals:
        remedies = (f"remedy: {remedy}" for remedy in needed.remedies)
        return Section(f"{model}: the runtime would not run it ({needed.basis})", (*needed.refusals, *remedies))
    declared = f"#define {needed.macro} {needed.arena}" if needed.macro else f"memory {human(needed.arena)}"
    if needed.libraries:
        declared += "  // any kernels below; less with --kernels"
    lines = [declared, needed.basis, *filter(None, [needed.estimate]), *needed.remarks]
    if needed.session:
        usual = needed.session.usual
        first, later = map(human, usual.judged_runs)
        about = "" if usual.measured else "about "
        runs = f"memory {about}{first} in the first run, {later} in later ones, the last outputs among them"
        lines = [runs, needed.basis, *beside_lines(needed.session)]
    if capacity is not None:
        lines.append(f"capacity {human(capacity)}: {_fits(needed, capacity)}")
    return Section(model, tuple(lines), _libraries_table(needed.libraries))


def beside_lines(session: SessionMemory) -> list[str]:
    """What is not in the figure of a session: inputs, weights, and what the session holds between runs."""
    lines = [session.note] if session.note else []
    if session.fed:
        lines.append(f"run with values that reach the planned extents: {session.fed}")
    if session.usual.lowest is not None:
        lowest, most = human(session.usual.lowest), human(session.usual.most)
        lines.append(f"sessions of this model differ from process to process: {lowest} or {most}; the most counts")
    kept = f"weights {human(session.weights)}"
    if session.loaded is not None:
        kept = f"the loaded session {human(session.loaded)}, of it weights {human(session.weights)}"
    threads = f"{counted(session.threads, 'intra-op thread')} (--threads)"
    apart = f"apart from that: inputs {human(session.inputs)}, {kept}; {threads}"
    return [*lines, apart, f"ort by itself {human(session.by_itself)}: {ALONE}"]


def settings_section(session: SessionMemory) -> Section:
    """The least that sessions with other settings take, with the lines that make such a session."""
    if not session.others:
        return Section("Less by settings alone", ("none of those that were tried needs less",))
    rows = [
        (need.settings, f"{need.first:,}", f"{need.later:,}", f"{session.usual.most - need.most:,}")
        for need in (session.usual, *session.others)
    ]
    table = Table(("settings", ">first run", ">later runs", ">less"), tuple(rows))
    title = "Less by settings alone; the least as Python"
    return Section(title, (), table, ("", *session.others[0].code))


def _fits(needed: Requirement, capacity: int) -> str:
    if needed.guessed:
        return "not known whether it fits, with an estimate"
    spare = capacity - needed.arena
    if spare >= 0:
        return f"fits, {human(spare)} to spare"
    return "; ".join((f"does not fit, {human(-spare)} too much", *libraries_line(needed, capacity)))


def libraries_line(needed: Requirement, budget: int) -> list[str]:
    """With which kernel libraries the budget is enough, where none was named."""
    if not needed.libraries:
        return []
    return [f"fits with {', '.join(needed.libraries_that_fit(budget)) or 'none of the kernel libraries'}"]


def _libraries_table(libraries: Sequence[LibraryNeed]) -> Table | None:
    """What the model needs with each kernel library, those that need the same in one row; None where one was named."""
    if not libraries:
        return None
    alike: dict[tuple[str, ...], list[str]] = {}
    for need in libraries:
        sizes = ("refused", "", "") if need.refusals else tuple(map("{:,}".format, (need.arena, need.head, need.tail)))
        alike.setdefault(sizes, []).append(need.library)
    rows = [(", ".join(names), *sizes) for sizes, names in alike.items()]
    return Table(("kernels", ">arena", ">head", ">tail"), tuple(rows))


def parts_section(needed: Requirement) -> Section:
    """The parts that add up to the arena, each with how far to trust it."""
    rows = [(p.name, f"{p.nbytes:,}", str(p.count or ""), p.trust) for p in needed.parts]
    rows.append(("in all", f"{needed.arena:,}", "", ""))
    estimated = any(p.trust.startswith("estimated") for p in needed.parts)
    lines = ("estimated on the ample side; what the runtime reports on the device tells more",) if estimated else ()
    headings = ("part", ">bytes", ">count", "basis")
    return Section("Why, for the unmodified file", lines, Table(headings, tuple(rows)))


def alternatives_section(needed: Requirement, alternatives: Sequence[Alternative]) -> Section:
    """What other orders and plans of the same file would need, with the commands that write those that need less."""
    less = lower_alternatives(needed, alternatives)
    lines = [f"{a.change}: {a.refusal}" for a in alternatives if a.refusal]
    same = [a.change for a in alternatives if not a.refusal and a not in less]
    if same:
        lines.append(f"no saving: {'; '.join(same)}")
    if not less:
        return Section("What would need less", tuple(lines))
    rows = [_row(a.change, a.requirement, needed) for a in less if a.requirement is not None]
    commands = tuple(" && ".join(a.commands) for a in less)
    table = Table(("change", ">arena", ">less", ">head"), (_row("unmodified", needed, needed), *rows))
    return Section("What would need less", tuple(lines), table, commands)


def _row(change: str, needed: Requirement, before: Requirement) -> tuple[str, ...]:
    return (change, f"{needed.arena:,}", f"{before.arena - needed.arena:,}", f"{needed.head:,}")
