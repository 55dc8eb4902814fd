"""A network in plain C, compiled with sanitizers and run beside TFLM on random and on extreme inputs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelplan.checking.verifier.verdicts import Executed, Skipped
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.formats.whole_files import read_text
from modelplan.primitives.errors import BrokenPlanError, ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel
from modelplan.runtimes.tflm.generated_inputs import generated_inputs
from modelplan.runtimes.tflm.planner import without_plan
from modelplan.runtimes.tflm.runner import INSTALL, installed, tflm_values

if TYPE_CHECKING:
    from modelplan.checking.verifier.session_outputs import SessionRun

LEVEL, ONNX_LEVEL = "C beside TFLM", "C beside ONNX Runtime"
_RUNS = 6
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=c99", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_SECONDS = 600
#: The least and the largest byte of an element, in memory order, of types whose extremes are run.
_EXTREMES = {"int8": (b"\x80", b"\x7f"), "int16": (b"\x00\x80", b"\xff\x7f")}


@dataclass(frozen=True, slots=True)
class CLibrary:
    """A library that a network may call: the header by which it is known, the environment's name for its folder, the
    folders in it with headers, its sources, and options of the compiler.
    """

    name: str
    header: str
    variable: str
    includes: tuple[str, ...]
    sources: tuple[str, ...]
    options: tuple[str, ...] = ("-fno-sanitize=undefined",)  # the libraries shift negative numbers

    def folder(self) -> Path:
        """Where the library is.

        Raises:
            Skipped: nothing says where.
        """
        folder = Path(os.environ.get(self.variable, ""))
        if not (folder / self.includes[0] / self.header).is_file():
            raise Skipped(f"the file calls {self.name}; {self.variable}=FOLDER says where the library is")
        return folder

    def arguments(self, folder: Path) -> list[str]:
        """What a compiler is told, options and sources."""
        paths = sorted(path for pattern in self.sources for path in folder.glob(pattern))
        files = [str(path) for path in paths if not re.search(r"_f(16|32|lt)\.c$", path.name)]
        return [*self.options, *(f"-I{folder / name}" for name in self.includes), *files]


_LIBRARIES = (
    CLibrary(
        "CMSIS-NN",
        "arm_nnfunctions.h",
        "MODELPLAN_CMSIS_NN",
        ("Include",),
        ("Source/*/*.c",),
        ("-fno-sanitize=undefined", "-DARM_NN_ENABLE_F16=0", "-DARM_NN_ENABLE_F32=0"),
    ),
    CLibrary(
        "ESP-NN",
        "esp_nn_ansi_headers.h",
        "MODELPLAN_ESP_NN",
        ("include", "src/common"),
        ("src/*/*_ansi.c", "src/*/*_opt.c"),
    ),
)


@dataclass(frozen=True, slots=True)
class CInterface:
    """What a header says: the prefix, the functions of inputs and outputs, and whether rows are handed over."""

    prefix: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    pushed: bool


def interface_of(header: str, path: str) -> CInterface:
    """The interface that a header declares.

    Raises:
        RequestError: it is no header of a network in plain C.
    """
    start = re.search(r"(\w+)_(invoke\(void\)|push_row\()", header)
    if start is None:
        raise RequestError(f"{path}: declares no network; expected a header that `fit --runtime c` wrote")
    prefix = start[1]
    ends = [re.findall(rf"\*{prefix}_({side}(?:_\d+)?)\(void\)", header) for side in ("input", "output")]
    return CInterface(prefix, tuple(ends[0]), tuple(ends[1]), start[2] == "push_row(")


def execute_c(model: FileModel, path: Path, seed: int = 0) -> Executed:
    """Compiles a C file with its header and compares all outputs with those of TFLM's reference kernels, bit for bit.

    Raises:
        BrokenPlanError: outputs differ, or a sanitizer stops the program.
        RequestError: the header is missing, or the file does not compile.
        Skipped: there is no compiler, or no TFLM to compare with.
    """
    compiler = _compiler()
    if not installed():
        raise Skipped(f"tflite-micro is not installed; {INSTALL}")
    interface = interface_of(read_text(path.with_suffix(".h")), str(path.with_suffix(".h")))
    source = read_text(path)
    library = _library_of(source)
    more = library.arguments(library.folder()) if library else []
    feeds = [generated_inputs(model, seed, run) for run in range(_RUNS)] + list(_extreme(model))
    try:
        values = tflm_values(without_plan(model.data), feeds)
        wanted = [b"".join(output.tobytes() for output in outputs) for outputs, _ in values]
    except ModelError as problem:
        raise Skipped(f"{problem}, so that there is nothing to compare with") from None
    done = _run(compiler, path, interface, feeds, more)
    if done.returncode:
        raise BrokenPlanError(f"{path}: stops with {done.stderr.decode(errors='replace')[:400]}")
    if done.stdout != b"".join(wanted):
        size = max(len(wanted[0]), 1)
        at = next(i for i, run in enumerate(wanted) if done.stdout[i * size : (i + 1) * size] != run)
        raise BrokenPlanError(f"{path}: outputs of run {at} differ from TFLM's")
    kernels = f"{library.name} in {library.folder()}" if library else "portable kernels"
    return Executed(
        f"outputs of {len(feeds)} runs are equal, with sanitizers", f"{kernels} by {compiler}", planned=True
    )


def _library_of(source: str) -> CLibrary | None:
    """The library that a source calls, if it calls one."""
    return next((library for library in _LIBRARIES if library.header in source), None)


def _compiler() -> str:
    """A C compiler of this machine."""
    compiler = next((name for name in _COMPILERS if shutil.which(name)), None)
    if compiler is None:
        raise Skipped(f"no C compiler: {', '.join(_COMPILERS)}")
    return compiler


def execute_network(onnx_path: str, asked: Mapping[str, Any], path: Path, seed: int = 0) -> Executed:
    """Compiles the C file of an .onnx model, `asked` for so, and compares its outputs with those of ONNX Runtime.

    Codes, and floats that are made of codes, have to be equal; other floats to lie within four times what sessions with
    and without optimisation differ by, and a millionth of the largest.

    Where sums of codes round as libraries do, outputs that differ are counted.

    Raises:
        BrokenPlanError: outputs differ, or a sanitizer stops the program.
        RequestError: the header is missing, or the file does not compile.
        Skipped: there is no compiler, no library that it calls, no ONNX Runtime, this machine's kernels saturate, or
            outputs differ where codes are made of floats that nodes between compute.
    """
    from modelplan.checking.verifier.session_outputs import in_floats, session_runs

    compiler = _compiler()
    header = read_text(path.with_suffix(".h"))
    interface = interface_of(header, str(path.with_suffix(".h")))
    library = _library_of(read_text(path))
    more = library.arguments(library.folder()) if library else []
    runs = session_runs(onnx_path, asked, seed, _RUNS)
    done = _run(compiler, path, interface, [run.feeds for run in runs], more)
    if done.returncode:
        raise BrokenPlanError(f"{path}: stops with {done.stderr.decode(errors='replace')[:400]}")
    kernels = f"{library.name} in {library.folder()}" if library else "portable kernels"
    size, worst = len(done.stdout) // len(runs), 0.0
    if asked.get("rounding") == "library":
        said = _rounded_otherwise(runs, [done.stdout[n * size : (n + 1) * size] for n in range(len(runs))])
        return Executed(said, f"{kernels} by {compiler}", planned=True)
    for number, run in enumerate(runs):
        fault, off = run.compared(done.stdout[number * size : (number + 1) * size])
        if fault and asked.get("mixed"):
            between = ", ".join(asked["mixed"])
            raise Skipped(f"codes are made of floats of {between}, whose last bits sessions have otherwise; {fault}")
        if fault and (floats := in_floats(onnx_path)):
            raise Skipped(f"ONNX Runtime computes {floats} between codes in floats, whose last bits differ; {fault}")
        if fault:
            raise BrokenPlanError(f"{path}: outputs of run {number} differ from ONNX Runtime's: {fault}")
        worst = max(worst, off)
    same = "are equal" if worst == 0 else f"lie within the bound for floats, {worst:.2g} apart at most"
    return Executed(f"outputs of {len(runs)} runs {same}, with sanitizers", f"{kernels} by {compiler}", planned=True)


def _rounded_otherwise(runs: Sequence[SessionRun], contents: Sequence[bytes]) -> str:
    """How many numbers of outputs differ where convolutions and products round otherwise than ONNX says."""
    for run, content in zip(runs, contents, strict=True):
        if len(content) != (expected := sum(y.nbytes for y in run.optimised)):
            raise BrokenPlanError(f"{len(content):,} bytes of outputs, expected {expected:,}")
    pairs = [pair for run, content in zip(runs, contents, strict=True) for pair in run.apart(content)]
    count, most = sum(n for n, _ in pairs), max((off for _, off in pairs), default=0.0)
    total = sum(y.size for run in runs for y in run.optimised)
    off = f", by {most:.3g} at most" if count else ""
    return f"{count:,} of {total:,} numbers of outputs differ from ONNX Runtime's in {len(runs)} drawn runs{off}"


def passes_self_test(test: str, header: str, name: str) -> bool:
    """Whether a self-test in C, whose header has this name, passes on this machine.

    Raises:
        Skipped: there is no compiler.
        RequestError: it does not compile.
    """
    compiler = _compiler()
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "test.c", Path(folder) / "test"
        source.write_text(test)
        (Path(folder) / name).write_text(header)
        command = [compiler, *_FLAGS, f"-I{folder}", str(source), "-lm", "-o", str(program)]
        built = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
        if built.returncode:
            raise RequestError(f"the self-test does not compile: {built.stderr[:400]}")
        done = subprocess.run([str(program)], capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
        return done.returncode == 0


def _extreme(model: FileModel) -> Iterator[list[bytes]]:
    """All inputs at their least, and at their largest."""
    tensors = [model.subgraphs[0].tensors[t] for t in model.subgraphs[0].inputs]
    kinds = {DTYPES[tensor.type] for tensor in tensors}
    if kinds <= set(_EXTREMES):
        for end in (0, 1):
            yield [_EXTREMES[DTYPES[tensor.type]][end] * tensor.elements for tensor in tensors]


def _run(
    compiler: str, path: Path, interface: CInterface, feeds: Sequence[Sequence[bytes]], library: Sequence[str]
) -> subprocess.CompletedProcess[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        main, program = Path(folder) / "main.c", Path(folder) / "net"
        main.write_text("\n".join(_main(path.with_suffix(".h").name, interface, len(feeds))))
        command = [compiler, *_FLAGS, f"-I{path.parent}", str(main), str(path), *library, "-lm", "-o", str(program)]
        built = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
        if built.returncode:
            raise RequestError(f"{path} does not compile: {built.stderr[:400]}")
        run, inputs = [str(program)], b"".join(b"".join(feed) for feed in feeds)
        return subprocess.run(run, input=inputs, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603


def _main(header: str, interface: CInterface, runs: int) -> Iterator[str]:
    """A program that reads inputs and writes outputs, run after run."""
    name, macro = interface.prefix, interface.prefix.upper()
    yield f'#include <stdio.h>\n#include "{header}"\nint main(void)\n{{\n    for (int run = 0; run < {runs}; run++) {{'
    if interface.pushed:
        yield f"        static unsigned char in[{macro}_INPUT_BYTES];"
        yield "        int done = 0;\n        if (fread(in, 1, sizeof in, stdin) != sizeof in) { return 0; }"
        yield f"        {name}_start();\n        for (unsigned at = 0; at < sizeof in; at += {macro}_ROW_BYTES) {{"
        yield f"            done = {name}_push_row((const void *)(in + at));\n        }}"
        yield "        if (!done) { return 1; }"
    else:
        yield from _lines(interface.inputs, name, macro, "fread({0}(), 1, {1}, stdin) != {1}")
        yield f"        {name}_invoke();"
    yield from _lines(interface.outputs, name, macro, "fwrite({0}(), 1, {1}, stdout) != {1}")
    yield "    }\n}\n"


def _lines(ends: Sequence[str], name: str, macro: str, form: str) -> Iterator[str]:
    for end in ends:
        yield f"        if ({form.format(f'{name}_{end}', f'{macro}_{end.upper()}_BYTES')}) {{ return 0; }}"
