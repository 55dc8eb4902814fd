"""`modelplan fit`: models that fit after it, with the outputs that they had."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from commands import run
from promises import delivered, promises
from random_cnns import Network, branched_cnn, deep_cnn, headed_cnn, moving_cnn
from shares import sample

from modelplan import FitRequest, Graph, RequestError, fit, load
from modelplan.formats.tflite.tflite_tables import get_metadata
from modelplan.rewriting.striped_tflite.rungs import Rung
from modelplan.runtimes.tflm.history import day_of
from modelplan.runtimes.tflm.runner import INSTALL, RefusalError, installed, run_tflm

#: With the kernels whose figures are expected.
asked = partial(FitRequest, kernels="reference")

runtime = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


#: Without a library a rung is only taken that is worse with none.
REFERENCE = ("--kernels", "reference")


@pytest.mark.slow
@runtime
@pytest.mark.parametrize(
    ("name", "goal"),
    sample([("mcu/kws_cnn_l", 17_039), ("vww_96_int8", 28_999), ("kws_ref_model", 9_791), ("person_detect", 15_680)]),
)
def test_least_heads(corpus: Path, tmp_path: Path, name: str, goal: int) -> None:
    source, out = corpus / "tflite" / f"{name}.tflite", tmp_path / "out.tflite"
    done = run("fit", source, "--least", "--objective", "head", "--kernels", "reference", "-o", out)
    assert done.returncode == 0, done.stderr
    own, ours = run_tflm(source.read_bytes()), run_tflm(out.read_bytes())
    assert ours.outputs == own.outputs
    assert ours.head <= goal


@pytest.mark.slow
@runtime
@pytest.mark.parametrize(("name", "goal"), sample([("pretrainedResnet_quant", 35_999), ("person_detect", 53_999)]))
def test_least_arenas(corpus: Path, tmp_path: Path, name: str, goal: int) -> None:
    source, out = corpus / "tflite" / f"{name}.tflite", tmp_path / "out.tflite"
    assert run("fit", source, "--least", "--abi", "64", "--kernels", "reference", "-o", out).returncode == 0
    own, ours = run_tflm(source.read_bytes()), run_tflm(out.read_bytes(), arena=goal)
    assert ours.outputs == own.outputs


@pytest.mark.parametrize(
    ("draw", "number", "kernels", "goal"),
    [
        (headed_cnn, 323, "cmsis-dsp", 4_528),
        (moving_cnn, 82, "cmsis-dsp", 7_200),
        (branched_cnn, 273, "cmsis-dsp", 5_216),
        (headed_cnn, 267, "reference", 4_944),
    ],
    ids=["a slice less", "seven slices less", "the tail of another order", "the lower of two equal heads"],
)
def test_least_arenas_of_drawn_networks(
    draw: Callable[[int], bytes], number: int, kernels: str, goal: int, tmp_path: Path
) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(draw(number))
    found = fit(FitRequest(path, kernels=kernels)).chosen
    assert found is not None
    assert found.arena <= goal


@pytest.mark.parametrize(("draw", "number", "kernels"), [(deep_cnn, 92, "esp-nn"), (headed_cnn, 99, "reference")])
def test_a_budget_of_the_least_is_met(draw: Callable[[int], bytes], number: int, kernels: str, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(draw(number))
    least = fit(FitRequest(path, kernels=kernels))
    assert fit(FitRequest(path, kernels=kernels, budget=least.least)).chosen is not None
    below = fit(FitRequest(path, kernels=kernels, budget=least.least - 1))
    assert (below.chosen, below.least) == (None, least.least)  # the least is said also where it does not fit


def test_operators_are_turned_for_the_least_head(models: Path) -> None:
    found = fit(FitRequest(models / "ds_cnn_kws.tflite", objective="head", kernels="cmsis-dsp")).chosen
    assert found is not None
    assert found.head <= 8_640  # three pointwise convolutions from the last row to the first


@cache
def chosen(source: Path, budget: int) -> Rung:
    """The rung that meets a budget for the whole arena on 64 bits."""
    found = fit(asked(source, budget=budget, abi="64")).chosen
    assert found is not None
    return found


@pytest.mark.slow
def test_the_cheapest_rung_that_fits(corpus: Path) -> None:
    source = corpus / "tflite" / "person_detect.tflite"
    assert chosen(source, 86_000).name == "as is"
    assert chosen(source, 67_000).name == "overlaps"
    found = chosen(source, 60_000)
    assert found.name == "split"
    assert found.arena <= 60_000


@pytest.mark.slow
def test_time_is_capped(corpus: Path) -> None:
    source = corpus / "tflite" / "mcu" / "kws_cnn_l.tflite"
    least = [fit(asked(source, abi="64", max_time=most)).chosen for most in (0.4, 0.02)]
    assert all(rung is not None and rung.time <= 1 + most for rung, most in zip(least, (0.4, 0.02), strict=True))
    arenas = [rung.arena for rung in least if rung is not None]
    assert arenas == sorted(arenas)
    assert arenas[0] < arenas[-1]


@pytest.mark.slow
def test_nothing_fits(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    done = run(
        "fit", corpus / "tflite" / "kws_ref_model.tflite", "--budget", "1KiB", "--kernels", "reference", "-o", out
    )
    assert done.returncode == 1
    assert "nothing fits" in done.stdout
    assert not out.exists()


@pytest.mark.slow
def test_a_model_that_does_not_fit_gets_a_bound(corpus: Path) -> None:
    ladder = fit(asked(corpus / "tflite" / "kws_ref_model.tflite", budget=1024))
    assert ladder.model is None
    assert 0 < ladder.bound <= ladder.built_bound <= ladder.least
    assert ladder.least == min(rung.arena for rung in ladder.rungs)
    assert ladder.bound_by


@pytest.mark.slow
def test_the_cheapest_rung_for_each_share_of_the_arena(corpus: Path) -> None:
    source = corpus / "tflite" / "mcu" / "kws_cnn_l.tflite"
    whole = (
        fit(asked(source, without=frozenset({"order", "views", "overlaps", "fold", "gather", "split"}))).rungs[0].arena
    )
    costs = []
    for share in (90, 60, 50):
        ladder = fit(asked(source, budget=whole * share // 100))
        if ladder.chosen is None:
            assert ladder.least > whole * share // 100 >= 0
            continue
        assert ladder.chosen.arena <= whole * share // 100
        costs.append(ladder.chosen.macs)
    assert costs
    assert costs == sorted(costs)


@pytest.mark.slow
@runtime
def test_an_older_tflm_gets_no_loop(corpus: Path, tmp_path: Path) -> None:
    source, out, header = corpus / "tflite" / "mcu" / "kws_cnn_l.tflite", tmp_path / "out.tflite", tmp_path / "arena.h"
    done = run("fit", source, "--least", "--tflm", "2025-11-09", "-o", out, "--header", header, *REFERENCE)
    assert done.returncode == 0, done.stderr
    assert "of 2021-10-25 or later" in done.stdout
    registered = re.search(r"register ([A-Z_0-9, ]+) with MicroMutableOpResolver", done.stdout)
    assert registered
    assert {"CONCATENATION", "SLICE"} <= set(registered[1].split(", "))
    assert f"the rewrite added {registered[1]}" in header.read_text()
    assert "resolver.AddSlice()" in header.read_text()
    assert "AddWhile" not in header.read_text()
    person_detect = corpus / "tflite" / "person_detect.tflite"
    rungs = fit(asked(person_detect, tflm=day_of("0.dev20211024"), budget=60_000)).rungs
    assert [rung.name for rung in rungs] == ["as is", "views", "overlaps", "split"]
    assert rungs[-1].added == ("CONCATENATION",)  # blocks of channels, since it has no SLICE yet


@pytest.mark.slow
def test_a_loop_says_what_it_needs(corpus: Path, tmp_path: Path) -> None:
    source, header = corpus / "tflite" / "mcu" / "kws_cnn_l.tflite", tmp_path / "arena.h"
    out = tmp_path / "out.tflite"
    done = run("fit", source, "--least", "--max-ops", "14", "-o", out, "--header", header, *REFERENCE)
    assert done.returncode == 0, done.stderr
    assert re.search(r"of 2025-11-10 or later: .*DYNAMIC_UPDATE_SLICE 2025-11-10", done.stdout)
    assert "call Reset before the inputs are set" in done.stdout
    for method in ("AddDynamicUpdateSlice", "AddSlice", "AddWhile"):
        assert f"resolver.{method}()" in header.read_text()
    assert "Reset before the inputs are set" in header.read_text()
    declared = re.search(r"TENSOR_ARENA_SIZE (\d+)", run("analyze", tmp_path / "out.tflite").stdout)
    assert declared is not None  # although no other plan of this file is proved
    assert f"{int(declared[1]):,}" in done.stdout
    packed = run("pack", tmp_path / "out.tflite", "-o", tmp_path / "packed.tflite")
    assert packed.returncode == 3
    assert "its plan keeps parts of tensors, as `fit` writes it, and no other is proved" in packed.stderr


@pytest.mark.slow
def test_the_ladder_is_drawn(corpus: Path, tmp_path: Path) -> None:
    figures = {tmp_path / "ladder.svg": b"<?xm", tmp_path / "ladder.png": b"\x89PNG", tmp_path / "ladder.pdf": b"%PDF"}
    source = corpus / "tflite" / "mcu" / "kws_cnn_l.tflite"
    draw = [word for figure in figures for word in ("--draw", figure)]
    done = run("fit", source, "--least", "-o", tmp_path / "out.tflite", *draw)
    assert done.returncode == 0, done.stderr
    assert {figure: figure.read_bytes()[:4] for figure in figures} == figures


@pytest.mark.slow
def test_a_loaded_graph_fits_as_its_file_does(corpus: Path, tmp_path: Path) -> None:
    source = tmp_path / "model.tflite"
    source.write_bytes((corpus / "tflite" / "mcu" / "kws_cnn_l.tflite").read_bytes())
    graph = load(source)
    assert isinstance(graph, Graph)
    assert fit(asked(graph, objective="head", without=frozenset({"split"}))) == fit(
        asked(source, objective="head", without=frozenset({"split"}))
    )
    source.write_bytes(source.read_bytes() + b"\0")
    with pytest.raises(RequestError, match="has changed since the graph was loaded"):
        fit(asked(graph))
    with pytest.raises(RequestError, match=r"fit takes a model from a \.tflite file"):
        fit(asked(Graph("none", "tflite", (), (), (), ())))


@pytest.mark.slow
def test_the_example_of_the_page_runs(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "fit.md").read_text()
    monkeypatch.chdir(tmp_path)
    Path("model.tflite").write_bytes((corpus / "tflite" / "person_detect.tflite").read_bytes())
    exec(page.partition("```python\n")[2].partition("```")[0], {})
    assert "overlaps" in capsys.readouterr().out
    assert Path("fits.tflite").read_bytes() != Path("model.tflite").read_bytes()


@pytest.mark.slow
def test_ctrl_c_keeps_the_best(corpus: Path, tmp_path: Path) -> None:
    lines: list[str] = []

    def interrupt(line: str) -> None:
        lines.append(line)
        if "candidates" in line:
            raise KeyboardInterrupt

    ladder = fit(asked(corpus / "tflite" / "kws_ref_model.tflite", objective="head"), interrupt)
    assert "interrupted: the best so far" in ladder.remarks
    assert ladder.chosen is not None
    assert ladder.chosen.name == "overlaps"
    assert [line.partition(":")[0] for line in lines[:3]] == ["as is", "views", "overlaps"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tflm", "soon"), "cannot read 'soon' as a version of TFLM"),
        (("--tflm", "2025-13-01"), "cannot read '2025-13-01' as a version of TFLM"),
        (("--max-ops", "-3"), "--max-ops is -3, expected at least 0"),
        (("--max-macs", "much"), "cannot read 'much' as a share"),
        (("--max-time", "long"), "cannot read 'long' as a share"),
        (("--max-flash", "lots"), "lots"),
        (("--draw", "ladder.gif"), "must end in .svg, .png, .pdf, .html"),
        (("--without", "as is"), "no rung as is to leave out"),
        (("--objective", "tail"), "invalid choice: 'tail'"),
    ],
)
def test_wrong_options_are_named(corpus: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    source, out = corpus / "tflite" / "kws_ref_model.tflite", tmp_path / "out.tflite"
    done = run("fit", source, "--least", "-o", out, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert not out.exists()


@pytest.mark.slow
@runtime
def test_other_kernels_are_executed_with_those_of_the_wheel(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "tflite" / "pretrainedResnet_quant.tflite"
    done = run("fit", source, "--budget", "48KiB", "--kernels", "cmsis-dsp", "-o", tmp_path / "out.tflite")
    assert done.returncode == 0, done.stderr
    assert re.search(r"TFLM: ok, \d+ runs bit-equal", done.stdout)


def test_forbidden_rungs_are_not_taken(corpus: Path) -> None:
    source = corpus / "tflite" / "person_detect.tflite"
    names = [rung.name for rung in fit(asked(source, without=frozenset({"split", "overlaps"}))).rungs]
    assert names == ["as is", "views"]


def test_a_bad_request_is_named(corpus: Path, tmp_path: Path) -> None:
    source, out = corpus / "tflite" / "kws_ref_model.tflite", tmp_path / "out.tflite"
    done = run("fit", source, "--least", "-o", out, "--without", "lift")
    assert done.returncode == 2
    assert "no rung lift" in done.stderr


@pytest.mark.slow
@runtime
def test_the_file_keeps_what_it_was(corpus: Path) -> None:
    import tflite

    source = (corpus / "tflite" / "person_detect.tflite").read_bytes()
    rung = chosen(corpus / "tflite" / "person_detect.tflite", 60_000)
    before, after = (tflite.Model.GetRootAs(data, 0) for data in (source, rung.model))
    assert after.Description() == before.Description()
    old, new = before.Subgraphs(0), after.Subgraphs(0)
    for part in ("Inputs", "Outputs"):
        pairs = [(getattr(old, part)(i), getattr(new, part)(i)) for i in range(getattr(old, f"{part}Length")())]
        assert [old.Tensors(a).Name() for a, _ in pairs] == [new.Tensors(b).Name() for _, b in pairs]
    assert get_metadata(rung.model, "min_runtime_version") == get_metadata(source, "min_runtime_version")
    with pytest.raises(RefusalError):
        run_tflm(rung.model, arena=rung.head)


@pytest.mark.slow
def test_an_operator_that_contradicts_itself_is_taken_as_a_whole(tmp_path: Path) -> None:
    """A window of five rows over four: TFLM makes the one row that the file says, which no rule of shapes does."""
    net = Network(np.random.default_rng(3))
    x = net.tensor((1, 4, 4, 64))
    deep = net.add(x, x)
    deep = net.add(deep, net.add(deep, deep))
    short = net.operator("MAX_POOL_2D", [deep], net.tensor((1, 1, 1, 64)), (1, 4, 4, 4, 4, 1), (1, 2, 2, 5, 5, 0))
    path = tmp_path / "model.tflite"
    path.write_bytes(net.file(x, net.add(short, short)))
    ladder = fit(asked(path))
    assert ladder.chosen is not None
    assert ladder.chosen.arena == ladder.least < ladder.rungs[0].arena
    assert "op 3" not in " ".join(ladder.chosen.stretches)
    assert {verdict.outcome for verdict in ladder.proof} == {"ok"}


def test_fit_ends_with_the_next_step(models: Path, tmp_path: Path) -> None:
    kws, out = models / "ds_cnn_kws.tflite", tmp_path / "out.tflite"
    options = ("--kernels", "cmsis-dsp", "--without", "split")
    said = run("fit", kws, "--least", *options, "-o", out).stdout
    arena = re.search(r"^  #define TENSOR_ARENA_SIZE (\d+)  // cmsis-dsp kernels, ABI 32$", said, re.MULTILINE)
    assert arena
    assert f"#define TENSOR_ARENA_SIZE {arena[1]}\n" in run("analyze", out, "--kernels", "cmsis-dsp").stdout
    assert "5 operators in MicroMutableOpResolver<5>: AddConv2D, AddDepthwiseConv2D, AddFullyConnected, AddM" in said
    commands = [line.partition("  #")[0].split() for line in said.splitlines() if line.startswith("  modelplan ")]
    assert [command[1] for command in commands] == ["analyze", "verify"]
    assert run(*commands[0][1:], cwd=tmp_path).returncode == 0
    assert (tmp_path / "net.cc").exists()


@pytest.mark.slow
def test_where_nothing_fits_fit_names_what_would(models: Path, tmp_path: Path) -> None:
    kws, out = models / "ds_cnn_kws.tflite", tmp_path / "out.tflite"
    done = run("fit", kws, "--budget", "24KiB", "--without", "split", "-o", out)
    assert (done.returncode, out.exists()) == (1, False)
    below = done.stdout.partition("\nWhat would fit, the least change first\n")[2]
    assert "22,768 bytes: other kernels: reference" in below
    commands = [line.split() for line in below.splitlines() if line.startswith("    modelplan analyze ")]
    assert commands
    for command in commands:
        size = re.search(r"#define TENSOR_ARENA_SIZE (\d+)", run(*command[1:]).stdout)
        assert size
        assert int(size[1]) <= 24 * 1024
    done = run("fit", kws, "--budget", "4KiB", "--without", "split", "-o", out)
    more = f"{kws} --budget 4096 --max-macs 20% --max-time 30% -o {out}  # a run may take longer\n"
    assert "No single change that is quick to try fits\n  modelplan explain" in done.stdout
    assert done.stdout.endswith(f"  modelplan fit {more}")
    assert f"\n  modelplan fit {kws} --budget 4096 --kernels cmsis-nn -o {out}  # for Cortex-M alone" in done.stdout


def test_the_c_array_that_was_written_stands_in_the_next_steps(models: Path, tmp_path: Path) -> None:
    out, array = tmp_path / "out.tflite", tmp_path / "net.cc"
    words = ("fit", models / "ds_cnn_kws.tflite", "--least", "--without", "split", "-o", out, "--c-array", array)
    said = run(*words, "--kernels", "cmsis-c").stdout.partition("\nNext\n")[2]
    assert str(array) in said
    assert "--c-array" not in said
    assert "kTensorArenaBytes" in array.with_suffix(".h").read_text()


@pytest.mark.slow
def test_where_no_file_for_tflm_fits_plain_c_may(models: Path, tmp_path: Path) -> None:
    model = models / "mobilenet_v2_like.tflite"
    done = run(
        "fit", model, "--budget", "30KiB", "--target", "esp32s3", "--without", "split", "-o", tmp_path / "a.tflite"
    )
    assert done.returncode == 1
    (held, *_) = [promise for promise in promises(done.stdout) if "plain C" in promise.said]
    needed = delivered(held, tmp_path, lambda words, folder: run(*words, cwd=folder).stdout)
    assert needed is not None
    assert needed <= held.most <= 30 * 1024
    assert "--runtime c --target esp32s3 --least" in held.commands[0]
    assert f"modelplan explain {model} --target esp32s3 --capacity 30720" in done.stdout


def test_a_search_that_is_ended_writes_the_best_so_far(corpus: Path, tmp_path: Path) -> None:
    kws, out = corpus / "tflite" / "kws_ref_model.tflite", tmp_path / "out.tflite"
    done = run("fit", kws, "--least", "--kernels", "cmsis-dsp", "--seconds", "0", "-o", out)
    assert done.returncode == 0
    assert "remark         interrupted: the best so far" in done.stdout
    assert f"written to {out}" in done.stdout
    assert run("verify", kws, "--against", out, "--quick").returncode == 0
    assert run("fit", kws, "--least", "--seconds", "-1", "-o", out).returncode == 2


def test_sigterm_keeps_the_best_so_far(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def terminate(line: str) -> None:
        if "candidates" in line:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("modelplan.cli.fit.show_line", terminate)
    model, out = corpus / "tflite" / "kws_ref_model.tflite", tmp_path / "out.tflite"
    try:
        done = run("fit", model, "--least", "--kernels", "reference", "-o", out)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (done.returncode, out.exists()) == (0, True)
    assert "interrupted: the best so far" in done.stdout
