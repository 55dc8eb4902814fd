"""Since when TFLM can run what a rewrite adds."""

from __future__ import annotations

from datetime import date

import pytest

from modelplan import RequestError
from modelplan.rewriting.striped_tflite.writing import _ADDED
from modelplan.runtimes.tflm.history import day_of, operator_since


@pytest.mark.parametrize("kind", _ADDED)
def test_the_day_of_every_operator_that_is_added_is_known(kind: str) -> None:
    since = operator_since(kind)
    assert since is not None
    assert date(2021, 4, 9) <= since <= date(2025, 11, 10)


def test_the_day_of_an_operator_that_is_never_added_is_not_guessed() -> None:
    assert operator_since("TELEPORT") is None


@pytest.mark.parametrize("text", ["2025-11-10", "20251110", "0.dev20251110", "dev20251110"])
def test_a_day_and_a_wheel_name_a_day(text: str) -> None:
    assert day_of(text) == date(2025, 11, 10)


@pytest.mark.parametrize("text", ["", "2.1", "2025", "2025-02-30", "yesterday", "0.dev2025111", "2025-11-10T00:00"])
def test_what_names_no_day_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="as a version of TFLM"):
        day_of(text)
