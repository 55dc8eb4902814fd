"""Self-tests for firmware: their inputs, what they expect and refuse, and the C++ on declarations of TFLM."""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tflm_models import T, ints, single

from modelplan import ModelError, RequestError, SelfTest, SelfTestRequest, render, self_test
from modelplan.answers.proof_outcomes import ExpectedOutput
from modelplan.questions.self_testing import expected_runs
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, load_tflite, read_tflite
from modelplan.runtimes.tflm.generated_inputs import generated_inputs, numbers
from modelplan.runtimes.tflm.runner import INSTALL, installed

SUPPORT = Path(__file__).resolve().parents[2] / "support"
TYPES = {"float32": "Float32", "int8": "Int8", "uint8": "UInt8", "int16": "Int16", "int32": "Int32", "int64": "Int64",
         "bool": "Bool"}  # fmt: skip

wheel = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


def copying(dtype: str, count: int = 37) -> FileModel:
    """A model whose output is its input."""
    made = single("RESHAPE", [T(dtype, (1, count)), ints(count)], [T(dtype, (count,))])
    return read_tflite(made, f"copy of {dtype}.tflite")


def echo(model: FileModel, expected: Sequence[bytes]) -> SelfTest:
    """A self-test for the interpreter of the declarations."""
    runs = tuple((ExpectedOutput(zlib.crc32(content)),) for content in expected)
    return SelfTest(model, model.name, arena(model, "x86-64"), "reference", 0, 5, runs, (), "nothing")


def program(folder: Path, source: str, copied: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What a self-test prints that is compiled with the declarations, as strictly as firmware may be."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    for name in re.findall(r'#include "(tensorflow/.*)"', source):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('#include "tflm_declarations.hpp"\n')
    (folder / "test.cc").write_text(source)
    strict = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]
    command = [compiler, *strict, f"-I{folder}", f"-I{SUPPORT}", f"-DCOPIED={copied}", "-DMODELPLAN_SELF_TEST_MAIN"]
    done = subprocess.run(
        [*command, *words, str(folder / "test.cc"), "-o", str(folder / "test")],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return done
    return subprocess.run([str(folder / "test")], capture_output=True, text=True, check=False)


def test_the_generator_is_splitmix64() -> None:
    assert numbers(1234567, 4).tolist() == [
        3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES)
def test_firmware_generates_the_same_inputs(tmp_path: Path, dtype: str) -> None:
    model = copying(dtype)
    feeds = [generated_inputs(model, 5, run)[0] for run in range(3)]
    copied = f"{{kTfLite{TYPES[dtype]},{len(feeds[0])}}}"
    source = str(render(echo(model, feeds), "self-test"))
    done = program(tmp_path, source, copied)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["PASS"]), done.stdout + done.stderr
    wrong = [feeds[0], feeds[1][:-1] + bytes([feeds[1][-1] ^ 1]), feeds[2]]
    done = program(tmp_path, str(render(echo(model, wrong), "self-test")), copied)
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if "FAIL" in line] == ["    output 0: FAIL", "FAIL"]


@pytest.mark.slow
def test_floats_are_compared_by_means_up_to_a_tolerance(tmp_path: Path) -> None:
    model = copying("float32")
    values = np.frombuffer(generated_inputs(model, 5, 0)[0], np.float32)
    means = tuple(float(values[at : at + 4].mean()) for at in range(0, 37, 4))
    for off, code in ((0.0, 0), (0.9e-4, 0), (1.1e-4, 1), (float("nan"), 1)):
        near = ExpectedOutput(0, (*means[:-1], means[-1] + off), 4, 1e-4)
        source = str(render(replace(echo(model, []), runs=((near,),)), "self-test")).replace("nan.0f", "NAN")
        done = program(tmp_path, source, "{kTfLiteFloat32,148}")
        assert (done.returncode, done.stdout.splitlines()[-1:]) == (code, [("PASS", "FAIL")[code]]), done.stderr


@pytest.mark.slow
def test_the_model_its_place_and_the_arena_are_judged(tmp_path: Path) -> None:
    model = copying("int8", 4)
    source = str(render(echo(model, [generated_inputs(model, 5, 0)[0]]), "self-test"))
    copied = "{kTfLiteInt8,4}"
    done = program(tmp_path, source, copied, "-DMODELPLAN_SELF_TEST_ARENA_BYTES=16")
    assert "arena of bytes 16: FAIL" in done.stdout
    other = model.data[:-1] + bytes([model.data[-1] ^ 1])
    for content, at, wrong in ((model.data, 0, set()), (other, 0, {"model of bytes"}),
                               (model.data, 1, {"alignment of the model to"})):  # fmt: skip
        array = f"alignas(16) extern const unsigned char raw[] = {{{', '.join(map(str, bytes(at) + content))}}};\n"
        declared = "extern const unsigned char MODELPLAN_SELF_TEST_MODEL[];"
        named = source.replace(declared, f"{array}#define own (raw+{at})")
        done = program(tmp_path, named, copied, "-DMODELPLAN_SELF_TEST_MODEL=own")
        failed = (line.strip() for line in done.stdout.splitlines() if ": FAIL" in line)
        said = {line.rpartition(" ")[0].rpartition(" ")[0] for line in failed}
        assert said == wrong, done.stdout + done.stderr


