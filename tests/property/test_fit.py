"""Random networks computed in stripes at random legal cuts give the same bytes on TFLM."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from fit_options import packed_before, renamed
from random_cnns import (
    attending_net,
    branched_cnn,
    deep_cnn,
    exported_cnn,
    headed_cnn,
    moving_cnn,
    random_cnn,
    renamed_cnn,
)
from random_stripes import differences, legal_program, rewritten, split
from shares import few_first, share

from modelplan import runtimes
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.formats import load_model
from modelplan.primitives.errors import ModelPlanError
from modelplan.questions.model_fitting import FitRequest, fit
from modelplan.rewriting.striped_tflite import placing
from modelplan.rewriting.striped_tflite.rungs import Goal, ModelOnTarget
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.striped_tflite.turning import with_fewer_transposes
from modelplan.rewriting.striped_tflite.writing import write_striped
from modelplan.rewriting.stripes.group_packing import pack
from modelplan.rewriting.stripes.search_effort import SearchEffort, TfliteEffort
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.runner import INSTALL, installed, run_tflm

T = TypeVar("T")
runtime = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


def first(seed: int, answer: Callable[[int], T | None]) -> T:
    """The answer for the first of `seed`, `seed` + 1000 and so on whose network has operators that can be changed."""
    return next(found for again in range(seed, 100_000, 1000) if (found := answer(again)) is not None)


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("seed", [*range(share(12)), 14, 19, 123, 126, 129, 132, 135, 138])
def test_random_stripes_are_equal_on_tflm(tmp_path: Path, seed: int) -> None:
    assert first(seed, lambda again: differences(again, tmp_path)) == []


@pytest.mark.slow
@runtime
@pytest.mark.parametrize(
    "network", [moving_cnn, exported_cnn, headed_cnn, branched_cnn, deep_cnn, attending_net, renamed_cnn]
)
@pytest.mark.parametrize("seed", range(share(30)))
def test_random_moves_in_stripes_are_equal_on_tflm(tmp_path: Path, seed: int, network: Callable[[int], bytes]) -> None:
    assert first(seed, lambda again: differences(again, tmp_path, network)) == []


@pytest.mark.parametrize(
    "network", [random_cnn, moving_cnn, exported_cnn, headed_cnn, branched_cnn, deep_cnn, attending_net, renamed_cnn]
)
@pytest.mark.parametrize("seed", few_first(range(share(40)), 2))
def test_random_stripes_are_proved_without_a_kernel(tmp_path: Path, seed: int, network: Callable[[int], bytes]) -> None:
    data, moved, program = first(seed, lambda again: split(again, tmp_path, network))
    overlaps = placing.proved_overlaps(runtimes.runtime("tflm", "tflite"))
    _, planned, _ = rewritten(moved, "random", program, overlaps)
    assert [verdict.outcome for verdict in prove_rewrite(data, planned)] == ["ok", "ok"]


@pytest.mark.parametrize("network", [random_cnn, moving_cnn, branched_cnn, deep_cnn, renamed_cnn])
@pytest.mark.parametrize("seed", few_first(range(share(24)), 2))
def test_working_buffers_have_room_on_tflm_where_the_packing_has_them(
    tmp_path: Path, seed: int, network: Callable[[int], bytes]
) -> None:
    """By the lifetimes that TFLM counts, in which tensors that are never written live from the start."""
    _, moved, program = first(seed, lambda again: split(again, tmp_path, network))
    model = ModelOnTarget(moved, program.graph, "random", Goal(kernels="esp-nn"))
    problem = model.problem_of(program, model.overlaps)
    packing = pack(problem, 200)
    sizes = problem.size[len(problem) - (len(packing.bases) - program.groups) :]
    written, values = write_striped(moved, program)
    place = placing.value_addresses(program, packing)
    file = read_tflite(written, "random")
    planned = write_plan(file, [place.get(value, planner.ONLINE) for value in values])
    rows = planner.requests(read_tflite(planned, "random"), "esp-nn")
    at = {row: place[values[row.tensor]] for row in rows if not row.scratch and values[row.tensor] in place}
    at = {row: base for row, base in at.items() if base % planner.ALIGNMENT == 0}  # TFLM rounds up sizes, not ends
    rooms = {(int(size), base) for size, base in zip(sizes, packing.bases[program.groups :], strict=True)}
    for own in (row for row in rows if row.scratch):
        alive = [row for row in at if row.first <= own.last and own.first <= row.last]
        assert any(
            size == own.size and all(at[row] + row.size <= base or base + size <= at[row] for row in alive)
            for size, base in rooms
        )


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("network", [moving_cnn, attending_net, renamed_cnn])
@pytest.mark.parametrize("seed", range(share(24)))
def test_a_number_that_steers_a_move_is_refused_or_changes_nothing(
    tmp_path: Path, seed: int, network: Callable[[int], bytes]
) -> None:
    """Each constant that stripes add (begins, sizes, ends, paddings, offsets of loops) is one off in one place."""
    data, moved, program = first(seed, lambda again: split(again, tmp_path, network))
    overlaps, rng = placing.proved_overlaps(runtimes.runtime("tflm", "tflite")), random.Random(seed)
    places = [i for i, value in enumerate(program.added) if value.numbers and value.dtype == "int32"]
    wanted, refused = run_tflm(data, rounds=1).outputs, 0
    for place in rng.sample(places, min(6, len(places))):
        numbers = list(program.added[place].numbers or ())
        numbers[rng.randrange(len(numbers))] += rng.choice((-1, 1))
        changed = copy.deepcopy(program)
        changed.added[place] = replace(changed.added[place], numbers=tuple(numbers))
        _, planned, _ = rewritten(moved, "random", program, overlaps, written_as=changed)
        try:
            assert [verdict.outcome for verdict in prove_rewrite(data, planned)] == ["ok", "ok"]
        except (ModelPlanError, AssertionError):
            refused += 1
        else:
            assert run_tflm(planned, rounds=1).outputs == wanted, program.added[place].name
    assert refused


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("seed", range(share(24)))
def test_a_part_of_a_constant_that_is_one_off_is_refused_or_changes_nothing(tmp_path: Path, seed: int) -> None:
    """Weights, a bias or numbers for each channel are those of the channels beside them."""
    data = deep_cnn(seed)
    (tmp_path / "deep.tflite").write_bytes(data)
    program = legal_program(load_model(str(tmp_path / "deep.tflite")), seed, deep_cnn)
    assert program is not None
    overlaps, refused, wanted = placing.no_overlaps, 0, run_tflm(data, rounds=1).outputs
    for place, value in enumerate(program.added):
        axis, low, high = value.part or (0, 0, 0)
        shift = -1 if low else 1
        if value.part is None or high + shift > program.graph.tensors[value.tensor].shape[axis]:
            continue
        changed = copy.deepcopy(program)
        changed.added[place] = replace(value, part=(axis, low + shift, high + shift))
        _, planned, _ = rewritten(data, "deep", program, overlaps, written_as=changed)
        try:
            assert [verdict.outcome for verdict in prove_rewrite(data, planned)] == ["ok", "ok"]
        except (ModelPlanError, AssertionError):
            refused += 1
        else:
            assert run_tflm(planned, rounds=1).outputs == wanted, value.name
    assert refused or all(value.part is None for value in program.added)


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("seed", range(share(24)))
def test_a_number_that_steers_a_turned_operator_is_refused_or_changes_nothing(tmp_path: Path, seed: int) -> None:
    """Each constant of operators on turned maps (orders, places, sizes, paddings) is one off in one place."""
    path, rng, refused = tmp_path / "random.tflite", random.Random(seed), 0

    def turned(again: int) -> tuple[bytes, TfliteProgram] | None:
        data = exported_cnn(again)
        path.write_bytes(data)
        program = with_fewer_transposes(data, load_model(str(path)))
        return (data, program) if program is not None else None

    data, program = first(seed, turned)
    wanted = run_tflm(data, rounds=1).outputs
    for place, value in enumerate(program.added):
        if value.numbers is None:
            continue
        numbers = list(value.numbers)
        numbers[rng.randrange(len(numbers))] += rng.choice((-1, 1))
        changed = copy.deepcopy(program)
        changed.added[place] = replace(value, numbers=tuple(numbers))
        model, _ = write_striped(data, changed)
        try:
            assert [verdict.outcome for verdict in prove_rewrite(data, model)] == ["ok", "ok"]
        except (ModelPlanError, AssertionError):
            refused += 1
        else:
            assert run_tflm(model, rounds=1).outputs == wanted, value.name
    assert refused or all(value.numbers is None for value in program.added)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(share(8)))
@pytest.mark.parametrize("objective", ["arena", "head"])
def test_names_and_a_plan_in_the_file_do_not_change_what_fit_finds(tmp_path: Path, seed: int, objective: str) -> None:
    data, path = random_cnn(seed), tmp_path / "random.tflite"
    path.write_bytes(data)
    graph = load_model(path)

    def found(content: bytes) -> tuple[int, int]:
        path.write_bytes(content)
        effort = SearchEffort(tflite=TfliteEffort(priced=100, glance=40, look=80, answer=200))
        request = FitRequest(path, kernels="reference", objective=objective, effort=effort)
        chosen = fit(request).chosen
        assert chosen is not None
        return chosen.arena, chosen.head

    wanted = found(data)
    assert found(renamed(data, graph)) == wanted
    assert found(packed_before(data, graph)) == wanted
