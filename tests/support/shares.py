"""How many of its cases a test tries: all in `.ci/long`, a quarter in every other run, of which few are fast tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")
_PART = 1 if os.environ.get("MODELPLAN_LONG") else 4


def share(most: int) -> int:
    """`most` in `.ci/long`, elsewhere a quarter of it and at least one."""
    return max(1, most // _PART)


def sample(cases: Sequence[T]) -> Sequence[T]:
    """All cases in `.ci/long`, elsewhere every fourth, the first among them."""
    return cases[::_PART]


def few_first(cases: Iterable[object], few: int = 1) -> list[Any]:
    """The cases of a test, those behind the first `few` marked `slow`: one is fast, all of them are not."""
    return [case if n < few else pytest.param(case, marks=pytest.mark.slow) for n, case in enumerate(cases)]


def examples(most: int, **others: Any) -> settings:
    """Settings of Hypothesis for a share of `most` examples, and what else the test sets."""
    return settings(max_examples=share(most), **others)
