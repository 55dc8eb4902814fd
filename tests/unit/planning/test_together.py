"""Several models in one memory: who shares what with whom, drawn as small problems; the header; the map."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from graphs import graph
from tflm_models import T, single

from modelplan import (
    Buffer,
    Kind,
    Member,
    ModelError,
    Placement,
    Problem,
    RequestError,
    ShareRequest,
    height,
    place,
    share_memory,
)
from modelplan.answers.drawing import of_shared
from modelplan.answers.shared_plan import ModelPart, SharedPlan, TflmArenas
from modelplan.outputs import render
from modelplan.outputs.firmware.shared_header import shared_header
from modelplan.planning.together.joint_placing import planned_together
from modelplan.planning.together.relating import related
from modelplan.rewriting.shared_plan_files import planned_files
from modelplan.runtimes.generic import GENERIC
from modelplan.runtimes.tflm.file import FileModel, FileSubgraph, FileTensor
from modelplan.runtimes.tflm.other_arenas import SharedArena
from modelplan.runtimes.tflm.planner import Request

#: What TFLM's headers declare of what ours use.
STUBS = {
    "lite/c/common.h": "#pragma once\nenum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };\n",
    "lite/micro/compatibility.h": "#pragma once\n#define TF_LITE_REMOVE_VIRTUAL_DELETE void operator delete(void*) {}",
    "lite/micro/micro_log.h": "#pragma once\ninline void MicroPrintf(const char*, ...) {}\n",
    "lite/micro/memory_planner/micro_memory_planner.h": """#pragma once
