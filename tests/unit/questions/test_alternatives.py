"""What a file needs as it stands, what `reorder` and `pack` would make of it, and that every command says the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import graphs
import pytest
import tflite_models

from modelplan import BrokenPlanError, Options, plan
from modelplan.answers.analysis import lower_alternatives
from modelplan.checking.verifier.subject import offline_subject
from modelplan.model import Aliases, Alternative, Member, Merge, Part, Requirement, bounds
from modelplan.model.model_file import ModelFile, Target
from modelplan.outputs.report import plain
from modelplan.outputs.reports.arena_report import alternatives_section, headline
from modelplan.planning import pipeline
from modelplan.planning.aliasing import as_placed
from modelplan.questions.alternatives import (
    alternatives,
    carried_offsets,
    load_file,
    planned_by_itself,
    rewritten_files,
    sized,
    unmodified_requirement,
)
from modelplan.rewriting.packing import packed
from modelplan.runtimes import RUNTIMES, with_kernels
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.metadata import write_plan
from modelplan.runtimes.tflm.planner import ONLINE

TFLM = Target(RUNTIMES["tflm"], "32")
NAMES = ["kws_ref_model", "vww_96_int8", "pretrainedResnet_quant", "dtln_noise_suppression", "wakeword/okay_nabu"]


def file_of(corpus: Path, name: str) -> ModelFile:
    return load_file(str(corpus / "tflite" / f"{name}.tflite"))


@pytest.mark.parametrize("kernels", ["reference", "cmsis-dsp", "esp-nn"])
@pytest.mark.parametrize("name", NAMES)
def test_the_head_of_a_packed_file_is_the_same_everywhere(corpus: Path, name: str, kernels: str) -> None:
    file, target = file_of(corpus, name), Target(with_kernels(TFLM.runtime, kernels), "32")
    written, made = packed(read_tflite(file.content, name), file.graph, "safe", kernels=kernels)
    again = replace(file, content=written.data)
    proved = offline_subject(written, kernels).offline
    stands = pipeline.runtime_plan(file.graph, target.runtime, carried_offsets(again, target.runtime))
    assert proved is not None
    assert carried_offsets(again, target.runtime)
    heads = {
        unmodified_requirement(again, target).head,
        made.head,
        proved.head,
        bounds.height(stands.problem, stands.placement),
    }
    assert len(heads) == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_add_up_to_the_arena(corpus: Path, name: str) -> None:
    needed = unmodified_requirement(file_of(corpus, name), TFLM)
    assert sum(part.nbytes for part in needed.parts) == needed.arena
    assert min(part.nbytes for part in needed.parts) >= 0


def test_alternatives_are_files_that_were_made(corpus: Path) -> None:
    file = file_of(corpus, "vww_96_int8")
    needed, found = unmodified_requirement(file, TFLM), list(alternatives(file, TFLM))
    assert [a.change for a in found] == ["best order", "plan: views share bytes", "plan: in-place outputs"]
    heads = [a.requirement.head for a in found if a.requirement]
    assert [needed.head, *heads] == [73_728, 73_728, 55_296, 36_880]
    assert [a.change for a in lower_alternatives(needed, found)] == [a.change for a in found[1:]]
    shown = plain([alternatives_section(needed, found)])
    assert "no saving: best order" in shown
    assert f"modelplan fit --only plan {file.path} -o packed.tflite --alias safe --kernels reference\n" in shown


def test_a_better_order_comes_before_its_plan(corpus: Path) -> None:
    file = load_file(str(corpus / "crashes" / "tail20794.tflite"))
    found = {a.change: a for a in alternatives(file, TFLM)}
    order, both = found["best order"], found["best order, plan: in-place outputs"]
    assert order.requirement is not None
    assert both.requirement is not None
    assert both.requirement.arena < order.requirement.arena < unmodified_requirement(file, TFLM).arena
    assert [command.split()[3] for command in both.commands] == ["order", "plan"]


@pytest.mark.parametrize(
    "path",
    [
        "tflite/vww_96_int8.tflite",
        "tflite/person_detect.tflite",
        "tflite/person_detect_vela.tflite",
        "tflite/hello_world_int8.tflite",
        "crashes/tail20794.tflite",
        "crashes/if7_exponential.tflite",
    ],
)
def test_what_is_left_out_needs_no_less(corpus: Path, path: str) -> None:
    file = load_file(str(corpus / path))
    needed = unmodified_requirement(file, TFLM)
    every, some = list(alternatives(file, TFLM)), list(alternatives(file, TFLM, needed))
    assert lower_alternatives(needed, some) == lower_alternatives(needed, every)
    assert alternatives_section(needed, some) == alternatives_section(needed, every)


@pytest.mark.parametrize("path", ["tflite/vww_96_int8.tflite", "crashes/tail20794.tflite"])
def test_what_is_sized_before_it_is_written_needs_what_the_file_needs(corpus: Path, path: str) -> None:
    made = list(rewritten_files(load_file(str(corpus / path)), TFLM))
    files = [(one, one.file) for one in made if one.file is not None]
    assert len(files) == len(made) > 2
    for one, file in files:
        assert sized(one, TFLM).requirement == unmodified_requirement(file, TFLM)


def test_plans_are_not_made_where_planning_itself_needs_the_arena(tmp_path: Path) -> None:
    tensors: list[tflite_models.TensorRow] = [(f"t{i}", tflite_models.FLOAT32, (1, 8), None) for i in range(101)]
    ops: list[tflite_models.OpRow] = [("ADD", (i, i), (i + 1,), ()) for i in range(100)]
    path = tmp_path / "chain.tflite"
    path.write_bytes(tflite_models.model(tflite_models.Sub(tensors, ops, (0,), (100,))))
    file = load_file(str(path))
    found = list(alternatives(file, TFLM, unmodified_requirement(file, TFLM)))
    assert [(a.requirement, a.refusal) for a in found] == [(None, "")] * 3
    every = [a.requirement for a in alternatives(file, TFLM)]
    assert [needed.arena for needed in every if needed] == [unmodified_requirement(file, TFLM).arena] * 3


def test_what_cannot_be_packed_says_why(corpus: Path) -> None:
    found = list(alternatives(file_of(corpus, "person_detect_vela"), TFLM))
    assert ["command stream" in a.refusal for a in found] == [False, True, True]
    assert [a.requirement is None for a in found] == [False, True, True]


def test_a_plan_that_breaks_its_model_is_no_requirement(corpus: Path) -> None:
    file = file_of(corpus, "kws_ref_model")
    model = read_tflite(file.content, file.path)
    wrong = write_plan(model, (0,) * len(model.tensors))
    with pytest.raises(BrokenPlanError, match="CONV_2D"):
        unmodified_requirement(replace(file, content=wrong), TFLM)


def test_a_plan_that_leaves_all_to_tflm_changes_nothing(corpus: Path) -> None:
    file = file_of(corpus, "kws_ref_model")
    model = read_tflite(file.content, file.path)
    online = replace(file, content=write_plan(model, (ONLINE,) * len(model.tensors)))
    assert unmodified_requirement(online, TFLM) == unmodified_requirement(file, TFLM)


def test_a_runtime_that_sorts_has_no_better_order_and_takes_no_plan(models: Path) -> None:
    file = load_file(str(models / "resnet8.onnx"))
    assert list(alternatives(file, Target(RUNTIMES["ort"], "32"))) == []
    assert [a.change for a in alternatives(file, Target(RUNTIMES["generic"], "32"))] == ["best order"]


@pytest.mark.parametrize("name", ["ort", "generic", "executorch"])
def test_other_runtimes_need_what_they_plan_by_themselves(models: Path, name: str) -> None:
    file = load_file(str(models / "resnet8.onnx"))
    needed = unmodified_requirement(file, Target(RUNTIMES[name], "32"))
    assert needed.head == plan(file.graph, Options(runtime=name)).runtime_height
    assert needed.macro == ""
    assert name in needed.basis


def test_a_refused_model_has_nothing_to_declare() -> None:
    needed = Requirement(1000, 500, (), "ABI 32", "TENSOR_ARENA_SIZE", ("op 0 CONV_2D: uint8",))
    assert not needed.fits(10**9)
    shown = plain([headline("m.tflite", needed)])
    assert "#define" not in shown
    assert "op 0 CONV_2D: uint8" in shown
    other = Alternative("plan", ("modelplan fit --only plan",), needed)
    assert lower_alternatives(Requirement(2000, 0, (Part("all", 2000),), ""), [other]) == []


def test_classes_are_split_where_a_plan_keeps_members_apart() -> None:
    whole = Aliases(
        ((Member(0), Member(1), Member(2, 16)), (Member(3),)), (Merge(1, 0, 0, "", 8), Merge(2, 0, 1, "", 8))
    )
    assert as_placed(whole, (32, 32, 48, 0)) == replace(whole)
    apart = as_placed(whole, (32, 64, 48))
    assert apart.classes == ((Member(0), Member(2, 16)), (Member(1),), (Member(3),))
    assert [m.tensor for m in apart.merges] == [2]
    assert as_placed(whole, (-1, -1, 16, 0)).classes == tuple((Member(t),) for t in range(4))


def test_what_is_printed_of_nouns_is_short() -> None:
    graph = graphs.chain()
    made = plan(graph, Options(runtime="generic", alias="none", schedule="file"))
    for noun in (graph, made, made.problem):
        assert len(repr(noun)) < 140
        assert type(noun).__name__ in repr(noun)
    assert (made.alias, made.runtime.name) == ("none", "generic")


def test_texts_are_named_where_they_are_not_counted() -> None:
    drawn = graphs.chain()
    texts = replace(drawn, tensors=tuple(replace(t, dtype="string") if t.name in "ab" else t for t in drawn.tensors))
    assert planned_by_itself(texts, RUNTIMES["litert"]).remarks == ("texts are not counted: a, b",)
    assert not planned_by_itself(drawn, RUNTIMES["litert"]).remarks
