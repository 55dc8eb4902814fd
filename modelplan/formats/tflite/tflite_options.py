"""The options of a TFLite operator that matter to memory: windows, axes, and the subgraphs that it runs."""

from functools import cache
from typing import Any

from modelplan.formats.tflite.tflite_schema import BODIES, PADDINGS
from modelplan.model import Value

#: Attribute by accessor of the schema's option tables; each holds one number.
_FIELDS = {
    "StrideW": "stride_w", "StrideH": "stride_h", "DilationWFactor": "dilation_w_factor",
    "DilationHFactor": "dilation_h_factor", "FilterWidth": "filter_width", "FilterHeight": "filter_height",
    "DepthMultiplier": "depth_multiplier", "Rank": "rank", "TimeMajor": "time_major", "Axis": "axis",
    "BatchDims": "batch_dims", "BlockSize": "block_size", "NumSplits": "num_splits", "Num": "num",
    "KeepDims": "keep_dims", "BeginMask": "begin_mask", "EndMask": "end_mask", "EllipsisMask": "ellipsis_mask",
    "NewAxisMask": "new_axis_mask", "ShrinkAxisMask": "shrink_axis_mask", "Exclusive": "exclusive",
    "Reverse": "reverse", "FusedActivationFunction": "fused_activation_function",
    "AlignCorners": "align_corners", "HalfPixelCenters": "half_pixel_centers", "AdjX": "adj_x", "AdjY": "adj_y",
    "Mode": "mode",
}  # fmt: skip

#: Attributes that hold several numbers.
_VECTORS = {"SqueezeDims": "squeeze_dims"}

_TEXTS = {"Container": "container", "SharedName": "shared_name"}

#: Custom operators whose scratch depends on their options.
SIZED_BY_OPTIONS = ("CUSTOM:TFLite_Detection_PostProcess", "CUSTOM:SignalRfft")
_MOST_CUSTOM_BYTES = 4096
_MOST_BRANCHES = 1024
#: No operator has more dimensions.
_MOST_NUMBERS = 64


def attributes(options: object, longest_text: int | None = 200) -> tuple[tuple[str, Value], ...]:
    """The attributes of an operator that decide about memory, from its table of options; long texts are cut."""
    if options is None:
        return ()
    table: type = type(options)
    values: list[tuple[str, Value]] = [(name, int(read(options))) for read, name in _numbers_of(table)]
    if hasattr(options, "Padding"):
        values.append(("padding", PADDINGS.get(options.Padding(), "VALID")))
    for field, name in _VECTORS.items():
        if hasattr(options, field):
            length = min(getattr(options, f"{field}Length")(), _MOST_NUMBERS)
            values.append((name, tuple(map(getattr(options, field), range(length)))))
    for field, name in _TEXTS.items():
        if hasattr(options, field):
            values.append((name, (getattr(options, field)() or b"")[:longest_text].decode("utf-8", "replace")))
    return tuple(values)


@cache
def _numbers_of(table: type) -> tuple[tuple[Any, str], ...]:
    """The accessors of a table of options that are in `_FIELDS`, with the project's names."""
    return tuple((getattr(table, field), name) for field, name in _FIELDS.items() if hasattr(table, field))


def body_indices(kind: str, options: object) -> tuple[int, ...]:
    """The numbers of the subgraphs that an operator with a table of options runs.

    Raises:
        ValueError: the options that should name them are missing.
    """
    indices: list[int] = []
    for field in BODIES[kind]:
        if options is None or not hasattr(options, field):
            raise ValueError(f"found no options with {field}")
        if hasattr(options, f"{field}Length"):
            length = getattr(options, f"{field}Length")()
            if length > _MOST_BRANCHES:
                raise ValueError(f"found {length} branches, expected at most {_MOST_BRANCHES}")
            indices += [getattr(options, field)(i) for i in range(length)]
        else:
            indices.append(getattr(options, field)())
    return tuple(indices)


def custom_attributes(content: bytes) -> tuple[tuple[str, Value], ...]:
    """The same of a kind in SIZED_BY_OPTIONS: the whole numbers in its custom options, a flexbuffer."""
    from flatbuffers import flexbuffers

    if not 0 < len(content) <= _MOST_CUSTOM_BYTES:
        return ()
    try:
        loaded = flexbuffers.Loads(content)
    except RecursionError:
        raise ValueError("the custom options lie too deep") from None
    pairs = loaded.items() if isinstance(loaded, dict) else ()
    return tuple((str(name), value) for name, value in pairs if type(value) is int)
