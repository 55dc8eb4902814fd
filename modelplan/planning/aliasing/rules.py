"""Which rule of which mode lets an output share an operand's bytes.

The rules themselves are data: the operator's row in `ops/` and the runtime's `Sharing` in `runtimes/`. docs/aliasing.md
has the forms, the formulas and the reasons.
"""

from collections.abc import Iterator

from modelplan.model import Graph, InPlace, Kind, Runtime, Sharing
from modelplan.ops import facts
from modelplan.ops.views import view_start
from modelplan.primitives.lazy_records import dataclass

MODES = {
    "runtime": "what the runtime does by itself, less what it gets wrong",
    "none": "every tensor has bytes of its own",
    "views": "operators that leave the bytes as they are share their input's memory",
    "safe": "views, and overwrites and partial overlaps that were proved for the kernels of that runtime",
    "max": "all that the operators' meaning allows; joins, splits and slices in place where that lowers the peak",
}


@dataclass(frozen=True, slots=True)
class ViewRule:
    """Tensor `tensor` is bytes of tensor `source`, from `delta` bytes after its start."""

    tensor: int
    source: int
    delta: int


def kinds_with_views(graph: Graph, mode: str, runtime: Runtime) -> set[str]:
    """The kinds of operators among which `view_of` finds views in `mode`."""
    if mode == "none":
        return set()
    rows = {kind: facts(graph.format, kind) for kind in graph.kinds}
    kinds = {kind for kind, row in rows.items() if row.may_be_view}
    return kinds & runtime.sharing.views if mode == "runtime" else kinds


def kinds_with_overwrites(graph: Graph, mode: str, runtime: Runtime) -> set[str]:
    """The kinds of operators among which `overwrites` finds any in `mode`."""
    if mode in ("none", "views"):
        return set()
    kinds = {kind for kind in graph.kinds if facts(graph.format, kind).overwrite}
    if mode == "max":
        return kinds
    return kinds & (runtime.sharing.proved if mode == "safe" else runtime.sharing.overwrites).keys()


def view_of(graph: Graph, index: int, mode: str, runtime: Runtime) -> ViewRule | None:
    """Output 0 of op `index` as a view of an operand, where `mode` allows it and it is all of the operand."""
    op = graph.ops[index]
    row = facts(graph.format, op.kind)
    operand = row.view or 0
    if mode == "none" or not op.outputs or op.outputs[0] < 0 or operand >= len(op.inputs) or op.inputs[operand] < 0:
        return None
    view, source = op.outputs[0], op.inputs[operand]
    if {graph.tensors[view].kind, graph.tensors[source].kind} != {Kind.ACTIVATION}:
        return None
    if mode == "runtime" and not _shares_view(runtime.sharing, graph, op.kind, view, source):
        return None
    delta = _start(graph, index, mode)
    if delta != 0 or graph.tensors[view].nbytes != graph.tensors[source].nbytes:
        return None  # a part that outlives the rest would keep the whole alive: decided site by site
    return ViewRule(view, source, delta)


def part_of(graph: Graph, index: int) -> ViewRule | None:
    """Output 0 of op `index` as a view of operand 0, where it is one run of its bytes, and not all of them."""
    op = graph.ops[index]
    row = facts(graph.format, op.kind)
    ends = (*op.inputs[:1], *op.outputs[:1])
    if row.passes_on != "part" or len(ends) < 2 or min(ends) < 0:
        return None
    delta, part, whole = view_start(graph, op), op.outputs[0], op.inputs[0]
    if delta is None or graph.tensors[part].nbytes >= graph.tensors[whole].nbytes:
        return None
    return ViewRule(part, whole, delta)


def _start(graph: Graph, index: int, mode: str) -> int | None:
    op = graph.ops[index]
    always = facts(graph.format, op.kind).view is not None
    return view_start(graph, op) if always or mode == "max" else None


def _shares_view(sharing: Sharing, graph: Graph, kind: str, view: int, source: int) -> bool:
    if kind not in sharing.views:
        return False
    return sharing.at_graph_ends or not (view in graph.outputs or (source in graph.inputs and not sharing.same_shape))


def overwrites(graph: Graph, index: int, mode: str, runtime: Runtime) -> Iterator[tuple[int, str]]:
    """(operand, rule) of the overwrites that the mode lets op `index` try."""
    for operand, rule in overwrites_of_alike(graph, index, mode, runtime):
        if not declines(graph, index, operand, mode, runtime):
            yield operand, rule


def overwrites_of_alike(graph: Graph, index: int, mode: str, runtime: Runtime) -> list[tuple[int, str]]:
    """The overwrites of all ops with equal attributes; the runtime may decline single ones by their tensors."""
    op = graph.ops[index]
    row = facts(graph.format, op.kind)
    if mode in ("none", "views") or not op.outputs or op.outputs[0] < 0 or not row.overwrite:
        return []
    if row.overwrite_if is not None and not row.overwrite_if(graph, op):
        return []
    there = [operand for operand in row.overwrite if operand < len(op.inputs) and op.inputs[operand] >= 0]
    rules = [(operand, _rule(graph, index, operand, mode, runtime.sharing)) for operand in there]
    return [(operand, f"overwrite: {rule}") for operand, rule in rules if rule]


def _rule(graph: Graph, index: int, operand: int, mode: str, sharing: Sharing) -> str:
    op = graph.ops[index]
    x, y = graph.tensors[op.inputs[operand]], graph.tensors[op.outputs[0]]
    if mode == "max":
        return f"{op.kind} is {facts(graph.format, op.kind).group}"
    if mode == "safe":
        proved = sharing.proved.get(op.kind, InPlace(()))
        known = not proved.dtypes or (x.dtype in proved.dtypes and y.dtype in proved.dtypes | {"bool"})
        return f"{op.kind} of {x.dtype} was proved in place" if operand in proved.operands and known else ""
    if operand not in sharing.overwrites.get(op.kind, ()):
        return ""
    return f"the runtime does so for {op.kind}"


def declines(graph: Graph, index: int, operand: int, mode: str, runtime: Runtime) -> bool:
    """Whether the runtime by itself keeps operand and output apart although it overwrites in operators of this kind."""
    if mode != "runtime":
        return False
    sharing, source, target = runtime.sharing, graph.ops[index].inputs[operand], graph.ops[index].outputs[0]
    x, y = graph.tensors[source], graph.tensors[target]
    if sharing.sole_reader and len(graph.readers[source]) != 1:
        return True
    if not sharing.at_graph_ends and (source in graph.inputs or target in graph.outputs):
        return True
    return x.nbytes < sharing.least_bytes or (sharing.same_shape and x.shape != y.shape)
