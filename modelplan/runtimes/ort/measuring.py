"""What ONNX Runtime itself allocates for a model: each file runs in a process of its own, under an allocation trace.

Needs the extra `verify` and Linux, where a library can be loaded before libc.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy.typing as npt

from modelplan.primitives.allocation_trace import ENVIRONMENT, check_traceable
from modelplan.primitives.answering import AnsweringProcess, NoAnswerError
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.version import installed_version
from modelplan.runtimes.ort.feeding import Feeds
from modelplan.runtimes.ort.reaching import MOST_RUNS, OUT_OF_SECONDS, Aim, is_out_of_memory

INSTALL = "pip install 'modelplan[verify]'"
LEVELS = ("disable", "basic", "extended", "all")
_PROGRAM = Path(__file__).with_name("session_process.py")
#: Characters of ONNX Runtime's refusal that are quoted.
_LONGEST = 4000
#: A session that takes longer than this is given up.
MOST_SECONDS = 1800

Shapes = Mapping[str, Sequence[int]]
#: Inputs of which all are drawn.
DRAWN = Feeds()
#: How the message of an error of ONNX Runtime begins.
_OF_RUNTIME = "onnxruntime.capi."


class SessionExhaustedError(ModelError):
    """A session took the memory or the seconds that there were."""


class SessionLateError(SessionExhaustedError):
    """A session was not measured in the seconds there were."""


#: What may help where a session does not run a model.
OTHER_INPUTS = "other extents by --dim or --shape, or values by --value or --feeds FILE.npz, if it runs with these"


class SessionRefusedError(ModelError):
    """ONNX Runtime does not load the model, or does not run it with these inputs: says why."""


@dataclass(frozen=True, slots=True)
class MeasuringLimits:
    """The seconds by the clock and the bytes of addresses that a measurement may take, and its processor seconds.

    0 bytes or processor seconds are no limit.
    """

    seconds: float
    memory: int
    processor: float = 0


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How a session runs; without arguments as ONNX Runtime's defaults, but for the number of threads.

    `arena` is "default" (grows by powers of two), "exact" (grows by what is asked for) or "off"; `pattern` are memory
    patterns, one block for all values of a run from the second run on; `reuse` lets values take the place of dead ones
    of the same shape; `shrink` gives the arena's free chunks back behind each run. `keep_outputs`: the outputs of a run
    are there while the next one goes, as in a loop over `out = session.run(...)`.
    """

    level: str = "all"
    threads: int = 1
    arena: Literal["default", "exact", "off"] = "default"
    pattern: bool = True
    reuse: bool = True
    order: Literal["default", "priority"] = "default"
    shrink: bool = False
    keep_outputs: bool = True

    def described(self) -> str:
        """The settings that are not ONNX Runtime's defaults, in words."""
        words = {
            "off": "arena off", "exact": "arena grows by what is asked for", "default": "",
        }[self.arena], "" if self.pattern else "memory pattern off", "" if self.reuse else "reuse off", (
            "priority-based order" if self.order == "priority" else ""
        ), "arena shrunk behind each run" if self.shrink else "", (
            "" if self.keep_outputs else "outputs given back before the next run"
        )  # fmt: skip
        return ", ".join(word for word in words if word) or "defaults"


@dataclass(frozen=True, slots=True)
class Measured:
    """Bytes above what the loaded session needs: the most in the first run, and in later ones.

    `first` and `steady` are those in aligned blocks, which hold tensors; `heap` are those in all blocks of both, the
    session's own bookkeeping among them. `session` is what it needs when loaded, the same with an arena, whose free
    room counts as used, and without; `loaded` is that in all blocks. `seconds` is the processor time of the quickest
    run; `outputs` are those of the random inputs, then of the extreme ones, where they were asked for: None where the
    model does not run with these.
    """

    session: int
    first: int
    steady: int
    seconds: float
    heap: tuple[int, int] = (0, 0)
    loaded: int = 0
    outputs: tuple[tuple[npt.NDArray[Any], ...] | None, ...] = field(default=(), repr=False)

    @property
    def peak(self) -> int:
        """The bytes of the run that needs more."""
        return max(self.first, self.steady)

    def above(self, session: int) -> Measured:
        """The same bytes with what this session needs more than another one; what it needs less does not count."""
        more = max(self.session - session, 0)
        return replace(self, session=session, first=self.first + more, steady=self.steady + more)

    def at_least(self, other: Measured) -> Measured:
        """The same measurement with the larger bytes of both."""
        return replace(self, first=max(self.first, other.first), steady=max(self.steady, other.steady))

    def heap_above(self, loaded: int) -> tuple[int, int]:
        """The bytes in all blocks of the first and of later runs, with what this session holds more than another.

        What it holds less does not count.
        """
        more = max(self.loaded - loaded, 0)
        return self.heap[0] + more, self.heap[1] + more


