"""Fits the time that TFLM's reference kernels take: for a run, an output, a window position, a product, a copy.

    python benchmarks/durations.py

Generated models of many operators of one kind are timed on the tflite-micro wheel (extra `tflm`). The terms are those
of the least squares of relative errors with none below 0, fitted to two thirds of the models. The page shows how far
they are off on the rest, beside the terms that `modelplan/rewriting/striped_tflite/durations.py` works with, and what
rewritten models are expected to take beside what they take. Times are those of the thread, the least of many
invocations.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import reporting

from modelplan.formats import load_model
from modelplan.formats.tflite.flatbuffer_tables import OPTIONS
from modelplan.ops import facts
from modelplan.ops.op_facts import Amounts, Terms
from modelplan.questions.model_fitting import FitRequest, fit
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.durations import OTHERS, amounts_of
from modelplan.runtimes.tflm.runner import tflm_version

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "sweeps"))
from random_cnns import Network

#: With the kernels whose figures are expected.
asked = partial(FitRequest, kernels="reference")

#: Operators of a generated model, models of a kind, invocations of each.
_REPEATED, _MODELS, _INVOKED = 8, 90, 25
#: Nanoseconds below which an error counts as one of so many: clocks and caches.
_FLOOR = 300
_INT32 = 2
#: Models whose rewrites are timed, and for which objective.
REWRITTEN = (
    ("person_detect", "arena"), ("vww_96_int8", "arena"), ("pretrainedResnet_quant", "head"),
    ("mcu/micronet_vww2", "arena"), ("mcu/kws_cnn_l", "arena"), ("mcu/mcunet_vww0", "arena"),
)  # fmt: skip


def main() -> None:
    """Writes the page."""
    arguments = reporting.parse(PARSER)
    first = reporting.made_by(PARSER, arguments, f" with tflite-micro {tflm_version()}, x86-64, reference kernels")
    reporting.save(arguments.output, first, "Durations: what operators take on TFLM", page(arguments.corpus))


def page(corpus: Path) -> Iterator[str]:
    """The lines of the report."""
    yield (
        "Nanoseconds of int8 operators: for each run, for each element of the output, for each position of a window"
        " inside of the operand (of a PAD each element of the operand), for each multiply-accumulate, and for each run"
        f" of bytes that is copied. Fitted to {2 * _MODELS // 3} models of each kind; `off` is the root of the mean"
        f" square of relative errors on {_MODELS - 2 * _MODELS // 3} others. `in use` are the terms that `fit` works"
        " with, and how far they are off."
    )
    yield ""
    headings = ["kind", "run", "output", "position", "product", "copy", "off", "in use", "off"]
    yield from reporting.table(headings, (row(kind) for kind in GENERATED))
    yield from ("", "## Whole models", "")
    yield (
        "What an invocation of the rewritten file takes as a multiple of the model's, the least of many in turn, and"
        " what is expected."
    )
    yield ""
    yield from reporting.table(["model", "least", "measured", "expected"], whole(corpus), "<<>>")


def row(kind: str) -> list[object]:
    """The terms of a kind, fitted and in use."""
    reporting.progress(kind)
    rng = np.random.default_rng(sorted(GENERATED).index(kind))
    measured = [timed(GENERATED[kind](rng, kind), kind) for _ in range(_MODELS)]
    split = 2 * _MODELS // 3
    found = fitted(measured[:split])
    known = facts("tflite", kind).time
    used = known or OTHERS
    said = ", ".join(f"{term:g}" for term in astuple(used)) if known else "those of others"
    return [
        kind, *(f"{term:.3g}" for term in astuple(found)), f"{100 * off(found, measured[split:]):.1f} %",
        said, f"{100 * off(used, measured[split:]):.1f} %",
    ]  # fmt: skip


def fitted(measured: Sequence[tuple[Amounts, float]]) -> Terms:
    """The terms of least relative squares, none below 0: of all choices of terms above 0 the best."""
    rows = np.array([(1, *amounts) for amounts, _ in measured], dtype=float)
    times = np.array([t for _, t in measured])
    weight = 1 / np.maximum(times, _FLOOR)
    best, terms = np.inf, np.zeros(rows.shape[1])
    for count in range(1, rows.shape[1] + 1):
        for some in map(list, combinations(range(rows.shape[1]), count)):
            found = np.linalg.lstsq(rows[:, some] * weight[:, None], times * weight, rcond=None)[0]
            error = float((((rows[:, some] @ found - times) * weight) ** 2).sum())
            if (found >= 0).all() and error < best - 1e-9:
                best, terms = error, np.zeros(rows.shape[1])
                terms[some] = found
    return Terms(*terms.tolist())


def off(terms: Terms, measured: Sequence[tuple[Amounts, float]]) -> float:
    """The root of the mean square of the relative errors."""
    errors = [(terms.time(amounts) - t) / max(t, _FLOOR) for amounts, t in measured]
    return float(np.sqrt(np.mean(np.square(errors))))


def timed(model: bytes, kind: str) -> tuple[Amounts, float]:
    """What an operator of a model of many of one kind does, and the nanoseconds it takes."""
    with tempfile.NamedTemporaryFile(suffix=".tflite") as file:
        file.write(model)
        file.flush()
        graph = load_model(file.name)
    plain = striped_program(graph, range(len(graph.ops)), ())
    if {step.kind for step in plain.steps} != {kind}:
        raise SystemExit(f"the model of {kind} holds other operators")
    (least,) = invoked([model])
    return amounts_of(plain, plain.steps[0]), least / len(plain.steps)


def invoked(models: Sequence[bytes]) -> list[float]:
    """The least nanoseconds of an invocation of each model, taken in turn."""
    from tflite_micro import runtime

    interpreters: list[Any] = [runtime.Interpreter.from_bytes(model, arena_size=32 << 20) for model in models]
    details = interpreters[0].get_input_details(0)
    values = np.random.default_rng(0).integers(-100, 100, details["shape"]).astype(details["dtype"])
    least = [np.inf] * len(models)
    for _ in range(_INVOKED):
        for i, interpreter in enumerate(interpreters):
            interpreter.set_input(values, 0)
            began = time.thread_time_ns()
            interpreter.invoke()
            least[i] = min(least[i], time.thread_time_ns() - began)
    return least


def whole(corpus: Path) -> Iterator[list[object]]:
    """One row for each rewritten model."""
    for name, objective in REWRITTEN:
        reporting.progress(f"{name}: least {objective}")
        source = corpus / "tflite" / f"{name}.tflite"
        ladder = fit(asked(source, objective=objective, abi="64"))
        chosen = ladder.chosen or ladder.rungs[0]
        own, ours = invoked([source.read_bytes(), chosen.model])
        yield [name, objective, f"{ours / own:.3f}", f"{chosen.time:.3f}"]


def _map(rng: np.random.Generator) -> tuple[int, int, int, int]:
    height, width = (int(n) for n in rng.integers(1, 36, 2))
    return 1, height, width, int(rng.choice([1, 2, 3, 4, 8, 16, 32, 64]))


def _numbers(net: Network, values: object) -> int:
    array = np.array(values, dtype=np.int32)
    return net.tensor(array.shape, _INT32, None, array.tobytes())


def _repeated(net: Network, kind: str, operands: list[int], shape: Sequence[int], *options: tuple[int, ...]) -> bytes:
    """The same operator many times over the same operands; the first that is no constant is the model's input."""
    for _ in range(_REPEATED):
        y = net.operator(kind, operands, net.tensor(tuple(shape)), *options)
    return net.file(0, y)


