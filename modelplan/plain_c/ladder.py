"""The ladder to plain C: whole maps, maps that run into each other, rows in rings, and parts of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from math import inf

from modelplan.answers.proof_outcomes import Verdict
from modelplan.checking.verifier.c_rows import rows_verdict
from modelplan.checking.verifier.rewrites.reading import read_source
from modelplan.model.c_program import CProgram, StageChoice
from modelplan.plain_c import C_RUNGS, TIME_PER_RAM
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.instruction_counts import are_counted, expected_instructions
from modelplan.plain_c.kernel_records import COperator
from modelplan.plain_c.rows.placing_rows import placed_program
from modelplan.plain_c.rows.repeating import repeated_rows
from modelplan.plain_c.rows.row_graph import RowGraph
from modelplan.plain_c.rows.spare_memory import with_spare_scratch
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.plain_c.rows.stage_search import StageSearch, branch_by_branch
from modelplan.plain_c.rows.tile_search import TileSearch
from modelplan.plain_c.writing.c_source import CFiles, CNames, c_files, c_sizes
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.primitives.showing_answers import Shown
from modelplan.rewriting.stripes.ladder import RewriteGoal, chosen_rung, climb_rungs, never_interrupt

#: The rungs whose instructions are weighed.
_DEAR = ("parts", "again")


@dataclass(frozen=True, slots=True, kw_only=True)
class CGoal(RewriteGoal):
    """What is asked for: `pushed` says that the input comes row by row and is not held, `max_flash` bounds tables.

    `max_macs` and `max_time` are the shares of work and of time that may be added; one that is 0 does
    not count where the other is not. With neither only little is computed again. `time_per_ram` are the percents of
    instructions that a percent of RAM is worth where rows are cut into parts and no budget asks for it.
    """

    max_time: float = 0.0
    pushed: bool = False
    max_flash: int | None = None
    time_per_ram: float = TIME_PER_RAM
    seed: int = 0


@dataclass(frozen=True, repr=False)
class CRung(Shown):
    """A plan as C: `ram` are all bytes of static memory, `flash` those of its tables, `operators` those that run.

    `bound` is what no other stages of as many parts, in this order, need less than; None: that is not known. `macs` and
    `time` are the shares that are added, `instructions` those that a run is expected to take; None: that is not known.
    `weighed` are these too, or what is weighed in their place where kernels were not counted.
    """

    name: str
    model: CModel
    program: CProgram
    names: CNames
    ram: int
    flash: int
    parts: int
    operators: Mapping[int, COperator]
    bound: int | None = None
    macs: float = 0.0
    time: float = 0.0
    instructions: int | None = None
    weighed: int | None = None

    @cached_property
    def files(self) -> CFiles:
        """The text of its source and of its header."""
        return c_files(self.model.file, self.operators, self.program, self.names)

    @property
    def fused(self) -> tuple[int, ...]:
        """How many operators run together, for each stage of several."""
        return tuple(len(stage.operators) for stage in self.program.stages if len(stage.operators) > 1)


@dataclass(frozen=True, repr=False)
class CLadder(Shown):
    """The rungs, the chosen one if any fits, the verdicts of its proof, and whether somebody ended the search.

    `dear` is a rung that fits and was not taken, as its RAM is not worth its instructions.
    """

    rungs: tuple[CRung, ...]
    chosen: CRung | None
    proof: tuple[Verdict, ...] = ()
    interrupted: bool = False
    dear: CRung | None = None


def c_ladder(
    model: CModel,
    goal: CGoal,
    names: CNames,
    report: Report = report_nothing,
    check: Callable[[], None] = never_interrupt,
) -> CLadder:
    """The rungs up to the first that fits a budget, with no budget all of them.

    `check` is called often once there is a rung; it ends the search by KeyboardInterrupt, as somebody who presses
    Ctrl-C does, after which the best so far is the answer.

    Raises:
        ModelError: nothing of the model is computed, or one of its ends is a constant.
        RequestError: a rung that there is not, or rows are asked for where the input has none.
        BrokenPlanError: the chosen plan does not compute what the model does; never to be seen.
    """
    from modelplan.plain_c.stated_plan import stated_verdict

    rungs, interrupted = list[CRung](), False

    def check_behind_first() -> None:
        if rungs:
            check()

    try:
        _climb(model, goal, names, report, rungs, check=check_behind_first)
    except KeyboardInterrupt:
        if not rungs:
            raise
        interrupted = True
    chosen = _chosen(rungs, goal)
    if chosen is None:
        return CLadder(tuple(rungs), None, interrupted=interrupted)
    verdict = stated_verdict(model, chosen.files.source, chosen.files.header)
    _require_ok(model, verdict)
    dear = next((rung for rung in _dear(rungs, goal) if rung.ram < chosen.ram), None)
    return CLadder(tuple(rungs), chosen, (verdict,), interrupted, dear)


def least_rung(model: CModel, goal: CGoal, most_stages: int | None = None, *, proved: bool = True) -> CRung:
    """The rung that needs least, with no budget; no text of it is written. `proved`: its steps are.

    Raises:
        ModelError, RequestError, BrokenPlanError: as `c_ladder`.
        TooManyStagesError: a search for rows had to look at more than `most_stages`.
    """
    rungs, goal = list[CRung](), replace(goal, budget=None)
    _climb(model, goal, CNames("net", "net.h"), report_nothing, rungs, most_stages)
    chosen = _chosen(rungs, goal)
    if chosen is None:
        raise ModelError(f"{model.file.name}: no rung keeps the caps")
    if proved:
        _require_ok(model, rows_verdict(read_source(model.file), chosen.program))
    return chosen


def _climb(
    model: CModel,
    goal: CGoal,
    names: CNames,
    report: Report,
    rungs: list[CRung],
    most_stages: int | None = None,
    check: Callable[[], None] = never_interrupt,
) -> None:
    """Adds the rungs that are tried."""
    _check(model, goal)
    tried = _rungs(model, goal, names, report, rungs, most_stages, check)
    climb_rungs(tried, rungs, goal, partial(_fits, goal), lambda rung: rung.ram, report)


def _chosen(rungs: Sequence[CRung], goal: CGoal) -> CRung | None:
    """The rung that fits and is worth its instructions, if any does."""
    dear = _dear(rungs, goal)
    worth = [rung for rung in rungs if rung not in dear]
    return chosen_rung(worth, goal, partial(_fits, goal), lambda rung: rung.ram)


def _dear(rungs: Sequence[CRung], goal: CGoal) -> list[CRung]:
    """The rungs that keep the caps and take more instructions than their RAM is worth, where no budget asks for it."""
    if goal.budget is not None:
        return []
    return [rung for rung in rungs if _fits(goal, rung) and _is_dear(rung, rungs, goal)]


def _is_dear(rung: CRung, rungs: Sequence[CRung], goal: CGoal) -> bool:
    """Whether a rung takes more instructions than the RAM is worth that it saves; finer parts beside coarser ones."""
    whole = [other for other in rungs if other.name not in _DEAR and _fits(goal, other)]
    least = min(whole, key=lambda other: other.ram, default=None)
    if rung.name not in _DEAR or least is None:
        return False
    more, saved = _exchanged(rung, least)
    effort = goal.effort.c
    coarse = min((o for o in rungs if o.parts == min(rung.parts, effort.parts)), key=lambda other: other.ram)
    finer, less = _exchanged(rung, coarse)
    worth, worth_finer = goal.time_per_ram * saved, goal.time_per_ram * effort.finer_worth * less
    return more > max(effort.little_time, worth) or finer > max(0.0, worth_finer)


def _exchanged(rung: CRung, other: CRung) -> tuple[float, float]:
    """The shares of instructions that a rung takes more than another one, and of RAM that it needs less."""
    more = rung.weighed / other.weighed - 1 if rung.weighed and other.weighed else 0.0
    return more, 1 - rung.ram / other.ram


def _require_ok(model: CModel, verdict: Verdict) -> None:
    """Checks what was found out about the chosen rung."""
    if verdict.outcome != "ok":
        raise BrokenPlanError(f"{model.file.name}: the plan is not right: {verdict.details}")


def _fits(goal: CGoal, rung: CRung) -> bool:
    small = goal.max_flash is None or rung.flash <= goal.max_flash
    return small and (goal.budget is None or rung.ram <= goal.budget)


def _check(model: CModel, goal: CGoal) -> None:
    unknown = sorted(goal.without - set(C_RUNGS))
    if unknown:
        raise RequestError(f"no rung {unknown[0]!r}; there are: {', '.join(C_RUNGS)}")
    if not model.rows.order:
        raise ModelError(f"{model.file.name}: holds no operator that computes, so that there is nothing to write as C")
    for tensor in model.graph.inputs:
        if tensor not in model.rows.value_of:
            name = model.graph.tensors[tensor].name
            raise ModelError(f"{model.file.name}: input {name!r} is a constant, which plain C takes from nobody")
    if (goal.max_macs or goal.max_time) and model.kernels != "portable":
        raise RequestError(
            f"only portable kernels compute values again, not {model.kernels}: leave out the work to add"
        )
    if goal.pushed and len(model.graph.inputs) != 1:
        raise RequestError(f"{model.file.name} has {len(model.graph.inputs)} inputs; rows are handed over for one")


def _rungs(
    model: CModel,
    goal: CGoal,
    names: CNames,
    report: Report,
    before: Sequence[CRung],
    most_stages: int | None,
    check: Callable[[], None],
) -> Iterator[CRung]:
    """The rungs from the first one on; those that were tried are in `before`."""
    other = branch_by_branch(model.rows)
    graphs = [StagedGraph(r, goal.pushed, check) for r in ((model.rows, other) if other.other_order else (other,))]
    effort = goal.effort.c
    searches = [StageSearch(graph, goal.seed, most_stages, effort) for graph in graphs]
    single = tuple(StageChoice(i, i + 1, 0) for i in range(len(model.rows.order)))
    if "maps" not in goal.without:
        report("whole maps")
        tries = min(effort.whole_tries, effort.whole_pairs // len(model.rows.values) ** 2 + 1)
        yield _rung("maps", model, placed_program(graphs[0], single, tries, goal.seed), names, budget=goal.budget)
    if "overlaps" not in goal.without:
        report("overlaps")
        program = searches[0].program([replace(stage, parts=1) for stage in single])
        yield _rung("overlaps", model, program, names, budget=goal.budget)
    if "rows" not in goal.without:
        report("rows")
        yield from (_row_rung(model, goal, names, s) for s in _worth_trying(searches, before, "rows", 1))
    least = inf
    if "again" not in goal.without and model.kernels == "portable":
        report("maps that are recomputed")
        if rung := _repeated_rung(model, goal, names, _by_bound(searches, 1)[0]):
            least = rung.ram if goal.budget is None and _fits(goal, rung) else inf
            yield rung
    if "parts" not in goal.without and _has_columns(model.rows):
        for search in _worth_trying(searches, before, "parts", effort.parts):
            if least == inf or search.least_load(effort.parts, *effort.finer_parts) < least:
                yield from _parted_rungs(model, goal, names, report, search)
    if "tiles" not in goal.without and (goal.max_macs or goal.max_time):
        report("tiles")
        search = _by_bound(searches, effort.parts)[0]
        least_bytes = min((rung.program.nbytes for rung in before if _fits(goal, rung)), default=0)
        yield from _tiled_rungs(model, goal, names, search, least_bytes, check)


def _has_columns(rows: RowGraph) -> bool:
    """Whether there are rows of several places, which can be cut into parts."""
    return any(rows.shape(tensor).columns > 1 for value in rows.values for tensor in value.tensors)


def _by_bound(searches: Sequence[StageSearch], parts: int) -> list[StageSearch]:
    """The search in the model's order, behind the one in another order where that could save memory."""
    own, *others = searches
    enough = (1 - own.effort.gain) * own.least_load(parts)
    lower = [other for other in others if other.least_load(parts) < enough]
    return [*lower, own]


