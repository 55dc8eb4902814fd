"""The installed command: what it prints, which files it writes, how it ends."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import COMMAND, run

from modelplan import read
from modelplan.cli import main
from modelplan.cli.command_table import COMMANDS, MODES, RENAMED

SMALL = "id,lower,upper,size\na,0,2,8\nb,1,3,8\nc,2,4,8\n"


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "small.csv").write_text(SMALL)
    return tmp_path / "small.csv"


def test_the_package_runs_as_the_command_does() -> None:
    words = [sys.executable, "-P", "-m", "modelplan", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == run("--version").stdout


def test_without_words_the_help_lists_every_command() -> None:
    done = run()
    assert done.returncode == 0
    for name in ("analyze", "compare", "check", "solve", "allocators", "exit codes"):
        assert name in done.stdout


@pytest.mark.parametrize("words", [*((name,) for name in COMMANDS), *(tuple(mode.name.split()) for mode in MODES)])
def test_every_command_has_a_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([*words, "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: modelplan {' '.join(words)} ")


@pytest.mark.parametrize("name", RENAMED)
def test_old_names_of_commands_still_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    now = next(mode.program for mode in MODES if mode.module == name)
    assert capsys.readouterr().out.startswith(f"usage: modelplan {now} ")


def test_modes_are_chosen_anywhere_among_the_words(models: Path, tmp_path: Path) -> None:
    kws, small = (
        models / "ds_cnn_kws.tflite",
        ("--region", "sram:12KiB,rate=400MB/s", "--region", "psram:8MiB,rate=80MB/s"),
    )
    for new, old in [
        (("fit", kws, "-o", tmp_path / "a.tflite", "--only", "plan"), ("pack", kws, "-o", tmp_path / "a.tflite")),
        (("fit", "--only=order", kws, "-o", tmp_path / "b.tflite"), ("reorder", kws, "-o", tmp_path / "b.tflite")),
        (("memories", kws, "--spill", *small), ("spill", kws, *small)),
    ]:
        done, before = run(*new), run(*old)
        assert (done.returncode, done.stdout) == (before.returncode, before.stdout) != (2, "")
    assert run("fit", kws, "--only", "nothing", "-o", tmp_path / "c.tflite").returncode == 2


def test_what_is_misspelt_is_asked_back(models: Path) -> None:
    kws = models / "ds_cnn_kws.tflite"
    for words, meant in [
        (("anlyze", kws), "'analyze'"),
        (("analyze", kws, "--kernals", "reference"), "'--kernels'"),
        (("analyze", models / "ds_cn_kws.tflite"), "'ds_cnn_kws.tflite'"),
        (("help", "tlfm"), "'tflm'"),
    ]:
        done = run(*words)
        assert done.returncode in (2, 3)
        assert f"did you mean {meant}" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert run(kws, "--kernels", "reference").stdout == run("analyze", kws, "--kernels", "reference").stdout


def test_a_wrong_command_option_or_size_ends_with_2(models: Path) -> None:
    model = models / "ds_cnn_kws.tflite"
    for words, said in [
        (("frobnicate",), "no command 'frobnicate'"),
        (("analyze",), "MODEL"),
        (("analyze", model, "--frobnicate"), "--frobnicate"),
        (("analyze", model, "--allocator", "nope"), "no allocator 'nope'"),
        (("analyze", model, "--schedule", "nope"), "no schedule 'nope'"),
        (("analyze", model, "--runtime", "nope"), "no runtime 'nope'"),
        (("analyze", model, "--alias", "nope"), "no alias mode 'nope'"),
        (("analyze", model, "--alignment", "0"), "alignment is 0"),
        (("analyze", model, "--why-not", "nope"), "no tensor of that name"),
        (("analyze", models / "resnet8.onnx", "--abi", "cortex-m"), "runtime ort sizes no arena"),
        (("compare", model, "--seconds", "0"), "--seconds is 0"),
        (("check", model, "--budget", "many"), "cannot read 'many' as bytes"),
    ]:
        done = run(*words)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert not done.stdout, words


def test_analyze_prints_plain_text_and_json(models: Path) -> None:
    done = run("analyze", models / "ds_cnn_kws.tflite", "--json", "-")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    plan = read(done.stdout)
    assert document["summary"]["planned"] >= document["summary"]["lower_bound"]
    assert len(plan.graph.ops) == 12
    text = run("analyze", models / "ds_cnn_kws.tflite", "--verbose").stdout
    assert f"({document['summary']['planned']:,} B)" in text
    assert "\x1b" not in text


@pytest.mark.slow
def test_analyze_writes_every_output(models: Path, tmp_path: Path) -> None:
    done = run("analyze", models / "resnet8.tflite", "--out", tmp_path / "out")
    assert done.returncode == 0
    written = {p.name for p in (tmp_path / "out" / "resnet8").iterdir()}
    assert {"plan.txt", "plan.json", "plan.csv", "plan.map.svg", "plan.map.png"} <= written
    assert all(p.stat().st_size for p in (tmp_path / "out" / "resnet8").iterdir())


def test_check_answers_by_its_exit_code(models: Path) -> None:
    fits = run("check", models / "resnet8.tflite", "--budget", "1MiB")
    assert (fits.returncode, "fits" in fits.stdout) == (0, True)
    fails = run("check", models / "resnet8.tflite", "--budget", "1KiB")
    assert fails.returncode == 1
    for word in ("required", "available", "excess", "does not fit"):
        assert word in fails.stdout


@pytest.mark.slow
def test_figures_are_drawn_into_the_files_that_are_named(problem: Path, models: Path, tmp_path: Path) -> None:
    done = run("solve", problem, "--draw", "a.map.svg", "--draw", "b.lifetimes.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.map.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "b.lifetimes.png").read_bytes().startswith(b"\x89PNG")
    assert run("analyze", models / "resnet8.onnx", "--draw", "c.curve.svg", cwd=tmp_path).returncode == 0
    assert (tmp_path / "c.curve.svg").exists()
    table = run("solve", problem, "--out", "c.html", cwd=tmp_path)  # short for --output
    assert (table.returncode, "--draw c.html" in table.stderr) == (2, True)
    refused = run("solve", problem, "--draw", "d.gif", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "must end in .svg, .png, .pdf, .html (.map, " in refused.stderr


def test_solve_places_and_answers_a_capacity(problem: Path) -> None:
    done = run("solve", problem, "-o", "-")
    assert done.returncode == 0
    rows = [line.split(",") for line in done.stdout.splitlines()]
    assert rows[0] == ["id", "lower", "upper", "size", "offset"]
    assert sorted({row[-1] for row in rows[1:]}) == ["0", "8"]
    assert run("solve", "--input", problem, "--capacity", "16", "--output", "o.csv", cwd=problem.parent).returncode == 0
    assert (problem.parent / "o.csv").exists()
    short = run("solve", problem, "--capacity", "15", "-o", "p.csv", cwd=problem.parent)
    assert short.returncode == 1
    assert "infeasible" in short.stdout
    assert not (problem.parent / "p.csv").exists()


@pytest.mark.slow
def test_compare_takes_a_model_or_a_problem(problem: Path, models: Path) -> None:
    for source in (problem, models / "ds_cnn_kws.tflite"):
        done = run("compare", source, "--json", "-")
        document = json.loads(done.stdout)
        heights = [row["height"] for row in document["rows"] if row["height"] is not None]
        assert min(heights) >= document["lower_bound"]
        assert {"naive", "tflm-greedy", "best"} <= {row["allocator"] for row in document["rows"]}
        assert ("today" in document) == (source != problem)


def test_compare_shows_the_lowest_and_draws_any_answer(problem: Path) -> None:
    folder = problem.parent
    done = run(
        "compare",
        problem,
        "--top",
        "1",
        "--draw",
        "naive=n.svg",
        "--draw",
        "low.map.png",
        "--draw",
        "all.svg",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "1 of " in done.stdout
    assert "naive" not in done.stdout
    assert "small: naive" in (folder / "n.svg").read_text()
    assert (folder / "low.map.png").read_bytes().startswith(b"\x89PNG")
    assert "tflite-greedy-by-size: " in (folder / "all.svg").read_text()
    refused = run("compare", problem, "--draw", "nope=n.svg")
    assert (refused.returncode, "no allocator 'nope'" in refused.stderr) == (2, True)
    assert run("compare", problem, "--top", "0").returncode == 2


def test_solve_is_content_with_a_fragmentation(problem: Path) -> None:
    done = run("solve", problem, "--allocator", "idealloc", "--fragmentation", "1.5")
    assert done.returncode == 0
    assert "height" in done.stdout
    assert run("solve", problem, "--fragmentation", "0.5").returncode == 2
    assert run("solve", problem, "--fragmentation", "1.5", "--capacity", "9").returncode == 2


def test_a_search_that_shows_anothers_height_says_so(tmp_path: Path) -> None:
    rows = [(5, 0, 3), (3, 1, 4), (3, 2, 5), (6, 0, 2), (4, 2, 5)]
    lines = ["id,lower,upper,size", *(f"b{i},{start},{end},{size}" for i, (size, start, end) in enumerate(rows))]
    (tmp_path / "hard.csv").write_text("\n".join(lines) + "\n")
    shown = run("solve", tmp_path / "hard.csv", "--allocator", "minimalloc", "--steps", "1").stdout
    assert "no solution of its own: first-fit-size's height shown" in shown


def test_compare_says_what_the_runtime_does_by_itself(models: Path) -> None:
    shown = run("compare", models / "ds_cnn_kws.tflite").stdout
    assert "tflm by itself, file order and its own sharing (tflm-greedy): " in shown


def test_model_and_problem_commands_refer_to_each_other(problem: Path, models: Path) -> None:
    assert "modelplan solve" in run("analyze", problem).stderr
    assert "modelplan analyze" in run("solve", models / "resnet8.onnx").stderr


def test_a_command_names_the_file_that_it_refuses(models: Path, tmp_path: Path) -> None:
    packed = run("pack", models / "resnet8.onnx", "-o", tmp_path / "p.tflite")
    assert packed.returncode == 3
    assert "resnet8.onnx: not a TFLite flatbuffer" in packed.stderr
    reordered = run("reorder", models / "resnet8.onnx", "-o", tmp_path / "p.tflite")
    assert reordered.returncode == 2
    assert "p.tflite: expected a name that ends in .onnx" in reordered.stderr
    assert not list(tmp_path.iterdir())


def test_the_table_of_allocators_is_printed() -> None:
    assert "tflm-greedy" in run("allocators").stdout


def refused(path: Path) -> None:
    """One line on standard error, exit 3."""
    done = run("analyze", path)
    assert done.returncode == 3, (path, done.stdout, done.stderr)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert path.name in done.stderr


def test_files_that_are_no_models_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.tflite").touch()
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "random.tflite").write_bytes(random.Random(0).randbytes(1000))
    (tmp_path / "random.onnx").write_bytes(random.Random(1).randbytes(1000))
    (tmp_path / "text.onnx").write_text("hello\n")
    (tmp_path / "folder.tflite").mkdir()
    (tmp_path / "model.h5").write_bytes(b"HDF")
    (tmp_path / "bad.csv").write_text("id,lower,upper\na,0,1\n")
    (tmp_path / "evil\x1b[2J.onnx").write_text("x")
    for path in [*tmp_path.iterdir(), tmp_path / "missing.tflite"]:
        if "\x1b" in path.name:
            assert "\x1b" not in run("analyze", path).stderr
        else:
            refused(path)


@pytest.mark.parametrize("name", ["ds_cnn_kws.tflite", "resnet8.onnx"])
def test_truncated_models_are_refused_at_every_sixteenth(name: str, models: Path, tmp_path: Path) -> None:
    whole = (models / name).read_bytes()
    for part in range(1, 16):
        path = tmp_path / f"cut{part}{Path(name).suffix}"
        path.write_bytes(whole[: len(whole) * part // 16])
        refused(path)


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(models: Path) -> None:
    first = subprocess.Popen(
        [COMMAND, "analyze", models / "resnet8.tflite"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert first.stdout is not None
    assert first.stderr is not None
    first.stdout.close()
    assert first.stderr.read() == b""
    first.stderr.close()
    first.wait()


def test_ctrl_c_leaves_no_half_written_file(tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{i % 97},{i % 97 + 5},{i % 31 + 1}" for i in range(12_000))
    (tmp_path / "large.csv").write_text(f"id,lower,upper,size\n{rows}\n")
    job = subprocess.Popen(
        [COMMAND, "compare", tmp_path / "large.csv"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    while "_core" not in Path(f"/proc/{job.pid}/maps").read_text():
        time.sleep(0.02)  # the command is not under way yet
    time.sleep(0.5)
    job.send_signal(signal.SIGINT)
    assert job.stderr is not None
    assert b"Traceback" not in job.stderr.read()
    job.stderr.close()
    assert job.wait(timeout=60) == 130
    assert [p.name for p in tmp_path.iterdir()] == ["large.csv"]


def test_pins_that_exclude_each_other_are_named(tmp_path: Path) -> None:
    table = tmp_path / "pins.csv"
    table.write_text("id,lower,upper,size,pin\na,0,4,100,0\nx,0,6,10,\nb,2,6,100,50\n")
    for words in (("solve", table), ("solve", table, "--allocator", "best-fit-size"), ("compare", table)):
        done = run(*words)
        assert done.returncode == 2
        assert "pinned buffers 'a' and 'b' are alive together and share bytes" in done.stderr


def test_pins_that_go_together_are_no_collision(tmp_path: Path) -> None:
    table = tmp_path / "pins.csv"
    table.write_text("id,lower,upper,size,pin\na,0,4,100,0\nx,0,6,10,\nb,2,6,100,100\nc,4,6,50,0\n")
    assert run("solve", table).returncode == 0
    assert run("compare", table).returncode == 0


def test_allocators_that_honour_no_pins_stand_in_one_line(tmp_path: Path) -> None:
    table = tmp_path / "pins.csv"
    table.write_text("id,lower,upper,size,pin\na,0,4,100,0\nb,1,3,200,\nc,2,5,50,\n")
    refused = run("compare", table).stdout.partition("Refused\n")[2]
    assert refused.count("does not honour pins: naive, ") == refused.count("pins") == 1


def test_behind_a_capacity_that_is_too_small_stands_the_least_height(tmp_path: Path) -> None:
    table = tmp_path / "problem.csv"  # as cores share memory: what a search finds first is no height to print
    rows = ("A,0,1,8192", "B,0,3,16384", "C,0,1,16384", "D,1,3,8192", "E,2,4,24576")
    table.write_text("\n".join(("id,lower,upper,size", *rows)) + "\n")
    least = run("solve", table).stdout.splitlines()[2:4]
    short = run("solve", table, "--capacity", "20KiB").stdout.splitlines()
    assert short[2:4] == least
    assert "infeasible, proved by the bound" in short[5]
