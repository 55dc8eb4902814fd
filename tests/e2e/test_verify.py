"""`modelplan verify`: every form of plan, every level by name, one sentence and exit 4 for a broken one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run

from modelplan import BrokenPlanError
from modelplan.checking.verifier.execution import execute
from modelplan.checking.verifier.subject import online_subject
from modelplan.formats import load_model
from modelplan.rewriting.packing import answer, question_of
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.runner import INSTALL, installed

LEVELS = ["static", "fingerprint replay", "value replay", "execution"]


def levels(text: str) -> dict[str, str]:
    """What each level came to."""
    return dict(re.findall(r"^  ([a-z ]+?)  +(ok|broken|skipped)  ", text, re.MULTILINE))


@pytest.fixture
def packed(corpus: Path, tmp_path: Path) -> Path:
    out = tmp_path / "packed.tflite"
    assert (
        run(
            "pack", corpus / "tflite" / "kws_ref_model.tflite", "-o", out, "--force", "--kernels", "reference"
        ).returncode
        == 0
    )
    return out


def test_a_packed_model_passes_every_level_that_can_run(packed: Path) -> None:
    done = run("verify", packed)
    assert done.returncode == 0, done.stderr
    found = levels(done.stdout)
    assert list(found) == LEVELS
    assert found["static"] == found["fingerprint replay"] == "ok"
    for level in ("value replay", "execution"):
        assert found[level] == "ok" or "is not installed; pip install" in done.stdout


def test_a_broken_plan_ends_with_4_and_one_sentence(packed: Path, tmp_path: Path) -> None:
    model = read_tflite(packed.read_bytes(), "packed")
    offsets = list(planner.read_plan(model) or ())
    first = next(t for t in model.subgraphs[0].ops[0].outputs)
    offsets[first] += 16 if offsets[first] < 16 else -16
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(write_plan(model, offsets))
    done = run("verify", broken)
    assert done.returncode == 4
    assert re.search(r"op \d+ \w+ reads tensor \d+ '.*' bytes \d+-\d+, overwritten at op \d+ by tensor", done.stderr)
    assert levels(done.stdout)["fingerprint replay"] == "broken"


def test_a_plan_of_vela_is_read(corpus: Path) -> None:
    done = run("verify", corpus / "tflite" / "person_detect_vela.tflite", "--quick")
    assert done.returncode == 0, done.stderr
    assert list(levels(done.stdout)) == LEVELS[:2]


def test_json_csv_and_header_are_read(corpus: Path, tmp_path: Path) -> None:
    model = corpus / "tflite" / "vww_96_int8.tflite"
    options = ("--schedule", "file")
    done = run("analyze", model, *options, "--json", tmp_path / "p.json", "--csv", tmp_path / "p.csv")
    assert done.returncode == 0, done.stderr
    headers = ("--shim", tmp_path / "p.h", "--header", tmp_path / "arena.h")
    done = run("pack", model, "-o", tmp_path / "p.tflite", *headers)
    assert done.returncode == 2
    assert "name the kernel library by --kernels" in done.stderr
    done = run("pack", model, "-o", tmp_path / "p.tflite", *headers, "--kernels", "reference")
    assert done.returncode == 0, done.stderr
    for name in ("p.json", "p.csv", "p.h"):
        done = run("verify", tmp_path / name, "--model", model)
        assert done.returncode == 0, done.stderr
        assert levels(done.stdout)["fingerprint replay"] == "ok"
    breaks: list[tuple[str, Callable[[str], str]]] = [
        ("p.json", lambda text: re.sub(r'"size": \[\s*\d+', '"size": [16', text, count=1)),
        ("p.csv", lambda text: re.sub(r",\d+\n", ",4\n", text, count=1)),
        ("p.h", lambda text: re.sub(r"\n        \d+,", "\n        -2,", text, count=1)),
    ]
    for name, break_it in breaks:
        (tmp_path / name).write_text(break_it((tmp_path / name).read_text()))
        assert run("verify", tmp_path / name, "--model", model, "--quick").returncode == 4


def test_extents_without_end_are_refused_before_rows_are_followed(models: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert run("analyze", models / "ds_cnn_kws.tflite", "--json", path).returncode == 0
    document = json.loads(path.read_text())
    maps = [t for t in document["plan"]["graph"]["tensors"] if t["kind"] == "activation" and len(t["shape"]) == 4]
    maps[1]["shape"][1] = 10**12  # made by a convolution, of which the replay follows each row
    path.write_text(json.dumps(document))
    done = run("verify", path)
    assert done.returncode == 4
    assert re.search(r"the plan reserves \d+ bytes, it needs \d{13}", done.stderr), done.stderr


def test_a_csv_tells_its_order(models: Path, tmp_path: Path) -> None:
    for name in ("inception_like.tflite", "unet_small.tflite"):
        done = run("analyze", models / name, "--csv", tmp_path / "p.csv")
        assert done.returncode == 0, done.stderr
        done = run("verify", tmp_path / "p.csv", "--model", models / name, "--quick")
        assert done.returncode == 0, done.stderr


def test_onnx_plans_pass_value_replay(models: Path, tmp_path: Path) -> None:
    done = run("analyze", models / "resnet8.onnx", "--json", tmp_path / "p.json")
    assert done.returncode == 0, done.stderr
    done = run("verify", tmp_path / "p.json", "--model", models / "resnet8.onnx")
    assert done.returncode == 0, done.stderr
    assert levels(done.stdout)["value replay"] == "ok"
    assert "bit-exact against" in done.stdout


def test_wrong_requests(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.csv").write_text("id,lower,upper,size\na,0,1,4\n")
    (tmp_path / "plan.h").write_text("int x;\n")
    (tmp_path / "plan.json").write_text("{}")
    kws = corpus / "tflite" / "kws_ref_model.tflite"
    for words, code, said in [
        (("plan.txt",), 2, "no plan is read from '.txt'"),
        (("plan.csv",), 2, "give --model"),
        (("plan.csv", "--model", kws), 3, "has no column offset"),
        (("plan.h", "--model", kws), 3, "no modelplan_buffer_plan"),
        (("plan.json",), 3, "schema"),
        ((kws,), 3, "no metadata OfflineMemoryAllocation in it"),
        (("missing.tflite",), 3, "No such file"),
    ]:
        done = run("verify", *words, cwd=tmp_path)
        assert done.returncode == code, (words, done.stderr)
        assert said in done.stderr


@pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")
def test_tflm_itself_computes_nonsense_with_the_aliasing_of_litert(corpus: Path) -> None:
    """What the replay rejects without a kernel, execution rejects by the outputs."""
    path = corpus / "tflite" / "litert_alias_bug.tflite"
    model = read_tflite(path.read_bytes(), "litert_alias_bug")
    offsets = list(answer(question_of(model, load_model(path), "none")).offsets)
    ops = model.subgraphs[0].ops
    source = next(op for op in ops if op.kind == "RESHAPE").inputs[0]
    views = [op.outputs[0] for op in ops if op.kind == "RESHAPE"]
    writer = next(op.outputs[0] for op in ops if op.kind == "ADD" and views[-1] in op.inputs)
    execute(online_subject(model, offsets), write_plan)
    for tensor in (*views, writer):
        offsets[tensor] = offsets[source]
    with pytest.raises(BrokenPlanError, match="the outputs differ from those without the plan"):
        execute(online_subject(model, offsets), write_plan)
