"""A difference in words, as JSON and as Markdown: settings, memory by part, peaks, operators in order of effect."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from modelplan.answers.model_difference import Bytes, Change, Difference, Named, OpChange, PeakPart
from modelplan.outputs.report import Report, Section, Table, folded, literal
from modelplan.outputs.reports.arena_report import ALONE
from modelplan.primitives.units import brief, counted, human

_MOST_ROWS = 12
#: How many of the operators that differ in values only are named.
_MOST_NAMED = 4
SCHEMA = 1
_LONGEST_NAME = 40
#: A long name as labels quote it.
_QUOTED = re.compile(r"'([^']{41,})'")


def sections_of(difference: Difference) -> Report:
    """The difference as sections; of two sides that are the same a single line."""
    title = f"{difference.old} -> {difference.new}" if difference.old != difference.new else difference.old
    if difference.empty:
        return [Section(title, ("nothing differs but names, if anything",))]
    first = Section(title, tuple(head_lines(difference)))
    return [first, *_memory(difference), *_peak(difference), *_operators(difference)]


# The head -------------------------------------------------------------------------------------------------------------


def head_lines(difference: Difference) -> Iterator[str]:
    """The number before and after, what was chosen differently, and what holds for both."""
    yield from figure_lines(difference)
    for setting in difference.settings:
        yield f"{setting.name} {setting.before} -> {setting.after}"
    sized = "" if difference.by_itself else "sized for "
    yield f"{sized}{', '.join(basis_words(difference))}"
    for side, refusals in zip(("old", "new"), difference.refusals, strict=True):
        yield from (f"{side}: the runtime would not run it: {refusal}" for refusal in refusals)
    yield from _capacities(difference)


def figure_lines(difference: Difference) -> Iterator[str]:
    """What is needed before and after; of sessions also what the runtime's planner needs for the tensors alone."""
    if difference.arena.before is not None and difference.arena.after is not None:
        yield f"{difference.counted} {became(difference.arena)}"
    if difference.by_itself:
        yield f"ort by itself {became(difference.by_itself)}: {ALONE}"


def basis_words(difference: Difference) -> Iterator[str]:
    """By which rules both sides are sized: what differs with both words, but not what a setting says already."""
    old, new = (basis.split(", ") for basis in difference.basis)
    if len(old) != len(new):
        yield f"{difference.basis[0]} -> {difference.basis[1]}"
        return
    for before, after in zip(old, new, strict=True):
        if before == after:
            yield before
        elif not any(setting.before in before and setting.after in after for setting in difference.settings):
            yield f"{before} -> {after}"


def _capacities(difference: Difference) -> Iterator[str]:
    rows = zip(("old", "new"), difference.capacities, (difference.arena.before, difference.arena.after), strict=True)
    for side, capacity, arena in rows:
        if capacity is not None and arena is not None:
            spare = capacity - arena
            word = f"fits, {human(spare)} to spare" if spare >= 0 else f"does not fit, {human(-spare)} too much"
            yield f"{side}: capacity {human(capacity)}: {word}"


def became(figure: Bytes) -> str:
    """A figure before and after, with the difference.

    >>> became(Bytes(1000, 1016)), became(Bytes(8, 8))
    ('1,000 B -> 1,016 B, 16 B more (1.6%)', '8 B, unchanged')
    """
    before, after = figure.before or 0, figure.after or 0
    if before == after:
        return f"{human(after)}, unchanged"
    share = f" ({abs(figure.delta) / before:.1%})" if before and abs(figure.delta) * 1000 >= before else ""
    word = "more" if figure.delta > 0 else "less"
    return f"{human(before)} -> {human(after)}, {brief(abs(figure.delta))} {word}{share}"


def signed(delta: int) -> str:
    """A difference in bytes with its sign; nothing for none.

    >>> signed(-1024), signed(0)
    ('-1,024', '')
    """
    return f"{delta:+,}" if delta else ""


