"""The numbers and names of TFLite's schema (schema.fbs), once for all that read or edit a .tflite file."""

import sys
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

#: The element type of each TensorType number; also of those that the installed schema package does not name yet.
DTYPES = {
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 5: "string", 6: "bool", 7: "int16",
    8: "complex64", 9: "int8", 10: "float64", 11: "complex128", 12: "uint64", 13: "resource", 14: "variant",
    15: "uint32", 16: "uint16", 17: "int4", 18: "bfloat16", 19: "int2", 20: "uint4", 21: "float8e4m3fn",
    22: "float8e5m2",
}  # fmt: skip

#: The name of each Padding number.
PADDINGS = {0: "SAME", 1: "VALID"}

#: Field numbers, by table; a model has MODEL_FIELDS fields, all but its version are references.
MODEL_VERSION, MODEL_FIELDS = 0, 8
MODEL_OPERATOR_CODES, MODEL_SUBGRAPHS, MODEL_BUFFERS, MODEL_METADATA, MODEL_SIGNATURES = 1, 2, 4, 6, 7
SIGNATURE_INPUTS, SIGNATURE_OUTPUTS = 0, 1
CODE_DEPRECATED_BUILTIN, CODE_CUSTOM, CODE_VERSION, CODE_BUILTIN = range(4)
SUBGRAPH_TENSORS, SUBGRAPH_INPUTS, SUBGRAPH_OUTPUTS, SUBGRAPH_OPERATORS, SUBGRAPH_NAME = range(5)
TENSOR_SHAPE, TENSOR_TYPE, TENSOR_BUFFER, TENSOR_NAME, TENSOR_QUANTISATION, TENSOR_VARIABLE = range(6)
TENSOR_SPARSITY, TENSOR_SIGNATURE, TENSOR_EXTERNAL_BUFFER = 6, 7, 10
SCALE, ZERO_POINT, QUANTISED_AXIS = 2, 3, 6
OPERATOR_CODE, OPERATOR_INPUTS, OPERATOR_OUTPUTS, OPERATOR_OPTIONS_TYPE, OPERATOR_OPTIONS = range(5)
OPERATOR_CUSTOM_OPTIONS, OPERATOR_INTERMEDIATES, OPERATOR_LARGE_OPTIONS = 5, 8, 9
OPERATOR_OPTIONS_2_TYPE, OPERATOR_OPTIONS_2 = 11, 12
BUFFER_DATA, BUFFER_OFFSET, BUFFER_SIZE = range(3)
METADATA_NAME, METADATA_BUFFER = 0, 1

#: The option fields that hold numbers of subgraphs, by operator, in the order in which it runs them.
BODIES: dict[str, tuple[str, ...]] = {
    "IF": ("ThenSubgraphIndex", "ElseSubgraphIndex"),
    "WHILE": ("CondSubgraphIndex", "BodySubgraphIndex"),
    "CALL": ("Subgraph",),
    "CALL_ONCE": ("InitSubgraphIndex",),
    "STABLEHLO_WHILE": ("CondSubgraphIndex", "BodySubgraphIndex"),
    "STABLEHLO_CASE": ("BranchSubgraphIndices",),
    "STABLEHLO_COMPOSITE": ("DecompositionSubgraphIndex",),
    "STABLEHLO_REDUCE": ("BodySubgraphIndex",),
    "STABLEHLO_REDUCE_WINDOW": ("BodySubgraphIndex",),
    "STABLEHLO_SCATTER": ("UpdateComputationSubgraphIndex",),
    "STABLEHLO_SORT": ("ComparatorSubgraphIndex",),
}


@cache
def enumeration_names(enumeration: str) -> dict[int, str]:
    """The name of each number of an enumeration of the installed schema package."""
    return {number: name for name, number in vars(table_class(enumeration)).items() if isinstance(number, int)}


def builtin_name(number: int, deprecated: int) -> str:
    """The name of the builtin operator with the two numbers of an operator code; "CUSTOM" outside the schema."""
    number = max(number, deprecated)
    return enumeration_names("BuiltinOperator").get(number, f"BUILTIN_{number}")


@cache
def table_class(name: str) -> Any:
    """The class of the installed schema package for the tables or the enumeration called `name`."""
    package = sys.modules.get("tflite")
    return getattr(package, name) if package else _class_alone(name)


def _class_alone(name: str) -> Any:
    """A class from its own file: the package itself imports all of its two hundred."""
    package = find_spec("tflite")
    folders = package.submodule_search_locations if package else None
    if not folders:
        raise ModuleNotFoundError("No module named 'tflite'", name="tflite")
    spec = spec_from_file_location(f"tflite.{name}", Path(folders[0]) / f"{name}.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def model_table(data: bytes) -> Any:
    """The table of a whole model, as the schema's class for it."""
    return table_class("Model").GetRootAs(data, 0)


def tables_in(table: Any, field: int, name: str) -> list[Any]:
    """The tables called `name` in the vector at a field of a table, or the only one there; none where it is absent.

    The class of `table` would import all others to give them.
    """
    flat, kind = table._tab, table_class(name)  # noqa: SLF001 - of the library
    at = flat.Offset(4 + 2 * field)
    if not at:
        return []
    places = [flat.Vector(at) + 4 * i for i in range(flat.VectorLen(at))] if name in _LISTED else [flat.Pos + at]
    tables = []
    for place in places:
        tables.append(kind())
        tables[-1].Init(flat.Bytes, flat.Indirect(place))
    return tables


#: Tables that stand in vectors.
_LISTED = {"SubGraph", "Tensor", "Operator", "SignatureDef", "TensorMap", "Metadata", "Buffer"}


def options_of(operator: Any) -> Any:
    """The option table of an operator as the schema's class for it, None where it has none that the schema knows."""
    for field in ("BuiltinOptions", "BuiltinOptions2"):
        name = enumeration_names(field).get(getattr(operator, f"{field}Type")())
        table = getattr(operator, field)() if name and name != "NONE" else None
        if name and table is not None:
            options = table_class(name)()
            options.Init(table.Bytes, table.Pos)
            return options
    return None
