"""An explanation in words and as JSON: the peak, what keeps it up, what comes after it, and what would help."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from modelplan.answers.explanation import (
    Advice,
    Compression,
    Explanation,
    LiveBuffer,
    Needs,
    Peak,
    Suggestion,
)
from modelplan.outputs.report import Pasted, Report, Section, Table, folded_apart
from modelplan.outputs.reports.arena_report import headline, settings_section
from modelplan.primitives.units import counted, human
from modelplan.runtimes.c import RAM_MACRO

_MOST_ROWS = 12
#: Places of a change that does not help which are named.
_MOST_PLACES = 3
#: Characters of the name of a tensor at the peak, beside who made it and who keeps it.
_NAME = 28
#: Said of a change that is searched here for a short time only.
_BRIEFLY = "in a short search; `fit` searches longer"
SCHEMA = 1
#: The lists of suggestions, by the most that they ask for.
_TITLES = {
    Needs.WORK: "What would help: with this model on this runtime",
    Needs.PLATFORM: "With other kernels, another runtime or another memory",
    Needs.MODEL: "With another model: sizes only, accuracy unknown",
}

_PRICES = {Needs.NOTHING: "free", Needs.WORK: "more work", Needs.PLATFORM: "the platform", Needs.MODEL: "another model"}


def sections_of(explanation: Explanation) -> Report:
    """What the model needs, and the changes that would lower it."""
    return [*need_sections(explanation), *change_sections(explanation)]


def need_sections(explanation: Explanation) -> Report:
    """What the model needs and its peak, which is known before any change is tried."""
    first = headline(explanation.model, explanation.needed, explanation.capacity)
    if explanation.needed.refusals:
        return [first]
    session = explanation.needed.session
    above = [first, settings_section(session)] if session else [first]
    if explanation.needed.macro == RAM_MACRO:
        rows = f"`modelplan fit {explanation.model} --runtime c -o net.c --draw net.map.svg` shows what is kept of them"
        above.append(Section("", (f"The peak below is that of whole maps; {rows}.",)))
    return [*above, *peak_sections(explanation.peak)]


def change_sections(explanation: Explanation) -> Report:
    """The changes that would help, and what else was asked about."""
    if explanation.needed.refusals:
        return []
    session = explanation.needed.session
    helping = advice_sections(explanation.advice, session.by_itself if session else explanation.needed.head)
    return [*helping, *_remedy(explanation), *_what_if(explanation.what_if)]


def _what_if(asked: Sequence[Compression]) -> Sequence[Section]:
    """What a compression would save in flash and in planned activations; nothing unless asked for."""
    if not asked:
        return []
    lines = (
        "sizes only: nothing is compressed, accuracy and time are unknown; activations as modelplan plans them",
        "decoded: an operator writes what was compressed to the arena before each reader; direct: kernels read it",
    )
    rows = tuple(
        (
            compression.name,
            f"{compression.count}",
            f"{compression.flash_after:,}",
            f"{compression.flash_before - compression.flash_after:,}",
            f"{compression.head_after:,}",
            f"{compression.head_before - compression.head_after:,}",
            f"{compression.head_direct:,}" if compression.name.startswith("weights") else "",
        )
        for compression in asked
    )
    headings = ("compress", ">of them", ">flash", ">less", ">decoded", ">less", ">direct")
    return [Section("What if: compression", (*lines, *_decoded_lines(asked)), Table(headings, rows))]


def _decoded_lines(asked: Sequence[Compression]) -> Iterable[str]:
    """What unpacking costs in TFLM's arena for what is saved in flash."""
    for compression in asked:
        if compression.arena_after:
            less = compression.flash_before - compression.flash_after
            more = compression.arena_after - compression.arena_before
            sizes = f"{compression.arena_beside:,} beside {compression.region:,}"
            apart = f", or {sizes} of SetDecompressionMemory" if compression.region else ""
            yield (
                f"{compression.name} with TFLM_DECODE: arena {compression.arena_after:,},"
                f" {more:+,} for {less:,} less of flash{apart}"
            )


