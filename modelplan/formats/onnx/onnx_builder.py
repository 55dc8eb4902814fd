"""Reads one ONNX graph in file order: every node becomes an operator or a constant."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, TypeVarTuple

import numpy as np

from modelplan.formats.dims import Dims, value_option
from modelplan.formats.limits import Tally
from modelplan.formats.onnx import onnx_fold as fold
from modelplan.formats.onnx import onnx_ml
from modelplan.formats.onnx.onnx_contrib import blocked_weights, contributed, has_row
from modelplan.formats.onnx.onnx_corrections import normalised_types, pooled_types
from modelplan.formats.onnx.onnx_fold import Array
from modelplan.formats.onnx.onnx_functions import bodies_of
from modelplan.formats.onnx.onnx_open import OpenExtentsError, OpenValue
from modelplan.formats.onnx.onnx_reachable import beyond, has_limits, unequal
from modelplan.formats.onnx.onnx_sequences import is_search
from modelplan.formats.onnx.onnx_shapes import TypedNode
from modelplan.formats.onnx.onnx_types import (
    Extent,
    ImpossibleError,
    Type,
    UntypedError,
    merged,
    plain,
    read_type,
    refusals,
    replaced,
    tensor_type,
    with_shape,
    written,
)
from modelplan.model import Graph, Kind, Op, Tensor, Value
from modelplan.ops import facts
from modelplan.primitives.errors import RequestError
from modelplan.primitives.number_types import UNPLANNED

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

#: Nodes that give another result each time although their inputs never change.
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
#: Domains whose operators have no effects beside their outputs.
PURE = {"", "ai.onnx.ml"}
#: Most remarks of one sort before the rest is counted.
_MOST_NAMED = 8
_INT64, _BOOL = 7, 9
#: Data types of inputs that may be given a value, by numpy's names, and the most numbers of one.
_NUMBERS = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "float16": "float16", "float32": "float32", "float64": "float64", "bool": "bool",
}  # fmt: skip
_MOST_GIVEN = 4096

_Result = TypeVar("_Result")
_Given = TypeVarTuple("_Given")


class NodeMark(NamedTuple):
    """How much a `Model` had noted at one moment, field by field."""

    remarks: int
    open: int
    unplanned: int
    contradicted: int
    stated: int
    folded: int
    followers: int


@dataclass(slots=True)
class Model:
    """State that all graphs of one model share: versions, bindings, remarks, counts.

    `claims` are the file's types of computed values, by the id of the graph in `parts` that they stand in.
    `walked` counts what was built, also in readings of bodies that were given up; `trials` are those under way.
    `add_control` adds a node with bodies to a builder's graph.
    `unfolded`: nodes that only constants feed are operators too.
    `largest`: some extents are the largest of several, not those of every run. `stated` are computed tensors of which
    no operator tells all extents, with their shapes.
    """

    opsets: dict[str, int]
    dims: Dims
    stored: dict[tuple[str, tuple[int, ...]], int]
    walked: Tally
    add_control: Callable[[GraphBuilder, NodeProto, tuple[int, ...], str], None]
    fingerprint: str = ""
    parts: list[GraphProto] = field(default_factory=list)
    claims: dict[int, dict[str, Type]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    open: list[OpenValue] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    stated: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    evaluations: int = 0
    trials: int = 0
    largest: bool = False
    folded: int = 0
    followers: int = 0
    unfolded: bool = False

    def mark(self) -> NodeMark:
        """How much was noted so far, for `restore`."""
        lists = len(self.remarks), len(self.open), len(self.unplanned), len(self.contradicted), len(self.stated)
        return NodeMark(*lists, self.folded, self.followers)

    def restore(self, mark: NodeMark) -> None:
        """Drops what was noted since `mark`; what was built still counts in `walked`."""
        del self.remarks[mark.remarks :], self.open[mark.open :]
        del self.unplanned[mark.unplanned :], self.contradicted[mark.contradicted :], self.stated[mark.stated :]
        self.folded, self.followers = mark.folded, mark.followers


@dataclass(slots=True)
class _Source:
    """A node that computes constants; their values are computed when first asked for."""

    node: NodeProto
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class GraphBuilder:
    """Tensors and operators of one graph; names are looked up here first, then in the graph around it."""

    def __init__(self, model: Model, proto: GraphProto, parent: GraphBuilder | None = None, place: str = "") -> None:
        self.model = model
        self.proto = proto
        self.parent = parent
        self.place = place
        self.index: ChainMap[str, int] = ChainMap()
        self.tensors: list[Tensor] = []
        self.types: list[Type] = []
        self.sources: dict[int, _Source] = {}
        self.steady: set[int] = set()
        self.values: dict[int, Array | None] = {}
        self.captured: dict[int, int] = {}
        self.unsure: set[int] = set()  # tensors whose values, not sizes, depend on an open extent
        self.following: set[str] = set()  # inputs that an open extent outside explains
        self.ops: list[Op] = []
        self.hints: MutableMapping[str, Type] = self.read_hints(proto)
        self.claims: MutableMapping[str, Type] = ChainMap(model.claims.get(id(proto), {}))
        self.blocked: dict[str, int] | None = None  # channels in blocks that weights have, by what they multiply

    # -- the graph -------------------------------------------------------------------------------------------

    def graph(self, name: str) -> Graph:
        """The whole graph.

        Raises:
            ValueError: a name without a value or with two, an extent that stays open.
        """
        initial = {t.name for t in self.proto.initializer} | {t.values.name for t in self.proto.sparse_initializer}
        given = [v for v in self.proto.input if v.name not in initial]
        inputs = tuple(
            self.add(v.name, self.hints.get(v.name), "input", follows=v.name in self.following) for v in given
        )
        for value, t in zip(given, inputs, strict=True):
            self._give_value(value.name, t)
        self.unsure |= {t for v, t in zip(given, inputs, strict=True) if v.name in self.following}
        self.walk(self.proto)
        outputs = tuple(self.find(v.name, "output") for v in self.proto.output)
        if self.parent is None and self.model.open:
            raise OpenExtentsError(self.model.open, self.model.followers, self.model.walked.counts["operators"])
        content = tuple(self.tensors), tuple(self.ops), inputs, outputs
        if self.parent is not None:
            return Graph(name, "onnx", *content)
        stated, model = tuple(dict(self.model.stated).items()), self.model
        return Graph(name, "onnx", *content, self._remarks(), model.fingerprint, stated=stated, folded=model.folded)

    def _give_value(self, name: str, t: int) -> None:
        """Takes the value that the caller gives an input of the model: what it decides is decided as by a constant."""
        numbers = self.model.dims.values.get(name)
        if numbers is None or self.parent is not None:
            return
        tensor = self.tensors[t]
        option = value_option(name, numbers)
        if tensor.dtype not in _NUMBERS or not 1 <= prod(tensor.shape) <= _MOST_GIVEN:
            raise RequestError(f"{option}: {name!r} is {tensor.dtype} {list(tensor.shape)}, expected a few numbers")
        if len(numbers) not in (1, prod(tensor.shape)):
            raise RequestError(f"{option}: {name!r} has {prod(tensor.shape)} numbers, expected 1 or as many")
        self.model.dims.used.add(name)
        self.values[t] = np.resize(np.array(numbers), tensor.shape).astype(_NUMBERS[tensor.dtype])
        self.steady.add(t)

    def walk(self, proto: GraphProto) -> None:
        """Adds the initialisers and nodes of `proto`, a graph or a branch in place of its If."""
        for tensor in proto.initializer:
            t = self.add(tensor.name, tensor_type(tensor.data_type, tuple(tensor.dims)), "initialiser", Kind.CONSTANT)
            self.values[t] = fold.stored(tensor)
        for sparse in proto.sparse_initializer:
            known = tensor_type(sparse.values.data_type, tuple(sparse.dims))
            self.values[self.add(sparse.values.name, known, "sparse initialiser", Kind.CONSTANT)] = None
        for number, node in enumerate(proto.node):
            place = f"{self.place}node {number} {node.op_type}" + (f" {node.name!r}" if node.name else "")
            self._node(node, place)

    def read_hints(self, proto: GraphProto) -> dict[str, Type]:
        """The types that the file and onnx's inference give for the values of `proto`."""
        hints: dict[str, Type] = {}
        for value in (*proto.input, *proto.value_info, *proto.output):
            if not value.type.WhichOneof("value"):
                continue
            name = value.name
            try:
                known = read_type(value.type)
                hints[name] = merged(known, hints.get(name)) or known
            except ValueError as problem:
                raise ValueError(f"{self.place}value {name!r}: {problem}") from None
        return hints

    def _at(self, place: str, function: Callable[[*_Given], _Result], *arguments: *_Given) -> _Result:
        """What the function returns; a ValueError gets the place in front."""
        try:
            return function(*arguments)
        except ValueError as problem:
            raise ValueError(f"{self.place}{place}: {problem}") from None

    # -- values ----------------------------------------------------------------------------------------------

    def find(self, name: str, place: str) -> int:
        """The tensor called `name`; one from outside becomes a captured tensor of this graph."""
        if name in self.index:
            return self.index[name]
        if self.parent is None:
            raise ValueError(f"{place}: reads {name!r}, which nothing before it writes")
        outer = self.parent.find(name, place)
        source = self.parent.tensors[outer]
        kind = Kind.CONSTANT if source.kind is Kind.CONSTANT else Kind.CAPTURED
        self.index.maps[-1][name] = t = self._append(Tensor(name, source.shape, source.dtype, Kind.CAPTURED), outer)
        self.values[t] = self.parent.value(outer) if kind is Kind.CONSTANT else None
        return t

    def rename(self, name: str, t: int, place: str) -> None:
        """Gives tensor `t` another name."""
        if name in self.index.maps[0]:
            raise ValueError(f"{place}: {name!r} already has a value")
        self.index[name] = t

    def _append(self, tensor: Tensor, outer: int) -> int:
        self.model.walked.add("tensors")
        self.tensors.append(tensor)
        assert self.parent is not None
        self.types.append(self.parent.types[outer])
        self.captured[outer] = len(self.tensors) - 1
        if outer in self.parent.unsure:
            self.unsure.add(len(self.tensors) - 1)
        return len(self.tensors) - 1

    def add(
        self, name: str, known: Type | None, place: str, kind: Kind = Kind.ACTIVATION, *, follows: bool = False
    ) -> int:
        """A new tensor; one whose extents stay open is noted, once for all that follow from it."""
        self.model.walked.add("tensors")
        if name in self.index.maps[0]:
            raise ValueError(f"{self.place}{place}: {name!r} already has a value")
        if known is None:
            raise UntypedError(f"{self.place}{place}: the type of {name!r} is unknown; give it by value_info")
        settled = not known.is_open
        if known.is_open:
            known = replaced(known, lambda axis, symbol: self._extent(name, axis, symbol))
        if not isinstance(name, str):
            raise ValueError(f"{self.place}{place}: the name {name!r:.60} is no UTF-8 text")
        known = self._given(name, known, kind)
        if known.is_open:
            if follows:
                self.model.followers += 1
            else:
                self.model.open.append(OpenValue(name, known.shape, place == "input" and self.parent is None))
        shape = known.extents or ()
        if not settled and place != "input" and kind is Kind.ACTIVATION:
            self._state(name, shape)
        if known.dtype in UNPLANNED and kind is Kind.ACTIVATION:
            self.model.unplanned.append(f"{name!r} ({known.dtype})")
        stored = self.model.stored.get((name, shape)) if kind is Kind.CONSTANT else None
        self.index[name] = t = len(self.tensors)
        self.tensors.append(Tensor(name, shape, known.dtype, kind, stored))
        self.types.append(known)
        return t

    def _given(self, name: str, known: Type, kind: Kind) -> Type:
        """The type with the caller's shape, which in bodies, where names may repeat, is for open tensors only."""
        if kind is Kind.CONSTANT or name not in self.model.dims.shapes or (self.parent and not known.is_open):
            return known
        shape = self.model.dims.shape(name, known.shape)
        return with_shape(known, shape) if known.is_open else known

    def _state(self, name: str, shape: tuple[int, ...]) -> None:
        """Notes a tensor of which no operator tells all extents; one in a body by its place too."""
        self.model.stated.append((f"{self.place}{name}", shape))

    def _extent(self, name: str, axis: int, symbol: Extent) -> int | None:
        symbols = [symbol] if isinstance(symbol, str) and not symbol.startswith("unk__") else []
        return self.model.dims.extent(*symbols, f"{name}:{axis}")

    def value(self, t: int) -> Array | None:
        """The value of a small constant, None where it is no constant, too large, or cannot be computed."""
        pending = [t]
        while pending:
            top = pending[-1]
            if top in self.values:
                pending.pop()
            elif top not in self.sources:
                self.values[top] = None
            elif missing := [i for i in self._wanted(self.sources[top]) if i not in self.values]:
                pending += missing
            else:
                self._evaluate(self.sources[top])
        return self.values[t]

    @staticmethod
    def _wanted(source: _Source) -> list[int]:
        """The inputs whose values decide the result; of Shape and Size the type alone does."""
        typed = source.node.op_type in ("Shape", "Size") or _is_never(source)
        return [] if typed else [i for i in source.inputs if i >= 0]

    def _evaluate(self, source: _Source) -> None:
        """Puts the values of all outputs of a node into `values`."""
        values: Sequence[Array | None] | None
        if source.node.op_type == "Constant":
            values = [fold.attribute_value(source.node)]
        elif source.node.op_type in ("Shape", "Size"):
            values = [fold.shape_value(source.node, self.types[source.inputs[0]].extents or ())]
        elif _is_never(source):
            shape = self.types[source.inputs[0]].extents
            values = [np.zeros(shape, np.bool_)] if shape and fold.is_small(source.node, [], shape) else None
        else:
            known = self.types[source.outputs[0]] if source.outputs and source.outputs[0] >= 0 else None
            values = self._referenced(source.node, source.inputs, known)
        for position, t in enumerate(source.outputs):
            if t >= 0:
                self.values[t] = values[position] if values and position < len(values) else None

    def _referenced(self, node: NodeProto, inputs: Sequence[int], known: Type | None) -> Sequence[Array | None] | None:
        """The outputs by onnx's reference, where the inputs have values and the result is small."""
        values = [self.value(i) if i >= 0 else None for i in inputs]
        shape = known.extents if known else None
        absent = any(value is None for value, i in zip(values, inputs, strict=True) if i >= 0)
        if absent or not fold.is_small(node, values, shape) or self.model.evaluations >= fold.MOST_EVALUATIONS:
            return None
        self.model.evaluations += 1
        return fold.evaluated(node, values, self.model.opsets)

    # -- nodes -----------------------------------------------------------------------------------------------

    def _node(self, node: NodeProto, place: str) -> None:
        self.model.walked.add("operators")
        inputs = tuple(self.find(name, place) if name else -1 for name in node.input)
        if bodies_of(node) or is_search(node):
            self.model.add_control(self, node, inputs, place)
            return
        follows = self.follows(inputs)
        types = self.output_types(node, inputs, place, follows=follows)
        if self._is_constant(node, inputs):
            self._add_constants(node, inputs, types, place)
            return
        if node.op_type == "Pad":
            self._check_reflection(node, inputs, place)
        outputs = tuple(
            self.add(name, known, place, follows=follows) if name else -1
            for name, known in zip(node.output, types, strict=True)
        )
        if follows:
            self.unsure.update(outputs)
        elif has_limits(node) and (self.model.dims.values or any(known and known.is_open for known in types)):
            self._check_reach(node, inputs, outputs, place)
        if self._is_steady(node, inputs):
            self.steady.update(outputs)
            self.sources.update(dict.fromkeys(outputs, _Source(node, inputs, outputs)))
        self.op(node, inputs, outputs)

    def follows(self, inputs: Sequence[int]) -> bool:
        """Whether one of `inputs` depends on an open extent."""
        return any(self.types[i].is_open or i in self.unsure for i in inputs if i >= 0)

    def _add_constants(self, node: NodeProto, inputs: tuple[int, ...], types: list[Type | None], place: str) -> None:
        """Adds the outputs of a node whose result never changes; where an extent is open, the value gives it."""
        self.model.folded += node.op_type != "Constant"
        if self._is_another_name(node):
            self.rename(node.output[0], inputs[0], place)
            return
        values: Sequence[Array | None] = ()
        if any(known is None or known.is_open for known, name in zip(types, node.output, strict=True) if name):
            values = self._referenced(node, inputs, types[0]) or ()
        outputs = []
        for position, (name, known) in enumerate(zip(node.output, types, strict=True)):
            value = values[position] if position < len(values) else None
            if known is not None and known.is_open and value is not None:
                known = with_shape(known, tuple(value.shape))
            outputs.append(self.add(name, known, place, Kind.CONSTANT) if name else -1)
        source = _Source(node, inputs, tuple(outputs))
        self.sources.update({t: source for t in outputs if t >= 0})

    def _is_another_name(self, node: NodeProto) -> bool:
        """Whether a node gives a constant another name, under which it is the same weights; an output keeps its own."""
        same = node.op_type == "Identity" and not node.domain
        return same and node.output[0] not in {value.name for value in self.proto.output}

    def _is_constant(self, node: NodeProto, inputs: tuple[int, ...]) -> bool:
        """Whether the outputs are known before the model runs."""
        if node.domain not in PURE or node.op_type in RANDOM or (self.model.unfolded and node.op_type != "Constant"):
            return False
        return self._tells_extents(node, inputs) or all(self._known_before(i) for i in inputs if i >= 0)

    def _tells_extents(self, node: NodeProto, inputs: tuple[int, ...]) -> bool:
        """Whether a node tells extents that are known."""
        if node.op_type not in ("Shape", "Size") or node.domain or not inputs or inputs[0] < 0:
            return False
        known = self.types[inputs[0]]
        return not known.is_open and known.dtype not in UNPLANNED

    def _is_steady(self, node: NodeProto, inputs: tuple[int, ...]) -> bool:
        """Whether a node that runs computes the same result in every run, so that shapes may depend on it."""
        if node.domain not in PURE or node.op_type in RANDOM or -1 in inputs:
            return False
        known = all(i in self.steady or self._known_before(i) for i in inputs)
        return (
            known
            or self._tells_extents(node, inputs)
            or (node.op_type in ("Less", "Greater") and len(set(inputs)) == 1)
        )

    def _known_before(self, t: int) -> bool:
        return self.tensors[t].kind is Kind.CONSTANT

    def output_types(
        self, node: NodeProto, inputs: tuple[int, ...], place: str, *, follows: bool = False
    ) -> list[Type | None]:
        """The types of the outputs: from the file, else from onnx's inference for this node and its constant inputs.

        Nothing is inferred from an extent for which the model will be refused anyway.
        """
        names = list(node.output)
        types = [self.hints.get(name) for name in names]
        if node.domain not in PURE:
            self._state_other_domain(node, inputs, place)
        lost = follows and self.model.open and not self.model.trials
        if not all(known and (lost or not known.is_open) for known, name in zip(types, names, strict=True) if name):
            inferred = self._inferred(node, inputs, place)
            where = place[len(self.place) :]
            types = [
                self._at(f"{where}: {name!r}", merged, inferred.get(name), known) if name else None
                for name, known in zip(names, types, strict=True)
            ]
        types = [known or self._asked(name) for name, known in zip(names, types, strict=True)]
        return [self.claimed(name, known, place) for name, known in zip(names, types, strict=True)]

    def _state_other_domain(self, node: NodeProto, inputs: tuple[int, ...], place: str) -> None:
        """Notes what the file alone says of the shapes of an operator of another domain."""
        given = {name: known for name in node.output if (known := self.hints.get(name)) and not known.is_open}
        inferred = self._inferred(node, inputs, place) if given else {}
        for name, known in given.items():
            if name not in inferred or inferred[name].is_open:
                self._state(name, known.extents or ())

    def _asked(self, name: str) -> Type | None:
        """The type that a session infers for a value, where the caller has asked one."""
        from onnx import TypeProto

        content = self.model.dims.types.get(name)
        return None if content is None else read_type(TypeProto.FromString(content))

    def claimed(self, name: str, known: Type | None, place: str) -> Type | None:
        """The types of outputs from the operators, completed by those the file states; remarks contradictions.

        Raises:
            ValueError: the file says another element type.
        """
        claim = self.claims.get(name)
        if claim is None or known is None:
            if claim is not None and not claim.is_open:
                self._state(name, claim.extents or ())
            return known or claim
        if claim.dtype != known.dtype:
            raise ValueError(f"{place}: {name!r}: found {known.dtype} and {claim.dtype} for one value")
        try:
            both = merged(known, claim)
        except ValueError:
            self.model.contradicted.append(f"{name!r} {written(claim)} for {written(known)}")
            return known
        if known.is_open and both is not None and not both.is_open:
            self._state(name, both.extents or ())
        return both

    def _inferred(self, node: NodeProto, inputs: tuple[int, ...], place: str) -> dict[str, Type]:
        import onnx

        version = self.model.opsets.get(node.domain)
        if normalised := normalised_types(node, [self.types[i] if i >= 0 else None for i in inputs], version):
            return normalised
        if has_row(node, version):
            return self.contributed(node, inputs, place)
        if node.domain not in PURE or version is None:
            return {}
        if not onnx.defs.has(node.op_type, max_inclusive_version=version, domain=node.domain):
            raise ValueError(f"{place}: opset {version} of {node.domain or 'ai.onnx'!r} has no such operator")
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
        types = {name: self.types[i].proto for name, i in zip(node.input, inputs, strict=True) if i >= 0}
        imports = [onnx.helper.make_opsetid(domain, number) for domain, number in self.model.opsets.items()]
        try:
            inferred = onnx.shape_inference.infer_node_outputs(
                schema, node, types, self._data(node, inputs), None, imports
            )
        except refusals() as problem:
            raise ImpossibleError(f"{place}: {plain(problem)}") from None
        known = {
            name: self._at(f"{place}: {name!r}", read_type, proto)
            for name, proto in inferred.items()
            if proto.WhichOneof("value")
        }
        known = self._completed(node, inputs, known, version)
        first = self.types[inputs[0]] if inputs and inputs[0] >= 0 else None
        return pooled_types(node, first.shape if first is not None else None, known)

    def typed(self, node: NodeProto, inputs: tuple[int, ...]) -> TypedNode:
        """A node with what is known of its operands."""
        if self.blocked is None:
            self.blocked = blocked_weights(self.proto)
        return TypedNode(
            node,
            tuple(self.types[i] if i >= 0 else None for i in inputs),
            lambda operand: self.value(inputs[operand]) if operand < len(inputs) and inputs[operand] >= 0 else None,
            self.blocked.get(node.output[0]) if node.output else None,
        )

    def contributed(self, node: NodeProto, inputs: tuple[int, ...], place: str) -> dict[str, Type]:
        """The types of outputs of an operator that ONNX Runtime adds."""
        try:
            return contributed(self.typed(node, inputs))
        except refusals() as problem:
            raise ImpossibleError(f"{place}: {plain(problem)}") from None

    def _data(self, node: NodeProto, inputs: tuple[int, ...]) -> dict[str, TensorProto]:
        """The values of small constant inputs, in onnx's form."""
        from onnx import numpy_helper

        values = {name: self.value(i) for name, i in zip(node.input, inputs, strict=True) if i >= 0}
        return {name: numpy_helper.from_array(value, name) for name, value in values.items() if value is not None}

    def _check_reflection(self, node: NodeProto, inputs: tuple[int, ...], place: str) -> None:
        """Refuses a Pad that mirrors more elements than there are; onnx's inference lets it pass, runtimes do not."""
        attributes, shape = dict(_attributes(node)), self.types[inputs[0]].extents
        if attributes.get("mode") != "reflect" or shape is None:
            return
        given = {i: self.value(inputs[i]) for i in (1, 3) if i < len(inputs) and inputs[i] >= 0}
        if any(value is None or value.size > 2 * len(shape) for value in given.values()):
            return  # not known before a run
        lists = {i: value.reshape(-1).tolist() for i, value in given.items() if value is not None}
        amounts, axes = lists.get(1, attributes.get("pads", ())), lists.get(3, range(len(shape)))
        if isinstance(amounts, (list, tuple)) and (problem := _mirrored_beyond(shape, axes, amounts)):
            raise ImpossibleError(f"{place}: {problem}")

    def _check_reach(self, node: NodeProto, inputs: tuple[int, ...], outputs: tuple[int, ...], place: str) -> None:
        """Refuses extents that no values make: those of an output that the caller states, or gives values for."""
        typed, dims = self.typed(node, inputs), self.model.dims
        of_file = {name for name, claim in self.claims.items() if not claim.is_open and name not in dims.shapes}
        names = ["" if name in of_file else name for name in node.output]
        shapes = [self.types[t].extents if name else None for name, t in zip(names, outputs, strict=True)]
        if (further := beyond(typed, shapes)) and self._is_exact(names[further[0]], further[1]):
            number, axis, most = further
            there = f"{most} along axis {axis}" if most else f"nothing along axis {axis}"
            shape = f"{names[number]!r} would be {list(shapes[number] or ())}"
            raise ImpossibleError(f"{place}: {shape}; with operands like these it has at most {there}")
        exact = not dims.bounds and not self.model.largest
        if exact and shapes[0] is not None and (wrong := unequal(typed, shapes[0])):
            raise ImpossibleError(f"{place}: {names[0]!r} would be {list(shapes[0])}: {wrong}")

    def _is_exact(self, name: str, axis: int) -> bool:
        """Whether an extent is that of the run which is planned, not one above it."""
        dims, symbol = self.model.dims, f"{name}:{axis}"
        return not dims.bounds or name in dims.shapes or (symbol in dims.extents and symbol not in dims.bounds)

    def _completed(
        self, node: NodeProto, inputs: tuple[int, ...], types: dict[str, Type], version: int
    ) -> dict[str, Type]:
        """Adds what onnx's inference leaves out: the type of a Dropout's mask, those of scikit-learn's operators."""
        if node.domain == onnx_ml.DOMAIN:
            own = onnx_ml.learned(node, [self.types[i] if i >= 0 else None for i in inputs])
            types |= {name: known for name, known in own.items() if name not in types or types[name].is_open}
        mask = node.output[1] if node.op_type == "Dropout" and len(node.output) > 1 else ""
        if mask and (mask not in types or types[mask].is_open):
            data = self.types[inputs[0]]
            types[mask] = data if version < 10 else tensor_type(_BOOL, data.shape)
        return types

    def op(
        self, node: NodeProto, inputs: tuple[int, ...], outputs: tuple[int, ...], bodies: tuple[Graph, ...] = ()
    ) -> None:
        """Appends the node as an operator with the attributes and operand values that its facts need."""
        kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        version = self.model.opsets.get(node.domain, 1)
        attributes = (*_attributes(node), *self._operands(kind, inputs))
        self.ops.append(Op(node.name, kind, inputs, outputs, attributes, version, bodies))

    def _operands(self, kind: str, inputs: tuple[int, ...]) -> tuple[tuple[str, Value], ...]:
        """The values of the constant operands that decide what the operator does to memory."""
        operands = []
        for operand in facts("onnx", kind).operands:
            if operand < len(inputs) and inputs[operand] >= 0:
                value = self.value(inputs[operand])
                if value is not None and value.size <= 64 and value.dtype.kind in "iufb":
                    operands.append((f"operand {operand}", tuple(value.reshape(-1).tolist())))
        return tuple(operands)

    # -- the end ---------------------------------------------------------------------------------------------

    def _remarks(self) -> tuple[str, ...]:
        remarks = [*self.model.remarks, *self.model.dims.remarks()]
        if wrong := self.model.contradicted:
            more = f" and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
            remarks.append(f"shapes in the file that its operators contradict: {', '.join(wrong[:_MOST_NAMED])}{more}")
        if self.model.folded:
            remarks.append(f"{self.model.folded} operators give the same result every time and count as constants")
        if names := self.model.unplanned:
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            remarks.append(f"memory from the heap, not planned: {', '.join(names[:_MOST_NAMED])}{more}")
        return tuple(remarks)