def ort_version() -> str:
    """The version of ONNX Runtime, or "not installed"."""
    return installed_version("onnxruntime") or "not installed"


def check_measurable() -> None:
    """Checks that ONNX Runtime is there and can be traced."""
    if find_spec("onnxruntime") is None:
        raise RequestError(f"measuring needs ONNX Runtime: {INSTALL}")
    check_traceable()


def measure(
    model: str | Path,
    shapes: Shapes,
    settings: SessionSettings,
    *,
    runs: int = 3,
    inputs: int = 0,
    keep: bool = False,
    feeds: Feeds = DRAWN,
    draw: int = 0,
    seconds: float = MOST_SECONDS,
    needed: tuple[int, int] | None = None,
) -> Measured:
    """Runs a model `runs` times and tells its bytes; with `keep` also its outputs for `inputs` random inputs and more.

    At level all a session orders some of its nodes by their addresses, which differ from `draw` to `draw`. `needed` are
    the bytes of a session without an arena, aligned and all, where they are known: else one is loaded to count them.

    Raises:
        ModelError: ONNX Runtime does not load or run the file; quotes it.
    """
    request = {
        "model": str(model), "shapes": plain_shapes(shapes), "settings": asdict(settings), "runs": runs,
        "inputs": inputs, "outputs": keep, "feeds": feeds, "draw": draw, "needed": needed,
    }  # fmt: skip
    return _measured(session_answer(request, seconds))


def measure_each(
    model: str | Path,
    shapes: Shapes,
    settings: Sequence[SessionSettings],
    limits: MeasuringLimits,
    feeds: Feeds = DRAWN,
    draw: int = 0,
) -> list[Measured]:
    """What a model takes at each of several settings; `draw` is as in `measure`.

    Raises:
        ModelError: as `measure`, or it takes more than the limits.
    """
    request = {
        "model": str(model), "shapes": plain_shapes(shapes), "several": [asdict(setting) for setting in settings],
        "runs": 3, "feeds": feeds, "memory": limits.memory, "draw": draw,
    }  # fmt: skip
    return [_measured(answer) for answer in session_answer(request, limits.seconds)]


def reach(
    model: str | Path, shapes: Shapes, aim: Aim, limits: MeasuringLimits, feeds: Feeds = DRAWN, tries: int = MOST_RUNS
) -> Mapping[str, Any]:
    """What a run reaches of an aim, with the rules for inputs that bring it nearest: the answer of `reaching.reached`.

    At most `tries` runs are made.

    Raises:
        ModelError: as `measure_each`.
    """
    request = {
        "model": str(Path(model).resolve()), "shapes": plain_shapes(shapes), "aim": aim.plain(), "feeds": feeds,
        "memory": limits.memory, "seconds": limits.seconds / 2, "tries": tries, "processor": limits.processor,
    }  # fmt: skip
    answer: Mapping[str, Any] = session_answer(request, limits.seconds)
    return answer


def _measured(answer: Mapping[str, Any]) -> Measured:
    return Measured(**{field.name: answer[field.name] for field in fields(Measured)})


def kept_values(model: str | Path, level: str) -> frozenset[str]:
    """The names of the values that a session has at an optimization level, without those inside of fused kernels.

    At level all the layout of maps changes, and names with it: there the values of level extended are told.
    """
    with tempfile.TemporaryDirectory() as name:
        return write_optimized(model, "extended" if level == "all" else level, f"{name}/optimized.onnx").values