def _remedy(explanation: Explanation) -> Sequence[Section]:
    """What would make the model fit, or that nothing would; nothing where it fits or no capacity is known."""
    if explanation.capacity is None or explanation.needed.fits(explanation.capacity):
        return []
    session = explanation.needed.session
    if session and (fitting := session.fitting(explanation.capacity)):
        spare = human(explanation.capacity - fitting.judged)
        return [
            Section("The least that makes it fit", (f"settings of the session: {fitting.settings}: {spare} to spare",))
        ]
    if not explanation.ways:
        return [Section(f"Nothing that was tried fits in {human(explanation.capacity)}")]
    title = f"What fits in {human(explanation.capacity)}, the least change first"
    return [Section(title, tuple(way_lines(explanation.ways)))]


def way_lines(ways: Iterable[Suggestion]) -> Iterator[str]:
    """For each way that fits what it needs and costs, and its commands or what to do."""
    for way in ways:
        cost = "" if way.free else f" ({'; '.join(way.costs)})"
        yield f"{way.arena:,} bytes: {way.name}{cost}"
        if way.commands:
            yield Pasted(f"  {' && '.join(way.commands)}")
        yield from (f"  {words}" for words in way.todo)


def peak_sections(peak: Peak) -> Report:
    """What is alive at the peak and why, the steps near it, and the peaks that follow."""
    shown = peak.alive[:_MOST_ROWS]
    names = folded_apart([" = ".join(live.tensors) for live in shown], _NAME)
    rows = [_live_row(name, live) for name, live in zip(names, shown, strict=True)]
    if len(peak.alive) > _MOST_ROWS:
        rest = peak.alive[_MOST_ROWS:]
        share = sum(live.share for live in rest)
        rows.append((f"[{len(rest)} others]", f"{sum(live.nbytes for live in rest):,}", f"{share:.1%}", "", ""))
    top, lines = peak.top, list[str]()
    if peak.height > top.nbytes:
        gaps = human(peak.height - top.nbytes)
        lines.append(f"the plan ends at {human(peak.height)}: its planner leaves gaps of {gaps}")
    table = Table(("alive", ">bytes", ">share", "made by", "kept until"), tuple(rows))
    first = Section(f"Peak at step {top.step}: {top.operator}, {human(top.nbytes)}", tuple(lines), table)
    return [first, *_shared(peak), *_near(peak), Section("Then", tuple(_following(peak)))]


def _live_row(name: str, live: LiveBuffer) -> tuple[str, ...]:
    until = "" if live.until < 0 else f"step {live.until}: "
    return (name, f"{live.nbytes:,}", f"{live.share:.1%}", live.made_by, f"{until}{live.keeper} {live.why}")


def _shared(peak: Peak) -> Sequence[Section]:
    """By which rules tensors alive at the peak share bytes."""
    lines = tuple(f"{_names(live)}: {rule}" for live in peak.alive[:_MOST_ROWS] for rule in live.rules)
    return [Section("Bytes that tensors alive there share", lines)] if lines else []


def _names(live: LiveBuffer) -> str:
    """The tensors of a buffer, so many of them by name."""
    more = len(live.tensors) - _MOST_ROWS
    return " = ".join(live.tensors[:_MOST_ROWS]) + (f" and {more:,} more" if more > 0 else "")


def _near(peak: Peak) -> Sequence[Section]:
    if not peak.near:
        return []
    shown = peak.near[:_MOST_ROWS]
    whole = peak.top.nbytes
    rows = [
        (str(load.step), load.operator, f"{load.nbytes:,}", f"{load.nbytes / whole:.1%}" if whole else "")
        for load in shown
    ]
    if len(peak.near) > len(shown):
        rows.append((f"[{len(peak.near) - len(shown)} others]", "", "", ""))
    table = Table((">step", "operator", ">bytes", ">of the peak"), tuple(rows))
    return [Section("Other steps within 10 % of the peak", (), table)]


def _following(peak: Peak) -> Iterable[str]:
    """The steps that are highest once those before them are lower."""
    before = "Lower this one"
    for load in peak.following:
        others = f", with {counted(load.alike, 'more step')}" if load.alike else ""
        yield f"{before} and the next is step {load.step}, {load.operator}, {human(load.nbytes)}{others}"
        before = "lower that too" if not load.alike else "lower these too"
    if not peak.following:
        yield "no other step has anything alive"


