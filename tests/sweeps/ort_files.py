"""Files that ONNX Runtime's own tools make of models/*.onnx: each is sized, predicted and fitted, or refused by name.

    python tests/sweeps/ort_files.py [WORD...]

tries those whose model or form has one of the words, and exits with 1 if any fails. A refusal names the file and, of
it, an operator or a value.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import commands
import numpy as np
import onnx

MODELS = Path(__file__).parents[2] / "models"
#: The extents of the models that leave some open, and those of each input.
EXTENTS = {"batch": 1, "sequence": 8, "past_sequence": 8, "past_sequence + sequence": 16}

#: Numbers of a column of a matrix that share a scale.
_BLOCK = 32
#: Seconds that an answer may take.
_SECONDS = 3600
#: With which exit codes each question may be refused by name: a file that a session runs is sized.
REFUSED = {"sized": (), "predicted": (0, 1, 3), "fitted": (1, 3)}

Maker = Callable[[Path, Path], None]


def dims(model: Any) -> list[str]:
    """The options that settle the extents which the inputs leave open."""
    open_ones = {d.dim_param for value in model.graph.input for d in value.type.tensor_type.shape.dim if d.dim_param}
    return [f"--dim={name}={EXTENTS[name]}" for name in sorted(open_ones) if " " not in name]


def feeds(model: Any, seed: int) -> dict[str, Any]:
    """Random values for each input."""
    rng, initial, made = np.random.default_rng(seed), {t.name for t in model.graph.initializer}, {}
    for value in model.graph.input:
        kind, shape = value.type.tensor_type.elem_type, value.type.tensor_type.shape.dim
        extents = [d.dim_value or EXTENTS[d.dim_param] for d in shape]
        if value.name not in initial:
            made[value.name] = rng.random(extents, np.float32) if kind == 1 else np.ones(extents, np.int64)
    return made


def _quantised(form: str, activations: str, weights: str, **more: Any) -> Maker:
    def make(source: Path, target: Path) -> None:
        from onnxruntime import quantization as q

        model = onnx.load(source)

        class Reader(q.CalibrationDataReader):  # type: ignore[misc]
            def __init__(self) -> None:
                self.left = iter([feeds(model, seed) for seed in range(2)])

            def get_next(self) -> Any:
                return next(self.left, None)

        q.quantize_static(
            source, target, Reader(), quant_format=q.QuantFormat[form], activation_type=q.QuantType[activations],
            weight_type=q.QuantType[weights], **more,
        )  # fmt: skip

    return make


def _dynamic(source: Path, target: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(source, target)


def _halved(source: Path, target: Path) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(source)), target)


def _in_blocks(source: Path, target: Path) -> None:
    """Stored matrices of products as 4 bits with a scale and a zero point for each block of a column.

    As `onnxruntime.quantization.matmul_nbits_quantizer` does, with the same packing; it needs a package more.
    """
    from onnxruntime.capi._pybind_state import quantize_matmul_4bits

    model = onnx.load(source)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in _products(model):
        weights = onnx.numpy_helper.to_array(stored[node.input[1]])
        rows, columns = weights.shape
        blocks = -(-rows // _BLOCK)
        whole = np.pad(weights, ((0, blocks * _BLOCK - rows), (0, 0)))
        packed, scales = np.zeros((columns, blocks, _BLOCK // 2), np.uint8), np.zeros((columns, blocks), np.float32)
        zeros = np.zeros((columns, -(-blocks // 2)), np.uint8)
        quantize_matmul_4bits(packed, whole, scales, zeros, _BLOCK, columns, rows, False)
        parts = {"Q4": packed, "scales": scales, "zero_points": zeros}
        names = [f"{node.output[0]}_{part}" for part in parts]
        arrays = zip(names, parts.values(), strict=True)
        model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays)
        sizes = {"K": rows, "N": columns, "bits": 4, "block_size": _BLOCK}
        node.CopyFrom(
            onnx.helper.make_node(
                "MatMulNBits", [node.input[0], *names], node.output, node.name, domain="com.microsoft", **sizes
            )
        )
    read = {name for node in model.graph.node for name in node.input}
    for tensor in [tensor for tensor in model.graph.initializer if tensor.name not in read]:
        model.graph.initializer.remove(tensor)
    if not any(opset.domain == "com.microsoft" for opset in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, target)


def _products(model: Any) -> list[Any]:
    """The nodes that multiply by a stored matrix."""
    stored = {tensor.name for tensor in model.graph.initializer if len(tensor.dims) == 2 and tensor.data_type == 1}
    return [node for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in stored]


def _saved(level: str, before: Maker | None = None) -> Maker:
    """What a session saves that has optimised the model, or what another maker makes of it."""

    def make(source: Path, target: Path) -> None:
        import onnxruntime as rt

        if before is not None:
            before(source, target.with_name("before.onnx"))
            source = target.with_name("before.onnx")
        options = rt.SessionOptions()
        options.graph_optimization_level = getattr(rt.GraphOptimizationLevel, f"ORT_{level}")
        options.optimized_model_filepath, options.log_severity_level = str(target), 4
        rt.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    return make


_QDQ, _OPERATORS = _quantised("QDQ", "QInt8", "QInt8"), _quantised("QOperator", "QInt8", "QInt8", per_channel=True)
#: The forms in which ONNX Runtime's tools write models.
FORMS: dict[str, Maker] = {
    "qdq-u8": _quantised("QDQ", "QUInt8", "QUInt8"),
    "qdq-s8": _QDQ,
    "qdq-s16": _quantised("QDQ", "QInt16", "QInt8"),
    "qdq-4-bits": _quantised("QDQ", "QUInt8", "QInt4", per_channel=True),
    "qoperator-u8": _quantised("QOperator", "QUInt8", "QUInt8"),
    "qoperator-s8": _OPERATORS,
    "dynamic": _dynamic,
    "matmul-4-bits": _in_blocks,
    "float16": _halved,
    "saved-basic": _saved("ENABLE_BASIC"),
    "saved-extended": _saved("ENABLE_EXTENDED"),
    "saved-all": _saved("ENABLE_ALL"),
    "qdq-s8-saved-all": _saved("ENABLE_ALL", _QDQ),
    "qoperator-s8-saved-all": _saved("ENABLE_ALL", _OPERATORS),
    "float16-saved-all": _saved("ENABLE_ALL", _halved),
    "matmul-4-bits-saved-all": _saved("ENABLE_ALL", _in_blocks),
}


#: What the tools do not make, or make so that no session loads it.
NOT_MADE = {("transformer_encoder", "saved-basic"): "a session does not load what it saved"}


def cells(words: list[str] | None = None) -> Iterator[tuple[Path, str]]:
    """Each model with each form that changes it, of words those that have one."""
    for source in sorted(MODELS.glob("*.onnx")):
        multiplies = bool(_products(onnx.load(source)))
        for form in (form for form in FORMS if multiplies or not form.startswith("matmul")):
            if not words or any(word in f"{source.stem} {form}" for word in words):
                yield source, form


def made(source: Path, form: str, folder: Path) -> str:
    """Makes a file called m.onnx; why it is none that is worth trying, empty where it is."""
    import onnxruntime as rt

    rt.set_default_logger_severity(4)
    logging.disable(logging.CRITICAL)
    try:
        FORMS[form](source, folder / "m.onnx")
        options = rt.SessionOptions()
        options.log_severity_level = 4
        rt.InferenceSession(str(folder / "m.onnx"), options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # noqa: BLE001 - whatever the tool or the session raises
        return f"{type(problem).__name__}: {' '.join(str(problem).split())[:100]}"
    finally:
        logging.disable(logging.NOTSET)
    return ""


def named(text: str, model: Any) -> bool:
    """Whether a message names an operator, a value or an extent of the file."""
    kinds = {node.op_type for node in model.graph.node}
    values = {f"'{name}'" for node in model.graph.node for name in (*node.input, *node.output, node.name)}
    return "value_info" not in text and any(word in text for word in kinds | values | set(EXTENTS))


def asked(file: Path, options: list[str], *, fit: bool = True) -> dict[str, str]:
    """What each of the three questions answers: its exit code with what is wrong, empty where nothing is."""
    model = onnx.load(file)
    questions: dict[str, list[object]] = {
        "sized": ["analyze", file, *options],
        "predicted": ["analyze", file, *options, "--measure", "0"],
    }
    if fit:
        questions["fitted"] = ["fit", file, *options, "--least", "--force", "-o", file.with_name("fitted.onnx")]
    found = {}
    for question, words in questions.items():
        done = commands.run(*words)
        text = done.stdout + done.stderr
        number = any(line.startswith("  memory") for line in text.splitlines()) or question == "fitted"
        ends_well = (done.returncode == 0 and number) or (done.returncode in REFUSED[question] and named(text, model))
        found[question] = "" if ends_well else f"exit {done.returncode}: {text.strip().splitlines()[-1][-300:]}"
    return found


def main() -> int:
    failures, commands.SECONDS = 0, _SECONDS
    for source, form in cells(sys.argv[1:]):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            refused = made(source, form, Path(folder))
            found = {} if refused else asked(Path(folder) / "m.onnx", dims(onnx.load(source)))
        wrong = {question: text for question, text in found.items() if text}
        failures += bool(wrong) or bool(refused) != ((source.stem, form) in NOT_MADE)
        verdict = f"not made: {refused}" if refused else str(wrong or "ok")
        print(f"{source.stem:22} {form:24} {time.monotonic() - began:4.0f} s  {verdict}", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
