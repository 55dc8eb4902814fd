"""What ONNX Runtime computes on random inputs, as a network in plain C takes and gives it."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.random_inputs import random_array
from modelplan.checking.verifier.verdicts import Skipped
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.ort.measuring import INSTALL

Array = npt.NDArray[Any]
#: Float outputs may differ by so many times what two sessions do, and by a share of the largest.
_TIMES, _SHARE = 4.0, 1e-6
#: Operators that sum products, as the file and sessions name them.
_PRODUCTS = {"Conv", "FusedConv", "ConvTranspose", "Gemm", "FusedGemm", "MatMul", "FusedMatMul"}
#: Operators whose results differ by no more than their operands do.
_BOUNDS = {"Clip", "Relu", "Identity", "Sigmoid", "Softmax", "Tanh"}
#: Instructions whose products of codes do not saturate.
_EXACT = ("avx512_vnni", "avx_vnni", "asimd")
_NAMES = {
    "tensor(float)": np.float32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(int32)": np.int32,
    "tensor(int64)": np.int64, "tensor(bool)": np.bool_,
}  # fmt: skip

#: Types of codes.
_CODES = (np.int8, np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class SessionRun:
    """The bytes that are fed, and the outputs of a session with all optimisations and of one with none.

    `coded`: there are codes between, so that the outputs have to be equal. `largest` is the size of the largest number
    of each output in all runs, before bounds such as those of a Softmax: what is left was rounded like what is gone.
    """

    feeds: Sequence[bytes]
    optimised: Sequence[Array]
    plain: Sequence[Array]
    coded: bool
    largest: Sequence[float] = ()

    def allowed(self, number: int) -> float:
        """By how much an output may differ."""
        wanted, other = self.optimised[number], self.plain[number]
        if self.coded or wanted.dtype.kind != "f" or not wanted.size:
            return 0.0
        return _TIMES * float(np.abs(wanted.astype(np.float64) - other).max()) + _SHARE * self.largest[number]

    def compared(self, content: bytes) -> tuple[str, float]:
        """What is wrong with the bytes of all outputs, empty where nothing is, and how far floats are apart."""
        if len(content) != sum(y.nbytes for y in self.optimised):
            return f"{len(content):,} bytes of outputs, expected {sum(y.nbytes for y in self.optimised):,}", 0.0
        worst = 0.0
        for number, (count, off) in enumerate(self.apart(content)):
            if count and not off <= self.allowed(number):
                size = self.optimised[number].size
                return f"output {number}: {count:,} of {size:,} differ, by {off:.3g} at most", 0.0
            worst = max(worst, off)
        return "", worst

    def apart(self, content: bytes) -> Iterator[tuple[int, float]]:
        """Of each output how many numbers differ, and by how much at most."""
        at = 0
        for wanted in self.optimised:
            computed = np.frombuffer(content, wanted.dtype, wanted.size, at).reshape(wanted.shape)
            at += wanted.nbytes
            differs = ~((computed == wanted) | (computed != computed) & (wanted != wanted))
            off = np.abs(computed.astype(np.float64) - wanted)[differs]
            yield int(differs.sum()), float(off.max(initial=0.0))


def session_runs(
    path: str, asked: Mapping[str, Any], seed: int, count: int, feeds: Sequence[Sequence[bytes]] | None = None
) -> list[SessionRun]:
    """What an .onnx file gives to a C source that was `asked` for so: interface, extents, and ends with channels last.

    Inputs are drawn, or those of `feeds`, the bytes of each input as the source takes them.

    Raises:
        ModelError: ONNX Runtime does not run the model.
        Skipped: it is not installed, this machine's kernels saturate, or the ends of the source are codes where the
            file has no conversion.
    """
    if find_spec("onnxruntime") is None:
        raise Skipped(f"onnxruntime is not installed; {INSTALL}")
    import onnx

    codes = asked.get("interface", "as-is") != "as-is"
    model = onnx.load(path, load_external_data=codes)
    coded = any(node.op_type.startswith(("QLinear", "Quantize", "QGemm")) for node in model.graph.node)
    if coded and not _multiplies_exactly():
        raise Skipped("this machine's kernels for codes saturate between products, so that they give other results")
    if codes:
        take_conversions_out(model)
    try:
        sessions = _sessions(model.SerializeToString() if codes else path)
        fed = _stated(sessions[0], asked, feeds) if feeds else _drawn(sessions[0], asked, seed, count)
        runs = list(_runs(sessions, asked, fed, _before_bounds(model), coded=coded))
    except Exception as problem:  # noqa: BLE001  # whatever the runtime raises, it does not run the model
        raise ModelError(f"{path}: ONNX Runtime does not run it: {' '.join(str(problem).split())[:300]}") from None
    largest = tuple(max(sizes) for sizes in zip(*(run.largest for run in runs), strict=True))
    return [replace(run, largest=largest) for run in runs]


def in_floats(path: str) -> str:
    """The nodes of codes that a session computes in floats, with how many there are; empty where there are none.

    It takes a product between DequantizeLinear and QuantizeLinear for one of codes only in forms that it knows.
    """
    import onnx
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.log_severity_level, options.optimized_model_filepath = 4, f"{folder}/optimised.onnx"
        options.add_session_config_entry("session.qdqisint8allowed", "1")
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        nodes = onnx.load(options.optimized_model_filepath).graph.node
    makers = {name: node.op_type for node in nodes for name in node.output}
    kinds = Counter(n.op_type for n in nodes if n.op_type in _PRODUCTS and makers.get(n.input[0]) == "DequantizeLinear")
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _before_bounds(model: Any) -> list[str]:
    """For each output its name, or that of the value of which bounds make it: what is off there is off no more here."""
    makers = {name: node for node in model.graph.node for name in node.output}
    names = [end.name for end in model.graph.output]
    for position, name in enumerate(names):
        while name in makers and makers[name].op_type in _BOUNDS and makers[name].input[0] in makers:
            name = names[position] = makers[name].input[0]
    return names


def take_conversions_out(model: Any) -> None:
    """Makes a model take and give codes where it converts floats at its ends.

    Raises:
        Skipped: floats at one of its ends are not converted there.
    """
    import onnx

    types = {table.name: table.data_type for table in model.graph.initializer}
    for ends, kind, own, other in (
        (model.graph.input, "QuantizeLinear", "input", "output"),
        (model.graph.output, "DequantizeLinear", "output", "input"),
    ):
        for end in ends:
            outer = [node for node in model.graph.node if end.name in getattr(node, own)]
            conversion = outer[0] if len(outer) == 1 and outer[0].op_type == kind and len(outer[0].input) > 2 else None
            if conversion is not None and conversion.input[2] in types:
                end.type.tensor_type.elem_type = types[conversion.input[2]]
                model.graph.node.remove(conversion)
                _rename(model.graph.node, getattr(conversion, other)[0], end.name)
            elif end.type.tensor_type.elem_type == onnx.TensorProto.FLOAT and end.name not in types:
                raise Skipped(f"{end.name} is not converted at the model's end: write it without --interface")


def _rename(nodes: Iterable[Any], old: str, new: str) -> None:
    """Gives a value another name wherever nodes make and read it."""
    for node in nodes:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]


def _with_outputs(source: str | bytes) -> bytes:
    """A model that also gives its outputs before bounds, behind the others."""
    import onnx

    model = onnx.load(source) if isinstance(source, str) else onnx.load_model_from_string(source)
    given = {end.name for end in model.graph.output}
    ends = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(_before_bounds(model)) if name not in given]
    model.graph.output.extend(ends)
    return model.SerializeToString()  # type: ignore[no-any-return]


def _sessions(source: str | bytes) -> list[Any]:
    """A session with all optimisations, and one with none, which also gives outputs before bounds; codes stay codes.

    They are of a model by its path, or by its content.
    """
    import onnxruntime as ort

    options, sessions = ort.SessionOptions(), list[Any]()
    options.log_severity_level = 3
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    for level in (ort.GraphOptimizationLevel.ORT_ENABLE_ALL, ort.GraphOptimizationLevel.ORT_DISABLE_ALL):
        options.graph_optimization_level = level
        model = source if not sessions else _with_outputs(source)
        sessions.append(ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]))
    return sessions


def _drawn(session: Any, asked: Mapping[str, Any], seed: int, count: int) -> Iterator[dict[str, Array]]:
    """Random inputs of so many runs."""
    draw, shapes = np.random.default_rng(seed), _shapes(session, asked)
    for _ in range(count):
        yield {i.name: random_array(_NAMES[i.type], shapes[i.name], draw) for i in session.get_inputs()}


def _stated(session: Any, asked: Mapping[str, Any], feeds: Sequence[Sequence[bytes]]) -> Iterator[dict[str, Array]]:
    """Inputs whose bytes are given."""
    last, shapes = set(asked.get("last", ())), _shapes(session, asked)
    for run in feeds:
        fed: dict[str, Array] = {}
        for end, content in zip(session.get_inputs(), run, strict=True):
            values: Array = np.frombuffer(content, _in_source(_NAMES[end.type], asked))
            if end.name in last:
                n, channels, *others = shapes[end.name]
                places = values.reshape(n, *others, channels)
                values = np.ascontiguousarray(places.transpose(0, places.ndim - 1, *range(1, places.ndim - 1)))
            fed[end.name] = _of_type(values, _NAMES[end.type]).reshape(shapes[end.name])
        yield fed


def _runs(
    sessions: Sequence[Any],
    asked: Mapping[str, Any],
    inputs: Iterable[dict[str, Array]],
    before: Sequence[str],
    *,
    coded: bool,
) -> Iterator[SessionRun]:
    last, names = set(asked.get("last", ())), [o.name for o in sessions[0].get_outputs()]

    def in_source(values: Array, name: str) -> Array:
        return _ordered(_of_type(values, _in_source(values.dtype, asked)), last=name in last)

    for feeds in inputs:
        optimised, plain = ([np.asarray(y) for y in session.run(None, feeds)] for session in sessions)
        fed = [in_source(feeds[i.name], i.name).tobytes() for i in sessions[0].get_inputs()]
        first, second = (
            [in_source(y, name) for name, y in zip(names, outputs, strict=False)] for outputs in (optimised, plain)
        )
        sizes = {o.name: float(np.abs(y).max(initial=0)) for o, y in zip(sessions[1].get_outputs(), plain, strict=True)}
        largest = tuple(max(sizes[name], sizes[source]) for name, source in zip(names, before, strict=True))
        yield SessionRun(fed, first, second, coded, largest)


def _shapes(session: Any, asked: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs, with what is bound of them."""
    bound = dict(pair.split("=", 1) for pair in asked.get("dims", ()))
    stated = dict(pair.split("=", 1) for pair in asked.get("shapes", ()))
    shapes = {}
    for end in session.get_inputs():
        if end.name in stated:
            shapes[end.name] = tuple(int(n) for n in stated[end.name].split(","))
        else:
            shapes[end.name] = tuple(int(bound.get(n, 1)) if isinstance(n, str) else int(n or 1) for n in end.shape)
    return shapes


def _ordered(values: Array, *, last: bool) -> Array:
    """A map with its channels last where the source has it so."""
    order = (0, *range(2, values.ndim), 1)
    return np.ascontiguousarray(values.transpose(order) if last else values)


def _in_source(dtype: Any, asked: Mapping[str, Any]) -> Any:
    """The type that values of a session have in the source: another one only of codes."""
    interface = asked.get("interface", "as-is")
    return np.dtype(interface) if interface != "as-is" and dtype in _CODES else dtype


def _of_type(values: Array, dtype: Any) -> Array:
    """Values, or where they are codes of another type those that stand for the same numbers."""
    return values if values.dtype == dtype else (values.view(np.uint8) ^ np.uint8(128)).view(dtype)


def _multiplies_exactly() -> bool:
    """Whether products of codes are added up without saturation here: on ARM, and on x86 with VNNI."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return True
    return any(name in flags for name in _EXACT) or "avx" not in flags
