"""Both files on real runtimes, whole and cut off at the end of each region, on random and on extreme inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from modelplan.checking.verifier.litert import INSTALL as INSTALL_LITERT
from modelplan.checking.verifier.litert import LiteRTError, litert_installed, litert_outputs
from modelplan.checking.verifier.rewrites.comparing import Compared, compare_rows
from modelplan.checking.verifier.rewrites.contents import Fault, Unproved
from modelplan.checking.verifier.rewrites.memory import replay_memory
from modelplan.checking.verifier.rewrites.reading import Source, read_source
from modelplan.checking.verifier.rewrites.truncating import cut_off, region_ends
from modelplan.checking.verifier.verdicts import Executed, Skipped
from modelplan.primitives.errors import BrokenPlanError
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.runner import INSTALL, RefusalError, installed, run_tflm, tflm_version

_ROUNDS = 2
#: Said of a file whose plan counts on the order of kernels that the wheel does not have.
_UNPLANNED = "without the plan, which holds for {} kernels only"
#: What a run of a file gives: something of each invocation's outputs that is equal where the outputs are.
Outputs = Sequence[object]


@dataclass(frozen=True, slots=True)
class ExecutionEffort:
    """The seed of random inputs, and the seconds after which no further cut is run (None: all are)."""

    seed: int = 0
    seconds: float | None = None


def execute_on_tflm(
    original: Source,
    rewritten: Source,
    compared: Compared,
    effort: ExecutionEffort = ExecutionEffort(),
    kernels: str = "reference",
) -> Executed:
    """Runs both files on TFLM's reference kernels, several inputs in a row without a reset.

    A plan that holds for other `kernels` only is left out.

    Raises:
        BrokenPlanError: outputs differ, or TFLM's head is not the predicted one.
        Skipped: the wheel is missing or refuses the model itself.
    """
    if not installed():
        raise Skipped(f"tflite-micro is not installed; {INSTALL}")
    heads = []
    plain = for_reference_kernels(rewritten.model, kernels)
    unplanned = plain is not rewritten.model
    rewritten = replace(rewritten, model=plain)

    def run(data: bytes) -> Outputs:
        done = run_tflm(data, rounds=_ROUNDS, seed=effort.seed, extremes=True)
        heads.append(done.head)
        return done.outputs

    said = _compare(original, rewritten, compared, run, effort)
    predicted = planner.predicted_head(rewritten.model)  # with reference kernels, which the wheel has
    if planner.padded(heads[1]) != planner.padded(predicted):
        raise BrokenPlanError(f"TFLM reports a head of {heads[1]:,} bytes, predicted are {predicted:,}")
    head = _UNPLANNED.format(kernels) if unplanned else f"head {heads[1]:,} bytes"
    has_plan = planner.read_plan(rewritten.model) is not None
    how = "without its plan" if unplanned else "with its plan" if has_plan else "as it is"
    what = f"the file {how} on TFLM's reference kernels"
    return Executed(f"{said}, {head}, tflite-micro {tflm_version()}", what, not unplanned)


def for_reference_kernels(model: FileModel, kernels: str) -> FileModel:
    """The file as TFLM's own kernels can run it: without its plan where that holds for `kernels` only.

    Raises:
        ModelError: the file holds what cannot be followed.
    """
    if kernels == "reference":
        return model
    source = read_source(model)
    try:
        compared = compare_rows(source, source)
        replay_memory(source, compared.rewritten, compared.catalogue)
    except (Fault, Unproved, BrokenPlanError):
        return read_tflite(planner.without_plan(model.data), model.name)
    return model


def execute_on_litert(
    original: Source, rewritten: Source, compared: Compared, effort: ExecutionEffort = ExecutionEffort()
) -> Executed:
    """Runs both files on LiteRT's reference kernels, which ignore the plan.

    Raises:
        BrokenPlanError: outputs differ.
        Skipped: the package is missing or refuses the model itself.
    """
    if not litert_installed():
        raise Skipped(f"ai-edge-litert is not installed; {INSTALL_LITERT}")
    said = _compare(original, rewritten, compared, lambda data: _on_litert(data, effort.seed), effort)
    return Executed(said, "the file on LiteRT's reference kernels, which know no plan")


def _compare(
    original: Source, rewritten: Source, compared: Compared, run: Callable[[bytes], Outputs], effort: ExecutionEffort
) -> str:
    began = time.monotonic()
    count = _equal_runs("the outputs", original.model.data, rewritten.model.data, run)
    cuts = region_ends(original, rewritten, compared)
    done = 0
    for cut in cuts:
        if effort.seconds is not None and time.monotonic() - began > effort.seconds:
            break
        ends = cut_off(original, *cut.original), cut_off(rewritten, *cut.rewritten)
        count += _equal_runs(f"the map {cut.name!r}", *ends, run)
        done += 1
    left = f" of {len(cuts)}, the rest left out after {effort.seconds:g} seconds" if done < len(cuts) else ""
    ends_said = f", cut off at the end of {done} regions too{left}" if cuts else ""
    return f"{count} runs bit-equal{ends_said}"


def _equal_runs(what: str, before: bytes, after: bytes, run: Callable[[bytes], Outputs]) -> int:
    """Runs both; returns how many runs were equal."""
    try:
        wanted = run(before)
    except RefusalError as reason:
        raise Skipped(f"the model does not run by itself: {reason}") from None
    try:
        found = run(after)
    except RefusalError as reason:
        raise BrokenPlanError(f"the rewritten model does not run: {reason}") from None
    for number, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if a != b:
            raise BrokenPlanError(f"run {number}: {what} of the rewritten model differ from the model's")
    return len(wanted)


def _on_litert(data: bytes, seed: int) -> Outputs:
    try:
        return litert_outputs(data, _ROUNDS, seed)
    except LiteRTError as problem:
        raise RefusalError(f"LiteRT: {problem}") from None
