"""What a level of proof that runs kernels returns, and the exception of one that cannot run."""

from __future__ import annotations

from typing import NamedTuple


class Executed(NamedTuple):
    """What was run: the details of the verdict, the file and the kernels, and whether with the plan that is proved."""

    details: str
    what: str
    planned: bool = False


class Skipped(Exception):  # noqa: N818
    """A level cannot run here; the message says why and what to install or give."""
