"""The peak with its reasons, the table of changes, and that every suggestion comes true when it is carried out."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import graphs
import pytest
from striped_files import three_convolutions
from suggestions import carried_out, predicted, printed
from tflm_models import Op, S, T, build

from modelplan import runtimes
from modelplan.answers.explanation import Needs
from modelplan.model import Graph, Kind, Plan
from modelplan.model.model_file import ModelFile, Target
from modelplan.planning import pipeline
from modelplan.questions.alternatives import load_file, unmodified_requirement
from modelplan.questions.explaining import shapes
from modelplan.questions.explaining.changes import CHANGES, apply_change
from modelplan.questions.explaining.explanations import ExplainRequest, explain
from modelplan.questions.explaining.peaks import peak_of
from modelplan.questions.explaining.ranking import Step, Trials, advice, climb
from modelplan.questions.explaining.subjects import (
    Measure,
    ModelSubject,
    OutOfTimeError,
    RefusedChangeError,
    measured,
    subject_of,
)
from modelplan.rewriting.packing import packed
from modelplan.runtimes import RUNTIMES, with_kernels
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import load_tflite, read_tflite
from modelplan.runtimes.tflm.scratch import calls_of

ROOT = Path(__file__).resolve().parents[3]
TFLM = Target(RUNTIMES["tflm"], "32")


def started(file: ModelFile, target: Target = TFLM) -> tuple[ModelSubject, Measure]:
    subject = subject_of(file, target)
    return subject, measured(subject)


def changed(file: ModelFile, name: str, place: int | str = "", target: Target = TFLM) -> Measure:
    return measured(apply_change(CHANGES[name], subject_of(file, target), place))


# -- the peak ----------------------------------------------------------------------------------------------------------


def planned(graph: Graph, runtime: str) -> Plan:
    return pipeline.runtime_plan(graph, RUNTIMES[runtime])


def test_the_peak_names_who_makes_and_who_keeps_each_buffer() -> None:
    peak = peak_of(planned(graphs.chain(), "tflm"))
    assert (peak.top.step, peak.top.operator, peak.top.nbytes, peak.height) == (1, "op 1 RESHAPE", 64, 64)
    rows = [(live.tensors, live.nbytes, live.share, live.made_by, live.until, live.keeper) for live in peak.alive]
    assert rows == [
        (("a",), 32, 0.5, "op 0 CONV_2D", 1, "op 1 RESHAPE"),
        (("b",), 32, 0.5, "op 1 RESHAPE", 2, "op 2 FULLY_CONNECTED"),
    ]
    assert [load.step for load in peak.near] == [2]
    assert [(load.step, load.nbytes, load.alike) for load in peak.following] == [(2, 64, 0), (0, 48, 0)]


def test_the_peak_says_why_bytes_stay() -> None:
    drawn = graphs.graph(
        """
        x s -> a : ADD
        a   -> b : RESHAPE
        b x -> y : ADD
        b   -> z : ABS
        """,
        {"x": 64, "s": 64, "a": 64, "b": 64, "y": 64, "z": 64},
        inputs="x",
        outputs="y",
        kinds={"s": Kind.STATE},
    )
    found = {live.tensors: live for live in peak_of(planned(drawn, "generic")).alive}
    assert found[("s",)].why == "finds state as this one leaves it"
    assert found[("x",)].keeper == "op 2 ADD"
    assert found[("a", "b")].rules
    assert found[("a", "b")].why == "reads b last"
    kept = {live.tensors[0]: live for live in peak_of(planned(drawn, "litert")).alive}
    assert (kept["x"].keeper, kept["x"].until) == ("litert", -1)
    assert kept["y"].why == "takes it as an output of the model"
    assert kept["z"].why == "writes it, and nothing reads it"


def test_scratch_is_kept_by_its_own_operator(models: Path) -> None:
    file = load_file(str(models / "unet_small.tflite"))
    (first, *_) = peak_of(planned(file.graph, "tflm")).alive
    assert (first.tensors, first.made_by) == (("scratch of op 19 TRANSPOSE_CONV",), "op 19 TRANSPOSE_CONV")
    assert (first.keeper, first.until, first.why) == ("op 19 TRANSPOSE_CONV", 19, "works with it")


# -- the table ---------------------------------------------------------------------------------------------------------


def samples(folder: Path) -> list[tuple[ModelFile, Target]]:
    """Models that between them have a place for every change."""
    names = ["transformer_encoder.tflite", "unet_small.tflite", "resnet8.onnx"]
    files = [load_file(str(ROOT / "models" / name)) for name in names]
    drawn = [padded_model(), batched_model(), called_model(), three_convolutions(0, None)]
    for number, content in enumerate(drawn):
        path = folder / f"drawn{number}.tflite"
        path.write_bytes(content)
        files.append(load_file(str(path)))
    return [(file, Target(runtimes.runtime(None, file.graph.format), "32")) for file in files]


def test_every_change_is_tried_named_and_documented(tmp_path: Path) -> None:
    subjects = [subject_of(file, target) for file, target in samples(tmp_path)]
    page = (ROOT / "docs" / "explain.md").read_text()
    for name, change in CHANGES.items():
        assert any(change.applies(subject) for subject in subjects), f"{name}: no sample has a place for it"
        assert f"| {name} |" in page, f"{name}: has no row in docs/explain.md"
        assert ("{out}" in change.how) == bool(change.output), f"{name}: names no file that it writes, or a file not"
        assert change.needs is Needs.NOTHING or change.cost or change.effort, f"{name}: says no cost"
        named = set(re.findall(r"{(\w*)}", change.how))
        sets = {"reading", "planning", "ordering", "device", "build", "library", "extents", "layout"}
        assert named <= {"file", "out", "place", "runtime", *sets}, name


def test_a_file_as_it_stands_needs_what_analyze_says(tmp_path: Path) -> None:
    for file, target in samples(tmp_path):
        needed = unmodified_requirement(file, target)
        _, start = started(file, target)
        assert (start.arena, start.head) == (needed.arena, needed.head)


# -- changes beside files that were really made so ---------------------------------------------------------------------

CONV = "Conv2DOptions"
STEP = {"StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}


def floats(*shape: int) -> T:
    return T("float32", shape)


def weights(*shape: int) -> T:
    count = 1
    for extent in shape:
        count *= extent
    return T("float32", shape, [0.5] * count)


def pads(*values: int) -> T:
    return T("int32", (4, 2), values)


def padded_model(size: int = 8, batch: int = 1) -> bytes:
    """PAD, CONV_2D without padding, RELU6."""
    tensors = (
        floats(batch, size, size, 4), pads(0, 0, 1, 1, 1, 1, 0, 0), floats(batch, size + 2, size + 2, 4),
        weights(8, 3, 3, 4), weights(8), floats(batch, size, size, 8), floats(batch, size, size, 8),
    )  # fmt: skip
    ops = (
        Op("PAD", (0, 1), (2,), {}, "PadOptions"),
        Op("CONV_2D", (2, 3, 4), (5,), {"Padding": 1, **STEP}, CONV),
        Op("RELU6", (5,), (6,)),
    )
    return build(S(tensors, ops, (0,), (6,)))


def batched_model() -> bytes:
    return padded_model(batch=4)


def unpadded_model() -> bytes:
    """The same with the convolution's own padding."""
    tensors = (floats(1, 8, 8, 4), weights(8, 3, 3, 4), weights(8), floats(1, 8, 8, 8), floats(1, 8, 8, 8))
    ops = (Op("CONV_2D", (0, 1, 2), (3,), {"Padding": 0, **STEP}, CONV), Op("RELU6", (3,), (4,)))
    return build(S(tensors, ops, (0,), (4,)))


