"""Networks that end in ARG_MAX or ARG_MIN, as segmentations do: in stripes and as plain C they find the same places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from c_operators import Drawn, result_of_sums
from striped_files import striped
from tflm_models import Op, S, T, build

from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.primitives.errors import BrokenPlanError
from modelplan.questions.c_fitting import FitCRequest, fit_c
from modelplan.questions.verifying import VerifyRequest, verify
from modelplan.rewriting.striped_tflite.steps import TfliteProgram
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import KeptHalo, RecomputedHalo
from modelplan.runtimes.tflm.runner import installed, tflm_values

CUTS = (0, 4, 8, 12)
WAYS: dict[str, dict[str, Any]] = {
    "kept": {"strategy": KeptHalo},
    "recomputed": {"strategy": RecomputedHalo, "pad": frozenset({0})},
    "backwards": {"strategy": RecomputedHalo, "backward": True},
}
on_tflm = pytest.mark.skipif(not installed(), reason="tflite-micro is not installed")


def network(kind: str = "ARG_MAX", axis: int = 3) -> bytes:
    """A convolution of a map [1, 12, 10, 6], and where along an axis its result is largest or least."""
    d = Drawn(axis)
    x = d.tensor((1, 12, 10, 4))
    weights = d.constant(T("int8", (6, 3, 3, 4), scales=(d.scale() / 10,), zero=0))
    y = result_of_sums(d, x, weights.scales or (), 36, (1, 12, 10, 6))
    places = T("int32", (*y.shape[:axis], *y.shape[axis + 1 :]))
    steps = {"Padding": 0, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 0}
    ops = (
        Op("CONV_2D", (0, 1, 2), (3,), steps, "Conv2DOptions"),
        Op(kind, (3, 4), (5,), {"OutputType": 2}, "ArgMaxOptions" if kind == "ARG_MAX" else "ArgMinOptions"),
    )
    return build(S((x, weights, d.bias(6, 900), y, T("int32", (), [axis]), places), ops, (0,), (5,)))


@pytest.mark.parametrize("axis", [2, 3])
@pytest.mark.parametrize("way", WAYS)
@on_tflm
def test_stripes_find_the_same_places(way: str, axis: int, tmp_path: Path) -> None:
    made = striped(network(axis=axis), tmp_path, cuts=CUTS, **WAYS[way])
    rewritten = made.file()
    assert [verdict.outcome for verdict in prove_rewrite(made.data, rewritten)] == ["ok", "ok"]
    runs = [[bytes((7 * i + 31 * n) % 251 for i in range(12 * 10 * 4))] for n in range(3)]
    assert [[a.tolist() for a in arrays] for arrays, _ in tflm_values(rewritten, runs)] == [
        [a.tolist() for a in arrays] for arrays, _ in tflm_values(made.data, runs)
    ]


def test_stripes_that_find_the_largest_are_no_proof_of_the_least(tmp_path: Path) -> None:
    made = striped(network(), tmp_path, cuts=CUTS, **WAYS["kept"])
    other = striped(network("ARG_MIN"), tmp_path, cuts=CUTS, **WAYS["kept"])
    (verdict,) = prove_rewrite(other.data, made.file())
    assert verdict.outcome == "unproved"
    assert "ARG_MAX" in verdict.details


def test_stripes_in_another_order_are_refused(tmp_path: Path) -> None:
    def exchanged(program: TfliteProgram) -> None:
        joins = [step for step in program.steps if step.kind == "CONCATENATION"]
        last = joins[-1]
        object.__setattr__(last, "inputs", (last.inputs[1], last.inputs[0], *last.inputs[2:]))

    made = striped(network(), tmp_path, cuts=CUTS, **WAYS["kept"])
    with pytest.raises(BrokenPlanError, match=r"ARG_MAX|CONCATENATION"):
        prove_rewrite(made.data, made.file(exchanged))


def test_places_along_the_rows_are_found_in_one_piece(tmp_path: Path) -> None:
    with pytest.raises(IllegalStripeError, match="ARG_MAX"):
        striped(network(axis=1), tmp_path, cuts=(0, 3, 6), **WAYS["kept"])


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("kind", ["ARG_MAX", "ARG_MIN"])
@on_tflm
def test_plain_c_finds_the_same_places_by_rows(kind: str, axis: int, tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(network(kind, axis))
    chosen = fit_c(FitCRequest(str(tmp_path / "net.tflite"), pushed=True)).chosen
    assert chosen is not None
    (tmp_path / "net.c").write_text(chosen.files.source)
    (tmp_path / "net.h").write_text(chosen.files.header)
    result = verify(VerifyRequest(str(tmp_path / "net.tflite"), str(tmp_path / "net.c")))
    assert not result.fault
