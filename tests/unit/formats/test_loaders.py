"""Every failure to read a file is one line with file, place, found and expected; real files read as they are."""

from __future__ import annotations

import os
import random
import tracemalloc
from pathlib import Path

import onnx
import pytest

from modelplan import BrokenPlanError, Graph, Kind, ModelError, Options, Problem, load, plan
from modelplan.formats import problem_csv
from modelplan.formats.buffer_table import read_buffer_plan
from modelplan.formats.whole_files import read_bytes, read_text
from modelplan.outputs.exchange.buffers_csv import write


def refused(path: Path, *words: str) -> None:
    with pytest.raises(ModelError) as problem:
        load(path)
    message = str(problem.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    for word in words:
        assert word in message


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_name_that_is_no_text_is_refused(models: Path, tmp_path: Path) -> None:
    content = (models / "unet_small.onnx").read_bytes()
    name = onnx.load_from_string(content).graph.input[0].name.encode()
    damaged = content.replace(name, b"\xff" + name[1:])
    assert damaged != content
    refused(written(tmp_path / "name.onnx", damaged), "input: the name b'\\xff", "is no UTF-8 text")


@pytest.mark.parametrize("suffix", [".tflite", ".onnx", ".csv"])
def test_what_is_no_model_is_refused(tmp_path: Path, suffix: str) -> None:
    refused(tmp_path / f"none{suffix}", "No such file")
    refused(written(tmp_path / f"empty{suffix}", b""), "empty")
    (tmp_path / f"folder{suffix}").mkdir()
    refused(tmp_path / f"folder{suffix}", "found a directory")
    os.mkfifo(tmp_path / f"pipe{suffix}")
    refused(tmp_path / f"pipe{suffix}", "found a device or pipe")
    for seed in range(20):
        refused(written(tmp_path / f"random{suffix}", random.Random(seed).randbytes(100 + seed)))


def test_suffix_and_content_must_agree(tmp_path: Path, corpus: Path) -> None:
    refused(written(tmp_path / "a.text", "hello"), "suffix '.text'", ".tflite, .onnx, .csv")
    refused(written(tmp_path / "a", "hello"), "no suffix")
    refused(written(tmp_path / "a.onnx", "hello"), "found text", "expected an ONNX protobuf")
    model = (corpus / "tflite" / "kws_ref_model.tflite").read_bytes()
    refused(written(tmp_path / "b.onnx", model), "found a TFLite flatbuffer")


@pytest.mark.parametrize("name", ["kws_ref_model.tflite", "light_squeezenet.onnx", "A.1048576.csv"])
def test_every_cut_is_refused(tmp_path: Path, corpus: Path, light: Path, name: str) -> None:
    folder = {".tflite": corpus / "tflite", ".onnx": light, ".csv": corpus / "problems" / "minimalloc"}
    content = (folder[Path(name).suffix] / name).read_bytes()
    for part in range(1, 16):
        cut = written(tmp_path / name, content[: len(content) * part // 16])
        if cut.suffix == ".csv":
            cut.write_bytes(cut.read_bytes().rstrip(b"0123456789\n"))  # a whole line less is a shorter table
        refused(cut)


def test_person_detect_reads_as_it_is(corpus: Path) -> None:
    graph = load(corpus / "tflite" / "person_detect.tflite")
    assert isinstance(graph, Graph)
    assert len(graph.ops) == 31
    assert [graph.tensors[t].nbytes for t in (*graph.inputs, *graph.outputs)] == [9216, 2]
    assert graph.ops[0].kind == "DEPTHWISE_CONV_2D"
    assert [graph.tensors[t].kind for t in graph.ops[0].inputs] == [Kind.ACTIVATION, Kind.CONSTANT, Kind.CONSTANT]


def test_a_dynamic_extent_is_remarked(corpus: Path) -> None:
    graph = load(corpus / "tflite" / "kws_ref_model.tflite")
    assert isinstance(graph, Graph)
    assert "dynamic extent" in graph.remarks[0]


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("densenet121", 8_429_568),
        ("inception_v1", 6_422_528),
        ("inception_v2", 6_422_528),
        ("resnet50", 9_633_792),
        ("squeezenet", 6_308_352),
        ("shufflenet", 3_110_912),
    ],
)
def test_generated_weights_are_constants(light: Path, name: str, peak: int) -> None:
    graph = load(light / f"light_{name}.onnx")
    assert isinstance(graph, Graph)
    options = Options("generic", "file", "none", "first-fit-start", alignment=1)
    answer = plan(graph, options)
    assert answer.schedule.peak == peak


def test_an_unknown_extent_is_refused(tmp_path: Path) -> None:
    value = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["batch", 3]) for n in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "a.onnx")
    refused(tmp_path / "a.onnx", "'x'", "batch")


