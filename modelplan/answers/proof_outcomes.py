"""What `verify` finds out, the verdict of each level of proof; and what firmware is to find when it runs a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown
from modelplan.runtimes.tflm.arena import Arena
from modelplan.runtimes.tflm.file import FileModel

if TYPE_CHECKING:
    from modelplan.answers.moving_layout import MovingPlan
    from modelplan.answers.region_plan import RegionPlan


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one level: "ok" with details, "skipped" or "unproved" with the reason, "broken" with the fault.

    `executed` says what a level ran and on which kernels, `planned` whether it ran with the plan that is proved.
    """

    level: str
    outcome: Literal["ok", "skipped", "unproved", "broken"]
    details: str
    executed: str = ""
    planned: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Proof(Shown):
    """The verdict of each level that was tried, and why the file is refused; `fault` is empty where it is proved.

    `kernels` is the library that a plan for TFLM has to be right with, empty where the plan is for another runtime.
    `against` is the rewritten file where two were compared, `head` the bytes that TFLM plans by the plan in a file, and
    `layout` what was read from a layout in several memories.
    """

    path: str
    verdicts: tuple[Verdict, ...]
    fault: str = ""
    against: str = ""
    head: int | None = None
    layout: RegionPlan | MovingPlan | None = None
    kernels: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """What one output of one run has to be.

    Args:
        crc: the CRC-32 of its bytes.
        means: where kernels may differ in rounding, the mean of every `block` elements in their order; else none.
        tolerance: how far a mean may be off.
    """

    crc: int
    means: tuple[float, ...] = ()
    block: int = 1
    tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class WrittenTensor:
    """An output of an operator of the main subgraph: what stands there when the operator has run.

    Args:
        op: the operator's number.
        tensor: the tensor's number.
        nbytes: its bytes.
        crcs: their CRC-32 in each run.
    """

    op: int
    tensor: int
    nbytes: int
    crcs: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SelfTest(Shown):
    """The runs of a model that firmware repeats in an arena of the planned size.

    Args:
        model: the file that the firmware runs.
        original: the name of the file from which the outputs come.
        arena: what the model needs, for its kernels and ABI.
        kernels: the kernel library that the arena is for.
        variables: how many resource variables the model has.
        seed: of the generated inputs.
        runs: the outputs of each run, one after the other without a reset.
        written: what operators write in each run; none where kernels may differ in rounding.
        executed_by: the runtime and the kernels that the outputs come from.
    """

    model: FileModel
    original: str
    arena: Arena
    kernels: str
    variables: int
    seed: int
    runs: tuple[tuple[ExpectedOutput, ...], ...]
    written: tuple[WrittenTensor, ...]
    executed_by: str
