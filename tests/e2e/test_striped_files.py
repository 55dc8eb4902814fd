"""Example models in stripes at random places: LiteRT opens the files, and finds what it found before."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from random_stripes import legal_program, rewritten
from shares import few_first

from modelplan import runtimes
from modelplan.checking.verifier.litert import INSTALL
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.formats import load_model
from modelplan.model import Graph
from modelplan.primitives.errors import BrokenPlanError
from modelplan.rewriting.striped_tflite import placing

MODELS = Path(__file__).parents[2] / "models"
NAMES = ("audio_1d", "autoencoder", "ds_cnn_kws", "inception_like", "mobilenet_v2_like", "resnet8", "unet_small")


def in_stripes(name: str, seed: int) -> tuple[bytes, bytes]:
    """A model, and the same with random operators in stripes."""
    path = MODELS / f"{name}.tflite"
    graph = load_model(path)
    assert isinstance(graph, Graph)
    program = legal_program(graph, seed)
    assert program is not None
    overlaps = placing.proved_overlaps(runtimes.runtime("tflm", "tflite"))
    return path.read_bytes(), rewritten(path.read_bytes(), name, program, overlaps)[1]


def found_by_litert(data: bytes) -> tuple[Any, ...]:
    """Signatures, inputs and outputs by name, shape, type and quantisation, and the outputs of an input of ones."""
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details(), interpreter.get_output_details()
    for one in details[0]:
        interpreter.set_tensor(one["index"], np.ones(one["shape"], one["dtype"]))
    interpreter.invoke()
    outputs = [interpreter.get_tensor(one["index"]).tobytes() for one in details[1]]
    shown = [[(d["name"], d["shape"].tolist(), d["dtype"], d["quantization"]) for d in side] for side in details]
    return interpreter.get_signature_list(), shown, outputs


@pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason=f"ai-edge-litert is not installed: {INSTALL}")
@pytest.mark.parametrize("name", NAMES)
def test_litert_finds_what_it_found_before(name: str) -> None:
    before, after = in_stripes(name, 3)
    assert found_by_litert(after) == found_by_litert(before)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", few_first([1, 2]))
def test_every_model_in_stripes_is_proved(name: str, seed: int) -> None:
    assert [verdict.outcome for verdict in prove_rewrite(*in_stripes(name, seed))] == ["ok", "ok"]


@pytest.mark.parametrize("word", [b"serving_default", b"min_runtime_version", b"MLIR Converted."])
def test_what_stands_beside_the_operators_is_compared(word: bytes) -> None:
    before, after = in_stripes("ds_cnn_kws", 1)
    assert word in after
    with pytest.raises(BrokenPlanError, match="the file has"):
        prove_rewrite(before, after.replace(word + b"\0", word[:-1] + b"?\0"))
