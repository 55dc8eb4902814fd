"""Runs sessions of ONNX Runtime under the allocation trace; started as a script.

ONNX Runtime is loaded once; each request then runs in a process of its own, forked before any session was made.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import resource
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from modelplan.primitives.answering import answer_questions
from modelplan.primitives.errors import ModelPlanError
from modelplan.runtimes.ort.feeding import EXTREMES, fed
from modelplan.runtimes.ort.reaching import OUT_OF_SECONDS, reached

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: Bytes in aligned blocks, and in all.
    Bytes = NDArray[np.int64]
    #: What is asked, by its names.
    Request = dict[str, Any]

_LEVELS = {"disable": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
           "all": "ORT_ENABLE_ALL"}  # fmt: skip
_AS_REQUESTED = 1
#: How names of nodes end that compute in blocks of channels, and operands of a convolution that adds nothing.
_BLOCKED, _OPERANDS = "_nchwc", 3
#: Small blocks that shift the addresses of a session's nodes.
_SHIFTED = 13
#: More inputs and outputs than most models have.
_MANY_VALUES = 4000
#: An .onnx file: y is x, a float.
_IDENTITY = (
    b'\x08\x07:7\n\x10\n\x01x\x12\x01y"\x08Identity\x12\x01mZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01'
    b"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\r"
)


def _session(request: Request) -> tuple[Any, Any]:
    """The session that the request's settings ask for, and the options of its runs."""
    import onnxruntime

    settings = request["settings"]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, _LEVELS[settings["level"]])
    options.enable_cpu_mem_arena = settings["arena"] != "off"
    options.enable_mem_pattern = settings["pattern"]
    options.enable_mem_reuse = settings["reuse"]
    options.intra_op_num_threads = settings["threads"]
    if settings["order"] == "priority":
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    options.log_severity_level = 4
    if request.get("profile"):
        options.enable_profiling, options.profile_file_prefix = True, request["profile"]
    if settings["arena"] == "exact":
        place = onnxruntime.OrtMemoryInfo(
            "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
        )
        onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg(0, _AS_REQUESTED, -1, -1))
        options.add_session_config_entry("session.use_env_allocators", "1")
    run = onnxruntime.RunOptions()
    if settings["shrink"]:
        run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return onnxruntime.InferenceSession(request["model"], options, providers=["CPUExecutionProvider"]), run


def _shift_addresses(draw: int) -> None:
    """Takes blocks that are never given back: at level all a session orders some nodes by the addresses of others."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    for number in range(draw * _SHIFTED):
        libc.malloc(ctypes.c_size_t(48 * (number % 7 + 1)))


def _library() -> ctypes.CDLL:
    """The allocation trace, which counts from here on."""
    _load_bindings()
    library = ctypes.CDLL(None)
    library.trace_live.restype = library.trace_peak.restype = ctypes.c_longlong
    gc.collect()
    gc.disable()  # what the interpreter tidies up would be taken for the session's
    library.trace_count()
    return library


def _load_bindings() -> None:
    """Runs a model of one operator: what Python's bindings make in their first run is no session's need.

    Nor are their tables of values, which grow and never shrink.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(_IDENTITY, providers=["CPUExecutionProvider"])
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(1, np.float32)) for _ in range(_MANY_VALUES)]
    session.run_with_ort_values(["y"], {"x": values[0]}, onnxruntime.RunOptions())


def _live(library: ctypes.CDLL) -> Bytes:
    """The bytes that are allocated now: in aligned blocks, which hold tensors, and in all."""
    return np.array([library.trace_live(0), library.trace_live(1)])


def _session_bytes(request: Request, library: ctypes.CDLL) -> Bytes:
    """What a session holds without an arena, whose free room in chunks would hide bytes that runs take.

    What stays when it ends belongs to the process: its first session makes tables for all.
    """
    session, _ = _session({**request, "settings": {**request["settings"], "arena": "off"}, "profile": ""})
    with_session = _live(library)
    del session
    gc.collect()
    return with_session - _live(library)


def _run_peaks(
    session: Any, feeds: dict[str, Any], run: Any, request: Request, library: ctypes.CDLL
) -> tuple[list[Bytes], float]:
    """The most that is allocated in each run, and the seconds of the quickest of the later ones.

    Outputs lie in the session's own blocks. They stay there while the next run goes, as in a loop over
    `out = session.run(...)`, or are given back before it.
    """
    names = [value.name for value in session.get_outputs()]
    peaks, seconds, outputs = [], [], None
    for _ in range(request["runs"]):
        if not request["settings"]["keep_outputs"]:
            outputs = None
        library.trace_restart()
        before = time.process_time()
        outputs = session.run_with_ort_values(names, feeds, run)
        seconds.append(time.process_time() - before)
        peaks.append(np.array([library.trace_peak(0), library.trace_peak(1)]))  # as in `_live`
    del outputs
    return peaks, min(seconds[1:] or seconds)


