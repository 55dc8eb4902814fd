"""What `explain` finds out, as frozen records: the peak with all that is alive, and suggestions with their bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY
from enum import IntEnum
from itertools import accumulate

from modelplan.model import Plan, Requirement
from modelplan.model.model_file import ModelFile
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown


class Needs(IntEnum):
    """What a change asks for beside the edit of a file, the least first."""

    NOTHING = 0
    """Outputs stay equal, and a run does no more work."""
    WORK = 1
    """Outputs stay equal; a run does more work."""
    PLATFORM = 2
    """Other kernels, another runtime, other firmware or a second memory."""
    MODEL = 3
    """Another model, whose accuracy is not known."""


class Way(IntEnum):
    """What a change exchanges, the least first: ways that fit are named in this order."""

    KERNELS = 0
    """The kernel library of the same runtime."""
    PLAN = 1
    """The order or the memory plan in the file."""
    FILE = 2
    """The file, for one of other operators with equal outputs."""
    INTERFACE = 3
    """What the program passes to the model."""
    MEMORY = 4
    """Where the program keeps memory, or who plans it."""
    C_HELD = 5
    """The runtime, for plain C with the same inputs and outputs."""
    C_INTERFACE = 6
    """The runtime and what the program passes."""
    C_ROWS = 7
    """The runtime and how the program passes it: row by row."""
    RUNTIME = 8
    """The runtime, for another one."""
    MODEL = 9
    """The model."""


@dataclass(frozen=True, slots=True)
class LiveBuffer:
    """A buffer alive at the peak: its tensors, bytes, share of the peak, who makes it, and what keeps it until when.

    `until` is the step after which its bytes are free, -1 where they stay to the end of the run. `rules` say why its
    tensors share these bytes.
    """

    tensors: tuple[str, ...]
    nbytes: int
    share: float
    made_by: str
    until: int
    keeper: str
    why: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepLoad:
    """A step of a plan: its operator, and the bytes alive while it runs; `alike` are later steps with as many."""

    step: int
    operator: str
    nbytes: int
    alike: int = 0


@dataclass(frozen=True, slots=True)
class Peak:
    """The step at which most is alive, what is, the steps near it, and the peaks that follow once it is lower.

    `near` are the other steps with at least nine tenths of the peak, in the order of the run. Of `following` each is
    the first of the highest steps once the peak and all steps before in the list are lower. `height` is where the plan
    ends, in bytes: gaps that the planner leaves lie between that and the peak.
    """

    top: StepLoad
    alive: tuple[LiveBuffer, ...]
    near: tuple[StepLoad, ...]
    following: tuple[StepLoad, ...]
    height: int


@dataclass(frozen=True, slots=True)
class Compression:
    """What a compression that nothing carries out would do: bytes before and after.

    `count` constants or activations are compressed. `flash` are the constants. `head` are the planned activations in
    one order: `head_after` with decompression into the arena, `head_direct` with kernels that need none.

    The others are 0 but for weights that operators of TFLM unpack: the whole arena as TFLM plans it, before and after,
    and what it is beside a memory of `region` bytes for what they unpack; both 0 where there can be no such memory.
    """

    name: str
    count: int
    flash_before: int
    flash_after: int
    head_before: int
    head_after: int
    head_direct: int
    arena_before: int = 0
    arena_after: int = 0
    region: int = 0
    arena_beside: int = 0


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Changes that lower what a model needs, with the bytes of the plan that was made for the changed model.

    `steps` name the changes in the order in which they are made. `arena` and `saved_arena` are None where the other
    side counts the planned activations only. `needs` is the most that any of the steps asks for. `commands` are to
    paste; `todo` says in words what no command does. `way` is the largest exchange that any of the steps makes.
    """

    steps: tuple[str, ...]
    arena: int | None
    head: int
    saved_arena: int | None
    saved_head: int
    costs: tuple[str, ...]
    needs: Needs
    commands: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    way: Way = Way.PLAN

    @property
    def free(self) -> bool:
        """Whether the change keeps the outputs equal, adds no work and needs nothing but the edited file."""
        return self.needs is Needs.NOTHING

    @property
    def name(self) -> str:
        """The changes in one line."""
        return " + ".join(self.steps)

    @property
    def saved(self) -> int:
        """Bytes saved of the arena, or of the planned part where only that can be compared."""
        return self.saved_head if self.saved_arena is None else self.saved_arena


def ways_of(suggestions: Iterable[Suggestion], capacity: int) -> tuple[Suggestion, ...]:
    """Of the suggestions whose arena fits the capacity the one of fewest steps and least bytes for each way.

    The least change comes first. Plain C that asks more of the program is left out where it needs no less.
    """
    best: dict[Way, Suggestion] = {}
    for change in sorted(suggestions, key=lambda change: (change.way, len(change.steps), change.arena or 0)):
        if change.arena is not None and change.arena <= capacity:
            best.setdefault(change.way, change)
    in_c = [best[way] for way in (Way.C_HELD, Way.C_INTERFACE, Way.C_ROWS) if way in best]
    least = accumulate(((change.arena or 0) for change in in_c), min, initial=capacity + 1)
    more = {change.way for change, before in zip(in_c, least, strict=False) if (change.arena or 0) >= before}
    return tuple(change for way, change in best.items() if way not in more)


@dataclass(frozen=True, slots=True)
class CWay:
    """A form of plain C that fits: what it needs, what the program does for it, and the command."""

    ram: int
    cost: str
    command: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What was tried on a model: what needs less, what does not, and what cannot be done and why.

    `suggestions` are in the order of `ranking.ranked`. `same` also holds what comes to the same bytes as a suggestion
    of its kind. `untried` are changes for which there was no time.
    """

    suggestions: tuple[Suggestion, ...]
    same: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    untried: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation(Shown):
    """What an unmodified model file needs, its peak, and what would help; `capacity` are the bytes there are.

    `what_if` are compressions that were asked about; nothing carries them out. `plan` is the plan that was asked for,
    `unmodified` the one by which the runtime runs the unmodified file, `explained` that of the two whose peak it is.
    """

    model: str
    needed: Requirement
    peak: Peak
    advice: Advice
    capacity: int | None = None
    what_if: tuple[Compression, ...] = ()
    _: KW_ONLY
    file: ModelFile
    explained: Plan
    plan: Plan
    unmodified: Plan

    @property
    def remedy(self) -> Suggestion | None:
        """The first of the ways that fit; None where there is none or the file fits as it is."""
        return next(iter(self.ways), None)

    @property
    def ways(self) -> tuple[Suggestion, ...]:
        """For each way the suggestion that fits the capacity, the least change first; none where the file fits."""
        if self.capacity is None or self.needed.fits(self.capacity):
            return ()
        return ways_of(self.advice.suggestions, self.capacity)
