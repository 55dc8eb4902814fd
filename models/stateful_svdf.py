"""Writes a keyword network of four SVDF layers, whose state lives from run to run, as a .tflite file.

    python models/stateful_svdf.py --out stateful_svdf.tflite

Weights are zero: only shapes matter for planning.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

#: Bytes of an input frame, filters of each layer, and the frames that each filter remembers.
_FRAME, _FILTERS, _FRAMES, _LAYERS = 40, 96, 10, 4


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the .tflite file")
    arguments = parser.parse_args()
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(_model().Pack(builder), b"TFL3")
    arguments.out.write_bytes(builder.Output())


def _model() -> schema.ModelT:
    model = schema.ModelT()
    model.version, model.description, model.buffers = 3, "stateful_svdf", [schema.BufferT()]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.SVDF
    code.version = 1
    model.operatorCodes, graph = [code], schema.SubGraphT()
    graph.name, graph.tensors, graph.operators = "main", [], []
    model.subgraphs = [graph]
    last = _tensor(model, "frame", (1, _FRAME))
    graph.inputs = [last]
    for layer in range(_LAYERS):
        width = _FILTERS if layer else _FRAME
        name = f"layer_{layer}"
        sources = [
            last,
            _tensor(model, f"{name}/feature", (_FILTERS, width), constant=True),
            _tensor(model, f"{name}/time", (_FILTERS, _FRAMES), constant=True),
            _tensor(model, f"{name}/bias", (_FILTERS,), constant=True),
            _tensor(model, f"{name}/state", (1, _FILTERS * _FRAMES), variable=True),
        ]
        last = _tensor(model, f"{name}/out", (1, _FILTERS))
        op = schema.OperatorT()
        op.inputs, op.outputs = sources, [last]
        op.builtinOptionsType, op.builtinOptions = schema.BuiltinOptions.SVDFOptions, schema.SVDFOptionsT()
        op.builtinOptions.rank = 1
        graph.operators.append(op)
    graph.outputs = [last]
    return model


def _tensor(
    model: schema.ModelT, name: str, shape: tuple[int, ...], *, constant: bool = False, variable: bool = False
) -> int:
    """Adds a tensor of float32; returns its index."""
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.type, tensor.isVariable = name, list(shape), schema.TensorType.FLOAT32, variable
    tensor.buffer = 0
    if constant:
        buffer = schema.BufferT()
        buffer.data = np.zeros(4 * int(np.prod(shape)), dtype=np.uint8)
        model.buffers.append(buffer)
        tensor.buffer = len(model.buffers) - 1
    model.subgraphs[0].tensors.append(tensor)
    return len(model.subgraphs[0].tensors) - 1


if __name__ == "__main__":
    main()
