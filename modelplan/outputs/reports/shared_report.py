"""What is said of several models in one memory: text, JSON, and buffers with their offsets as CSV."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from modelplan.answers.shared_plan import LibraryArenas, SharedPlan, TflmArenas
from modelplan.outputs.exchange import buffers_csv as problem_csv
from modelplan.outputs.report import Pasted, Section, Table
from modelplan.outputs.reports.ladder_report import helped_line
from modelplan.primitives.units import human
from modelplan.runtimes.tflm.arena import RELEASE
from modelplan.runtimes.tflm.declaration import MACRO
from modelplan.runtimes.tflm.kernels.own_kernels import library_of

#: The version of the JSON document.
SCHEMA = 1


def sections_of(plan: SharedPlan, arenas: TflmArenas | None = None) -> list[Section]:
    """The result, the models, and what the plan assumes; `arenas` come first where TFLM runs all of the models."""
    title = f"{len(plan.parts)} models in one memory"
    assumed = Section("Assumed", tuple(_promises(plan)))
    if arenas is None:
        return [Section(title, tuple(_figures(plan)), _table(plan)), assumed]
    return [
        Section(title, tuple(_arena_lines(plan, arenas)), _libraries_table(arenas.libraries)),
        Section("The head, which is planned", tuple(_figures(plan)), _table(plan)),
        assumed,
    ]


def _figures(plan: SharedPlan) -> Iterator[str]:
    height, bound, apart = plan.memory, plan.whole(plan.placement.lower_bound), plan.separate
    yield f"together     {human(height)}"
    yield f"lower bound  {human(bound)}, " + ("proven optimal" if height == bound else f"gap {human(height - bound)}")
    saved = f"{human(apart - height)} saved ({(apart - height) / apart:.1%})" if height < apart else "nothing saved"
    yield f"apart        {human(apart)}: {saved}"
    in_turn = plan.whole(plan.in_turn)
    if in_turn < height:
        yield f"in turn      {human(in_turn)} if no two models were ever active at the same time (--in-turn all)"


def _table(shared_plan: SharedPlan) -> Table:
    """A line for each model in the order of running."""
    rows = []
    for m in shared_plan.relation.order:
        part, offsets = shared_plan.parts[m], shared_plan.offsets_of(m)
        sizes = part.problem.size.tolist()
        used = [(at, at + size) for at, size in zip(offsets, sizes, strict=True) if size]
        low, high = min((a for a, _ in used), default=0), max((b for _, b in used), default=0)
        rows.append((part.name, part.runtime.name, part.alias, f"{part.alone:,}", f"{low:,}", f"{high:,}",
                     f"{len(sizes):,}"))  # fmt: skip
    return Table(("model", "runtime", "shares", ">alone", ">from", ">to", ">buffers"), tuple(rows))


def _promises(plan: SharedPlan) -> Iterator[str]:
    """Who takes turns and who does not, which bytes are handed on and kept, and the order of running."""
    relation = plan.relation
    count = len(relation.names)
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    turns = [f"{relation.names[a]} and {relation.names[b]}" for a, b in pairs if relation.take_turns(a, b)]
    apart = [f"{relation.names[a]} and {relation.names[b]}" for a, b in pairs if not relation.take_turns(a, b)]
    if turns:
        yield f"never active at the same time: {'; '.join(turns)}"
        yield "active: from the writing of the first input until the last output has been read"
    if apart:
        yield f"may be active at the same time, so that they share nothing: {'; '.join(apart)}"
    for pipe in relation.pipes:
        ends = [
            (relation.names[p.model], plan.parts[p.model].graph.tensors[p.tensor]) for p in (pipe.source, pipe.target)
        ]
        (a, out), (b, given) = ends
        yield f"handed on without a copy: {a}:{out.name} = {b}:{given.name}, {human(out.nbytes)}"
    for unit in relation.units:
        if len(unit) > 1:
            order = ", then ".join(relation.names[m] for m in unit)
            yield f"in each round: {order}; each one's other inputs are written when those before it have run"
    for place in relation.kept:
        tensor = plan.parts[place.model].graph.tensors[place.tensor]
        yield f"used by nothing else: {relation.names[place.model]}:{tensor.name}"


def _arena_lines(plan: SharedPlan, arenas: TflmArenas) -> Iterator[str]:
    """The arenas to declare: one with this plan, one of a MicroAllocator as it is, one for each model."""
    pinned, shared = arenas.pinned, arenas.shared
    head = f"head {pinned.head:,}, tail {pinned.tail:,}"
    yield Pasted(f"#define {MACRO} {pinned.least}  // one for all models, with the planner of --header FILE.h; {head}")
    if arenas.written:
        written = arenas.written
        yield Pasted(f"#define {MACRO} {written.least}  // one for all, with --files DIR; head {written.head:,}")
    else:
        yield f"--files DIR writes none: {arenas.reason}"
    if arenas.helped:
        yield helped_line(arenas.helped, "of arena")
    turns = len(plan.relation.turns) == len(plan.parts) * (len(plan.parts) - 1) // 2
    only = "as all take turns" if turns else "if all took turns (--in-turn all)"
    yield Pasted(f"#define {MACRO} {shared.least}  // one for all, nothing changed, {only}; head {shared.head:,}")
    for part, least in zip(plan.parts, arenas.separate, strict=True):
        yield Pasted(f"#define {_macro(part.name)} {least}  // {part.name} in an arena of its own")
    yield f"arenas of their own: {human(sum(arenas.separate))} in all"
    tails = ", ".join(f"{share.name} {share.tail:,}" for share in pinned.shares)
    library = f"{library_of(pinned.kernels)} kernels"
    if arenas.libraries:
        library = f"all kernels ({library_of(pinned.kernels)} needs most)"
    yield f"ABI {arenas.asked_abi}, {library}, {RELEASE}"
    yield f"tails cannot be shared: {tails}, the allocator {pinned.own:,}"


def _macro(name: str) -> str:
    """The constant that declares the arena of a model by itself.

    >>> _macro("ds-cnn kws")
    'DS_CNN_KWS_ARENA_SIZE'
    """
    return f"{re.sub(r'[^A-Z0-9]+', '_', name.upper()).strip('_')}_ARENA_SIZE"


def _libraries_table(libraries: Sequence[LibraryArenas]) -> Table | None:
    """What this plan needs with each kernel library; None where one was named."""
    if not libraries:
        return None
    rows = [
        (
            library_of(library.kernels),
            f"{library.pinned.least:,}",
            f"{library.written.least:,}" if library.written else "none",
        )
        for library in libraries
    ]
    return Table(("kernels", ">with --header", ">with --files"), tuple(rows))


def verdict(arenas: TflmArenas | None, needed: int, capacity: int) -> str:
    """Whether the plan fits; where it does not, and no kernel library was named, with which it would."""
    words = "fits" if needed <= capacity else f"{human(needed - capacity)} too much"
    if needed > capacity and arenas and arenas.libraries:
        fitting = [library.kernels for library in arenas.libraries if library.pinned.least <= capacity]
        words += f"; fits with {', '.join(fitting) or 'none of the kernel libraries'}"
    return f"{human(needed)} in {human(capacity)}: {words}"


def as_json(
    shared_plan: SharedPlan, arenas: TflmArenas | None = None, facts: Mapping[str, object] | None = None
) -> str:
    """All of it, every buffer with its offset; `facts` are further keys."""
    relation = shared_plan.relation
    names = relation.names
    document: dict[str, object] = {
        "schema": SCHEMA,
        "made_by": shared_plan.made_by,
        "height": shared_plan.memory,
        "lower_bound": shared_plan.whole(shared_plan.placement.lower_bound),
        "optimal": shared_plan.height == shared_plan.placement.lower_bound,
        "separate": shared_plan.separate,
        "all_in_turn": shared_plan.whole(shared_plan.in_turn),
        "in_turn": [[names[a], names[b]] for a, b in sorted(relation.turns)],
        "order": [names[m] for m in relation.order],
        "pipelines": [
            {
                "from": _end(shared_plan, pipe.source.model, pipe.source.tensor),
                "to": _end(shared_plan, pipe.target.model, pipe.target.tensor),
            }
            for pipe in relation.pipes
        ],
        "kept": [_end(shared_plan, place.model, place.tensor) for place in relation.kept],
        "models": [_model(shared_plan, m) for m in range(len(shared_plan.parts))],
    }
    if arenas:
        document["arenas"] = _arenas(arenas)
    return json.dumps(document | dict(facts or {}), indent=1, ensure_ascii=True) + "\n"


def _end(shared_plan: SharedPlan, model: int, tensor: int) -> dict[str, object]:
    part = shared_plan.parts[model]
    return {"model": part.name, "tensor": tensor, "name": part.graph.tensors[tensor].name}


def _model(plan: SharedPlan, number: int) -> dict[str, object]:
    """One model with its buffers, in steps from its own first one."""
    part = plan.parts[number]
    buffers = [
        {"name": b.name, "offset": offset, "size": b.size, "start": b.start, "end": b.end, "kind": str(b.kind),
         "tensors": [{"tensor": m.tensor, "delta": m.delta} for m in b.members]}
        for b, offset in zip(part.problem, plan.offsets_of(number), strict=True)
    ]  # fmt: skip
    about = {"name": part.name, "path": part.path, "runtime": part.runtime.name, "alias": part.alias}
    return about | {"alone": part.alone, "first_step": plan.starts[number], "steps": part.steps, "buffers": buffers}


def _arenas(arenas: TflmArenas) -> dict[str, object]:
    facts: dict[str, object] = {"abi": arenas.asked_abi, "kernels": arenas.pinned.kernels}
    if arenas.libraries:
        facts["libraries"] = [
            {"kernels": own.kernels, "pinned": own.pinned.least, "written": own.written and own.written.least}
            for own in arenas.libraries
        ]
    facts["separate"] = list(arenas.separate)
    for name in ("shared", "pinned", "written"):
        arena = getattr(arenas, name)
        facts[name] = arena and {"arena": arena.least, "head": arena.head, "tail": arena.tail,
                                 "tails": {share.name: share.tail for share in arena.shares}}  # fmt: skip
    return facts | ({"reason": arenas.reason} if arenas.reason else {})


def as_csv(shared_plan: SharedPlan) -> str:
    """The buffers of the joint problem with their offsets, in MiniMalloc's columns.

    The table says nothing of buffers that must stay apart although their steps do not meet: those of models that may
    be active at the same time.
    """
    return problem_csv.write(shared_plan.problem, shared_plan.placement)
