"""The .onnx models of models/ as plain C: RAM held and by rows, in float32 and 8 bits, beside ONNX Runtime's outputs.

    python benchmarks/onnx_c.py [--emx PROGRAM] [--onnx2c PROGRAM]

Models of 8 bits are made by ONNX Runtime's `quantize_static`: operators of codes, with signs, weights by channel; their
ends are codes where RAM is counted and floats where outputs are compared. ds_cnn_kws_qdq is that of models/quantised/.
Times are those of this machine's cc -O2, the least of several runs of held inputs with floats at both ends; `--emx` and
`--onnx2c` name the programs of emx-onnx-cgen and onnx2c, other writers of C, whose times stand beside, with the stack
of the one, which has its values there, and the static memory of the other.
"""

from __future__ import annotations

import logging
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import reporting
from mobilenet_v2 import mobilenet_v2_onnx

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier.c_compiling import compiled_network
from modelplan.checking.verifier.c_execution import execute_network
from modelplan.checking.verifier.verdicts import Skipped
from modelplan.plain_c.ladder import CRung
from modelplan.plain_c.writing.plan_data import stated_request
from modelplan.primitives.errors import ModelPlanError

PARSER = reporting.command_line(__file__, __doc__, "onnx_c.md", corpus=False)
PARSER.add_argument("--emx", type=Path, metavar="PROGRAM", help="emx-onnx-cgen, with which to compare")
PARSER.add_argument("--onnx2c", type=Path, metavar="PROGRAM", help="onnx2c, with which to compare")
_RUNS = 15
_TIMED = """#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "%(header)s"
int main(void) {
  double best = 1e9;
  for (int run = 0; run < %(runs)d; run++) {
    struct timespec a, b;
    memset(%(input)s, 0, sizeof(float) * %(elements)d);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    %(call)s;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    const double took = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
    best = took < best ? took : best;
  }
  printf("%%.2f", best);
  return 0;
}
"""
_MODELS = ("resnet8", "mobilenet_v2_like", "inception_like", "unet_small", "transformer_encoder")
_HEAD = (
    "Bytes. Floats may differ from ONNX Runtime's outputs by four times what its sessions with and without",
    "optimisation differ by, codes by nothing. The bound holds for all choices of what runs together in this order of",
    "operators. Flash is what a compiler makes of code and tables for a Cortex-M4. MobileNetV2 has drawn weights.",
    "",
)


def quantised(source: Path, target: Path, **more: Any) -> None:
    """Writes a model of 8 bits, calibrated on numbers that are drawn."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    end = onnx.load(source).graph.input[0]
    shape, draw = [d.dim_value for d in end.type.tensor_type.shape.dim], np.random.default_rng(3)

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        left = 8

        def get_next(self) -> dict[str, Any] | None:
            self.left -= 1
            return {end.name: draw.standard_normal(shape).astype(np.float32)} if self.left >= 0 else None

    logging.disable(logging.CRITICAL)
    given = {"quant_format": QuantFormat.QOperator, "per_channel": True, "activation_type": QuantType.QInt8, **more}
    quantize_static(str(source), str(target), Reader(), weight_type=QuantType.QInt8, **given)


def _rung(path: Path, *, rows: bool, interface: str = "as-is", more: float = 0.0) -> CRung:
    """The plan of least RAM, for which so large a share of time may be added."""
    layout = "nhwc" if rows else "nchw"
    asked = FitCRequest(str(path), layout=layout, pushed=rows, interface=interface, max_time=more)
    ladder = fit_c(replace(asked, time_per_ram=float("inf")))
    if ladder.chosen is None:
        raise TypeError("no budget was asked for")
    return ladder.chosen


def compared(path: Path, rung: CRung) -> str:
    """How outputs compare with those of ONNX Runtime; by how much floats differ that lie within the bound."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "net.c"
        source.write_text(rung.files.source)
        source.with_suffix(".h").write_text(rung.files.header)
        try:
            details = execute_network(str(path), stated_request(rung.files.source), source).details
        except Skipped as reason:
            return f"{str(reason).rpartition('; output 0: ')[2]}, as floats between are rounded"
        except ModelPlanError as problem:
            return f"DIFFERS: {str(problem).removeprefix(str(source))[2:]}"
    apart = re.search(r"floats, (\S+) apart", details)
    return f"within, {apart[1]}" if apart else "equal"


