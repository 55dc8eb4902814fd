"""HiGHS, which solves linear and mixed-integer programs, as SciPy brings it: the extra `memories`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from modelplan.primitives.errors import RequestError

INSTALL = "pip install 'modelplan[memories]'"
#: SciPy 1.11 to 1.16 call some programs infeasible that are not.
_LEAST = (1, 17)
#: What `status` says where nothing satisfies the rows.
INFEASIBLE = 2


@cache
def is_there() -> bool:
    """Whether SciPy is installed, in a version whose HiGHS is right; imports nothing."""
    try:
        found = version("scipy").split(".")
    except PackageNotFoundError:
        return False
    return tuple(int(part) for part in found[:2]) >= _LEAST


def modules() -> tuple[Any, Any]:
    """The modules scipy.optimize and scipy.sparse.

    Raises:
        RequestError: SciPy is missing or too old; says what to install.
    """
    if not is_there():
        least = ".".join(map(str, _LEAST))
        raise RequestError(f"this needs SciPy {least} or later: {INSTALL}")
    from scipy import optimize, sparse

    return optimize, sparse


@contextmanager
def silent() -> Iterator[None]:
    """Redirects HiGHS's output away from standard output, where it prints whatever its options say."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
