"""Whether a model fits each of several targets; every kernel library is sized once, however many targets have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from modelplan.answers.analysis import SizedFile
from modelplan.answers.fit_of_targets import LeastChange, TargetVerdict, TargetVerdicts
from modelplan.model.model_file import USUAL_ABI
from modelplan.primitives.errors import ModelPlanError, RequestError
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.primitives.settled_requests import answers_paths
from modelplan.questions.analyzing import AnalyzeRequest, analysis_stages
from modelplan.questions.c_fitting import CForm, planned_c

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen

#: What stands for every microcontroller that is known.
ALL = "all"


def targets_called(words: str) -> tuple[Chosen, ...] | None:
    """The targets that a word for several names: `all`, names with commas between them, a pattern, a maker or family.

    None where it is the name of one target.

    Raises:
        RequestError: there is no such target.
    """
    from modelplan.targets.choosing import Wanted, chosen_block, spoken_device

    if "," in words:
        named = [(name, targets_called(name)) for name in words.split(",") if name]
        return tuple(chosen for name, several in named for chosen in several or (chosen_block(Wanted(name)),))
    known = _known()
    if words == ALL:
        names = known
    elif "*" in words:
        names = [name for name in known if fnmatchcase(name, words.lower())]
    elif spoken_device(words) or words.startswith("from:") or "." in words:
        return None
    else:
        names = [name for name in known if words and name.startswith(words.lower())]
    if not names and "*" in words:
        raise RequestError(f"--target {words}: no target has such a name; `modelplan targets` lists them")
    return tuple(chosen_block(Wanted(name)) for name in names) or None


def _known() -> list[str]:
    """The names of microcontrollers; of several that differ in their flash alone the first."""
    from modelplan.targets.chips import CHIPS
    from modelplan.targets.processors import PROCESSORS
    from modelplan.targets.table import MICROCONTROLLERS

    chips = [name for name in CHIPS if name not in MICROCONTROLLERS]
    esp32 = [name for name in PROCESSORS if name.startswith("esp32")]
    return [*MICROCONTROLLERS, *chips, *esp32]


def chips_of(family: str) -> tuple[Chosen, ...]:
    """The chips of a family that has a name as a target."""
    larger = any(name.startswith(family) and name != family for name in _known())
    return targets_called(f"{family}?*") or () if larger else ()


@answers_paths(AnalyzeRequest)
def target_verdicts(request: AnalyzeRequest, targets: str | Sequence[Chosen]) -> TargetVerdicts:
    """Whether a model fits each of several targets.

    Args:
        request: the file and what it runs on; kernels and ABI are each target's unless they are named.
        targets: `all`, names with commas between them, a pattern such as stm32f4*, or targets from `choose_target`.

    Raises:
        ModelError: the file cannot be read.
        RequestError: there is no such target, or the request names what there is not.
    """
    if isinstance(targets, str):
        targets = targets_called(targets) or targets_called(f"{targets},") or ()
    sized: dict[tuple[str, str], SizedFile] = {}
    rows = []
    for chosen in targets:
        build = _build(request, chosen)
        if build not in sized:
            asked = replace(request, kernels=build[0] or None, abi=build[1] or None, target=None, advice=False)
            sized[build] = next(analysis_stages(asked))
        stage = sized[build]
        rows.append(TargetVerdict(chosen, stage.requirement, len(stage.file.content)))
    return TargetVerdicts(request.path, stage.target.runtime.name, tuple(sorted(rows, key=_rank)))


def _build(request: AnalyzeRequest, chosen: Chosen) -> tuple[str, str]:
    """The kernels and the ABI for a target, as far as the request or the target names them."""
    return request.kernels or chosen.device.kernels, request.abi or chosen.device.abi


def _rank(row: TargetVerdict) -> tuple[object, ...]:
    """Where it fits the smallest memory first; where it does not the least that is missing; last what is not known."""
    order, device = {True: 0, False: 1, None: 2}, row.target.device
    missing = -(row.headroom or 0) if row.fits is False else row.target.known_budget or 0
    return order[row.fits], missing, device.kernels, device.name.startswith("stm32")


def with_changes(
    request: AnalyzeRequest, verdicts: TargetVerdicts, report: Report = report_nothing
) -> Iterator[TargetVerdict]:
    """Of each target that the model does not fit: the least change that fits there, and the memory of plain C.

    One library after the other is searched, and its targets follow at once. Nothing is proved: `fit` proves what it
    writes.
    """
    lacking = [row for row in verdicts.rows if row.fits is False and row.target.known_budget is not None]
    plain_c = _plain_c(request) if lacking else None
    builds = dict.fromkeys(_build(request, row.target) for row in lacking)
    for build in builds:
        changes = _changes(request, build, report)
        for row in (row for row in lacking if _build(request, row.target) == build):
            budget = row.target.known_budget or 0
            least = next((change for change in changes if change.arena <= budget), None)
            yield replace(row, change=least, plain_c=plain_c)


def _changes(request: AnalyzeRequest, build: tuple[str, str], report: Report) -> list[LeastChange]:
    """The rungs that `fit` may choose for a library, the cheapest first; none where it has none for the file."""
    from modelplan.questions.model_fitting import FitRequest
    from modelplan.rewriting.striped_tflite.ladder import climb

    kernels, abi = build
    with suppress(ModelPlanError):
        goal = FitRequest(request.path, kernels=kernels or ALL, abi=abi or USUAL_ABI)
        ladder = climb(request.path, goal, lambda text: report(f"{kernels}: {text.rstrip()}"), proved=False)
        return [LeastChange(rung.name, rung.arena) for rung in ladder.allowed]
    return []


def _plain_c(request: AnalyzeRequest) -> int | None:
    """The memory of the model as plain C by rows; None where an operator has none."""
    with suppress(ModelPlanError):
        stage = next(analysis_stages(replace(request, kernels=None, abi=None, target=None, advice=False)))
        return planned_c(stage.file, CForm()).ram
    return None
