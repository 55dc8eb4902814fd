"""The exception of a level of proof that cannot run."""

from __future__ import annotations


class Skipped(Exception):  # noqa: N818
    """A level cannot run here; the message says why and what to install or give."""
