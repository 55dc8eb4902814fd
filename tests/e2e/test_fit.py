"""`modelplan fit`: models that fit after it, with the outputs that they had."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run

from modelplan import fit
from modelplan.loaders.tflite_tables import get_metadata
from modelplan.rewriting.rungs import Rung
from modelplan.runtimes.tflm.runner import INSTALL, RefusalError, installed, run_tflm

runtime = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


@runtime
@pytest.mark.parametrize(
    ("name", "goal"),
    [("vww_96_int8", 28_999), ("kws_ref_model", 9_791), ("mcu/kws_cnn_l", 17_039), ("person_detect", 15_680)],
)
def test_least_heads(corpus: Path, tmp_path: Path, name: str, goal: int) -> None:
    source, out = corpus / "tflite" / f"{name}.tflite", tmp_path / "out.tflite"
    done = run("fit", source, "--least", "--objective", "head", "-o", out)
    assert done.returncode == 0, done.stderr
    own, ours = run_tflm(source.read_bytes()), run_tflm(out.read_bytes())
    assert ours.outputs == own.outputs
    assert ours.head <= goal


@runtime
@pytest.mark.parametrize(("name", "goal"), [("person_detect", 53_999), ("pretrainedResnet_quant", 35_999)])
def test_least_arenas(corpus: Path, tmp_path: Path, name: str, goal: int) -> None:
    source, out = corpus / "tflite" / f"{name}.tflite", tmp_path / "out.tflite"
    assert run("fit", source, "--least", "--abi", "64", "-o", out).returncode == 0
    own, ours = run_tflm(source.read_bytes()), run_tflm(out.read_bytes(), arena=goal)
    assert ours.outputs == own.outputs


def chosen(source: Path, budget: int) -> Rung:
    """The rung that meets a budget for the whole arena on 64 bits."""
    found = fit(source, budget=budget, abi="64").chosen
    assert found is not None
    return found


def test_the_cheapest_rung_that_fits(corpus: Path) -> None:
    source = corpus / "tflite" / "person_detect.tflite"
    assert chosen(source, 86_000).name == "as is"
    assert chosen(source, 67_000).name == "overlaps"
    found = chosen(source, 60_000)
    assert found.name == "split"
    assert found.arena <= 60_000


def test_nothing_fits(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    done = run("fit", corpus / "tflite" / "kws_ref_model.tflite", "--budget", "1KiB", "-o", out)
    assert done.returncode == 1
    assert "nothing fits" in done.stdout
    assert not out.exists()


def test_forbidden_rungs_are_not_taken(corpus: Path) -> None:
    source = corpus / "tflite" / "person_detect.tflite"
    names = [rung.name for rung in fit(source, without=("split", "overlaps")).rungs]
    assert names == ["as is", "views"]


def test_a_bad_request_is_named(corpus: Path, tmp_path: Path) -> None:
    source, out = corpus / "tflite" / "kws_ref_model.tflite", tmp_path / "out.tflite"
    done = run("fit", source, "--least", "-o", out, "--without", "lift")
    assert done.returncode == 2
    assert "no rung lift" in done.stderr


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
