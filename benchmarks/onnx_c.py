"""The .onnx models of models/ as plain C: RAM held and by rows, in float32 and 8 bits, beside ONNX Runtime's outputs.

    python benchmarks/onnx_c.py

Models of 8 bits are made by ONNX Runtime's `quantize_static`: operators of codes, with signs, weights by channel; their
ends are codes where RAM is counted and floats where outputs are compared.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import reporting

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier.c_compiling import compiled_network
from modelplan.checking.verifier.c_execution import execute_network
from modelplan.checking.verifier.verdicts import Skipped
from modelplan.plain_c.ladder import CRung
from modelplan.plain_c.writing.plan_data import stated_request
from modelplan.primitives.errors import ModelPlanError

PARSER = reporting.command_line(__file__, __doc__, "onnx_c.md", corpus=False)
_MODELS = ("resnet8", "mobilenet_v2_like", "inception_like", "unet_small", "transformer_encoder")
_HEAD = (
    "Bytes. Floats may differ from ONNX Runtime's outputs by four times what its sessions with and without",
    "optimisation differ by, codes by nothing. The bound holds for all choices of what runs together. Flash is what a",
    "compiler makes of code and tables for a Cortex-M4.",
    "",
)


def quantised(source: Path, target: Path) -> None:
    """A model of 8 bits, calibrated on numbers that are drawn."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    end = onnx.load(source).graph.input[0]
    shape, draw = [d.dim_value for d in end.type.tensor_type.shape.dim], np.random.default_rng(3)

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        left = 8

        def get_next(self) -> dict[str, Any] | None:
            self.left -= 1
            return {end.name: draw.standard_normal(shape).astype(np.float32)} if self.left >= 0 else None

    logging.disable(logging.CRITICAL)
    quantize_static(
        str(source), str(target), Reader(), quant_format=QuantFormat.QOperator, per_channel=True,
        activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip


def _rung(path: Path, *, rows: bool, interface: str = "as-is") -> CRung:
    layout = "nhwc" if rows else "nchw"
    ladder = fit_c(FitCRequest(str(path), layout=layout, pushed=rows, interface=interface, time_per_ram=float("inf")))
    if ladder.chosen is None:
        raise TypeError("no budget was asked for")
    return ladder.chosen


def _outputs(path: Path, rung: CRung) -> str:
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "net.c"
        source.write_text(rung.files.source)
        source.with_suffix(".h").write_text(rung.files.header)
        try:
            details = execute_network(str(path), stated_request(rung.files.source), source).details
        except Skipped as reason:
            return str(reason)
        except ModelPlanError as problem:
            return f"DIFFER: {problem}"
    return "equal" if "are equal" in details else "within the bound"


def rows() -> Iterator[tuple[str, ...]]:
    """A row for each model, type and way in which the input comes."""
    with tempfile.TemporaryDirectory() as folder:
        for name in _MODELS:
            path, codes = reporting.ROOT / "models" / f"{name}.onnx", Path(folder) / f"{name}.onnx"
            kinds = [("float32", path, "as-is")]
            if name not in ("transformer_encoder", "unet_small"):
                quantised(path, codes)
                kinds.append(("8 bits", codes, "int8"))
            for dtype, file, interface in kinds:
                for pushed in (False, True) if name != "transformer_encoder" else (False,):
                    print(name, dtype, pushed, file=sys.stderr)
                    rung = _rung(file, rows=pushed, interface=interface)
                    compared = rung if interface == "as-is" else _rung(file, rows=pushed)
                    compiled = compiled_network(rung.files.source, rung.files.header, rung.names.header)
                    flash = f"{compiled.code + compiled.tables:,}" if compiled else "-"
                    bound = f"{rung.bound:,}" if rung.bound else "-"
                    how = "rows" if pushed else "held"
                    yield name, dtype, how, f"{rung.ram:,}", bound, flash, _outputs(file, compared)


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    table = reporting.table(("model", "type", "input", "RAM", "bound", "flash", "outputs"), rows(), "<<<>>><")
    first = reporting.made_by(PARSER, arguments)
    reporting.save(arguments.output, first, "ONNX models as plain C", [*_HEAD, *table])


if __name__ == "__main__":
    main()
