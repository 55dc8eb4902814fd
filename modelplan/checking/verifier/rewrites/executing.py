"""Both files on real runtimes, on random and on extreme inputs: outputs, and the maps at the end of each stretch.

A runtime that follows no plan of the file has those maps as further outputs. Else the file is cut off behind each: its
plan knows nothing of them, and the head is that of the file.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from modelplan.checking.verifier.litert import INSTALL as INSTALL_LITERT
from modelplan.checking.verifier.litert import (
    OPTIMISED,
    REFERENCE,
    LiteRTError,
    litert_given,
    litert_installed,
    litert_outputs,
)
from modelplan.checking.verifier.random_inputs import random_array
from modelplan.checking.verifier.rewrites.comparing import Compared, compare_rows
from modelplan.checking.verifier.rewrites.contents import Fault, Unproved
from modelplan.checking.verifier.rewrites.interface import CODES, Array, HostConversion, HostSide
from modelplan.checking.verifier.rewrites.memory import replay_memory
from modelplan.checking.verifier.rewrites.reading import Cell, Source, read_source
from modelplan.checking.verifier.rewrites.truncating import cut_off, stretch_ends, with_outputs
from modelplan.checking.verifier.verdicts import Executed, Skipped
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import counted
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels.own_kernels import library_of, own_kernels
from modelplan.runtimes.tflm.runner import (
    INSTALL,
    OvertimeError,
    RefusalError,
    installed,
    run_tflm,
    tflm_values,
    tflm_version,
)

#: Said of a file whose plan counts on the order of kernels that the wheel does not have.
_UNPLANNED = "without the plan, which holds for {} kernels only"
#: What a run of a file gives: something of each invocation's outputs that is equal where the outputs are.
Outputs = Sequence[object]
#: How the model, and how the rewritten file, is run.
Runs = tuple[Callable[[bytes], Outputs], Callable[[bytes], Outputs]]
#: The inputs of each invocation.
Feeds = Sequence[Sequence[Array]]


@dataclass(frozen=True, slots=True)
class ExecutionEffort:
    """The seed of random inputs, and the seconds after which no further cut is run (None: all are).

    So many `rounds` of random inputs are run, and where it is not a single one, also the least, 0 and the greatest.
    With a limit of seconds files that are cut off get a single one.
    """

    seed: int = 0
    seconds: float | None = None
    rounds: int = 2

    @property
    def of_cuts(self) -> ExecutionEffort:
        """The effort of running files that are cut off."""
        return self if self.seconds is None else replace(self, rounds=1)


def execute_on_tflm(
    original: Source,
    rewritten: Source,
    compared: Compared,
    effort: ExecutionEffort = ExecutionEffort(),  # noqa: B008 - frozen
    kernels: str = "reference",
) -> Executed:
    """Runs both files on TFLM's reference kernels, inputs in a row without a reset.

    A plan that holds for other `kernels` only is left out.

    Raises:
        BrokenPlanError: outputs differ, or TFLM's head is not the predicted one.
        Skipped: the wheel is missing or refuses the model itself.
    """
    if not installed():
        raise Skipped(f"tflite-micro is not installed; {INSTALL}")
    heads: dict[bytes, int] = {}
    plain = for_reference_kernels(rewritten.model, kernels, (rewritten, compared))
    unplanned = plain is not rewritten.model
    rewritten = replace(rewritten, model=plain)

    def run(effort: ExecutionEffort, data: bytes) -> Outputs:
        done = run_tflm(data, rounds=effort.rounds, seed=effort.seed, extremes=effort.rounds > 1)
        heads[data] = done.head
        return done.outputs

    def run_given(data: bytes, feeds: Feeds) -> list[list[Array]]:
        heads[data] = run_tflm(data, rounds=0).head
        return [outputs for outputs, _ in tflm_values(data, [[x.tobytes() for x in feed] for feed in feeds])]

    def runs_with(effort: ExecutionEffort) -> Runs:
        if compared.host.converts:
            return converted_runs(original, rewritten, compared.host, effort, run_given)
        return (partial(run, effort),) * 2

    said = _compare(original, rewritten, compared, runs_with, effort, further=unplanned)
    ran = rewritten.model.data if rewritten.model.data in heads else next(reversed(heads))  # with further outputs
    head = heads[ran]
    predicted = planner.predicted_head(read_tflite(ran, rewritten.model.name))  # with the wheel's own kernels
    if planner.padded(head) != planner.padded(predicted):
        raise BrokenPlanError(f"TFLM reports a head of {head:,} bytes, predicted are {predicted:,}")
    head_said = _UNPLANNED.format(library_of(kernels)) if unplanned else f"head {head:,} bytes"
    has_plan = planner.read_plan(rewritten.model) is not None
    how = "without its plan" if unplanned else "with its plan" if has_plan else "as it is"
    what = f"the file {how} on TFLM's reference kernels"
    return Executed(f"{said}, {head_said}, tflite-micro {tflm_version()}", what, not unplanned)


def for_reference_kernels(model: FileModel, kernels: str, followed: tuple[Source, Compared] | None = None) -> FileModel:
    """The file as TFLM's own kernels can run it: without its plan where that holds for `kernels` only.

    `followed` is the file with its rows, where these were compared with another one's already.
    """
    if kernels == "reference":
        return model
    try:
        source, compared = followed or _followed(read_source(model), kernels)
        replay_memory(source, compared.rewritten, compared.catalogue)
    except (Fault, Unproved, BrokenPlanError):
        return read_tflite(planner.without_plan(model.data), model.name)
    return model


def _followed(source: Source, kernels: str) -> tuple[Source, Compared]:
    """A file with its rows, compared with its own."""
    return source, compare_rows(source, source, own_kernels(kernels))


def execute_on_litert(
    original: Source,
    rewritten: Source,
    compared: Compared,
    effort: ExecutionEffort = ExecutionEffort(),  # noqa: B008 - frozen
) -> Executed:
    """Runs both files on LiteRT, which ignores the plan: on its fast kernels, on plain ones where results differ there.

    Fast kernels add floats in an order that hangs on the shape, so that only equal results say something.

    Raises:
        BrokenPlanError: outputs differ.
        Skipped: the package is missing or refuses the model itself.
    """
    if not litert_installed():
        raise Skipped(f"ai-edge-litert is not installed; {INSTALL_LITERT}")

    def compare(runs_with: Callable[[ExecutionEffort], Runs]) -> str:
        return _compare(original, rewritten, compared, runs_with, effort, further=True)

    if compared.host.converts:
        said = compare(lambda effort: converted_runs(original, rewritten, compared.host, effort, _given_to_litert))
    else:
        try:
            said = compare(lambda effort: (partial(_on_litert, effort, OPTIMISED),) * 2)
        except (BrokenPlanError, Skipped):
            said = compare(lambda effort: (partial(_on_litert, effort, REFERENCE),) * 2)
    return Executed(said, "the file on LiteRT's kernels, which know no plan")


def converted_runs(
    original: Source,
    rewritten: Source,
    host: HostSide,
    effort: ExecutionEffort,
    run: Callable[[bytes, Feeds], list[list[Array]]],
) -> Runs:
    """How each of two files is run on the same inputs, which the program converts for the second as its outputs.

    Inputs are random, some beyond what the codes can say; all at the least, the middle and the greatest value.
    """
    rng, main = np.random.default_rng(effort.seed), original.parts[0]
    ends = list(zip((main.cells[t] for t in main.inputs), host.inputs, strict=True))
    places = [None] * effort.rounds + ([-0.1, 0.5, 1.1] if effort.rounds > 1 else [])
    feeds = [[_values(cell, end, rng, place) for cell, end in ends] for place in places]
    passed = [[x if e is None else e.quantised(x) for x, e in zip(feed, host.inputs, strict=True)] for feed in feeds]

    def run_converted(data: bytes) -> Outputs:
        raw_outputs = run(data, passed)
        outputs = host.outputs if data == rewritten.model.data else (None,) * len(raw_outputs[0])
        return _digests(
            [y if e is None else e.restored(y) for y, e in zip(ys, outputs, strict=True)] for ys in raw_outputs
        )

    return lambda data: _digests(run(data, feeds)), run_converted


def _values(cell: Cell, end: HostConversion | None, rng: np.random.Generator, place: float | None) -> Array:
    """Values for an input; `place` is where all of them lie between the least and the greatest code."""
    if end is None or cell.coding.dtype != "float32":
        return random_array(cell.coding.dtype, cell.shape, rng)
    low, high = CODES[end.inner.coding.dtype]
    shares = rng.uniform(-0.1, 1.1, cell.shape) if place is None else np.full(cell.shape, place)
    steps = low + shares * (high - low) - end.inner.coding.zero
    return (steps * end.inner.coding.scales[0]).astype(np.float32)


def _digests(runs: Iterable[Sequence[Array]]) -> list[str]:
    return [hashlib.sha256(b"".join(np.ascontiguousarray(y).tobytes() for y in ys)).hexdigest() for ys in runs]


def _given_to_litert(data: bytes, feeds: Feeds) -> list[list[Array]]:
    try:
        return litert_given(data, feeds)
    except LiteRTError as problem:
        raise RefusalError(f"LiteRT: {problem}") from None


def _compare(
    original: Source,
    rewritten: Source,
    compared: Compared,
    runs_with: Callable[[ExecutionEffort], Runs],
    effort: ExecutionEffort,
    *,
    further: bool,
) -> str:
    """Runs both files; with `further` once, the maps at the end of stretches outputs too, if that shows them equal."""
    began = time.monotonic()
    cuts = stretch_ends(original, rewritten, compared)
    if cuts and further and not compared.host.converts:
        kept = (
            with_outputs(original, [cut.original[0] for cut in cuts]),
            with_outputs(rewritten, [cut.rewritten[0] for cut in cuts]),
        )
        with suppress(BrokenPlanError, Skipped):  # what differs is named below
            count = _equal_runs("the outputs", *kept, runs_with(effort))
            return f"{counted(count, 'run')} bit-equal, with the maps at the end of {counted(len(cuts), 'stretch')}"
    count = _equal_runs("the outputs", original.model.data, rewritten.model.data, runs_with(effort))
    done = 0
    for cut in cuts:
        if effort.seconds is not None and time.monotonic() - began > effort.seconds:
            break
        ends = cut_off(original, *cut.original), cut_off(rewritten, *cut.rewritten)
        count += _equal_runs(f"the map {cut.name!r}", *ends, runs_with(effort.of_cuts))
        done += 1
    left = f" of {len(cuts)}, the rest left out after {effort.seconds:g} seconds" if done < len(cuts) else ""
    ends_said = f", cut off at the end of {counted(done, 'stretch')} too{left}" if cuts else ""
    return f"{counted(count, 'run')} bit-equal{ends_said}"


def _equal_runs(what: str, before: bytes, after: bytes, runs: Runs) -> int:
    """Runs both; returns how many runs were equal."""
    try:
        wanted = runs[0](before)
    except RefusalError as reason:
        raise Skipped(f"the model does not run by itself: {reason}") from None
    try:
        outputs = runs[1](after)
    except OvertimeError as reason:
        raise Skipped(f"the rewritten model takes too long: {reason}") from None
    except RefusalError as reason:
        raise BrokenPlanError(f"the rewritten model does not run: {reason}") from None
    for number, (a, b) in enumerate(zip(wanted, outputs, strict=True)):
        if a != b:
            raise BrokenPlanError(f"run {number}: {what} of the rewritten model differ from the model's")
    return len(wanted)


def _on_litert(effort: ExecutionEffort, kernels: str, data: bytes) -> Outputs:
    try:
        return litert_outputs(data, effort.rounds, effort.seed, kernels=kernels)
    except LiteRTError as problem:
        raise RefusalError(f"LiteRT: {problem}") from None
