"""Small decoders and encoders as operators of ONNX Runtime that search for sequences run them, and what a run has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32
_SIDES = ("key", "value")


class _Body:
    """A body while it is made: tables of `words`, and heads of `size` numbers each."""

    def __init__(self, name: str, words: int, heads: int, size: int) -> None:
        self.name, self.words, self.heads, self.size = name, words, heads, size
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        rng = np.random.default_rng(words)
        self.constants = [
            numpy_helper.from_array(rng.random((words, heads * size), np.float32), f"{name}_table"),
            numpy_helper.from_array(rng.random((heads * size, words), np.float32), f"{name}_words"),
            numpy_helper.from_array(np.array([0, 0, heads, size], np.int64), f"{name}_heads"),
        ]

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def takes(self, name: str, kind: int, *shape: int | str) -> None:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))

    def gives(self, name: str, *shape: int | str) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, FLOAT, shape))

    def in_heads(self, rows: str, output: str) -> str:
        """Rows of numbers, apart by heads."""
        self.node("Reshape", [rows, f"{self.name}_heads"], f"{output}_apart")
        return self.node("Transpose", [f"{output}_apart"], output, perm=[0, 2, 1, 3])

    def read(self, ids: str, output: str) -> str:
        return self.node("Gather", [f"{self.name}_table", ids], output)

    def graph(self) -> Any:
        return helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)


def decoder_alone(words: int, heads: int, size: int, layers: int) -> Any:
    """A decoder without an encoder; its symbols are those of no graph around it."""
    body = _Body("decoder", words, heads, size)
    for name, length in (("input_ids", "sequence"), ("position_ids", "sequence"), ("attention_mask", "all")):
        body.takes(name, INT32, "batch", length)
    body.constants.append(numpy_helper.from_array(np.zeros(1, np.int64), "first"))
    body.gives("logits", "batch", "sequence", words)
    own = body.node("Unsqueeze", [body.in_heads(body.read("input_ids", "x"), "own"), "first"], "one_of_two")
    body.node("Concat", [own, own], "both", axis=0)
    for layer in range(layers):
        body.takes(f"past_{layer}", FLOAT, 2, "batch", heads, "past", size)
        body.node("Concat", [f"past_{layer}", "both"], f"present_{layer}", axis=3)
        body.gives(f"present_{layer}", 2, "batch", heads, "all", size)
    body.node("MatMul", ["x", "decoder_words"], "logits")
    return body.graph()


def encoder(words: int, heads: int, size: int, layers: int, *, begins: bool, sound: bool) -> Any:
    """An encoder; one that `begins` also runs the decoder's first step, `sound` one reads features."""
    body, hidden = _Body("encoder", words, heads, size), "encoder_hidden_states"
    if sound:
        body.takes("encoder_input_ids", FLOAT, "batch", heads * size, "frames")
        body.node("Transpose", ["encoder_input_ids"], hidden, perm=[0, 2, 1])
    else:
        body.takes("encoder_input_ids", INT32, "batch", "frames")
        body.takes("encoder_attention_mask", INT32, "batch", "frames")
        body.read("encoder_input_ids", hidden)
    if begins:
        body.takes("decoder_input_ids", INT32, "batch", "begun")
        body.node("MatMul", [body.read("decoder_input_ids", "begin"), "encoder_words"], "each")
        body.node("ReduceMax", ["each"], "logits", axes=[1], keepdims=1)
        body.in_heads("begin", "begun")
        body.gives("logits", "batch", 1, words)
        body.gives(hidden, "batch", "frames", heads * size)
        _give(body, "begun", "self", "begun", layers)
    body.in_heads(hidden, "crossed")
    _give(body, "crossed", "cross", "frames", layers)
    return body.graph()


def _give(body: _Body, source: str, kind: str, length: str, layers: int) -> None:
    for name in (f"present_{side}_{kind}_{layer}" for layer in range(layers) for side in _SIDES):
        body.node("Identity", [source], name)
        body.gives(name, "batch", body.heads, length, body.size)


def decoder_behind_encoder(words: int, heads: int, size: int, layers: int, *, masked: bool, hidden: bool) -> Any:
    """A decoder behind an encoder, with the encoder's mask and its states if wanted."""
    body = _Body("decoder", words, heads, size)
    body.takes("input_ids", INT32, "batch", 1)
    if masked:
        body.takes("encoder_attention_mask", INT32, "batch", "frames")
    if hidden:
        body.takes("encoder_hidden_states", FLOAT, "batch", "frames", heads * size)
    body.in_heads(body.read("input_ids", "x"), "own")
    body.gives("logits", "batch", 1, words)
    for name in (f"{side}_self_{layer}" for layer in range(layers) for side in _SIDES):
        body.takes(f"past_{name}", FLOAT, "batch", heads, "past", size)
        body.node("Concat", [f"past_{name}", "own"], f"present_{name}", axis=2)
        body.gives(f"present_{name}", "batch", heads, "all", size)
    for name in (f"past_{side}_cross_{layer}" for layer in range(layers) for side in _SIDES):
        body.takes(name, FLOAT, "batch", heads, "frames", size)
    body.node("ReduceSum", ["past_key_cross_0"], "sum", keepdims=0)
    body.node("Add", [body.node("MatMul", ["x", "decoder_words"], "scores"), "sum"], "logits")
    return body.graph()


def shapes_in_session(model: Any, feeds: dict[str, Any], folder: Path) -> list[tuple[str, list[list[int]]]]:
    """The kind of each node that a session runs, bodies among them, with the shapes of its outputs, in their order."""
    import onnxruntime as rt

    options = rt.SessionOptions()
    options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "profile")
    session = rt.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session.run(None, feeds)
    events = json.loads(Path(session.end_profiling()).read_text())
    ran = [event["args"] for event in events if event["name"].endswith("_kernel_time")]
    return [(a["op_name"], [list(*known.values()) for known in a["output_type_shape"]]) for a in ran]
