"""A difference as text, Markdown, JSON and a picture: nothing twice, names that stay text, no text on another."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from versions import NETWORK, Layer, Layers, written

import modelplan
from modelplan.answers.model_difference import Bytes, Change, Difference, OpChange
from modelplan.outputs.figures import canvas, difference_chart
from modelplan.outputs.report import plain
from modelplan.outputs.reports import difference_report

MODELS = Path(__file__).resolve().parents[3] / "models"


def versions(folder: Path, layers: Layers) -> Difference:
    paths = folder / "old.tflite", folder / "new.tflite"
    for path, content in zip(paths, (NETWORK, layers), strict=True):
        path.write_bytes(written(content))
    return modelplan.diff(*paths, kernels="reference")


def strided(folder: Path) -> Difference:
    return versions(folder, NETWORK | {"stem": replace(NETWORK["stem"], stride=1)})


def shown(found: Difference) -> str:
    return plain(difference_report.sections_of(found))


def long_one(folder: Path) -> Difference:
    """Two networks of a few hundred operators."""
    layers: Layers = {"stem": NETWORK["stem"]}
    for number in range(150):
        before = list(layers)[-1]
        layers[f"pw{number}"] = Layer("CONV_2D", (before,), 8, size=1, seed=number)
        layers[f"relu{number}"] = Layer("RELU", (f"pw{number}",))
    paths = folder / "old.tflite", folder / "new.tflite"
    paths[0].write_bytes(written(layers))
    layers |= {"pw70": replace(layers["pw70"], filters=32), "pw91": replace(layers["pw91"], reads=("pw90",))}
    del layers["relu90"]
    paths[1].write_bytes(written(layers))
    return modelplan.diff(*paths)


def test_the_report_says_what_changed_and_what_follows(tmp_path: Path) -> None:
    found = strided(tmp_path)
    said = shown(found)
    (own,) = found.of(Change.CHANGED)
    assert f"{own.effect}  op 0 CONV_2D: stride_h 2 -> 1; stride_w 2 -> 1; output 512 -> 2,048 bytes" in said
    assert f"{len(found.of(Change.FOLLOWS))} operators behind these follow: outputs" in said
    assert said.count("op 0 CONV_2D: stride") == 1
    assert difference_report.became(found.arena) in said
    for change in found.of(Change.FOLLOWS):
        assert f"{change.label}:" not in said


def test_a_report_of_the_same_is_two_lines() -> None:
    path = MODELS / "resnet8.tflite"
    found = modelplan.diff(path, path)
    assert shown(found) == f"{path}\n  nothing differs but names, if anything\n"
    assert difference_report.render_difference(found).count("\n\n") == 1
    document = json.loads(difference_report.as_json(found))
    assert document["same"] is True
    assert (document["changes"], document["settings"], document["moved"]) == ([], [], 0)


def test_json_has_every_operator_and_every_figure(tmp_path: Path) -> None:
    found = strided(tmp_path)
    document = json.loads(difference_report.as_json(found))
    assert len(document["changes"]) == len(found.changes) > 5
    first = document["changes"][0]
    assert (first["change"], first["before"], first["after"]) == ("changed", 0, 0)
    assert first["outputs"] == {"before": 512, "after": 2048, "delta": 1536}
    assert sum(part["delta"] for part in document["parts"]) == document["arena"]["delta"]
    assert sum(row["delta"] for row in document["alive"]) == max(document["new"]["live"]) - max(document["old"]["live"])


def row(number: int) -> OpChange:
    size = Bytes(100, 100 + number)
    return OpChange(Change.CHANGED, number, number, f"op {number} CONV_2D", (), size, size, size, size, size, size)


def test_what_is_not_listed_is_counted(tmp_path: Path) -> None:
    found = replace(strided(tmp_path), changes=tuple(map(row, range(40, 0, -1))))
    said = shown(found)
    assert "op 29 CONV_2D" in said
    assert "op 28 CONV_2D" not in said
    assert f"+{2 * sum(range(29)):,}  [28 others: 28 changed]" in said
    assert "20 others: 20 changed" in difference_report.render_difference(found)


def test_names_out_of_files_stay_text(tmp_path: Path) -> None:
    name = "a|b`<script>\n*_[x](y)\x1b[31m"
    found = replace(strided(tmp_path), old=name, changes=(replace(row(1), label=f"op 1 {name}"),))
    made = difference_report.render_difference(found)
    assert "<script>" not in made
    assert "\x1b" not in made + shown(found)
    rows = [line for line in made.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") in (3, 5, 6) for line in rows)


def test_a_side_that_would_not_run_has_its_reason(tmp_path: Path) -> None:
    found = versions(tmp_path, NETWORK | {"soft": replace(NETWORK["soft"], dtype="int16")})
    assert found.arena.after is None
    assert "new: the runtime would not run it: op 11 SOFTMAX" in shown(found)
    assert "op 11 SOFTMAX: output 10 -> 20 bytes (1x10 int8 -> int16)" in shown(found)
    assert canvas.saved(difference_chart.draw, difference_chart.chart_of(found), ["svg"])[0]


# -- the picture -------------------------------------------------------------------------------------------------------


def reordered(folder: Path) -> Difference:
    """The same operators in another order."""
    branches = {f"a{n}": Layer("CONV_2D", ("stem",), 8, seed=n) for n in range(5)}
    ends = {f"b{n}": Layer("RELU", (f"a{n}",)) for n in range(5)}
    paths = folder / "old.tflite", folder / "new.tflite"
    paths[0].write_bytes(written({"stem": NETWORK["stem"], **branches, **ends}))
    mixed = [f"{letter}{n}" for n in (3, 1, 0, 4, 2) for letter in "ab"]
    paths[1].write_bytes(written({"stem": NETWORK["stem"], **{name: (branches | ends)[name] for name in mixed}}))
    return modelplan.diff(*paths)


def test_another_order_is_told(tmp_path: Path) -> None:
    found = reordered(tmp_path)
    assert f"{found.moved} operators run at another place in the order" in shown(found)


CASES: dict[str, Callable[[Path], Difference]] = {
    "stride": strided,
    "same": lambda folder: versions(folder, NETWORK),
    "gone": lambda folder: versions(folder, {"stem": NETWORK["stem"]}),
    "long": long_one,
    "reordered": reordered,
    "kernels": lambda folder: modelplan.diff(MODELS / "resnet8.tflite", kernels=("esp-nn@1.1.0", "esp-nn")),
    "others": lambda folder: modelplan.diff(MODELS / "resnet8.tflite", MODELS / "mobilenet_v2_like.tflite"),
}


@pytest.mark.parametrize("name", CASES)
def test_no_text_touches_another_or_leaves_the_sheet(name: str, tmp_path: Path) -> None:
    with canvas.style():
        sheet = difference_chart.draw(difference_chart.chart_of(CASES[name](tmp_path)))
        renderer = FigureCanvasAgg(sheet.figure).get_renderer()  # type: ignore[no-untyped-call]
        texts = [(text.get_text(), text.get_window_extent(renderer)) for text in sheet.figure.texts]
    frame = sheet.figure.bbox
    for (one, a), (other, b) in combinations(texts, 2):
        assert not a.overlaps(b), f"{one!r} touches {other!r}"
    for one, box in texts:
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1, one
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1, one


def written_texts(found: Difference, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    write = canvas.Sheet.write

    def note(sheet: canvas.Sheet, x: float, y: float, text: str, size: float = canvas.SMALL, **style: Any) -> None:
        texts.append(text)
        write(sheet, x, y, text, size, **style)

    monkeypatch.setattr(canvas.Sheet, "write", note)
    canvas.saved(difference_chart.draw, difference_chart.chart_of(found), ["png"])
    return texts


@pytest.mark.slow
def test_both_peaks_and_what_differs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = long_one(tmp_path)
    texts = written_texts(found, monkeypatch)
    for side, peak in zip(("old", "new"), found.peaks, strict=True):
        assert any(text.startswith(f"{side} peak: {peak.operator},") for text in texts)
    assert "CONV_2D 141" in texts
    assert "- RELU 182" in texts
    assert "runs here on the old side only" in texts
    assert "runs here on the new side only" not in texts


@pytest.mark.slow
def test_the_same_difference_gives_the_same_bytes(tmp_path: Path) -> None:
    chart = difference_chart.chart_of(strided(tmp_path))
    once, again = (canvas.saved(difference_chart.draw, chart, ["svg", "png"]) for _ in range(2))
    assert once == again


@pytest.mark.slow
def test_curves_have_gaps_where_a_side_runs_nothing(tmp_path: Path) -> None:
    found = long_one(tmp_path)
    old, new = (difference_chart.curve(found.columns, found.live[n], old=not n) for n in range(2))
    assert len(old) == len(new) == len(found.columns)
    gone = [at for at, column in enumerate(found.columns) if column.new < 0]
    assert np.isnan(new[gone]).tolist() == [True]
    assert max(difference_chart.spanned(old, 10)) == max(found.live[0])
    assert len(difference_chart.spanned(old, 10)) == 10
