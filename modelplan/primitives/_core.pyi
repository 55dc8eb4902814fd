from collections.abc import Callable
from typing import Literal, TypeAlias

from modelplan.primitives.number_types import FloatArray, IntArray

_Ended: TypeAlias = Literal["complete", "optimal", "fits", "infeasible", "budget", "deadline", "cancelled", "memory"]
_Verdict: TypeAlias = Literal["feasible", "infeasible", "unknown"]

ENDED: tuple[str, ...]
FITS: tuple[str, ...]
SOLVER_RULES: tuple[str, ...]
MINIMALLOC_RULES: tuple[str, ...]
TELAMALLOC_RULES: tuple[str, ...]
SCHEDULE_RULES: tuple[str, ...]
COMPILER: str
STABLE_ABI: bool
REVISION: str

class Problem:
    def __init__(
        self,
        size: IntArray,
        start: IntArray,
        end: IntArray,
        alignment: IntArray | None = None,
        pin: IntArray | None = None,
        overlaps: IntArray | None = None,
        conflicts: IntArray | None = None,
        groups: IntArray | None = None,
        meetings: IntArray | None = None,
    ) -> None: ...

def place_in_order(problem: Problem, order: IntArray, fit: str) -> IntArray: ...
def load_bound(problem: Problem) -> tuple[int, int]: ...
def find_clash(
    size: IntArray, start: IntArray, end: IntArray, offset: IntArray, overlaps: IntArray, meetings: IntArray
) -> tuple[int, int]: ...
def find_shared_bytes(
    start: IntArray, end: IntArray, first: IntArray, last: IntArray, cls: IntArray, overwrites: IntArray
) -> tuple[int, int]: ...
def replay(
    steps: int,
    tensors: IntArray,
    inputs: IntArray,
    outputs: IntArray,
    states: IntArray,
    reads: IntArray,
    writes: IntArray,
    scratch: IntArray,
    moves: IntArray,
    runs: int,
    most_pieces: int,
) -> IntArray: ...
def positional_maxima(size: IntArray, start: IntArray, end: IntArray) -> IntArray: ...
def peak_loads(size: IntArray, start: IntArray, end: IntArray) -> IntArray: ...
def breadth_ranks(size: IntArray, start: IntArray, end: IntArray) -> IntArray: ...
def share_by_breadth(size: IntArray, start: IntArray, end: IntArray) -> IntArray: ...
def share_by_distance(size: IntArray, start: IntArray, end: IntArray) -> IntArray: ...
def share_min_cost(
    size: IntArray, start: IntArray, end: IntArray, most_steps: int, seconds: float
) -> tuple[IntArray, int, _Ended]: ...
def stack_in_objects(
    size: IntArray, start: IntArray, end: IntArray, order: IntArray, overlapping: bool
) -> tuple[IntArray, IntArray, IntArray]: ...
def most_live_first(size: IntArray, start: IntArray, end: IntArray, by_duration: bool) -> IntArray: ...
def climb(
    size: IntArray,
    start: IntArray,
    end: IntArray,
    alignment: IntArray,
    order: IntArray,
    load: int,
    limit: int,
    most_steps: int,
    most_work: int,
    seconds: float,
    restore: bool,
    randomness: IntArray,
) -> tuple[IntArray, int, _Ended]: ...
def solve(
    problem: Problem,
    capacity: int = -1,
    minimize: bool = True,
    steps: int = 0,
    seconds: float = 0.0,
    seed: int = 0,
    threads: int = 1,
    without: list[str] = [],
    progress: Callable[[int, int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[IntArray, int, _Ended, int, int]: ...
def ejection_search(problem: Problem, height: int, steps: int, seed: int = 0) -> IntArray | None: ...

class ScheduleInstance: ...

class ScheduleOutcome:
    order: IntArray
    alternatives: list[IntArray]
    peak: int
    flow_bound: int
    lower_bound: int
    found_by: str
    states: int
    steps: int
    segments: int
    critical_op: int
    cases: list[tuple[tuple[int, ...], int, tuple[tuple[int, int, int, int], ...]]]
    ended: _Ended

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
    overwrites: IntArray,
) -> ScheduleInstance: ...
def schedule_solve(
    instance: ScheduleInstance,
    method: str = "best",
    without: list[str] = [],
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
    floor: int,
    ceiling: int,
    without: list[str] = [],
    steps: int | None = None,
    states: int = 5_000_000,
    look_ahead_after: int = 2_000,
) -> tuple[_Verdict, IntArray, int, int, int]: ...
def schedule_reversed(instance: ScheduleInstance) -> ScheduleInstance | None: ...
def schedule_bound_at(instance: ScheduleInstance, op: int) -> int: ...
def conflict_counts(problem: Problem) -> IntArray: ...
def usmp_greedy(
    problem: Problem, lists: list[list[int]], order: IntArray, limits: list[int], pools: list[list[int]], fixed: bool
) -> tuple[IntArray, IntArray]: ...
def usmp_hill_climb(
    problem: Problem,
    lists: list[list[int]],
    order: IntArray,
    goal: int,
    limits: list[int],
    pools: list[list[int]],
    fixed: bool,
    attempts: int,
    seconds: float,
    seed: int,
) -> tuple[IntArray, IntArray, int, _Ended]: ...
def glibc_random(seed: int, count: int) -> list[int]: ...
def triton_place(problem: Problem, order: IntArray) -> tuple[IntArray, int]: ...
def xla_best_fit(problem: Problem, group: IntArray, order: IntArray, own_sizes: bool, limit: int) -> IntArray: ...
def xla_fast_merge(problem: Problem, heap_alignment: int) -> IntArray: ...
def somas_place(
    problem: Problem,
    node: IntArray,
    block: IntArray,
    chain: IntArray,
    order: IntArray,
    *,
    smallest: bool,
    single: bool,
    same_gap: bool,
) -> IntArray: ...
def idealloc_place(
    problem: Problem, target: int, seed: int, steps: int, seconds: float
) -> tuple[_Ended, IntArray, int, float, int]: ...
def idealloc_theorem2(start: IntArray, end: IntArray, height: int, epsilon: float, seed: int) -> list[int]: ...
def telamalloc_decide(
    problem: Problem,
    capacity: int,
    without: list[str],
    stuck_after: int,
    trees: IntArray,
    learned_after: int,
    steps: int,
    seconds: float,
) -> tuple[_Ended, IntArray, int]: ...
def telamalloc_backtracks(
    problem: Problem,
    capacity: int,
    without: list[str],
    stuck_after: int,
    trees: IntArray,
    learned_after: int,
    steps: int,
    most: int,
    every: int,
) -> tuple[_Ended, int, int, int, list[tuple[IntArray, IntArray, IntArray]]]: ...
def telamalloc_phases(problem: Problem) -> list[int]: ...
def minimalloc_decide(
    problem: Problem, capacity: int, orders: list[str], without: list[str], steps: int, seconds: float
) -> tuple[_Ended, IntArray, int]: ...
def pack_groups(
    problem: Problem, tries: int, seconds: float, enough: int, seed: int
) -> tuple[IntArray, int, _Ended, int]: ...
def joined_rows(
    parts: list[tuple[IntArray, IntArray, int]], groups: int, ticks_from: int, ticks_until: int
) -> IntArray: ...

class GroupProblem:
    groups: int
    load: int
    def __init__(self, lives: IntArray, groups: int, alignment: int, scratch: IntArray) -> None: ...
    def __len__(self) -> int: ...
    def relate(self, overlaps: IntArray, values: IntArray) -> None: ...
    def pack(self, tries: int, seed: int, known: list[int], bound: int) -> tuple[list[int], int, int, _Ended]: ...
    def columns(
        self,
    ) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]: ...

class RowPlan:
    scratch: list[int]
    capacities: list[int]
    def problem(self) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]: ...
    def steps(self, bases: list[int]) -> list[list[int]]: ...

