"""HiGHS, which solves linear and mixed-integer programs, as SciPy brings it: the extra `memories`."""

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from modelplan.primitives.errors import RequestError
from modelplan.primitives.version import installed_version

INSTALL = "pip install 'modelplan[memories]'"
#: SciPy 1.11 to 1.16 call some programs infeasible that are not.
_LEAST = (1, 17)
#: What `status` says where nothing satisfies the rows.
INFEASIBLE = 2


@cache
def is_there() -> bool:
    """Whether SciPy is installed, in a version whose HiGHS is right; imports nothing."""
    parts = installed_version("scipy").split(".")
    return tuple(int(part) for part in parts[:2] if part) >= _LEAST


def modules() -> tuple[ModuleType, ModuleType]:
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


#: A sum of columns, each with its factor, between two limits.
Row = tuple[dict[int, float], float, float]


class IntegerProgram:
    """A mixed-integer program that is made column by column and row by row; its columns lie within their limits."""

    def __init__(self) -> None:
        self._columns: list[tuple[float, float, float, bool]] = []
        self._rows: list[Row] = []

    def column(self, cost: float, low: float = 0, high: float = 1, *, whole: bool) -> int:
        """The number of a further column, which is a whole number if `whole`."""
        self._columns.append((cost, low, high, whole))
        return len(self._columns) - 1

    def row(self, terms: Iterable[tuple[float, int | bool]], least: float, most: float) -> None:
        """Demands that a sum of columns, each behind its factor, lies within limits; a boolean is a constant."""
        row: dict[int, float] = defaultdict(float)
        fixed = 0.0
        for factor, column in terms:
            if isinstance(column, bool):
                fixed += factor * column
            else:
                row[column] += factor
        self._rows.append((row, least - fixed, most - fixed))

    def solve(self, seconds: float, gap: float, more: Sequence[Row] = (), *, relaxed: bool = False) -> Any:
        """SciPy's answer in so many seconds, with `more` rows; without whole numbers if `relaxed`."""
        optimize, sparse = modules()
        rows = [*self._rows, *more]
        entries = [(factor, r, column) for r, (row, _, _) in enumerate(rows) for column, factor in row.items()]
        places = np.array([entry[1:] for entry in entries], dtype=np.int32).reshape(-1, 2).T  # what HiGHS takes
        cost, low, high, whole = zip(*(self._columns or [(0.0, 0, 0, False)]), strict=True)
        matrix = sparse.csr_array(([entry[0] for entry in entries], tuple(places)), shape=(len(rows), len(cost)))
        limits = [row[1] for row in rows], [row[2] for row in rows]
        with silent():
            return optimize.milp(
                np.array(cost),
                integrality=np.array(whole, dtype=int) * (not relaxed),
                bounds=optimize.Bounds(low, high),
                constraints=optimize.LinearConstraint(matrix, *limits) if rows else (),
                options={"time_limit": seconds, "mip_rel_gap": gap},
            )
