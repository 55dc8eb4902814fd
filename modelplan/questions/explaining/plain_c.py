"""Plain C as a change: the forms that are planned, their commands, and what they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from modelplan.model.model_file import Target, without_options
from modelplan.questions.c_fitting import CEffort, CForm, planned_c
from modelplan.questions.explaining.subjects import Measure, ModelSubject, OutOfTimeError, RefusedChangeError
from modelplan.runtimes.c import C

#: What a plan takes at most where no time is stated; `fit` itself goes on.
EFFORT = CEffort(operators=1_000, nbytes=8_000_000, rows=500_000)


@dataclass(frozen=True, slots=True)
class CChange:
    """A form of plain C: the type of its ends, and whether its input comes by rows."""

    interface: str = "as-is"
    pushed: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The options of `fit` for this form."""
        interface = () if self.interface == "as-is" else ("--interface", self.interface)
        return (*interface, *(("--input", "rows") if self.pushed else ()))


def c_words(target: Target) -> tuple[str, ...]:
    """The options of a target that `fit --runtime c` takes: its device, and kernels that were named and plain C has."""
    device = without_options(target.given, "--kernels", "--abi")
    return device if c_kernels(target) == C.kernels else (*device, "--kernels", c_kernels(target))


def c_kernels(target: Target) -> str:
    """The kernels of plain C for a target: those that were named where plain C calls them, else its own."""
    named = "--kernels" in target.given and target.runtime.kernels in C.library_names
    return target.runtime.kernels if named else C.kernels


def in_plain_c(form: CChange, effort: CEffort = EFFORT) -> Callable[[ModelSubject, object], ModelSubject]:
    """The change that replaces the runtime by plain C of this form."""

    def make(subject: ModelSubject, _: object) -> ModelSubject:
        if subject.source is None:
            raise RefusedChangeError("plain C is written of the unmodified file")
        subject.check_time()
        rung = planned_c(subject.source, CForm(c_kernels(subject.target), form.interface, form.pushed), effort)
        if rung is None:
            raise OutOfTimeError
        return replace(subject, source=None, needs=Measure(rung.ram, rung.program.nbytes, whole=True))

    return make