def _timed(folder: Path, source: str, words: dict[str, object]) -> str:
    """The milliseconds of a run of what a C file computes."""
    (folder / "main.c").write_text(_TIMED % {**words, "runs": _RUNS})
    flags = ["-std=c99", "-O2", "-w", "-fstack-usage", f"-I{folder}"]
    program = str(folder / "timed")
    command = ["cc", *flags, str(folder / "main.c"), str(folder / source), "-lm", "-o", program]
    if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
        return "-"
    return subprocess.run([program], cwd=folder, capture_output=True, text=True, check=True).stdout


def _session_time(path: Path) -> str:
    """The milliseconds of a session on one thread."""
    import onnxruntime as ort

    options, least = ort.SessionOptions(), float("inf")
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    end = session.get_inputs()[0]
    feed = {end.name: np.zeros(end.shape, np.float32)}
    for _ in range(_RUNS):
        began = time.process_time()
        session.run(None, feed)
        least = min(least, time.process_time() - began)
    return f"{least * 1e3:.2f}"


def _other(folder: Path, path: Path, command: list[str], function: str, elements: int) -> str:
    """The milliseconds of a function in the C that another program writes, to standard output or to FUNCTION.c."""
    source = folder / f"{function}.c"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return "-"
    if not source.exists():
        source.write_text(done.stdout)
    results = [int(np.prod([d.dim_value for d in o.type.tensor_type.shape.dim])) for o in onnx.load(path).graph.output]
    head = f"void {function}(const float *, float *);\nstatic float in[{elements}], out[{max(results)}];\n"
    (folder / f"{function}.h").write_text(head)
    words = {"header": f"{function}.h", "input": "in", "elements": elements, "call": f"{function}(in, out)"}
    return _timed(folder, source.name, words)


def _emx(folder: Path, path: Path, program: Path | None, elements: int) -> tuple[str, str]:
    """Time and stack of the C that emx-onnx-cgen writes, its temporary values on the stack."""
    if not program:
        return "-", "-"
    command = [str(program), "compile", str(path), "emx.c", "--model-name", "emx", "--large-temp-threshold", "0"]
    took = _other(folder, path, [*command, "--large-weight-threshold", "0"], "emx", elements)
    usage = [line.split("\t") for file in folder.glob("*emx.su") for line in file.read_text().splitlines()]
    stack = max((int(fields[1]) for fields in usage), default=0)
    return took, f"{stack:,}" if stack else "-"


def _onnx2c(folder: Path, path: Path, program: Path | None, elements: int) -> tuple[str, str]:
    """Time and static memory of the C that onnx2c writes."""
    if not program:
        return "-", "-"
    took = _other(folder, path, [str(program), str(path)], "entry", elements)
    if took == "-":
        return "-", "-"
    subprocess.run(["cc", "-O2", "-w", "-c", "entry.c", "-o", "entry.o"], cwd=folder, check=True)
    sizes = subprocess.run(["size", "-A", "entry.o"], cwd=folder, capture_output=True, text=True, check=True).stdout
    static = sum(int(line.split()[1]) for line in sizes.splitlines() if line.startswith((".bss", ".data")))
    return took, f"{static:,}"