def _worth_trying(
    searches: Sequence[StageSearch], before: Sequence[CRung], name: str, parts: int
) -> Iterator[StageSearch]:
    """Those that could need less than the rungs of a name which there are when each is asked for."""
    for search in _by_bound(searches, parts):
        if all(search.least_load(parts) < rung.program.nbytes for rung in before if rung.name == name):
            yield search


def _row_rung(model: CModel, goal: CGoal, names: CNames, search: StageSearch) -> CRung:
    """The plan by rows."""
    bound = search.least_load(1)
    program = search.least_program(1)
    return _rung("rows", model, program, names, 1, bound, search.graph.rows, goal.budget)


def _parted_rungs(model: CModel, goal: CGoal, names: CNames, report: Report, search: StageSearch) -> Iterator[CRung]:
    """The plans by parts of rows; more parts than usual where these need less."""
    effort = search.effort
    for parts in (effort.parts,) if goal.budget is None else (effort.few_parts, effort.parts):
        report(f"rows in {parts} parts")
        program, bound = search.least_program(parts), search.least_load(parts)
        yield _rung("parts", model, program, names, parts, bound, search.graph.rows, goal.budget)
    for parts in effort.finer_parts:
        report(f"rows in {parts} parts")
        bound = search.least_load(effort.parts, parts)
        if bound > (1 - effort.gain) * program.nbytes:
            break
        finer = search.finer(program, parts)
        if finer.nbytes < program.nbytes:
            program = finer.program()
            yield _rung("parts", model, program, names, parts, bound, search.graph.rows, goal.budget)


