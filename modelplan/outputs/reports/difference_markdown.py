"""A difference as Markdown, for a page or for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modelplan.answers.model_difference import Difference
from modelplan.outputs.report import literal
from modelplan.outputs.reports import difference_report as words

_MOST_ROWS = 20


def render_difference(difference: Difference) -> str:
    """The difference as Markdown, ending in a newline; names out of files cannot become marks or HTML."""
    title = f"{difference.old} → {difference.new}" if difference.old != difference.new else difference.old
    blocks = [f"### {literal(title)}"]
    if difference.empty:
        return "\n\n".join([*blocks, "Nothing differs but names, if anything."]) + "\n"
    blocks.append(listed(words.head_lines(difference)))
    if any(part.bytes.delta for part in (*difference.parts, *difference.flash)):
        blocks.append(rows_under(("part", ">before", ">after", ">change"), words.memory_rows(difference)))
    blocks.append(f"**{literal(words.peak_title(difference))}**")
    blocks += [listed(lines)] if (lines := list(words.peak_lines(difference))) else []
    if any(part.bytes.before != part.bytes.after for part in difference.peak_parts):
        blocks.append(rows_under(("alive", "made by", ">before", ">after", ">change"), words.peak_rows(difference)))
    blocks += _operators(difference)
    return "\n\n".join(blocks) + "\n"


def _operators(difference: Difference) -> Iterator[str]:
    own = words.own_changes(difference)
    rows = [(words.signed(change.effect) or "0", words.short_names(change.line)) for change in own[:_MOST_ROWS]]
    rows += [(line.split()[0], line.strip().partition("  ")[2]) for line in words.others_line(own[_MOST_ROWS:])]
    if rows:
        yield f"**{literal(words.EFFECT_TITLE)}**"
        yield rows_under((">bytes", "operator"), rows)
    if rest := [*words.following_lines(difference), *words.value_lines(difference), *words.order_lines(difference)]:
        yield listed(rest)


def listed(lines: Iterator[str] | Sequence[str]) -> str:
    """A line for each, as a list."""
    return "\n".join(f"- {literal(line)}" for line in lines)


def rows_under(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under headings; a column whose heading starts with `>` is aligned to the right."""
    marks = ["---:" if heading.startswith(">") else "---" for heading in headings]
    lines = [[heading.removeprefix(">") for heading in headings], marks, *([literal(c) for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
