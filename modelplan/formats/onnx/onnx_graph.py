"""ONNX protobufs as a Graph: initialisers and what depends on nothing else are constants, the rest is planned.

Shapes come from the file, from onnx's own inference and, where those leave something open, from the values of small
constants. Weights are never read to be sized. A body of If, Loop or Scan becomes a subgraph of its operator, whose
inputs then end with what the body reads from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.formats.dims import Dims, is_symbol
from modelplan.formats.limits import FileLimits, Tally, check_sizes
from modelplan.formats.onnx.onnx_builder import GraphBuilder, Model
from modelplan.formats.onnx.onnx_control import add_control
from modelplan.formats.onnx.onnx_corrections import hidden_pools, show_pools
from modelplan.formats.onnx.onnx_fold import MOST_ELEMENTS
from modelplan.formats.onnx.onnx_functions import graphs_of, inlined
from modelplan.formats.onnx.onnx_guards import check_counts, check_inference, check_nodes
from modelplan.formats.onnx.onnx_open import OpenExtentsError, OpenModelError, OpenValue, asked
from modelplan.formats.onnx.onnx_search_bodies import parts_with_symbols
from modelplan.formats.onnx.onnx_types import (
    Type,
    UntypedError,
    UntypedModelError,
    dtype_name,
    is_known,
    plain,
    read_type,
    refusals,
)
from modelplan.formats.onnx.protobuf import weightless
from modelplan.formats.whole_files import fingerprint, read_model
from modelplan.model import Graph
from modelplan.primitives.errors import ModelError
from modelplan.primitives.number_types import UNPLANNED, nbytes

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto

#: Initialisers with more bytes than this are weights, whose values decide no shape.
WEIGHT_BYTES = 1 << 16
#: Initialisers with more bytes than this hold more elements than any that is looked at, of 16 bytes at most.
_LARGEST_VALUE = 16 * MOST_ELEMENTS
#: A model with more operators or open values than this is not read again to find extents that it accepts.
_MOST_TRIED = 5_000


def read(path: Path, dims: Dims) -> Graph:
    """The main graph of the model.

    Raises:
        ModelError: damaged, open or not supported.
        RequestError: a binding of `dims` that nothing asks for.
    """
    proto = read_proto(path)
    try:
        return _graph(path, proto, dims)
    except OpenExtentsError as problem:
        message, values = _open_message(path, problem, dims)
        raise OpenModelError(f"{path}: {message}", values) from None
    except (ValueError, TypeError, OverflowError, RecursionError) as problem:
        given = f"with {dims.options()}: " if dims.options() else ""
        line = " ".join(str(problem).split())[:2000] or type(problem).__name__
        kind = UntypedModelError if isinstance(problem, UntypedError) else ModelError
        raise kind(f"{path}: {given}{line}") from None


def _open_message(path: Path, problem: OpenExtentsError, dims: Dims) -> tuple[str, list[OpenValue]]:
    """The message about open extents and the values that have some.

    Tried shapes are small, since each try reads the file again.
    """

    def still_open(shapes: dict[str, tuple[int, ...]]) -> list[OpenValue]:
        tried = Dims(dict(dims.extents), dims.bounds, dims.shapes | shapes, types=dims.types)
        try:
            _graph(path, read_proto(path), tried)
        except OpenExtentsError as found:
            return list(found.values)
        return []

    return asked(problem, still_open if max(problem.operators, len(problem.values)) <= _MOST_TRIED else None)


def read_proto(path: Path) -> ModelProto:
    """The model as it stands in the file, without the data of weights that lie in the main graph.

    Raises:
        ModelError: damaged, or no model.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load_model_from_string(weightless(read_model(path), _LARGEST_VALUE))
    except DecodeError:
        raise ModelError(f"{path}: damaged: the protobuf ends or breaks off early") from None
    if not model.HasField("graph"):
        raise ModelError(f"{path}: found no graph, expected an ONNX model")
    return model


def read_unfolded(path: Path, dims: Dims) -> Graph:
    """The graph with every node as an operator, those too whose results are known before the model runs."""
    return _graph(path, read_proto(path), dims, unfolded=True)


def _graph(path: Path, proto: ModelProto, dims: Dims, *, unfolded: bool = False) -> Graph:
    content = read_model(path)
    limits = FileLimits.of(len(content))
    parts = [part for owner in (proto.graph, *proto.functions) for part in graphs_of(owner)]
    check_counts(parts, limits)
    _check_opsets(proto, parts)
    if proto.functions:
        proto = inlined(proto, limits.operators)
        parts = graphs_of(proto.graph)
        check_counts(parts, limits)
    opsets = {i.domain: i.version for i in proto.opset_import}
    check_inference(proto, parts)
    check_nodes(parts, opsets)
    stored = _drop_weights(parts)
    symbols = _bound(parts_with_symbols(parts), dims)
    limited = Tally(limits, times=2)
    model = Model(opsets, dims, stored, limited, add_control, fingerprint(content), unfolded=unfolded)
    builder = GraphBuilder(model, _inferred(proto, parts, model).graph)
    try:
        graph = builder.graph(path.stem)
    except OpenExtentsError:
        dims.check_used(symbols)  # a name may be misspelt
        raise
    dims.check_used(symbols)
    check_sizes(list(graph.tensors))
    return graph


def _check_opsets(proto: ModelProto, parts: Sequence[GraphProto | FunctionProto]) -> None:
    """Writes the standard domain as "" everywhere and makes sure that its version is one that onnx knows."""
    import onnx

    for entry in (*proto.opset_import, *(i for f in proto.functions for i in f.opset_import)):
        if entry.domain == "ai.onnx":
            entry.domain = ""
        newest = onnx.defs.onnx_opset_version()
        if entry.domain == "" and not 1 <= entry.version <= newest:
            raise ValueError(f"found opset {entry.version}, expected 1 to {newest}")
    if not any(entry.domain == "" for entry in proto.opset_import):
        proto.opset_import.add(domain="", version=1)
    for part in parts:
        for node in part.node:
            if node.domain == "ai.onnx":
                node.domain = ""


