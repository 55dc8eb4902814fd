"""Random networks computed in stripes at random legal cuts give the same bytes on TFLM."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_cnns import random_cnn
from random_stripes import differences, legal_program, rewritten
from shares import share

from modelplan import runtimes
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.formats import load_model
from modelplan.rewriting.striped_tflite import placing
from modelplan.runtimes.tflm.runner import INSTALL, installed

runtime = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("seed", [*range(share(12)), 14, 19, 123, 126, 129, 132, 135, 138])
def test_random_stripes_are_equal_on_tflm(tmp_path: Path, seed: int) -> None:
    found = differences(seed, tmp_path)
    if found is None:
        pytest.skip("no operator of this network can be split")
    assert found == []


@pytest.mark.parametrize("seed", range(share(40)))
def test_random_stripes_are_proved_without_a_kernel(tmp_path: Path, seed: int) -> None:
    data = random_cnn(seed)
    path = tmp_path / "random.tflite"
    path.write_bytes(data)
    program = legal_program(load_model(str(path)), seed)
    if program is None:
        pytest.skip("no operator of this network can be split")
    overlaps = placing.proved_overlaps(runtimes.runtime("tflm", "tflite"))
    _, planned, _ = rewritten(data, "random", program, overlaps)
    assert [verdict.outcome for verdict in prove_rewrite(data, planned)] == ["ok", "ok"]
