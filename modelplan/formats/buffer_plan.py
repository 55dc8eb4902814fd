"""C headers of `modelplan fit --only plan --shim`: an offset for each buffer, as tflite::BufferPlan holds them."""

from __future__ import annotations

import re
from pathlib import Path

from modelplan.formats.files import read_text
from modelplan.primitives.errors import BrokenPlanError, ModelError

#: A comment ends with its line; it may hold the name of a tensor, and that any character.
_COMMENT = re.compile(r"//[^\n]*")
#: An int32 with its sign.
_MOST_DIGITS = 11
_PLAN = re.compile(r"modelplan_buffer_plan\s*=\s*\{\s*([0-9]{1,9})\s*,\s*\{([^}]*)\}")


def read_buffer_plan(path: str | Path) -> list[int]:
    """The offsets of the BufferPlan in the header `path`.

    Raises:
        ModelError: the file cannot be read or holds no BufferPlan.
        BrokenPlanError: the plan counts another number of buffers than it has offsets.
    """
    match = _PLAN.search(_COMMENT.sub("", read_text(path)))
    if not match:
        raise ModelError(f"{path}: no modelplan_buffer_plan, expected a header of `modelplan fit --only plan --shim`")
    numbers = re.findall(r"-?[0-9]+", match[2])
    if any(len(number) > _MOST_DIGITS for number in numbers):
        raise ModelError(f"{path}: found an offset of more than {_MOST_DIGITS} digits")
    offsets = [int(number) for number in numbers]
    if len(offsets) != int(match[1]):
        raise BrokenPlanError(f"{path}: counts {match[1]} buffers and holds {len(offsets)} offsets")
    return offsets
