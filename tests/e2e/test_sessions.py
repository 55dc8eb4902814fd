"""`analyze` and `check` of .onnx files: what the user's own session takes, measured, remembered, predicted."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest
from commands import run
from onnx import TensorProto, helper, numpy_helper

from modelplan import AnalyzeRequest, CheckRequest, ModelRequest, analyze, check_budgets
from modelplan.answers.check_outcomes import Limits
from modelplan.formats import load_as_run, load_model
from modelplan.primitives.units import human
from modelplan.runtimes.ort import measuring, remembered
from modelplan.runtimes.ort.measuring import Measured, SessionSettings, measure

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "modelplan" / "sessions"


def session_of(path: Path, *, seconds: float = 60, **more: Any) -> Any:
    requirement = analyze(AnalyzeRequest(str(path), measure=seconds, **more)).requirement
    assert requirement.session is not None
    return requirement.session


def test_the_headline_is_what_a_default_session_takes(models: Path) -> None:
    session = session_of(models / "resnet8.onnx")
    own = measure(models / "resnet8.onnx", {"input": (1, 3, 32, 32)}, SessionSettings())
    assert session.usual.measured
    assert (session.usual.first_tensors, session.usual.later_tensors) == (own.first, own.steady) == (1 << 20, 1 << 20)
    assert session.usual.first == pytest.approx(own.heap[0], abs=8192)  # a run in hundreds takes a page more
    assert session.usual.later > session.usual.later_tensors + (32 << 10)  # the tables of the arena
    assert (session.inputs, session.weights) == (12288, own.session)
    text = run("analyze", models / "resnet8.onnx").stdout
    assert f"({session.usual.first:,} B) in the first run, " in text.replace("\n      ", " ")
    assert "measured: onnxruntime" in text
    assert "ort by itself 204.00 KiB (208,896 B): tensors alone" in text
    assert "What a session allocates" not in text


def test_settings_that_need_less_come_as_lines_of_python(models: Path) -> None:
    least = session_of(models / "mobilenet_v2_like.onnx").others[0]
    assert "arena off" in least.settings
    assert least.most < 1 << 20
    options: dict[str, Any] = {}
    code = "\n".join(("import onnxruntime", *least.code))
    exec(code, options)
    assert not options["options"].enable_cpu_mem_arena
    assert options["session"].get_inputs()


def test_the_number_of_threads_is_the_session_s(models: Path) -> None:
    sessions = [session_of(models / "resnet8.onnx", threads=threads) for threads in (1, 3)]
    assert [session.threads for session in sessions] == [1, 3]
    assert "intra_op_num_threads = 3" in "".join(sessions[1].others[0].code)
    assert "3 intra-op threads" in run("analyze", models / "resnet8.onnx", "--threads", "3").stdout.replace(
        "\n      ", " "
    )


def test_other_runtimes_have_no_session(models: Path) -> None:
    assert analyze(AnalyzeRequest(str(models / "resnet8.onnx"), runtime="generic")).requirement.session is None
    document = json.loads(run("analyze", models / "resnet8.tflite", "--json", "-").stdout)
    assert "session" not in document["requirement"]


def test_the_document_names_session_and_planned_activations(models: Path) -> None:
    document = json.loads(run("analyze", models / "resnet8.onnx", "--json", "-").stdout)
    session = document["requirement"]["session"]
    assert document["requirement"]["arena"] == max(session["usual"]["first"], session["usual"]["later"])
    assert session["by_itself"] == 208896
    assert session["others"][0]["code"][0] == "options = onnxruntime.SessionOptions()"


def test_a_measurement_is_remembered(models: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = session_of(models / "resnet8.onnx")
    assert len(list(cache.iterdir())) == 1

    def refuse(*_: object) -> list[Measured]:
        raise AssertionError("measured again")

    monkeypatch.setattr(remembered, "measure_each", refuse)
    assert session_of(models / "resnet8.onnx") == first
    with pytest.raises(AssertionError, match="measured again"):
        session_of(models / "resnet8.onnx", threads=2)


def test_a_damaged_memory_is_measured_anew(models: Path, cache: Path) -> None:
    first = session_of(models / "resnet8.onnx")
    for content in ("{", "[]", '{"a": 1}'):
        next(cache.iterdir()).write_text(content)
        assert session_of(models / "resnet8.onnx").usual.later_tensors == first.usual.later_tensors


def test_a_cache_that_cannot_be_written_is_no_error(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert session_of(models / "resnet8.onnx").usual.measured


def test_without_time_the_session_is_predicted(models: Path) -> None:
    session = session_of(models / "resnet8.onnx", seconds=0)
    assert not session.usual.measured
    assert "not measured: --measure 0" in session.note
    found = measure(models / "resnet8.onnx", {"input": (1, 3, 32, 32)}, SessionSettings(level="disable"))
    assert session.usual.later == pytest.approx(found.heap[1], rel=0.01)
    done = run("analyze", models / "resnet8.onnx", "--measure", "0.000001")
    assert "did not finish within 1e-06 seconds" in done.stdout
    assert "predicted: heap of a session at graph optimization level off" in done.stdout


@pytest.mark.parametrize(
    ("name", "words", "reads"), [("resnet8", (), 0), ("bert_like", ("--dim", "batch=1", "--dim", "sequence=64"), 1)]
)
def test_a_predicted_session_reads_nodes_that_are_folded_once_for_all_settings(
    models: Path, name: str, words: tuple[str, ...], reads: int
) -> None:
    assert bool(load_model(models / f"{name}.onnx", words[1::2]).folded) == bool(reads)
    with mock.patch("modelplan.questions.session_sizing.load_as_run", wraps=load_as_run) as read:
        done = run("explain", models / f"{name}.onnx", *words, "--measure", "0", "--seconds", "0")
    assert "Less by settings alone" in done.stdout
    assert read.call_count == reads


def test_without_onnx_runtime_the_session_is_predicted(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "find_spec", lambda _: None)
    session = session_of(models / "resnet8.onnx")
    assert not session.usual.measured
    assert "pip install" in session.note


def test_check_judges_by_the_session(models: Path) -> None:
    path = models / "resnet8.onnx"
    fits = run("check", path, "--budget", "1100KiB")
    assert (fits.returncode, "measured: onnxruntime" in fits.stdout) == (0, True)
    done = run("check", path, "--budget", "250KiB")  # the planned activations would fit
    assert done.returncode == 1
    assert "fits with other settings of the session: arena off" in done.stdout
    assert "options.enable_cpu_mem_arena = False" in done.stdout
    document = json.loads(run("check", path, "--budget", "1MiB", "--json", "-").stdout)
    assert document["models"][0]["session"]["usual"]["measured"]


def test_a_microcontroller_runs_no_session(models: Path) -> None:
    done = run("check", models / "resnet8.onnx", "--target", "rp2040")
    assert done.returncode == 2
    assert "rp2040 is a microcontroller" in done.stderr
    assert "--runtime generic" in done.stderr
    assert run("check", models / "resnet8.onnx", "--target", "rp2350", "--runtime", "generic").returncode == 0


def test_what_can_be_neither_measured_nor_predicted_has_no_figure(voice: Path) -> None:
    found = check_budgets(CheckRequest((ModelRequest(str(voice), measure=0),), Limits(1 << 20)))
    assert (found.outcomes[0].exit_code, found.outcomes[0].needed) == (1, None)
    assert "runs bodies" in found.outcomes[0].problem
    done = run("analyze", voice, "--measure", "0")
    assert "no figure of a session; ort by itself" in done.stdout
    assert "(it runs bodies, which are not followed)" in done.stdout.replace("\n      ", " ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--measure", "-1"), "--measure is -1, expected seconds from 0 on"),
        (("--threads", "0"), "--threads is 0, expected 1 to 1024"),
        (("--value", "rate"), "--value 'rate': expected INPUT=N"),
        (("--value", "nothing=1"), "--value nothing: the model has no input of that name"),
        (("--value", "rate=1", "--value", "rate=2"), "--value rate is given twice"),
        (("--value", "rate=1,2"), "has 1 numbers, expected 1 or as many"),
        (("--dim", "batch=4..1"), "the range ends at 1, below 4 where it begins"),
        (("--dim", "batch=1..1000"), "1,000 combinations of extents, expected 256 at most"),
    ],
)
def test_bad_input(voice: Path, options: tuple[str, ...], message: str) -> None:
    done = run("analyze", voice, *options)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    """A model like that of a voice detector: an input says the rate, and an If runs another network for each."""
    weights = {
        name: numpy_helper.from_array(np.zeros(shape, np.float32), name)
        for name, shape in {"wide": (512, 256), "narrow": (512, 64)}.items()
    }
    rate = numpy_helper.from_array(np.array(16000, np.int64), "sixteen")

    def branch(name: str) -> Any:
        rows = [
            helper.make_node("MatMul", ["x", name], [f"{name}_h"]),
            helper.make_node("Exp", [f"{name}_h"], [f"{name}_e"]),
        ]
        rows.append(helper.make_node("ReduceMean", [f"{name}_e"], [f"{name}_y"], axes=[1], keepdims=1))
        return helper.make_graph(rows, name, [], [helper.make_tensor_value_info(f"{name}_y", 1, ["batch", 1])])

    nodes = [
        helper.make_node("Equal", ["rate", "sixteen"], ["is_sixteen"]),
        helper.make_node("If", ["is_sixteen"], ["y"], then_branch=branch("wide"), else_branch=branch("narrow")),
    ]
    given = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 512]),
        helper.make_tensor_value_info("rate", TensorProto.INT64, []),
    ]
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1])]
    graph = helper.make_graph(nodes, "voice", given, out, [*weights.values(), rate])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path / "voice.onnx"
    onnx.save(model, path)
    return path


def test_a_value_decides_which_branch_runs(voice: Path) -> None:
    needs = {rate: analyze(AnalyzeRequest(str(voice), values=(f"rate={rate}",))) for rate in (16000, 8000)}
    widths = {
        rate: next(
            answer.file.graph.tensors[op.outputs[0]].shape for op in answer.file.graph.ops if op.kind == "MatMul"
        )
        for rate, answer in needs.items()
    }
    assert widths == {16000: (64, 256), 8000: (64, 64)}
    found = {rate: answer.requirement.session for rate, answer in needs.items()}
    off = {
        rate: next(one for one in session.others if one.settings.startswith("arena off")).most
        for rate, session in found.items()
        if session is not None
    }
    assert off[16000] - off[8000] > 64 * 192 * 4  # one map of 256 values in place of 64 at least
    assert "If" not in {op.kind for op in needs[8000].file.graph.ops}


def test_a_range_of_extents_makes_a_table(models: Path) -> None:
    done = run("analyze", models / "bert_like.onnx", "--dim", "batch=1..3", "--dim", "sequence=64")
    rows = [line.split() for line in done.stdout.splitlines()[-3:]]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    planned = [int(row[3].replace(",", "")) for row in rows]
    assert planned == [313344, 626688, 940032]
    assert run("analyze", models / "bert_like.onnx", "--dim", "batch=1..3", "--json", "-").returncode == 2
    assert "ranges are for `analyze`" in run("explain", models / "bert_like.onnx", "--dim", "batch=1..3").stderr


def test_extents_that_were_fixed_are_printed(models: Path) -> None:
    done = run("analyze", models / "bert_like.onnx", "--dim", "batch=2", "--dim", "sequence=32")
    assert "fixed by --dim batch=2 --dim sequence=32: inputs input_ids [2, 32]" in done.stdout
    assert "outputs" in done.stdout.split("fixed by")[1].partition("\n\n")[0]


def test_budgets_state_extents_of_single_models(models: Path, tmp_path: Path) -> None:
    for name in ("bert_like", "resnet8"):
        (tmp_path / f"{name}.onnx").write_bytes((models / f"{name}.onnx").read_bytes())
    budget = '[[budget]]\nmodel = ["bert_like.onnx", "resnet8.onnx"]\narena = "2MiB"\n[budget.dim]\n'
    (tmp_path / "modelplan.toml").write_text(f'{budget}"bert*.onnx" = ["batch=1", "sequence=64"]\n')
    assert run("check", cwd=tmp_path).returncode == 0
    (tmp_path / "modelplan.toml").write_text(f'{budget}"other.onnx" = "batch=1"\n')
    done = run("check", cwd=tmp_path)
    assert (done.returncode, "dim: other.onnx is none of its models" in done.stderr) == (2, True)
    (tmp_path / "modelplan.toml").write_text(f'{budget}"bert*.onnx" = 1\n')
    assert "dim.bert*.onnx is 1, expected text or a list of texts" in run("check", cwd=tmp_path).stderr


def test_a_comment_has_the_settings_as_python(models: Path) -> None:
    text = run("check", models / "resnet8.onnx", "--budget", "250KiB", "--format", "markdown").stdout
    assert "```python\noptions = onnxruntime.SessionOptions()\n" in text
    assert "```sh" not in text


def test_explain_names_the_session_and_the_settings_that_fit(models: Path) -> None:
    done = run("explain", models / "resnet8.onnx", "--measure", 0, "--seconds", 0, "--capacity", "500KiB")
    assert done.returncode == 0, done.stderr
    assert "predicted: heap of a session" in done.stdout
    assert "Less by settings alone" in done.stdout
    assert "The least that makes it fit\n  settings of the session: arena off" in done.stdout
    document = json.loads(run("explain", models / "resnet8.onnx", "--measure", 0, "--seconds", 0, "--json", "-").stdout)
    session = document["requirement"]["session"]
    assert not session["usual"]["measured"]
    assert document["requirement"]["arena"] >= session["usual"]["later"] > session["by_itself"]


def test_a_sweep_takes_values_of_inputs(voice: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from modelplan.questions.sweeps.store import read_rows

    table = tmp_path / "fleet.toml"
    table.write_text(f'models = "{voice.name}"\n[inputs."{voice.name}"]\nvalue = "rate=8000"\n')
    heights: list[tuple[str, int]] = []
    for args in ([voice, "--value", "rate=16000"], [voice, "--value", "rate=8000"], [table]):
        output = tmp_path / f"{len(heights)}.parquet"
        done = run("sweep", *args, "-o", output, "--runtimes", "generic")
        assert done.returncode == 0, done.stderr
        (row,) = read_rows(output)
        assert row.height is not None, row.error
        heights.append((row.values, row.height))
    assert heights[1] == heights[2]
    assert heights[0][1] > heights[1][1]


def test_weights_in_other_files_are_part_of_what_is_remembered(tmp_path: Path, cache: Path) -> None:
    data = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64]) for name in "xy"]
    weights = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "m", data[:1], data[1:], [weights])
    path = tmp_path / "model.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    location = "a folder whose name is rather long for such a thing, so that its length takes two bytes/weights.bin"
    location = location.replace("/", "_" * 40 + "/")
    (tmp_path / location).parent.mkdir()
    onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=0)
    assert session_of(path).usual.measured
    assert len(list(cache.iterdir())) == 1
    session_of(path)
    assert len(list(cache.iterdir())) == 1
    stated = (tmp_path / location).stat()
    os.utime(tmp_path / location, ns=(stated.st_atime_ns, stated.st_mtime_ns + 10**9))
    session_of(path)
    assert len(list(cache.iterdir())) == 2
    known = remembered.RememberedSessions(str(path), path.read_bytes())
    assert known.known()
    with (tmp_path / location).open("ab") as file:
        file.write(b"more")
    assert not remembered.RememberedSessions(str(path), path.read_bytes()).known()


def test_sessions_that_differ_from_process_to_process_are_named(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = measuring.measure_each

    def measured(*words: Any) -> list[Measured]:
        larger = words[-1] * 100000  # the last is the number of the process
        return [replace(one, heap=(one.heap[0] + larger, one.heap[1])) for one in real(*words)]

    monkeypatch.setattr(remembered, "measure_each", measured)
    session = session_of(models / "resnet8.onnx")
    assert session.usual.lowest is not None
    assert session.usual.most == pytest.approx(session.usual.lowest + 200000, abs=8192)
    text = run("analyze", models / "resnet8.onnx", "--measure", "60").stdout.replace("\n      ", " ")
    both = f"differ from process to process: {human(session.usual.lowest)} or {human(session.usual.most)}"
    assert f"{both}; the most counts" in text
    assert session_of(models / "bert_like.onnx", dims=("batch=1", "sequence=8")).usual.lowest is None
