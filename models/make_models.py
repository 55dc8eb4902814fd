"""Builds the example models beside this file from fixed seeds, with the exporters of TensorFlow and PyTorch.

Each model is checked before it is written: it runs in its own runtime, agrees with the network it came from
and names no path of this machine. Writing into models/ also rewrites the table in models/README.md.

The exporters are heavy and belong in a throw-away environment, never in the package or its tests:

    python3.11 -m venv /tmp/exporters
    /tmp/exporters/bin/pip install keras==3.15.1 numpy==2.4.6 tensorflow==2.21.0 ai-edge-litert==2.3.0
    /tmp/exporters/bin/pip install torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.31.1
    /tmp/exporters/bin/python models/make_models.py [--only NAME] [--out DIR]

`--out DIR` writes elsewhere and leaves the README alone; models of `LARGE` are only built with it. Each line
printed says whether the README knows these bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
README = HERE / "README.md"

#: What each format needs: distribution and the version that wrote the committed files; the first one exports.
NEEDS = {
    "tflite": {"tensorflow": "2.21.0", "keras": "3.15.1", "ai-edge-litert": "2.3.0", "numpy": "2.4.6"},
    "onnx": {
        "torch": "2.13.0",
        "onnx": "1.23.2",
        "onnxscript": "0.7.2",
        "onnxruntime": "1.31.1",
        "numpy": "2.4.6",
    },
}
NETS = {"tflite": "keras_nets", "onnx": "torch_nets"}


@dataclass(frozen=True, slots=True)
class Model:
    """One file to build: its name, what it is, and the function or class that describes the network."""

    file: str
    what: str
    net: str

    @property
    def format(self) -> str:
        """The suffix, a key of NEEDS."""
        return self.file.rpartition(".")[2]

    @property
    def name(self) -> str:
        """The file without its suffix, a key of the exporter's table."""
        return self.file.rpartition(".")[0]


MODELS = (
    Model("ds_cnn_kws.tflite", "depthwise-separable keyword spotter, 49x10, int8", "ds_cnn_kws"),
    Model("resnet8.tflite", "ResNet-8, 32x32, int8", "resnet8"),
    Model("mobilenet_v2_like.tflite", "inverted residuals, 96x96, int8", "mobilenet_v2_like"),
    Model("inception_like.tflite", "multi-branch net, 64x64, int8", "inception_like"),
    Model("autoencoder.tflite", "convolutional autoencoder, 32x32, int8", "autoencoder"),
    Model("unet_small.tflite", "U-Net of three levels, 64x64, int8", "unet_small"),
    Model("ssd_like.tflite", "single-shot detector, 192x192, int8", "ssd_like"),
    Model("audio_1d.tflite", "separable keyword spotter on a waveform of 4000 samples, int8", "audio_1d"),
    Model("transformer_encoder.tflite", "transformer encoder, 32 frames, int8", "transformer_encoder"),
    Model("resnet8.onnx", "ResNet-8, 32x32, float32", "ResNet8"),
    Model("mobilenet_v2_like.onnx", "inverted residuals, 96x96, float32", "MobileNetV2Like"),
    Model("inception_like.onnx", "multi-branch net, 64x64, float32", "InceptionLike"),
    Model("unet_small.onnx", "U-Net of three levels, 64x64, float32", "UNetSmall"),
    Model("transformer_encoder.onnx", "transformer encoder, 32 frames, float32", "TransformerEncoder"),
    Model("bert_like.onnx", "BERT-like, dynamic batch and sequence, TorchScript, opset 17", "BertLike"),
    Model("bert_like_dynamo.onnx", "BERT-like, dynamic batch and sequence, dynamo", "BertLike"),
    Model(
        "decoder_kv.onnx",
        "decoder with key-value cache, dynamic batch, sequence and past, TorchScript, opset 17",
        "DecoderWithCache",
    ),
    Model(
        "decoder_kv_dynamo.onnx",
        "decoder with key-value cache, dynamic batch, sequence and past, dynamo",
        "DecoderWithCache",
    ),
)
#: Too large to be committed: built on request, with --only and --out.
LARGE = (Model("mobilenet_v2_224.tflite", "MobileNetV2, 224x224, int8", "mobilenet_v2_224"),)


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def _refuse_missing(formats: set[str]) -> None:
    needs = {name: version for suffix in sorted(formats) for name, version in NEEDS[suffix].items()}
    missing = [name for name in needs if _installed(name) is None]
    if missing:
        pins = " ".join(f"{name}=={version}" for name, version in needs.items())
        raise SystemExit(f"missing: {', '.join(missing)}; in a throw-away environment: pip install {pins}")
    for name, version in needs.items():
        if _installed(name) != version:
            found = f"{name} {_installed(name)}, the committed files came from {version}"
            print(f"note: {found}: expect other bytes", file=sys.stderr)


