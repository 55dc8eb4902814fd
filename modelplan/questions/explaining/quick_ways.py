"""Ways to need less that take no time to find, for the end of `analyze`.

Known alternatives and the quick changes; beside them kernels, plain C, and how long `fit` takes.
"""

import shlex
from collections.abc import Iterator, Sequence

from modelplan.answers.analysis import Search
from modelplan.answers.explanation import Needs, Suggestion, Way
from modelplan.formats.unpacking import inner_stem
from modelplan.model import Alternative, Graph, Kind, Plan, Requirement, bounds
from modelplan.model.model_file import ModelFile, Target, without_options
from modelplan.ops import facts
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.questions.c_fitting import CForm, planned_c, rows_of_c
from modelplan.questions.explaining.plain_c import c_command, c_kernels
from modelplan.questions.explaining.ranking import advice, ranked
from modelplan.questions.explaining.subjects import Measure, subject_of
from modelplan.rewriting.striped_tflite.rungs import why_unplannable
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm.file import read_tflite


def has_quick_changes(file: ModelFile, target: Target) -> bool:
    """Whether `quick_changes` tries any change on this file.

    Runtimes of which only the planned activations are known are planned anew for each change, which takes its time:
    there the alternatives are all.
    """
    return target.runtime.requires is not None and file.graph.format in target.runtime.runs


def quick_changes(file: ModelFile, target: Target, needed: Requirement, unmodified: Plan) -> tuple[Suggestion, ...]:
    """The quick changes that need less memory; changes of single operators only at the peak."""
    if not has_quick_changes(file, target):
        return ()
    start = Measure(needed.arena, needed.head, whole=True)
    return advice(subject_of(file, target), start, effort=0, at=at_the_peak(unmodified)).suggestions


def with_alternatives(
    tried: Sequence[Suggestion], lower: Sequence[Alternative], needed: Requirement
) -> tuple[Suggestion, ...]:
    """These changes and the alternatives that need less, ranked."""
    return ranked([*(_suggestion(alternative, needed) for alternative in lower), *tried])


def _suggestion(alternative: Alternative, needed: Requirement) -> Suggestion:
    """An alternative that needs less, as a suggestion: these are free."""
    assert alternative.requirement is not None
    arena, head = alternative.requirement.arena, alternative.requirement.head
    saved = needed.arena - arena, needed.head - head
    return Suggestion((alternative.change,), arena, head, *saved, (), Needs.NOTHING, alternative.commands, way=Way.PLAN)


def at_the_peak(plan: Plan) -> frozenset[int]:
    """The operators that make or read what is alive at the peak."""
    alive = bounds.alive_at(plan.problem, bounds.peak_step(plan.problem))
    tensors = [member.tensor for i in alive for member in plan.problem[int(i)].members]
    ops = (op for t in tensors for op in (plan.graph.producers[t], *plan.graph.readers[t]))
    return frozenset(op for op in ops if op >= 0)


#: What a plan of plain C takes at most, of rows and of whole maps: about a tenth of a second.
_MOST_OPERATORS, _MOST_BYTES, _MOST_ROWS = 60, 310_000, 8_000
#: Operators of larger models whose kernels in C are looked up, to say how long plain C takes.
_MOST_READ = 150
#: Maps of several rows below which no stripes are found.
_FEW_MAPS = 2
#: Seconds of a search for stripes: for any network, and for so many more maps of several rows one more.
_STRIPES, _MAPS_IN_A_SECOND = 20, 5
#: Seconds of the search for plain C: for any network, and for so many more rows of all stages one more.
_PLAIN_C, _ROWS_IN_A_SECOND = 5, 10_000
#: A saving of less than this share of the memory is not worth a line.
_WORTH = 100


def named_kernels(file: ModelFile, target: Target, needed: Requirement) -> tuple[Suggestion, ...]:
    """The kernel library that needs least, where none was named and another one decides the number."""
    runs = [library for library in needed.libraries if not library.refusals]
    least = min(runs, key=lambda library: library.arena, default=None)
    if least is None or least.arena >= needed.arena:
        return ()
    words = (*without_options(target.words, "--kernels"), "--kernels", least.library)
    command = shlex.join(("modelplan", file.path, *words))
    saved = needed.arena - least.arena, needed.head - least.head
    name = f"your kernels named: {least.library}"
    cost = "others: the table above"
    return (Suggestion((name,), least.arena, least.head, *saved, (cost,), Needs.PLATFORM, (command,), way=Way.KERNELS),)


def is_quick(file: ModelFile) -> bool:
    """Whether plain C of a file is planned in about a tenth of a second."""
    return len(file.graph.ops) <= _MOST_OPERATORS and len(file.content) <= _MOST_BYTES


