"""`modelplan explain` as a user runs it; its suggestions carried out and run on TFLM; shapes beside LiteRT's own."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from commands import run
from shares import sample
from suggestions import carried_out, predicted

from modelplan.model.model_file import Target
from modelplan.questions.alternatives import load_file
from modelplan.questions.explaining.ranking import advice
from modelplan.questions.explaining.shapes import FixedShapeError, resized_inputs, shapes_for
from modelplan.questions.explaining.subjects import measured, subject_of
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.runner import INSTALL, installed, run_tflm

ROOT = Path(__file__).resolve().parents[2]
TFLM = Target(RUNTIMES["tflm"], "32")
REFERENCE = ("--kernels", "reference")


@pytest.mark.slow
def test_it_prints_the_peak_and_writes_json(models: Path, tmp_path: Path) -> None:
    shutil.copy(models / "resnet8.tflite", tmp_path)
    done = run("explain", "resnet8.tflite", *REFERENCE, "--json", "why.json", "--seconds", "300", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "why.json").read_text())
    assert found["requirement"]["arena"] == 54_352
    assert f"Peak at step {found['peak']['top']['step']}: {found['peak']['top']['operator']}" in done.stdout
    assert sum(live["nbytes"] for live in found["peak"]["alive"]) == found["peak"]["top"]["nbytes"]
    assert found["untried"] == []
    for one in found["suggestions"]:
        assert one["name"] == " + ".join(one["steps"])
        assert one["saved_head"] == found["requirement"]["head"] - one["head"]
        assert all(command in done.stdout for command in one["commands"])


def test_the_peak_is_that_of_the_plan_that_was_asked_for(models: Path) -> None:
    own, unshared = (
        json.loads(run("explain", models / "resnet8.onnx", "--seconds", "0", *words, "--json", "-").stdout)["peak"]
        for words in ([], ["--alias", "none"])
    )
    assert (own["top"]["step"], unshared["top"]["step"]) == (4, 3)
    assert any(live["rules"] for live in own["alive"])
    assert not any(live["rules"] for live in unshared["alive"])


def test_the_command_that_analyze_names_explains_the_same_number(models: Path) -> None:
    said = run("analyze", models / "ds_cnn_kws.tflite", "--target", "esp32s3", "--budget", "1MiB").stdout
    command = said.splitlines()[-1].partition("#")[0].split()
    assert command[3:] == ["--target", "esp32s3", "--capacity", "1048576"]
    explained = run(*command[1:], "--seconds", "0").stdout
    (number,) = (line for line in said.splitlines() if "#define" in line)
    assert number in explained.splitlines()


def test_of_many_tensors_that_share_bytes_some_are_named(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    values = [onnx.helper.make_tensor_value_info(f"t{i}", 1, [4]) for i in range(202)]
    nodes = [onnx.helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(201)]
    drawn = onnx.helper.make_graph(nodes, "chain", values[:1], values[-1:], value_info=values[1:-1])
    model = onnx.helper.make_model(drawn, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, tmp_path / "chain.onnx")
    done = run("explain", tmp_path / "chain.onnx", "--measure", "0", "--seconds", "0")
    assert done.returncode == 0, done.stderr
    shared = done.stdout.partition("Bytes that tensors alive there share\n")[2].partition("\n\n")[0]
    assert " ".join(shared.split()).endswith("t12 and 188 more: overwrite: the runtime does so for Relu"), shared


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["missing.tflite"], 3, "missing.tflite"),
        ([ROOT / "pyproject.toml"], 3, "suffix"),
        ([ROOT / "models" / "resnet8.tflite", "--seconds", "-1"], 2, "expected 0 or more"),
        ([ROOT / "models" / "resnet8.tflite", "--seconds", "nan"], 2, "expected 0 or more"),
        ([ROOT / "models" / "resnet8.tflite", "--kernels", "x"], 2, "no kernels 'x'"),
        ([ROOT / "models" / "resnet8.tflite", "--abi", "x"], 2, "x"),
        ([ROOT / "models" / "resnet8.tflite", "--json", ROOT / "models" / "resnet8.tflite"], 2, "resnet8.tflite"),
        ([ROOT / "models" / "bert_like.onnx"], 3, "--dim batch=1"),
    ],
)
def test_bad_requests_are_refused(words: list[str | Path], code: int, said: str) -> None:
    done = run("explain", *words)
    assert done.returncode == code
    assert said in done.stderr


def test_a_model_that_the_runtime_refuses_has_reasons_only(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.tflite"
    content = (corpus / "tflite" / "person_detect.tflite").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert run("explain", path).returncode == 3


def test_a_device_is_offered_kernels_of_its_own_processor(corpus: Path) -> None:
    said = run("explain", corpus / "tflite" / "person_detect.tflite", "--target", "esp32s3").stdout
    offered = set(re.findall(r"--kernels (\S+)", said))
    assert "reference" in offered
    assert not {name for name in offered if name.startswith("cmsis") or "p4" in name}
    assert "cmsis" not in said


def test_custom_operators_are_not_sent_to_litert_and_one_refusal_stands_for_many(corpus: Path) -> None:
    said = run("explain", corpus / "wild" / "xmos_inplace_plan.tflite").stdout
    assert "another runtime: litert" not in said
    assert "XC_pad_3_to_4: no kernel for this kind of operator: op 0 ('B'); and 6 more kinds" in " ".join(said.split())


def test_analyze_ends_with_the_best_of_what_is_quick(corpus: Path) -> None:
    vww = corpus / "tflite" / "vww_96_int8.tflite"
    said = run("analyze", vww, *REFERENCE, "--verbose").stdout.splitlines()
    assert said[said.index("What would help most") + 1 : -2] == [
        "  36,848 bytes less of the arena: plan: in-place outputs (free)",
        "  18,432 bytes less of the arena: plan: views share bytes (free)",
        "  26,944 bytes less of the arena: persistent part in a second arena (two arenas in the firmware)",
        "  perhaps less: a rewritten file, a search of up to about 25 s",
        "  perhaps less: plain C, a search of up to about 10 s",
        f"  modelplan fit {vww} --kernels reference --least -o vww_96_int8_fitted.tflite",
    ]
    assert said[-2] == f"  modelplan fit {vww} --runtime c --least -o vww_96_int8.c"
    assert said[-1].endswith("  # tries the rest")


@pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")
@pytest.mark.parametrize(
    "name", sample(["models/ds_cnn_kws.tflite", "corpus/kws_ref_model.tflite", "models/resnet8.tflite"])
)
def test_tflm_needs_what_was_said(corpus: Path, tmp_path: Path, name: str) -> None:
    folder = corpus / "tflite" if name.startswith("corpus") else ROOT / "models"
    subject = subject_of(load_file(str(folder / Path(name).name)), TFLM)
    found = advice(subject, measured(subject)).suggestions

    def execute(words: list[str]) -> str:
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    count = 0
    for one in found:
        if one.todo or not one.commands:
            continue
        searched = any(step.startswith(("stripes", "plain C")) for step in one.steps)
        made = carried_out(one, tmp_path, TFLM, execute)
        assert made <= predicted(one) if searched else made == predicted(one), one.name
        written = [word for word in one.commands[-1].split() if word in ("packed.tflite", "fitted.tflite")]
        if written and "--shim" not in one.commands[-1]:
            head = run_tflm((tmp_path / written[0]).read_bytes(), rounds=1).head
            assert head <= one.head if searched else head == one.head, one.name
            count += 1
    assert count


@pytest.mark.parametrize("name", sample(["vww_96_int8", "person_detect", "ssd_like"]))
def test_the_best_suggestion_is_no_worse_than_pack_and_fit_by_hand(corpus: Path, tmp_path: Path, name: str) -> None:
    """Within a hundredth, since it searches for stripes for a shorter time than fit does."""
    source = next(path for folder in (corpus / "tflite", ROOT / "models") for path in folder.glob(f"{name}.tflite"))
    done = run("explain", source, *REFERENCE, "--seconds", "100", "--json", "-")
    first = json.loads(done.stdout)["suggestions"][0]
    by_hand = []
    for words in (["pack", source, "--alias", "safe"], ["fit", source, "--least"]):
        assert run(*words, *REFERENCE, "-o", "out.tflite", "--force", cwd=tmp_path).returncode == 0
        by_hand.append(measured(subject_of(load_file(str(tmp_path / "out.tflite")), TFLM)).arena)
    assert first["arena"] <= 1.03 * min(by_hand)


def test_shapes_of_half_the_input_are_those_of_litert(corpus: Path) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    paths = [*(ROOT / "models").glob("*.tflite"), *(corpus / "tflite").glob("**/*.tflite")]
    compared = 0
    for path in paths:
        model = load_tflite(path)
        if len(model.subgraphs) > 1:
            continue
        try:
            found = shapes_for(model, resized_inputs(model))
        except FixedShapeError:
            continue
        if found.windows:  # LiteRT keeps the window of a pool that covered the whole map
            continue
        interpreter = litert.Interpreter(
            model_path=str(path), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF
        )
        for t in model.subgraphs[0].inputs:
            interpreter.resize_tensor_input(t, found.shapes.get(t, model.tensors[t].shape), strict=False)
        interpreter.allocate_tensors()
        details = {detail["index"]: tuple(detail["shape"].tolist()) for detail in interpreter.get_tensor_details()}
        assert {t: details[t] for t in found.shapes} == found.shapes, path.name
        compared += 1
    assert compared > 3