def times(emx: Path | None, onnx2c: Path | None) -> Iterator[tuple[str, ...]]:
    """A row for each model and type: milliseconds of its C, of a session, and of other writers' C."""
    with tempfile.TemporaryDirectory() as name:
        for model, codes in ((m, c) for m in _MODELS for c in (False, True)):
            folder = Path(name) / f"{model}{codes}"
            folder.mkdir()
            path, coded = reporting.ROOT / "models" / f"{model}.onnx", folder / f"{model}.onnx"
            if codes and model in ("transformer_encoder", "unet_small"):
                continue
            if codes:
                quantised(path, coded)
            used = coded if codes else path
            elements = int(np.prod([d.dim_value for d in onnx.load(used).graph.input[0].type.tensor_type.shape.dim]))
            ladder = fit_c(FitCRequest(str(used), output="net.c", without=frozenset({"maps", "overlaps", "parts"})))
            assert ladder.chosen is not None
            (folder / "net.c").write_text(ladder.chosen.files.source)
            (folder / "net.h").write_text(ladder.chosen.files.header)
            words = {"header": "net.h", "input": "net_input()", "elements": elements, "call": "net_invoke()"}
            own = _timed(folder, "net.c", words)
            first, second = _emx(folder, used, emx, elements), _onnx2c(folder, used, onnx2c, elements)
            print(model, codes, own, first, second, file=sys.stderr)
            kind = "8 bits" if codes else "float32"
            yield model, kind, own, first[0], second[0], _session_time(used), first[1], second[1]


def _cases(folder: Path) -> Iterator[tuple[str, str, Path, bool, float]]:
    """The models with their type and file, whether rows are handed over, and the share of time that may be added."""
    for name in _MODELS:
        path, codes = reporting.ROOT / "models" / f"{name}.onnx", folder / f"{name}.onnx"
        ways = (False,) if name == "transformer_encoder" else (False, True)
        yield from ((name, "float32", path, pushed, 0.0) for pushed in ways)
        if name != "transformer_encoder":
            quantised(path, codes)
            yield from ((name, "8 bits", codes, pushed, 0.0) for pushed in ways)
    dscnn = reporting.ROOT / "models" / "quantised" / "ds_cnn_kws_qdq.onnx"
    yield from (("ds_cnn_kws_qdq", "8 bits", dscnn, pushed, 0.0) for pushed in (False, True))
    name, codes = "MobileNetV2 1.0, 224 x 224", folder / "mobilenet_v2_q.onnx"
    onnx.save(mobilenet_v2_onnx(1.0, 224), folder / "mobilenet_v2.onnx")
    quantised(folder / "mobilenet_v2.onnx", codes)
    yield from ((name, "8 bits", codes, True, more) for more in (0.0, 0.5))


def rows() -> Iterator[tuple[str, ...]]:
    """A row for each model, type and way in which the input comes."""
    with tempfile.TemporaryDirectory() as folder:
        for name, dtype, file, pushed, more in _cases(Path(folder)):
            print(name, dtype, pushed, more, file=sys.stderr)
            interface = "as-is" if dtype == "float32" else "int8"
            rung = _rung(file, rows=pushed, interface=interface, more=more)
            said = compared(file, rung if interface == "as-is" else _rung(file, rows=pushed, more=more))
            compiled = compiled_network(rung.files.source, rung.files.header, rung.names.header)
            flash = f"{compiled.code + compiled.tables:,}" if compiled else "-"
            bound = f"{rung.bound:,}" if rung.bound else "-"
            how = ("rows" if pushed else "held") + (f", {more:.0%} more time" if more else "")
            said = "within the bound" if said.startswith("within") else said
            yield name, dtype, how, f"{rung.ram:,}", bound, flash, said


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    table = reporting.table(("model", "type", "input", "RAM", "bound", "flash", "outputs"), rows(), "<<<>>><")
    first = reporting.made_by(PARSER, arguments)
    milliseconds = "ms", "ms of emx-onnx-cgen", "ms of onnx2c", "ms of ONNX Runtime"
    heads = "model", "type", *milliseconds, "stack of emx-onnx-cgen", "static memory of onnx2c"
    said = ("", "Milliseconds of a run by rows with the input held, beside a session of one thread.", "")
    timed = reporting.table(heads, times(arguments.emx, arguments.onnx2c), "<<>>>>>>")
    reporting.save(arguments.output, first, "ONNX models as plain C", [*_HEAD, *table, *said, *timed])


if __name__ == "__main__":
    main()