def _measured(request: Request) -> dict[str, object]:
    """The bytes of a first run and of later ones above what a loaded session needs, and the time of the quickest."""
    import onnxruntime

    _shift_addresses(request.get("draw", 0))
    library = _library()
    without_arena = request["settings"]["arena"] == "off"
    needed = None if without_arena else np.array(request.get("needed") or _session_bytes(request, library))
    before = _live(library)
    session, options = _session(request)
    held = _live(library) - before
    inputs = session.get_inputs()
    feeds = fed(inputs, request["shapes"], 0, request["feeds"])
    given = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in feeds.items()}
    ready = _live(library) - (0 if needed is None else held - needed)
    peaks, seconds = _run_peaks(session, given, options, request, library)
    if request.get("events"):
        library.trace_begin()
        session.run(None, feeds, options)
        library.trace_end(request["events"].encode())
    first, later = peaks[0] - ready, np.max(peaks[1:] or peaks, axis=0) - ready
    measurements = {
        "session": int((held if needed is None else needed)[0]), "loaded": int((held if needed is None else needed)[1]),
        "first": int(first[0]), "steady": int(later[0]), "heap": (int(first[1]), int(later[1])), "seconds": seconds,
        "profile": session.end_profiling() if request.get("profile") else "", "outputs": (),
    }  # fmt: skip
    if request.get("outputs"):
        numbers = [*range(request["inputs"]), *range(-1, -1 - len(EXTREMES), -1)]
        each = (fed(inputs, request["shapes"], number, request["feeds"]) for number in numbers)
        measurements["outputs"] = tuple(_outputs(session, given, options) for given in each)
    return measurements


def _outputs(session: Any, feeds: dict[str, Any], options: Any) -> tuple[NDArray[Any], ...] | None:
    """The outputs of a run; None where the model does not run with these inputs, such as rows beyond a table."""
    try:
        return tuple(map(np.asarray, session.run(None, feeds, options)))
    except Exception:  # noqa: BLE001 - ONNX Runtime's own, one of many kinds; the other file has to fail too
        return None


def _each_measured(request: Request) -> list[object]:
    """What `_measured` tells of each of several settings, in processes of their own.

    Another session comes first: what the first of a process leaves behind is none's need. Its copies run no session but
    their own, for a thread that has run one keeps buffers which the next one finds.
    """
    library = _library()
    settings = request.pop("several")
    _session_bytes({**request, "settings": settings[0]}, library)
    return [_answered({**request, "settings": setting}) for setting in settings]


def _optimized(request: Request) -> dict[str, object]:
    """The names of the values that a session has once it has optimized the graph, which it writes to a file.

    `blocked` are those that kernels compute in blocks of channels, with the operator of each; one whose name ends in +
    adds another value. Such nodes are named after what they compute.
    """
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, _LEVELS[request["level"]])
    options.log_severity_level = 4
    options.optimized_model_filepath = request["optimized"]
    if not request["inside"]:
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
    onnxruntime.InferenceSession(request["model"], options, providers=["CPUExecutionProvider"])
    graph = onnx.load(request["optimized"], load_external_data=False).graph
    blocked = {
        node.name.removesuffix(_BLOCKED): node.op_type + "+" * (node.op_type == "Conv" and len(node.input) > _OPERANDS)
        for node in graph.node
        if node.domain == "com.microsoft.nchwc" and node.name.endswith(_BLOCKED)
    }
    return {"values": [name for node in graph.node for name in node.output if name], "blocked": blocked}


def _timed(request: Request) -> dict[str, object]:
    """CPU seconds of runs of several models in turn, a list for each."""
    sessions = [_session({**request, "model": model}) for model in request["models"]]
    feeds = [fed(session.get_inputs(), request["shapes"], 0, request["feeds"]) for session, _ in sessions]
    seconds: list[list[float]] = [[] for _ in sessions]
    for _ in range(request["runs"]):
        for number, (session, options) in enumerate(sessions):
            before = time.process_time()
            session.run(None, feeds[number], options)
            seconds[number].append(time.process_time() - before)
    return {"seconds": seconds}


#: What answers a request that has this key.
_ACTS: dict[str, Callable[[Request], object]] = {
    "models": _timed, "optimized": _optimized, "several": _each_measured, "aim": reached,
}  # fmt: skip


class _OtherProcessError(RuntimeError):
    """Why another process failed, in one line."""


def _answered(request: Request) -> object:
    """The answer to a request, which a process of its own gives."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        _answer_and_exit(request, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        sent = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status == -signal.SIGPROF:
        raise _OtherProcessError(OUT_OF_SECONDS)
    if status or not sent:
        raise RuntimeError(f"the process ended with status {status}")
    reason, answer = pickle.loads(sent)  # noqa: S301 - from a copy of this process
    if reason:
        raise _OtherProcessError(reason)
    return answer


def _answer_and_exit(request: Request, to: int) -> None:
    answer = next((act for key, act in _ACTS.items() if key in request), _measured)
    status = 1
    try:
        if request.get("memory"):
            resource.setrlimit(resource.RLIMIT_AS, (request["memory"], request["memory"]))
        if request.get("processor"):
            signal.setitimer(signal.ITIMER_PROF, request["processor"])  # its signal ends this process
        os.chdir(request["folder"])  # it may have changed since the server was started
        try:
            sent: tuple[str, object] = "", answer(request)
        except BaseException as problem:  # noqa: BLE001 - told to the process that asked
            sent = _message(problem), None
        with os.fdopen(to, "wb") as pipe:
            pickle.dump(sent, pipe)
        status = 0
    finally:
        os._exit(status)


def _message(problem: BaseException) -> str:
    """What went wrong in one line: the class and its message, of this project's errors the message alone."""
    if isinstance(problem, ModelPlanError | _OtherProcessError):
        return str(problem)
    return " ".join(traceback.format_exception_only(problem)[-1].split()) or repr(problem)


if __name__ == "__main__":
    with suppress(ImportError):  # the processes tell what is wrong
        import onnxruntime  # noqa: F401 - loaded once for all of them
    answer_questions(_answered)
