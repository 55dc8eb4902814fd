"""What a session of a runtime takes from the heap, for a runtime that allocates by itself while it runs."""

from modelplan.primitives.lazy_records import dataclass

#: What is added to a prediction, in percent and at least in bytes: measured sessions took up to 1.9 % more
#: (reports/sessions.md), and random ones in tests up to 4 KiB.
_MARGIN, _LEAST_MARGIN = 3, 4096


@dataclass(frozen=True, slots=True)
class SessionNeed:
    """What a session takes from the heap while it runs, in bytes above what it holds once it is loaded.

    `first` and `later` are the most in the first run and in later ones, outputs among them, inputs not.
    `first_tensors` and `later_tensors` are the most in blocks that hold tensors, free room in an arena among them; the
    rest is the session's own bookkeeping. `settings` says in words what is not a default, `code` are the lines of
    Python that make such a session. `measured`: by running it; else predicted. `lowest` is what the session took that
    needed least, where sessions of this model differ from process to process by more than a few pages, else None.
    """

    settings: str
    first: int
    later: int
    first_tensors: int
    later_tensors: int
    code: tuple[str, ...] = ()
    measured: bool = True
    lowest: int | None = None

    @property
    def most(self) -> int:
        """The bytes of the run that needs more."""
        return max(self.first, self.later)

    @property
    def judged(self) -> int:
        """The bytes by which a budget is judged: those of the run that needs more, with a margin if predicted."""
        return self.shown(self.most)

    @property
    def judged_runs(self) -> tuple[int, int]:
        """The bytes of the first run and of later ones by which a budget is judged."""
        return self.shown(self.first), self.shown(self.later)

    def shown(self, nbytes: int) -> int:
        """The bytes as every command shows them: with the margin of a prediction, unless they are measured."""
        return nbytes if self.measured else nbytes + max(-(-nbytes * _MARGIN // 100), _LEAST_MARGIN)

    @property
    def tensors(self) -> int:
        """The bytes in blocks of tensors in the run that needs more."""
        return self.first_tensors if self.first > self.later else self.later_tensors


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """What sessions of a model take, in bytes: at the defaults, and at `others`, which change settings alone.

    `inputs` are the caller's own. `loaded` is what a session holds between runs, `weights` the part of it in blocks
    that hold tensors; where nothing was measured, these are the constants in the file and `loaded` is None. `by_itself`
    is what the runtime's planner needs for the tensors alone. `note` says why a figure is predicted, empty where it is
    measured. `threads` are the intra-op threads. `fed` says which values were chosen for inputs, so that the run has
    the extents that are planned; empty where they decide nothing.
    """

    usual: SessionNeed
    inputs: int
    weights: int
    loaded: int | None
    by_itself: int
    note: str = ""
    threads: int = 1
    others: tuple[SessionNeed, ...] = ()
    fed: str = ""

    def fitting(self, budget: int) -> SessionNeed | None:
        """The session with other settings that needs least, if `budget` bytes are enough for it."""
        return next((session for session in self.others if session.judged <= budget), None)
