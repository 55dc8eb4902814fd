"""The whole arena: as measured on devices and on the wheel, for real models and for a sweep of small ones."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tflm_models import MAKERS, AnyRank, Op, S, T, build, single, sweep, zeros
from tflm_sweep import CHANCE_OF_WHEEL, KIT, ask_kit, ask_wheel, differences, kit_folder

from modelplan.primitives.errors import RequestError
from modelplan.runtimes.tflm.abi import ABIS, GROUPS
from modelplan.runtimes.tflm.arena import (
    BUFFERS,
    EVAL_TENSORS,
    MARGIN,
    NODES,
    OPTIONS,
    QUANTIZATIONS,
    TENSORS,
    VARIABLES,
    arena,
    refusals,
)
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import LIBRARIES
from modelplan.runtimes.tflm.refused_operators import Refused, refusal_lines
from modelplan.runtimes.tflm.runner import installed, run_tflm

ROOT = Path(__file__).resolve().parents[3]

#: Columns of the measured table by row of the arena.
COLUMNS = {
    "eval_tensors": EVAL_TENSORS, "persistent_tensors": TENSORS, "quantization": QUANTIZATIONS,
    "variable_buffers": VARIABLES, "nodes": NODES,
}  # fmt: skip

#: Public arena totals of an ESP32: model, bytes.
BOARDS = [("person_detect", 82300), ("kws_ref_model", 22780), ("pretrainedResnet_quant", 54364), ("ad01_int8", 2380)]

wheel = pytest.mark.skipif(not installed(), reason="tflite-micro is not installed")


def model(corpus: Path, name: str) -> FileModel:
    path = corpus / "tflite" / f"{name}.tflite"
    return read_tflite(path.read_bytes(), path.name)


@pytest.fixture(scope="module")
def measured(corpus: Path) -> list[dict[str, str]]:
    """TFLM measured on 32-bit Arm: one row for each model and set of kernels."""
    path = Path(os.environ.get("MODELPLAN_MEASURED", corpus.parent / "device" / "measured.csv"))
    if not path.is_file():
        pytest.skip(f"no measurements at {path}; set MODELPLAN_MEASURED")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, (program, *_) in KIT.items() if program.startswith("tflm-")])
def test_every_row_is_as_measured(corpus: Path, measured: list[dict[str, str]], name: str) -> None:
    _, abi, kernels = KIT[name]
    compared = 0
    for row in (r for r in measured if r["kernels"] == name and r["status"] == "ok"):
        path = ROOT / row["model"] if row["model"].startswith("models/") else corpus / row["model"]
        whole = arena(read_tflite(path.read_bytes(), path.name), abi, kernels)
        used = {part.name: part.used for part in whole.rows}
        assert not whole.refusals, row["model"]
        assert {c: used.get(r, 0) for c, r in COLUMNS.items()} == {c: int(row[c]) for c in COLUMNS}, row["model"]
        found = (whole.head, whole.tail, whole.least)
        assert found == tuple(int(row[c]) for c in ("head", "tail", "min_arena_16")), row["model"]
        compared += 1
    assert compared > 30


def real(corpus: Path, models: Path) -> Iterator[Path]:
    """Models that the wheel runs; the crashes that TFLM loads among them."""
    yield from sorted(models.glob("*.tflite"))
    yield from sorted((corpus / "tflite").rglob("*.tflite"))
    yield from sorted((corpus / "crashes").glob("[at]*.tflite"))


@pytest.mark.slow
@wheel
def test_the_wheel_reports_what_is_predicted_and_needs_no_less(corpus: Path, models: Path) -> None:
    for path in real(corpus, models):
        if path.stem == "person_detect_vela":  # no Ethos-U in the wheel
            continue
        whole = arena(read_tflite(path.read_bytes(), path.name), "wheel")
        answer = ask_wheel(path.read_bytes())
        assert list(differences(path.name, whole, answer)) == []
        assert not answer.enough(whole.least - 16), path.name


@pytest.mark.slow
@wheel
def test_a_sample_of_the_sweep_is_as_on_the_wheel() -> None:
    """One model of each operator, of its types in turn; tests/sweeps/tflm_sweep.py measures more."""
    for case, data in list(sweep(1, 2))[::7]:
        predicted = arena(read_tflite(data, case), "wheel")
        assert list(differences(case, predicted, ask_wheel(data), CHANCE_OF_WHEEL)) == [], case


@pytest.mark.parametrize("name", KIT)
def test_a_sample_of_the_sweep_is_as_in_the_kit(name: str) -> None:
    folder, (program, abi, kernels) = kit_folder(), KIT[name]
    if folder is None or not (folder / program).exists():
        pytest.skip(f"no {program}; set MODELPLAN_TFLM_KIT to the folder of the measuring programs")
    for case, data in list(sweep(1, 3))[::5]:
        answer = ask_kit(folder, program, data)
        assert list(differences(case, arena(read_tflite(data, case), abi, kernels), answer)) == [], case


@pytest.mark.parametrize("name", KIT)
def test_a_sample_of_all_ranks_is_as_in_the_kit(name: str) -> None:
    folder, (program, abi, kernels) = kit_folder(), KIT[name]
    if folder is None or not (folder / program).exists():
        pytest.skip(f"no {program}; set MODELPLAN_TFLM_KIT to the folder of the measuring programs")
    for case, data in list(sweep(1, 3, AnyRank))[::9]:
        answer = ask_kit(folder, program, data)
        assert list(differences(case, arena(read_tflite(data, case), abi, kernels), answer)) == [], case


@pytest.mark.parametrize(("kernels", "least"), [("reference", 17952), ("cmsis-dsp", 17984), ("cmsis-mve", 17984)])
def test_what_a_reduction_keeps_is_eleven_words(corpus: Path, kernels: str, least: int) -> None:
    """Measured with the kit. The eleventh shows where the tail is not aligned before it, as behind a GATHER."""
    path = corpus / "wild" / "regex_one_embedding.tflite"
    assert arena(read_tflite(path.read_bytes(), path.name), "cortex-m", kernels).least == least
    mean = single("MEAN", [T("float32", (2, 3)), zeros("int32", ())], [T("float32", (3,))], "ReducerOptions")
    rows = {row.name: row.asked for row in arena(read_tflite(mean, "mean"), "cortex-m", kernels).rows}
    assert rows[BUFFERS] == 4 * 11 + 2 * 4  # OpDataReduce, and the interpreter's two tables of one tensor


def test_every_operator_of_the_reference_kernels_is_swept() -> None:
    unswept = {"IF", "WHILE", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"}  # in models of several
    unswept |= {"ethos-u", "TFLM_DECODE", "CIRCULAR_BUFFER"}
    assert set(LIBRARIES["reference"].operators) - {kind for kind, *_ in MAKERS} == unswept


@pytest.mark.parametrize("abi", ["32", "64"])
@pytest.mark.parametrize("name", ["ds_cnn_kws", "resnet8", "unet_small"])
def test_what_operators_keep_adds_up_to_their_rows_of_the_tail(models: Path, name: str, abi: str) -> None:
    """But for less than 16 bytes of alignment where one keeps options or buffers."""
    whole = arena(read_tflite((models / f"{name}.tflite").read_bytes(), name), abi)
    rows = sum(row.used for row in whole.rows if row.name in (NODES, OPTIONS, BUFFERS))
    assert 0 <= rows - sum(whole.kept) < 32 * len(whole.kept)


def test_the_rows_are_those_of_the_wheel(corpus: Path) -> None:
    rows = {row.name: row.used for row in arena(model(corpus, "person_detect"), "wheel").rows}
    assert rows[EVAL_TENSORS] == 2136
    assert rows[TENSORS] == 128
    assert rows[QUANTIZATIONS] == 64
    assert rows[BUFFERS] == 24304
    assert rows[NODES] == 1984


@pytest.mark.parametrize(("name", "total"), BOARDS)
def test_public_totals_of_an_esp32_come_out(corpus: Path, name: str, total: int) -> None:
    assert arena(model(corpus, name), "xtensa", "reference").total == total


@pytest.mark.parametrize(("name", "published"), [("okay_nabu", 26080), ("alexa", 22348), ("vad", 16772)])
def test_wake_words_are_within_their_published_arenas(corpus: Path, name: str, published: int) -> None:
    """The manifests of 2024 give 52 to 144 bytes more than the least arena with the kernels of that time."""
    least = arena(model(corpus, f"wakeword/{name}"), "xtensa", "esp-nn@1.1.0").least
    assert published - 160 <= least <= published


def test_the_version_of_the_kernels_is_part_of_the_answer(corpus: Path) -> None:
    nabu = model(corpus, "wakeword/okay_nabu")
    assert arena(nabu, "xtensa", "esp-nn@1.2.3").least - arena(nabu, "xtensa", "esp-nn@1.1.0").least > 7000


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_holds_on_each_of_its_abis(corpus: Path, group: str) -> None:
    kws = model(corpus, "kws_ref_model")
    assert arena(kws, group).least == max(arena(kws, abi).least for abi in GROUPS[group])


def test_the_array_holds_the_least_arena_and_a_margin(corpus: Path) -> None:
    whole = arena(model(corpus, "kws_ref_model"), "wheel")
    assert (whole.total, whole.size(), whole.size(margin=100)) == (24272, 24272, 24272 + 112)


def test_small_models_need_more_until_the_plan_stands(corpus: Path) -> None:
    whole = arena(model(corpus, "hello_world_int8"), "wheel")
    assert (whole.total, whole.planning, whole.least) == (1504, 1936, 1936)


def test_custom_operators_are_called_estimated(corpus: Path) -> None:
    known = model(corpus, "kws_ref_model")
    strange = replace(known.subgraphs[0].ops[0], kind="MyOperator", custom=True)
    whole = arena(replace(known, subgraphs=(replace(known.subgraphs[0], ops=(strange,)),)))
    trust = {row.name: row.trust for row in whole.rows}
    assert trust.pop(MARGIN) == "estimated: ample for MyOperator, for which there are no sizes"
    assert set(trust.values()) == {"exact"}
    assert not whole.exact
    assert [refused.reason for refused in whole.refusals] == ["TFLM has no kernel for it"]


@pytest.mark.parametrize(
    ("data", "operator", "reason"),
    [
        (single("ONE_HOT", [T("int32", (3,))], [T("int32", (3,))]), "op 0 ONE_HOT", "TFLM has no kernel for it"),
        (single("RELU", [T("uint8", (3,))], [T("uint8", (3,))]), "op 0 RELU", "input 0 is uint8; its kernel computes"),
        (
            single(
                "FULLY_CONNECTED", [T("float32", (1, 4)), zeros("int8", (2, 4)), None], [T("float32", (1, 2))],
                "FullyConnectedOptions",
            ),
            "op 0 FULLY_CONNECTED",
            "float32 input with int8 weights; hybrid operators are not supported by TFLM",
        ),
        (
            single(
                "CONCATENATION", [T("float32", (1,)) for _ in range(11)], [T("float32", (11,))], "ConcatenationOptions"
            ),
            "op 0 CONCATENATION",
            "11 inputs; its kernel takes at most 10",
        ),
        (
            single("PAD", [T("int8", (3,)), T("int32", (1, 2))], [T("int8", (5,))]),
            "op 0 PAD",
            "the padding is computed; its kernel takes a constant",
        ),
        (
            single("ADD", [T("int8", (3,)), T("int8", (3,), zero=128)], [T("int8", (3,))], "AddOptions"),
            "op 0 ADD",
            "a zero point of 128; its kernel takes -128 to 127",
        ),
    ],
)  # fmt: skip
def test_what_tflm_refuses_is_told(data: bytes, operator: str, reason: str) -> None:
    (refused,) = refusals(read_tflite(data, "refused"))
    assert refused.label == operator
    assert refused.reason.startswith(reason)


def test_a_sum_of_int16_takes_any_zero_point() -> None:
    data = single("ADD", [T("int16", (3,)), T("int16", (3,), zero=128)], [T("int16", (3,))], "AddOptions")
    assert refusals(read_tflite(data, "sum")) == ()


def test_refusals_of_several_subgraphs_name_theirs() -> None:
    body = S((T("uint8", (1,)), T("uint8", (1,))), (Op("RELU", (0,), (1,)),), (0,), (1,))
    call = Op("IF", (0, 1), (2,), {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 1}, "IfOptions")
    data = build(S((T("bool", (1,)), T("uint8", (1,)), T("uint8", (1,))), (call,), (0, 1), (2,)), body)
    assert [one.label for one in refusals(read_tflite(data, "branches"))] == ["subgraph 1 op 0 RELU"]


def test_unknown_names_list_the_known(corpus: Path) -> None:
    kws = model(corpus, "kws_ref_model")
    with pytest.raises(RequestError, match=f"no ABI 'z80'; there are: 32, 64, {', '.join(ABIS)}"):
        arena(kws, "z80")
    with pytest.raises(RequestError, match="no kernels 'neon'"):
        arena(kws, "32", "neon")


@pytest.mark.slow
@wheel
def test_an_arena_of_the_printed_size_runs_packed_models(corpus: Path) -> None:
    whole = model(corpus, "pretrainedResnet_quant")
    run_tflm(whole.data, rounds=0, arena=arena(whole, "64").size())


def test_many_operators_that_are_refused_alike_share_a_line() -> None:
    many = [Refused("op", index, "DEQUANTIZE", "float16") for index in range(20)]
    few = [Refused("subgraph 1 op", index, "RELU", "uint8") for index in (2, 5)]
    assert refusal_lines([*many[:1], *few, Refused("op", 30, "RELU", "uint8"), *many[1:]]) == (
        "op 0, 1, 2, 3, 4, 5, 6, 7 and 12 more (20 in all) DEQUANTIZE: float16",
        "subgraph 1 op 2, 5 RELU: uint8",
        "op 30 RELU: uint8",
    )
