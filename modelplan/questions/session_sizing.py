"""The sessions of a model file: measured, else predicted; and what an interpreter of LiteRT takes.

A session is measured where ONNX Runtime is installed and Linux runs, in a process of its own with limits on time and
memory; what was measured is remembered. A prediction follows the session's blocks, its arena and its memory pattern. An
interpreter is measured where LiteRT is installed, else its planned arena alone counts.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from modelplan.formats import load_as_run
from modelplan.formats.dims import parsed_values
from modelplan.formats.unpacking import is_wrapped
from modelplan.formats.whole_files import read_bytes
from modelplan.model import Graph, Kind, Part, Requirement, SessionMemory, SessionNeed
from modelplan.model.model_file import ModelFile, Target
from modelplan.planning.session_heap import HeapNeed, UnpredictableError, predicted_heap
from modelplan.planning.session_nodes import Extents, with_own_dequantised
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.units import human
from modelplan.questions.model_request import SessionAsked
from modelplan.runtimes.litert.measuring import KERNELS, litert_version, measure_interpreters
from modelplan.runtimes.ort.feeding import Feeds, feeds_of
from modelplan.runtimes.ort.measuring import (
    OTHER_INPUTS,
    Measured,
    MeasuringLimits,
    SessionLateError,
    SessionRefusedError,
    SessionSettings,
    check_measurable,
    ort_version,
    start,
)
from modelplan.runtimes.ort.planned_extents import feeds_that_reach, feeds_that_run
from modelplan.runtimes.ort.reaching import Aim
from modelplan.runtimes.ort.remembered import RememberedSessions, missing_weights
from modelplan.runtimes.ort.session_shapes import has_bodies, session_extents
from modelplan.runtimes.ort.settings_code import python_settings

#: Settings that may need less than the defaults.
_CHANGED = (
    SessionSettings(keep_outputs=False),
    SessionSettings(arena="off"),
    SessionSettings(pattern=False),
    SessionSettings(arena="off", pattern=False),
    SessionSettings(arena="off", pattern=False, keep_outputs=False),
    SessionSettings(arena="off", pattern=False, order="priority"),
    *(SessionSettings(arena="off", pattern=False, level=level) for level in ("extended", "basic", "disable")),
)
#: Processes in which a session is measured that may order its nodes differently in each, and kinds of such nodes.
_DRAWS, _BLOCKED = 3, frozenset({"Conv", "FusedConv"})
#: Bytes by which sessions in two processes differ by chance.
_NOISE = 8192
#: The level at which a session runs the nodes of the file, which can be predicted.
_AS_IN_FILE = "disable"


def start_measuring(path: Path) -> None:
    """Starts the process that measures, where it can be and the file was not measured before."""
    try:
        check_measurable()
    except RequestError:
        return  # said where the figure stands
    if not RememberedSessions(str(path), read_bytes(path)).known():
        start()


def session_requirement(file: ModelFile, target: Target, planned: Requirement, asked: SessionAsked) -> Requirement:
    """The requirement of a default session; see `session_needs.sized_by_session`."""
    settings = SessionSettings(threads=asked.threads)
    try:
        feeds, [draws] = _measured(file, [settings], asked)
    except SessionRefusedError as problem:
        return _refused(problem)
    except SessionLateError as problem:
        return _predicted(file, target, planned, asked, f"{problem}; --measure SECONDS gives it longer")
    except (ModelError, RequestError) as problem:
        return _predicted(file, target, planned, asked, str(problem))
    measured = _most(draws)
    usual = _need(file, settings, draws, measured.loaded)
    memory = SessionMemory(
        usual,
        _input_bytes(file),
        measured.session,
        measured.loaded,
        planned.arena,
        threads=asked.threads,
        fed=feeds.described(),
    )
    return _requirement(memory, f"measured: onnxruntime {ort_version()}, heap of a default session while it runs")


def _refused(problem: SessionRefusedError) -> Requirement:
    """The requirement of a model that a session does not load or run."""
    return Requirement(0, 0, (), f"onnxruntime {ort_version()}", refusals=(str(problem),), remedies=(OTHER_INPUTS,))


def other_sessions(
    file: ModelFile, target: Target, requirement: Requirement, memory: SessionMemory, asked: SessionAsked
) -> Requirement:
    """The requirement with sessions of other settings; see `session_needs.with_other_settings`."""
    changed = [replace(setting, threads=asked.threads) for setting in _CHANGED]
    if memory.loaded is None:
        plain = [setting for setting in changed if setting.order == "default" and setting.level == "all"]
        changed = [replace(setting, level=_AS_IN_FILE) for setting in plain]
        needs = _predicted_needs(file, target, changed, asked)
    else:
        try:
            _, measured = _measured(file, changed, asked)
        except ModelError:
            return requirement  # the default session ran; others that do not are no advice
        needs = [_need(file, *pair, memory.loaded) for pair in zip(changed, measured, strict=True)]
    others = sorted((need for need in needs if need.most < memory.usual.most), key=lambda need: need.most)
    return replace(requirement, session=replace(memory, others=tuple(others)))


def _measured(
    file: ModelFile, settings: Sequence[SessionSettings], asked: SessionAsked
) -> tuple[Feeds, list[list[Measured]]]:
    """What a session takes at each of the settings, each in one process or several, and what its inputs were fed with.

    Raises:
        SessionRefusedError: it does not run.
        ModelError: it is not measured within the limits, or a run has other extents than the plan.
        RequestError: nothing is to be measured, or nothing can be here.
    """
    if not asked.seconds:
        raise RequestError("--measure 0 asks for a prediction")
    check_measurable()
    graph = file.graph
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    limits = MeasuringLimits(asked.seconds, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with _on_disk(file) as path:
        if missing := missing_weights(Path(path).parent, file.content):
            inside = "; a file that is unpacked or piped has none beside it" if is_wrapped(file.path) else ""
            raise ModelError(f"its weights lie in {missing}, which is not there{inside}")
        remembered = RememberedSessions(path, file.content)
        given = feeds_of(parsed_values(asked.values), asked.feeds)

        def ask(aim: Aim) -> Mapping[str, Any]:
            return remembered.reached(shapes, aim, limits, given)

        feeds = feeds_that_reach(graph, given, ask)
        began = time.monotonic()
        try:
            processes = [remembered.measured(shapes, settings, limits, feeds)]
        except SessionRefusedError:
            feeds = feeds_that_run(given, ask)
            processes = [remembered.measured(shapes, settings, limits, feeds)]
        for draw in range(1, _DRAWS):
            if not _is_blocked(graph) or _DRAWS * (time.monotonic() - began) > draw * asked.seconds:
                break
            processes.append(remembered.measured(shapes, settings, limits, feeds, draw))
    return feeds, [list(draws) for draws in zip(*processes, strict=True)]


def _is_blocked(graph: Graph) -> bool:
    """Whether sessions at level all may order nodes differently in each process: such as work in blocks of channels."""
    return not graph.kinds.isdisjoint(_BLOCKED)


@contextmanager
def _on_disk(file: ModelFile) -> Iterator[str]:
    """The path of the file; one of an earlier revision is written to a folder of its own meanwhile."""
    if Path(file.path).is_file() and not is_wrapped(file.path):
        yield file.path
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(file.content)
        yield str(path)


def _need(file: ModelFile, settings: SessionSettings, draws: Sequence[Measured], loaded: int) -> SessionNeed:
    """What the session of several that took most needs, above the bytes of a loaded default session."""
    measured = _most(draws)
    first, later = measured.heap_above(loaded)
    more = max(measured.loaded - loaded, 0)
    tensors = min(measured.first + more, first), min(measured.steady + more, later)
    lowest = min(max(draw.heap_above(loaded)) for draw in draws)
    differs = max(first, later) - lowest > max(first, later) // 100 + _NOISE
    return SessionNeed(
        _words(settings), first, later, *tensors, _code(settings, file.path), lowest=lowest if differs else None
    )


def _most(draws: Sequence[Measured]) -> Measured:
    return max(draws, key=lambda measured: max(measured.heap))


def _code(settings: SessionSettings, path: str) -> tuple[str, ...]:
    return tuple(python_settings(settings, path))


def _words(settings: SessionSettings) -> str:
    """The settings that are not the defaults, the optimization level among them."""
    level = "" if settings.level == "all" else f"level {settings.level}"
    rest = settings.described()
    return f"{rest}, {level}" if level and rest != "defaults" else level or rest


def _requirement(memory: SessionMemory, basis: str) -> Requirement:
    """The requirement of a session: what its run needs that needs more, by its parts, with a margin if predicted."""
    usual, trust = memory.usual, "measured" if memory.usual.measured else "predicted"
    parts = [
        Part("blocks of tensors, free room in the arena among them", usual.tensors, trust=trust),
        Part("the session's own bookkeeping", usual.most - usual.tensors, trust=trust),
    ]
    if usual.judged > usual.most:
        parts.append(Part("margin of what is predicted", usual.judged - usual.most, trust=trust))
    return Requirement(usual.judged, usual.tensors, tuple(parts), basis, session=memory)


def _predicted(file: ModelFile, target: Target, planned: Requirement, asked: SessionAsked, reason: str) -> Requirement:
    """The requirement of a session that is predicted; `reason` says why it was not measured."""
    try:
        default = SessionSettings(level=_AS_IN_FILE, threads=asked.threads)
        [usual] = _predicted_needs(file, target, [default], asked)
    except (UnpredictableError, ModelError) as problem:
        basis = f"tensors alone: the session is not measured ({reason}), and not predicted ({problem})"
        return replace(planned, basis=basis)
    graph, _ = _run_graph(file, asked)
    weights = sum(tensor.nbytes for tensor in graph.tensors if tensor.kind is Kind.CONSTANT)
    memory = SessionMemory(
        usual, _input_bytes(file), weights, None, planned.arena, f"not measured: {reason}", asked.threads
    )
    return _requirement(memory, "predicted: heap of a session at graph optimization level off while it runs")


def _predicted_needs(
    file: ModelFile, target: Target, settings: Sequence[SessionSettings], asked: SessionAsked
) -> list[SessionNeed]:
    """What a session of the nodes as they are in the file takes at each of the settings."""
    graph, extents = _run_graph(file, asked)
    needs = []
    for setting in settings:
        need: HeapNeed = predicted_heap(
            graph,
            target.runtime,
            arena=setting.arena != "off",
            pattern=setting.pattern,
            threads=setting.threads,
            extents=extents,
            keep_outputs=setting.keep_outputs,
        )
        sizes = need.first, need.later, need.first_tensors, need.later_tensors
        needs.append(SessionNeed(_words(setting), *sizes, _code(setting, file.path), measured=False))
    return needs


def _run_graph(file: ModelFile, asked: SessionAsked) -> tuple[Graph, Extents]:
    """As `_as_run`, read once for all settings."""
    return file.graph.memoised(("as run", asked), lambda: _as_run(file, asked))


def _as_run(file: ModelFile, asked: SessionAsked) -> tuple[Graph, Extents]:
    """The nodes that a session at level off runs, and the extents that it does not know as numbers."""
    with _on_disk(file) as path:
        if has_bodies(path):
            raise UnpredictableError("it runs bodies, which are not followed")
        graph = file.graph if not file.graph.folded else load_as_run(path, asked.dims, asked.shapes, asked.values)
        return with_own_dequantised(graph, session_extents(path, graph))


def _input_bytes(file: ModelFile) -> int:
    return sum(file.graph.tensors[t].nbytes for t in file.graph.inputs)


_ALONE = "the arena of LiteRT's reference kernels alone, by its own plan"


def interpreter_requirement(file: ModelFile, planned: Requirement, asked: SessionAsked) -> Requirement:
    """The requirement of an interpreter with default kernels; `planned` has the arena of LiteRT's reference kernels.

    Where it is not measured, `planned` says so and counts that arena.
    """
    graph = file.graph
    try:
        if not asked.seconds:
            raise RequestError("--measure 0 asks for the plan")
        shapes = [graph.tensors[t].shape for t in graph.inputs]
        needs = measure_interpreters(file.content, shapes, asked.threads, asked.seconds)
    except (ModelError, RequestError) as problem:
        return replace(planned, basis=f"{_ALONE} ({problem})")
    usual, *others = needs
    parts = (
        Part("arena, packed weights and what kernels work with", usual.aligned, trust="measured"),
        Part("the interpreter's own bookkeeping", usual.heap - usual.aligned, trust="measured"),
    )
    remarks = (
        *(f"{human(need.heap)} with {KERNELS[need.kernels]} (OpResolverType.{need.kernels})" for need in others),
        f"{human(planned.arena)}: {_ALONE}",
        *planned.remarks,
    )
    basis = (
        f"measured: ai-edge-litert {litert_version()}, {KERNELS[usual.kernels]}, heap from AllocateTensors to the"
        " second run, without the model"
    )
    return replace(planned, arena=usual.heap, parts=parts, basis=basis, remarks=remarks, measured=True)
