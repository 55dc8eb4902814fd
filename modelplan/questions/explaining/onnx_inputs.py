"""An .onnx model for inputs of other shapes: read again with every shape inferred from these inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path

from modelplan.formats import load_model
from modelplan.model import Graph
from modelplan.ops.op_facts import ONNX_RESHAPES
from modelplan.primitives.errors import ModelError
from modelplan.questions.explaining.subjects import ModelSubject, RefusedChangeError

#: Operators that keep the number of values, and those whose operands meet along an axis.
_AS_MANY = ONNX_RESHAPES | {"Transpose"}
_PRODUCTS = frozenset({"MatMul", "Gemm"})


def with_inputs(subject: ModelSubject, of: Callable[[tuple[int, ...]], tuple[int, ...]]) -> ModelSubject:
    """The model with inputs of the shapes that `of` makes of theirs."""
    if subject.source is None:
        raise RefusedChangeError("shapes are inferred for the unmodified file only")
    graph = subject.graph
    shapes = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    wanted = {name: of(shape) for name, shape in shapes.items()}
    if wanted == shapes or any(min(shape, default=1) < 1 for shape in wanted.values()):
        raise RefusedChangeError(f"no input is a map that can be so: {', '.join(map(str, shapes.values()))}")
    inferred = _inferred(subject.source.content, wanted, subject.source.path)
    _check_products(inferred)
    if [op.kind for op in inferred.ops] != [op.kind for op in graph.ops]:
        raise RefusedChangeError("other operators are folded into constants for these inputs")
    return replace(subject, graph=replace(inferred, name=graph.name), source=None, file="changed.onnx")


def _inferred(content: bytes, shapes: dict[str, tuple[int, ...]], name: str) -> Graph:
    """The graph of the model with these inputs."""
    import onnx

    model = onnx.load_model_from_string(content)
    del model.graph.value_info[:]
    for value in model.graph.input:
        if value.name in shapes:
            value.type.tensor_type.ClearField("shape")
            for extent in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = extent
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(model.SerializeToString())
        try:
            return load_model(path)
        except ModelError as problem:
            raise RefusedChangeError(str(problem).replace(f"{path}: ", "")) from None


def _check_products(graph: Graph) -> None:
    """Checks what shape inference takes on trust: as many values in a reshape, and factors that meet."""
    for index, op in enumerate(graph.ops):
        x, y = graph.tensors[op.inputs[0]].shape if op.inputs else (), graph.tensors[op.outputs[0]].shape
        if op.kind in _AS_MANY and prod(x) != prod(y):
            raise RefusedChangeError(f"op {index} {op.kind} makes {list(y)} by a constant; it would read {list(x)}")
        if op.kind in _PRODUCTS and len(op.inputs) > 1:
            w = graph.tensors[op.inputs[1]].shape
            inner = x[0 if op.attribute("transA") else -1], w[-1 if op.attribute("transB") else max(-2, -len(w))]
            if inner[0] != inner[1]:
                raise RefusedChangeError(f"op {index} {op.kind} has weights for {inner[1]} values, reads {inner[0]}")
