"""Weights of 16-bit floats in plain C: kept as they are, and computed with as the floats that they stand for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from standalone_c import SANITIZERS, WARNINGS
from tflm_models import Op, S, T, build

from modelplan import FitCRequest, fit_c
from modelplan.plain_c.kernel_sources import all_sources

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
_WINDOWS = {"Padding": 0, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
_MAIN = """
#include <stdio.h>
#include "net.h"
int main(void)
{
    for (int run = 0; run < 3; run++) {
        if (fread(net_input(), 1, NET_INPUT_BYTES, stdin) != NET_INPUT_BYTES) {
            return 1;
        }
        net_invoke();
        (void)fwrite(net_output(), 1, NET_OUTPUT_BYTES, stdout);
    }
    return 0;
}
"""


def _model(*, half: bool) -> bytes:
    """Convolutions and a product whose constants have 16 bits and are unpacked, or 32."""
    draw, tensors, ops = np.random.default_rng(3), [T("float32", (1, 6, 6, 2))], list[Op]()

    def constant(*shape: int) -> int:
        values = draw.standard_normal(shape).astype(np.float16)
        if not half:
            tensors.append(T("float32", shape, values=values.astype(np.float32).tobytes()))
            return len(tensors) - 1
        tensors.extend((T("float16", shape, values=values.tobytes()), T("float32", shape)))
        ops.append(Op("DEQUANTIZE", (len(tensors) - 2,), (len(tensors) - 1,)))
        return len(tensors) - 1

    def map_of(*shape: int) -> int:
        tensors.append(T("float32", shape))
        return len(tensors) - 1

    weights, bias, deep, matrix = constant(4, 3, 3, 2), constant(4), constant(1, 3, 3, 4), constant(5, 144)
    first, second, out = map_of(1, 6, 6, 4), map_of(1, 6, 6, 4), map_of(1, 5)
    plain = {"FusedActivationFunction": 0}
    ops.append(Op("CONV_2D", (0, weights, bias), (first,), {**_WINDOWS, "FusedActivationFunction": 1}, "Conv2DOptions"))
    options = {**_WINDOWS, **plain, "DepthMultiplier": 1}
    ops.append(Op("DEPTHWISE_CONV_2D", (first, deep), (second,), options, "DepthwiseConv2DOptions"))
    options = {**plain, "WeightsFormat": 0, "KeepNumDims": 0}
    ops.append(Op("FULLY_CONNECTED", (second, matrix), (out,), options, "FullyConnectedOptions"))
    return build(S(tuple(tensors), tuple(ops), (0,), (out,)))


def _outputs(folder: Path, *, half: bool) -> tuple[bytes, int, int]:
    """What the network gives, its RAM, and the bytes of its tables."""
    folder.mkdir()
    (folder / "net.tflite").write_bytes(_model(half=half))
    rung = fit_c(FitCRequest(str(folder / "net.tflite"), output=str(folder / "net.c"))).chosen
    assert rung is not None
    (folder / "net.c").write_text(rung.files.source)
    (folder / "net.h").write_text(rung.files.header)
    (folder / "main.c").write_text(_MAIN)
    command = ["cc", "-std=c99", *WARNINGS, *SANITIZERS, "net.c", "main.c", "-lm", "-o", "net"]
    subprocess.run(command, cwd=folder, check=True)
    fed = np.random.default_rng(9).standard_normal((3, 72)).astype(np.float32).tobytes()
    done = subprocess.run([str(folder / "net")], input=fed, capture_output=True, check=True)
    return done.stdout, rung.ram, rung.flash


@pytest.mark.slow
def test_results_are_those_of_32_bits_in_half_of_the_flash(tmp_path: Path) -> None:
    values, ram, flash = _outputs(tmp_path / "half", half=True)
    others, ram_of_32, flash_of_32 = _outputs(tmp_path / "float", half=False)
    assert values == others
    assert len(values) == 60
    assert ram == ram_of_32
    assert flash < 0.6 * flash_of_32


def test_every_16_bit_float_is_read_as_what_it_stands_for(tmp_path: Path) -> None:
    source = "\n".join(all_sources([("float_product", "float_half")]))
    (tmp_path / "half.c").write_text(
        f"#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n{source}\nint main(void)\n{{\n"
        "    for (uint32_t half = 0; half < 65536u; half++) {\n"
        "        const float number = half_number((uint16_t)half);\n"
        "        (void)fwrite(&number, sizeof number, 1, stdout);\n    }\n    return 0;\n}\n"
    )
    subprocess.run(["cc", "-std=c99", *SANITIZERS, "half.c", "-o", "half"], cwd=tmp_path, check=True)
    printed = subprocess.run([str(tmp_path / "half")], capture_output=True, check=True).stdout
    wanted = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    numbers = np.frombuffer(printed, np.float32)
    assert np.array_equal(numbers, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(numbers), np.signbit(wanted))
