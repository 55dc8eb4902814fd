"""Converts the networks of `keras_nets` to int8 TFLite with TensorFlow's own converter.

Calibration runs on seeded noise. A result is refused when its operators are not the expected ones, when one
of them computes in anything but int8, or when LiteRT strays from the float network.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import keras_nets
import numpy as np
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

Array = NDArray[np.float32]

SEED = 20261
CALIBRATIONS, COMPARISONS = 32, 4
#: Most root-mean-square error against the float network, in standard deviations of its output: the deepest of
#: these untrained networks reaches 0.15, an output that has nothing to do with the network 1.4.
TOLERANCE = 0.25
#: The rounding of 53 layers without training adds up.
TOLERANCE_OF = {"mobilenet_v2_224": 0.4}

#: The operators that each network must become.
EXPECTED: Mapping[str, frozenset[str]] = {
    "ds_cnn_kws": frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "MEAN", "FULLY_CONNECTED", "SOFTMAX"}),
    "resnet8": frozenset({"CONV_2D", "ADD", "MEAN", "FULLY_CONNECTED", "SOFTMAX"}),
    "mobilenet_v2_like": frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "MEAN", "FULLY_CONNECTED", "SOFTMAX"}),
    "mobilenet_v2_224": frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "MEAN", "FULLY_CONNECTED", "SOFTMAX"}),
    "inception_like": frozenset({"CONV_2D", "MAX_POOL_2D", "CONCATENATION", "MEAN", "FULLY_CONNECTED", "SOFTMAX"}),
    "autoencoder": frozenset({"CONV_2D", "RESHAPE", "FULLY_CONNECTED", "RESIZE_NEAREST_NEIGHBOR"}),
    "unet_small": frozenset({"CONV_2D", "MAX_POOL_2D", "TRANSPOSE_CONV", "CONCATENATION", "LOGISTIC"}),
    "ssd_like": frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "RESHAPE", "CONCATENATION", "LOGISTIC"}),
    "audio_1d": frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "MEAN", "FULLY_CONNECTED", "SOFTMAX"}),
    "transformer_encoder": frozenset(
        {
            *("FULLY_CONNECTED", "BATCH_MATMUL", "SOFTMAX", "RESHAPE", "TRANSPOSE"),
            *("ADD", "SUB", "MUL", "MEAN", "SQUARED_DIFFERENCE", "RSQRT"),
        }
    ),
}


def _noise(shape: tuple[int, ...], count: int, seed: int) -> Iterator[Array]:
    random = np.random.default_rng(seed)
    return (random.standard_normal(shape, dtype=np.float32) for _ in range(count))


def _converted(net: keras.Model) -> bytes:
    converter = tf.lite.TFLiteConverter.from_keras_model(net)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([x] for x in _noise(net.input_shape, CALIBRATIONS, SEED))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    with contextlib.redirect_stdout(io.StringIO()):
        file: bytes = converter.convert()
    return file


def _kinds(model: schema.ModelT) -> list[str]:
    names = {code: name for name, code in vars(schema.BuiltinOperator).items()}
    codes = [names[code.builtinCode] for code in model.operatorCodes]
    return [codes[op.opcodeIndex] for op in model.subgraphs[0].operators]


def _refuse_surprises(name: str, model: schema.ModelT) -> None:
    kinds = frozenset(_kinds(model))
    if kinds != EXPECTED[name]:
        raise ValueError(f"{name}: found operators {sorted(kinds)}, expected {sorted(EXPECTED[name])}")
    (graph,) = model.subgraphs
    written = (graph.tensors[index] for op in graph.operators for index in op.outputs)
    strangers = [tensor.name.decode() for tensor in written if tensor.type != schema.TensorType.INT8]
    if strangers:
        raise ValueError(f"{name}: expected int8 results only, found others: {strangers}")


def _run(interpreter: Interpreter, x: Array) -> list[Array]:
    """The float values of every output, in the order of the network's."""
    (entry,) = interpreter.get_input_details()
    scale, zero = entry["quantization"]
    interpreter.set_tensor(entry["index"], np.clip(np.round(x / scale + zero), -128, 127).astype(np.int8))
    interpreter.invoke()
    ends = sorted(interpreter.get_output_details(), key=lambda end: str(end["name"]))
    return [_value(interpreter, end) for end in ends]


def _value(interpreter: Interpreter, end: Mapping[str, Any]) -> Array:
    scale, zero = end["quantization"]
    result: Array = (interpreter.get_tensor(end["index"]).astype(np.float32) - zero) * scale
    return result


def _refuse_strays(name: str, file: bytes, net: keras.Model) -> None:
    interpreter = Interpreter(
        model_content=file, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter.allocate_tensors()
    for x in _noise(net.input_shape, COMPARISONS, SEED + 1):
        wanted = keras.tree.flatten(net(x))
        for found, want in zip(_run(interpreter, x), (w.numpy() for w in wanted), strict=True):
            error = float(np.sqrt(np.mean((found - want) ** 2)) / np.std(want))
            most = TOLERANCE_OF.get(name, TOLERANCE)
            if not error < most:
                raise ValueError(f"{name}: int8 strays from float by {error:.3f} deviations, expected < {most}")


def build(name: str) -> tuple[bytes, list[str]]:
    """Return the TFLite file of a network in `keras_nets.NETS`, and the kinds of its operators in file order.

    Raises:
        ValueError: the converter or LiteRT did not do what this module promises.
    """
    keras.utils.clear_session()
    keras.utils.set_random_seed(SEED)
    net = keras_nets.NETS[name]()
    file = _converted(net)
    model = schema.ModelT.InitFromPackedBuf(file, 0)
    _refuse_surprises(name, model)
    _refuse_strays(name, file, net)
    return file, _kinds(model)
