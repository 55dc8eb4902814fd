"""The order of ways that fit, the words that commands carry, and which searches are worth naming."""

from __future__ import annotations

from pathlib import Path

import pytest
from tflm_models import Op, S, T, build

from modelplan.answers.explanation import Needs, Suggestion, Way, ways_of
from modelplan.model.model_file import Target
from modelplan.plain_c import ladder
from modelplan.primitives.errors import ModelError
from modelplan.questions.alternatives import load_file, unmodified_requirement
from modelplan.questions.c_fitting import CForm, planned_c
from modelplan.questions.explaining.changes import CHANGES, apply_change
from modelplan.questions.explaining.plain_c import c_command, c_words
from modelplan.questions.explaining.quick_ways import as_plain_c, searches
from modelplan.questions.explaining.subjects import measured, subject_of
from modelplan.questions.fitting_help import quick_ways_that_fit
from modelplan.questions.target_request import TargetRequest, choose_target
from modelplan.runtimes import RUNTIMES, with_kernels
from modelplan.runtimes.c import C

TFLM = RUNTIMES["tflm"]


def suggestion(way: Way, arena: int | None, *steps: str) -> Suggestion:
    return Suggestion(steps or (way.name,), arena, arena or 0, 0, 0, (), Needs.PLATFORM, way=way)


def test_ways_that_fit_stand_by_what_they_exchange() -> None:
    every = [
        suggestion(Way.MODEL, 10), suggestion(Way.C_HELD, 20), suggestion(Way.PLAN, 90, "a", "b"),
        suggestion(Way.PLAN, 95), suggestion(Way.KERNELS, 101), suggestion(Way.MEMORY, None), suggestion(Way.FILE, 100),
    ]  # fmt: skip
    fitting = ways_of(every, 100)
    assert [(one.way, one.arena) for one in fitting] == [
        (Way.PLAN, 95), (Way.FILE, 100), (Way.C_HELD, 20), (Way.MODEL, 10)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("held", "converted", "rows", "kept"),
    [(30, 20, 10, [30, 20, 10]), (30, 30, 31, [30]), (200, 20, 20, [20]), (30, 40, 10, [30, 10]), (200, 200, 9, [9])],
)
def test_plain_c_that_asks_more_has_to_need_less(held: int, converted: int, rows: int, kept: list[int]) -> None:
    pairs = ((Way.C_HELD, held), (Way.C_INTERFACE, converted), (Way.C_ROWS, rows))
    assert [one.arena for one in ways_of([suggestion(way, arena) for way, arena in pairs], 100)] == kept


def test_commands_carry_what_was_given() -> None:
    plain = Target(with_kernels(TFLM, TFLM.usual_kernels), "32", ("--dim", "n=1"))
    assert (plain.build, plain.words) == ((), ("--dim", "n=1"))
    resolved = Target(with_kernels(TFLM, "esp-nn"), "xtensa", ("--kernels", "esp-nn"))
    assert resolved.words == ("--kernels", "esp-nn", "--abi", "xtensa")
    given = ("--target", "esp32s3", "--abi", "32", "--kernels", "esp-nn")
    named = Target(with_kernels(TFLM, "esp-nn"), "32", ("--dim", "n=1", "--kernels", "esp-nn"), given)
    assert named.words == ("--dim", "n=1", *given)
    other = named.with_kernels(with_kernels(TFLM, "reference"))
    assert other.build == ("--target", "esp32s3", "--abi", "32", "--kernels", "reference")


def test_plain_c_takes_the_device_and_kernels_that_it_has() -> None:
    board = ("--target", "esp32s3")
    assert c_words(Target(with_kernels(TFLM, "esp-nn"), "xtensa", given=board)) == board
    assert c_words(Target(with_kernels(TFLM, "reference"), "32", given=("--kernels", "reference"))) == ()
    named = Target(with_kernels(TFLM, "cmsis-dsp"), "32", given=("--kernels", "cmsis-dsp", "--abi", "32"))
    assert c_command("a b/net.tflite", named) == (
        "modelplan fit 'a b/net.tflite' --runtime c --kernels cmsis-dsp --least -o net.c"
    )


def test_a_device_remembers_how_it_was_asked_for() -> None:
    chosen = choose_target(TargetRequest("rp2040", reserve=("sram=1KiB",)))
    assert chosen is not None
    assert chosen.words == ("--target", "rp2040", "--reserve", "sram=1KiB")


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("tflite/person_detect", ["a rewritten file"]),
        ("tflite/mcu/mcunet_vww0", ["a rewritten file", "plain C"]),
        ("tflite/hello_world_int8", []),
        ("tflite/person_detect_vela", []),
        ("tflite/audio_preprocessor_int8", []),
        ("tflite/simple_add_model", []),
    ],
)
def test_searches_that_bring_nothing_are_not_named(corpus: Path, name: str, named: list[str]) -> None:
    file, target = load_file(str(corpus / f"{name}.tflite")), Target(with_kernels(TFLM, "reference"), "32")
    needed = unmodified_requirement(file, target)
    assert [search.name for search in searches(file, target, needed, None)] == named
    other = Target(RUNTIMES["litert"], "32")
    assert not [*searches(file, other, unmodified_requirement(file, other), None)]


