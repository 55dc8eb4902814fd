"""Input that nobody writes by hand: answered with a reason and the exit code for it, never as a budget that failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run
from tflm_models import Op, S, T, build

from modelplan.primitives.errors import ModelError
from modelplan.targets.arithmetic import ExpressionError, evaluate, parse_expression, tokens_of
from modelplan.targets.linker_script import read_linker_script

REGION = "MEMORY { RAM (rwx) : ORIGIN = 0x20000000, LENGTH = %s }\n"


@pytest.mark.parametrize(
    ("words", "closed", "code"),
    [(["analyze", "{kws}"], ">&-", 2), (["analyze", "nope.tflite"], "2>&-", 3), (["analyze", "{kws}"], "2>&-", 0)],
)
def test_closed_outputs_are_no_failed_budget(words: list[str], closed: str, code: int, models: Path) -> None:
    named = [word.format(kws=models / "ds_cnn_kws.tflite") for word in words]
    line = f'"$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-P", "-m", "modelplan", *named],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_devices_and_pipes_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tflite")
    for suffix in ("tflite", "onnx", "toml", "ld"):
        (tmp_path / f"zero.{suffix}").symlink_to("/dev/zero")
    paths = {name: tmp_path / name for name in ("zero.tflite", "zero.onnx", "pipe.tflite", "zero.toml")}
    calls = [
        *(("analyze", path) for path in ("/dev/zero", *list(paths.values())[:3])),
        ("fit", paths["zero.tflite"], "--least", "-o", tmp_path / "out.tflite"),
        ("targets", paths["zero.toml"]),
        ("targets", f"from:{tmp_path / 'zero.ld'}"),
        ("check", "--config", paths["zero.toml"]),
    ]
    for words in calls:
        done = run(*words)
        assert done.returncode in (2, 3), words
        assert "found a device or pipe" in done.stderr, words


@pytest.mark.parametrize("words", [["analyze"], ["explain"], ["verify"], ["fit", "-o", "x.tflite"], ["targets"], []])
@pytest.mark.parametrize("url", ["https://a.b//c.tflite", "HTTP://a.b/c", "s3://a/b.onnx"])
def test_a_url_is_refused_as_it_was_typed(words: list[str], url: str) -> None:
    done = run(*words, url)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"modelplan: {url}: a URL; download it first, for example by `curl -LO`\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [("a = " + "[" * 3000, "brackets too deep"), (f"a = {'9' * 5000}", "too many digits"), ("a = ", "Invalid value")],
)
def test_toml_that_no_parser_takes(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    for words, code in (
        (("targets", path), 3),
        (("check", "--config", path), 2),
        (("sweep", path, "-o", "x.parquet"), 2),
    ):
        done = run(*words)
        assert (done.returncode, "not TOML" in done.stderr, why in done.stderr) == (code, True, True), done.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-" * 2000 + "1", "more than 60 signs"),
        ("+".join("1" * 3000), "more than 100 terms in a row"),
        ("(1<<60)" + "*(1<<60)" * 50, "more than 256 bits"),
    ],
)
def test_expressions_that_would_exhaust_the_stack(text: str, why: str) -> None:
    with pytest.raises(ExpressionError, match=why):
        evaluate(parse_expression(tokens_of(text)), lambda _: 0)


def test_symbols_are_evaluated_at_most_by_one_another_sixty_times(tmp_path: Path) -> None:
    script = tmp_path / "x.ld"
    squares = "".join(f"A{i} = A{i - 1} * A{i - 1};\n" for i in range(1, 40))
    script.write_text(f"A0 = 1;\n{squares}{REGION % '1024 * A39'}")
    assert read_linker_script(str(script), {}).regions[0].size == 1024
    script.write_text(f"A0 = 4;\n{squares}{REGION % 'A39'}")
    with pytest.raises(ModelError, match="more than 256 bits"):
        read_linker_script(str(script), {})
    chain = "".join(f"A{i} = A{i - 1};\n" for i in range(1, 3000))
    script.write_text(f"A0 = 1;\n{chain}{REGION % 'A2999'}")
    with pytest.raises(ModelError, match="more than 60 others"):
        read_linker_script(str(script), {})


@pytest.mark.slow
def test_files_that_include_others_twice_each_end(tmp_path: Path) -> None:
    for i in range(29):
        (tmp_path / f"i{i}.ld").write_text(f"INCLUDE i{i + 1}.ld\nINCLUDE i{i + 1}.ld\n")
    (tmp_path / "i29.ld").write_text("\n")
    with pytest.raises(ModelError, match="more than 10,000 files"):
        read_linker_script(str(tmp_path / "i0.ld"), {}, [tmp_path])


def test_fit_leaves_a_model_that_tflm_refuses(tmp_path: Path) -> None:
    t = T("int8", (1, 128))
    ops = (Op("RELU", (0,), (1,)), Op("RESHAPE", (1,), (2,), {}, "ReshapeOptions"))
    path = tmp_path / "wrong.tflite"
    path.write_bytes(build(S((t, t, T("int8", (1, 8192))), ops, (0,), (2,))))
    done = run("fit", path, "--least", "-o", tmp_path / "out.tflite")
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stdout.split())
    assert "would not run it, so there is nothing to fit op 1 RESHAPE: 128 values for an output of 8192" in said
    assert "remedy: " in said
    assert not (tmp_path / "out.tflite").exists()