def _drop_weights(graphs: list[GraphProto]) -> dict[tuple[str, tuple[int, ...]], int]:
    """Checks the size of every initialiser and drops the data of weights; returns those that are not `nbytes`."""
    stored = {}
    for graph in graphs:
        for tensor in graph.initializer:
            size = _stored_bytes(tensor)
            if len(tensor.raw_data) > WEIGHT_BYTES:
                tensor.ClearField("raw_data")
            if size is not None:
                stored[tensor.name, tuple(tensor.dims)] = size
        for sparse in graph.sparse_initializer:
            values, indices = sparse.values, sparse.indices
            size = nbytes(dtype_name(values.data_type), tuple(values.dims)) + 8 * nbytes("int8", tuple(indices.dims))
            stored[values.name, tuple(sparse.dims)] = size
    return stored


def _stored_bytes(tensor: TensorProto) -> int | None:
    """Bytes that the file holds for an initialiser, None where that is what its type and shape say."""
    import onnx

    place = f"initialiser {tensor.name!r}"
    dtype = dtype_name(tensor.data_type)
    if min(tensor.dims, default=0) < 0:
        raise ValueError(f"{place}: found an extent of {min(tensor.dims)}, expected at least 0")
    size = nbytes(dtype, tuple(tensor.dims))
    if dtype in UNPLANNED:
        return sum(map(len, tensor.string_data))
    length = len(tensor.raw_data) or None
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        length = next((_length(place, e.value) for e in tensor.external_data if e.key == "length"), None)
    if length is not None and length != size:
        raise ValueError(f"{place}: found {length} bytes of data, expected {size} for {dtype} {list(tensor.dims)}")
    return None


def _length(place: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise ValueError(f"{place}: found length {text[:40]!r} of external data, expected a number of bytes")
    return int(text)


def _bound(graphs: list[GraphProto], dims: Dims) -> set[str]:
    """Replaces the symbols that the caller binds in all graphs; returns all symbols of the file."""
    symbols = set()
    for value in graphs[0].input:
        if value.name in dims.shapes:
            dims.imply(value.name, _declared(value))
    for graph in graphs:
        for value in (*graph.input, *graph.output, *graph.value_info):
            for tensor_type in _tensor_types(value.type):
                for axis, dim in enumerate(tensor_type.shape.dim):
                    if dim.HasField("dim_value") and dim.dim_value >= 0:
                        continue
                    name, place = dim.dim_param, f"{value.name}:{axis}"
                    symbols.add(name if is_symbol(name) else place)
                    extent = dims.extent(name or place, place)
                    if extent is not None:
                        dim.dim_value = extent
                    elif dim.HasField("dim_value"):
                        dim.ClearField("dim_value")  # ONNX Runtime takes an extent below zero as an open one
    return symbols


def _declared(value: ValueInfoProto) -> list[int | str] | None:
    """The shape that the file declares for an input, None where it says no rank."""
    tensor_type = value.type.tensor_type
    if not tensor_type.HasField("shape"):
        return None
    dims = tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or "?" for d in dims]


def _tensor_types(proto: TypeProto | None) -> list[TypeProto.Tensor]:
    tensor_types = []
    while proto is not None:
        kind = proto.WhichOneof("value")
        if kind == "tensor_type":
            tensor_types.append(proto.tensor_type)
        proto = getattr(proto, kind).elem_type if kind in ("sequence_type", "optional_type") else None
    return tensor_types


def _inferred(proto: ModelProto, parts: Sequence[GraphProto], model: Model) -> ModelProto:
    """The model with the types that onnx infers; `model.claims` takes what the file says of computed values.

    Without onnx's own data propagation, which allocates as much memory as a damaged extent says: the builder
    computes the few small values that decide shapes. What onnx refuses the builder meets again and tells where.
    """
    import onnx

    claims = [_taken_claims(part, model.opsets) for part in parts]
    infer = onnx.shape_inference.infer_shapes
    with hidden_pools(parts):
        try:
            inferred = infer(proto, strict_mode=True)
        except refusals():
            try:
                inferred = infer(proto, strict_mode=False)
            except refusals() as problem:
                raise ValueError(f"shapes contradict each other: {plain(problem)}") from None
    model.parts = graphs_of(inferred.graph)
    show_pools(node for part in model.parts for node in part.node)
    model.claims = {id(part): types for part, types in zip(model.parts, claims, strict=True)}
    return inferred


def _taken_claims(graph: GraphProto, opsets: dict[str, int]) -> dict[str, Type]:
    """Takes from the graph what it says of the shapes of computed values, but for operators that onnx does not know.

    Such shapes are often those of the run that the model was exported from.
    """
    unknown = {name for node in graph.node if not is_known(node, opsets) for name in node.output}
    given = {value.name for value in graph.input}
    claims = {value.name: _claim(value) for value in (*graph.value_info, *graph.output) if value.name not in given}
    kept = [value for value in graph.value_info if value.name in unknown]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for value in graph.output:
        if value.name not in unknown | given and value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    return {name: claim for name, claim in claims.items() if claim is not None}


def _claim(value: ValueInfoProto) -> Type | None:
    if not value.type.WhichOneof("value"):
        return None
    proto = type(value.type)()
    proto.CopyFrom(value.type)
    try:
        return read_type(proto)
    except ValueError as problem:
        raise ValueError(f"value {value.name!r}: {problem}") from None
