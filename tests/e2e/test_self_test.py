"""Self-tests by the command, compiled with TFLM and run: they pass on a right file, and fail on what is wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run
from shared_memory import BUILDS, compiled, missing

from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import FileModel, load_tflite
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.runner import INSTALL, installed

PROGRAM = Path(__file__).resolve().parents[1] / "support" / "self_test_program.cc"
#: Programs of the kit with what is tested on them: fully planned, with a variable state, and with overlaps.
PROGRAMS = ("tflm-reference", "tflm-cmsis", "tflm-espnn")
CASES = [(name, model) for name in PROGRAMS for model in range(3)]
LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
COMMANDS = (
    ("fit", "person_detect.tflite", "--least", "--without", "split"),
    ("pack", "wakeword/okay_nabu.tflite", "--force", "--alias", "safe"),
    ("fit", "kws_ref_model.tflite", "--least"),
)

pytestmark = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


def on_kit(program: str, source: str, model: Path, *defined: str) -> tuple[bool, set[str]]:
    """Whether a self-test passes on a program of the kit with a model, and what it says has failed, without numbers."""
    lines = "".join(f"#define {words}\n" for words in defined)
    command = [*BUILDS[program].starter, str(compiled(program, lines + source, PROGRAM)), str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    said = done.stdout.splitlines()
    passed = said[-1:] == ["PASS"]
    assert passed == (done.returncode == 0), done.stdout + done.stderr
    failed = (line.strip().removesuffix(": FAIL") for line in said if line.endswith(": FAIL"))
    return passed, {line.rstrip("0123456789 ") for line in failed}


@pytest.fixture
def written(corpus: Path, tmp_path: Path) -> Callable[[str, int], tuple[FileModel, str]]:
    """What a command makes of a model for a program of the kit, and the self-test that it writes."""

    def write(program: str, number: int) -> tuple[FileModel, str]:
        if why := missing(program):
            pytest.skip(why)
        command, name, *options = COMMANDS[number]
        build, model = BUILDS[program], corpus / "tflite" / name
        out, test = tmp_path / "out.tflite", tmp_path / "test.cc"
        target = ("--kernels", build.kernels, "--abi", build.abi)
        done = run(command, model, "-o", out, *target, "--self-test", test, *options)
        assert done.returncode == 0, done.stderr
        return load_tflite(out), test.read_text()

    return write


Written = Callable[[str, int], tuple[FileModel, str]]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "number"), CASES)
def test_a_right_file_passes_and_others_fail(written: Written, tmp_path: Path, program: str, number: int) -> None:
    """Others are one with changed weights, and one with a wrong offset in its plan."""
    model, source = written(program, number)
    assert on_kit(program, source, Path(model.name)) == (True, set())
    told = "output" if "constexpr int kWrites = 0;" in source else "first wrong operator"
    for name, content in (("weights", with_changed_weights(model)), ("offset", with_wrong_offset(model))):
        other = tmp_path / name
        other.write_bytes(content)
        passed, failed = on_kit(program, source, other)
        assert not passed
        assert "model of bytes" in failed
        assert failed & {told, "arena of bytes"}, name  # a tensor elsewhere may reach beyond the arena


def with_changed_weights(model: FileModel) -> bytes:
    """The file with the weights of a layer in the reverse order."""
    main = model.subgraphs[0]
    op = next(op for op in main.ops if op.kind in LAYERS)
    start, length = main.tensors[op.inputs[1]].content
    return model.data[:start] + model.data[start : start + length][::-1] + model.data[start + length :]


def with_wrong_offset(model: FileModel) -> bytes:
    """The file with a plan that lays an operand over another one of the same operator, or a result over its map."""
    offsets = list(planner.read_plan(model) or planner.greedy_offsets(planner.requests(model))[: len(model.tensors)])
    main = model.subgraphs[0]
    made = {t for op in main.ops for t in op.writes} - model.handles
    pairs = [[t for t in op.reads if t in made] for op in main.ops]
    both = next((pair for pair in pairs if len(pair) > 1), None)
    if both is None:
        op = next(op for op in main.ops[1:] if op.kind == "DEPTHWISE_CONV_2D")
        both = [op.reads[0], op.writes[0]]
    offsets[both[1]] = offsets[both[0]]
    return write_plan(model, offsets)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_16_bytes_less_fail(written: Written, program: str) -> None:
    model, source = written(program, 0)
    size = int(source.split("kArenaBytes = ")[2].split(";")[0])
    less = f"MODELPLAN_SELF_TEST_ARENA_BYTES {size - 16}"
    assert on_kit(program, source, Path(model.name), less) == (False, {"arena of bytes"})


def test_a_plan_for_other_kernels_fails_on_those_of_the_reference(corpus: Path, tmp_path: Path) -> None:
    """What `verify` cannot execute here, and says so."""
    model, out, test = corpus / "tflite" / "person_detect.tflite", tmp_path / "out.tflite", tmp_path / "test.cc"
    options = ("--kernels", "cmsis-c", "--abi", "x86-64")
    done = run("fit", model, "--least", "--without", "split", "-o", out, "--self-test", test, *options)
    assert done.returncode == 0, done.stderr
    said = "not executed        the kernels of cmsis-c, the plan, your firmware"
    assert said in done.stdout
    assert "executed            the file without its plan on TFLM's reference kernels" in done.stdout
    again = run("verify", out, "--self-test", tmp_path / "again.cc")
    assert said in again.stdout.splitlines()[1]
    assert "executed            on no runtime; the levels below say why" in again.stdout
    for program in ("host-cmsis-c", "host-reference"):
        if why := missing(program):
            pytest.skip(why)
    source = test.read_text()
    assert (tmp_path / "again.cc").read_text().partition("kModelBytes")[2] == source.partition("kModelBytes")[2]
    assert on_kit("host-cmsis-c", source, out) == (True, set())
    assert on_kit("host-reference", source, out) == (False, {"first wrong operator", "output"})


def test_what_was_executed_is_said_first(models: Path, corpus: Path, tmp_path: Path) -> None:
    model, out = models / "ds_cnn_kws.tflite", tmp_path / "out.tflite"
    assert run("pack", model, "-o", out, "--force").returncode == 0
    lines = run("verify", out).stdout.splitlines()
    assert lines[1].startswith("  not executed        the kernels of CMSIS-NN and ESP-NN, your firmware; --self-test")
    assert "  executed            the file with its plan on TFLM's reference kernels" in lines
    lines = run("verify", out, "--quick", "--kernels", "reference").stdout.splitlines()
    assert lines[1].startswith("  not executed        the plan, your firmware")
    assert "  executed            on no runtime; the levels below say why" in lines
    done = run("verify", model, "--against", out, "--self-test", tmp_path / "test.cc")
    assert done.returncode == 0, done.stderr
    assert "  executed            the file with its plan on TFLM's reference kernels" in done.stdout
    assert (tmp_path / "test.cc").read_text().count("0x") > 50


def test_wrong_requests_of_self_tests(models: Path, corpus: Path, tmp_path: Path) -> None:
    model, test = models / "ds_cnn_kws.tflite", tmp_path / "test.cc"
    assert run("pack", model, "-o", tmp_path / "p.tflite", "--force").returncode == 0
    (tmp_path / "plan.json").write_text("{}")
    lstm = corpus / "tflite" / "trained_lstm_int8.tflite"
    for words, code, said in [
        (("verify", "p.tflite", "--abi", "cortex-m"), 2, "--abi is for the arena of --self-test"),
        (("verify", "p.tflite", "--self-test", "p.tflite"), 2, "p.tflite is the input"),
        (("verify", "plan.json", "--self-test", test), 2, "expected a name that ends in .tflite"),
        (("verify", "p.tflite", "--self-test", test, "--abi", "pdp-11"), 2, "no ABI 'pdp-11'"),
        (("verify", lstm, "--against", lstm, "--kernels", "cmsis-dsp", "--self-test", test), 2, "no outputs to expect"),
        (("pack", "p.tflite", "-o", "x.tflite", "--self-test", "p.tflite"), 2, "p.tflite is the input"),
    ]:
        done = run(*words, cwd=tmp_path)
        assert (done.returncode, said in done.stderr) == (code, True), (words, done.stderr)
        assert not test.exists()
