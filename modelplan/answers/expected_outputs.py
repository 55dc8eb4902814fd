"""What firmware is to find when it runs a model: the outputs of runs on generated inputs."""

from __future__ import annotations

from dataclasses import dataclass

from modelplan.runtimes.tflm.arena import Arena
from modelplan.runtimes.tflm.file import FileModel


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


@dataclass(frozen=True, slots=True, eq=False)
class SelfTest:
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
