"""What compression would save: sizes only, nothing is compressed; the changed graph is planned.

Weights lie compressed in flash, and an operator in front of each reader writes them to the arena as they were. With
kernels that read them compressed, the arena stays as it is. An activation that waits for a reader is kept compressed
between the operators that use it; packing needs both forms at once, for it is not assumed to work in place.
"""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from modelplan.answers.explanation import Compression
from modelplan.model import Graph, Kind, Op, Runtime, Tensor, bounds
from modelplan.planning import pipeline
from modelplan.planning.pipeline import Options
from modelplan.primitives.errors import RequestError

#: Constants of fewer bytes stay as they are.
LEAST = 64
#: The operators that would compress and decompress; no runtime has them by these names.
DECODE, ENCODE = "WHAT_IF_DECODE", "WHAT_IF_ENCODE"

#: Bytes of a constant once it is compressed.
Size = Callable[[Tensor], int]


def compression(graph: Graph, runtime: Runtime, wanted: str) -> Compression:
    """What the compression called `wanted` would do to flash and to the planned activations.

    Args:
        graph: the model.
        runtime: for which it is planned; the plans are modelplan's own, in one order.
        wanted: `weights:int4`, `weights:paletteN`, `weights:sparseP%` or `activations:RATIO`.

    Raises:
        RequestError: `wanted` is none of these.
    """
    what, _, how = wanted.partition(":")
    if what not in ("weights", "activations"):
        raise RequestError(
            f"cannot read {wanted[:60]!r}; expected weights:int4, weights:palette16, weights:sparse50% or"
            " activations:0.5"
        )
    plain = pipeline.plan_on(graph, runtime, Options())
    ordered = replace(graph, ops=tuple(graph.ops[op] for op in plain.schedule.order), fingerprint="")
    before = bounds.height(plain.problem, plain.placement)
    flash = sum(tensor.file_bytes for tensor in graph.tensors if tensor.kind is Kind.CONSTANT)
    if what == "activations":
        ratio = _ratio(how, wanted)
        changed, count = _activations_packed(ordered, ratio)
        return Compression(wanted, count, flash, flash, before, _height(changed, runtime), before)
    size = _weight_size(how, wanted)
    changed, small = _weights_decoded(ordered, size)
    less = sum(graph.tensors[t].file_bytes - nbytes for t, nbytes in small.items())
    return Compression(wanted, len(small), flash, flash - less, before, _height(changed, runtime), before)


def _height(graph: Graph, runtime: Runtime) -> int:
    plan = pipeline.plan_on(graph, runtime, Options(schedule="file"))
    return bounds.height(plan.problem, plan.placement)


def _ratio(text: str, wanted: str) -> float:
    """Parses a compression ratio: a number above 0 and below 1."""
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0 < ratio < 1:
        raise RequestError(f"{wanted[:60]!r}: found a ratio of {text[:20]!r}, expected a number between 0 and 1")
    return ratio


