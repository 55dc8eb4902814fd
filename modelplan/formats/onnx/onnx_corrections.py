"""Types of outputs as ONNX Runtime has them, where onnx's own inference has others or none: pools, normalizations.

onnx's inference gives windows that begin behind the map an extent below opset 22, and forgets that a session pads for
`auto_pad` as if windows had no gaps. Normalizations run in the standard domain where onnx has no such operator.

Source: onnxruntime from 1.21 on, core/providers/cpu/nn/pool_attributes.h ComputeSizePadDilations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modelplan.formats.onnx.onnx_types import Extent, Type, tensor_type, with_shape

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


#: Pools with windows, in whatever domain.
POOLS = frozenset({"MaxPool", "AveragePool", "LpPool"})
#: What a pool is called while onnx infers the types of a whole graph, so that nothing follows from what it would say.
_HIDDEN = " of ONNX Runtime"


def pooled_types(node: NodeProto, shape: Sequence[Extent] | None, types: Mapping[str, Type]) -> dict[str, Type]:
    """The types that onnx infers for the outputs of a pool that reads `shape`, with the extents of a session."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in POOLS or shape is None:
        return dict(types)
    known = {name: pooled_shape(shape, attributes_of(node), of.shape) for name, of in types.items() if of.shape}
    return {name: with_shape(of, tuple(known[name])) if name in known else of for name, of in types.items()}


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """The attributes of a node that are numbers, words or lists of numbers."""
    import onnx

    values = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}


@contextmanager
def hidden_pools(graphs: Iterable[GraphProto]) -> Iterator[None]:
    """Meanwhile the pools of which onnx infers other extents than a session has are operators that it does not know."""
    nodes = [node for graph in graphs for node in graph.node if _differs(node)]
    for node in nodes:
        node.op_type += _HIDDEN
    try:
        yield
    finally:
        show_pools(nodes)


def show_pools(nodes: Iterable[NodeProto]) -> None:
    """Gives hidden pools their names back."""
    for node in nodes:
        if node.op_type.endswith(_HIDDEN):
            node.op_type = node.op_type.removesuffix(_HIDDEN)


def _differs(node: NodeProto) -> bool:
    if node.domain not in ("", "ai.onnx") or node.op_type not in POOLS:
        return False
    attributes = attributes_of(node)
    return bool(attributes.get("ceil_mode", 0)) or attributes.get("auto_pad", "NOTSET") != "NOTSET"


def pooled_shape(shape: Sequence[Extent], attributes: Mapping[str, Any], inferred: Sequence[Extent]) -> list[Extent]:
    """The shape that a pool makes of `shape`; `inferred` is onnx's, which stays where an extent is open."""
    rank = len(shape) - 2
    kernel = attributes.get("kernel_shape", ())
    strides, gaps = (attributes.get(name, (1,) * rank) for name in ("strides", "dilations"))
    pads = attributes.get("pads", (0,) * (2 * rank))
    if not len(kernel) == len(strides) == len(gaps) == rank or len(pads) != 2 * rank or min(strides, default=1) < 1:
        return list(inferred)
    auto, ceil = attributes.get("auto_pad", "NOTSET"), bool(attributes.get("ceil_mode", 0))
    pooled = list(inferred)
    for axis, extent in enumerate(shape[2:]):
        if isinstance(extent, int):
            head, tail = pads[axis], pads[rank + axis]
            if auto != "NOTSET":
                head, tail = _padding(extent, kernel[axis], strides[axis], auto)
            pooled[2 + axis] = _pooled(extent, gaps[axis] * (kernel[axis] - 1), strides[axis], head, tail, ceil=ceil)
    return pooled


def _padding(extent: int, kernel: int, stride: int, auto: str) -> tuple[int, int]:
    """What a session adds before and after: for as many windows as strides begin in the map, without gaps in them."""
    if auto == "VALID":
        return 0, 0
    needed = (-(-extent // stride) - 1) * stride + kernel - extent
    head = needed // 2 if auto == "SAME_UPPER" else (needed + 1) // 2
    return head, needed - head


def _pooled(extent: int, reach: int, stride: int, head: int, tail: int, *, ceil: bool) -> int:
    """How many windows there are; of a last one that is cut off none that begins behind the map and `head`."""
    room = extent + head + tail - reach - 1
    count = (-(-room // stride) if ceil or room < 0 else room // stride) + 1  # C++ rounds towards 0
    return count - 1 if ceil and (count - 1) * stride >= extent + head else count


_FLOAT = 1
#: Operators that ONNX Runtime has in the domain ai.onnx, each with the first opset in which onnx has it, if any.
_FIRST_OPSET = {"SimplifiedLayerNormalization": None, "LayerNormalization": 17}


def normalised_types(node: NodeProto, types: Sequence[Type | None], version: int | None) -> dict[str, Type]:
    """The types of outputs by name: that of the input; mean and inverse deviation have extents of 1 from an axis on.

    Nothing of an operator that onnx itself knows. Source: onnxruntime, core/graph/contrib_ops/contrib_defs.cc.
    """
    first = types[0] if types else None
    if node.domain or node.op_type not in _FIRST_OPSET or first is None or first.shape is None:
        return {}
    since = _FIRST_OPSET[node.op_type]
    if since is not None and version is not None and version >= since:
        return {}
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), -1) % max(
        len(first.shape), 1
    )
    kept = tensor_type(_FLOAT, (*first.shape[:axis], *[1] * (len(first.shape) - axis)))
    return {name: known for name, known in zip(node.output, (first, kept, kept), strict=False) if name}