def convolution(rng: np.random.Generator, kind: str) -> bytes:
    """A convolution of a random map, of at most some million products."""
    while True:
        net, (_, high, wide, channels) = Network(rng), _map(rng)
        own, stride = int(rng.integers(2)), int(rng.choice([1, 1, 2]))
        kernel = [min(int(rng.choice([1, 1, 3, 3, 5])), n) for n in (high, wide)]
        deep = int(rng.choice([4, 8, 16, 32, 64])) if kind == "CONV_2D" else channels
        if high * wide * deep * kernel[0] * kernel[1] * (channels if kind == "CONV_2D" else 1) < 4e6:
            break
    made = [-(-n // stride) if own == 0 else (n - k) // stride + 1 for n, k in zip((high, wide), kernel, strict=True)]
    x = net.tensor((1, high, wide, channels))
    shape = (deep, *kernel, channels) if kind == "CONV_2D" else (1, *kernel, deep)
    weights = net.tensor(shape, scale=(0.02, 0), data=rng.integers(-90, 90, shape, dtype=np.int8).tobytes())
    bias = net.tensor((deep,), _INT32, (0.001, 0), rng.integers(-900, 900, deep, dtype=np.int32).tobytes())
    values = (own, stride, stride, 0, 1, 1) if kind == "CONV_2D" else (own, stride, stride, 1, 0, 1, 1)
    return _repeated(net, kind, [x, weights, bias], (1, *made, deep), OPTIONS[kind], values)


def pool(rng: np.random.Generator, kind: str) -> bytes:
    """A pool of a random map."""
    net, shape = Network(rng), _map(rng)
    high, wide = (int(min(n, rng.choice([2, 3, 5]))) for n in shape[1:3])
    stride = int(rng.choice([1, 2]))
    made = (1, -(-shape[1] // stride), -(-shape[2] // stride), shape[3])
    return _repeated(net, kind, [net.tensor(shape)], made, OPTIONS[kind], (0, stride, stride, wide, high, 0))


def connected(rng: np.random.Generator, kind: str) -> bytes:
    """A fully connected layer."""
    net, deep, wide = Network(rng), int(rng.choice([8, 16, 64, 128])), int(rng.choice([16, 64, 128, 256, 640]))
    x, shape = net.tensor((1, wide)), (deep, wide)
    weights = net.tensor(shape, scale=(0.02, 0), data=rng.integers(-90, 90, shape, dtype=np.int8).tobytes())
    bias = net.tensor((deep,), _INT32, (0.001, 0), bytes(4 * deep))
    return _repeated(net, kind, [x, weights, bias], (1, deep), (1, 1, 1, 1), (0, 0, 0, 0))


def sum_of(rng: np.random.Generator, kind: str) -> bytes:
    """The sum of a map with itself."""
    net, shape = Network(rng), _map(rng)
    x = net.tensor(shape)
    return _repeated(net, kind, [x, x], shape, (1,), (0,))


def rescaled(rng: np.random.Generator, kind: str) -> bytes:
    """A map with another quantisation."""
    net, shape = Network(rng), _map(rng)
    return _repeated(net, kind, [net.tensor(shape, scale=(0.04, 5))], shape)


def padded(rng: np.random.Generator, kind: str) -> bytes:
    """A map with rows and columns around it."""
    net, shape = Network(rng), _map(rng)
    x, around = net.tensor(shape), rng.integers(0, 3, (2, 2))
    made = (1, *(n + int(pair.sum()) for n, pair in zip(shape[1:3], around, strict=True)), shape[3])
    return _repeated(net, kind, [x, _numbers(net, [[0, 0], *around.tolist(), [0, 0]])], made)


def _part(rng: np.random.Generator, shape: Sequence[int]) -> tuple[int, int, int, int]:
    """Some rows of a map, whole or parts of them."""
    wide = shape[2] if rng.integers(2) else int(rng.integers(1, shape[2] + 1))
    return 1, int(rng.integers(1, shape[1] + 1)), wide, shape[3]


def sliced(rng: np.random.Generator, kind: str) -> bytes:
    """A block out of a map."""
    net, shape = Network(rng), _map(rng)
    x, part = net.tensor(shape), _part(rng, shape)
    return _repeated(net, kind, [x, _numbers(net, [0, 0, 0, 0]), _numbers(net, part)], part)


def updated(rng: np.random.Generator, kind: str) -> bytes:
    """A map with a block put into it, in place, as loops have it: the map is a variable behind the input."""
    net, shape = Network(rng), _map(rng)
    part = _part(rng, shape)
    x = net.tensor(shape)
    block = net.tensor(part, data=bytes(int(np.prod(part))))
    return _repeated(net, kind, [x, block, _numbers(net, [0, 0, 0, 0])], shape)


def joined(rng: np.random.Generator, kind: str) -> bytes:
    """Maps one above the other."""
    net, shape = Network(rng), _map(rng)
    count, high = int(rng.integers(1, 6)), int(rng.integers(1, 30))
    x, other = net.tensor(shape), net.tensor((1, high, *shape[2:]), data=bytes(high * shape[2] * shape[3]))
    made = (1, shape[1] + count * high, *shape[2:])
    return _repeated(net, kind, [x, *[other] * count], made, (4, 1), (1, 0))


def enlarged(rng: np.random.Generator, kind: str) -> bytes:
    """A map twice as large."""
    net, shape = Network(rng), _map(rng)
    size = [2 * shape[1], 2 * shape[2]]
    return _repeated(net, kind, [net.tensor(shape), _numbers(net, size)], (1, *size, shape[3]), (1, 1), (0, 1))


#: What makes a model of many operators of each kind.
GENERATED: dict[str, Callable[[np.random.Generator, str], bytes]] = {
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": convolution,
    "AVERAGE_POOL_2D": pool,
    "MAX_POOL_2D": pool,
    "FULLY_CONNECTED": connected,
    "ADD": sum_of,
    "QUANTIZE": rescaled,
    "PAD": padded,
    "SLICE": sliced,
    "DYNAMIC_UPDATE_SLICE": updated,
    "CONCATENATION": joined,
    "RESIZE_BILINEAR": enlarged,
    "RESIZE_NEAREST_NEIGHBOR": enlarged,
}
PARSER = reporting.command_line(__file__, __doc__, "durations.md")


if __name__ == "__main__":
    main()
