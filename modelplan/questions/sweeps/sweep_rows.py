"""The row of a run: what was asked, what came out, who measured it. One column for each field."""

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_type_hints

from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.version import __version__
from modelplan.questions.sweeps.run_table import SweepRun

#: How a run ended: with an answer; refused, with the reason; by an error of modelplan; its process died; out of time;
#: the worker that had it died, more than once.
Status = Literal["done", "refused", "failed", "crashed", "timeout", "lost"]


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One row of the results; sizes in bytes, seconds of processor time; None where a run has no such figure.

    `arena`, `head`: what the runtime needs to run the unmodified file. `height`: the plan of this setting, with
    `bound` below which no placement goes and `proof`, why the search ended. `order` names who found the order,
    `order_peak` and `order_bound` its peak and what no order can beat. `fits`: whether the unmodified arena fits in
    `target_bytes`; `fits_with`: the kernel libraries with which it does, where none is named; `plan_fits`: whether it
    would with `height` in place of `head`. `used_*` are what a default came to. `plan_seconds` is the time of the
    plan; runs that differ in their target alone share it.
    """

    model: str
    target: str
    runtime: str
    kernels: str
    schedule: str
    alias: str
    allocator: str
    dims: str
    shapes: str
    status: Status
    error: str = ""
    values: str = ""
    target_bytes: int | None = None
    format: str = ""
    file_bytes: int | None = None
    operators: int | None = None
    macs: int | None = None
    used_runtime: str = ""
    used_kernels: str = ""
    used_alias: str = ""
    used_allocator: str = ""
    abi: str = ""
    arena: int | None = None
    head: int | None = None
    runtime_height: int | None = None
    height: int | None = None
    bound: int | None = None
    proof: str = ""
    order: str = ""
    order_peak: int | None = None
    order_bound: int | None = None
    order_proof: str = ""
    fits: bool | None = None
    fits_with: str = ""
    plan_fits: bool | None = None
    load_seconds: float | None = None
    arena_seconds: float | None = None
    plan_seconds: float | None = None
    sha256: str = ""
    modelplan: str = __version__
    python: str = ""
    numpy: str = ""
    key: str = ""


#: What names a run: a second row of the same words takes the place of the first.
IDENTITY = ("model", "target", "runtime", "kernels", "schedule", "alias", "allocator", "dims", "shapes", "values")
#: Columns that differ from run to run of the same table.
TIMES = ("load_seconds", "arena_seconds", "plan_seconds")
#: Each column with the type of its values.
COLUMNS: dict[str, type] = {
    name: next(kind for kind in (*get_args(hint), hint) if isinstance(kind, type))
    for name, hint in (get_type_hints(SweepRow) | {"status": str}).items()
}


def row_of(run: SweepRun, status: Status, error: str = "", facts: Mapping[str, Any] | None = None) -> SweepRow:
    """The row of a run that ended so; `facts` are further columns."""
    columns: dict[str, Any] = {name: getattr(run, name) for name in IDENTITY}
    columns |= {name: " ".join(getattr(run, name)) for name in ("dims", "shapes", "values")}
    columns |= {"status": status, "error": error}
    columns |= {"target_bytes": run.target_bytes, "sha256": run.sha256, "key": run.key}
    return SweepRow(**columns, **(facts or {}))
