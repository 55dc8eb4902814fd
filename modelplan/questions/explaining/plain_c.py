"""Plain C as a change: the forms that are planned, their commands, and what they need."""

import shlex
from collections.abc import Callable
from dataclasses import replace

from modelplan.formats.unpacking import inner_stem
from modelplan.model.model_file import Target, without_options
from modelplan.primitives.lazy_records import dataclass
from modelplan.questions.c_fitting import CForm, planned_c
from modelplan.questions.explaining.subjects import Measure, ModelSubject, OutOfTimeError, RefusedChangeError
from modelplan.runtimes.c import C

#: Of larger models nothing is planned; `fit` itself goes on.
_MOST_OPERATORS, _MOST_BYTES = 400, 8_000_000


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
    device = without_options(target.given, "--kernels", "--abi", "--custom")
    return device if c_kernels(target) == C.kernels else (*device, "--kernels", c_kernels(target))


def c_command(path: str, target: Target, *goal: str) -> str:
    """The command that writes a file as plain C for a target, of least memory where no other `goal` is named."""
    words = ("modelplan", "fit", path, "--runtime", C.name, *c_words(target), *(goal or ("--least",)))
    return shlex.join((*words, "-o", f"{inner_stem(path)}.c"))


def c_kernels(target: Target) -> str:
    """The kernels of plain C for a target: those that were named where plain C calls them, else its own."""
    named = "--kernels" in target.given and target.runtime.kernels in C.library_names
    return target.runtime.kernels if named else C.kernels


def in_plain_c(form: CChange) -> Callable[[ModelSubject, object], ModelSubject]:
    """The change that replaces the runtime by plain C of this form."""

    def make(subject: ModelSubject, _: object) -> ModelSubject:
        if subject.source is None:
            raise RefusedChangeError("plain C is written of the unmodified file")
        subject.check_time()
        if len(subject.source.graph.ops) > _MOST_OPERATORS or len(subject.source.content) > _MOST_BYTES:
            raise OutOfTimeError
        written = CForm(c_kernels(subject.target), form.interface, form.pushed)
        rung = planned_c(subject.source, written, subject.most_rows, subject.most_stages, proved=False)
        return replace(subject, source=None, needs=Measure(rung.ram, rung.program.nbytes, whole=True))

    return make
