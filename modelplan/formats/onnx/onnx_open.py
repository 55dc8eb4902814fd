"""Extents that a model leaves open: the refusal that names all of them, with options to paste."""

import re
from collections.abc import Callable, Mapping, Sequence

from modelplan.formats.dims import Dims, dim_option, is_symbol, shape_option
from modelplan.formats.onnx.onnx_types import Extent
from modelplan.primitives.errors import ModelError, ModelPlanError
from modelplan.primitives.lazy_records import dataclass

#: Extents that are tried for what is open behind a first axis, which is taken as a batch of 1.
SIZES = (64, 512, 16, 224, 640, 1)
#: Times that what is found open behind other open values is filled in before the rest is left to the caller.
MOST_ROUNDS = 8
#: Most values that a message names.
_MOST_NAMED = 40

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class OpenValue:
    """A value with an open extent; `shape` is None where even the rank is open."""

    name: str
    shape: tuple[Extent, ...] | None
    is_input: bool

    def __str__(self) -> str:
        return f"{self.name!r} {_written(self.shape)}"


class OpenExtentsError(ValueError):
    """Values whose extents stay open; `followers` more follow from them. `operators` were read."""

    def __init__(self, values: Sequence[OpenValue], followers: int, operators: int) -> None:
        super().__init__("open extents")
        self.values = tuple(values)
        self.followers = followers
        self.operators = operators


class OpenModelError(ModelError):
    """A model file leaves extents open that nothing settles; `values` are those that were found, inputs among them."""

    def __init__(self, message: str, values: Sequence[OpenValue]) -> None:
        super().__init__(message)
        self.values = tuple(values)


def asked(
    problem: OpenExtentsError, still_open: Callable[[Shapes], list[OpenValue]] | None
) -> tuple[str, list[OpenValue]]:
    """What is open and which options settle it, in words, and all values that are open.

    Args:
        problem: what the first reading found open.
        still_open: reads the model again with more shapes given and returns what is open then; None for a model
            that takes too long for that.
    """
    inner, shapes = list(problem.values), None
    if still_open:
        inner, shapes = _try_shapes(problem.values, still_open)
    values = list({value.name: value for value in (*problem.values, *inner)}.values())
    rest = f" and {len(values) - _MOST_NAMED} more" if len(values) > _MOST_NAMED else ""
    follow = f"; {problem.followers} more follow from these" if problem.followers else ""
    bound = "" if all(value.is_input for value in values) else " (--dim TENSOR:AXIS<=N plans for an upper bound)"
    start = f"unknown extents: {', '.join(map(str, values[:_MOST_NAMED]))}{rest}{follow};"
    if shapes is None:
        return f"{start} give numbers{bound}: {_options(values, {})}", values
    return f"{start} give numbers{bound}; the model accepts, for example: {_options(values, shapes)}", values


def with_shapes(problem: OpenModelError, values: Sequence[OpenValue], shapes: Shapes) -> str:
    """The message of a problem with options that a session has run with, in place of those that are only read."""
    start = str(problem).partition("; the model accepts")[0].partition("; give numbers")[0]
    return f"{start}; a session runs, for example, with: {_options(values, shapes)}"


def without_example(problem: OpenModelError) -> str:
    """The message of a problem without numbers, of which no session is known that runs with them."""
    start = str(problem).partition("; the model accepts")[0]
    return start if ": --" in start.rpartition("; give numbers")[2] else f"{start}: {_options(problem.values, {})}"


def _try_shapes(
    values: Sequence[OpenValue], still_open: Callable[[Shapes], list[OpenValue]]
) -> tuple[list[OpenValue], Shapes | None]:
    """All that is open once the inputs have shapes, and shapes with which nothing is; None where no try succeeds."""
    for size in SIZES:
        open_values, shapes = list(values), guess_shapes(values, size)
        try:
            for _ in range(MOST_ROUNDS):
                more = still_open(shapes)
                if not more:
                    return open_values, shapes
                open_values += more
                shapes |= guess_shapes(more, size)
        except (ValueError, TypeError, OverflowError, RecursionError, ModelPlanError):
            continue  # these extents do not go together; the next ones may
    return list(values), None


def guess_shapes(values: Sequence[OpenValue], size: int) -> Shapes:
    """Extents for what is open: 1 on a first axis and where later inputs leave something unnamed, `size` elsewhere.

    A sum or product of symbols follows from these.
    """
    symbols: dict[str, int] = {}
    shapes = {}
    for position, value in enumerate(values):
        shape = []
        for axis, extent in enumerate(value.shape or ()):
            named = isinstance(extent, str) and is_symbol(extent)
            guess = 1 if axis == 0 or (position and not named and value.is_input) else size
            shape.append(
                extent if isinstance(extent, int) else symbols.setdefault(str(extent), guess) if named else guess
            )
        shapes[value.name] = tuple(shape)
    following = _following(symbols)
    return {
        value.name: tuple(
            following.get(str(extent), n) for extent, n in zip(value.shape or (), shapes[value.name], strict=True)
        )
        for value in values
    }


def _following(symbols: Mapping[str, int]) -> dict[str, int]:
    """Those of the symbols that are sums, differences or products of others, with what these make of them."""
    plain = {symbol: n for symbol, n in symbols.items() if re.fullmatch(r"\w+", symbol)}
    known = ((symbol, Dims(dict(plain)).extent(symbol)) for symbol in symbols if symbol not in plain)
    return {symbol: n for symbol, n in known if n is not None}


def _options(values: Sequence[OpenValue], shapes: Shapes) -> str:
    """`--dim` for what has a symbol of its own, `--shape` for the rest; N where no number is known."""
    options: list[str] = []
    following = _following({e: 1 for value in values for e in value.shape or () if isinstance(e, str) and is_symbol(e)})
    for value in values:
        open_extents = [(axis, e) for axis, e in enumerate(value.shape or ()) if not isinstance(e, int)]
        numbers = shapes.get(value.name, ())
        if value.shape is not None and all(isinstance(e, str) and is_symbol(e) for _, e in open_extents):
            options += [
                dim_option(str(e), numbers[axis] if numbers else "N") for axis, e in open_extents if e not in following
            ]
            continue
        known = numbers or [e if isinstance(e, int) else "N" for e in value.shape or ("N", "...")]
        options.append(shape_option(value.name, known))
    return " ".join(dict.fromkeys(options))


def _written(shape: tuple[Extent, ...] | None) -> str:
    if shape is None:
        return "of unknown rank"
    return f"[{', '.join(str(e) if isinstance(e, int) or (e and is_symbol(e)) else '?' for e in shape)}]"
