"""A network that plain C computes, stated operator by operator, where no .tflite file holds it.

Operators have the names and options of TFLite's, which plain C is written from, maps are [N, H, W, C]. What TFLite
cannot say stands in options of their own: `Pads` around a map (top, bottom, left, right), `Limits` of a result, and
`Whole`, 1 where places beside a map count for a mean.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model import Graph, Kind, Op, Tensor, Value
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.file import FileModel

_CODES = {dtype: code for code, dtype in DTYPES.items()}
#: The names of options as access maps ask for them.
_ATTRIBUTES = {
    "StrideH": "stride_h", "StrideW": "stride_w", "DilationHFactor": "dilation_h_factor",
    "DilationWFactor": "dilation_w_factor", "FilterHeight": "filter_height", "FilterWidth": "filter_width",
    "Axis": "axis", "BlockSize": "block_size", "AlignCorners": "align_corners",
    "HalfPixelCenters": "half_pixel_centers", "AdjX": "adj_x", "AdjY": "adj_y", "Mode": "mode", "Pads": "pads",
    "BeginMask": "begin_mask", "EndMask": "end_mask", "EllipsisMask": "ellipsis_mask",
    "NewAxisMask": "new_axis_mask", "ShrinkAxisMask": "shrink_axis_mask", "Exclusive": "exclusive",
    "Reverse": "reverse", "BatchDims": "batch_dims", "NumSplits": "num_splits", "Num": "num",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodeScales:
    """How codes stand for numbers: (code - zero) * scale, with one scale or one for each place along an axis."""

    scales: tuple[float, ...]
    zero: int
    axis: int = 0

    @property
    def scale(self) -> float:
        """The first scale."""
        return self.scales[0]


@dataclass(frozen=True, slots=True)
class StatedOptions:
    """The options of an operator by name."""

    values: Mapping[str, Any]

    @property
    def attributes(self) -> tuple[tuple[str, Value], ...]:
        """Those that access maps ask for, under the names there."""
        padding: tuple[tuple[str, Value], ...] = (("padding", "VALID"),) if "Pads" in self.values else ()
        return (*((_ATTRIBUTES[k], v) for k, v in self.values.items() if k in _ATTRIBUTES), *padding)


@dataclass(frozen=True)
class StatedNetwork(FileModel):
    """A network with one subgraph; `data` are the bytes of its constants, one after the other.

    `scales` are those of its tensors by number. `turned` are inputs and outputs whose channels stand first where the
    caller writes and reads them; they are turned in their places. `asked` is what the network was asked for, by name.
    """

    scales: Mapping[int, CodeScales] = field(default_factory=dict)
    turned: frozenset[int] = frozenset()
    asked: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def graph(self) -> Graph:
        """What plans see of it."""
        main = self.subgraphs[0]
        kinds = {True: Kind.CONSTANT, False: Kind.ACTIVATION}
        tensors = tuple(Tensor(t.name, t.shape, DTYPES[t.type], kinds[t.constant]) for t in main.tensors)
        ops = tuple(
            Op(f"op {i}", op.kind, op.inputs, op.outputs, op.options.attributes) for i, op in enumerate(main.ops)
        )
        return Graph(self.name, "tflite", tensors, ops, main.inputs, main.outputs)