def blocked_values(model: str | Path) -> dict[str, str]:
    """The values that a session computes in blocks of channels at level all, with the operator of each.

    A + behind the operator says that the kernel adds another value to its result.
    """
    with tempfile.TemporaryDirectory() as name:
        return write_optimized(model, "all", f"{name}/optimized.onnx").blocked


def value_types(model: str | Path) -> dict[str, bytes]:
    """The types that a session infers for what the main graph of a model computes, by name, as onnx writes them.

    Raises:
        ModelError: no session loads the model, which must have its weights within its file.
    """
    import onnx

    proto = onnx.load(model, load_external_data=False)
    outputs = {value.name for value in proto.graph.output}
    names = dict.fromkeys(name for node in proto.graph.node for name in node.output if name and name not in outputs)
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(proto, f"{folder}/all_values.onnx")
        write_optimized(f"{folder}/all_values.onnx", "disable", f"{folder}/as_it_is.onnx")
        graph = onnx.load(f"{folder}/as_it_is.onnx", load_external_data=False).graph
    return {value.name: value.type.SerializeToString() for value in graph.output}


@dataclass(frozen=True, slots=True)
class SessionGraph:
    """What a session makes of a model: names of its values, and those in blocks of channels with their operators."""

    values: frozenset[str]
    blocked: dict[str, str]


def write_optimized(
    model: str | Path, level: str, path: str | Path, *, weights_inside: bool = False, seconds: float = MOST_SECONDS
) -> SessionGraph:
    """Writes what a session makes of the model at an optimization level to a file, its larger weights beside it.

    With `weights_inside` these are in the file: a session then keeps as many bytes for them as it does for the model's.
    """
    request = {"model": str(model), "level": level, "optimized": str(path), "inside": weights_inside}
    answer = session_answer(request, seconds)
    return SessionGraph(frozenset(answer["values"]), answer["blocked"])


def time_in_turn(
    models: Sequence[str | Path],
    shapes: Shapes,
    settings: SessionSettings,
    runs: int,
    feeds: Feeds = DRAWN,
) -> list[list[float]]:
    """Processor seconds of each model's runs, the models run in turn in one process."""
    request = {
        "models": list(map(str, models)), "shapes": plain_shapes(shapes), "settings": asdict(settings), "runs": runs,
        "feeds": feeds,
    }  # fmt: skip
    seconds: list[list[float]] = session_answer(request)["seconds"]
    return seconds


def plain_shapes(shapes: Shapes) -> dict[str, list[int]]:
    return {name: [int(n) for n in shape] for name, shape in shapes.items()}


_process = AnsweringProcess(str(_PROGRAM), environment=ENVIRONMENT)
atexit.register(_process.end)
_one_at_a_time = Lock()


def start() -> None:
    """Starts the process that measures: it takes a while to load ONNX Runtime, in which other work can be done."""
    _process.start()


def session_answer(request: Mapping[str, object], seconds: float = MOST_SECONDS) -> Any:
    """What ONNX Runtime, in a process of its own, answers to a request."""
    try:
        with _one_at_a_time:
            return _process.ask({**request, "folder": str(Path.cwd())}, seconds)
    except NoAnswerError as problem:
        if problem.late:
            raise SessionLateError(_not_run(str(problem))) from None
        raise refusal(str(problem)) from None


def refusal(problem: str) -> ModelError:
    """The error for a run that failed: of ONNX Runtime's own the model's, else of what surrounds it."""
    if is_out_of_memory(problem) or problem == OUT_OF_SECONDS:
        return SessionExhaustedError(_not_run(problem))
    return (SessionRefusedError if problem.startswith(_OF_RUNTIME) else ModelError)(_not_run(problem))


def _not_run(problem: str) -> str:
    line = " ".join(problem.replace("\\n", " ").split())
    return f"not run on ONNX Runtime {ort_version()}: {line[:_LONGEST]}"
