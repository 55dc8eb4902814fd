"""Lines by which a search tells how far it has come."""

from collections.abc import Callable

#: Is called with a line now and then; one that ends with a line break is to stay.
Report = Callable[[str], None]


def report_nothing(_: str) -> None:
    """Reports nothing."""
