"""The table of changes that may lower what a model needs: one row and one small pure function for each.

Rows stand in the order in which several changes are made together.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from modelplan import runtimes
from modelplan.answers.explanation import Needs, Way
from modelplan.formats import load_model
from modelplan.model import Graph, Kind
from modelplan.model.model_file import ModelFile, without_options
from modelplan.plain_c import LAYOUTS
from modelplan.plain_c.kernel_records import MissingKernelError
from modelplan.planning import pipeline
from modelplan.planning.lifetimes import tensor_spans
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.questions.explaining import operator_edits
from modelplan.questions.explaining.edits import Edit
from modelplan.questions.explaining.plain_c import CChange, c_words, in_plain_c
from modelplan.questions.explaining.shapes import (
    FixedShapeError,
    Shape,
    resized_inputs,
    shapes_for,
    single_inputs,
    with_inputs,
)
from modelplan.questions.explaining.subjects import (
    APART,
    OWN,
    PINNED,
    ModelSubject,
    OutOfTimeError,
    RefusedChangeError,
    require_editable,
    with_edit,
    with_order,
)
from modelplan.rewriting import reordering
from modelplan.rewriting.striped_tflite.interface import outer_conversions, with_interface
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.c import C
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import find_libraries, is_group
from modelplan.runtimes.tflm.planner import read_plan, requests

if TYPE_CHECKING:
    from modelplan.rewriting.striped_tflite.ladder import Ladder

#: Where a change is made: an operator of the file or several of them, the name of a variant, or "" where there is one
#: place only.
Place = int | tuple[int, ...] | str

#: Plans of stripes that are built before the best so far is the answer, at most, and operators in all of them together;
#: `fit` itself goes on.
_MOST_PLANS, _MOST_OPERATORS = 100, 2_500
#: A search of fewer plans starts from the lowest one of the file without the conversions at its ends. `fit` tries many
#: times as many plans of such a model; of a smaller one it might miss that plan.
_FEW_PLANS = 50
#: The largest model for which files are tried where no time is stated: its operators, the bytes of all its values, each
#: of which is followed, and pairs of values that are alive together.
_TRIED_OPERATORS, _TRIED_BYTES, _TRIED_PAIRS = 1_500, 2**27, 400_000

#: So many operators of several are named.
_NAMED = 3

#: Commands that write nothing which a later one reads.
_ANALYZE = "modelplan analyze "


@dataclass(frozen=True, slots=True)
class TriedChange:
    """One way to need less.

    Args:
        name: what it is called.
        applies: returns the places of a model where it can be tried, or whether it has a meaning where there is one
            place only.
        make: returns the changed model, given the model and one place; raises `RefusedChangeError`.
        cost: what it costs, in words.
        needs: what it asks for.
        how: the command to paste, with {file}, {out}, {place} and sets of options, or what to do where none does it.
        output: what the command calls the file that it writes; empty where it writes none.
        group: of the changes of one group a model takes one; empty: it goes with all others.
        effort: 0 takes milliseconds and is also tried by `analyze`, 1 plans anew, 2 searches.
        way: what it exchanges.
        alone: whether it goes with no other change.
    """

    name: str
    applies: Callable[[ModelSubject], Sequence[Place] | bool]
    make: Callable[[ModelSubject, Place], ModelSubject]
    cost: str
    needs: Needs
    how: str
    output: str = ""
    group: str = ""
    effort: int = 0
    way: Way = Way.MODEL
    alone: bool = False

    def places(self, subject: ModelSubject) -> Sequence[Place]:
        """Where it can be tried."""
        places = self.applies(subject)
        return places if not isinstance(places, bool) else ("",) if places else ()


def apply_change(change: TriedChange, subject: ModelSubject, place: Place) -> ModelSubject:
    """The subject after a change, with the change's command or description and costs added."""
    try:
        after = change.make(subject, place)
    except MissingKernelError as problem:
        first, *more = problem.lines
        raise RefusedChangeError(first + (f"; and {len(more)} more kinds" if more else "")) from None
    except (ModelError, RequestError, BrokenPlanError, FixedShapeError) as problem:
        raise RefusedChangeError(str(problem)) from None
    cost = change.cost
    if subject.target.runtime.name == C.name:  # which is there already
        cost = cost.removesuffix(_NO_TFLM).removesuffix("; ")
    costs = tuple(dict.fromkeys((*after.costs, *([cost] if cost else []))))
    written = _filled_words(change, subject, place)
    if not written.startswith("modelplan "):
        return replace(after, todo=(*after.todo, written), costs=costs)
    file = change.output.format(format=subject.graph.format) or after.file
    kept = after.commands if change.output else tuple(c for c in after.commands if not c.startswith(_ANALYZE))
    return replace(after, commands=(*kept, written), file=file, costs=costs)


