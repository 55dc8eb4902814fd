"""Level *execution*: TFLM runs the model with and without the plan; outputs must agree, the head be as predicted."""

from collections.abc import Callable, Sequence

from modelplan.checking.verifier.rewrites.executing import for_reference_kernels
from modelplan.checking.verifier.subject import Subject
from modelplan.checking.verifier.verdicts import Executed, Skipped
from modelplan.primitives.errors import BrokenPlanError
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels.own_kernels import library_of
from modelplan.runtimes.tflm.runner import INSTALL, OvertimeError, RefusalError, installed, run_tflm, tflm_version

#: Puts an offset for each tensor into a .tflite file, as the offline plan that TFLM reads.
PlanWriter = Callable[[FileModel, Sequence[int]], bytes]

_ROUNDS = 6


def execute(subject: Subject, write_plan: PlanWriter, seed: int = 0) -> Executed:
    """Runs the model with and without the plan on the same random inputs, several times without a reset.

    Raises:
        BrokenPlanError: TFLM refuses the plan, reports another head, or computes something else.
        Skipped: the plan is not for TFLM, the wheel is missing, or TFLM cannot run the model at all.
    """
    offline = subject.offline
    if offline is None:
        raise Skipped("the plan is not one that TFLM can read from a .tflite file")
    if not installed():
        raise Skipped(f"tflite-micro is not installed; {INSTALL}")
    planned_file, kernels = write_plan(offline.model, offline.offsets), subject.program.library
    if for_reference_kernels(read_tflite(planned_file, offline.model.name), kernels).data != planned_file:
        raise Skipped(f"the plan holds for {library_of(kernels)} kernels only, and the wheel has TFLM's own")
    online = (planner.ONLINE,) * len(offline.offsets)
    try:
        own = run_tflm(write_plan(offline.model, online), rounds=_ROUNDS, seed=seed)
    except RefusalError as problem:
        raise Skipped(f"the model does not run without the plan either: {problem}") from None
    try:
        planned = run_tflm(planned_file, rounds=_ROUNDS, seed=seed)
    except OvertimeError as problem:
        raise Skipped(f"with the plan {problem}") from None
    except RefusalError as problem:
        raise BrokenPlanError(f"with the plan {problem}") from None
    predicted = planner.predicted_head(read_tflite(planned_file, offline.model.name))  # with the wheel's own kernels
    if planner.padded(planned.head) != planner.padded(predicted):  # TFLM rounds no head that ends off its alignment
        raise BrokenPlanError(f"TFLM reports a head of {planned.head} bytes, predicted were {predicted}")
    for number, (ours, theirs) in enumerate(zip(planned.outputs, own.outputs, strict=True)):
        if ours != theirs:
            raise BrokenPlanError(f"run {number}: the outputs differ from those without the plan")
    runs = len(planned.outputs)
    said = f"{runs} runs bit-equal, head {planned.head} bytes as predicted, tflite-micro {tflm_version()}"
    return Executed(said, "the file with its plan on TFLM's reference kernels", planned=True)
