"""`fit`: .tflite files rewritten so that they fit, on an unmodified TFLM."""

from __future__ import annotations

import time
from dataclasses import field, replace
from pathlib import Path

from modelplan.checking.verifier.sources import kernels_of_plan
from modelplan.formats.unpacking import inner_suffix
from modelplan.model import Graph
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.primitives.settled_requests import SettledRequest, answers_paths
from modelplan.rewriting.striped_tflite import ladder as tflite_ladder
from modelplan.rewriting.striped_tflite.ladder import Ladder
from modelplan.rewriting.striped_tflite.rungs import Goal
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.kernels import ALL
from modelplan.runtimes.tflm.kernels.own_kernels import library_of, with_library


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRequest(SettledRequest, Goal):
    """Asks for the cheapest change of a .tflite file that meets a budget, and what every rung of the ladder needs.

    Args:
        model: the file, or the graph that was loaded from it.
        budget: bytes that the objective may need; None asks for the least.
        objective: "arena" counts all of TFLM's arena, "head" its planned part.
        abi: of the target, as in `modelplan check`; "32" and "64" stand for any of so many bits.
        kernels: the kernel library on the target: "reference", "cmsis-dsp" and others; "all": what is right with each;
            empty: that of the plan in the file, else all. `+NAME=BYTES` behind it is a kernel of your own.
        tflm: the day of the TFLM that will run the file; None: the newest.
        max_macs: multiply-accumulates that may be added, as a share of the model's.
        max_ops: operators that the file may have.
        max_flash: bytes that the file may have.
        max_time: time of an invocation that may be added, as a share of the model's, as it is expected of the reference
            kernels.
        interface: type of inputs and outputs, "int8" or "uint8", where the program converts in place of the model's
            outer QUANTIZE and DEQUANTIZE; "as-is": those of the model.
        without: rungs to skip: "order", "views", "overlaps", "turn", "fold", "gather", "split".
        seed: of the search; the same seed gives the same file.
        effort: how far the search looks.
        seconds: after which the search ends and the best so far is proved; None: no limit. What is found by then
            depends on the machine.
    """

    model: str | Path | Graph = field(kw_only=False)
    kernels: str = ""
    seconds: float | None = None


@answers_paths(FitRequest)
def fit(request: FitRequest, progress: Report = report_nothing) -> Ladder:
    """The cheapest change of a .tflite model that meets a budget, and what every rung of the ladder needs.

    Args:
        request: the model, the budget, and what a change may cost.
        progress: is called with a line now and then.

    Returns:
        The ladder; its `model` is the rewritten file, or None where nothing fits.

    Raises:
        ModelError: the file cannot be read.
        RequestError: the request names what does not exist, or the file has changed since the graph was loaded.
        BrokenPlanError: the chosen file does not compute what the model does; never to be seen.
    """
    if not library_of(request.kernels):
        path = request.model.source if isinstance(request.model, Graph) else request.model
        tflite = inner_suffix(path) == ".tflite"  # what else there is has no plan, and is refused
        usual = kernels_of_plan(load_tflite(path)) if tflite else ALL
        request = replace(request, kernels=with_library(request.kernels, usual))
    deadline = None if request.seconds is None else time.monotonic() + request.seconds

    def check() -> None:
        if deadline is not None and time.monotonic() > deadline:
            raise KeyboardInterrupt  # ends the search as a user does

    return tflite_ladder.climb(request.model, request, progress, check)
