"""Several memories: the choice against its slow twin, the referee against broken layouts, the report and its files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import cache
from io import StringIO
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from commands import run
from matplotlib.patches import PathPatch
from region_problems import cheapest, random_problem, swept_problem
from shares import few_first

from modelplan.answers.region_layout import Access, Copy, Layout, RegionProblem, Stay
from modelplan.answers.region_plan import RegionPlan
from modelplan.checking.moves_simulator import simulate
from modelplan.formats import load_model
from modelplan.model import Buffer, Problem
from modelplan.outputs import render
from modelplan.outputs.figures import arenas_map, canvas, region_map
from modelplan.outputs.reports import region_report
from modelplan.outputs.schemas.plan_schema import region_schema
from modelplan.planning import pipeline
from modelplan.planning.memories import exact_choice, pricing
from modelplan.planning.memories.asking import region_problem
from modelplan.planning.memories.choice_tables import tables_of
from modelplan.planning.memories.memory_choice import Choosing, Method, ShortageError, chosen_layout
from modelplan.planning.memories.pricing import chosen_in_parts, priced_choice
from modelplan.planning.memories.region_planning import plan_regions, prove, with_arenas
from modelplan.primitives import highs
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.questions.memories.region_document import read
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.targets.device import Region
from modelplan.targets.stated_regions import parse_region

MODELS = Path(__file__).resolve().parents[3] / "models"


@cache
def planned(name: str, *regions: str, both_ends: bool = False) -> RegionPlan:
    plan = pipeline.plan(load_model(MODELS / name))
    return plan_regions([plan], [parse_region(text) for text in regions], Choosing(both_ends=both_ends))


KWS = "ds_cnn_kws.tflite", "sram:24KiB@0x20000000", "psram:8MiB@0x3c000000,read=80MB/s,write=40MB/s"


# The choice ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", few_first(range(40), 4))
def test_exact_and_fast_choice_against_every_combination(seed: int) -> None:
    problem = random_problem(Random(seed), 6, 5, 2 + seed % 2, tight=0.8)
    tables = tables_of(problem)
    least = cheapest(tables)
    fast, bound = priced_choice(tables)
    assert bound <= least * (1 + 1e-6) + 1e-12
    assert fast is not None
    assert tables.fits(fast)
    assert tables.cost_of(fast) <= least * 1.02 + 1e-12
    exact = exact_choice.exact_choice(tables)
    assert exact.choice is not None
    assert tables.cost_of(exact.choice) == pytest.approx(least, rel=1e-6, abs=1e-12)
    assert exact.bound <= least + 1e-12


@pytest.mark.parametrize("method", ["auto", "exact", "fast"])
def test_a_model_without_operators_needs_no_memory(method: Method) -> None:
    regions = random_problem(Random(0), 6, 5, 2).regions
    layout = chosen_layout(RegionProblem(Problem.of([]), regions, (), (), (), ()), Choosing(method))
    assert not layout.stays
    assert layout.ended == "optimal"


@pytest.mark.parametrize("number", [7, 22])
def test_the_fast_choice_of_60_buffers_is_within_2_percent(number: int) -> None:
    """Problems of `region_sweep.py --seed 7 --buffers 10 30 60 120` in which single moves end 3 and 12 % above."""
    tables = tables_of(swept_problem(Random(7_000_021 + number), (10, 30, 60, 120)))
    assert len(tables.cost) == 60
    exact = exact_choice.exact_choice(tables)
    fast, bound = priced_choice(tables)
    assert exact.optimal
    assert fast is not None
    assert tables.fits(fast)
    assert bound <= tables.cost_of(fast) <= exact.bound * 1.02


@pytest.mark.parametrize("seed", range(4))
def test_parts_chosen_again_by_highs_lead_to_the_exact_choice(seed: int) -> None:
    """From the choice with everything in the last region, which costs much more."""
    tables = tables_of(random_problem(Random(seed), 24, 8, 3, tight=0.5))
    poor = np.full(len(tables.cost), 2)
    linear, exact = exact_choice.linear_choice(tables), exact_choice.exact_choice(tables)
    assert linear is not None
    paid = np.stack([(linear.prices[:, a:b].sum(axis=1) * w)
                     for a, b, w in zip(tables.start, tables.end, tables.weight, strict=True)])  # fmt: skip
    value = float((tables.cost + paid).min(axis=1).sum() - (linear.prices * tables.room[:, None]).sum())
    found = chosen_in_parts(tables, poor, tables.cost + paid, value, 0.0)
    assert exact.optimal
    assert tables.cost_of(poor) > exact.bound * 1.02
    assert tables.fits(found)
    assert tables.cost_of(found) <= exact.bound * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_linear_relaxation_bounds_and_its_prices_prove_it(seed: int) -> None:
    tables = tables_of(random_problem(Random(seed), 30, 8, 3, tight=0.5))
    found = exact_choice.linear_choice(tables)
    assert found is not None
    paid = np.stack([(found.prices[:, a:b].sum(axis=1) * w)
                     for a, b, w in zip(tables.start, tables.end, tables.weight, strict=True)])  # fmt: skip
    proved = (tables.cost + paid).min(axis=1).sum() - (found.prices * tables.room[:, None]).sum()
    assert proved == pytest.approx(found.bound, rel=1e-4)
    exact = exact_choice.exact_choice(tables)
    assert exact.choice is not None
    assert found.bound <= tables.cost_of(exact.choice) * (1 + 1e-9)


def test_a_linear_relaxation_without_room_has_no_answer() -> None:
    tables = tables_of(random_problem(Random(1), 12, 5, 2))
    for region in range(len(tables.room)):
        tables = tables.with_less(region, int(tables.room[region]))
    found = exact_choice.linear_choice(tables)
    assert found is not None
    assert found.bound == float("inf")


def test_without_scipy_the_exact_choice_names_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "is_there", lambda: False)
    with pytest.raises(RequestError, match=r"modelplan\[memories\]"):
        chosen_layout(random_problem(Random(0), 16, 8, 3), Choosing("exact"))


@pytest.mark.parametrize("method", ["auto", "fast"])
def test_without_scipy_there_is_a_layout(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "is_there", lambda: False)
    problem = random_problem(Random(0), 16, 8, 3)
    simulate(problem, chosen_layout(problem, Choosing(method)))


def test_prices_of_large_problems_are_found_by_subgradient_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "_MOST_COLUMNS", 0)
    for seed in range(4):
        tables = tables_of(random_problem(Random(seed), 16, 8, 3))
        choice, bound = priced_choice(tables)
        assert choice is not None
        assert tables.fits(choice)
        exact = exact_choice.exact_choice(tables)
        assert bound <= exact.bound * (1 + 1e-6)  # HiGHS holds costs to 1e-7
        assert tables.cost_of(choice) <= exact.bound * 1.02


@pytest.mark.parametrize("seed", range(30))
def test_every_layout_of_a_random_problem_passes_the_simulator(seed: int) -> None:
    random = Random(seed)
    problem = random_problem(random, random.randrange(1, 20), random.randrange(1, 12), 1 + seed % 4, tight=0.6)
    layout = chosen_layout(problem, Choosing(random.choice(("fast", "exact")), both_ends=random.random() < 0.5))
    seconds = RegionPlan((), problem, layout, ((0, "activation"),) * len(problem.problem), False, "").seconds
    assert layout.bound <= seconds * (1 + 1e-9)
    assert len(layout.stays) == len(problem.problem)


def test_gaps_that_take_a_region_beyond_its_end_change_the_choice() -> None:
    """Two of three buffers of 3 and 5 fit by their sums, not by their alignment."""
    rows = [Buffer("a", 5, 0, 2, 4), Buffer("b", 5, 0, 2, 4), Buffer("c", 2, 0, 2, 1)]
    regions = Region("fast", 12), Region("slow", 100, bandwidth=1000)
    accesses = tuple(Access(0, i, 100, 0) for i in range(3))
    problem = RegionProblem(Problem.of(rows), regions, accesses, ((0, 1),) * 3, (-1,) * 3, (0.0, 0.0))
    layout = chosen_layout(problem)
    assert simulate(problem, layout).seconds == pytest.approx(0.1)
    assert layout.bound <= 0.1


def test_what_cannot_fit_says_what_is_needed_and_exits_1() -> None:
    rows = [Buffer("a", 50, 0, 1), Buffer("b", 60, 0, 1)]
    problem = RegionProblem(Problem.of(rows), (Region("only", 100),), (), ((0,),) * 2, (-1,) * 2, (0.0,))
    for method in ("exact", "fast"):
        with pytest.raises(
            ShortageError, match="step 0 needs 110 bytes, the regions that are written have 100"
        ) as caught:
            chosen_layout(problem, Choosing(method))
        assert caught.value.exit_code == 1
    flash = Region("flash", 30, kind="nvm", bandwidth=1)
    held = RegionProblem(Problem.of(rows[:1]), (flash,), (), ((0,),), (0,), (0.0,))
    with pytest.raises(ShortageError, match="50 bytes of weights do not fit in flash of 30 bytes"):
        chosen_layout(held)


# The simulator -------------------------------------------------------------------------------------------------------


def moved(layout: Layout, number: int, **facts: int) -> Layout:
    stays = list(layout.stays)
    stays[number] = replace(stays[number], **facts)
    return replace(layout, stays=tuple(stays), bound=0.0)


def test_the_simulator_names_what_is_wrong_with_a_layout() -> None:
    made = planned(*KWS)
    problem, layout = made.problem, made.layout
    first = layout.stays[0]
    end = problem.regions[first.region].size
    for facts, words in [
        ({"offset": first.offset + 1}, "expected a multiple of 16"),
        ({"offset": -16}, "expected within"),
        ({"offset": end}, "expected within"),
        ({"region": 7}, "do not exist"),
        ({"end": first.end + 1}, "but lives"),
        ({"start": first.start + 1}, "it was spilled" if first.end - first.start > 1 else "stays"),
    ]:
        with pytest.raises(BrokenPlanError, match=words):
            simulate(problem, moved(layout, 0, **facts))
    with pytest.raises(BrokenPlanError, match="it was spilled"):
        simulate(problem, replace(layout, stays=layout.stays[1:], bound=0.0))
    with pytest.raises(BrokenPlanError, match="claims a bound"):
        prove(replace(made, layout=replace(layout, bound=made.seconds * 1.01)))
    other = next(i for i, s in enumerate(layout.stays) if s.region == first.region and i and s.start < first.end
                 and first.start < s.end)  # fmt: skip
    with pytest.raises(BrokenPlanError, match="share bytes at step"):
        simulate(problem, moved(layout, other, offset=first.offset))


def moving(home: int = -1, write: bool = False) -> tuple[RegionProblem, Layout]:
    """A buffer that is made in one region, leaves it, and comes back."""
    accesses = (Access(0, 0, 0, 8), Access(4, 0, 8, 8 if write else 0))
    regions = Region("fast", 16), Region("slow", 64)
    problem = RegionProblem(
        Problem.of([Buffer("x", 8, 0, 6)]), regions, accesses[home >= 0 :], ((0, 1),), (home,), (0.0,) * 6
    )
    stays = Stay(0, 0, 0, 0, 2), Stay(0, 1, 0, 1, 4), Stay(0, 0, 8, 3, 6)
    return problem, Layout(stays, (Copy(0, 1, 1, 2), Copy(1, 2, 3, 4)))


def test_the_simulator_follows_content_that_moves() -> None:
    problem, layout = moving()
    simulate(problem, layout)
    out, back = layout.copies
    for copies, words in [
        ((), "nothing brought its content"),
        ((out,), None),
        ((back,), "finds no content"),
        ((out, replace(back, due=5)), "its (source|target) lasts"),
        ((replace(out, issued=0), back), "its (source|target) lasts"),
        ((replace(out, due=3), back), "its (source|target) lasts"),
        ((out, Copy(1, -1, 3, 4)), "has no home"),
        ((out, Copy(1, 9, 3, 4)), "do not exist"),
        ((out, replace(back, issued=4, due=3)), "issued at"),
    ]:
        if words is None:
            late = replace(problem, accesses=(*problem.accesses[:1], Access(5, 0, 8, 0)))
            with pytest.raises(BrokenPlanError, match="nothing brought its content"):
                simulate(late, replace(layout, copies=copies))
            continue
        with pytest.raises(BrokenPlanError, match=words):
            simulate(problem, replace(layout, copies=copies))


def test_a_home_is_read_in_place_and_changed_content_goes_back() -> None:
    problem, _ = moving(home=1)
    simulate(problem, Layout(()))
    simulate(problem, Layout((Stay(0, 0, 0, 2, 6),), (Copy(-1, 0, 2, 4),)))
    problem, _ = moving(home=1, write=True)
    with pytest.raises(BrokenPlanError, match="0 places there"):
        simulate(problem, Layout(()))
    kept = Layout((Stay(0, 0, 0, 2, 6),), (Copy(-1, 0, 2, 4),))
    with pytest.raises(BrokenPlanError, match="never written back"):
        simulate(problem, kept)
    simulate(problem, replace(kept, copies=(*kept.copies, Copy(0, -1, 5, 6))))


# Files ---------------------------------------------------------------------------------------------------------------


def test_the_document_is_read_back_and_proved() -> None:
    made = planned(*KWS)
    text = region_report.as_json(made)
    again = read(text, "x.json")
    assert vars(again.layout) == vars(made.layout)
    assert region_report.as_json(again) == text


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda d: d["stays"][0].update(offset=1), BrokenPlanError, "multiple of 16"),
        (lambda d: d["stays"][0].update(region="sram"), ModelError, r"stays\[0\].region is 'sram', expected int"),
        (lambda d: d["stays"].pop(), BrokenPlanError, "it was spilled"),
        (lambda d: d.update(bound=1e9), BrokenPlanError, "claims a bound"),
        (lambda d: d.update(schema=99), ModelError, "schema 1"),
        (lambda d: d.update(plans=[]), ModelError, "no plans"),
        (lambda d: d.pop("regions"), ModelError, "regions is None"),
        (lambda d: d["regions"][0].update(size=100), BrokenPlanError, "may not hold it"),
        (lambda d: d["regions"][0].pop("base"), ModelError, "missing or unknown fields: base"),
    ],
)
def test_a_document_that_was_changed_is_refused(change: object, error: type[Exception], words: str) -> None:
    document = json.loads(region_report.as_json(planned(*KWS)))
    change(document)  # type: ignore[operator]
    with pytest.raises(error, match=words):
        read(json.dumps(document), "x.json")


@pytest.mark.slow
def test_the_document_keeps_to_its_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = region_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(region_report.as_json(planned(*KWS)))
    jsonschema.validate(document, schema)
    damages: list[dict[str, Any]] = [{"stays": [{"buffer": "x"}]}, {"plans": []}, {"kind": "plan"}, {"bound": None}]
    for damage in damages:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document | damage, schema)


def test_the_table_has_a_line_for_each_buffer_with_its_address() -> None:
    made = planned(*KWS)
    rows = list(csv.DictReader(StringIO(region_report.as_csv(made))))
    assert len(rows) == len(made.problem.problem)
    bases = {region.name: region.base for region in made.problem.regions}
    for row in rows:
        assert int(row["address"], 16) == (bases[row["region"]] or 0) + int(row["offset"])


def test_both_ends_leave_the_free_bytes_in_the_middle() -> None:
    one = planned("ds_cnn_kws.tflite", "sram:256KiB@0x20000000", both_ends=True)
    use = one.uses[0]
    assert use.low + use.free + (use.region.size - use.high) == use.region.size
    weights = [stay for stay in one.layout.stays if one.owners[stay.buffer][1] == "weights"]
    assert min(stay.offset for stay in weights) == use.high
    assert max(s.offset + int(one.problem.problem.size[s.buffer]) for s in weights) > use.region.size - 16
    assert "free" in "\n".join(str(s) for s in region_report.sections_of(one))


@pytest.mark.slow
def test_the_stacked_map_draws_every_stay_inside_of_its_panel() -> None:
    made = planned(*KWS)
    stacked = region_map.panels(made)
    for stay in made.layout.stays:
        panel = stacked[stay.region]
        _, low, _, high = region_map.rectangle(made, panel, stay)
        assert panel.bottom - 1e-6 <= low <= high <= panel.top + 1e-6
    assert render(made, ".map.svg") == render(made, ".map.svg")
    assert render(made, ".map.png")[:4] == b"\x89PNG"


@pytest.mark.parametrize("count", [1, 70, 71, 500])
def test_steps_have_their_operators_however_many_there_are(count: int) -> None:
    ticks = region_map.step_ticks(["CONV_2D"] * count, 1060 / count)
    assert ticks == [(step, f"CONV_2D  {step}") for step, _ in ticks]
    assert all((b[0] - a[0]) * 1060 / count >= 7.5 for a, b in pairwise(ticks))
    assert [text for _, text in region_map.step_ticks([""] * 3, 20)] == ["0", "1", "2"]


def test_thin_rectangles_of_the_stacked_map_have_no_outline() -> None:
    made = planned(*KWS)
    stacked = region_map.panels(made)
    heights = [high - low for stay in made.layout.stays
               for _, low, _, high in [region_map.rectangle(made, stacked[stay.region], stay)]]  # fmt: skip
    assert min(heights) < 1 < 2 < max(heights)
    with canvas.style():
        patches = [one for one in region_map.draw(made).axes.get_children()
                   if isinstance(one, PathPatch) and one.get_zorder() == 2]  # fmt: skip
    outlined = [path for one in patches if one.get_linewidth() >= 0.4 for path in one.get_path().to_polygons()]
    thin = [path for one in patches if one.get_linewidth() < 0.4 for path in one.get_path().to_polygons()]
    assert len(outlined) == sum(height >= 2 for height in heights) > 5
    assert len(thin) == sum(0 < height < 2 for height in heights) > 5


def test_a_narrow_rectangle_of_the_stacked_map_may_cut_a_name_but_no_bytes() -> None:
    made, written = planned(*KWS), list[str]()
    stacked = region_map.panels(made)
    stay = max(made.layout.stays, key=lambda stay: int(made.problem.problem.size[stay.buffer]))
    for per_step in range(1, 60):
        write = lambda x, y, text, *_, **__: written.append(text)  # noqa: E731
        sheet = SimpleNamespace(per_step=per_step, x=float, y=float, write=write)
        region_map._name(cast("Any", sheet), made, stacked[stay.region], stay, ["a_long_name_of_a_tensor"])
    cut = {text for text in written if "…" in text}
    assert cut
    assert all(text.startswith("a") and text.endswith("r") for text in cut)


@pytest.mark.slow
def test_the_stacked_map_shows_weights_that_are_copied_from_flash() -> None:
    flash = "flash:1MiB@0x08000000,read=50MB/s,reserve=1KiB"
    made = planned(*KWS, flash)
    number = len(made.uses) - 1
    use, sizes = made.uses[number], made.problem.problem.size
    inside = sum(int(sizes[stay.buffer]) for stay in made.layout.stays if stay.region == number)
    runs = region_map.stored_runs(made, number)
    assert sum(high - low for low, high in runs) == use.stored - inside > 0
    assert runs[0][0] == 1024
    assert use.low == 1024 + use.stored
    assert not any(region_map.stored_runs(made, other) for other in range(number))
    assert b"weights copied from here" in cast("bytes", render(made, ".map.svg"))
    assert f"flash: weights copied from here {use.stored:,}" in "\n".join(
        str(s) for s in region_report.sections_of(made)
    )
    assert b"weights copied from here" not in cast("bytes", render(planned(*KWS), ".map.svg"))


def test_models_in_turn_share_activations_and_keep_their_weights() -> None:
    plans = [pipeline.plan(load_model(MODELS / name)) for name in ("ds_cnn_kws.tflite", "autoencoder.tflite")]
    made = plan_regions(plans, [parse_region("sram:1MiB")], Choosing(both_ends=True))
    alone = [plan_regions([plan], [parse_region("sram:1MiB")], Choosing(both_ends=True)) for plan in plans]
    assert made.uses[0].low == max(one.uses[0].low for one in alone)
    assert read(region_report.as_json(made), "two.json").layout.stays == made.layout.stays
    assert np.array_equal(sorted({owner for owner, _ in made.owners}), [0, 1])


def test_prices_of_two_kinds_find_what_those_of_the_relaxation_miss() -> None:
    """A U-Net in half of its arena: prices of the linear relaxation alone end 20 % above the exact choice."""
    plan = pipeline.plan(load_model(MODELS / "unet_small.tflite"))
    regions = parse_region("tcm:104KiB,kind=tcm", ()), parse_region("sram:2332KiB,rate=400MB/s", ())
    tables = tables_of(region_problem([plan], regions))
    exact, (fast, bound) = exact_choice.exact_choice(tables), priced_choice(tables)
    assert fast is not None
    assert exact.choice is not None
    assert bound <= exact.bound * (1 + 1e-9)
    assert tables.cost_of(fast) <= tables.cost_of(exact.choice) * 1.02


def test_contiguous_lists_are_refused_by_name() -> None:
    plan = pipeline.plan(load_model(MODELS / "unet_small.onnx"), pipeline.Options(runtime="generic"))
    held = replace(plan, problem=replace(plan.problem, contiguous=((0, 1),)))
    with pytest.raises(RequestError, match="contiguous lists cannot be spread"):
        region_problem([held], (parse_region("sram:4MiB", ()),))


@pytest.mark.slow
def test_the_two_arenas_are_drawn_with_the_capacity_of_their_memories(tmp_path: Path) -> None:
    regions = "--region", "sram:24KiB", "--region", "psram:8MiB,read=80MB/s,write=40MB/s,reserve=1KiB"
    svg, png, document = tmp_path / "x.arenas.svg", tmp_path / "x.arenas.png", tmp_path / "x.json"
    model = MODELS / "ds_cnn_kws.tflite"
    done = run("memories", model, *regions, "--draw", svg, "--draw", png, "--json", document)
    assert done.returncode == 0, done.stderr
    assert png.read_bytes()[:4] == b"\x89PNG"
    assert svg.read_bytes().startswith(b"<?xml")
    assert json.loads(document.read_text())["arenas"]
    both = run("memories", model, MODELS / "autoencoder.tflite", "--region", "sram:1MiB", "--draw", svg)
    assert both.returncode == 2
    assert "drawn for one .tflite model that TFLM runs" in both.stderr
    small = run(
        "memories", model, "--kernels", "reference", "--region", "sram:20KiB", "--region", "more:24KiB", "--draw", svg
    )
    assert small.returncode == 2
    assert "no choice of regions holds all of TFLM's parts: persistent arena (6.62 KiB" in small.stderr


def test_the_bar_of_a_memory_adds_up_and_says_when_the_spare_part_is_not_to_scale() -> None:
    made = planned(*KWS)
    file = load_tflite(str(MODELS / "ds_cnn_kws.tflite"))
    made = with_arenas(made, file, "32", "reference")
    numbers = {arena.region for arena in made.arenas if arena.name != "one arena"}
    assert len(numbers) > 1
    for number in numbers:
        rows = arenas_map.segments(made, number)
        region = made.problem.regions[number]
        assert sum(size for _, size, _ in rows) == region.size
        stated = {part.nbytes for part in made.arenas if part.region == number}
        assert {size for words, size, _ in rows if words not in ("spare", "reserved")} <= stated
        shares, to_scale = arenas_map.widths(rows)
        assert sum(shares) == pytest.approx(1)
        if to_scale:
            assert shares == pytest.approx([size / region.size for _, size, _ in rows])
        else:
            assert sum(s for s, row in zip(shares, rows, strict=True) if row[0] != "spare") == pytest.approx(0.4)
    assert {to_scale for number in numbers for _, to_scale in [arenas_map.widths(arenas_map.segments(made, number))]} \
        == {True, False}  # fmt: skip
    with canvas.style():
        words = {text.get_text() for text in arenas_map.draw(made).figure.texts}
    assert {"persistent arena", "non-persistent arena", "model file", "spare"} <= words
    assert any("the spare part is not to scale" in text for text in words)
