"""The options of how buffers are placed, which commands share that place those of models or of a table."""

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Callable

from modelplan.model import Budget, Progress
from modelplan.planning import allocators
from modelplan.primitives.errors import RequestError
from modelplan.questions.option_files import FROM_FILE


def add_contiguous(parser: ArgumentParser | _ArgumentGroup, what: str, more: str = "") -> None:
    """Adds the lists of what has to stand side by side."""
    parser.add_argument(
        "--contiguous",
        metavar="FILE",
        help=f"{what} that stand side by side in this order: names separated by commas, one list a line{more}",
    )


def add_allocator(parser: ArgumentParser, stored: str = "") -> None:
    """Adds the choice of the allocator; `stored` says of what in the file `file` takes the offsets, empty: none."""
    from_file = f"; {FROM_FILE}: {stored}" if stored else ""
    parser.add_argument(
        "--allocator",
        metavar="NAME",
        help=f"see `modelplan allocators`{from_file} (default: {allocators.DEFAULT})",
    )


def add_budget(parser: ArgumentParser) -> None:
    """Adds how long a search may run."""
    parser.add_argument("--steps", type=int, metavar="N", help="a budget that gives the same answer everywhere")
    parser.add_argument("--seconds", type=float, metavar="S", help="a deadline")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="at most 2 (default: 1)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of whatever is drawn at random (default: 0)")


def budget_of(arguments: Namespace, progress: Callable[[Progress], None] | None = None) -> Budget:
    """The budget from the parsed arguments."""
    try:
        limits = arguments.steps, arguments.seconds, arguments.seed, arguments.threads
        return Budget(*limits, progress=progress)
    except ValueError as problem:
        raise RequestError(str(problem)) from None
