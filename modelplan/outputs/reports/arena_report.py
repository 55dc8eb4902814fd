"""What a model file needs on its runtime, in words: the number to declare, its parts, and what would need less."""

from __future__ import annotations

from collections.abc import Sequence

from modelplan.answers.analysis import lower_alternatives
from modelplan.model import Alternative, LibraryNeed, Requirement
from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import human


def headline(model: str, needed: Requirement, capacity: int | None = None) -> Section:
    """The number to paste or to expect, for what it holds, and whether it fits; or why the runtime would not run it."""
    if needed.refusals:
        remedies = (f"remedy: {remedy}" for remedy in needed.remedies)
        return Section(f"{model}: the runtime would not run it ({needed.basis})", (*needed.refusals, *remedies))
    declared = f"#define {needed.macro} {needed.arena}" if needed.macro else f"memory {human(needed.arena)}"
    if needed.libraries:
        declared += "  // any kernels; less with --kernels or --target"
    lines = [declared, needed.basis, *needed.remarks]
    if capacity is not None:
        lines.append(f"capacity {human(capacity)}: {_fits(needed, capacity)}")
    return Section(model, tuple(lines), _libraries_table(needed.libraries))


def _fits(needed: Requirement, capacity: int) -> str:
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
    """What the model needs with each kernel library; None where one was named."""
    if not libraries:
        return None
    rows = [
        (one.library, *(("refused", "", "") if one.refusals else map("{:,}".format, (one.arena, one.head, one.tail))))
        for one in libraries
    ]
    return Table(("kernels", ">arena", ">head", ">tail"), tuple(rows))


def parts_section(needed: Requirement) -> Section:
    """The parts that add up to the arena, each with how far to trust it."""
    rows = [(p.name, f"{p.nbytes:,}", str(p.count or ""), p.trust) for p in needed.parts]
    rows.append(("in all", f"{needed.arena:,}", "", ""))
    estimated = any(p.trust.startswith("estimated") for p in needed.parts)
    lines = ("estimated on the ample side; what the runtime reports on the device tells more",) if estimated else ()
    headings = ("part", ">bytes", ">count", "trust")
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