def fused_model() -> bytes:
    """The padded model with the activation in the convolution."""
    tensors = (
        floats(1, 8, 8, 4), pads(0, 0, 1, 1, 1, 1, 0, 0), floats(1, 10, 10, 4), weights(8, 3, 3, 4), weights(8),
        floats(1, 8, 8, 8),
    )  # fmt: skip
    ops = (
        Op("PAD", (0, 1), (2,), {}, "PadOptions"),
        Op("CONV_2D", (2, 3, 4), (5,), {"Padding": 1, "FusedActivationFunction": 3, **STEP}, CONV),
    )
    return build(S(tensors, ops, (0,), (5,)))


def transposed_model(*, other_layout: bool = False) -> bytes:
    """A transposed input under a convolution, or the convolution alone."""
    tensors = (floats(1, 8, 8, 4), weights(8, 1, 1, 4), weights(8), floats(1, 8, 8, 8))
    conv = Op("CONV_2D", (0, 1, 2), (3,), {"Padding": 0, **STEP}, CONV)
    if other_layout:
        return build(S(tensors, (conv,), (0,), (3,)))
    more = (*tensors, floats(1, 4, 8, 8), T("int32", (4,), [0, 2, 3, 1]))
    return build(S(more, (Op("TRANSPOSE", (4, 5), (0,), {}, "TransposeOptions"), conv), (4,), (3,)))


