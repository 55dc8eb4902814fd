"""What helps a person at the command line: the manual, the version, the completion of a shell, the schema."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest
import shtab
from commands import run

import modelplan
from modelplan.cli.command_table import COMMANDS, MODULES, SPOKEN
from modelplan.cli.completion import SHELLS
from modelplan.cli.help import topics
from modelplan.formats import load_model
from modelplan.outputs.schemas.plan_schema import plan_schema
from modelplan.questions.explaining.changes import CHANGES
from modelplan.rewriting.striped_tflite.rungs import RUNGS

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "docs" / "plan.schema.json"


def test_the_version_names_the_build() -> None:
    first, core, python, *revision = run("--version").stdout.splitlines()
    assert first == f"modelplan {modelplan.__version__}"
    assert re.fullmatch(r"core: (GCC|Clang|MSVC) [\d.]+, (abi3|cp3\d+), \S+", core)
    assert re.fullmatch(r"python: \w+ 3[\d.]+\S*", python)
    assert len(revision) <= 1
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", modelplan.__version__)  # semantic versioning


def test_every_page_of_the_docs_is_a_topic() -> None:
    assert set(topics()) == {page.stem for page in (ROOT / "docs").glob("*.md")}
    listed = run("help").stdout
    for name, page in topics().items():
        assert name in listed
        assert run("help", name).stdout == page.read_text()


def test_a_command_is_a_topic_and_another_word_is_refused() -> None:
    assert run("help", "solve").stdout == run("solve", "--help").stdout
    done = run("help", "nothing")
    assert done.returncode == 2
    assert "no topic 'nothing'; `modelplan help` lists the topics" in done.stderr


def test_a_phrase_of_an_answer_is_explained_by_its_words() -> None:
    assert run("help", "ABI", "32").stdout == run("help", "abi").stdout
    spill = run("help", "spill").stdout  # a command as well
    assert spill.startswith("## Spill\n")
    assert spill.endswith(run("spill", "--help").stdout)
    assert run("help", "stripe").stdout.startswith("## Stripes")
    assert run("help", "stripes").stdout.endswith(run("help", "stripe").stdout)  # behind the change of that name
    assert run("help", "views").stdout == run("help", "view").stdout
    both = run("help", "jointly optimal (flow certificate)").stdout
    assert both.startswith("## Flow certificate")
    assert "## Jointly optimal" in both


@pytest.mark.parametrize("name", [*CHANGES, *RUNGS])
def test_every_change_and_rung_is_explained(name: str) -> None:
    done = run("help", name)
    assert (done.returncode, done.stdout[:3]) == (0, "## "), done.stderr


def test_words_that_people_use_lead_to_the_command() -> None:
    for word, words in SPOKEN.items():
        assert words.split()[0] in COMMANDS
        assert word not in MODULES
        explained = word in topics() or word in CHANGES  # `help map` is a page
        asked = [run(word, "a.tflite")] + [run("help", word)] * (not explained)
        for done in asked:
            assert done.returncode == 2
            assert done.stderr.endswith(f"; did you mean `modelplan {words}`?\n")


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_options_and_files(shell: str, tmp_path: Path) -> None:
    assert shell in shtab.SUPPORTED_SHELLS
    script = tmp_path / "_modelplan"
    script.write_text(run("completion", shell).stdout)
    for name in COMMANDS:
        assert name in script.read_text()
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "some_model.tflite").touch()
    for words, expected in [
        (["ana"], "analyze"),
        (["analyze", "--allo"], "--allocator"),
        (["analyze", "so"], "some_m"),
        (["check", "--target", "nrf5"], "nrf52840"),
        (["analyze", "--alias", "ru"], "runtime"),
        (["sweep", "some_model.tflite", "--kernels", "cmsis-m"], "cmsis-mve"),
        (["help", "tfl"], "tflm"),
    ]:
        ask = offered_by_zsh if shell == "zsh" else offered
        assert expected in ask(program, script, words), words


def offered(program: str, script: Path, words: list[str]) -> str:
    """What bash or fish offers for the last of the words."""
    line = " ".join(["modelplan", *words])
    in_bash = f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _shtab_modelplan; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    ask = f'complete -C "{line}"' if program.endswith("fish") else in_bash
    return subprocess.run(
        [program, "-c", f"source {script}; {ask}"],
        capture_output=True, text=True, cwd=script.parent, timeout=60, check=True,
    ).stdout  # fmt: skip


def offered_by_zsh(program: str, script: Path, words: list[str]) -> str:
    """What the last of the words becomes in zsh, which completes only on a terminal."""
    inner = f"PS1= RPS1=; fpath=({script.parent} $fpath); autoload -U compinit; compinit -u -D; print rea''dy"
    line = " ".join(["modelplan", *words])
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(script.parent)
        os.execve(program, [program, "-f", "-i"], {"TERM": "dumb", "PATH": os.environ["PATH"], "HOME": "/nonexistent"})
    try:
        os.write(terminal, f"{inner}\n".encode())
        read_until(terminal, b"ready\r")
        os.write(terminal, f"{line}\t".encode())
        os.write(terminal, b"\x01print -r -- '\x05' en''d\n")  # the line as it is then, in quotes
        return read_until(terminal, b"end\r").decode(errors="replace")
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(child, 0)


def read_until(terminal: int, end: bytes) -> bytes:
    """What a terminal shows up to and with `end`."""
    found = b""
    while end not in found:
        assert select.select([terminal], [], [], 60)[0], found
        found += os.read(terminal, 65536)
    return found


def test_completion_without_its_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    assert modelplan.cli.main(["completion", "bash"]) == 2
    assert "pip install 'modelplan[completion]'" in capsys.readouterr().err


def test_the_schema_is_the_one_in_the_docs(request: pytest.FixtureRequest) -> None:
    said = run("schema").stdout
    if request.config.getoption("--update"):
        SCHEMA.write_text(said)
    assert SCHEMA.read_text() == said, "run: modelplan schema -o docs/plan.schema.json"
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    assert "there is no folder" in run("schema", "-o", "nowhere/schema.json").stderr


PLANS = [
    ["ds_cnn_kws.tflite"],
    ["ds_cnn_kws.tflite", "--alias", "max", "--capacity", "8KiB"],
    ["audio_1d.tflite", "--alias", "safe", "--target", "nrf52840"],
    ["unet_small.tflite", "--alias", "none", "--streams", "2"],
    ["mobilenet_v2_like.onnx", "--runtime", "generic"],
    ["transformer_encoder.onnx", "--schedule", "file"],
]


@pytest.mark.parametrize("words", PLANS, ids=" ".join)
def test_plans_keep_to_the_schema(words: list[str]) -> None:
    done = run("analyze", *words, "--json", "-", cwd=ROOT / "models")
    assert done.returncode == 0
    jsonschema.validate(json.loads(done.stdout), plan_schema())


@pytest.mark.slow
def test_a_document_with_another_version_or_without_a_field_is_refused() -> None:
    answer = modelplan.plan(load_model(ROOT / "models" / "ds_cnn_kws.tflite"))
    document = json.loads(modelplan.render(answer, ".json"))
    jsonschema.validate(document, plan_schema())
    for damaged in (
        document | {"schema": 2},
        document | {"plan": {name: one for name, one in document["plan"].items() if name != "placement"}},
        document | {"plan": document["plan"] | {"problem": document["plan"]["problem"] | {"size": ["64"]}}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(damaged, plan_schema())


def test_an_option_is_a_topic() -> None:
    said = run("help", "custom").stdout
    assert said == run("help", "--", "--custom").stdout
    assert said.startswith("## --custom\n\nyour own kernel")
    assert "`modelplan recompute`" in said
    assert "\n\nextra multiply-accumulates (default: 10%;" in run("help", "--", "--max-macs").stdout
    assert "did you mean 'custom'?" in run("help", "cusstom").stderr