def _filled_words(change: TriedChange, before: ModelSubject, place: Place) -> str:
    """The change's command or description, with its blanks filled."""
    given, bound = before.target.build, ("--dim", "--shape", "--value")
    onnx = before.graph.format == "onnx"
    sets: dict[str, Sequence[str]] = {
        "reading": _option_words(before, bound),
        "planning": _option_words(before, (*bound, "--alignment", "--pad")),
        "ordering": without_options(before.target.words, "--abi"),
        "device": without_options(given, "--kernels"),
        "build": given,
        "library": c_words(before.target),
        "extents": _option_words(before, ("--dim", "--shape")) if onnx else (),
        "layout": ("--layout", LAYOUTS[1]) if onnx else (),  # in which maps have rows
    }
    return change.how.format(
        file=shlex.quote(before.file),
        out=change.output.format(format=before.graph.format),
        place=place_name(before, place),
        runtime=before.target.runtime.name,
        **{name: "".join(f" {shlex.quote(word)}" for word in words) for name, words in sets.items()},
    )


def _option_words(subject: ModelSubject, names: Sequence[str]) -> list[str]:
    """The user's options with these names, as text for a command line."""
    given = subject.target.options
    return [word for pair in zip(given[::2], given[1::2], strict=True) if pair[0] in names for word in pair]


def place_name(subject: ModelSubject, place: Place) -> str:
    """How messages call a place."""
    if isinstance(place, str):
        return place
    if isinstance(place, tuple):
        kinds = {subject.graph.ops[subject.place(op)].kind: None for op in place if op in subject.places}
        more = f" and {len(place) - _NAMED} more" if len(place) > _NAMED else ""
        return " ".join((f"ops {', '.join(map(str, place[:_NAMED]))}{more}", *kinds))
    return subject.graph.label(subject.place(place)) if place in subject.places else f"op {place}"


# -- operators that go -------------------------------------------------------------------------------------------------


def _finds(find: Callable[[Graph], Sequence[int]]) -> Callable[[ModelSubject], Sequence[Place]]:
    return lambda subject: [subject.ops[i] for i in find(subject.graph)]


def _structural(edit: Callable[[Graph, int], tuple[Edit, str]]) -> Callable[[ModelSubject, Place], ModelSubject]:
    """The change that `edit` makes at one operator, at one or several of them."""

    def make(subject: ModelSubject, place: Place) -> ModelSubject:
        for op in place if isinstance(place, tuple) else (int(place),):
            change, said = edit(subject.graph, subject.place(op))
            after = with_edit(subject, change)
            subject = replace(after, costs=(*after.costs, said))
        return subject

    return make


# -- other inputs and types --------------------------------------------------------------------------------------------


def _batched(subject: ModelSubject) -> bool:
    graph = subject.graph
    batches = {graph.tensors[t].shape[0] for t in graph.inputs if graph.tensors[t].shape}
    return len(batches) == 1 and max(batches) > 1


def _with_input_shapes(
    inputs: Callable[[FileModel], dict[int, Shape]], of_onnx: Callable[[Shape], Shape]
) -> Callable[[ModelSubject, Place], ModelSubject]:
    """The change that reads the model for inputs of other shapes."""

    def make(subject: ModelSubject, _: Place) -> ModelSubject:
        require_editable(subject)
        if subject.model is None:
            return with_inputs(subject, of_onnx)
        shapes = shapes_for(subject.model, inputs(subject.model))
        windows = {op: {"filter_height": h, "filter_width": w} for op, (h, w) in shapes.windows.items()}
        names = ", ".join(subject.graph.label(op) for op in windows)
        after = with_edit(subject, Edit(shapes=shapes.shapes, options=windows))
        return replace(after, costs=(*after.costs, *([f"{names} still covers the whole map"] if names else [])))

    return make


