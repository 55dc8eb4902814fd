"""Overlaps and overwrites under CMSIS-NN's and ESP-NN's kernels, executed by the programs of a measuring kit."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from commands import run
from overlap_sweep import swept
from single_operators import CASES, operand_count, planned, single
from tflm_sweep import KIT, kit_folder, start

from modelplan import FitRequest, fit
from modelplan.formats import load_model
from modelplan.runtimes import with_kernels
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.kernels import LIBRARY_GROUPS

CMSIS_NN = ["cmsis", "cmsis-c", "cmsis-mve"]
#: The programs run ESP-NN's C kernels, the first with the scratch of the ESP32-S3.
ESP_NN = ["espnn", "espnn-esp32"]
#: Operators of CMSIS-NN that mode `safe` lets work in place.
IN_PLACE = {"ADD", "MUL", "MAXIMUM", "MINIMUM", "SOFTMAX"}


def program_of(name: str) -> Path:
    folder = kit_folder()
    if folder is None or not (folder / KIT[name][0]).exists():
        pytest.skip(f"no {KIT[name][0]}; set MODELPLAN_TFLM_KIT to the folder of the measuring programs")
    return folder / KIT[name][0]


@pytest.mark.parametrize("name", [*CMSIS_NN, *ESP_NN])
def test_outputs_at_their_lead_give_the_same_bits(name: str) -> None:
    """A sample of `tests/sweeps/overlap_sweep.py`; one element closer many go wrong."""
    program, closer = program_of(name), Counter[str]()
    for one, same, near in swept(program, KIT[name][2], 160, 4):
        assert same, one
        closer[one.case.kind] += not near
    assert closer["CONV_2D"] > 5
    assert closer["DEPTHWISE_CONV_2D"] > 5
    assert closer["FULLY_CONNECTED"] > 2


@pytest.mark.parametrize("name", [*CMSIS_NN, *ESP_NN])
def test_outputs_in_place_give_the_same_bits(name: str) -> None:
    program = program_of(name)
    cases = [case for case in CASES if case[0] in IN_PLACE]
    assert {kind for kind, *_ in cases} == IN_PLACE
    for kind, operand, dtype in cases:
        content, tensors = single(kind, operand_count(kind), dtype)
        apart, over = (digests(program, data) for data in (content, planned(content, tensors, operand)))
        assert apart == over, (kind, operand, dtype)


def digests(program: Path, data: bytes, arena: int = 65536, numbers: int = 256) -> object:
    """What two runs on the same numbers give."""
    with tempfile.TemporaryDirectory() as box:
        Path(box, "model").write_bytes(data)
        Path(box, "in").write_bytes(np.random.default_rng(3).standard_normal(numbers).astype("<f4").tobytes())
        done = start(program, box, "--arena", str(arena), "--runs", "2")
    assert done.returncode == 0, done.stdout[-300:]
    return json.loads(done.stdout)["output_sha256"]


@pytest.mark.slow
def test_overlaps_for_all_paths_hold_on_each(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    for name in ("resnet8", "unet_small", "mobilenet_v2_like"):
        done = run("fit", models / f"{name}.tflite", "--kernels", "cmsis", "--least", "--without", "split", "-o", out)
        rungs = dict(re.findall(r"^  (views|overlaps)[ *]+([\d,]+)", done.stdout, re.MULTILINE))
        assert int(rungs["overlaps"].replace(",", "")) < int(rungs["views"].replace(",", ""))
        for path in ("cmsis", "cmsis-c", "cmsis-dsp", "cmsis-mve"):
            assert run("verify", out, "--kernels", path, "--quick").returncode == 0


@pytest.mark.parametrize("name", CMSIS_NN)
def test_a_file_for_all_paths_gives_the_same_bits_on_each(name: str, models: Path, tmp_path: Path) -> None:
    program, out = program_of(name), tmp_path / "out.tflite"
    for model in (models / "resnet8.tflite", models / "mobilenet_v2_like.tflite"):
        fit = ("fit", model, "--kernels", "cmsis", "--least", "--without", "split", "-o", out)
        assert run(*fit).returncode == 0
        files, size = (out.read_bytes(), model.read_bytes()), load_model(model)
        numbers = sum(size.tensors[t].nbytes for t in size.inputs)  # all of the input is written before each run
        found = [digests(program, file, 1 << 18, numbers) for file in files]
        assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kernels"), [("espnn", "esp-nn"), ("espnn-esp32", "esp-nn-generic")])
def test_files_in_stripes_give_the_same_bits_with_esp_nn(name: str, kernels: str, models: Path) -> None:
    program = program_of(name)
    for model in (models / "resnet8.tflite", models / "mobilenet_v2_like.tflite"):
        ladder = fit(FitRequest(model, kernels=kernels, abi="xtensa"))
        rungs, chosen = {rung.name: rung.arena for rung in ladder.rungs}, ladder.chosen
        assert chosen is not None
        assert chosen.arena == rungs["split"] < rungs["overlaps"] < rungs["views"]
        size = load_model(model)
        numbers = sum(size.tensors[t].nbytes for t in size.inputs)
        found = [digests(program, data, 1 << 18, numbers) for data in (model.read_bytes(), chosen.model)]
        assert found[0] == found[1]
        digests(program, chosen.model, chosen.arena, numbers)


def test_the_lead_for_all_paths_is_the_largest(models: Path) -> None:
    group, *paths = (with_kernels(TFLM, name).library for name in ("cmsis-nn", *LIBRARY_GROUPS["cmsis-nn"]))
    seen = set[int | None]()
    for model in models.glob("*.tflite"):
        graph = load_model(model)
        for op in graph.ops:
            for operand in range(len(op.inputs)) if op.kind in group.leads else ():
                leads = [path.leads[op.kind](graph, op, operand) for path in paths]
                known = [lead for lead in leads if lead is not None]
                seen.add(group.leads[op.kind](graph, op, operand))
                assert group.leads[op.kind](graph, op, operand) == (None if len(known) < 3 else max(known))
    assert len(seen) > 5
