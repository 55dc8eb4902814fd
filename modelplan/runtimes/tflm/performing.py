"""What TFLM takes from the arena for one operator while it parses, initialises and prepares it, on any target."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm import kernels
from modelplan.runtimes.tflm.abi import Struct
from modelplan.runtimes.tflm.kernels import Call, KernelSet, Others, Preparation, Refusal
from modelplan.runtimes.tflm.kernels.preparation import MARGIN, SCRATCH, PreparationEvent, temporaries

#: The room that stays for a custom operator of which nothing is known: more than TFLM's own ones keep. Its working
#: memory is an operand where its maker planned the file.
_STRUCTURES = 1024

#: Said of an operator that TFLM cannot run at all.
NO_KERNEL = "TFLM has no kernel for it"

#: How many pairs of a library and a release are remembered, and how many different operators for each.
_REMEMBERED = 16
_MOST_KERNELS = 100_000


class Taken(NamedTuple):
    """The arena use of one operator: its parsed options, and the events of Init and of Prepare.

    Networks repeat few of them. `exact` is false where no sizes are known.
    """

    kind: str
    options: Struct
    initial: tuple[PreparationEvent, ...]
    events: tuple[PreparationEvent, ...]
    exact: bool

    @property
    def scratch(self) -> tuple[PreparationEvent, ...]:
        """The requests for scratch."""
        return tuple(event for event in self.events if event.sort == SCRATCH)


@dataclass(frozen=True, slots=True)
class Done:
    """The arena use of an operator and its scratch requests; `refusal` says why its kernel would fail.

    `unknown`: TFLM has no kernel for it, but a build with the user's own might. `reshaped` is another shape of the
    first output; `alone` says that other operators of the model decide nothing.
    """

    taken: Taken
    scratch: int
    refusal: str | None
    reshaped: tuple[int, ...] | None
    alone: bool
    unknown: bool = False


class Kernels:
    """The kernels of a library in one release of TFLM, with a cache of their operators' arena use.

    An operator is known by identity: those alike are one object.
    """

    def __init__(self, library: KernelSet, *, later: bool) -> None:
        self.library, self.later = library, later
        self._known: dict[int, tuple[Call, Done]] = {}  # with the operator, which so stays alive
        self._taken: dict[Taken, Taken] = {}

    def of(self, call: Call) -> Done | None:
        """The cached arena use of an operator."""
        entry = self._known.get(id(call))
        return None if entry is None else entry[1]

    def perform(self, call: Call, others: Others | None = None) -> Done:
        """The arena use of an operator; `others` is the state it shares with its model."""
        done = self._perform(call, others)
        if done.alone:
            if len(self._known) >= _MOST_KERNELS:
                self._known, self._taken = {}, {}
            self._known[id(call)] = call, done
        return done

    def _perform(self, call: Call, others: Others | None) -> Done:
        first, then = (Preparation(call, later=self.later, others=others) for _ in range(2))
        entry, refusal = self.library.operators.get(call.kind), None
        if entry is None:
            refusal = NO_KERNEL
        else:
            first.keep_struct(entry.data)
            try:
                entry.initialise(first)
                kernels.prepare_operator(entry, then)
                kernels.check_types(entry, call, later=self.later)
                _check_unpacked(call, entry.unpacks, self.library.name)
            except Refusal as problem:
                refusal = str(problem)
        exact, unknown = entry is not None and entry.exact, entry is None and call.custom
        events = [*then.events, *_margin(call)] if unknown else then.events
        options = entry.options if entry is not None and not call.custom else ()
        taken = Taken(call.kind, options, tuple(first.events), tuple(events), exact)
        taken = self._taken.setdefault(taken, taken)
        return Done(taken, len(taken.scratch), refusal, then.reshaped, first.alone and then.alone, unknown)


@lru_cache(maxsize=_REMEMBERED)
def kernels_of(library: str, *, later: bool) -> Kernels:
    """The kernels of a library in the release that the tables follow, or in the `later` one."""
    return Kernels(kernels.find_library(library), later=later)


def scratch_sizes(call: Call, library: str, pointer: int) -> tuple[int, ...]:
    """The bytes that the kernel of an operator requests, where an address has `pointer` bytes."""
    if kernels.is_group(library):
        libraries = kernels.find_libraries(library)
        return kernels.most_scratch(scratch_sizes(call, member.name, pointer) for member in libraries)
    library_kernels = kernels_of(library, later=False)
    done = library_kernels.of(call) or library_kernels.perform(call)
    return kernels.requested(done.taken.events, pointer)


def _check_unpacked(call: Call, unpacked: Sequence[int], library: str) -> None:
    """Requires that the kernel unpacks each compressed input."""
    for index, operand in enumerate(call.inputs):
        if operand is not None and operand.compressed and index not in unpacked:
            raise Refusal(f"input {index} is compressed, and its kernel of {library} reads the indices as weights")


def _margin(call: Call) -> Iterator[PreparationEvent]:
    """More than a kernel needs that keeps no more than its structures."""
    yield PreparationEvent(MARGIN, _STRUCTURES)
    for operand in (*call.inputs, *call.outputs):
        if operand is not None:
            yield from temporaries(operand.scales)