# Memory and peak ------------------------------------------------------------------------------------------------------


def memory_rows(difference: Difference) -> list[tuple[str, ...]]:
    """The changed parts, largest change first, the unchanged in one row, then flash."""
    differing = [part for part in difference.parts if part.bytes.delta]
    same = [part for part in difference.parts if not part.bytes.delta]
    rows = [_row(part) for part in differing]
    if same:
        size = sum(part.bytes.after or 0 for part in same)
        rows.append((f"[{counted(len(same), 'part')} unchanged]", f"{size:,}", f"{size:,}", ""))
    return [*rows, *(_row(Named(f"flash: {part.name}", part.bytes)) for part in difference.flash if part.bytes.delta)]


def _row(part: Named) -> tuple[str, ...]:
    return part.name, shown(part.bytes.before), shown(part.bytes.after), signed(part.bytes.delta)


def shown(value: int | None) -> str:
    """A figure in bytes, or a dash where a side lacks it."""
    return "-" if value is None else f"{value:,}"


def _memory(difference: Difference) -> Sequence[Section]:
    if not any(part.bytes.delta for part in (*difference.parts, *difference.flash)):
        return []
    headings = ("part", ">before", ">after", ">change")
    return [Section("Memory", (), Table(headings, tuple(memory_rows(difference))))]


def peak_title(difference: Difference) -> str:
    """The bytes alive at the peaks and the operators there."""
    old, new = difference.peaks
    where = old.operator if old.operator == new.operator else f"{old.operator} -> {new.operator}"
    return f"Peak {became(Bytes(old.nbytes, new.nbytes))}: {where}"


def peak_rows(difference: Difference) -> list[tuple[str, ...]]:
    """What is alive at the peaks, what differs first, what does not in one row."""
    differing = [part for part in difference.peak_parts if part.bytes.before != part.bytes.after]
    same = [part for part in difference.peak_parts if part.bytes.before == part.bytes.after]
    rows = [_peak_row(part) for part in differing[:_MOST_ROWS]]
    if rest := differing[_MOST_ROWS:]:
        before, after = sum(p.bytes.before or 0 for p in rest), sum(p.bytes.after or 0 for p in rest)
        rows.append((f"[{len(rest)} others]", "", f"{before:,}", f"{after:,}", signed(after - before)))
    if same:
        size = f"{sum(part.bytes.after or 0 for part in same):,}"
        rows.append((f"[{len(same)} unchanged]", "", size, size, ""))
    return rows


def _peak_row(part: PeakPart) -> tuple[str, ...]:
    name = folded(" = ".join(part.tensors), _LONGEST_NAME)
    figures = shown(part.bytes.before), shown(part.bytes.after), signed(part.bytes.delta)
    return (name, part.made_by, *figures)


def peak_lines(difference: Difference) -> Iterator[str]:
    """Gaps that the planners leave above the bytes alive, and plans that keep parts of tensors."""
    over = [peak.height - peak.nbytes for peak in difference.peaks]
    gaps, shared = Bytes(*(max(size, 0) for size in over)), Bytes(*(max(-size, 0) for size in over))
    if gaps.before or gaps.after:
        yield f"gaps that the planner leaves above it {became(gaps)}"
    if shared.before or shared.after:
        yield f"bytes of it that operators write over while they read them {became(shared)}"
    for side, head in parts_kept(difference):
        yield (
            f"{side}: the plan in the file keeps parts of tensors and needs {human(head)}; the figures here and of"
            " operators are those of whole tensors"
        )


def parts_kept(difference: Difference) -> Iterator[tuple[str, int]]:
    """The sides whose file carries a plan that keeps parts of tensors, with the bytes that this plan needs."""
    for side, head, peak in zip(("old", "new"), difference.heads, difference.peaks, strict=True):
        if head is not None and head < peak.height:
            yield side, head


