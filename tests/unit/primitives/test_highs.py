"""SciPy behind one door: absent, too old, or there; and nothing of HiGHS on standard output."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from modelplan.primitives import highs
from modelplan.primitives.errors import RequestError


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    highs.is_there.cache_clear()
    yield
    highs.is_there.cache_clear()


def test_a_scipy_that_is_absent_or_whose_answers_may_be_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in ("", "1.16.3", "1.9"):
        highs.is_there.cache_clear()
        monkeypatch.setattr(highs, "installed_version", lambda _, found=found: found)
        assert not highs.is_there()
        with pytest.raises(RequestError, match=r"needs SciPy 1\.17 or later: pip install 'modelplan\[memories\]'"):
            highs.modules()


@pytest.mark.parametrize("found", ["1.17.0", "1.18.0rc1", "2.0.1"])
def test_later_versions_are_taken(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "installed_version", lambda _: found)
    assert highs.is_there()


def test_nothing_reaches_standard_output_and_it_is_there_again_behind(capfd: pytest.CaptureFixture[str]) -> None:
    with highs.silent():
        os.write(1, b"from the solver")
    os.write(1, b"from the command")
    assert capfd.readouterr().out == "from the command"