def logistic_model(count: int, *, fused: bool) -> bytes:
    """A convolution at the peak, and small ones behind it with a LOGISTIC each, or with their own activation."""
    tensors = [floats(1, 8, 8, 4), weights(8, 3, 3, 4), weights(8), floats(1, 8, 8, 8), weights(1, 1, 1, 8), weights(1),
               weights(1, 1, 1, 1)]  # fmt: skip
    ops, last, kernel = [Op("CONV_2D", (0, 1, 2), (3,), {"Padding": 0, **STEP}, CONV)], 3, 4
    for _ in range(count):
        more = {"FusedActivationFunction": 3} if fused else {}
        tensors.append(floats(1, 8, 8, 1))
        ops.append(Op("CONV_2D", (last, kernel, 5), (len(tensors) - 1,), {"Padding": 0, **more, **STEP}, CONV))
        if not fused:
            tensors.append(floats(1, 8, 8, 1))
            ops.append(Op("LOGISTIC", (len(tensors) - 2,), (len(tensors) - 1,)))
        last, kernel = len(tensors) - 1, 6
    return build(S(tuple(tensors), tuple(ops), (0,), (last,)))


def two_layouts_model() -> bytes:
    """A convolution at the peak, and a small result that two transpositions return."""
    tensors = (floats(1, 8, 8, 4), weights(8, 3, 3, 4), weights(8), floats(1, 8, 8, 8), weights(1, 1, 1, 8), weights(1),
               floats(1, 8, 8, 1), T("int32", (4,), [0, 2, 1, 3]), floats(1, 8, 8, 1), floats(1, 8, 8, 1))  # fmt: skip
    ops = (
        Op("CONV_2D", (0, 1, 2), (3,), {"Padding": 0, **STEP}, CONV),
        Op("CONV_2D", (3, 4, 5), (6,), {"Padding": 0, **STEP}, CONV),
        Op("TRANSPOSE", (6, 7), (8,), {}, "TransposeOptions"),
        Op("TRANSPOSE", (6, 7), (9,), {}, "TransposeOptions"),
    )
    return build(S(tensors, ops, (0,), (8, 9)))


def called_model() -> bytes:
    """A model of two subgraphs, of which one calls the other once."""
    main = S((floats(1, 8), floats(1, 8)), (Op("CALL_ONCE", (), (), {"InitSubgraphIndex": 1}, "CallOnceOptions"),
             Op("RELU", (0,), (1,))), (0,), (1,))  # fmt: skip
    return build(main, S((), (), (), ()))


def file_at(path: Path, content: bytes) -> ModelFile:
    path.write_bytes(content)
    return load_file(str(path))