def _mirrored_beyond(shape: Sequence[int], axes: Sequence[int], amounts: Sequence[Any]) -> str:
    """What is wrong where an axis is to be mirrored further than its elements reach; empty where none is.

    >>> _mirrored_beyond((1, 4), (1,), (3, 3)), _mirrored_beyond((1, 4), (1,), (0, 4))
    ('', 'mirrors 4 elements of axis 1, which has 4; runtimes mirror at most 3 there')
    """
    for axis, before, after in zip(axes, amounts, amounts[len(amounts) // 2 :], strict=False):
        if not -len(shape) <= axis < len(shape):
            continue
        count, most = shape[axis] + min(before, 0) + min(after, 0), max(before, after, 0)
        if most and most >= count:
            there = f"runtimes mirror at most {max(count - 1, 0)} there"
            return f"mirrors {most} elements of axis {axis}, which has {count}; {there}"
    return ""


def _is_never(source: _Source) -> bool:
    """Whether a node is `x < x` or `x > x`, which no element fulfils."""
    return source.node.op_type in ("Less", "Greater") and len(set(source.inputs)) == 1 and min(source.inputs) >= 0


def _attributes(node: NodeProto) -> tuple[tuple[str, Value], ...]:
    """The small attributes of a node in the file's order: numbers, short texts, short lists of numbers."""
    attributes: list[tuple[str, Value]] = []
    for a in node.attribute:
        if a.HasField("i"):
            attributes.append((a.name, a.i))
        elif a.HasField("f") and isfinite(a.f):
            attributes.append((a.name, a.f))
        elif a.HasField("s") and len(a.s) <= 64:
            attributes.append((a.name, a.s.decode("utf-8", "replace")))
        elif 0 < len(a.ints) <= 64:
            attributes.append((a.name, tuple(a.ints)))
    return tuple(attributes)