def _refuse_leaks(model: Model, content: bytes) -> None:
    places = ("site-packages", str(HERE), str(Path.home()), sys.prefix, f"{tempfile.gettempdir()}/")
    leaks = [place for place in places if len(place) > 1 and place.encode() in content]
    if leaks:
        raise ValueError(f"{model.file}: names places of this machine: {leaks}")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _row(model: Model, content: bytes, operators: int) -> str:
    exporter = next(iter(NEEDS[model.format]))
    source = f"`{NETS[model.format]}.{model.net}`, {exporter} {_installed(exporter)}"
    facts = f"{model.format} | {model.what} | {operators} | {len(content):,}"
    return f"| `{model.file}` | {facts} | {source} | Apache-2.0 | `{_digest(content)}` |"


def _table(readme: str, rows: dict[str, str]) -> str:
    """Return the README with these rows in place of those of the same file, in the order of MODELS."""
    old = {match[1]: match[0] for match in re.finditer(r"^\| `([^`]+)` \|.*$", readme, re.MULTILINE)}
    known = old | rows
    lines = "\n".join(known[model.file] for model in MODELS if model.file in known)
    pattern = r"(?<=<!-- models -->\n)(\|.*\n\|.*\n)(?:\|.*\n)*(?=<!-- end -->)"
    text, count = re.subn(pattern, lambda head: f"{head[1]}{lines}\n", readme)
    if count != 1:
        raise ValueError(f"{README}: found {count} tables between the marks, expected 1")
    return text


def _build(model: Model) -> tuple[bytes, int]:
    exporter = importlib.import_module(f"{model.format}_export")
    content, kinds = exporter.build(model.name)
    _refuse_leaks(model, content)
    return content, len(kinds)


def _write(models: Sequence[Model], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    readme = README.read_text(encoding="utf-8")
    rows = {}
    for model in models:
        content, operators = _build(model)
        (out / model.file).write_bytes(content)
        rows[model.file] = _row(model, content, operators)
        verdict = "as in the README" if _digest(content) in readme else "not as in the README"
        print(f"{model.file}: {operators} operators, {len(content):,} bytes, {verdict}")
    if out.resolve() == HERE:
        README.write_text(_table(readme, rows), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the models that the command line asks for."""
    parser = argparse.ArgumentParser(description="Build the example models from fixed seeds.")
    names = [model.file for model in (*MODELS, *LARGE)]
    parser.add_argument("--only", metavar="NAME", choices=names, help=f"one of: {', '.join(names)}")
    parser.add_argument("--out", metavar="DIR", type=Path, default=HERE, help="where to write (default: models/)")
    options = parser.parse_args(arguments)
    chosen = MODELS if options.only is None else (*MODELS, *LARGE)
    models = [model for model in chosen if options.only in (None, model.file)]
    if options.out.resolve() == HERE and set(models) & set(LARGE):
        parser.error(f"{options.only} is not kept here: give --out")
    _refuse_missing({model.format for model in models})
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.path.insert(0, str(HERE))
    _write(models, options.out)


if __name__ == "__main__":
    main()