def _halved(shape: Shape) -> Shape:
    """The shape of an ONNX map with half the height and width; other shapes are unchanged."""
    return (*shape[:2], shape[2] // 2, shape[3] // 2) if len(shape) == 4 else shape


def _typed(dtype: str) -> Callable[[ModelSubject, Place], ModelSubject]:
    return lambda subject, _: with_edit(subject, operator_edits.quantised(subject.graph, dtype))


# -- order, kernels, runtime -------------------------------------------------------------------------------------------


def _orderable(subject: ModelSubject) -> bool:
    return not subject.target.runtime.sorts and len(subject.graph.ops) > 1


def _ordered(subject: ModelSubject, _: Place) -> ModelSubject:
    if subject.model is not None and read_plan(subject.model) is not None:
        raise RefusedChangeError("the file carries a plan for its present order; reorder the model without it")
    precedences: tuple[tuple[int, int], ...] = ()
    if subject.source is not None:
        precedences = reordering.file_precedences(subject.source.content, subject.graph)
    elif subject.graph.format == "onnx":
        raise RefusedChangeError("what the file orders is known only for the unmodified file")
    plan = pipeline.plan_on(subject.graph, subject.target.runtime, Options(precedences=precedences))
    return with_order(subject, plan.schedule.order)


def _libraries(subject: ModelSubject) -> Sequence[Place]:
    """The other kernel libraries, of those with equal kernels the first; not the usual one, which stands for all.

    For a named device they are those of its processor: no other runs on it.
    """
    runtime, device = subject.target.runtime, "--target" in subject.target.given
    others = [library for library in reversed(runtime.libraries) if library.name != runtime.usual_kernels]
    if device:
        others = [
            row for row in others if any(subject.target.abi in library.abis for library in find_libraries(row.name))
        ]
    forms = {library.explains: library.name for library in others}
    return [name for explains, name in reversed(forms.items()) if explains != runtime.library.explains]


def _with_library(subject: ModelSubject, place: Place) -> ModelSubject:
    runtime = runtimes.with_kernels(subject.target.runtime, str(place))
    unnamed = subject.target.runtime.kernels == runtime.usual_kernels
    cost = f"{'if these are yours' if unnamed else 'a program built with them'}: {runtime.library.explains}"
    return replace(subject, target=subject.target.with_kernels(runtime), costs=(*subject.costs, cost))


def _runtimes(subject: ModelSubject) -> Sequence[Place]:
    left_out = {subject.target.runtime.name, C.name}  # what plain C needs is no figure of whole tensors
    others = [row for row in RUNTIMES.values() if row.name not in left_out and subject.graph.format in row.runs]
    return [row.name for row in others if not row.lacks_a_custom_kernel(subject.graph)]


def _on_runtime(subject: ModelSubject, place: Place) -> ModelSubject:
    """The same model on another runtime, with its usual kernels; a plan for TFLM is none for others."""
    return replace(subject, target=replace(subject.target, runtime=RUNTIMES[str(place)]))


def _inputs_overwritten(subject: ModelSubject, _: Place) -> ModelSubject:
    runtime = replace(subject.target.runtime, inputs="dying")
    return replace(subject, target=replace(subject.target, runtime=runtime))


# -- what the program passes -------------------------------------------------------------------------------------------


def _converting(subject: ModelSubject) -> bool:
    return _fittable(subject) and bool(outer_conversions(subject.graph).inner)


def _int8_passed(subject: ModelSubject, _: Place) -> ModelSubject:
    """The file without the conversions at its ends."""
    if subject.source is None:
        raise RefusedChangeError("fit rewrites only the unmodified file")
    changed = with_interface(subject.source.content, subject.graph, "int8")
    model = read_tflite(changed.content, subject.source.path)
    ops = tuple(op for number, op in enumerate(subject.ops) if number not in changed.gone)
    costs = (*subject.costs, *changed.reasons)
    return replace(subject, graph=changed.graph, model=model, source=None, ops=ops, costs=costs)


# -- plans -------------------------------------------------------------------------------------------------------------


def _plannable(subject: ModelSubject) -> bool:
    runtime = subject.target.runtime
    return subject.model is not None and subject.whole and runtime.offline_plans and runtime.library.packable


def _packable(shares: bool) -> Callable[[ModelSubject], bool]:  # noqa: FBT001 - one of two forms of a row
    """Plans whose tensors share bytes are for files of one subgraph, the others for those of several."""
    return lambda s: _plannable(s) and s.model is not None and (len(s.model.subgraphs) == 1) == shares


def _with_plan(plan: str) -> Callable[[ModelSubject, Place], ModelSubject]:
    return lambda subject, _: replace(subject, plan=plan)


def _scratch(subject: ModelSubject) -> list[int]:
    rows = requests(subject.model, subject.target.runtime.kernels) if subject.model else ()
    return [row.size for row in rows if row.scratch]


def _uses_scratch(subject: ModelSubject) -> bool:
    return _packable(shares=True)(subject) and bool(_scratch(subject))


def _pins_scratch(subject: ModelSubject) -> bool:
    """A header pins the scratch of one kernel library, not of all."""
    runtime = subject.target.runtime
    return runtime.kernels != runtime.usual_kernels and _uses_scratch(subject)


def _scratch_apart(subject: ModelSubject, _: Place) -> ModelSubject:
    scratch = _scratch(subject)
    if not scratch:
        raise RefusedChangeError("its kernels use no scratch")
    return replace(subject, plan=APART, costs=(*subject.costs, f"{max(scratch):,} bytes or more of another memory"))


def _only_planned(subject: ModelSubject) -> Sequence[Place]:
    """The alias modes, where only planned activations are known."""
    return () if subject.whole else ("views", "safe", "max")


def _fittable(subject: ModelSubject) -> bool:
    return _plannable(subject) and subject.source is not None


def _run_fit(*, stripes: bool, interface: str = "as-is") -> Callable[[ModelSubject, Place], ModelSubject]:
    """The change that replaces the file by the best that a short search of `modelplan fit --least` finds."""

    def make(subject: ModelSubject, _: Place) -> ModelSubject:
        if subject.source is None:
            raise RefusedChangeError("fit rewrites only the unmodified file")
        subject.check_time()
        source, target = subject.source, subject.target
        if subject.deadline is None and _is_large(subject.graph):
            raise OutOfTimeError
        ladder = _short_search(source, target.abi, target.runtime.kernels, interface)
        fitting = [rung for rung in ladder.allowed if stripes or rung.name != "split"]
        if not fitting:
            raise RefusedChangeError("; ".join(ladder.remarks) or "no rewritten file is within 10 % more work")
        rung, before = min(fitting, key=lambda candidate: candidate.arena), ladder.rungs[0]
        costs = []
        if rung.macs != ladder.macs:
            costs.append(f"{(rung.macs - ladder.macs) / max(ladder.macs, 1):+.1%} multiply-accumulates")
        if rung.ops != before.ops:
            costs.append(f"{rung.ops - before.ops:+d} operators")
        if len(rung.model) != len(before.model):
            costs.append(f"{len(rung.model) - len(before.model):+,} bytes of flash")
        model = read_tflite(rung.model, subject.source.path)
        return replace(subject, model=model, source=None, plan=OWN, costs=(*subject.costs, ", ".join(costs)))

    return make


def _is_large(graph: Graph) -> bool:
    """Whether the files of a short search take long to plan and to follow."""
    if len(graph.ops) > _TRIED_OPERATORS:
        return True
    values = [t for t, tensor in enumerate(graph.tensors) if tensor.kind is not Kind.CONSTANT and tensor.nbytes]
    if sum(graph.tensors[t].nbytes for t in values) > _TRIED_BYTES:
        return True
    first, last = (steps[values] for steps in tensor_spans(graph, range(len(graph.ops)), TFLM))
    begins = np.sort(first)
    pairs = np.searchsorted(begins, last, "right") - np.searchsorted(begins, first, "right")
    return int(pairs.sum()) > _TRIED_PAIRS


@lru_cache(maxsize=3)
def _short_search(source: ModelFile, abi: str, kernels: str, interface: str) -> Ladder:
    """The ladder of a file after so many plans of stripes; the same on each machine, and nothing is proved."""
    from modelplan.rewriting.striped_tflite import ladder  # here, so that `analyze` starts without it
    from modelplan.rewriting.striped_tflite.rungs import Goal
    from modelplan.rewriting.stripes.search_effort import SearchEffort, TfliteEffort

    graph = source.graph
    if [t.shape for t in graph.tensors] != [t.shape for t in read_tflite(source.content, "").subgraphs[0].tensors]:
        graph = load_model(source.path)  # without extents that were stated for it
    most = min(_MOST_PLANS, _MOST_OPERATORS // max(len(graph.ops), 1))
    cut_short = interface == "as-is" and most < _FEW_PLANS
    other = _converted(source, abi, kernels) if cut_short else None
    plans = iter(range(most))

    def check() -> None:
        if next(plans, None) is None:
            raise KeyboardInterrupt

    without = frozenset[str]() if is_group(kernels) else frozenset({"views"})  # overlaps need no more
    less = TfliteEffort(priced=1_400, look=400, answer=1_500, large=1_000, steps=2_000, hopeful=1.1)
    goal = Goal(abi=abi, kernels=kernels, interface=interface, without=without, effort=SearchEffort(tflite=less))
    return ladder.climb(replace(source, graph=graph), goal, check=check, proved=False, like=other)


def _converted(source: ModelFile, abi: str, kernels: str) -> Ladder | None:
    """The ladder of the file without the conversions at its ends, whose search has more to choose from."""
    if not outer_conversions(source.graph).inner:
        return None
    try:
        return _short_search(source, abi, kernels, "int8")
    except (ModelError, RequestError):
        return None


def _writable_as_c(subject: ModelSubject) -> bool:
    runtime, tflite = subject.target.runtime, subject.model is not None
    return subject.source is not None and (runtime.name == C.name or (tflite and runtime.offline_plans))


def _converted_as_c(subject: ModelSubject) -> bool:
    codes = any(op.kind == "DequantizeLinear" for op in subject.graph.ops)  # of .onnx: refused where not at the ends
    return _writable_as_c(subject) and (codes or bool(outer_conversions(subject.graph).inner))


def _pushed_as_c(subject: ModelSubject) -> bool:
    return _writable_as_c(subject) and len(subject.graph.inputs) == 1


def _pushed_and_converted(subject: ModelSubject) -> bool:
    return _pushed_as_c(subject) and _converted_as_c(subject)


def _c_row(name: str, applies: Callable[[ModelSubject], bool], form: CChange, way: Way, costs: str = "") -> TriedChange:
    """The row of a form of plain C."""
    words = " ".join(form.words) + "{layout}" * form.pushed
    how = " ".join(filter(None, ("modelplan fit {file}{extents} --runtime c{library}", words, "--least -o {out}")))
    return TriedChange(name, applies, in_plain_c(form), costs + _NO_TFLM, Needs.PLATFORM, how, "net.c", "runtime", 2,
                       way, alone=True)  # fmt: skip


_NO_TFLM = "no TFLM"
_PACK = "modelplan fit --only plan {file} -o {out} --alias %s{build}"
_FIT = "modelplan fit {file} --least -o {out}{build}"
_TRAIN = "accuracy unknown"
_LONGER = "a rewritten file; `fit` searches longer and may find less"

#: The changes by name.
CHANGES: dict[str, TriedChange] = {
    c.name: c
    for c in (
        TriedChange("padding fused", _finds(operator_edits.pads), _structural(operator_edits.padding_fused),
               "a changed model", Needs.MODEL, "build the model without {place}: padding=\"same\" in its reader"),
        TriedChange("activation fused", _finds(operator_edits.activations),
               _structural(operator_edits.activation_fused), "a changed model", Needs.MODEL,
               "build the model without {place}: activation= in the layer before"),
        TriedChange("transposition removed", _finds(operator_edits.transpositions),
               _structural(operator_edits.transposition_removed), "a changed model", Needs.MODEL,
               "build the model without {place}"),
        TriedChange("batch 1", _batched, _with_input_shapes(single_inputs, lambda shape: (1, *shape[1:])),
               "one sample in each run", Needs.MODEL, "export the model with batch 1", group="batch"),
        TriedChange("input of half height and width", lambda _: True,
               _with_input_shapes(resized_inputs, _halved),
               _TRAIN, Needs.MODEL, "train the model for such inputs", group="size"),
        TriedChange("int8", lambda subject: operator_edits.is_float(subject.graph), _typed("int8"),
               "sizes only; accuracy unknown", Needs.MODEL, "quantise the model to int8", group="type"),
        TriedChange("int16", lambda subject: operator_edits.is_float(subject.graph), _typed("int16"),
               "sizes only; accuracy unknown", Needs.MODEL,
               "quantise the activations to int16, the weights to int8", group="type"),
        TriedChange("int8 inputs and outputs", _converting, _int8_passed, "the program converts", Needs.PLATFORM,
               _FIT + " --interface int8", "fitted.tflite", "interface", 1, Way.INTERFACE),
        TriedChange("best order", _orderable, _ordered, "", Needs.NOTHING,
               "modelplan fit --only order {file} -o {out}{ordering}", "ordered.{format}", "order", 1, Way.PLAN),
        TriedChange("other kernels", _libraries, _with_library, "", Needs.PLATFORM,
               "modelplan analyze {file}{planning}{device} --kernels {place}", group="platform", effort=1,
               way=Way.KERNELS),
        TriedChange("another runtime", _runtimes, _on_runtime, "its code; its own tables are not counted",
               Needs.PLATFORM, "modelplan analyze {file}{reading} --runtime {place}", group="platform", effort=1,
               way=Way.RUNTIME),
        TriedChange("inputs may be overwritten", lambda subject: subject.target.runtime.inputs == "live",
               _inputs_overwritten, "the caller writes the inputs again before each run", Needs.PLATFORM,
               "let the runtime reuse an input once its last reader has run; {runtime} has no option for it",
               group="inputs", effort=1, way=Way.MEMORY),
        TriedChange("offline plan", _packable(shares=False), _with_plan("none"), "", Needs.NOTHING, _PACK % "none",
               "packed.tflite", "plan", 1, Way.PLAN),
        TriedChange("plan: views share bytes", _packable(shares=True), _with_plan("views"), "", Needs.NOTHING,
               _PACK % "views", "packed.tflite", "plan", 1, Way.PLAN),
        TriedChange("plan: in-place outputs", _packable(shares=True), _with_plan("safe"), "", Needs.NOTHING,
               _PACK % "safe", "packed.tflite", "plan", 1, Way.PLAN),
        TriedChange("plan: pinned scratch", _pins_scratch, _with_plan(PINNED),
               "firmware with the planner of the header", Needs.PLATFORM,
               _PACK % "safe" + " --shim plan.h", "packed.tflite", "plan", 1, Way.MEMORY),
        TriedChange("scratch in another memory", _uses_scratch, _scratch_apart, "firmware with a planner of its own",
               Needs.PLATFORM, "give kernels their scratch from another memory", group="plan", way=Way.MEMORY),
        TriedChange("plan of modelplan", _only_planned, lambda subject, place: replace(subject, plan=str(place)),
               "firmware or generated code that obeys the plan", Needs.PLATFORM,
               "modelplan analyze {file}{planning} --runtime {runtime} --alias {place} --json plan.json",
               group="plan", effort=1, way=Way.MEMORY),
        TriedChange("rewritten without stripes", _fittable, _run_fit(stripes=False), "", Needs.NOTHING,
               _FIT + " --without split", "fitted.tflite", "plan", 2, Way.FILE),
        TriedChange("stripes", _fittable, _run_fit(stripes=True), _LONGER, Needs.WORK, _FIT, "fitted.tflite",
               "plan", 2, Way.FILE),
        TriedChange("stripes, int8 inputs and outputs", _converting, _run_fit(stripes=True, interface="int8"),
               "the program converts; " + _LONGER, Needs.PLATFORM, _FIT + " --interface int8", "fitted.tflite",
               "plan", 2, Way.INTERFACE),
        TriedChange("persistent part in a second arena", _plannable,
               lambda subject, _: replace(subject, tail_apart=True), "two arenas in the firmware", Needs.PLATFORM,
               "tflite::MicroAllocator::Create takes both, the persistent one first", group="tail", way=Way.MEMORY),
        _c_row("plain C", _writable_as_c, CChange(), Way.C_HELD),
        _c_row("plain C, int8 inputs and outputs", _converted_as_c, CChange("int8"), Way.C_INTERFACE,
               "the program converts; "),
        _c_row("plain C, its input by rows", _pushed_as_c, CChange(pushed=True), Way.C_ROWS,
               "the program hands over the input row by row; "),
        _c_row("plain C, its input by rows, int8 inputs and outputs", _pushed_and_converted,
               CChange("int8", pushed=True), Way.C_ROWS, "the program converts and hands over the input row by row; "),
    )
}  # fmt: skip
