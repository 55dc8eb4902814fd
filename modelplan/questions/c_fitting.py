"""A model as plain C that needs no interpreter: what it needs, and the files."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.formats import load_model
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model import Graph, Part, Requirement
from modelplan.model.model_file import ModelFile
from modelplan.plain_c import C_RUNGS, LAYOUTS, ROUNDINGS
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.kernel_records import MissingKernelError
from modelplan.plain_c.ladder import CGoal, CLadder, CRung, c_ladder, least_rung
from modelplan.plain_c.libraries.kernel_libraries import stated_kernels
from modelplan.plain_c.rows.repeating import with_repeats
from modelplan.plain_c.rows.stage_search import TooManyStagesError, rows_tried
from modelplan.plain_c.writing.c_source import CNames
from modelplan.plain_c.writing.c_text import identifier
from modelplan.plain_c.writing.plan_data import stated_request
from modelplan.primitives.errors import BrokenPlanError, ModelError, RefusedModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.reporting import Report, report_nothing
from modelplan.primitives.settled_requests import SettledRequest, answers_paths
from modelplan.rewriting.striped_tflite.interface import INTERFACES, with_interface
from modelplan.runtimes.c import RAM_MACRO
from modelplan.runtimes.tflm.file import FileModel, load_tflite, read_tflite
from modelplan.runtimes.tflm.stated_network import StatedNetwork

if TYPE_CHECKING:
    from modelplan.answers.drawing import Drawing
    from modelplan.answers.proof_outcomes import Verdict
    from modelplan.checking.verifier.c_compiling import CompiledNetwork
    from modelplan.plain_c.onnx_networks.network_reading import NetworkRequest


#: Operators without plain C that a message names, and what there is instead.
_NAMED = 5
_OTHER_WAYS = [
    "without --runtime c, fit writes a .tflite file for TFLM, which has kernels for more operators",
    "`modelplan help standalone` lists the operators that plain C has",
]
_ONNX_WAYS = [
    "without --runtime c, fit finds settings and a file for ONNX Runtime",
    "`modelplan help onnx_c` lists the nodes that plain C has",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCRequest(SettledRequest, CGoal):
    """Asks for a .tflite or .onnx file as plain C, and what every rung of the ladder needs.

    Args:
        path: the file.
        output: the name of the C file; that of the header follows from it.
        budget: bytes of static memory that there are; None asks for the least.
        name: what all public names begin with; empty: the output's.
        section: of the buffer, for the linker; empty: none.
        interface: the type of inputs and outputs, "int8" or "uint8", where the program converts in place of the model's
            outer QUANTIZE and DEQUANTIZE; or "as-is". An .onnx model has "int8" and "as-is".
        layout: of an .onnx model's inputs and outputs that are maps: "nchw", as it says, or "nhwc", channels last.
        dims: extents that an .onnx file leaves open, each SYMBOL=N.
        shapes: shapes of inputs with open extents, each INPUT=N,N,...
        kernels: who computes: "portable" kernels in the file, or a library where it can: "esp-nn", or CMSIS-NN as
            "cmsis-c", "cmsis-dsp", "cmsis-mve", or "cmsis-nn" for any of them.
        rounding: how an .onnx model's convolutions and products of codes round: "onnx", or "library" as CMSIS-NN and
            ESP-NN do, which other kernels than portable ones need.
        pushed: whether the caller hands over the input row by row, so that it is never held as a whole.
        max_macs: multiply-accumulates that may be added, as a share of the model's.
        max_time: time that may be added, as a share, as it is expected of portable kernels. Where only one of both is
            given the other has no limit; with neither the rung "again" may add a tenth of both.
        max_flash: bytes that the tables may have.
        time_per_ram: percents of instructions that a percent of RAM is worth, where rows are cut into parts and no
            budget asks for that.
        without: rungs to skip: "maps", "overlaps", "rows", "parts", "again", "tiles".
        seed: of the search; the same seed gives the same file.
        effort: how far the search looks.
        seconds: after which the best so far counts; None: no limit. What is found by then depends on the machine.
    """

    path: str = field(kw_only=False)
    output: str = "net.c"
    name: str = ""
    section: str = ""
    kernels: str = "portable"
    interface: str = INTERFACES[0]
    layout: str = ""
    dims: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    rounding: str = ""
    seconds: float | None = None


@answers_paths(FitCRequest)
def fit_c(request: FitCRequest, progress: Report = report_nothing) -> CLadder:
    """A model as plain C: the rungs with what they need, and the chosen one proved row by row.

    Args:
        request: the file, the memory there is, and what the C is called.
        progress: is called with a line now and then.

    Returns:
        The ladder; the chosen rung has the text of the source and of the header. Ctrl-C, too, leaves the best so far.
        The proof has what a second reader of an .onnx file says, too.

    Raises:
        ModelError: the file cannot be read, or operators in it cannot become C; names the first of them.
        RequestError: the request names what does not exist, or rows of an input that there are not.
        BrokenPlanError: the plan is not right, or an .onnx file was misread: names node and tensor; never to be seen.
    """
    began = time.monotonic()
    try:
        model = _model(request)
    except MissingKernelError as problem:
        refused = (problem.lines, _ONNX_WAYS) if is_onnx(request.path) else (_missing(problem), _OTHER_WAYS)
        raise RefusedModelError(f"{request.path}: no plain C", *refused) from None
    deadline = None if request.seconds is None else began + request.seconds

    def check() -> None:
        if deadline is not None and time.monotonic() > deadline:
            raise KeyboardInterrupt  # ends the search as a user does

    reading = _second_reading(request.path, model.file)
    ladder = c_ladder(model, request, _names(request), progress, check)
    return replace(ladder, proof=(*ladder.proof, *reading)) if ladder.chosen else ladder


def _second_reading(path: str, file: FileModel) -> tuple[Verdict, ...]:
    """What a second reader of an .onnx file says about the network that the first one made of it."""
    if not isinstance(file, StatedNetwork):
        return ()
    from modelplan.checking.verifier.network_formulas import formulas_verdict

    verdict = formulas_verdict(path, file)
    if verdict.outcome == "broken":
        raise BrokenPlanError(f"{path} was misread: {verdict.details}")
    return (verdict,)


def _missing(problem: MissingKernelError) -> list[str]:
    """The kinds of operators that have no plain C, a few of them, each with the reason."""
    lines = problem.lines
    return lines[:_NAMED] + ([f"and {len(lines) - _NAMED} more kinds"] if len(lines) > _NAMED else [])


def fitted_self_test(request: FitCRequest, ladder: CLadder) -> str:
    """A C file that runs what `fit_c` chose on generated inputs, and compares every map with what TFLM computes here.

    Of an .onnx model outputs are compared with what ONNX Runtime computes here.

    Raises:
        ModelError: nothing was chosen, or the runtime does not run the model.
        RequestError: the runtime is not installed, or an input has a type for which there are no generated values.
    """
    from modelplan.plain_c.writing.c_self_test import c_self_test, expected_c_runs
    from modelplan.plain_c.writing.session_self_test import session_expected, session_self_test

    if ladder.chosen is None:
        raise ModelError(f"{request.path}: no self-test, for nothing fits")
    model, program = _model(request), ladder.chosen.program
    operators = ladder.chosen.operators
    if isinstance(model.file, StatedNetwork):
        if request.rounding == ROUNDINGS[1]:
            raise RequestError(f"{request.path}: no self-test, for --rounding library computes other outputs")
        expected = session_expected(request.path, model.file, request.seed)
        test = session_self_test(model.file, operators, program, _names(request), expected, request.seed)
        _require_passing(request, model.file, test, ladder.chosen)
        return test
    runs = expected_c_runs(model.file, operators, program, request.seed)
    return c_self_test(model.file, operators, program, _names(request), runs, request.seed)


def _require_passing(request: FitCRequest, network: StatedNetwork, test: str, rung: CRung) -> None:
    """Checks a self-test where codes are made of floats, whose last bits ONNX Runtime may have otherwise."""
    from modelplan.checking.verifier.c_execution import passes_self_test
    from modelplan.checking.verifier.verdicts import Skipped

    mixed = network.asked.get("mixed")
    if not mixed:
        return
    why = f"codes are made of floats of {', '.join(mixed)}"
    try:
        passes = passes_self_test(test, rung.files.header, _names(request).header)
    except Skipped as reason:
        raise RequestError(
            f"{request.path}: no self-test, for {why}, and whether it passes is not known: {reason}"
        ) from None
    if not passes:
        raise RequestError(f"{request.path}: no self-test, for {why}, which ONNX Runtime rounds otherwise here")


def drawn_rung(request: FitCRequest, ladder: CLadder) -> Drawing:
    """The plan of what was chosen, as figures show it.

    Raises:
        ModelError: nothing was chosen.
    """
    from modelplan.plain_c.drawn_program import drawing_of

    if ladder.chosen is None:
        raise ModelError(f"{request.path}: nothing to draw, for nothing fits")
    program, choices = ladder.chosen.program, ladder.chosen.program.choices
    rows = with_repeats(_model(request).rows, choices.repeats if choices else ())
    return drawing_of(program, rows, f"{Path(request.path).stem} in plain C")


def compiled_rung(request: FitCRequest, ladder: CLadder) -> CompiledNetwork | None:
    """Code and stack of what was chosen; None where nothing was, or no compiler takes it."""
    from modelplan.checking.verifier.c_compiling import compiled_network  # here, since compilers take time to ask

    if ladder.chosen is None:
        return None
    files = ladder.chosen.files
    return compiled_network(files.source, files.header, _names(request).header)


def source_verdict(path: str, source: str, header: str) -> Verdict:
    """The verdict of the plan that a C source states, of a .tflite file.

    Raises:
        ModelError: the file cannot be read, or operators in it cannot become C; names the first of them.
    """
    from modelplan.plain_c.stated_plan import stated_verdict

    if is_onnx(path):
        return stated_verdict(_network_model(network_of_source(path, source), stated_kernels(source)), source, header)
    model, interface = _stated_model(path, header, stated_kernels(source))
    verdict = stated_verdict(model, source, header)
    if interface == INTERFACES[0] or verdict.outcome != "ok":
        return verdict
    return replace(verdict, details=f"{verdict.details}; the program converts its ends to {interface}")


def network_of_source(path: str, source: str) -> StatedNetwork:
    """An .onnx file as the network of which a C source was written.

    Raises:
        ModelError: the file cannot be read, or nodes in it cannot become C; names all of them.
        RequestError: the source states none, or none of this model.
    """
    from modelplan.plain_c.onnx_networks.network_reading import NetworkRequest

    asked = stated_request(source)
    names = {field.name for field in fields(NetworkRequest)}
    if not names <= asked.keys():
        raise RequestError(f"the C source was not written of an .onnx model; write it of {path} with `fit`")
    try:
        return _network(path, NetworkRequest(**{name: asked[name] for name in names}))
    except RequestError as problem:
        raise RequestError(f"the C source was written of another model than {path}: {problem}") from None


def stated_interface(file: FileModel, header: str) -> str:
    """The type of inputs and outputs of a network in plain C, or "as-is" where they are those of its model."""
    main = file.subgraphs[0]
    types = [DTYPES[main.tensors[t].type] for t in (*main.inputs, *main.outputs)]
    stated = re.findall(r"^/\* .*\] (\w+) \*/$", header, re.MULTILINE)
    floats = (interface for interface, dtype in zip(stated, types, strict=False) if dtype == "float32")
    changed = [interface for interface in floats if interface in INTERFACES and len(file.subgraphs) == 1]
    return changed[0] if changed else INTERFACES[0]


def with_stated_interface(file: FileModel, path: str, header: str) -> FileModel:
    """A .tflite file with the inputs and outputs that a header states, where the file can have them."""
    interface = stated_interface(file, header)
    return file if interface == INTERFACES[0] else _stated_model(path, header, "portable")[0].file


def _stated_model(path: str, header: str, kernels: str) -> tuple[CModel, str]:
    """The model with the inputs and outputs that a header states, and which; as it is where it cannot have them."""
    interface = stated_interface(load_tflite(path), header)
    try:
        return _loaded(path, interface, kernels), interface
    except RequestError:  # the header is that of another model
        return _loaded(path, INTERFACES[0], kernels), INTERFACES[0]


def _model(request: FitCRequest) -> CModel:
    if is_onnx(request.path):
        if request.layout not in ("", *LAYOUTS):
            raise RequestError(f"no layout {request.layout!r}; there are: {', '.join(LAYOUTS)}")
        if request.rounding not in ("", *ROUNDINGS):
            raise RequestError(f"no rounding {request.rounding!r}; there are: {', '.join(ROUNDINGS)}")
        network = _network(request.path, _asked(request))
        if request.pushed and set(network.subgraphs[0].inputs) & network.turned:
            raise RequestError(
                f"{request.path}: rows are handed over with their channels last; --layout nhwc says that yours are"
            )
        return _network_model(network, request.kernels)
    for option in ("layout", "dims", "shapes", "rounding"):
        if getattr(request, option):
            raise RequestError(f"--{option.removesuffix('s')} is for .onnx models, and {request.path} is none")
    return _loaded(request.path, request.interface, request.kernels)


def _asked(request: FitCRequest) -> NetworkRequest:
    from modelplan.plain_c.onnx_networks.network_reading import NetworkRequest

    layout, rounding = request.layout or LAYOUTS[0], request.rounding or ROUNDINGS[0]
    return NetworkRequest(layout, request.interface, request.dims, request.shapes, rounding)


def _network(path: str, asked: NetworkRequest, graph: Graph | None = None) -> StatedNetwork:
    """An .onnx file as a network; a .tflite file needs nothing of what reads it."""
    from modelplan.plain_c.onnx_networks.network_reading import network_of

    return network_of(path, asked, graph)


def is_onnx(path: str) -> bool:
    """Whether a file is an .onnx model by its name."""
    return path.lower().endswith(".onnx")


def _network_model(network: StatedNetwork, kernels: str) -> CModel:
    as_library = network.asked.get("rounding") == ROUNDINGS[1]
    if kernels != "portable" and not network.scales:
        raise RequestError(f"{network.name}: --kernels {kernels} is for codes of 8 bits, of which it has none")
    if kernels != "portable" and not as_library:
        raise RequestError(
            f"{network.name}: --kernels {kernels} rounds otherwise than ONNX says, so that outputs may differ; "
            "--rounding library takes that, and fit counts them"
        )
    if kernels == "portable" and as_library:
        raise RequestError(f"{network.name}: --rounding library is for --kernels of a library; portable ones are exact")
    return CModel(network.graph, network, kernels)


def rounding_difference(request: FitCRequest) -> str:
    """How many outputs of an .onnx model differ from ONNX Runtime's where a library rounds; empty where none does.

    Portable kernels are run that round as the libraries do, with the model's own inputs and outputs.
    """
    if not is_onnx(request.path) or request.rounding != ROUNDINGS[1]:
        return ""
    from tempfile import TemporaryDirectory

    from modelplan.checking.verifier.c_execution import execute_network
    from modelplan.checking.verifier.verdicts import Skipped

    network = _network(request.path, replace(_asked(request), interface=INTERFACES[0]))
    rung = least_rung(CModel(network.graph, network), CGoal(without=frozenset(C_RUNGS) - {"maps"}))
    with TemporaryDirectory() as folder:
        source = Path(folder) / "net.c"
        source.write_text(rung.files.source)
        source.with_suffix(".h").write_text(rung.files.header)
        try:
            return execute_network(request.path, network.asked, source, request.seed).details
        except Skipped as reason:
            return f"not counted: {reason}"


def _loaded(path: str, interface: str, kernels: str) -> CModel:
    return _c_model(load_model(path), load_tflite(path), interface, kernels)


def _c_model(graph: Graph, file: FileModel, interface: str, kernels: str) -> CModel:
    if interface == INTERFACES[0]:
        return CModel(graph, file, kernels)
    changed = with_interface(file.data, graph, interface)
    return CModel(changed.graph, read_tflite(changed.content, file.name), kernels)


def _names(request: FitCRequest) -> CNames:
    stem = Path(request.output).stem
    return CNames(identifier(request.name or stem), f"{stem}.h", request.section)


@dataclass(frozen=True, slots=True)
class CForm:
    """What plain C is written for: whose kernels compute, the type of its ends, and whether the input comes by rows."""

    kernels: str = "portable"
    interface: str = INTERFACES[0]
    pushed: bool = False


def rows_of_c(file: ModelFile, kernels: str) -> int:
    """The rows that a search for plain C of a file tries, which its time goes by."""
    return rows_tried(_of_file(file, CForm(kernels)).rows)


def _of_file(file: ModelFile, form: CForm) -> CModel:
    """A model file as plain C is written of it."""
    layout = LAYOUTS[1] if form.pushed and file.graph.format == "onnx" else LAYOUTS[0]
    return _remembered(file, form.kernels, form.interface, layout)


@lru_cache(maxsize=2)
def _remembered(file: ModelFile, kernels: str, interface: str, layout: str) -> CModel:
    """The model, which questions about other forms of the same file ask for again."""
    if file.graph.format != "onnx":
        return _c_model(file.graph, read_tflite(file.content, file.path), interface, kernels)
    from modelplan.plain_c.onnx_networks.network_reading import NetworkRequest

    return _network_model(_network(file.path, NetworkRequest(layout, interface), file.graph), kernels)


def planned_c(
    file: ModelFile,
    form: CForm,
    most_rows: int | None = None,
    most_stages: int | None = None,
    *,
    proved: bool = True,
) -> CRung:
    """The file as plain C by rows, or of whole maps where a search would try more rows or look at more stages.

    `fit` makes these plans too, and more, so that its least is no larger; what it writes it proves in any case.

    Raises:
        ModelError: operators in it cannot become C; names them all.
        RequestError: it has no ends of that type, or no rows to hand over.
        BrokenPlanError: the plan is not right; never to be seen.
    """
    model = _of_file(file, form)
    if most_rows is None or rows_tried(model.rows) <= most_rows:
        goal = CGoal(without=frozenset({"maps", "overlaps", "parts", "again"}), pushed=form.pushed)
        with suppress(TooManyStagesError):
            return least_rung(model, goal, most_stages, proved=proved)
    whole = CGoal(without=frozenset({"rows", "overlaps", "parts", "again"}), pushed=form.pushed)
    return least_rung(model, whole, proved=proved)


def c_requirement(file: ModelFile, kernels: str) -> Requirement:
    """The memory of a file as plain C that holds its input and computes whole rows; operators without C refuse it."""
    basis = (
        "plain C as `modelplan fit --runtime c` writes it: the input is held, rows are kept as long as they are read"
    )
    try:
        rung = planned_c(file, CForm(kernels))
    except MissingKernelError as problem:
        return Requirement(0, 0, (), basis, refusals=tuple(problem.lines), kernels=kernels)
    except ModelError as problem:
        return Requirement(0, 0, (), basis, refusals=(str(problem),), kernels=kernels)
    ram, buffer = rung.ram, rung.program.nbytes
    parts = Part("maps and rows", buffer), Part("kept from run to run", ram - buffer)
    return Requirement(ram, buffer, parts, basis, macro=RAM_MACRO, kernels=kernels)
