"""Judges what a model needs against its limits."""

from __future__ import annotations

from collections.abc import Iterator

from modelplan.answers.check_outcomes import Earlier, Figures, Judgement, Limits

#: Said where growth is limited and nobody told what to compare with.
NO_BASELINE = "no baseline is given; --baseline FILE.json or a git revision names one"


def judgements(limits: Limits, figures: Figures, earlier: Earlier | None) -> Iterator[Judgement]:
    """Each limit with what was measured. Growth without an earlier figure cannot be judged, and says why."""
    if limits.arena is not None:
        yield Judgement("arena", figures.arena, limits.arena)
    if limits.head is not None:
        yield Judgement("head", figures.head, limits.head)
    if limits.flash is not None:
        yield Judgement("flash", figures.flash, limits.flash)
    if limits.growth is not None:
        before = earlier.figures if earlier else None
        if before is None:
            yield Judgement("growth", None, None, earlier.reason if earlier else NO_BASELINE)
        else:
            yield Judgement("growth", figures.arena - before.arena, limits.growth.allowed(before.arena))