def test_kernels_of_another_library_do_not_compile(tmp_path: Path) -> None:
    model = copying("int8", 4)
    source = str(render(echo(model, [b"1234"]), "self-test"))
    assert "sized for reference kernels" in program(tmp_path, source, "{kTfLiteInt8,4}", "-DCMSIS_NN").stderr


def test_names_end_no_comment(tmp_path: Path) -> None:
    model = replace(copying("int8", 4), name="a\\\n*/ evil.tflite")
    source = str(render(echo(model, [generated_inputs(model, 5, 0)[0]]), "self-test"))
    assert program(tmp_path, source, "{kTfLiteInt8,4}").returncode == 0


@wheel
def test_outputs_come_from_the_original_without_its_plan(models: Path) -> None:
    path = models / "ds_cnn_kws.tflite"
    answer = self_test(SelfTestRequest(str(path), abi="xtensa", kernels="reference"))
    assert answer.arena.size() == arena(load_tflite(path), "xtensa", "reference").size()
    assert len(answer.runs) == 4
    assert {one.means for run in answer.runs for one in run} == {()}
    assert [one.op for one in answer.written] == list(range(len(answer.model.subgraphs[0].ops)))
    last = answer.written[-1]
    assert last.crcs == tuple(run[0].crc for run in answer.runs)
    assert len(set(last.crcs)) == 4
    other = self_test(SelfTestRequest(str(path), abi="xtensa", kernels="reference", seed=1))
    assert other.runs != answer.runs
    text = str(render(answer, "self-test"))
    assert "TFLM's reference kernels" in text
    assert "No kernel of CMSIS-NN or ESP-NN was executed" in text


@wheel
def test_floats_get_means_and_integers_bits(corpus: Path) -> None:
    def blocks(name: str) -> list[tuple[int, int]]:
        answer = self_test(SelfTestRequest(str(corpus / "tflite" / name)))
        return [(len(one.means), one.block) for one in answer.runs[0]]

    assert blocks("hello_world_float.tflite") == [(1, 1)]
    assert blocks("pretrainedResnet.tflite") == [(10, 1)]
    assert blocks("kws_ref_model.tflite") == [(0, 1)]
    assert blocks("audio_preprocessor_int8.tflite") == [(0, 1)]


@wheel
def test_a_large_float_output_is_compared_in_blocks() -> None:
    data = single("EXP", [T("float32", (1000,))], [T("float32", (1000,))])
    model = read_tflite(data, "exp")
    answer = expected_runs(model, model, "reference", "x86-64")
    one = answer.runs[0][0]
    assert (len(one.means), one.block, answer.written) == (250, 4, ())
    values = np.exp(np.frombuffer(generated_inputs(model, 0, 0)[0], np.float32).astype(float))
    assert np.allclose(one.means, values.reshape(-1, 4).mean(axis=1), rtol=1e-6)


@wheel
def test_what_has_no_outputs_to_expect_is_refused(corpus: Path, models: Path) -> None:
    kws, lstm = (load_tflite(corpus / "tflite" / f"{name}.tflite") for name in ("kws_ref_model", "trained_lstm_int8"))
    vela = load_tflite(corpus / "tflite" / "person_detect_vela.tflite")
    with pytest.raises(RequestError, match="other inputs or outputs"):
        expected_runs(lstm, kws, "reference", None)
    for kernels in ("cmsis-c", "cmsis-dsp", "cmsis-mve", "all"):
        with pytest.raises(RequestError, match=r"integer UNIDIRECTIONAL_SEQUENCE_LSTM \(op 0\)"):
            expected_runs(lstm, lstm, kernels, None)
    assert expected_runs(lstm, lstm, "esp-nn", None).written
    with pytest.raises(ModelError, match="no outputs to expect"):
        expected_runs(vela, vela, "reference", None)
    data = single("LOG", [T("float32", (4,))], [T("float32", (4,))])
    log = read_tflite(data, "log")
    with pytest.raises(ModelError, match="infinite values or none"):
        expected_runs(log, log, "reference", None)
    refused = read_tflite(single("NEG", [T("int16", (4,))], [T("int16", (4,))]), "refused")
    negated = read_tflite(single("NEG", [T("float32", (4,))], [T("float32", (4,))]), "neg")
    with pytest.raises(ModelError, match="TFLM would not run it"):
        expected_runs(refused, refused, "reference", None)
    with pytest.raises(RequestError, match="no ABI 'x'"):
        expected_runs(negated, negated, "reference", "x")


@wheel
def test_a_model_that_computes_something_else_is_refused() -> None:
    first, second = (
        read_tflite(single("ADD", [T("int8", (4,)), T("int8", (4,), (n, n, n, n))], [T("int8", (4,))]), f"add {n}")
        for n in (1, 2)
    )
    with pytest.raises(ModelError, match="add 2 does not compute what the original does"):
        expected_runs(first, second, "reference", None)