def _weight_size(how: str, wanted: str) -> Size:
    """The bytes of a compressed constant: its codes, and what is needed to read them."""
    palette, sparse = re.fullmatch(r"palette([0-9]{1,3})", how), re.fullmatch(r"sparse([0-9]{1,2})%", how)
    if how == "int4":
        return lambda tensor: -(-_elements(tensor) // 2) + 4 * tensor.shape[0]
    if palette and 2 <= int(palette[1]) <= 256:
        entries = int(palette[1])
        bits = math.ceil(math.log2(entries))
        return lambda tensor: -(-_elements(tensor) * bits // 8) + entries * _width(tensor)
    if sparse and int(sparse[1]):
        zeros = int(sparse[1]) / 100
        return lambda t: math.ceil(_elements(t) * (1 - zeros)) * _width(t) + -(-_elements(t) // 8)
    raise RequestError(f"cannot read {wanted[:60]!r}; expected int4, palette2 to palette256, or sparse1% to sparse99%")


def _elements(tensor: Tensor) -> int:
    return math.prod(tensor.shape)


def _width(tensor: Tensor) -> int:
    """Bytes of an element, rounded up."""
    return -(-tensor.nbytes // max(_elements(tensor), 1))


def _compressed(graph: Graph, size: Size) -> dict[int, int]:
    """The constants that compression makes smaller, with their bytes."""
    small = {
        t: size(tensor)
        for t, tensor in enumerate(graph.tensors)
        if tensor.kind is Kind.CONSTANT and len(tensor.shape) > 1 and tensor.stored is None and tensor.nbytes >= LEAST
    }
    return {t: nbytes for t, nbytes in small.items() if nbytes < graph.tensors[t].nbytes and graph.readers[t]}


def compressed_weights(graph: Graph, wanted: str) -> dict[int, int]:
    """The constants that the compression called `wanted` makes smaller, with their bytes; none for activations.

    Raises:
        RequestError: there is no such compression.
    """
    what, _, how = wanted.partition(":")
    return _compressed(graph, _weight_size(how, wanted)) if what == "weights" else {}


def _weights_decoded(graph: Graph, size: Size) -> tuple[Graph, dict[int, int]]:
    """The graph with an operator that decodes each compressed constant in front of its reader, and their bytes."""
    small = _compressed(graph, size)
    tensors, ops = list(graph.tensors), list[Op]()
    for t, nbytes in small.items():
        tensors[t] = replace(graph.tensors[t], shape=(nbytes,), dtype="uint8")
    for op in graph.ops:
        decoded = {}
        for t in op.reads:
            if t in small and not op.subgraphs:
                decoded[t] = len(tensors)
                name = f"{graph.tensors[t].name} (decoded for {len(ops)})"
                tensors.append(replace(graph.tensors[t], name=name, kind=Kind.ACTIVATION))
                ops.append(Op("", DECODE, (t,), (decoded[t],)))
        ops.append(replace(op, inputs=tuple(decoded.get(t, t) for t in op.inputs)))
    return replace(graph, tensors=tuple(tensors), ops=tuple(ops)), small


def _activations_packed(graph: Graph, ratio: float) -> tuple[Graph, int]:
    """The graph in which results that wait for a reader wait compressed, and how many do."""
    tensors, ops = list(graph.tensors), list[Op]()
    waiting: dict[int, list[int]] = {}
    for t in range(len(graph.tensors)):
        step = _wait(graph, t)
        if step is not None:
            waiting.setdefault(step, []).append(t)
    packed: dict[int, int] = {}
    for step, op in enumerate(graph.ops):
        fresh = {}
        for t in op.reads:
            if t in packed:
                fresh[t] = len(tensors)
                tensors.append(replace(graph.tensors[t], name=f"{graph.tensors[t].name} (decoded for {len(ops)})"))
                ops.append(Op("", DECODE, (packed[t],), (fresh[t],)))
        ops.append(replace(op, inputs=tuple(fresh.get(t, t) for t in op.inputs)))
        for t in waiting.get(step, ()):
            packed[t] = len(tensors)
            nbytes = math.ceil(graph.tensors[t].nbytes * ratio)
            tensors.append(Tensor(f"{graph.tensors[t].name} (encoded)", (nbytes,), "uint8"))
            ops.append(Op("", ENCODE, (t,), (packed[t],)))
    return replace(graph, tensors=tuple(tensors), ops=tuple(ops)), len(packed)


def _wait(graph: Graph, t: int) -> int | None:
    """The step after which `t` first waits while an operator that does not use it runs; None where none does.

    Operators stand in the order of the run. Inputs, outputs and what bodies read stay as they are.
    """
    readers = graph.readers[t]
    planned = graph.tensors[t].kind is Kind.ACTIVATION and graph.producers[t] >= 0 and t not in graph.outputs
    if not planned or any(graph.ops[reader].subgraphs for reader in readers):
        return None
    used = [graph.producers[t], *readers]
    return next((a for a, b in pairwise(used) if b > a + 1), None)
