"""What options name files for: streams, overlaps, contiguous lists, and the plan that a model file carries."""

from collections.abc import Sequence

from modelplan.formats.whole_files import read_text
from modelplan.model import Graph, Overlap
from modelplan.primitives.errors import ModelError, RequestError

#: The allocator that takes the offsets that the file already has.
FROM_FILE = "file"
#: What `contiguous` may be in place of a file: the parts of joins and splits lie inside of the whole.
JOINS = "joins"
#: Longest number of streams; a longer one is the name of a file.
_MOST_DIGITS = 9


def carried_plan(path: str) -> tuple[int, ...]:
    """The plan that a .tflite file carries for TFLM, which places the rest around it.

    Raises:
        RequestError: the file carries none.
    """
    from modelplan.runtimes.tflm.file import load_tflite
    from modelplan.runtimes.tflm.planner import METADATA, read_plan

    offsets = read_plan(load_tflite(path)) if path.endswith(".tflite") else None
    if offsets is None:
        raise RequestError(f"--allocator {FROM_FILE}: {path} carries no plan ({METADATA})")
    return offsets


def streams_of(value: int | str | None, graph: Graph) -> int | tuple[int, ...] | None:
    """A number of streams, or the streams that a file assigns.

    Raises:
        RequestError: the file cannot be read.
        ModelError: a line of it does not fit the model.
    """
    if value is None or isinstance(value, int):
        return value
    if value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        return int(value)
    from modelplan.planning.streams import parse_streams

    return parse_streams(_text(value, "--streams"), graph, value)


def lists_of(path: str | None, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The contiguous lists in the file, by the number of each name; nothing without a file.

    Raises:
        RequestError: it cannot be read.
        ModelError: a line of it does not fit the names.
    """
    if path is None or path == JOINS:
        return ()
    from modelplan.formats.stated_tables import parse_lists

    return parse_lists(_text(path, "--contiguous"), names, path)


def overlaps_of(path: str | None, graph: Graph | None) -> tuple[Overlap, ...]:
    """The overlaps that the file declares; nothing without one.

    Raises:
        RequestError: it cannot be read, or is given for more than one model.
        ModelError: a line of it does not fit the model.
    """
    if path is None:
        return ()
    if graph is None:
        raise RequestError("a file of overlaps needs one model")
    from modelplan.formats.stated_tables import parse_overlaps

    return parse_overlaps(_text(path, "--overlaps"), graph, path)


def _text(path: str, option: str) -> str:
    """The file that the caller named; one that cannot be read is the request's fault."""
    try:
        return read_text(path)
    except ModelError as problem:
        raise RequestError(f"{option}: cannot read {problem}") from None