def _peak(difference: Difference) -> Sequence[Section]:
    differing = any(part.bytes.before != part.bytes.after for part in difference.peak_parts)
    if not differing:
        return [Section(f"{peak_title(difference)}; the same is alive there", tuple(peak_lines(difference)))]
    headings = ("alive", "made by", ">before", ">after", ">change")
    table = Table(headings, tuple(peak_rows(difference)))
    return [Section(peak_title(difference), tuple(peak_lines(difference)), table)]


# Operators ------------------------------------------------------------------------------------------------------------


def _operators(difference: Difference) -> Sequence[Section]:
    shown = own_changes(difference)[:_MOST_ROWS]
    lines = [f"{signed(change.effect) or '0':>9}  {short_names(change.line)}" for change in shown]
    lines += others_line(own_changes(difference)[_MOST_ROWS:])
    sections = []
    if lines:
        sections.append(Section(EFFECT_TITLE, tuple(lines)))
    if rest := [*following_lines(difference), *value_lines(difference), *order_lines(difference)]:
        sections.append(Section("Besides", tuple(rest)))
    return sections


def short_names(line: str) -> str:
    """The line with long names in quotes folded.

    >>> short_names("op 3 Conv 'a': gone")
    "op 3 Conv 'a': gone"
    """
    return _QUOTED.sub(lambda match: f"'{folded(match[1], _LONGEST_NAME)}'", line)


#: What the figures beside operators count.
EFFECT_TITLE = "Operators that differ, with the bytes more or less that they have at the peak and kept for them"


def own_changes(difference: Difference) -> list[OpChange]:
    """The operators that differ by themselves, apart from values."""
    return [change for change in difference.changes if change.change not in (Change.FOLLOWS, Change.VALUES)]


def others_line(rest: Sequence[OpChange]) -> list[str]:
    """One line for what is not listed; nothing where all is."""
    if not rest:
        return []
    words = [f"{sum(op_change.change is change for op_change in rest)} {change}" for change in Change]
    counts = ", ".join(word for word in words if not word.startswith("0 "))
    return [f"{signed(sum(op_change.effect for op_change in rest)) or '0':>9}  [{len(rest)} others: {counts}]"]


def following_lines(difference: Difference) -> list[str]:
    """One line that counts the operators that differ only because their inputs do."""
    following = difference.of(Change.FOLLOWS)
    if not following:
        return []
    sums = [
        f"{name} {became(Bytes(sum(b.before or 0 for b in column), sum(b.after or 0 for b in column)))}"
        for name, column in (
            ("outputs", [change.outputs for change in following]),
            ("scratch", [change.scratch for change in following]),
            ("kept", [change.kept for change in following]),
        )
        if any(figure.delta for figure in column)
    ]
    most = [f"{short_names(c.label)} {signed(c.effect)}" for c in following[:_MOST_NAMED] if c.effect]
    largest = [f"most effect: {', '.join(most)}"] if most else []
    what = "; ".join([*sums, *largest]) or "no bytes differ"
    verb = "follows" if len(following) == 1 else "follow"
    return [f"{counted(len(following), 'operator')} behind these {verb}: {what}"]


def value_lines(difference: Difference) -> list[str]:
    """One line for what differs in values or quantisation only, which no memory depends on."""
    values = difference.of(Change.VALUES)
    if not values:
        return []
    named = [f"{short_names(change.label)} ({', '.join(change.details)})" for change in values[:_MOST_NAMED]]
    rest = [f"[{len(values) - len(named)} others]"] if len(values) > len(named) else []
    return [f"values or quantisation only, no bytes: {'; '.join([*named, *rest])}"]


def order_lines(difference: Difference) -> list[str]:
    """How many operators run at another place in the order; nothing where none does."""
    if not difference.moved:
        return []
    verb = "runs" if difference.moved == 1 else "run"
    return [f"{counted(difference.moved, 'operator')} {verb} at another place in the order"]


# JSON -----------------------------------------------------------------------------------------------------------------


