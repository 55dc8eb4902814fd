"""The way through the stripes of a stretch that every format takes when it appends their operators to its program."""

from abc import ABC, abstractmethod

from modelplan.rewriting.stripes.row_windows import IllegalStripeError, InputWindow
from modelplan.rewriting.stripes.stretches import UnrolledLayers
from modelplan.rewriting.stripes.stripe_program import HeldRows
from modelplan.rewriting.stripes.stripe_rows import StripeRows, stripe_rows


class StripeLowering(ABC):
    """Appends the operators of a stretch in stripes to a program, in the order in which they run.

    `held` are the values in which rows of maps stand that later operators and stripes read, `pieces` the stripes of
    each result. `number` and `rows` are those of the present stripe.
    """

    def __init__(self, base: UnrolledLayers) -> None:
        self.base, self.graph = base, base.graph
        self.held: dict[int, HeldRows] = {}
        self.pieces: dict[int, list[HeldRows]] = {t: [] for t in base.exits}
        self.number, self.rows = 0, StripeRows()

    def append(self) -> None:
        """Appends all stripes.

        Raises:
            IllegalStripeError: the stretch has no stripes of this form.
        """
        for number, rows in enumerate(stripe_rows(self.base)):
            self.number, self.rows = number, rows
            self.begin_stripe()
            for op in self.base.ops:
                if op in rows.windows:
                    self.append_operator(op, rows.windows[op])

    @abstractmethod
    def begin_stripe(self) -> None:
        """Called before the operators of a stripe are appended."""

    @abstractmethod
    def append_operator(self, index: int, window: InputWindow) -> None:
        """Appends an operator on its rows of this stripe, with what cuts and joins them."""

    def kept_rows(self, t: int, lo: int, hi: int) -> HeldRows:
        """The value that holds rows [lo, hi) of a map since stripes before.

        Raises:
            IllegalStripeError: they are gone.
        """
        held = self.held.get(t)
        if held is None or held.lo > lo or held.hi < hi:
            name = self.graph.tensors[t].name
            raise IllegalStripeError(f"stripe {self.number} needs row {lo} of {name!r}, which is gone")
        return held

    def shape_of(self, t: int, axis: int, rows: int) -> tuple[int, ...]:
        """The shape of so many rows of a map."""
        shape = self.graph.tensors[t].shape
        return (*shape[:axis], rows, *shape[axis + 1 :])
