"""What compression would save: sizes by hand, and plans of the changed graphs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import commands
import pytest
from graphs import graph

from modelplan import Graph, Kind, RequestError
from modelplan.questions.explaining.compressing import compression
from modelplan.runtimes import RUNTIMES

MODEL = Path(__file__).resolve().parents[3] / "models" / "unet_small.tflite"


def weighted() -> Graph:
    """x [16] -> a [16] -> y [16] with a weight of 16 by 32 bytes at the second operator."""
    drawn = graph(
        """
        x   -> a : RELU
        a w -> y : FULLY_CONNECTED
        """,
        {"x": 16, "a": 16, "w": 512, "y": 16},
        inputs="x",
        outputs="y",
        kinds={"w": Kind.CONSTANT},
    )
    tensors = tuple(replace(t, shape=(16, 32)) if t.name == "w" else t for t in drawn.tensors)
    return replace(drawn, tensors=tensors)


def skipping() -> Graph:
    """A result of 96 bytes that waits while two operators run."""
    return graph(
        """
        x   -> s : RELU
        s   -> a : RELU
        a   -> b : RELU
        b   -> c : RELU
        c s -> y : ADD
        """,
        {"x": 16, "s": 96, "a": 64, "b": 160, "c": 64, "y": 16},
        inputs="x",
        outputs="y",
    )


@pytest.mark.parametrize(
    ("form", "flash"),
    [("int4", 256 + 64), ("palette16", 256 + 16), ("palette5", 192 + 5), ("sparse75%", 128 + 64)],
)
def test_weights_are_sized_with_what_is_needed_to_read_them(form: str, flash: int) -> None:
    found = compression(weighted(), RUNTIMES["generic"], f"weights:{form}")
    assert (found.count, found.flash_before, found.flash_after) == (1, 512, flash)
    assert (found.head_before, found.head_direct) == (32, 32)
    assert found.head_after == 512 + 32


def test_weights_that_would_grow_stay() -> None:
    found = compression(weighted(), RUNTIMES["generic"], "weights:sparse1%")
    assert (found.count, found.flash_after, found.head_after) == (0, 512, 32)


def test_a_result_that_waits_waits_compressed() -> None:
    """s is packed behind its first reader (s, its half and a), and waits as 48 bytes beside a and b."""
    found = compression(skipping(), RUNTIMES["generic"], "activations:0.5")
    assert found.count == 1
    assert found.head_before == 96 + 64 + 160
    assert found.head_after == 48 + 64 + 160
    assert found.flash_after == found.flash_before


@pytest.mark.parametrize(
    "form", ["", "weights", "weights:int3", "weights:palette1", "weights:sparse0%", "activations:2", "activations:x"]
)
def test_what_cannot_be_read_is_named(form: str) -> None:
    with pytest.raises(RequestError, match="expected"):
        compression(weighted(), RUNTIMES["generic"], form)


def test_explain_shows_what_was_asked(tmp_path: Path) -> None:
    words = ["--what-if", "compress=weights:int4", "--what-if", "compress=activations:0.5", "--seconds", "0"]
    done = commands.run("explain", MODEL, *words, "--json", tmp_path / "x.json")
    assert done.returncode == 0
    assert "What if: compression" in done.stdout
    found = json.loads((tmp_path / "x.json").read_text())["what_if"]
    assert [one["name"] for one in found] == ["weights:int4", "activations:0.5"]
    assert found[0]["flash_after"] < found[0]["flash_before"]
    refused = commands.run("explain", MODEL, "--what-if", "prune=all")
    assert refused.returncode == 2
    assert "expected compress=FORM" in refused.stderr