CSV = "id,lower,upper,size\na,0,3,4\nb,3,9,4\n"


def test_csv_reads_as_half_open(tmp_path: Path) -> None:
    problem = load(written(tmp_path / "p.csv", CSV))
    assert isinstance(problem, Problem)
    assert [(b.name, b.start, b.end, b.size, b.alignment) for b in problem] == [("a", 0, 3, 4, 1), ("b", 3, 9, 4, 1)]


def test_csv_understands_other_headings(tmp_path: Path) -> None:
    text = "buffer_id,begin,end,size,alignment,pin\na,0,2,4,16,\nb,3,8,4,,32\n"
    problem = load(written(tmp_path / "p.csv", text))
    assert isinstance(problem, Problem)
    assert [(b.start, b.end, b.alignment, b.pin) for b in problem] == [(0, 3, 16, None), (3, 9, 1, 32)]


def test_csv_says_which_rows_are_scratch(tmp_path: Path) -> None:
    """Without the column, or in an empty cell, a row is a tensor, whatever its name."""
    text = "id,lower,upper,size,kind\na,0,3,4,tensor\nscratch of op 0,1,2,4,\nb,1,2,4,scratch\n"
    problem = load(written(tmp_path / "p.csv", text))
    assert isinstance(problem, Problem)
    assert problem.is_scratch.tolist() == [False, False, True]
    again = load(written(tmp_path / "q.csv", write(problem)))
    assert again == problem


def test_csv_offsets_are_an_answer(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "id,lower,upper,size,offset\na,0,3,4,8\n")
    problem, placement = problem_csv.read_solution(path)
    assert placement is not None
    assert placement.offsets.tolist() == [8]
    assert problem == load(path)
    assert problem_csv.read_solution(written(tmp_path / "q.csv", CSV))[1] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,lower,upper\na,0,3\n", ["line 1", "size"]),
        ("id,lower,size\na,0,3\n", ["upper, end"]),
        ("id,lower,upper,size,colour\n", ["colour"]),
        ("id,lower,begin,upper,size\n", ["mean the same"]),
        ("id,lower,upper,size\na,0,3\n", ["row 1", "3 cells"]),
        ("id,lower,upper,size\na,0,x,4\n", ["row 1", "column upper", "'x'"]),
        ("id,lower,upper,size\na,0,3,99999999999999999999\n", ["column size"]),
        ("id,start,end,size\na,0,9223372036854775807,4\n", ["row 1", "column end", "9223372036854775807"]),
        ("id,lower,upper,size\na,3,3,4\n", ["'a'", "[3, 3)"]),
        ("id,lower,upper,size\na,0,3,4\na,0,3,4\n", ["line 3", "'a'"]),
        ("id,lower,upper,size,gaps\na,0,9,4,1\n", ["row 1", "column gaps", "'1' is no gap such as 3-5"]),
        ("id,lower,upper,size,gaps\na,0,9,4,1-12\n", ["row 1", "column gaps", "gap 1-12 does not lie in steps 0 to 9"]),
        ("id,lower,upper,size,gaps\na,0,9,4,1-3 2-5\n", ["gap 2-5 does not lie in steps 3 to 9"]),
        ("id,lower,upper,size,gaps\na,0,9,4,1-3@2:6\n", ["row 1", "bytes not in 4"]),
        ("id,lower,upper,size,gaps\na,0,9,4,1-3@2:2\n", ["leaves no bytes alive"]),
        ("id,lower,upper,size,gaps\na,0,9,4,0-9\n", ["row 1", "nothing of the buffer is ever alive"]),
        ("id,lower,upper,size,gaps,group\na,0,9,4,1-3,7\n", ["in a group or list"]),
        (
            "id,lower,upper,size,meets\na,0,9,4,2\nb,0,9,4,\n",
            ["row 1", "column meets", "'2' is no entry such as 3@-16:0"],
        ),
        ("id,lower,upper,size,meets\na,0,9,4,\nb,0,9,4,1@4:0\n", ["row 2", "column meets", "4:0", "least:most"]),
        ("id,lower,upper,size,meets\na,0,9,4,3@0:0\nb,0,9,4,\n", ["row 1", "found row 3, expected another of 2"]),
        ("id,lower,upper,size,apart\na,0,9,4,1\nb,0,9,4,\n", ["row 1", "column apart", "found row 1"]),
        ("id,lower,upper,size,apart\na,0,9,4,b\nb,0,9,4,\n", ["row 1", "'b' is no entry such as 7"]),
        ("id,lower,upper,size,gaps,apart\na,0,9,4,1-3,2\nb,0,9,4,,\n", ["columns gaps and apart"]),
        ('id,lower,upper,size\n"a,0,3,4\n', ["CSV"]),
        ("id,lower,upper,size,kind\na,0,3,4,state\n", ["row 1", "column kind", "'state'", "tensor or scratch"]),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    refused(written(tmp_path / "p.csv", text), *words)


