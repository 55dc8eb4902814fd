"""Types of values that neither an .onnx file nor its reader knows: those that a session infers, where there is one."""

from __future__ import annotations

from collections.abc import Sequence

from modelplan.formats import load_model
from modelplan.model import Graph
from modelplan.primitives.errors import ModelError, ModelPlanError


def load_with_types(path: str, dims: Sequence[str], shapes: Sequence[str], values: Sequence[str]) -> Graph:
    """The model in a file, as `load_model` reads it; types that stay unknown are asked of a session.

    Raises:
        ModelError: the file cannot be read; no session runs it, or none infers what is unknown.
    """
    try:
        return load_model(path, dims, shapes, values)
    except ModelError as problem:
        from modelplan.formats.onnx.onnx_types import UntypedModelError  # here: few files need it
        from modelplan.runtimes.ort.measuring import check_measurable, value_types

        if not isinstance(problem, UntypedModelError):
            raise
        try:
            check_measurable()
            types = value_types(path)
        except ModelPlanError:
            raise problem from None
        return load_model(path, dims, shapes, values, types)