class RowGraph:
    def __init__(
        self,
        values: IntArray,
        operators: IntArray,
        operands: IntArray,
        results: IntArray,
        parts: IntArray,
        in_place: IntArray,
        members: IntArray,
        count: int,
        pushed: bool,
    ) -> None: ...
    def load(self, first: int, end: int, parts: int, backward: bool, most: int) -> tuple[int, bool]: ...
    def height(
        self, first: int, end: int, parts: int, backward: bool, tries: int, enough: int, seed: int
    ) -> tuple[int, _Ended]: ...
    def plan(self, choices: IntArray) -> RowPlan: ...

class StripePrices:
    iteration: float
    most_tiles: int
    def __init__(self, kept: IntArray, times: FloatArray, added: FloatArray, most_joined: int) -> None: ...

class Stretch:
    def __init__(
        self, operators: IntArray, maps: IntArray, reads: IntArray, turned: IntArray | None = None
    ) -> None: ...
    def rows(
        self, cuts: list[int], pad: list[int], kept: list[int], rolling: bool, backward: bool
    ) -> tuple[int, IntArray, IntArray, IntArray] | str: ...
    def price(
        self,
        cuts: list[int],
        pad: list[int],
        kept: list[int],
        rolling: bool,
        backward: bool,
        prices: StripePrices,
        across: int,
    ) -> tuple[int, int, int, int, float] | None: ...
    def loop_rows(
        self, rows: int, trim_late: bool, layers: IntArray | None = None
    ) -> tuple[list[int], IntArray, IntArray, IntArray] | str: ...
    def loop_price(
        self, rows: int, trim_late: bool, layers: IntArray | None, columns: int, prices: StripePrices, across: int
    ) -> tuple[int, int, int, int, float] | None: ...
    def carried_rows(self, rows: int, most: int) -> tuple[int, IntArray, list[int]] | str: ...
    def carrying_price(
        self, rows: int, prices: StripePrices, across: int
    ) -> tuple[int, int, int, int, float] | None: ...

class StretchSweep:
    def __init__(self, peaks: IntArray, stretches: IntArray, times: list[float]) -> None: ...
    def cheapest(self, target: int, price: float) -> list[int] | None: ...

def byte_lives(accesses: IntArray) -> IntArray: ...
