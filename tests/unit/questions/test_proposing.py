"""Extents that a session's run proposes: one run that takes too much ends the trials."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import small_files

from modelplan.formats import load_model
from modelplan.formats.onnx.onnx_open import OpenModelError
from modelplan.primitives.errors import ModelError
from modelplan.questions import proposing
from modelplan.runtimes.ort.measuring import MeasuringLimits, SessionExhaustedError, reach, refusal
from modelplan.runtimes.ort.reaching import Aim

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(("kind", "runs"), [(SessionExhaustedError, 1), (ModelError, 6)])
def test_a_run_that_takes_too_much_is_not_made_with_other_extents(
    kind: type[ModelError], runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "loops.onnx"
    path.write_bytes(small_files.CASES["onnx_loops_in_loops"](2))
    asked = []

    def reach(*_: object, **__: object) -> None:
        asked.append(1)
        raise kind("no")

    monkeypatch.setattr(proposing, "reach", reach)
    with pytest.raises(OpenModelError) as problem:
        load_model(path)
    assert "unknown extents" in proposing.with_proposal(problem.value, str(path), ((), (), ()))
    assert len(asked) == runs


def test_a_session_without_memory_is_no_refusal_of_the_model() -> None:
    assert isinstance(refusal("onnxruntime.capi.Fail: std::bad_alloc"), SessionExhaustedError)
    assert not isinstance(refusal("onnxruntime.capi.Fail: a node"), SessionExhaustedError)


def _loops(depth: int) -> bytes:
    """Loops in loops, as older releases of ONNX Runtime read them too."""
    model = onnx.load_model_from_string(small_files.CASES["onnx_loops_in_loops"](depth))
    model.ir_version = 9
    return bytes(model.SerializeToString())


def test_a_run_ends_with_the_processor_time_it_may_take(tmp_path: Path) -> None:
    path = tmp_path / "loops.onnx"
    path.write_bytes(_loops(30))
    shapes = {"x": [4], "cond": [], "m": []}
    with pytest.raises(SessionExhaustedError, match="more processor time"):
        reach(path, shapes, Aim({"u": ()}, {}), MeasuringLimits(60, 1 << 31, 0.2))
    path.write_bytes(_loops(2))
    assert reach(path, shapes, Aim({"u": ()}, {}), MeasuringLimits(60, 1 << 31, 5))["shapes"]
