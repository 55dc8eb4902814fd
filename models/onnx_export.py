"""Exports the networks of `torch_nets` to ONNX with PyTorch's own exporters.

A result is refused when the checker rejects it or onnxruntime and PyTorch disagree on a drawn input.
What an exporter leaks of the machine that ran it (stack traces, source paths) is removed.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
import torch
import torch_nets
from google.protobuf.message import Message
from torch import Tensor, nn

Inputs = tuple[Tensor, ...]
Axes = Mapping[str, Mapping[int, str]]

SEED = 20261
TOLERANCE = 1e-4
CACHE = tuple(f"{layer}.{part}" for layer in range(2) for part in ("key", "value"))


def _images(channels: int, side: int) -> tuple[Callable[[], Inputs], ...]:
    return (lambda: (torch.randn(1, channels, side, side),),)


def _sentence(batch: int, sequence: int) -> Callable[[], Inputs]:
    def draw() -> Inputs:
        mask = torch.ones(batch, sequence, dtype=torch.int64)
        mask[-1, sequence - 2 :] = 0
        shape = (batch, sequence)
        return torch.randint(torch_nets.VOCABULARY, shape), mask, torch.randint(2, shape)

    return draw


def _continuation(batch: int, sequence: int, past: int) -> Callable[[], Inputs]:
    def draw() -> Inputs:
        cache = (batch, torch_nets.DecoderLayer.CACHED_HEADS, past, torch_nets.WIDTH // torch_nets.HEADS)
        mask = torch.ones(batch, past + sequence, dtype=torch.int64)
        return (
            torch.randint(torch_nets.VOCABULARY, (batch, sequence)),
            mask,
            *(torch.randn(cache) for _ in CACHE),
        )

    return draw


@dataclass(frozen=True, slots=True)
class Export:
    """How one network leaves PyTorch.

    `draws` make seeded inputs: the first is traced, all are compared; `axes` names the dynamic axes of each
    input and output; `opset` is for the TorchScript exporter, None asks the dynamo exporter for its own.
    """

    net: Callable[[], nn.Module]
    draws: tuple[Callable[[], Inputs], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    axes: Axes
    opset: int | None


def _static(net: Callable[[], nn.Module], draws: tuple[Callable[[], Inputs], ...], output: str) -> Export:
    return Export(net, draws, ("input",), (output,), {}, None)


def _bert(opset: int | None) -> Export:
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    outputs = ("last_hidden_state", "pooler_output")
    axes = {name: {0: "batch", 1: "sequence"} for name in (*inputs, outputs[0])} | {outputs[1]: {0: "batch"}}
    return Export(torch_nets.BertLike, (_sentence(2, 12), _sentence(3, 7)), inputs, outputs, axes, opset)


def _decoder(opset: int | None) -> Export:
    past, present = tuple(f"past_key_values.{n}" for n in CACHE), tuple(f"present.{n}" for n in CACHE)
    inputs, outputs = ("input_ids", "attention_mask", *past), ("logits", *present)
    axes = {name: {0: "batch", 1: "sequence"} for name in ("input_ids", "logits")}
    axes |= {"attention_mask": {0: "batch", 1: "past_sequence + sequence"}}
    axes |= {name: {0: "batch", 2: "past_sequence"} for name in past}
    axes |= {name: {0: "batch", 2: "past_sequence + sequence"} for name in present}
    draws = (_continuation(2, 3, 5), _continuation(1, 1, 9), _continuation(3, 6, 0))
    return Export(torch_nets.DecoderWithCache, draws, inputs, outputs, axes, opset)


EXPORTS: Mapping[str, Export] = {
    "resnet8": _static(torch_nets.ResNet8, _images(3, 32), "probabilities"),
    "mobilenet_v2_like": _static(torch_nets.MobileNetV2Like, _images(3, 96), "probabilities"),
    "inception_like": _static(torch_nets.InceptionLike, _images(3, 64), "probabilities"),
    "unet_small": _static(torch_nets.UNetSmall, _images(1, 64), "mask"),
    "transformer_encoder": _static(
        torch_nets.TransformerEncoder, (lambda: (torch.randn(1, 32, 20),),), "probabilities"
    ),
    "bert_like": _bert(17),
    "bert_like_dynamo": _bert(None),
    "decoder_kv": _decoder(17),
    "decoder_kv_dynamo": _decoder(None),
}


def _shapes(export: Export) -> tuple[object, ...] | None:
    if not export.axes:
        return None
    single = tuple(dict(export.axes[name]) for name in export.inputs if name in export.axes and "past" not in name)
    past = tuple(dict(export.axes[name]) for name in export.inputs if "past" in name)
    return (*single, past) if past else single  # the cache arrives as *past: one argument, a tuple


def _exporter_options(export: Export) -> dict[str, object]:
    if export.opset is not None:
        return {"dynamo": False, "opset_version": export.opset, "dynamic_axes": export.axes}
    return {"dynamo": True, "external_data": False, "dynamic_shapes": _shapes(export)}


def _exported(net: nn.Module, export: Export) -> onnx.ModelProto:
    names = {"input_names": list(export.inputs), "output_names": list(export.outputs)}
    file = io.BytesIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, export.draws[0](), file, **names, **_exporter_options(export))
    return onnx.load_from_string(file.getvalue())


def strip(message: Message) -> None:
    """Remove every doc string and every metadata entry of a protobuf message, at any depth."""
    for field, value in message.ListFields():
        if field.name in ("doc_string", "metadata_props"):
            message.ClearField(field.name)
        elif field.message_type is not None:
            for part in value if isinstance(value, (list, tuple)) or hasattr(value, "extend") else (value,):
                strip(part)


def _agree(model: bytes, net: nn.Module, export: Export) -> None:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for draw in export.draws:
        inputs = draw()
        with torch.no_grad():
            expected = net(*inputs)
        feeds = {name: value.numpy() for name, value in zip(export.inputs, inputs, strict=True)}
        found = session.run(list(export.outputs), feeds)
        wanted = expected if isinstance(expected, tuple) else (expected,)
        for name, want, got in zip(export.outputs, wanted, found, strict=True):
            np.testing.assert_allclose(got, want.numpy(), TOLERANCE, TOLERANCE, err_msg=name)


def build(name: str) -> tuple[bytes, list[str]]:
    """Return the ONNX file of a network in EXPORTS, and the kinds of its operators in file order.

    Raises:
        AssertionError: onnxruntime and PyTorch disagree on a drawn input.
        onnx.checker.ValidationError: the exporter wrote an invalid model.
    """
    export = EXPORTS[name]
    torch.manual_seed(SEED)
    net = export.net().eval()
    model = _exported(net, export)
    strip(model)
    model.producer_version = model.producer_version.partition("+")[0]  # not which build of PyTorch it was
    onnx.checker.check_model(model, full_check=True)
    file = model.SerializeToString(deterministic=True)
    _agree(file, net, export)
    return file, [node.op_type for node in model.graph.node]
