"""Every operator of the installed packages stands in its table, and the conditions say when bytes stay as they are."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import tflite

from modelplan import Graph, Op, Tensor
from modelplan.checking.verifier import semantics
from modelplan.checking.verifier.moves import moves_of
from modelplan.checking.verifier.places import MOVING, is_known
from modelplan.checking.verifier.program import graph_program
from modelplan.checking.verifier.values import golden_values
from modelplan.checking.verifier.verdicts import Skipped
from modelplan.formats.node_keys import NodeKeys, node_keys
from modelplan.formats.onnx.onnx_contrib import ROWS
from modelplan.ops import facts
from modelplan.ops import onnx as onnx_table
from modelplan.ops import tflite as tflite_table
from modelplan.ops.op_facts import OpFacts
from modelplan.ops.views import view_start
from modelplan.primitives.errors import RequestError
from modelplan.rewriting.reordering import reordered
from modelplan.rewriting.striped_onnx import layers as onnx_layers
from modelplan.rewriting.striped_tflite import layers as tflite_layers

#: The newest operator set of ONNX that the table follows.
NEWEST_OPSET = 28


def test_every_onnx_operator_is_in_its_table() -> None:
    schemas = onnx.defs.get_all_schemas_with_history()
    names = {f"{s.domain}.{s.name}" if s.domain else s.name for s in schemas}
    assert len(names) > 200
    assert not names - onnx_table.OPERATORS.keys()


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < NEWEST_OPSET, reason="an older onnx lacks the newest operators")
def test_the_onnx_table_names_only_operators_that_exist() -> None:
    names = {f"{s.domain}.{s.name}" if s.domain else s.name for s in onnx.defs.get_all_schemas_with_history()}
    own = {name for name in onnx_table.OPERATORS if not name.startswith("com.microsoft.")}
    assert own - names == {"SimplifiedLayerNormalization"}  # ONNX Runtime has it beside onnx's own
    added = {".".join(filter(None, row)) for row in ROWS}
    assert {name for name in onnx_table.OPERATORS if name not in own | added} == {"com.microsoft.NhwcFusedConv"}


def test_every_tflite_builtin_is_in_its_table() -> None:
    names = {name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
    assert len(names) > 200
    assert names == tflite_table.OPERATORS.keys()


@pytest.mark.parametrize(
    ("table", "rules"), [(tflite_table.OPERATORS, tflite_layers.RULES), (onnx_table.OPERATORS, onnx_layers.RULES)]
)
def test_a_row_names_a_rule_that_stripes_have_or_says_why_it_is_not_split(
    table: dict[str, OpFacts], rules: dict[str, object]
) -> None:
    assert {kind: row.rows for kind, row in table.items() if row.rows and row.rows not in rules} == {}
    assert rules.keys() == {row.rows for row in table.values() if row.rows}
    assert [kind for kind, row in table.items() if len(row.unsplit.format(kind=kind).split()) < 4] == []
    assert [kind for kind, row in table.items() if (row.any_values or row.fused) and not row.rows] == []


@pytest.mark.parametrize("table", [tflite_table.OPERATORS, onnx_table.OPERATORS])
def test_a_row_has_what_its_other_facts_need(table: dict[str, OpFacts]) -> None:
    shared = {kind for kind, row in table.items() if row.passes_on or row.group in ("view", "join")}
    assert [kind for kind, row in table.items() if row.view_if and kind not in shared] == []
    assert [
        kind for kind, row in table.items() if (row.passes_on or row.group in ("join", "split")) and not row.access
    ] == []
    assert [kind for kind, row in table.items() if row.reads and not row.reads.source] == []
    assert [kind for kind, row in table.items() if row.weights and not row.access] == []
    assert [kind for kind, row in table.items() if row.overwrite_if and not row.overwrite] == []
    assert [kind for kind, row in table.items() if (row.group in ("join", "split")) != bool(row.parts)] == []


@pytest.mark.parametrize(("form", "table"), [("tflite", tflite_table.OPERATORS), ("onnx", onnx_table.OPERATORS)])
def test_the_verifier_knows_what_may_be_overwritten(form: str, table: dict[str, OpFacts]) -> None:
    """By tables of its own: it takes what planning does, and has no row that planning does not know."""
    planned = {kind: set(row.overwrite) for kind, row in table.items() if row.overwrite}
    first, every, other = semantics.FIRST_OPERAND[form], semantics.ANY_OPERAND[form], semantics.OTHER_OPERAND
    allowed = {kind: {0} for kind in first} | {kind: {operand} for kind, operand in other.items() if kind in table}
    assert planned.keys() == allowed.keys() | every
    assert {kind: operands for kind, operands in planned.items() if not operands <= allowed.get(kind, operands)} == {}
    rows = {kind for kind in planned if table[kind].group in ("row", "update")}
    assert rows
    assert not rows & semantics.POINTWISE


@pytest.mark.parametrize(("form", "table"), [("tflite", tflite_table.OPERATORS), ("onnx", onnx_table.OPERATORS)])
def test_the_verifier_follows_what_may_keep_its_bytes(form: str, table: dict[str, OpFacts]) -> None:
    """A view that planning makes of an operator, and a join or split in place, is proved by places or by a name."""
    passed = {kind for kind, row in table.items() if row.passes_on or row.group in ("join", "split")}
    assert passed
    assert passed - MOVING == set()
    assert {kind for kind, row in table.items() if row.view is not None} == semantics.VIEWS[form]


def test_the_verifier_knows_the_rows_that_planning_takes() -> None:
    assert {kind for kind, row in tflite_table.OPERATORS.items() if row.rows and not is_known(kind)} == set()


def test_a_format_without_tables_shares_nothing_and_is_not_written(tmp_path: Path) -> None:
    """What is there for files of one format is refused for another, not done as if it were that one."""
    tensors = tuple(Tensor(name, (4,), "int8") for name in "xyz")
    graph = Graph("g", "else", tensors, (Op("", "Neg", (0,), (1,)), Op("", "Neg", (0,), (2,))), (0,), (1, 2))  # type: ignore[arg-type]
    program = graph_program(graph, [0, 1])
    assert facts("else", "Neg") == OpFacts()
    assert node_keys(b"", graph) == NodeKeys("", {})
    assert moves_of(program, program.steps[0]) == []
    with pytest.raises(Skipped, match="models of the format 'else'"):
        golden_values(program, tmp_path)
    with pytest.raises(RequestError, match="models of the format 'else' are not written in another order"):
        reordered(b"", graph, [1, 0])


def test_an_unknown_operator_shares_nothing() -> None:
    row = facts("onnx", "com.example.Relu")
    assert (row.access, row.view, row.overwrite, row.parts) == (None, None, (), None)


def start(
    format: str,  # noqa: A002
    kind: str,
    shape: tuple[int, ...],
    out: tuple[int, ...],
    dtypes: tuple[str, str] = ("float32", "float32"),
    version: int = 18,
    inputs: int = 1,
    **attributes: object,
) -> int | None:
    """Where the row of `kind` says that the output starts in the input's bytes."""
    tensors = (Tensor("x", shape, dtypes[0]), Tensor("y", out, dtypes[1]))
    named = tuple((name.replace("operand_", "operand "), value) for name, value in attributes.items())
    op = Op("", kind, (0, *[-1] * (inputs - 1)), (1,), named, version)  # type: ignore[arg-type]
    assert facts(format, kind).may_be_view
    return view_start(Graph("g", format, tensors, (op,), (0,), (1,)), op)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: start("onnx", "Transpose", (1, 4, 1, 3), (4, 1, 3, 1), perm=(1, 0, 3, 2)), 0),
        (lambda: start("onnx", "Transpose", (4, 3), (3, 4), perm=(1, 0)), None),
        (lambda: start("tflite", "TRANSPOSE", (1, 4, 3), (4, 3, 1), operand_1=(1, 2, 0)), 0),
        (lambda: start("onnx", "Dropout", (4,), (4,), version=7), 0),
        (lambda: start("onnx", "Dropout", (4,), (4,), version=6), None),
        (lambda: start("onnx", "Dropout", (4,), (4,), version=6, is_test=1), 0),
        (lambda: start("onnx", "Dropout", (4,), (4,), version=13), 0),
        (lambda: start("onnx", "Cast", (4,), (4,)), 0),
        (lambda: start("onnx", "Cast", (4,), (4,), ("float32", "int32")), None),
        (lambda: start("onnx", "BitCast", (4,), (8,), ("float32", "float16")), 0),
        (lambda: start("onnx", "Expand", (1, 4), (1, 1, 4)), 0),
        (lambda: start("onnx", "Expand", (1, 4), (2, 4)), None),
        (lambda: start("onnx", "Pad", (4,), (4,), operand_1=(0, 0)), 0),
        (lambda: start("onnx", "Pad", (4,), (4,), operand_1=(-1, 1)), None),
        (lambda: start("onnx", "ReduceMean", (4, 1), (4,)), 0),
        (lambda: start("onnx", "ReduceMean", (4, 2), (4,)), None),
        (lambda: start("tflite", "SUM", (4, 1), (4,), ("int8", "int8"), requantises=True), None),
        (lambda: start("onnx", "Slice", (1, 8, 3), (1, 2, 3), inputs=4, operand_1=(4,), operand_3=(1,)), 48),
        (lambda: start("onnx", "Slice", (2, 8, 3), (2, 2, 3), inputs=4, operand_1=(4,), operand_3=(1,)), None),
        (lambda: start("tflite", "SLICE", (8, 3), (2, 3), operand_1=(4, 0)), 48),
        (lambda: start("tflite", "STRIDED_SLICE", (8, 3), (2, 3), operand_1=(4, 0), operand_3=(1, 1)), 48),
        (lambda: start("tflite", "STRIDED_SLICE", (8, 3), (8, 3), operand_1=(7, 0), operand_3=(-1, 1)), None),
        (lambda: start("tflite", "GATHER", (8, 3), (2, 3), operand_1=(4, 5)), 48),
        (lambda: start("tflite", "GATHER", (8, 3), (2, 3), operand_1=(5, 4)), None),
        (lambda: start("tflite", "DEPTH_TO_SPACE", (1, 2, 2, 4), (1, 2, 2, 4), block_size=1), 0),
        (lambda: start("onnx", "Concat", (4,), (4,), axis=0), 0),
    ],
)  # fmt: skip
def test_views_under_a_condition(found: object, expected: int | None) -> None:
    assert found() == expected  # type: ignore[operator]


@pytest.mark.parametrize(
    ("version", "attributes", "allowed"),
    [(6, {}, False), (6, {"is_test": 1}, True), (9, {}, True), (14, {}, True), (14, {"training_mode": 1}, False)],
)
def test_batch_normalisation_overwrites_when_it_does_not_learn(
    version: int, attributes: dict[str, int], allowed: bool
) -> None:
    row = facts("onnx", "BatchNormalization")
    op = Op("", "BatchNormalization", (0,), (1,), tuple(attributes.items()), version)
    tensors = (Tensor("x", (4,), "float32"), Tensor("y", (4,), "float32"))
    assert row.overwrite_if is not None
    assert row.overwrite_if(Graph("g", "onnx", tensors, (op,), (0,), (1,)), op) is allowed
