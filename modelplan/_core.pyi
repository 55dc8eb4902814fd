from collections.abc import Callable

from modelplan.types import IntArray

def place_in_order(
    size: IntArray,
    start: IntArray,
    end: IntArray,
    alignment: IntArray,
    pin: IntArray,
    overlaps: IntArray,
    conflicts: IntArray,
    order: IntArray,
    tightest: bool,
) -> IntArray: ...
def load_bound(
    size: IntArray,
    start: IntArray,
    end: IntArray,
    alignment: IntArray,
    pin: IntArray,
    overlaps: IntArray,
    conflicts: IntArray,
) -> tuple[int, int]: ...
def find_clash(
    size: IntArray, start: IntArray, end: IntArray, offset: IntArray, overlaps: IntArray
) -> tuple[int, int]: ...
def solve(
    size: IntArray,
    start: IntArray,
    end: IntArray,
    alignment: IntArray,
    pin: IntArray,
    overlaps: IntArray,
    capacity: int = -1,
    minimize: bool = True,
    steps: int = 0,
    seconds: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    without: list[str] = [],
    progress: Callable[[int, int, int], None] | None = None,
) -> tuple[IntArray, int, str, int, int]: ...

class ScheduleInstance: ...

class ScheduleOutcome:
    order: IntArray
    peak: int
    flow_bound: int
    lower_bound: int
    found_by: str
    states: int
    steps: int
    segments: int
    critical_op: int
    cases: list[tuple[tuple[int, ...], int, tuple[tuple[int, int, int, int], ...]]]
    stopped_by: str

def schedule_instance(
    ops: int,
    sizes: IntArray,
    writer_ptr: IntArray,
    writer_ops: IntArray,
    reader_ptr: IntArray,
    reader_ops: IntArray,
    from_start: IntArray,
    to_end: IntArray,
    scratch: IntArray,
    edges: IntArray,
    credits: IntArray,  # noqa: A002
) -> ScheduleInstance: ...
def schedule_solve(
    instance: ScheduleInstance,
    method: str = "best",
    rules: str = "FMCS",
    bound: bool = True,
    search: bool = True,
    width: int = 16,
    steps: int | None = None,
    seconds: float | None = None,
    states: int = 5_000_000,
    memory: int = 1073741824,
    progress: Callable[[int], None] | None = None,
) -> ScheduleOutcome: ...
def schedule_search(
    instance: ScheduleInstance,
    rules: str,
    floor: int,
    ceiling: int,
    steps: int | None = None,
    states: int = 5_000_000,
) -> tuple[str, IntArray, int, int, int]: ...
def schedule_bound_at(instance: ScheduleInstance, op: int) -> int: ...
def schedule_profile(instance: ScheduleInstance, order: IntArray) -> IntArray: ...