@pytest.mark.parametrize(
    ("name", "place", "before", "after"),
    [
        ("padding fused", 0, padded_model(), unpadded_model()),
        ("activation fused", 2, padded_model(), fused_model()),
        ("transposition removed", 0, transposed_model(), transposed_model(other_layout=True)),
        ("batch 1", "", batched_model(), padded_model()),
        ("input of half height and width", "", padded_model(), padded_model(4)),
    ],
)
def test_a_changed_record_needs_what_the_changed_file_needs(
    tmp_path: Path, name: str, place: int | str, before: bytes, after: bytes
) -> None:
    _, wanted = started(file_at(tmp_path / "after.tflite", after))
    assert changed(file_at(tmp_path / "before.tflite", before), name, place) == wanted
    assert wanted != started(load_file(str(tmp_path / "before.tflite")))[1]


def test_the_head_of_a_float_model_in_int8_is_that_of_its_quantised_file(corpus: Path) -> None:
    folder = corpus / "tflite"
    predicted_head = changed(load_file(str(folder / "pretrainedResnet.tflite")), "int8").head
    assert predicted_head == started(load_file(str(folder / "pretrainedResnet_quant.tflite")))[1].head


@pytest.mark.parametrize("pattern", ["models/*.tflite", "corpus"])
def test_the_formulas_give_the_shapes_of_the_files(corpus: Path, pattern: str) -> None:
    paths = (corpus / "tflite").rglob("*.tflite") if pattern == "corpus" else ROOT.glob(pattern)
    count = 0
    for path in paths:
        model = read_tflite(path.read_bytes(), path.name)
        if len(model.subgraphs) > 1:
            continue
        main, calls = model.subgraphs[0], calls_of(model)
        for number, (op, alike) in enumerate(zip(main.ops, calls.numbers[0], strict=True)):
            try:
                found = shapes._results(calls.distinct[alike], f"op {number}")
            except shapes.FixedShapeError:
                continue
            assert found == [main.tensors[t].shape for t in op.writes], f"{path.name}: op {number} {op.kind}"
            count += 1
    assert count > 100


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("autoencoder.tflite", "input of half height and width", "op 3 RESHAPE makes .* by a constant"),
        ("unet_small.tflite", "input of half height and width", "op 11 TRANSPOSE_CONV makes .* by a constant"),
        ("transformer_encoder.tflite", "input of half height and width", "no input is a map"),
        ("bert_like.onnx", "input of half height and width", "no input is a map"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(models: Path, name: str, change: str, reason: str) -> None:
    file = load_file(str(models / name), ("batch=1", "sequence=64") if name == "bert_like.onnx" else ())
    target = Target(runtimes.runtime(None, file.graph.format), "32")
    with pytest.raises(RefusedChangeError, match=reason):
        changed(file, change, target=target)


def test_an_operator_that_another_change_took_away_is_refused(tmp_path: Path) -> None:
    subject = subject_of(file_at(tmp_path / "m.tflite", padded_model()), TFLM)
    once = apply_change(CHANGES["padding fused"], subject, 0)
    with pytest.raises(RefusedChangeError, match="took the operator away"):
        apply_change(CHANGES["padding fused"], once, 0)
    both = apply_change(CHANGES["activation fused"], once, 2)
    assert measured(both).arena < measured(once).arena


# -- suggestions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("tflite/kws_ref_model.tflite", "reference"),
        ("tflite/kws_ref_model.tflite", "esp-nn"),
        ("tflite/wakeword/vad.tflite", "reference"),
        ("crashes/tail20794.tflite", "reference"),
    ],
)
def test_what_the_commands_make_needs_what_was_said(
    corpus: Path,
    tmp_path: Path,
    name: str,
    kernels: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = Target(with_kernels(RUNTIMES["tflm"], kernels), "32", ("--kernels", kernels))
    found = advice(*started(load_file(str(corpus / name)), target), effort=1)
    monkeypatch.chdir(tmp_path)
    tried = [one for one in found.suggestions if one.commands and not one.todo]
    assert tried
    for one in tried:
        assert carried_out(one, tmp_path, target, printed(capsys)) == predicted(one), one.name


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["generic", "ort"])
def test_plans_for_other_runtimes_need_what_was_said(
    models: Path, tmp_path: Path, runtime: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = Target(RUNTIMES[runtime], "32", ("--runtime", runtime))
    found = advice(*started(load_file(str(models / "inception_like.onnx")), target), effort=1)
    monkeypatch.chdir(tmp_path)
    tried = [one for one in found.suggestions if one.commands and not one.todo]
    assert tried
    for one in tried:
        assert carried_out(one, tmp_path, target, printed(capsys)) == predicted(one), one.name


def test_the_last_analysis_of_a_combination_says_all(models: Path) -> None:
    subject = subject_of(load_file(str(models / "resnet8.onnx")), Target(RUNTIMES["ort"], "32"))
    generic = apply_change(CHANGES["another runtime"], subject, "generic")
    both = apply_change(CHANGES["plan of modelplan"], generic, "max")
    assert both.commands == (f"modelplan analyze {subject.file} --runtime generic --alias max --json plan.json",)


@pytest.mark.slow
def test_a_combination_that_beats_its_single_changes_is_found(models: Path) -> None:
    found = advice(*started(load_file(str(models / "autoencoder.tflite"))), effort=2).suggestions
    both = next(one for one in found if len(one.steps) > 1)
    steps = {(step,) for step in both.steps}
    assert both.steps[-1] == "persistent part in a second arena"
    assert both.needs is Needs.PLATFORM
    singles = [one for one in found if one.steps in steps]
    assert len(singles) == len(steps)
    assert both.saved > max(one.saved for one in singles)
    assert set(both.todo) == {todo for one in singles for todo in one.todo}
    # The commands of the single changes, each with the options of the changes before it.
    for command in (command for one in singles for command in one.commands):
        assert any(whole.startswith(command) for whole in both.commands)


def test_changes_at_many_operators_that_save_a_few_bytes_each_are_one_suggestion(tmp_path: Path) -> None:
    file = file_at(tmp_path / "many.tflite", logistic_model(5, fused=False))
    found = advice(*started(file), effort=1).suggestions
    (one,) = [one for one in found if "activation fused" in one.name and len(one.steps) == 1]
    assert one.name == "activation fused: ops 2, 4, 6 and 2 more LOGISTIC"
    assert one.todo == ("build the model without ops 2, 4, 6 and 2 more LOGISTIC: activation= in the layer before",)
    assert len(one.costs) == len(set(one.costs))
    _, wanted = started(file_at(tmp_path / "fused.tflite", logistic_model(5, fused=True)))
    assert (one.arena, one.head) == (wanted.arena, wanted.head)


def test_changes_that_exclude_each_other_stay_apart(tmp_path: Path) -> None:
    found = advice(*started(file_at(tmp_path / "two.tflite", two_layouts_model())), effort=0)
    names = [one.name for one in found.suggestions if "transposition" in one.name]
    assert names == [f"transposition removed: op {op} TRANSPOSE" for op in (2, 3)]


def test_changes_that_there_is_no_time_to_make_together_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_at(tmp_path / "many.tflite", logistic_model(5, fused=False))
    attempt = Trials.attempt

    def late(self: Trials, steps: Sequence[Step]) -> tuple[ModelSubject, Measure]:
        if any(isinstance(place, tuple) for _, place in steps):
            raise OutOfTimeError
        return attempt(self, steps)

    monkeypatch.setattr(Trials, "attempt", late)
    found = advice(*started(file), effort=0).suggestions
    assert len([one for one in found if "activation fused: op " in one.name]) == 5


def test_changes_at_operators_that_lower_the_peak_stay_apart(tmp_path: Path) -> None:
    found = advice(*started(file_at(tmp_path / "m.tflite", padded_model())), effort=0).suggestions
    assert {"padding fused: op 0 PAD", "activation fused: op 2 RELU6"} <= {one.name for one in found}


def test_an_order_that_helps_only_together_with_a_plan_is_found(corpus: Path) -> None:
    subject, start = started(load_file(str(corpus / "crashes" / "tail20794.tflite")))
    trials = Trials(subject, start)
    chosen = climb(trials, [(CHANGES["plan: in-place outputs"], ""), (CHANGES["best order"], "")])
    assert [change.name for change, _ in chosen] == ["best order", "plan: in-place outputs"]
    made_so = trials.suggestion(chosen)
    assert made_so.free
    assert [command.split()[3:5] for command in made_so.commands] == [
        ["order", subject.file],
        ["plan", "ordered.tflite"],
    ]


def test_without_time_nothing_is_tried_and_all_is_named(models: Path) -> None:
    subject, start = started(load_file(str(models / "resnet8.tflite")))
    found = advice(replace(subject, deadline=0.0), start)
    assert found.suggestions == ()
    assert {"best order", "stripes", "combinations"} <= set(found.untried)


def test_without_stated_time_the_limit_is_one_of_work(models: Path) -> None:
    subject, start = started(load_file(str(models / "resnet8.tflite")))
    every = advice(subject, start, effort=1)
    assert not every.untried
    most = 3 * len(subject.ops)
    few = advice(subject, start, effort=1, most_work=most)
    assert few.untried
    tried = {*few.same, *(one.name for one in few.suggestions), *(name for name, _ in few.refused)}
    assert tried | set(few.untried) >= {*every.same, *(one.name for one in every.suggestions)}
    assert few == advice(subject, start, effort=1, most_work=most)
    later = time.monotonic() + 1000
    assert not advice(replace(subject, deadline=later), start, effort=1, most_work=most).untried


@pytest.mark.slow
def test_the_search_for_stripes_ends_at_the_deadline(models: Path) -> None:
    subject = subject_of(load_file(str(models / "resnet8.tflite")), TFLM, deadline=0.0)
    with pytest.raises(OutOfTimeError):
        apply_change(CHANGES["stripes"], subject, "")


def test_a_runtime_with_less_in_its_figures_is_compared_by_the_planned_part(models: Path) -> None:
    found = advice(*started(load_file(str(models / "unet_small.tflite"))), effort=1).suggestions
    generic = next(one for one in found if one.steps == ("another runtime: generic",))
    assert (generic.arena, generic.saved_arena) == (None, None)
    assert generic.saved == generic.saved_head > 0


@pytest.mark.parametrize("name", ["person_detect", "hello_world_int8", "wakeword/okay_nabu", "dtln_noise_suppression"])
def test_an_arena_without_what_is_kept_lies_between_the_head_and_the_whole(corpus: Path, name: str) -> None:
    for abi in ("32", "x86-64"):
        whole = arena(load_tflite(corpus / "tflite" / f"{name}.tflite"), abi)
        assert whole.head <= whole.front <= whole.least
        assert whole.least <= whole.front + planner.padded(whole.tail)


def test_a_file_with_a_plan_is_not_reordered_and_its_changed_forms_have_no_plan(models: Path, tmp_path: Path) -> None:
    source = load_file(str(models / "resnet8.tflite"))
    packed_file, _ = packed(read_tflite(source.content, source.path), source.graph, "safe")
    file = file_at(tmp_path / "packed.tflite", packed_file.data)
    with pytest.raises(RefusedChangeError, match="carries a plan"):
        changed(file, "best order")
    halved = "input of half height and width"
    assert changed(file, halved) == changed(source, halved)
    assert started(file)[1].arena < started(source)[1].arena


@pytest.mark.slow
def test_an_onnx_model_as_plain_c_has_other_forms(models: Path) -> None:
    """Rows are handed over with channels last, and nobody is told that there is no TFLM."""
    path = models / "quantised" / "resnet8_int8.onnx"
    answer = explain(ExplainRequest(str(path), runtime="c"))
    rows = next(s for s in answer.advice.suggestions if s.steps == ("plain C, its input by rows",))
    assert rows.arena is not None
    assert rows.arena < answer.needed.arena
    assert rows.commands == (f"modelplan fit {path} --runtime c --input rows --layout nhwc --least -o net.c",)
    assert rows.costs == ("the program hands over the input row by row",)