def advice_sections(advice: Advice, head: int) -> Report:
    """What would help, in the order in which it was ranked, and what was tried besides."""
    ranked_sections = []
    lower = Needs.NOTHING
    for most, title in _TITLES.items():
        listed = [suggestion for suggestion in advice.suggestions if lower <= suggestion.needs <= most]
        lower = Needs(min(most + 1, Needs.MODEL))
        if listed:
            ranked_sections.append(_ranked(title, listed))
    if not ranked_sections:
        nothing = f"nothing that was tried needs less than a head of {human(head)}"
        ranked_sections.append(Section("What would help", (nothing,)))
    tried = list[str]()
    if advice.same:
        briefly = [f"{name} ({_BRIEFLY})" if name.startswith("stripes") else name for name in advice.same]
        tried.append(f"no saving: {'; '.join(_grouped(briefly))}")
    reasons = dict.fromkeys(reason for _, reason in advice.refused)
    for reason in reasons:
        names = _grouped([name for name, why in advice.refused if why == reason])
        tried.append(f"not possible: {'; '.join(names)}: {reason}")
    if advice.untried:
        tried.append(
            f"not tried, since it takes long; --seconds S tries for so long: {'; '.join(_grouped(advice.untried))}"
        )
    return [*ranked_sections, Section("Also tried", tuple(tried))] if tried else ranked_sections


def _grouped(names: Iterable[str]) -> list[str]:
    """The names, the places of one change behind each other; more than some are counted."""
    places: dict[str, list[str]] = {}
    for name in names:
        change, _, place = name.partition(": ")
        places.setdefault(change, []).append(place)
    return [f"{change}: {_listed(own_places)}" if any(own_places) else change for change, own_places in places.items()]


def _listed(places: Sequence[str]) -> str:
    """The places by name; of operators, of which there may be hundreds, some or how many."""
    operators = all(place.startswith("op ") for place in places)
    return f"at {len(places)} operators" if operators and len(places) > _MOST_PLACES else ", ".join(places)


def _ranked(title: str, suggestions: Sequence[Suggestion]) -> Section:
    rows = [
        (f"{number}", suggestion.name, _bytes(suggestion.arena), _bytes(suggestion.saved_arena),
         f"{suggestion.head:,}", f"{suggestion.saved_head:,}", _PRICES[suggestion.needs])
        for number, suggestion in enumerate(suggestions, 1)
    ]  # fmt: skip
    headings = (">", "change", ">arena", ">less", ">head", ">less", "cost")
    commands = tuple(pasted(number, suggestion) for number, suggestion in enumerate(suggestions, 1))
    return Section(title, (), Table(headings, tuple(rows)), commands)


def pasted(number: int, suggestion: Suggestion) -> str:
    """The commands of a suggestion in one line; costs and what no command does stand behind them as a comment."""
    words = f"# {number}: {'; '.join((*suggestion.todo, *suggestion.costs)) or 'free'}"
    return "  ".join([*([" && ".join(suggestion.commands)] if suggestion.commands else []), words])


def _bytes(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def best_lines(suggestions: Sequence[Suggestion], most: int = 3) -> list[str]:
    """The first suggestions in one line each: what they save, what they are, what they cost."""
    return [
        f"{suggestion.saved:,} bytes less"
        f" {'of the arena' if suggestion.saved_arena is not None else 'of the activations'}:"
        f" {suggestion.name} ({'free' if suggestion.free else '; '.join(suggestion.costs)})"
        for suggestion in suggestions[:most]
    ]


def suggestion_fields(suggestion: Suggestion) -> dict[str, object]:
    """A suggestion as an object."""
    kinds = {"needs": suggestion.needs.name.lower(), "way": suggestion.way.name.lower()}
    return {"name": suggestion.name, **asdict(suggestion), **kinds, "free": suggestion.free}


def as_json(explanation: Explanation) -> str:
    refused = [{"change": name, "reason": reason} for name, reason in explanation.advice.refused]
    document = {
        "schema": SCHEMA,
        "model": explanation.model,
        "capacity": explanation.capacity,
        "fits_after": explanation.remedy.name if explanation.remedy else None,
        "ways_that_fit": [way.name for way in explanation.ways],
        "requirement": asdict(explanation.needed),
        "peak": asdict(explanation.peak),
        "suggestions": [suggestion_fields(suggestion) for suggestion in explanation.advice.suggestions],
        "same": list(explanation.advice.same),
        "refused": refused,
        "untried": list(explanation.advice.untried),
        "what_if": [asdict(compression) for compression in explanation.what_if],
    }
    return json.dumps(document, indent=1) + "\n"
