"""Weights that metadata of a file say are indices into tables of values, which kernels unpack while they run.

Builds of TFLM with USE_TFLM_COMPRESSION read the metadata; a kernel then requests memory for all values of a compressed
input. Source: tflite-micro, micro_allocator.cc, micro_interpreter_context.cc.
"""

from collections.abc import Iterator

from modelplan.formats.tflite.lut_metadata import LutTensor
from modelplan.runtimes.tflm.file import FileModel, FileSubgraph

#: Bits of an index that TFLM unpacks.
_MOST_BITS = 7


def metadata_damage(model: FileModel) -> str:
    """Why TFLM would not unpack the weights as the metadata say; empty where it does, or where there are none."""
    if model.luts is None:
        return ""
    if model.luts.damage:
        return model.luts.damage
    if len(model.luts.subgraphs) > len(model.subgraphs):
        return f"for {len(model.luts.subgraphs)} subgraphs of {len(model.subgraphs)}"
    pairs = zip(model.subgraphs, model.luts.subgraphs, strict=False)
    return next((damage for subgraph, luts in pairs for damage in _damages(subgraph, luts)), "")


def _damages(subgraph: FileSubgraph, luts: tuple[LutTensor, ...]) -> Iterator[str]:
    seen: set[int] = set()
    for tensor, _, bits in luts:
        if not 0 <= tensor < len(subgraph.tensors):
            yield f"which name tensor {tensor} of {len(subgraph.tensors)}"
            return
        if tensor in seen:
            yield f"which name tensor {tensor} twice"
        seen.add(tensor)
        weights = subgraph.tensors[tensor]
        needed = -(-weights.elements * bits // 8)
        if not 1 <= bits <= _MOST_BITS:
            yield f"with {bits} bits for tensor {tensor}, expected 1 to {_MOST_BITS}"
        if not weights.shape:
            yield f"which name tensor {tensor}, a scalar"
        if weights.content[1] < needed:
            yield f"with {weights.content[1]} bytes for tensor {tensor}, expected {needed}"
        if weights.quantization.scales > 1 and weights.quantization.axis not in (0, len(weights.shape) - 1):
            yield (
                f"with scales along axis {weights.quantization.axis} of tensor {tensor}, expected the first or the last"
            )