#include <cstddef>
#include "tensorflow/lite/c/common.h"
namespace tflite {
class MicroMemoryPlanner {
 public:
  virtual ~MicroMemoryPlanner() {}
  virtual TfLiteStatus AddBuffer(int, int, int) = 0;
  virtual TfLiteStatus AddBuffer(int, int, int, int) { return kTfLiteError; }
  virtual size_t GetMaximumMemorySize() = 0;
  virtual int GetBufferCount() = 0;
  virtual TfLiteStatus GetOffsetForBuffer(int, int*) = 0;
  virtual TfLiteStatus Init(unsigned char*, int) { return kTfLiteOk; }
  virtual bool preserves_all_tensors() const = 0;
};
}
""",
}


def part(name: str, rows: list[tuple[str, int, int, int]], kinds: dict[str, Kind] | None = None) -> ModelPart:
    """A model with a buffer for each tensor, as name, bytes, first step, end; the first is its input, the last its
    output.
    """
    sizes = {label: size for label, size, *_ in rows}
    own = Problem.of(Buffer(n, s, a, b, members=(Member(i),)) for i, (n, s, a, b) in enumerate(rows))
    made = replace(graph("", sizes, rows[0][0], rows[-1][0], kinds), name=name)
    return ModelPart(name, name, made, GENERIC, "none", own, height(own, place(own)))


def together(
    *parts: ModelPart, in_turn: tuple[str, ...] = (), pipelines: tuple[str, ...] = (), keep: tuple[str, ...] = ()
) -> SharedPlan:
    relation = related({p.name: p.graph for p in parts}, [one.split(",") for one in in_turn], pipelines, keep)
    return planned_together(parts, relation)


A = part("A", [("x", 10, 0, 2), ("h", 30, 1, 3), ("y", 8, 2, 4)])
B = part("B", [("x", 8, 0, 2), ("h", 20, 1, 3), ("y", 6, 2, 4)])
C = part("C", [("x", 8, 0, 1), ("y", 50, 0, 2)])
S = part("S", [("x", 5, 0, 1), ("state", 7, 0, 2), ("y", 5, 1, 2)], {"state": Kind.STATE})


def test_models_share_nothing_unless_they_take_turns() -> None:
    apart, turns = together(A, B, C), together(A, B, C, in_turn=("all",))
    assert apart.height == apart.placement.lower_bound == A.alone + B.alone + C.alone == 40 + 28 + 58
    assert turns.height == turns.placement.lower_bound == 58
    assert apart.in_turn == 58
    assert not len(turns.problem.conflicts)


def test_one_model_that_meets_both_others_is_added() -> None:
    made = together(A, B, C, in_turn=("A,C",))
    assert made.height == made.placement.lower_bound == 58 + 28


def test_a_model_takes_turns_with_two_that_meet() -> None:
    """A and B are stacked, C lies over both: 40 + 28 bytes are more than C needs."""
    made = together(A, B, C, in_turn=("A,C", "B,C"))
    assert made.height == made.placement.lower_bound == 68


def test_state_is_never_shared() -> None:
    made = together(S, C, in_turn=("all",))
    assert made.height == 7 + 58
    low = made.offsets_of(0)[1]
    assert all(low + 7 <= at or at + size <= low for at, size in zip(made.offsets_of(1), (8, 50), strict=True))


def test_a_pipeline_has_its_tensor_once() -> None:
    made = together(A, B, pipelines=("A:y=B:x",))
    assert made.offsets_of(0)[2] == made.offsets_of(1)[0]
    assert made.height == made.placement.lower_bound == 40
    (joint,) = [b for b in made.problem if "=" in b.name]
    assert (joint.name, joint.size, joint.start, joint.end) == ("A: y = B: x", 8, 2, 6)


def test_what_two_models_read_lives_until_both_have() -> None:
    made = together(A, B, C, pipelines=("A=B", "A=C"))
    (joint,) = [b for b in made.problem if "=" in b.name]
    assert (joint.start, joint.end) == (2, 9)
    assert made.relation.units == ((0, 1, 2),)
    assert made.height == 58


def test_models_of_a_pipeline_run_side_by_side_in_its_order() -> None:
    made = together(C, B, A, pipelines=("A=B",))
    assert [made.parts[m].name for m in made.relation.order] == ["C", "A", "B"]
    assert made.relation.take_turns(1, 2)
    assert not made.relation.take_turns(0, 1)


def test_what_is_kept_is_used_by_nothing_else() -> None:
    made = together(A, C, in_turn=("all",), keep=("A:outputs", "A:x"))
    assert made.height == 18 + 58
    assert {int(made.problem.end[i]) for i in (0, 2)} == {6}


def test_the_referee_sees_models_that_meet() -> None:
    from modelplan import BrokenPlanError, check

    made = together(A, B)
    with pytest.raises(BrokenPlanError, match="A: h"):
        check(made.problem, Placement(np.zeros(len(made.problem), dtype=np.int64)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"in_turn": ("A",)}, "names one model"),
        ({"in_turn": ("A,D",)}, "no model 'D'; there are: A, B"),
        ({"pipelines": ("A=B", "B=A")}, "circle: A -> B -> A"),
        ({"pipelines": ("A:z=B",)}, "A has no output 'z'"),
        ({"keep": ("A:h",)}, "expected A:TENSOR"),
        ({"keep": ("D:outputs",)}, "no model 'D'"),
    ],
)
def test_wrong_relations_are_refused(options: dict[str, tuple[str, ...]], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        together(A, B, **options)


def test_a_tensor_without_memory_cannot_be_handed_on() -> None:
    bare = replace(A, problem=replace(A.problem, members=()))
    with pytest.raises(RequestError, match="no bytes in the arena"):
        together(bare, B, pipelines=("A=B",))


def test_names_with_equals_signs_and_colons_are_found() -> None:
    odd = part("A", [("x", 4, 0, 1), ("y:0=z", 8, 0, 2)])
    made = together(odd, B, pipelines=("A:y:0=z=B:x",))
    assert made.relation.pipes[0].source.tensor == 1


# Files ---------------------------------------------------------------------------------------------------------------


def test_a_pipeline_of_other_scales_is_refused(models: Path) -> None:
    files = {"a": models / "autoencoder.tflite", "b": models / "autoencoder.tflite"}
    with pytest.raises(RequestError, match=r"quantisation 1 scales from .* is not 1 scales from"):
        share_memory(ShareRequest(files, pipelines=["a=b"]))


def test_a_file_that_carries_a_plan_keeps_it_as_a_block(models: Path, tmp_path: Path) -> None:
    from modelplan.cli import main

    packed = tmp_path / "packed.tflite"
    assert main(["pack", str(models / "resnet8.tflite"), "-o", str(packed), "--alias", "safe", "--force"]) == 0
    files = {"packed": packed, "b": models / "autoencoder.tflite"}
    made = share_memory(ShareRequest(files, in_turn=[["all"]]))
    assert made.parts[0].alias == "carried"
    assert len(made.parts[0].problem) == 1
    assert made.height == max(p.alone for p in made.parts)
    assert [len(f.tensors) for f in planned_files(made).models] == [len(p.graph.tensors) for p in made.parts]
    with pytest.raises(RequestError, match="carries a plan"):
        share_memory(ShareRequest(files, keep=["packed:outputs"], in_turn=[["all"]]))


def test_a_model_that_tflm_refuses_is_refused(corpus: Path, tmp_path: Path) -> None:
    files = corpus / "tflite"
    with pytest.raises(ModelError, match="command stream with fixed addresses"):
        share_memory(ShareRequest({"a": files / "person_detect_vela.tflite", "b": files / "kws_ref_model.tflite"}))
    (tmp_path / "wide.tflite").write_bytes(single("COS", [T("int8", (4,))], [T("int8", (4,))]))
    with pytest.raises(ModelError, match=r"tflm would not run it: op 0 COS"):
        share_memory(ShareRequest({"a": tmp_path / "wide.tflite", "b": files / "kws_ref_model.tflite"}))


def test_a_ring_buffer_that_is_no_variable_is_refused(models: Path, tmp_path: Path) -> None:
    """Its content would lie where other models write."""
    files = {"a": tmp_path / "a.tflite", "b": models / "resnet8.tflite"}
    source, ring = T("int8", (1, 1, 1, 4)), T("int8", (1, 3, 1, 4))
    files["a"].write_bytes(single("CIRCULAR_BUFFER", [source], [ring], custom=True))
    with pytest.raises(ModelError, match="op 0 CIRCULAR_BUFFER keeps state in its output"):
        share_memory(ShareRequest(files))


def test_where_a_tensor_has_two_readers_nothing_writes_over_it(models: Path) -> None:
    files = dict.fromkeys("ab", models / "resnet8.tflite")
    assert [p.alias for p in share_memory(ShareRequest(files, alias="safe")).parts] == ["safe", "safe"]
    kept = share_memory(ShareRequest(files, alias="safe", keep=["a:inputs"]))
    assert [p.alias for p in kept.parts] == ["views", "safe"]


# Header and map ------------------------------------------------------------------------------------------------------


def hostile() -> SharedPlan:
    """Two models with names that would end comments and texts."""
    name = 'x"\n#error out\\'
    tensor = FileTensor(name, 9, (16,), 16, constant=False, variable=False)
    file = FileModel(name, b"model", (FileSubgraph((tensor,), (), (0,), (0,)),))
    one = part("A", [("x", 16, 0, 1)])
    rows = (Request(16, 0, 0, tensor=0),)
    parts = tuple(replace(one, name=f"{name}{i}", file=file, rows=rows, buffer_of=((0, 0),)) for i in (1, 2))
    return planned_together(parts, related({p.name: p.graph for p in parts}, [["all"]]))


def test_the_header_compiles_and_answers(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    for name, text in STUBS.items():
        (tmp_path / "tensorflow" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tensorflow" / name).write_text(text)
    arena = SharedArena(72, 16, (), 256, "x86-64", "reference")
    (tmp_path / "planned.h").write_text(shared_header(hostile(), TflmArenas((), arena, arena, None)))
    (tmp_path / "main.cc").write_text("""