def as_json(difference: Difference) -> str:
    """The difference as JSON: every operator, none folded; figures in bytes, null where a side has no such thing."""
    document = {
        "schema": SCHEMA,
        "old": {"model": difference.old, "basis": difference.basis[0], **_side(difference, 0)},
        "new": {"model": difference.new, "basis": difference.basis[1], **_side(difference, 1)},
        "same": difference.empty,
        "whole": difference.whole,
        "settings": [asdict(setting) for setting in difference.settings],
        "arena": _figure(difference.arena),
        **({"by_itself": _figure(difference.by_itself)} if difference.by_itself else {}),
        "parts": [{"name": part.name, **_figure(part.bytes)} for part in difference.parts],
        "flash": [{"name": part.name, **_figure(part.bytes)} for part in difference.flash],
        "alive": [
            {"tensors": part.tensors, "made_by": part.made_by, **_figure(part.bytes)} for part in difference.peak_parts
        ],
        "changes": [_change(change) for change in difference.changes],
        "moved": difference.moved,
    }
    return json.dumps(document, indent=1) + "\n"


def _side(difference: Difference, which: int) -> dict[str, object]:
    return {
        "refusals": difference.refusals[which],
        "capacity": difference.capacities[which],
        "peak": asdict(difference.peaks[which]),
        "live": difference.live[which],
    }


def _figure(figure: Bytes) -> dict[str, int | None]:
    return {"before": figure.before, "after": figure.after, "delta": figure.delta}


def _change(change: OpChange) -> dict[str, object]:
    columns = ("outputs", "scratch", "kept", "weights", "in_peak", "live")
    return {
        "change": change.change.value,
        "before": change.before if change.before >= 0 else None,
        "after": change.after if change.after >= 0 else None,
        "label": change.label,
        "line": change.line,
        "details": change.details,
        "effect": change.effect,
        **{name: _figure(getattr(change, name)) for name in columns},
    }


_MARKDOWN_ROWS = 20


def render_difference(difference: Difference) -> str:
    """The difference as Markdown, ending in a newline; names out of files cannot become marks or HTML."""
    title = f"{difference.old} → {difference.new}" if difference.old != difference.new else difference.old
    blocks = [f"### {literal(title)}"]
    if difference.empty:
        return "\n\n".join([*blocks, "Nothing differs but names, if anything."]) + "\n"
    blocks.append(listed(head_lines(difference)))
    if any(part.bytes.delta for part in (*difference.parts, *difference.flash)):
        blocks.append(rows_under(("part", ">before", ">after", ">change"), memory_rows(difference)))
    blocks.append(f"**{literal(peak_title(difference))}**")
    blocks += [listed(lines)] if (lines := list(peak_lines(difference))) else []
    if any(part.bytes.before != part.bytes.after for part in difference.peak_parts):
        blocks.append(rows_under(("alive", "made by", ">before", ">after", ">change"), peak_rows(difference)))
    blocks += _operator_lines(difference)
    return "\n\n".join(blocks) + "\n"


def _operator_lines(difference: Difference) -> Iterator[str]:
    own = own_changes(difference)
    rows = [(signed(change.effect) or "0", short_names(change.line)) for change in own[:_MARKDOWN_ROWS]]
    rows += [(line.split()[0], line.strip().partition("  ")[2]) for line in others_line(own[_MARKDOWN_ROWS:])]
    if rows:
        yield f"**{literal(EFFECT_TITLE)}**"
        yield rows_under((">bytes", "operator"), rows)
    if rest := [*following_lines(difference), *value_lines(difference), *order_lines(difference)]:
        yield listed(rest)


def listed(lines: Iterator[str] | Sequence[str]) -> str:
    """A line for each, as a list."""
    return "\n".join(f"- {literal(line)}" for line in lines)


def rows_under(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under headings; a column whose heading starts with `>` is aligned to the right."""
    marks = ["---:" if heading.startswith(">") else "---" for heading in headings]
    lines = [[heading.removeprefix(">") for heading in headings], marks, *([literal(c) for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
