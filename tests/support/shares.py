"""How many random cases a test tries: all in `.ci/long`, a quarter in every other run."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

_PART = 1 if os.environ.get("MODELPLAN_LONG") else 4


def share(most: int) -> int:
    """`most` in `.ci/long`, elsewhere a quarter of it and at least one."""
    return max(1, most // _PART)


def examples(most: int, **others: Any) -> settings:
    """Settings of Hypothesis for a share of `most` examples, and what else the test sets."""
    return settings(max_examples=share(most), **others)
