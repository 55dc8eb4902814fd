"""Replays real values through plans of every model at hand.

    python benchmarks/value_replay.py

The light models of the onnx package come without weights; they get random ones here. Extents that a model leaves
open are bound to small numbers. Needs the extra `verify` for ONNX Runtime and LiteRT.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import reporting
from onnx import numpy_helper

from modelplan import Options, height, plan
from modelplan.checking.verifier.subject import plan_subject
from modelplan.checking.verifier.values import golden_values, replay_golden
from modelplan.checking.verifier.verdicts import Skipped
from modelplan.primitives.errors import ModelPlanError

MODES = ("none", "views", "safe", "max")
EXTENTS = {"batch": 1, "sequence": 8, "past": 4, "past_sequence": 4, "total": 12}


def with_weights(path: Path, folder: Path) -> Path:
    """The model with random values, scaled by fan-in, in place of every ConstantOfShape."""
    model = onnx.shape_inference.infer_shapes(onnx.load(str(path)), data_prop=True)
    shapes = {x.name: numpy_helper.to_array(x) for x in model.graph.initializer}
    rng = np.random.default_rng(0)
    kept = []
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            extents = [int(n) for n in shapes[node.input[0]]]
            scale = 1 / max(math.prod(extents[1:]), 1) ** 0.5
            values = rng.standard_normal(extents) * scale
            if len(extents) == 1:  # variances and scales of batch normalisation are positive
                values = np.abs(values)
            model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
        else:
            kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    out = folder / path.name
    onnx.save(model, str(out))
    return out


def outcomes(path: Path, name: str) -> Iterator[Sequence[object]]:
    try:
        graph = reporting.graph_of(path, open_extents(path))
    except ModelPlanError as problem:
        yield name, "", "", "", f"not loaded: {problem}"
        return
    plans = {alias: plan(graph, Options(alias=alias)) for alias in MODES}
    try:
        source, golden = golden_values(plan_subject(plans["none"]).program, path)
    except Skipped as reason:
        yield name, len(graph.ops), "", "", f"skipped: {reason}"
        return
    for alias, one in plans.items():
        replay_golden(plan_subject(one), golden)
        result = f"{len(golden)} tensors bit-exact against {source}"
        yield name, len(graph.ops), alias, f"{height(one.problem, one.placement):,}", result


def open_extents(path: Path) -> list[str]:
    """A small number for each symbol in the inputs of an ONNX model."""
    if path.suffix != ".onnx":
        return []
    inputs = onnx.load(str(path), load_external_data=False).graph.input
    symbols = {d.dim_param for x in inputs for d in x.type.tensor_type.shape.dim if d.dim_param}
    return [f"{symbol}={EXTENTS.get(symbol, 4)}" for symbol in sorted(symbols) if symbol.isidentifier()]


def rows() -> Iterator[Sequence[object]]:
    with tempfile.TemporaryDirectory() as folder:
        for path in reporting.light_models():
            yield from outcomes(with_weights(path, Path(folder)), f"{path.stem} (random weights)")
    for path in [*reporting.own_models(".onnx"), *reporting.own_models(".tflite")]:
        yield from outcomes(path, path.name)


PARSER = reporting.command_line(__file__, __doc__, "value_replay.md", corpus=False)


def main() -> None:
    arguments = reporting.parse(PARSER)
    legend = (
        "Each plan's arena, poisoned, takes the golden values of another runtime at the planned addresses; "
        "every operand must stand there bit for bit when it is read."
    )
    headings = ("model", "operators", "aliases", "arena bytes", "value replay")
    lines = [legend, "", *reporting.table(headings, rows(), "<><><")]
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "Value replay", lines)


if __name__ == "__main__":
    main()
