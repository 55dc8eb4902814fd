"""Networks of 8 bits as ONNX files, quantised by ONNX Runtime on drawn inputs.

    python models/quantised_nets.py --out models/quantised [--only NAME]

`resnet8_int8.onnx` has operators of codes (QOperator), `ds_cnn_kws_qdq.onnx` floats between QuantizeLinear and
DequantizeLinear; these two are kept. `mobilenet_v2_224_int8.onnx` is made by its name only. Codes have signs,
weights are quantised by channel. Needs onnx and onnxruntime; other releases of them write other bytes.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx_nets import Net, mobilenet_v2
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

HERE = Path(__file__).resolve().parent
_DRAWN = 8


def ds_cnn_kws() -> Any:
    """A keyword spotter of depthwise separable convolutions: 49 frames of 10 coefficients, 12 words."""
    net = Net("ds_cnn_kws", (1, 1, 49, 10))
    weights = [net.weight(net.normal(64, 1, 10, 4)), net.weight(net.normal(64))]
    x = net.node("Conv", ["x", *weights], 64, kernel_shape=[10, 4], strides=[2, 2], pads=[4, 1, 5, 1])
    x = net.relu(x)
    for _ in range(4):
        x = net.relu(net.conv(x, 64, 3, group=64))
        x = net.relu(net.conv(x, 64, 1))
    return net.model(net.node("Softmax", [net.classifier(x, 12)]))


def _resnet8() -> Any:
    return onnx.load(HERE / "resnet8.onnx")


@dataclass(frozen=True, slots=True)
class Quantised:
    """A network, the form in which it is quantised, and whether its file is kept."""

    net: Callable[[], Any]
    form: QuantFormat = QuantFormat.QOperator
    kept: bool = True


MODELS = {
    "resnet8_int8.onnx": Quantised(_resnet8),
    "ds_cnn_kws_qdq.onnx": Quantised(ds_cnn_kws, QuantFormat.QDQ),
    "mobilenet_v2_224_int8.onnx": Quantised(mobilenet_v2, kept=False),
}


class _Drawn(CalibrationDataReader):  # type: ignore[misc]
    """Inputs that are drawn, for an end of a model."""

    def __init__(self, end: Any) -> None:
        self.name, self.shape = end.name, [d.dim_value for d in end.type.tensor_type.shape.dim]
        self.left, self.random = _DRAWN, np.random.default_rng(3)

    def get_next(self) -> dict[str, Any] | None:
        self.left -= 1
        return {self.name: self.random.standard_normal(self.shape).astype(np.float32)} if self.left >= 0 else None


def write(name: str, folder: Path) -> None:
    """Quantises a network by its name."""
    known, model = MODELS[name], MODELS[name].net()
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "floats.onnx"
        onnx.save(model, source)
        quantize_static(
            source, folder / name, _Drawn(model.graph.input[0]), quant_format=known.form, per_channel=True,
            activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip


def main() -> None:
    """Writes what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", choices=MODELS, help=f"one of: {', '.join(MODELS)}")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, model in MODELS.items():
        if arguments.only == name or (arguments.only is None and model.kept):
            write(name, arguments.out)


if __name__ == "__main__":
    main()
