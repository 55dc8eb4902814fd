"""What TFLM keeps of unusual types: 4-bit values unpacked, handles of variables nowhere. Heads as the wheel reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import tflite
import tflite_models
from tflite_models import OpRow, Sub, TensorRow, Writer

from modelplan import Graph, Options, height, load, plan
from modelplan.cli import main
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.planner import predicted_head
from modelplan.runtimes.tflm.runner import run_tflm

pytest.importorskip("tflite_micro")

INT4, FLOAT, RESOURCE = tflite.TensorType.INT4, tflite.TensorType.FLOAT32, tflite.TensorType.RESOURCE
NAMES = {
    "RESHAPE": "Reshape", "VAR_HANDLE": "VarHandle", "ASSIGN_VARIABLE": "AssignVariable",
    "READ_VARIABLE": "ReadVariable", "ADD": "Add",
}  # fmt: skip


class Named(Writer):
    """Writes empty options, and the name of a variable."""

    def options(self, kind: str, calls: Sequence[int]) -> tuple[int, int]:
        name = self.b.CreateString("v") if kind == "VAR_HANDLE" else None
        getattr(tflite, f"{NAMES[kind]}OptionsStart")(self.b)
        if name is not None:
            tflite.VarHandleOptionsAddSharedName(self.b, name)
        return getattr(tflite.BuiltinOptions, f"{NAMES[kind]}Options"), getattr(tflite, f"{NAMES[kind]}OptionsEnd")(
            self.b
        )


def quarter() -> Sub:
    return Sub([("x", INT4, (1, 100), None), ("y", INT4, (100, 1), None)], [("RESHAPE", (0,), (1,), ())], (0,), (1,))


def counting() -> Sub:
    """y = x + v; v = y."""

    def t(name: str) -> TensorRow:
        return name, FLOAT, (1, 100), None

    ops: list[OpRow] = [("VAR_HANDLE", (), (1,), ()), ("READ_VARIABLE", (1,), (2,), ()), ("ADD", (0, 2), (3,), ()),
           ("ASSIGN_VARIABLE", (1, 3), (), ())]  # fmt: skip
    return Sub([t("x"), ("handle", RESOURCE, (1,), None), t("read"), t("y")], ops, (0,), (3,))


@pytest.mark.parametrize(("sub", "head", "rounds"), [(quarter(), 224, 0), (counting(), 1200, 2)])
def test_heads_are_what_tflm_reports(tmp_path: Path, sub: Sub, head: int, rounds: int) -> None:
    content = tflite_models.model(sub, writer=Named())
    (tmp_path / "m.tflite").write_bytes(content)
    graph = load(tmp_path / "m.tflite")
    assert isinstance(graph, Graph)
    made = plan(graph, Options("tflm", "file", "none", "tflm-greedy"))
    assert height(made.problem, made.placement) == head
    assert predicted_head(read_tflite(content, "m")) == head
    assert run_tflm(content, rounds=rounds).head == head


def test_four_bit_values_stay_packed_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(tflite_models.model(quarter(), writer=Named()))
    graph = load(tmp_path / "m.tflite")
    assert isinstance(graph, Graph)
    made = plan(graph, Options("litert", "file", "none", "tflm-greedy", alignment=16))
    assert height(made.problem, made.placement) == 64 + 50


def test_a_model_with_a_variable_is_packed(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(tflite_models.model(counting(), writer=Named()))
    packed = str(tmp_path / "packed.tflite")
    assert main(["pack", str(tmp_path / "m.tflite"), "-o", packed, "--force"]) == 0
    assert main(["verify", packed]) == 0