def test_plain_c_of_whole_maps_needs_no_less_than_by_rows(models: Path) -> None:
    file = load_file(str(models / "resnet8.tflite"))
    rows, maps = planned_c(file, CForm()), planned_c(file, CForm(), most_rows=0)
    assert (rows.name, maps.name) == ("rows", "maps")
    assert rows.ram < maps.ram
    target = Target(TFLM, "32")
    (quick,) = as_plain_c(file, target, unmodified_requirement(file, target))
    assert quick.arena == maps.ram


def test_networks_without_anything_to_compute_are_refused_in_words(tmp_path: Path) -> None:
    one, two = T("float32", (1, 4)), T("float32", (4, 1))
    shape = T("int32", (2,), [4, 1])
    drawn = {
        "reshaped": S((one, shape, two), (Op("RESHAPE", (0, 1), (2,)),), (0,), (2,)),
        "constant": S((one, T("float32", (1, 4), [1.0] * 4), one), (Op("RELU", (0,), (2,)),), (0, 1), (2,)),
    }
    said = {}
    for name, subgraph in drawn.items():
        path = tmp_path / f"{name}.tflite"
        path.write_bytes(build(subgraph))
        with pytest.raises(ModelError) as refused:
            planned_c(load_file(str(path)), CForm(C.kernels))
        said[name] = str(refused.value)
    assert "holds no operator that computes" in said["reshaped"]
    assert "is a constant, which plain C takes from nobody" in said["constant"]


def test_a_mean_of_a_scalar_is_refused_by_name(corpus: Path) -> None:
    with pytest.raises(ModelError, match=r"MEAN: a tensor without axes"):
        planned_c(load_file(str(corpus / "wild" / "mean_scalar.tflite")), CForm())


def test_a_figure_of_plain_c_writes_no_text(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:
        pytest.fail("the text of a plan was written")

    monkeypatch.setattr(ladder, "c_files", write)
    file, target = load_file(str(models / "ds_cnn_kws.tflite")), Target(TFLM, "32")
    (quick,) = as_plain_c(file, target, unmodified_requirement(file, target))
    assert quick.arena == 8_640


def test_a_number_without_a_literal_in_c_is_refused_before_any_text_is_written(tmp_path: Path) -> None:
    one, odd = T("float32", (1, 4)), T("float32", (1, 4), [1.0, float("nan"), 1.0, 1.0])
    path = tmp_path / "odd.tflite"
    path.write_bytes(build(S((one, odd, one), (Op("PRELU", (0, 1), (2,)),), (0,), (2,))))
    with pytest.raises(ModelError, match="a constant is nan, which C has no literal for"):
        planned_c(load_file(str(path)), CForm())


def test_a_search_that_looks_at_too_many_stages_leaves_whole_maps(models: Path) -> None:
    file = load_file(str(models / "ds_cnn_kws.tflite"))
    assert planned_c(file, CForm(), most_stages=1_000).name == "rows"
    assert planned_c(file, CForm(), most_stages=10).name == "maps"


def test_no_rung_is_promised_that_raises_another_library(corpus: Path) -> None:
    file, target = (
        load_file(str(corpus / "wild" / "weather_cnn_v3.tflite")),
        Target(with_kernels(TFLM, TFLM.usual_kernels), "32"),
    )
    needed = unmodified_requirement(file, target)
    rewritten = apply_change(CHANGES["stripes"], subject_of(file, target), "")
    assert measured(rewritten).arena == needed.arena  # one of its rungs needs 11,696, and more with TFLM's own kernels


def test_what_is_not_tried_is_named_with_its_command(corpus: Path) -> None:
    file, target = (
        load_file(str(corpus / "tflite" / "person_detect.tflite")),
        Target(with_kernels(TFLM, TFLM.usual_kernels), "32"),
    )
    ways, untried = quick_ways_that_fit(file, target, unmodified_requirement(file, target), 61_440)
    assert [(way.way, way.arena) for way in ways] == [(Way.C_HELD, 13_440), (Way.C_ROWS, 12_392)]
    (search,) = untried
    assert search.way is Way.FILE
    assert search.command == f"modelplan fit {file.path} --budget 61440 -o person_detect_fitted.tflite"