def _repeated_rung(model: CModel, goal: CGoal, names: CNames, search: StageSearch) -> CRung | None:
    """The plan by rows of a graph in which operators run again, where that saves memory."""
    asked = goal.max_macs or goal.max_time
    most = (goal.max_macs or inf, goal.max_time or inf) if asked else (search.effort.little_work,) * 2
    if not (repeated := repeated_rows(search, *most)):
        return None
    again = StageSearch(StagedGraph(repeated.rows, goal.pushed, search.graph.check), goal.seed, effort=search.effort)
    program, bound = again.least_program(1), again.least_load(1)
    rung = _rung("again", model, program, names, 1, bound, repeated.rows, goal.budget)
    return replace(rung, macs=repeated.macs, time=repeated.time)


def _tiled_rungs(
    model: CModel, goal: CGoal, names: CNames, by_rows: StageSearch, least_bytes: int, check: Callable[[], None]
) -> Iterator[CRung]:
    """The plans by tiles of least memory; with a budget those of little work first.

    They need less than what plans by rows can; where none does, less than the least of these that there is.
    """
    most = goal.max_macs or inf, goal.max_time or inf
    effort = by_rows.effort
    search = TileSearch(by_rows.graph.rows, goal.pushed, *most, check, effort)
    if goal.budget is None:
        tops = by_rows.least_load(effort.parts), least_bytes
        lowest = next(filter(None, (list(search.least(low, top)) for low, top in pairwise([0, *tops]))), [])
        plans = {(t.stages, t.macs): t for t in lowest}.values()
        ranked = sorted(plans, key=lambda t: placed_program(t.graph, t.stages, effort.tries, goal.seed).nbytes)
        tried = ranked[: effort.tiled]
    else:
        tried = [tiled for share in effort.shares if (tiled := search.allowed(int(goal.budget * share)))]
    for tiled in tried:
        program = StageSearch(tiled.graph, goal.seed, effort=effort).program(tiled.stages)
        rung = _rung("tiles", model, program, names, rows=tiled.graph.rows)
        yield replace(rung, macs=tiled.macs, time=tiled.time)


def _rung(
    name: str,
    model: CModel,
    program: CProgram,
    names: CNames,
    parts: int = 1,
    bound: int | None = None,
    rows: RowGraph | None = None,
    budget: int | None = None,
) -> CRung:
    rows = rows or model.rows
    program = replace(program, kernels=model.kernels)
    room = 0
    if budget is not None:
        room = max(budget - c_sizes(model.file, model.operators_of(rows, program, {}), program).ram, 0)
    program, faster = with_spare_scratch(program, rows, model.faster, room)
    operators = model.operators_of(rows, program, faster)
    sizes = c_sizes(model.file, operators, program)
    weighed = expected_instructions(program, operators)
    instructions = weighed if are_counted(program, operators) else None
    return CRung(
        name, model, program, names, sizes.ram, sizes.tables, parts, operators, bound, 0.0, 0.0, instructions, weighed
    )
