"""Extents to propose for a model that leaves some open inside: those of a session's run, where one can be made."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from modelplan.formats import load_model
from modelplan.formats.dims import Dims, parsed, shape_option, shape_text
from modelplan.formats.onnx.onnx_open import (
    MOST_ROUNDS,
    SIZES,
    OpenModelError,
    OpenValue,
    guess_shapes,
    with_shapes,
    without_example,
)
from modelplan.formats.unpacking import is_wrapped
from modelplan.formats.whole_files import read_model
from modelplan.primitives.errors import ModelError, ModelPlanError, RequestError
from modelplan.runtimes.ort.feeding import feeds_of
from modelplan.runtimes.ort.measuring import MeasuringLimits, SessionExhaustedError, check_measurable, reach
from modelplan.runtimes.ort.reaching import Aim, is_out_of_memory

#: Seconds that a run may take, processor seconds of small models and for each byte of larger ones, and bytes of a model
#: that is run.
_SECONDS, _LEAST_SECONDS, _SECONDS_OF_BYTE, _MOST_BYTES = 10, 0.5, 1 / (200 << 10), 1 << 26
#: Bytes of addresses that a run may take: what grows beyond them in one run does so with other extents too.
_MOST_MEMORY = 1 << 31
#: Runs with other values, where the model does not run with drawn ones.
_TRIES = 8

Shapes = dict[str, tuple[int, ...]]


Given = tuple[Sequence[str], Sequence[str], Sequence[str]]


def with_proposal(problem: OpenModelError, path: str, given: Given, feeds: str = "") -> str:
    """The message of a problem with extents of inputs that a session runs with, and of what is open inside in that run.

    Where no session can be made, the message stays as it is: extents with which the file can be read.

    Args:
        problem: what is open.
        path: the model.
        given: the options `--dim`, `--shape` and `--value`.
        feeds: a .npz file of inputs; empty: all are drawn.
    """
    if is_wrapped(path) or not Path(path).is_file() or Path(path).stat().st_size > _MOST_BYTES:
        return str(problem)
    try:
        check_measurable()
    except RequestError:
        return str(problem)
    processor = max(_LEAST_SECONDS, _SECONDS_OF_BYTE * Path(path).stat().st_size)
    limits = MeasuringLimits(_SECONDS, _MOST_MEMORY, processor)
    for size in SIZES:
        try:
            open_values, tried = _run(problem, path, given, feeds, size, limits)
        except SessionExhaustedError:
            break  # others take as much
        except ModelPlanError:
            continue  # these extents do not go together; the next ones may
        return with_shapes(problem, open_values, tried)
    return without_example(problem)


def fed_extents(problem: OpenModelError, path: str, given: Given, feeds: str) -> Shapes:
    """The extents of all that is open in a run with the inputs of the file `feeds`, which has each of them.

    Raises:
        RequestError: onnxruntime is not installed.
        ModelError: the session does not run with these inputs.
    """
    check_measurable()
    return _run(problem, path, given, feeds, SIZES[0], MeasuringLimits(_SECONDS, _MOST_MEMORY))[1]


def _run(
    problem: OpenModelError, path: str, given: Given, feeds_file: str, size: int, limits: MeasuringLimits
) -> tuple[list[OpenValue], Shapes]:
    """What is open, and the extents of all of it in a run whose inputs have guessed ones.

    Raises:
        ModelError: the session does not run with these, or the file cannot be read with what the run had.
    """
    dims, shapes, values = given
    open_values = list(problem.values)
    tried = guess_shapes([value for value in open_values if value.is_input], size)
    inputs = _input_shapes(path, parsed(dims, shapes, values), tried)
    feeds = feeds_of(parsed((), (), values).values, feeds_file)
    for _ in range(MOST_ROUNDS):
        inner: Mapping[str, Sequence[int]] = {value.name: () for value in open_values if not value.is_input}
        answer = reach(path, inputs, Aim(inner, {}), limits, feeds, tries=_TRIES)
        if answer["problem"] or answer["hidden"]:
            kind = SessionExhaustedError if is_out_of_memory(answer["problem"]) else ModelError
            raise kind(answer["problem"] or "a value stands in a body")
        tried |= {name: tuple(shape) for name, shape in answer["shapes"].items()}
        try:
            load_model(path, dims, (*shapes, *(shape_text(name, shape) for name, shape in tried.items())), values)
        except OpenModelError as more:
            open_values += [value for value in more.values if value.name not in tried]
            tried |= guess_shapes([value for value in more.values if value.is_input], size)
        else:
            return open_values, tried
    raise ModelError("more and more stays open")


def _input_shapes(path: str, dims: Dims, tried: Shapes) -> Shapes:
    """The shape of each input: as the file declares it, as it is given, else as it is tried."""
    import onnx

    graph = onnx.load_model_from_string(read_model(path)).graph
    stored = {tensor.name for tensor in graph.initializer}
    shapes: Shapes = {}
    for value in graph.input:
        if value.name in stored:
            continue
        declared = value.type.tensor_type.shape.dim
        known = [d.dim_value if d.HasField("dim_value") else dims.extent(d.dim_param) for d in declared]
        guessed = dims.shapes.get(value.name) or tried.get(value.name, ())
        if any(extent is None for extent in known) and len(guessed) != len(known):
            raise ModelError(f"{shape_option(value.name, guessed)} is not known")
        shapes[value.name] = tuple(guessed[axis] if n is None else n for axis, n in enumerate(known))
    return shapes