@pytest.mark.parametrize(
    ("third", "words"),
    [
        ("c,6,9", ["row 3", "3 cells"]),
        ("c,6,nine,4,", ["row 3", "column upper", "'nine'"]),
        ("c,6,9,4,7-18", ["row 3", "column gaps"]),
        ("a,6,9,4,", ["line 4", "'a'"]),
    ],
)
def test_rows_are_counted_through_the_pieces_of_a_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, third: str, words: list[str]
) -> None:
    monkeypatch.setattr(problem_csv, "_ROWS_AT_ONCE", 2)
    rows = ["id,lower,upper,size,gaps", "a,0,3,4,", "", "b,3,9,4,", third]
    refused(written(tmp_path / "p.csv", "\n".join(rows)), *words)
    problem = load(written(tmp_path / "q.csv", "\n".join([*rows[:-1], "c,6,9,4,"])))
    assert isinstance(problem, Problem)
    assert problem.names == ("a", "b", "c")


@pytest.mark.slow
def test_a_large_table_costs_little_more_than_its_problem(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i},{i + 1},8\n" for i in range(200_000))
    path = written(tmp_path / "p.csv", "id,lower,upper,size\n" + rows)
    tracemalloc.start()
    problem = load(path)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(problem, Problem)
    assert len(problem) == 200_000
    assert peak < 2 * held


def test_a_plan_in_the_file_can_be_used(corpus: Path, tmp_path: Path) -> None:
    """The offsets of a packed model are kept; what overlaps there is refused by the referee."""
    from modelplan import BrokenPlanError
    from modelplan.formats import load_model
    from modelplan.questions.option_files import carried_plan
    from modelplan.rewriting.packing import answer, question_of
    from modelplan.runtimes.tflm.file import read_tflite
    from modelplan.runtimes.tflm.metadata import write_plan

    source = corpus / "tflite" / "vww_96_int8.tflite"
    model = read_tflite(source.read_bytes(), "vww")
    lowest = answer(question_of(model, load_model(source), "none"))
    packed = written(tmp_path / "packed.tflite", write_plan(model, lowest.offsets))
    offsets = carried_plan(str(packed))
    graph = load(packed)
    assert isinstance(graph, Graph)
    made = plan(graph, Options("tflm", "file", "none", "tflm-greedy", offsets=offsets))
    for at, members in zip(made.placement.offsets, made.problem.members, strict=True):
        assert all(offsets[m.tensor] in (-1, at + m.delta) for m in members)
    with pytest.raises(BrokenPlanError):
        plan(graph, Options("tflm", "file", "none", "tflm-greedy", offsets=(0,) * len(offsets)))


def test_a_header_is_read_whatever_the_names_in_its_comments_are(tmp_path: Path) -> None:
    path = tmp_path / "plan.h"
    lines = "        0,  // tensor 0 a}b{ /* modelplan_buffer_plan = {9, {7}} 5\n        16,  // tensor 1 };\n"
    path.write_text("constexpr FixedBufferPlan modelplan_buffer_plan = {\n    2,\n    {\n" + lines + "    }};\n")
    assert read_buffer_plan(path) == [0, 16]
    path.write_text(path.read_text().replace("    2,", "    3,"))
    with pytest.raises(BrokenPlanError, match="counts 3 buffers and holds 2 offsets"):
        read_buffer_plan(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(ModelError, match=r"plan\.json: No such file"):
        read_bytes(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ModelError, match=r"plan\.json: not text: invalid start byte"):
        read_text(path)
