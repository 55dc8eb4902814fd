"""Files with what TFLM does not know or reads otherwise: refused where TFLM refuses them, else sized as it runs."""

from __future__ import annotations

import pytest
from odd_files import Odd, contradictions, odd_files
from shares import share

from modelplan.runtimes.tflm.runner import installed

_IN_ALL = 300


@pytest.mark.skipif(not installed(), reason="tflite-micro is not installed")
@pytest.mark.parametrize("part", range(4))
def test_no_prediction_is_contradicted(part: int) -> None:
    odd: list[Odd] = list(odd_files(_IN_ALL))[part::4][: share(_IN_ALL // 4)]
    assert {case.case: lines for case in odd if (lines := contradictions(case))} == {}
