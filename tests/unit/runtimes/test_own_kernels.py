"""Custom operators: refused by name, stated by the user, or trusted where the file carries its maker's plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tflm_models import Op, S, T, build, single

from modelplan.checking.verifier import proof
from modelplan.checking.verifier.subject import offline_subject, trusting_own_kernels
from modelplan.outputs.firmware.tflm_sources import arena_header
from modelplan.primitives.errors import BrokenPlanError, RequestError
from modelplan.runtimes import with_kernels
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.arena import MARGIN, arena
from modelplan.runtimes.tflm.declaration import requirement_of
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import find_libraries, find_library, is_group, spoken_kernels
from modelplan.runtimes.tflm.kernels.own_kernels import own_kernels, with_own
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.refused_operators import Refused, remedy_lines

FEW = T("int8", (1, 8))


def strange(*names: str) -> FileModel:
    """A chain of custom operators that TFLM does not know, with a RELU behind them."""
    ops = [Op(name, (i,), (i + 1,), custom=True) for i, name in enumerate(names)]
    last = len(names)
    ops.append(Op("RELU", (last,), (last + 1,)))
    return read_tflite(build(S((FEW,) * (last + 2), tuple(ops), (0,), (last + 1,))), "strange")


@pytest.mark.parametrize(
    ("kind", "reason", "remedy"),
    [
        ("Mine", "TFLM has no kernel for it", "--custom Mine=BYTES"),
        ("my op", "TFLM has no kernel for it", "--custom 'my op'=BYTES"),
        ("FlexErf", "an operator of TensorFlow itself (Select TF ops)", "without SELECT_TF_OPS"),
        ("DISPATCH_OP", "compiled for an NPU", "compiled for the NPU"),
        ("edgetpu-custom-op", "compiled for the Edge TPU", "the Edge TPU compiler was given"),
    ],
)
def test_an_unknown_operator_is_refused_by_its_name(kind: str, reason: str, remedy: str) -> None:
    needed = requirement_of(strange(kind), "32", "all")
    assert needed.refusals[0].startswith(f"op 0 {kind}: ")
    assert reason in needed.refusals[0]
    assert any(remedy in line for line in needed.remedies)
    assert not needed.fits(1 << 30)


def test_stated_kernels_count_once_for_each_operator_and_are_called_an_estimate() -> None:
    model = strange("Mine", "Mine", "Other")
    both = [requirement_of(model, "32", f"reference+Mine={size}+Other=64") for size in (64, 1088)]
    assert both[1].arena - both[0].arena == 2 * 1024
    assert (
        both[0].estimate
        == "estimate: as stated, your own kernels ask for 64 bytes for each Mine, 64 bytes for each Other"
    )
    assert both[0].fits(both[0].arena)
    assert not both[0].guessed
    half = requirement_of(model, "32", "reference+Mine=64")
    assert half.refusals == ("op 2 Other: TFLM has no kernel for it",)


def test_the_rows_name_what_is_estimated() -> None:
    rows = {row.name: row.trust for row in arena(strange("Mine"), "32", "reference+Mine=64").rows}
    assert rows.pop(MARGIN) == "estimated: as you state it for Mine"
    assert set(rows.values()) == {"exact"}


def test_a_file_with_its_makers_plan_gets_a_number_and_no_verdict() -> None:
    model = strange("Mine")
    planned = read_tflite(write_plan(model, (0, 16, 32)), "planned")
    needed = requirement_of(planned, "32", "reference")
    assert not needed.refusals
    assert needed.guessed == ("Mine",)
    assert "--custom Mine=BYTES" in needed.estimate
    assert not needed.fits(1 << 30)
    assert requirement_of(planned, "32", "reference+Mine=64").fits(1 << 20)


def test_overlaps_of_strange_operators_are_trusted_in_their_makers_plan_alone() -> None:
    in_place = read_tflite(write_plan(strange("Mine"), (0, 0, 16)), "in place")
    subject = offline_subject(in_place)
    with pytest.raises(BrokenPlanError, match="cannot work in place"):
        proof.prove(subject)
    proof.prove(trusting_own_kernels(subject))
    wrong = read_tflite(write_plan(strange("Mine"), (0, 16, 20)), "wrong")  # RELU's result over its operand
    with pytest.raises(BrokenPlanError, match="RELU"):
        proof.prove(trusting_own_kernels(offline_subject(wrong)))


def test_operands_that_nothing_writes_are_working_memory_of_a_custom_operator() -> None:
    def planned(at: int) -> FileModel:
        ops = (Op("Mine", (0, 1), (2,), custom=True),)
        model = read_tflite(build(S((FEW, FEW, FEW), ops, (0,), (2,))), "work")
        return read_tflite(write_plan(model, (0, at, 32)), "work")

    proof.prove(offline_subject(planned(16)))
    with pytest.raises(BrokenPlanError):
        proof.prove(offline_subject(planned(0)))


def test_names_of_libraries_carry_own_kernels() -> None:
    assert is_group("cmsis-nn+Mine=64")
    assert [library.name for library in find_libraries("cmsis-nn+Mine=64")] == [
        f"{name}+Mine=64" for name in ("cmsis-c", "cmsis-dsp", "cmsis-mve")
    ]
    assert spoken_kernels("CMSIS_NN+Mine=64") == "cmsis-nn+Mine=64"
    assert with_kernels(TFLM, "esp-nn+Mine=64").library.name == "esp-nn"
    assert own_kernels("esp-nn") == {}


@pytest.mark.parametrize("stated", ["Mine", "=64", "Mine=", "Mine=many", "Mine=-1"])
def test_what_is_no_kernel_is_refused(stated: str) -> None:
    with pytest.raises(RequestError):
        with_own("esp-nn", [stated])


def test_kernels_cannot_be_stated_twice_nor_for_tflm_s_own_operators_nor_for_other_runtimes() -> None:
    with pytest.raises(RequestError, match="twice"):
        with_own(None, ["Mine=1", "Mine=2"])
    with pytest.raises(RequestError, match="TFLM has a kernel"):
        find_library("reference+CIRCULAR_BUFFER=64")
    with pytest.raises(RequestError, match="no kernels of your own"):
        with_kernels(C, "portable+Mine=64")


def test_the_resolver_has_room_for_operators_that_the_program_adds() -> None:
    model = strange("Mine", "Other")
    header = arena_header(model, arena(model, "32", "reference+Mine=8+Other=8"), "reference")
    assert "MicroMutableOpResolver<3>" in header
    assert "add these custom ones yourself: Mine, Other" in header


def test_the_command_stream_of_vela_is_exact() -> None:
    operands = [T("uint8", (64,), bytes(64)), T("uint8", (32,), bytes(32)), FEW, FEW, FEW]
    model = read_tflite(single("ethos-u", operands, [FEW], custom=True), "vela")
    whole = arena(model, "cortex-m", "reference")
    assert whole.exact
    assert not whole.refusals


def test_every_refusal_has_a_way_out() -> None:
    reasons = [
        "input 0 is uint8; its kernel computes float32", "an axis out of range", "no bias, which its kernel looks at",
        "11 inputs; its kernel takes at most 10", "of type STRING, which TFLM cannot hold", "something new",
    ]  # fmt: skip
    for reason in reasons:
        assert remedy_lines([Refused("op", 0, "ADD", reason)])[0]


def test_tensors_that_tflm_reads_otherwise_are_refused_together() -> None:
    model = strange()
    main = model.subgraphs[0]
    odd = tuple(
        replace(t, misread="its values lie behind the flatbuffer, where TFLM does not look") for t in main.tensors
    )
    needed = requirement_of(replace(model, subgraphs=(replace(main, tensors=odd),)), "32", "reference")
    assert needed.refusals == (
        "tensor 0, 1 ('t0', ...): its values lie behind the flatbuffer, where TFLM does not look",
    )
    assert needed.remedies == ("convert again with all weights inside of the flatbuffer",)
