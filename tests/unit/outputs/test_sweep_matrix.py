"""The matrix of a sweep: the bytes, the verdict and the share of each model on each target, and what is left out."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch

from modelplan.answers.sweep_summary import Fit, Settings, SweepFindings
from modelplan.outputs.figures import canvas, sweep_matrix
from modelplan.outputs.figures.sweep_matrix import SweepMatrix

NOTHING = Settings((), 0, 0, 0)


def findings(fits: list[Fit], targets: tuple[tuple[str, int], ...]) -> SweepFindings:
    """What a sweep over these fits found."""
    models = tuple(dict.fromkeys(fit.model for fit in fits)) or ("m.tflite",)
    return SweepFindings("folder/r.parquet", len(fits), (), (), models, targets, tuple(fits), NOTHING)


def texts(found: SweepFindings) -> list[str]:
    """The words of the figure."""
    with canvas.style():
        return [text.get_text() for text in sweep_matrix.draw(SweepMatrix(found)).figure.texts]


def test_each_cell_has_its_bytes_and_its_verdict() -> None:
    fits = [
        Fit("a.tflite", "small", "no", 3000),
        Fit("a.tflite", "large", "fits", 2048),
        Fit("b.tflite", "small", "with a plan", 1500),
        Fit("b.tflite", "large", "refused"),
    ]
    found = findings(fits, (("small", 1024), ("large", 4096)))
    words = texts(found)
    assert {"2.93 KiB", "2.00 KiB", "1.46 KiB", "?"} <= {*words}
    assert {"small", "1.00 KiB", "large", "4.00 KiB", "a", "b", "does not fit", "refused by the runtime"} <= {*words}
    with canvas.style():
        sheet = sweep_matrix.draw(SweepMatrix(found))
    cells = [p for p in sheet.axes.get_children() if isinstance(p, PathPatch)]
    fills = {to_hex(p.get_facecolor()): p.get_path().get_extents() for p in cells}
    _, free, taken = sweep_matrix._LOOKS["fits"]
    assert np.isclose(fills[taken].width / fills[free].width, 0.5)


def test_what_is_left_out_is_told_and_so_is_why_there_is_nothing() -> None:
    fits = [Fit(f"m{i}.tflite", "t", "fits", 100 + i) for i in range(50)]
    words = texts(findings(fits, (("t", 1000),)))
    assert any("the 40 that need most of 50 models" in text and "--matrix" in text for text in words)
    assert "m49" in words
    assert "m9" not in words
    assert any("no target was asked for" in text for text in texts(findings([], ())))
