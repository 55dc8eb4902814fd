"""The simulator takes layouts that are safe and keep their times, and rejects each seeded fault by its reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from modelplan.answers.region_layout import Access, Copy, Layout, RegionProblem, Stay, Timetable
from modelplan.checking.moves_simulator import simulate
from modelplan.model import Problem
from modelplan.planning.memories.timing import timetable_of
from modelplan.primitives.errors import BrokenPlanError
from modelplan.targets.device import Dma, Region

SRAM, PSRAM = 0, 1
#: x is made at step 0, sleeps in PSRAM while y and z use its bytes, and is changed at step 4; w comes from its home.
X, Y, Z, W = range(4)


def question(dma: Dma | None = None) -> RegionProblem:
    names = ("x", "y", "z", "w")
    size, start, end = np.array([[60, 0, 7], [60, 1, 4], [30, 2, 5], [40, 0, 7]], dtype=np.int64).T
    regions = (
        Region("sram", 100, read_bandwidth=10_000, write_bandwidth=10_000),
        Region("psram", 1000, kind="psram", read_bandwidth=600, write_bandwidth=300),
    )
    accesses = (
        Access(0, X, 0, 60), Access(1, Y, 0, 60), Access(2, Y, 60, 0), Access(2, Z, 0, 30), Access(3, Y, 60, 0),
        Access(4, X, 60, 60), Access(4, Z, 30, 0), Access(5, W, 40, 0), Access(6, X, 60, 0),
    )  # fmt: skip
    allowed = ((SRAM, PSRAM), (SRAM,), (SRAM,), (SRAM,))
    home = (-1, -1, -1, PSRAM)
    seconds = (0.01,) * 5 + (0.5, 0.01)
    return RegionProblem(Problem(names, size, start, end), regions, accesses, allowed, home, seconds, dma or Dma(2, 2))


STAYS = (
    Stay(X, SRAM, 0, 0, 1),
    Stay(X, PSRAM, 0, 1, 4),
    Stay(Y, SRAM, 0, 1, 4),
    Stay(Z, SRAM, 60, 2, 5),
    Stay(X, SRAM, 0, 4, 7),
    Stay(W, SRAM, 60, 5, 6),
)
OUT, BACK, WEIGHTS = Copy(0, 1, 1, 1), Copy(1, 4, 4, 4), Copy(-1, 5, 5, 5)


def answer(dma: Dma | None = None) -> tuple[RegionProblem, Layout]:
    """A safe layout with the times that it takes; w takes the bytes of z."""
    asked = question(dma)
    layout = Layout(STAYS, (OUT, BACK, WEIGHTS))
    return asked, replace(layout, timetable=timetable_of(asked, layout))


def test_a_safe_layout_takes_the_times_that_it_promises() -> None:
    asked, layout = answer()
    found = simulate(asked, layout)
    out, back, weights = 60 / 300, 60 / 600, 40 / 600
    operators = sum(asked.seconds) + (60 + 60 + 60 + 30 + 60 + 120 + 30 + 40 + 60) / 10_000
    assert found.seconds == pytest.approx(operators + out + back + weights)
    assert found.waiting == pytest.approx(out + back + weights)
    assert (found.copied, found.read[PSRAM], found.written[PSRAM]) == (160, 100, 60)


def test_a_copy_that_overlaps_with_an_operator_costs_no_time() -> None:
    asked, layout = answer()
    asked = replace(asked, seconds=(0.01, 0.01, 0.01, 0.01, 0.5, 0.01, 0.01))
    asked = replace(asked, regions=(replace(asked.regions[0], size=140), asked.regions[1]))
    stays = (*layout.stays[:5], Stay(W, SRAM, 100, 4, 6))
    early = Layout(stays, (OUT, BACK, Copy(-1, 5, 4, 5)))
    late = Layout(layout.stays, layout.copies)
    assert simulate(asked, late).seconds - simulate(asked, early).seconds == pytest.approx(40 / 600)


def rejected(asked: RegionProblem, layout: Layout) -> str:
    with pytest.raises(BrokenPlanError) as caught:
        simulate(asked, layout)
    return str(caught.value)


def test_fault_1_a_copy_that_comes_too_late() -> None:
    asked, layout = answer()
    stays = (*layout.stays[:5], Stay(W, SRAM, 60, 5, 7))
    late = replace(layout, stays=stays, copies=(OUT, BACK, Copy(-1, 5, 5, 6)), timetable=None)
    assert "'w', but the copy that brings it is due at step 6: too late" in rejected(asked, late)


def test_fault_1_a_copy_that_is_promised_to_end_after_its_step_began() -> None:
    asked, layout = answer()
    times = layout.timetable
    assert times is not None
    channel, begin, end = times.copies[2]
    late = replace(times, copies=(*times.copies[:2], (channel, begin + 0.01, end + 0.01)))
    assert "after step 5 has begun: too late" in rejected(asked, replace(layout, timetable=late))


def test_fault_2_a_channel_of_the_engine_used_twice() -> None:
    asked, layout = answer()
    roomy = replace(asked, regions=(replace(asked.regions[0], size=300), asked.regions[1]))
    stays = (*layout.stays[:4], Stay(X, SRAM, 100, 3, 7), Stay(W, SRAM, 200, 3, 6))
    both = Layout(stays, (OUT, Copy(1, 4, 3, 4), Copy(-1, 5, 3, 4)))
    times = timetable_of(roomy, both)
    assert {channel for channel, _, _ in times.copies[1:]} == {0, 1}
    assert simulate(roomy, replace(both, timetable=times)).seconds == pytest.approx(times.seconds)
    one = replace(times, copies=tuple((0, begin, end) for _, begin, end in times.copies))
    assert "copies 1 and 2 have channel 0 at the same time" in rejected(roomy, replace(both, timetable=one))


def test_fault_3_a_region_overfilled_by_one_byte() -> None:
    asked, layout = answer()
    small = replace(asked, regions=(replace(asked.regions[0], size=99), asked.regions[1]))
    assert rejected(small, layout) == "buffer 3 'w' lies at bytes 60..100 of sram, expected within 0..99"


def test_fault_4_a_spilled_buffer_is_read() -> None:
    asked, layout = answer()
    asked = replace(asked, accesses=(*asked.accesses[:4], Access(2, X, 60, 0), *asked.accesses[4:]))
    unpromised = replace(layout, timetable=None)
    assert simulate(asked, unpromised).read[PSRAM] == 160  # an operator may read it in PSRAM
    accelerator = replace(asked, allowed=((SRAM,), *asked.allowed[1:]), home=(PSRAM, *asked.home[1:]))
    copies = (Copy(0, -1, 1, 1), Copy(-1, 3, 4, 4), Copy(-1, 4, 5, 5), Copy(3, -1, 7, 7))
    spilled = Layout((STAYS[0], *STAYS[2:]), copies)
    first = replace(spilled, copies=(Copy(-1, 0, 0, 0), *spilled.copies))
    expected = "step 2 uses buffer 'x', but no memory that it may use holds it there: it was spilled"
    assert rejected(accelerator, first) == expected
    simulate(
        replace(accelerator, accesses=tuple(a for a in accelerator.accesses if (a.step, a.buffer) != (2, X))), first
    )


def test_fault_4_weights_that_no_operator_can_read_in_place() -> None:
    asked, layout = answer()
    without = replace(layout, stays=layout.stays[:5], copies=(OUT, BACK), timetable=None)
    assert "step 5 uses buffer 'w', but no memory that it may use holds it there" in rejected(asked, without)


def test_fault_5_a_source_is_freed_before_its_copy_ends() -> None:
    asked, layout = answer()
    stays = (layout.stays[0], Stay(X, PSRAM, 0, 1, 3), *layout.stays[2:])
    early = replace(layout, stays=stays, timetable=None)
    assert "due at 4: its source lasts in steps 1 to 2" in rejected(asked, early)


def test_fault_6_a_target_is_in_use_while_a_copy_writes_to_it() -> None:
    asked, layout = answer()
    stays = (*layout.stays[:5], Stay(W, SRAM, 60, 4, 6))
    used = replace(layout, stays=stays, copies=(OUT, BACK, Copy(-1, 5, 4, 5)), timetable=None)
    assert "share bytes at step 4" in rejected(asked, used)
    early = replace(layout, copies=(OUT, BACK, Copy(-1, 5, 4, 5)), timetable=None)
    assert "its target lasts in steps 5" in rejected(asked, early)


def test_fault_7_changed_content_is_never_written_back() -> None:
    asked, layout = answer()
    state = replace(asked, accesses=(*asked.accesses[:-2], Access(5, W, 40, 40), asked.accesses[-1]))
    lost = replace(layout, timetable=None)
    assert "'w': what changed is never written back to psram" in rejected(state, lost)
    simulate(state, replace(lost, copies=(*lost.copies, Copy(5, -1, 6, 6))))


def test_fault_7_an_older_content_is_brought_back() -> None:
    asked, layout = answer()
    accesses = (Access(1, W, 40, 40), Access(5, W, 40, 0))
    state = replace(asked, accesses=tuple(sorted((*asked.accesses[:-2], *accesses), key=lambda a: a.step)))
    layout = replace(layout, stays=(*STAYS, Stay(W, SRAM, 60, 1, 2)), timetable=None)
    first = Copy(-1, 6, 1, 1)
    kept = (OUT, first, Copy(6, -1, 2, 2), BACK, WEIGHTS)
    simulate(state, replace(layout, copies=kept))
    stale = replace(layout, copies=(OUT, first, BACK, WEIGHTS))
    assert "holds an older content: what changed was never written back" in rejected(state, stale)


def test_fault_8_copies_in_the_wrong_order() -> None:
    asked = question()
    accesses = tuple(a for a in asked.accesses if a.buffer != Y)
    asked = replace(asked, accesses=(accesses[0], Access(1, W, 40, 0), *accesses[1:]))
    stays = (*STAYS[:2], Stay(Y, SRAM, 0, 2, 4), *STAYS[3:], Stay(W, SRAM, 0, 1, 2))
    asked = replace(asked, problem=replace(asked.problem, start=np.array([0, 2, 2, 0], dtype=np.int64)))
    before = Copy(-1, 6, 1, 1)
    simulate(asked, Layout(stays, (OUT, before, BACK, WEIGHTS)))
    wrong = rejected(asked, Layout(stays, (before, OUT, BACK, WEIGHTS)))
    assert "copy 1 of buffer 'x' at step 1 finds no content" in wrong
    assert "an earlier copy has overwritten it" in wrong


def test_fault_2_an_engine_that_does_not_reach_a_region() -> None:
    asked, layout = answer()
    apart = replace(asked, regions=(asked.regions[0], replace(asked.regions[1], dma=False)))
    times = timetable_of(apart, layout)
    assert {channel for channel, _, _ in times.copies} == {-1}
    assert simulate(apart, replace(layout, timetable=times)).seconds == pytest.approx(times.seconds)
    assert times.copies[0][2] - times.copies[0][1] == pytest.approx(60 / 10_000 + 60 / 300)
    onto = replace(times, copies=tuple((0, begin, end) for _, begin, end in times.copies))
    wrong = rejected(apart, replace(layout, timetable=onto))
    assert wrong == "copy 0 is on channel 0; the processor does it, which is channel -1"


@pytest.mark.parametrize("dma", [Dma(), Dma(1, 1), Dma(2, 4)], ids=str)
def test_fault_9_a_promised_time_is_too_short(dma: Dma) -> None:
    asked, layout = answer(dma)
    times = layout.timetable
    assert times is not None
    assert simulate(asked, layout).seconds == pytest.approx(times.seconds)
    sooner = replace(times, seconds=times.seconds * 0.999)
    assert "step 6 ends at" in rejected(asked, replace(layout, timetable=sooner))
    shrunk = Timetable(tuple(t / 2 for t in times.begins), tuple((c, b / 2, e / 2) for c, b, e in times.copies), 9.0)
    assert "promised" in rejected(asked, replace(layout, timetable=shrunk))


def test_a_claimed_bound_above_the_cost_is_rejected() -> None:
    asked, layout = answer()
    assert "the claimed bound is 9.0" in rejected(asked, replace(layout, bound=9.0))


def test_a_full_queue_makes_the_processor_wait() -> None:
    asked, layout = answer(Dma(1, 1))
    roomy = replace(asked, regions=(replace(asked.regions[0], size=300), asked.regions[1]))
    stays = (*layout.stays[:4], Stay(X, SRAM, 100, 3, 7), Stay(W, SRAM, 200, 3, 6))
    both = Layout(stays, (OUT, Copy(1, 4, 3, 5), Copy(-1, 5, 3, 5)))
    both = replace(both, stays=(*stays[:1], Stay(X, PSRAM, 0, 1, 7), *stays[2:]))
    reading = tuple(a for a in roomy.accesses if a.buffer != X or a.step != 4)
    one, deep = (simulate(replace(roomy, accesses=reading, dma=Dma(1, depth)), both) for depth in (1, 2))
    assert one.begins[3] - deep.begins[3] == pytest.approx(60 / 600)
    assert one.copies[1][0] == deep.copies[1][0] == 0
