"""Why TFLM would not run an operator."""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818 - an answer that travels, caught where an operator is prepared
    """TFLM's kernel would not prepare or run; the text says why, without the operator's name."""