def as_plain_c(file: ModelFile, target: Target, needed: Requirement) -> tuple[Suggestion, ...]:
    """Plain C where that needs less and is planned in little time; `fit` writes it in no more bytes."""
    if not _for_tflm(file, target, needed) or not is_quick(file):
        return ()
    try:
        rung = planned_c(file, CForm(c_kernels(target)), _MOST_ROWS, proved=False)
    except (ModelError, RequestError, BrokenPlanError):  # the command says why there is none
        return ()
    if rung.ram >= needed.arena:
        return ()
    command = c_command(file.path, target)
    saved = needed.arena - rung.ram, needed.head - rung.program.nbytes
    name = "plain C" if rung.name == "rows" else "plain C of whole maps, by rows perhaps less"
    return (Suggestion((name,), rung.ram, rung.program.nbytes, *saved, ("no TFLM",), Needs.PLATFORM, (command,),
                       way=Way.C_HELD),)  # fmt: skip


def searches(file: ModelFile, target: Target, needed: Requirement, capacity: int | None) -> Iterator[Search]:
    """The searches of `fit` that may find what needs less; none that is known to bring nothing.

    Orders and plans, which take no search, are suggestions of their own, and so is plain C where it was planned.
    """
    if target.runtime.name == C.name and not needed.refusals:
        seconds = _c_seconds(file, target.runtime.kernels)
        yield Search(Way.C_HELD, "rows in parts", seconds, fit_command(file.path, target, needed, capacity))
    if not _for_tflm(file, target, needed):
        return
    graph = file.graph
    provable = not needed.guessed  # nothing is proved of operators that nobody has stated
    plannable = provable and not why_unplannable(read_tflite(file.content, file.path), graph)
    if plannable and (striped := _striped_maps(graph)):
        least = _least_head(graph)
        if striped >= _FEW_MAPS and _WORTH * (needed.head - least) >= needed.arena:
            seconds = _STRIPES + striped // _MAPS_IN_A_SECOND
            command = fit_command(file.path, target, needed, capacity)
            yield Search(Way.FILE, "a rewritten file", seconds, command)
    if not is_quick(file):
        yield from c_search(file, target)


def c_search(file: ModelFile, target: Target, *goal: str) -> Iterator[Search]:
    """The search of `fit` for plain C; none where operators have no C, or too many would have to be looked up."""
    if len(file.graph.ops) > _MOST_READ:
        return
    try:
        seconds = _c_seconds(file, c_kernels(target))
    except (ModelError, RequestError):  # operators of it have no C
        return
    yield Search(Way.C_HELD, "plain C", seconds, c_command(file.path, target, *goal))


def fit_command(path: str, target: Target, needed: Requirement, capacity: int | None) -> str:
    """The command that rewrites the file for the target: to a capacity in which it does not fit, else to the least."""
    goal = ("--least",) if capacity is None or needed.fits(capacity) else ("--budget", str(capacity))
    output = f"{inner_stem(path)}{'.c' if target.runtime.name == C.name else '_fitted.tflite'}"
    words = without_options(target.words, "--alignment", "--pad")
    return shlex.join(("modelplan", "fit", path, *words, *goal, "-o", output))


def _c_seconds(file: ModelFile, kernels: str) -> int:
    return _PLAIN_C + rows_of_c(file, kernels) // _ROWS_IN_A_SECOND


def _for_tflm(file: ModelFile, target: Target, needed: Requirement) -> bool:
    """Whether it is a file whose plan TFLM follows, and that it runs."""
    whole = target.runtime.offline_plans and file.graph.format == target.runtime.default_for
    return whole and bool(needed.macro) and not needed.refusals


def _striped_maps(graph: Graph) -> int:
    """How many operators make maps of several rows that stripes can take one by one."""
    shapes = (graph.tensors[op.writes[0]].shape for op in graph.ops if op.writes and facts("tflite", op.kind).rows)
    return sum(len(shape) == 4 and max(shape[1:3]) > 1 for shape in shapes)


def _least_head(graph: Graph) -> int:
    """Bytes that every file keeps: all inputs, all outputs, and the operands or results of what no stripes take."""

    def size(tensors: tuple[int, ...]) -> int:
        return sum(graph.tensors[t].nbytes for t in set(tensors) if graph.tensors[t].kind is not Kind.CONSTANT)

    whole = [op for op in graph.ops if not facts("tflite", op.kind).rows]
    ends = [graph.inputs, graph.outputs, *(op.reads for op in whole), *(op.writes for op in whole)]
    return max(map(size, ends), default=0)
