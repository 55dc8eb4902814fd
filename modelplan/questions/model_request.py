"""What every question about a model file states: the file, what it runs on, and how its activations are planned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from modelplan import runtimes
from modelplan.formats import load_model
from modelplan.formats.whole_files import read_model
from modelplan.model import Graph, Padding, Plan, Requirement, Runtime
from modelplan.model.model_file import USUAL_ABI, ModelFile, Target, kernels_words
from modelplan.planning import allocators, pipeline
from modelplan.planning.pipeline import Options, configured_runtime
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest
from modelplan.questions.option_files import FROM_FILE, JOINS, carried_plan, lists_of, overlaps_of, streams_of
from modelplan.questions.target_request import TargetRequest, choose_target
from modelplan.runtimes.tflm.kernels.own_kernels import check_stated, with_library
from modelplan.runtimes.tflm.metadata import kernels_made_for

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen

#: Seconds that a session may be measured where nothing is said.
MEASURED_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ModelRequest(SettledRequest):
    """A model file, what it runs on, and how its activations are planned.

    Args:
        path: a .tflite or .onnx file, as text or as a Path.
        dims: extents that the file leaves open: SYMBOL=N, or SYMBOL<=N for a bound.
        shapes: shapes that the file leaves open: TENSOR=N,N,...
        runtime: tflm, c, litert, ort, executorch or generic; None: by the file's format.
        kernels: the kernel library; None: the target's, else those of the plan in the file, else all. `+NAME=BYTES`
            behind it, or alone, is a kernel of your own for a custom operator and the bytes that it asks for.
        abi: for which ABI a whole arena is sized; None: the target's, else of 32 bits.
        capacity: the bytes there are, as a number or as "64KiB"; None: the block of the target, else no limit.
        target: the device by name, or with its block from `choose_target`.
        schedule: how the operators are ordered; None: best.
        alias: which tensors may share bytes; None: the runtime's usual mode.
        allocator: a row of `modelplan allocators`, or "file" for the plan that the file carries; None: modelplan.
        alignment: bytes; None: the runtime's.
        pad: what is rounded up to the alignment; None: as the runtime does.
        streams: a number of streams, or the path of a file that assigns operators to streams.
        overlaps: the path of a file that declares outputs which may run into inputs.
        contiguous: the path of a file with lists of tensors that stand side by side, or "joins".
        values: values of inputs that decide what runs or how large it is: INPUT=N or INPUT=N,N,...
        measure: seconds that a session may be measured, for a runtime that has sessions; 0: it is predicted.
        threads: of that session.
        feeds: the path of an .npz file with arrays for inputs, by their names; what it leaves out is drawn.
        origin: what a project's file states of target, kernels and ABI, for reports; empty where the caller does.
    """

    path: str
    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    runtime: str | None = None
    kernels: str | None = None
    abi: str | None = None
    capacity: int | None = None
    target: Chosen | None = None
    schedule: str | None = None
    alias: str | None = None
    allocator: str | None = None
    alignment: int | None = None
    pad: Padding | None = None
    streams: int | str | None = None
    overlaps: str | None = None
    contiguous: str | None = None
    values: tuple[str, ...] = ()
    measure: float = MEASURED_SECONDS
    threads: int = 1
    feeds: str | None = None
    origin: str = ""

    def settled(self, name: str, kind: str, given: Any) -> Any:
        """A field as its type asks; a target also by its name."""
        if name == "target" and isinstance(given, str):
            return choose_target(TargetRequest(given))
        if name == "target" and given is not None and not hasattr(given, "known_budget"):
            expected = "the name of a device, or what choose_target gives"
            raise RequestError(f"{type(self).__name__}: target is {given!r}, expected {expected}")
        return SettledRequest.settled(self, name, kind, given)

    @property
    def available(self) -> int | None:
        """The bytes there are: the capacity, else the block of the target; None without a limit."""
        return self.target.known_budget if self.capacity is None and self.target else self.capacity

    @property
    def asks_for_plan(self) -> bool:
        """Whether it asks for another plan than the one by which the runtime runs the unmodified file."""
        names = ("allocator", "schedule", "alias", "streams", "overlaps", "contiguous")
        return any(getattr(self, name) for name in names)


@dataclass(frozen=True, slots=True)
class SessionAsked:
    """How a session is to be sized: what the file leaves open, the seconds of a measurement, the threads, and a file
    with inputs, empty for none.
    """

    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    seconds: float = 0.0
    threads: int = 1
    feeds: str = ""


#: A request for one kind of question.
Asked = TypeVar("Asked", bound=ModelRequest)


def on_target(request: Asked, file: ModelFile) -> Asked:
    """The request with the ABI and the kernels of its target where it names none.

    The kernels of a target count for a runtime that has them; which one runs a model follows from `file`. Without a
    target they are those that the plan in the file was made for, else all kernel libraries.

    Raises:
        RequestError: an ABI was named for a runtime that sizes no arena, or there is no such runtime.
        ModelError: the file says of its plan what cannot be read.
    """
    runtime = runtimes.runtime(request.runtime, file.graph.format)
    if request.abi and runtime.requires is None:
        raise RequestError(f"--abi {request.abi}: runtime {runtime.name} sizes no arena for a target")
    device = request.target.device if request.target else None
    abi, of_device = (device.abi, device.kernels) if device else ("", "")
    kernels = with_library(request.kernels, unnamed_kernels(runtime, file, of_device))
    check_stated(kernels, [op.kind for op in file.graph.ops])
    return replace(request, abi=request.abi or abi or USUAL_ABI, kernels=kernels)


def unnamed_kernels(runtime: Runtime, file: ModelFile, of_device: str) -> str:
    """The kernel library where none is named: the device's, if the runtime has it, else that of the plan in the file.

    Without either it is the runtime's usual one, which stands for all libraries where it has several.

    Raises:
        ModelError: the file says of its plan what cannot be read.
    """
    if of_device in runtime.library_names:
        return of_device
    carried = runtime.offline_plans and file.graph.format == runtime.default_for
    return (kernels_made_for(file.content, file.path) if carried else None) or runtime.usual_kernels


def with_deciding_kernels(request: Asked, requirement: Requirement) -> Asked:
    """The request for the kernel library that needs most, where it stands for all: a plan is made for one library."""
    return replace(request, kernels=requirement.kernels or request.kernels)


def target_of(request: ModelRequest, graph: Graph) -> Target:
    """The runtime and ABI of a request from `on_target`.

    Raises:
        RequestError: no such runtime, kernels or padding, or an alignment that is no power of two.
    """
    options = Options(request.runtime, kernels=request.kernels, alignment=request.alignment, pad=request.pad)
    runtime = configured_runtime(graph, options)
    named = [(f"--{name}", getattr(request, name)) for name in ("runtime", "alignment", "pad")]
    words = [word for name, value in named if value is not None for word in (name, str(value))]
    words += kernels_words(runtime.kernels) if runtime.kernels != runtime.usual_kernels else ()
    given = {"--dim": request.dims, "--shape": request.shapes, "--value": request.values}
    bound = [(option, text) for option, texts in given.items() for text in texts]
    bound += [("--feeds", request.feeds)] if request.feeds else []
    return Target(runtime, request.abi or USUAL_ABI, (*words, *(word for pair in bound for word in pair)))


def planning_options(request: ModelRequest, graph: Graph) -> Options:
    """The options of the plan that a request asks for.

    Raises:
        RequestError: an option that cannot be read or that the plan in the file does not allow.
        ModelError: a file of streams, overlaps or lists that does not fit the model.
    """
    stored = request.allocator == FROM_FILE
    offsets = carried_plan(request.path) if stored else ()
    if stored and request.schedule not in (None, "file"):
        raise RequestError(f"--schedule {request.schedule}: the plan in a file holds for the order of the file only")
    return Options(
        runtime=request.runtime,
        schedule=request.schedule or ("file" if stored else "best"),
        alias=request.alias,
        allocator="tflm-greedy" if stored else request.allocator or allocators.DEFAULT,
        offsets=offsets,
        alignment=request.alignment,
        pad=request.pad,
        kernels=request.kernels,
        capacity=request.available,
        streams=streams_of(request.streams, graph),
        overlaps=overlaps_of(request.overlaps, graph),
        contiguous=lists_of(request.contiguous, [tensor.name for tensor in graph.tensors]),
        joins=request.contiguous == JOINS,
    )


def page_options(request: ModelRequest, file: ModelFile, requirement: Requirement) -> Options:
    """The options of the plan that a request asks for on its target, for the kernel library that needs most."""
    return planning_options(with_deciding_kernels(on_target(request, file), requirement), file.graph)


def model_plan(request: ModelRequest) -> Plan:
    """The plan that a request asks for, whatever its file carries; with scratch for all kernels where none is named.

    Raises:
        ModelError: the file cannot be read.
        RequestError: the request names what there is not, or combines what does not go together.
    """
    graph = load_model(request.path, request.dims, request.shapes, request.values)
    request = on_target(replace(request, abi=None), ModelFile(request.path, read_model(request.path), graph))
    return pipeline.plan(graph, planning_options(request, graph))
