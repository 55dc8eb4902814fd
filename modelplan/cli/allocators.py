"""Lists every allocator: what it is, what it guarantees, what it costs, where it comes from."""

from argparse import ArgumentParser, Namespace
from itertools import groupby

from modelplan.cli import files, terminal
from modelplan.outputs.report import Section, Table
from modelplan.planning.allocators import ALLOCATORS
from modelplan.planning.allocators.allocator_rows import USUAL_DEMANDS, Allocator

#: What each kind in the table means, in the order of the guide.
KINDS = {
    "portfolio": "Several allocators; the lowest answer counts.",
    "exact": "A search that can prove that nothing is lower, or that a capacity cannot be met.",
    "search": "Starts from a greedy placement and tries others, up to a budget of steps.",
    "offsets": "Greedy: each buffer once, in some order, into some gap.",
    "objects": "Shared objects: a block holds one buffer at a time; the blocks lie end to end.",
    "online": "Goes by step and sees no buffer before it starts, as an allocator at run time.",
    "colouring": "For buffers of equal size only.",
    "baseline": "No reuse.",
}

#: What is not repeated for each allocator.
USUAL_COST = "O(n log n + n k log k)"

HEAD = """# Allocators

Written by `modelplan allocators --markdown docs/allocators.md` from the table in
`modelplan/planning/allocators`; do not edit.

Every answer of every row is checked by the referee. n is the number of buffers, k the number of those that conflict
with one. Where nothing else is said, an allocator costs O(n log n + n k log k) and guarantees nothing. It refuses a
problem with a demand that it does not honour: alignment, pins, overlaps (pairs that may share some bytes), conflicts
(pairs that must not share bytes although their lifetimes are apart). Rigid groups (buffers at fixed distances) and
meetings (pairs that may share bytes at some distances) are honoured by `modelplan` and `best` alone. Alignment is what
the original rounds to by itself; a placement keeps to the alignments of the problem. Unsound behaviour of an original
is never reproduced. Where a search has no lower answer of its own than `first-fit-size`, the offsets of that row are
shown; every table, chart and file says so, and what the search itself had.
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--markdown", metavar="FILE", help="the whole table as a page of the docs; - for standard output"
    )


def run(arguments: Namespace) -> int:
    if arguments.markdown:
        files.write(arguments.markdown, guide())
        return 0
    rows = tuple((a.name, a.kind, a.guarantees, a.cost, a.source) for a in ALLOCATORS.values())
    terminal.show([Section("", (), Table(("allocator", "kind", "guarantees", "cost", "source"), rows))])
    return 0


def guide() -> str:
    """The page docs/allocators.md: the allocators by kind; one without faults stands in the entry of its original."""
    ranked = sorted(ALLOCATORS.values(), key=lambda row: list(KINDS).index(row.kind))
    parts = [HEAD]
    for kind, rows in groupby(ranked, key=lambda row: row.kind):
        parts.append(f"\n## {kind.capitalize()}\n\n{KINDS[kind]}\n")
        originals = (row for row in rows if row.name.removesuffix("-fixed") == row.name)
        parts.extend(_entry(list(group)) for _, group in groupby(originals, key=_facts))
    return "".join(parts)


def _facts(row: Allocator) -> dict[str, str]:
    """What is said of an allocator, but for its source."""
    return {
        "": row.summary,
        "also called": row.also_called,
        "guarantees": "" if row.guarantees == "none" else row.guarantees,
        "cost": "" if row.cost == USUAL_COST else row.cost,
        "refuses": ", ".join(sorted(USUAL_DEMANDS - row.honours)),
        "alignment": f"{row.alignment:,}" if row.alignment > 1 else "",
        "faults reproduced": row.quirks,
        "without these faults": f"`{row.name}-fixed`" if f"{row.name}-fixed" in ALLOCATORS else "",
        "left out": row.omits,
    }


def _entry(rows: list[Allocator]) -> str:
    """The part on allocators of which the same is said."""
    facts = _facts(rows[0]) | {"source": "; ".join(dict.fromkeys(row.source for row in rows))}
    summary = facts.pop("")
    lines = [f"* {name}: {value}" for name, value in facts.items() if value]
    names = ", ".join(row.name for row in rows)
    return f"\n### {names}\n\n{summary}" + "\n\n" * bool(summary) + "\n".join(lines) + "\n"