#include "planned.h"
int main() {
  modelplan::SharedMemoryPlanner planner;
  int at = -1;
  if (planner.AddBuffer(16, 0, 0) == kTfLiteOk) return 1;  // before Init
  if (planner.Init(nullptr, 0) != kTfLiteOk || planner.GetOffsetForBuffer(0, &at) == kTfLiteOk) return 2;
  if (planner.AddBuffer(32, 0, 0) == kTfLiteOk) return 3;  // another size than planned
  if (planner.AddBuffer(16, 0, 0, 64) != kTfLiteOk || planner.AddBuffer(16, 0, 0) == kTfLiteOk) return 4;
  if (planner.GetOffsetForBuffer(0, &at) != kTfLiteOk || at != 0) return 5;
  if (planner.Init(nullptr, 0) != kTfLiteOk || planner.Init(nullptr, 0) == kTfLiteOk) return 6;  // two models
  return planner.GetMaximumMemorySize() == 16 ? 0 : 7;
}
""")
    words = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", str(tmp_path), str(tmp_path / "main.cc")]
    done = subprocess.run([*words, "-o", str(tmp_path / "main")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


def test_the_map_has_a_colour_for_each_model() -> None:
    drawing = of_shared(together(A, B, S, in_turn=("all",), pipelines=("A=B",)))
    assert drawing.labels == ("A", "B", "S", "handed from model to model", "kept all the time")
    assert drawing.models == ((0, "A"), (4, "B"), (8, "S"))
    kinds = {name: drawing.labels[kind] for name, kind in zip(drawing.problem.names, drawing.kinds, strict=True)}
    assert kinds["state"] == "kept all the time"
    assert sorted(drawing.kinds.tolist()).count(3) == 1
    assert drawing.claimed == ()
    made = together(A, B)
    assert b"<svg" in svg_of(made)


def test_the_map_does_not_call_free_what_another_model_may_use() -> None:
    made = together(A, B)
    drawing = of_shared(made)
    low, high = drawing.placement.offsets, drawing.placement.offsets + drawing.problem.size
    for model, other in ((0, 1), (1, 0)):
        own = drawing.kinds == other
        begin, end = made.starts[model], made.starts[model] + made.parts[model].steps
        assert (begin, end, low[own].min(), high[own].max()) in drawing.claimed
    assert "another model may use it" in svg_of(made).decode()


def svg_of(made: SharedPlan) -> bytes:
    return cast("bytes", render(made, ".map.svg"))
