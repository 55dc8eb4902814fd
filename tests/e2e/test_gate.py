"""The commands that judge and size a model as it stands, beside TFLM in arenas of exactly so many bytes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from commands import COMMAND, run
from tflite_models import branching
from tflm_models import T, single

from modelplan import read
from modelplan.model import bounds
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.planner import read_plan
from modelplan.runtimes.tflm.runner import INSTALL, RefusalError, installed, run_tflm

runtime = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")
REFERENCE = ("--kernels", "reference")


def declared(*words: object) -> int:
    """The number that `analyze` tells to paste."""
    done = run("analyze", *words)
    assert done.returncode == 0, done.stderr
    (number,) = re.findall(r"^  #define TENSOR_ARENA_SIZE (\d+)(?:  //.*)?$", done.stdout, re.MULTILINE)
    return int(number)


def loads(path: Path, arena: int) -> bool:
    try:
        run_tflm(path.read_bytes(), rounds=1, arena=arena)
    except RefusalError:
        return False
    return True


@pytest.fixture
def kws(models: Path, tmp_path: Path) -> Path:
    """A model that `pack` makes smaller, in a folder of its own."""
    path = tmp_path / "kws.tflite"
    path.write_bytes((models / "ds_cnn_kws.tflite").read_bytes())
    return path


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    """A model with an operator that has no kernel for its type on TFLM."""
    path = tmp_path / "refused.tflite"
    path.write_bytes(single("RELU", [T("uint8", (3,))], [T("uint8", (3,))]))
    return path


@runtime
@pytest.mark.parametrize("name", ["kws_ref_model", "hello_world_int8", "wakeword/vad"])
def test_the_verdict_is_what_tflm_does(corpus: Path, tmp_path: Path, name: str) -> None:
    source, packed = corpus / "tflite" / f"{name}.tflite", tmp_path / "packed.tflite"
    assert run("pack", source, "-o", packed, "--alias", "safe", "--force", *REFERENCE).returncode == 0
    for path in (source, packed):
        number = declared(path, "--abi", "wheel", *REFERENCE)
        for budget in (number, number - 16, number - 1024):
            if budget > 0:
                said = run("check", path, "--abi", "wheel", "--budget", budget, *REFERENCE).returncode
                assert (said == 0) == loads(path, budget), (path, budget)


@pytest.mark.slow
def test_check_says_what_fits_after_and_it_does(kws: Path) -> None:
    done = run("check", kws, "--budget", "20KiB", *REFERENCE)
    assert done.returncode == 1
    assert re.search(r"required +22\.23 KiB \(22,768 B\)", done.stdout)
    (command,) = re.findall(r"fits after: modelplan (.+)$", done.stdout, re.MULTILINE)
    (promised,) = re.findall(r"in-place outputs: .*\(([\d,]+) B\)", done.stdout)
    assert run(*shlex.split(command), cwd=kws.parent).returncode == 0
    packed, bytes_ = kws.parent / "packed.tflite", int(promised.replace(",", ""))
    assert run("check", packed, "--budget", bytes_).returncode == 0
    assert run("check", packed, "--budget", bytes_ - 1).returncode == 1
    assert declared(packed) == bytes_
    low = run("check", kws, "--budget", "10KiB", *REFERENCE)
    assert low.returncode == 1
    assert re.search(r"bytes: plain C \(no TFLM\)\n +modelplan fit \S+ --runtime c --least -o net.c", low.stdout)
    far = run("check", kws, "--budget", "1KiB", *REFERENCE)
    assert (far.returncode, "nothing tried fits" in far.stdout) == (1, True)
    command = f"fit {kws} --kernels reference --budget 1024 -o {kws.stem}_fitted.tflite"
    assert f"\n    modelplan {command}\n" in far.stdout
    assert run(*shlex.split(command), cwd=kws.parent).returncode in (0, 1)


def test_check_judges_several_models_and_writes_json(kws: Path, refused: Path) -> None:
    done = run("check", kws, refused, "--budget", "1MiB", "--json", "-", *REFERENCE)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    fits, cannot = document["models"]
    assert (document["budget"], fits["fits"]) == (1 << 20, True)
    assert (fits["required"], fits["excess"]) == (22768, 22768 - (1 << 20))
    assert sum(part["nbytes"] for part in fits["parts"]) == 22768
    assert (cannot["fits"], cannot["required"]) == (False, None)
    assert "RELU" in cannot["refusals"][0]
    missing = run("check", kws, kws.parent / "missing.tflite", "--budget", "1MiB")
    assert (missing.returncode, "kws.tflite: fits" in missing.stdout) == (3, True)
    assert "missing.tflite: No such file" in missing.stderr


def test_a_model_that_tflm_refuses_is_told_so_everywhere(refused: Path) -> None:
    shown = run("analyze", refused)
    assert (shown.returncode, "#define" in shown.stdout) == (1, False)
    assert "remedy: convert again as int8" in shown.stdout
    judged = run("check", refused, "--budget", "1GiB")
    packed = run("pack", refused, "-o", refused.parent / "p.tflite")
    assert (judged.returncode, packed.returncode) == (1, 1)
    for said in (shown.stdout, judged.stdout, packed.stderr):
        assert re.search(r"op 0 RELU: input 0 is uint8", said), said
        assert "remedy: convert again as int8" in said
    assert not (refused.parent / "p.tflite").exists()


def test_analyze_shows_the_plan_that_a_file_carries(kws: Path) -> None:
    packed, out = kws.parent / "packed.tflite", kws.parent / "plan.json"
    assert run("pack", kws, "-o", packed, "--alias", "safe", *REFERENCE).returncode == 0
    assert run("analyze", packed, "--json", out).returncode == 0
    made, offsets = read(out.read_text()), read_plan(load_tflite(packed))
    assert offsets is not None
    assert bounds.height(made.problem, made.placement) == made.runtime_height == 9792
    assert json.loads(out.read_text())["requirement"]["head"] == 9792
    placed = zip(made.problem.members, made.placement.offsets.tolist(), strict=True)
    places = {m.tensor: at + m.delta for members, at in placed for m in members}
    assert all(offsets[t] in (-1, at) for t, at in places.items())
    assert run("verify", out, "--quick").returncode == 0
    assert "head on TFLM        9.56 KiB (9,792 B)" in run("verify", packed, "--quick").stdout
    anew = run("analyze", packed, "--alias", "views", "--json", "-")
    assert json.loads(anew.stdout)["summary"]["height"] == 16000
    assert run("analyze", packed, "--allocator", "file", "--schedule", "dfs").returncode == 2


def test_pack_keeps_the_input_and_writes_no_plan_that_gains_nothing(kws: Path, corpus: Path) -> None:
    before, source = kws.read_bytes(), corpus / "tflite" / "ad01_int8.tflite"
    own = run("pack", kws, "-o", kws, "--alias", "safe")
    assert (own.returncode, "is the input; --force replaces it" in own.stderr) == (2, True)
    assert kws.read_bytes() == before
    copy = kws.parent / "copy.tflite"
    same = run("pack", source, "-o", copy)
    assert (same.returncode, "nothing saved" in same.stdout) == (0, True)
    assert copy.read_bytes() == source.read_bytes()
    assert run("pack", source, "-o", copy, "--force").returncode == 0
    assert read_plan(load_tflite(copy)) is not None
    assert run("pack", kws, "-o", kws, "--alias", "safe", "--force", *REFERENCE).returncode == 0
    assert declared(kws) == 16560


def test_several_subgraphs_are_sized_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "if.tflite"
    path.write_bytes(branching())
    number = declared(path)
    assert run("check", path, "--budget", number).returncode == 0
    assert run("check", path, "--budget", number - 1).returncode == 1


@pytest.mark.slow
def test_analyze_takes_several_models_and_writes_below_its_folder_only(kws: Path) -> None:
    hidden = kws.parent / "in" / "...tflite"
    hidden.parent.mkdir()
    hidden.write_bytes(kws.read_bytes())
    done = run("analyze", kws, hidden, "--out", "d", *REFERENCE, cwd=kws.parent)
    assert (done.returncode, done.stdout.count("#define TENSOR_ARENA_SIZE 22768")) == (0, 2)
    assert {p.name for p in kws.parent.iterdir()} == {"kws.tflite", "in", "d"}
    assert {p.name for p in (kws.parent / "d").iterdir()} == {"kws", "model ...tflite"}
    twice = run("analyze", kws, hidden, "--json", "-")
    assert (twice.returncode, "2 models" in twice.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_no_failed_budget(kws: Path, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        for words in (
            ["check", kws, "--budget", "1KiB"],
            ["analyze", kws],
            ["analyze", kws, "--json", "-"],
            ["--help"],
        ):
            done = subprocess.run(
                [COMMAND, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120,
                env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (
                2,
                "modelplan: cannot write the output: No space left on device\n",
            )
    assert run("pack", kws, "-o", "/dev/full", "--alias", "safe").returncode == 2


def test_escapes_in_names_do_not_reach_the_terminal(kws: Path) -> None:
    evil = kws.parent / "evil\x1b[2J.tflite"
    evil.write_bytes(kws.read_bytes())
    commands = (["check", "--budget", "1MiB"], ["analyze"], ["pack", "-o", kws.parent / "o.tflite"])
    for words in commands:
        done = run(*words, evil)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout + done.stderr
        assert "evil\\x1b[2J.tflite" in done.stdout
    assert "\x1b" not in run("analyze", evil, "--nope\x1b[2J").stderr


def test_text_for_a_pipe_fits(corpus: Path) -> None:
    done = run("analyze", corpus / "tflite" / "vww_96_int8.tflite")
    commands = [line for line in done.stdout.splitlines() if line.startswith("  modelplan ")]
    assert commands
    assert max(len(line) for line in done.stdout.splitlines() if line not in commands) <= 120


def test_questions_are_asked_before_work_is_done(kws: Path) -> None:
    for words, said in [
        (("check", kws, "--budget", "64kb"), "'64kb' may mean 64,000 or 65,536 bytes; write 64KiB or the bytes"),
        (("analyze", kws, "--alignment", "3"), "alignment is 3, expected a power of two"),
        (("analyze", kws, "--abi", "16"), "no ABI '16'; there are: 32, 64, cortex-m"),
        (("pack", kws, "-o", Path("no") / "p.tflite"), "there is no folder no"),
    ]:
        done = run(*words, cwd=kws.parent)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert run("-V").stdout == run("--version").stdout != ""


def test_what_is_too_large_as_plain_c_gets_the_command_that_tries_more(corpus: Path) -> None:
    model = corpus / "tflite" / "wakeword" / "alexa.tflite"
    done = run("check", model, "--runtime", "c", "--budget", "4KiB")
    assert done.returncode == 1
    assert f"try: modelplan fit {model} --runtime c --budget 4096 -o alexa.c" in done.stdout
    assert "other order" not in done.stdout
