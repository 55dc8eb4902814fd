"""What is asked of a session: what it takes from the heap, where sessions allocate by themselves, and unknown types.

What measures and predicts is imported for a file that runs in a session.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from modelplan import runtimes
from modelplan.formats import load_model
from modelplan.model import Graph, Requirement, Runtime
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.errors import ModelError, ModelPlanError, RequestError
from modelplan.questions.model_request import Asked, ModelRequest, SessionAsked


def with_fed_shapes(request: Asked) -> Asked:
    """The request with the shapes of the arrays in its file of inputs, if it names one, as `fed_shapes` gives them.

    Raises:
        RequestError, ModelError: as `fed_shapes`.
    """
    if not request.feeds:
        return request
    from modelplan.questions.fed_inputs import fed_shapes

    given = request.dims, request.shapes, request.values
    return replace(request, shapes=fed_shapes(request.path, request.feeds, given))


def session_asked(request: ModelRequest) -> SessionAsked:
    """What a request says of its session.

    Raises:
        RequestError: seconds or threads that there cannot be.
    """
    if not 0 <= request.measure < float("inf"):
        raise RequestError(f"--measure is {request.measure:g}, expected seconds from 0 on")
    if not 1 <= request.threads <= 1024:
        raise RequestError(f"--threads is {request.threads}, expected 1 to 1024")
    request = with_fed_shapes(request)
    return SessionAsked(
        request.dims, request.shapes, request.values, request.measure, request.threads, request.feeds or ""
    )


def begin_measuring(request: ModelRequest) -> None:
    """Has the process that measures start while the model is read, unless the model was measured before."""
    path = Path(request.path)
    if path.suffix != ".onnx" or not request.measure or not path.is_file():
        return
    if _in_sessions(runtimes.runtime(request.runtime, "onnx"), "onnx"):
        from modelplan.questions.session_sizing import start_measuring

        start_measuring(path)


def has_sessions(file: ModelFile, target: Target) -> bool:
    """Whether the target runs the file in sessions that allocate by themselves."""
    return _in_sessions(target.runtime, file.graph.format)


def _in_sessions(runtime: Runtime, model_format: str) -> bool:
    return runtime.sorts and runtime.default_for == model_format


def require_host(file: ModelFile, target: Target, device: str, abi: str) -> None:
    """Refuses to judge a session by the memory of a device with an ABI: no session runs on a microcontroller."""
    if abi and has_sessions(file, target):
        raise RequestError(
            f"{device} is a microcontroller, no session of ONNX Runtime runs there: convert {file.path} to .tflite for"
            " TensorFlow Lite Micro, --runtime generic for the planned activations alone, or --budget without --target"
            " for the memory of a host"
        )


def sized_by_session(file: ModelFile, target: Target, planned: Requirement, asked: SessionAsked) -> Requirement:
    """The requirement of a default session or interpreter; for another runtime, `planned` as it is.

    Where a session can neither be measured nor predicted, `planned` says so and counts the planned activations.
    """
    if target.runtime.interprets:
        from modelplan.questions.session_sizing import interpreter_requirement

        return interpreter_requirement(file, planned, asked)
    if not has_sessions(file, target):
        return planned
    from modelplan.questions.session_sizing import session_requirement

    return session_requirement(file, target, planned, asked)


def with_other_settings(file: ModelFile, target: Target, requirement: Requirement, asked: SessionAsked) -> Requirement:
    """The requirement with what sessions with other settings take, those that need less; the least first."""
    if requirement.session is None:
        return requirement
    from modelplan.questions.session_sizing import other_sessions

    return other_sessions(file, target, requirement, requirement.session, asked)


def load_with_types(path: str, dims: Sequence[str], shapes: Sequence[str], values: Sequence[str]) -> Graph:
    """The model in a file, as `load_model` reads it; types that stay unknown are asked of a session.

    Raises:
        ModelError: the file cannot be read; no session runs it, or none infers what is unknown.
    """
    try:
        return load_model(path, dims, shapes, values)
    except ModelError as problem:
        from modelplan.formats.onnx.onnx_types import UntypedModelError  # here: few files need it
        from modelplan.runtimes.ort.measuring import check_measurable, value_types

        if not isinstance(problem, UntypedModelError):
            raise
        try:
            check_measurable()
            types = value_types(path)
        except ModelPlanError:
            raise problem from None
        return load_model(path, dims, shapes, values, types)
