"""Proves that the network which a plan is made for is what its .onnx file says, by a second reading of the file."""

from __future__ import annotations

import numpy as np

from modelplan.answers.proof_outcomes import Verdict
from modelplan.checking.verifier import formula_numbers as f
from modelplan.checking.verifier.network_formulas import network_outputs
from modelplan.checking.verifier.onnx_formulas import onnx_outputs
from modelplan.checking.verifier.verdicts import Skipped, verdict_of
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.primitives.errors import BrokenPlanError
from modelplan.runtimes.tflm.stated_network import StatedNetwork

LEVEL = "network beside the file"
Numbers = f.Numbers


def formulas_verdict(path: str, network: StatedNetwork) -> Verdict:
    """The verdict of a network that was read of an .onnx file: whether both compute the same formulas."""
    with np.errstate(over="ignore"):
        return verdict_of(LEVEL, lambda: _compared(path, network))


def _compared(path: str, network: StatedNetwork) -> str:
    feeds: dict[str, Numbers] = {}
    try:
        wanted = onnx_outputs(path, network.asked, feeds)
    except (ValueError, IndexError, KeyError, TypeError, RuntimeError) as problem:
        raise Skipped(f"no second reading of it: {' '.join(str(problem).split())[:200]}") from None
    main = network.subgraphs[0]
    try:
        fed = {t: _stored(network, t, n, v) for t, (n, v) in zip(main.inputs, feeds.items(), strict=True)}
        computed = network_outputs(network, fed)
    except (ValueError, IndexError) as problem:
        raise BrokenPlanError(f"its operators do not fit together: {problem}") from None
    for tensor, values, (name, right) in zip(main.outputs, computed, wanted.items(), strict=True):
        placed = _placed(network, tensor, name, right)
        if values.shape != placed.shape:
            raise BrokenPlanError(f"output {name!r} has extents {values.shape}, the file says {placed.shape}")
        if differs := int((values != placed).sum()):
            raise BrokenPlanError(f"{differs:,} of {placed.size:,} elements of output {name!r} are of other formulas")
    return f"{sum(y.size for y in computed):,} outputs are the same formulas of inputs and constants"


def _placed(network: StatedNetwork, tensor: int, name: str, values: Numbers) -> Numbers:
    """A map as it lies in the network, its channels last where the network says so."""
    if values.ndim in (3, 4) and (tensor in network.turned or name in network.asked.get("last", ())):
        values = values.transpose(0, *range(2, values.ndim), 1)
        values = values if values.ndim == 4 else values[:, :, None, :]
    return values


def _stored(network: StatedNetwork, tensor: int, name: str, values: Numbers) -> Numbers:
    """What is fed to an input; codes where the network's ends are codes."""
    values, scales = _placed(network, tensor, name, values), network.scales.get(tensor)
    floats = not np.all((values & np.uint64(0xFFFF)) == np.uint64(0xA53D))
    if scales and floats and DTYPES[network.subgraphs[0].tensors[tensor].type] == "int8":
        values = f.quantised(values, scales.scale, scales.zero)
    return values
