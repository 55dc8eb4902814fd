"""What the renderers promise: same plan, same bytes; readable back; hostile names stay harmless."""

from __future__ import annotations

import json
from dataclasses import replace

import graphs
import pytest

from modelplan import Graph, ModelError, Op, Options, Plan, RequestError, Tensor, plan, read, render
from modelplan.answers.drawing import of_plan
from modelplan.answers.page_views import page_of
from modelplan.answers.summary import summary
from modelplan.cli import terminal
from modelplan.model import Part, Requirement
from modelplan.outputs import OUTPUTS, outputs_of
from modelplan.outputs.exchange import buffers_csv as problem_csv
from modelplan.outputs.page.columns import columns_of
from modelplan.outputs.report import WIDTH, Section, Table, folded, folded_apart, plain, printable
from modelplan.planning import allocators, pipeline, schedulers
from modelplan.primitives.units import counted, human, parse_bytes
from modelplan.runtimes import RUNTIMES


def a_plan(**options: object) -> Plan:
    return plan(graphs.chain(), Options(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", outputs_of("Plan"))
def test_same_plan_same_bytes(suffix: str) -> None:
    assert render(a_plan(), suffix) == render(a_plan(), suffix)


def test_no_two_outputs_of_an_answer_end_alike() -> None:
    for kind in {row.of for row in OUTPUTS}:
        suffixes = [suffix for row in OUTPUTS if row.of == kind for suffix in row.suffixes]
        assert len(suffixes) == len(set(suffixes)), kind


@pytest.mark.slow
def test_rendering_calls_no_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = a_plan()
    for module, name in ((pipeline, "plan_on"), (schedulers, "orders"), (allocators, "place")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("an output plans"))
    for suffix in outputs_of("Plan"):
        assert render(answer, suffix)


def test_json_reads_back() -> None:
    answer = a_plan(capacity=100)
    assert read(str(render(answer, ".json"))) == answer


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_json_reads_back_scratch_and_the_runtime(runtime: str) -> None:
    graph = with_scratch()
    answer = plan(graph, Options(runtime))
    assert answer.problem.is_scratch.tolist() == [False, False, True]
    assert read(str(render(answer, ".json"))) == answer


def test_json_from_before_these_fields_existed_is_read() -> None:
    """Buffers without tensors were scratch, and what the runtime needs by itself stood in the summary only."""
    answer = plan(with_scratch())
    document = json.loads(str(render(answer, ".json")))
    del document["plan"]["runtime_height"], document["plan"]["problem"]["kinds"]
    assert read(json.dumps(document)) == answer
    del document["summary"]
    assert read(json.dumps(document)) == replace(answer, runtime_height=None)
    assert "by itself" not in str(render(read(json.dumps(document)), ".txt"))


def with_scratch() -> Graph:
    """One operator with a body, whose working memory is as large as two of its tensors."""
    body = graphs.graph("x -> y : RELU", {"x": 16, "y": 16}, inputs="x", outputs="y")
    tensors = tuple(Tensor(name, (16,), "int8") for name in ("scratch of op 0 LOOP", "y"))
    return Graph("g", "tflite", tensors, (Op("", "LOOP", (0,), (1,), subgraphs=(body,)),), (0,), (1,))


def test_a_tensor_called_scratch_is_not_taken_for_scratch() -> None:
    answer = plan(with_scratch())
    text = str(render(answer, ".csv"))
    assert text.splitlines()[0] == "id,lower,upper,size,alignment,kind,offset"
    assert [line.split(",")[5] for line in text.splitlines()[1:]] == ["tensor", "tensor", "scratch"]


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        (lambda d: d.update(schema=99), "schema is 99, expected 5"),
        (lambda d: d["plan"].pop("alias"), "missing or unknown fields: alias"),
        (lambda d: d["plan"]["schedule"].update(peak="7"), "plan.schedule.peak is '7', expected int"),
        (lambda d: d["plan"]["graph"]["tensors"][0].update(shape=[-1]), "negative extent"),
        (lambda d: d["plan"]["graph"]["tensors"][0].update(kind="soup"), "soup"),
        (lambda d: d["plan"]["graph"].update(format="caffe"), "expected one of 'tflite', 'onnx'"),
        (lambda d: d["plan"]["problem"]["size"].append(1), "column"),
        (lambda d: d.update(plan=None), "plan is None, expected dict"),
    ],
)
def test_a_json_that_no_plan_wrote_is_refused_with_its_place(edit: object, word: str) -> None:
    document = json.loads(str(render(a_plan(), ".json")))
    edit(document)  # type: ignore[operator]
    with pytest.raises(ModelError, match=word):
        read(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "\x00"])
def test_text_that_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match="plan: "):
        read(text)


def test_the_parts_add_up_to_the_arena() -> None:
    figures = summary(a_plan())
    assert figures.planned == figures.activations + figures.alignment_loss + figures.fragmentation == 64
    assert (figures.activations, figures.constants) == (55, 99)
    assert figures.optimal
    assert figures.peak_op == "op 2 FULLY_CONNECTED"
    assert summary(a_plan(pad="arena", alignment=64)).planned % 64 == 0


def test_the_verdict_on_a_capacity() -> None:
    assert "36 B to spare, for the activations alone" in str(render(a_plan(capacity=100), ".txt"))
    assert "54 B too much, for the activations alone" in str(render(a_plan(capacity=10), ".txt"))


def test_the_verdict_counts_what_the_runtime_keeps() -> None:
    alone = a_plan(capacity=1000)
    arena = summary(alone).planned
    needed = Requirement(arena + 200, arena, (Part("planned", arena), Part("kept", 200)), "measured", "ARENA")
    for capacity, fits in ((arena + 200, True), (arena + 199, False), (arena, False)):
        whole = replace(alone, problem=replace(alone.problem, capacity=capacity), requirement=needed)
        assert summary(whole).fits is fits
        drawn = of_plan(whole)
        assert (drawn.kept, drawn.excess == 0) == (200, fits)
        assert columns_of(page_of(whole))["views"][0]["fits"] is fits
        document = json.loads(str(render(whole, ".json")))
        assert (document["summary"]["fits"], document["summary"]["kept"]) == (fits, 200)
        assert document["requirement"]["arena"] == arena + 200
        assert read(json.dumps(document)) == whole
    refused = replace(alone, requirement=replace(needed, refusals=("op 0 is not there",)))
    assert (summary(alone).fits, summary(refused).fits) == (True, False)
    assert columns_of(page_of(refused))["views"][0]["fits"] is False


@pytest.mark.parametrize("version", [2, 3])
def test_json_of_older_schemas_is_read(version: int) -> None:
    answer = a_plan(capacity=100)
    document = json.loads(str(render(answer, ".json"))) | {"schema": version}
    assert read(json.dumps(document)) == answer


def test_a_hostile_name_cannot_drive_the_terminal() -> None:
    answer = a_plan()
    tensors = tuple(replace(t, name=f"{t.name}\x1b[2J\n") for t in answer.graph.tensors)
    text = str(render(replace(answer, graph=replace(answer.graph, name="\x1b]0;x\x07", tensors=tensors)), ".txt"))
    assert "\x1b" not in text
    assert "\\x1b[2J\\n" in text


def test_names_that_differ_in_the_middle_fold_apart() -> None:
    names = [f"model/cell_{n}/gates/{gate}/kernel_of_the_cell" for n in (1, 22, 23) for gate in ("a", "bb")]
    for width in (20, 31, 48):
        short = folded_apart([*names, "short", names[0]], width)
        assert len(set(short)) == len(names) + 1
        assert max(map(len, short)) <= width
        assert short[0] == short[-1]
    table = Table(("name", ">bytes"), tuple((name, "1") for name in names))
    assert len(set(plain([Section("", (), table)], 30).splitlines()[2:])) == len(names)


def test_names_fold_in_the_middle() -> None:
    assert folded("a" * 30 + "b" * 30, 21) == "a" * 10 + "…" + "b" * 10
    assert folded("short") == "short"
    assert printable("a\tb") == "a\\tb"


def test_tables_align_numbers_to_the_right() -> None:
    text = plain([Section("T", ("line",), Table(("name", ">n"), (("a", "1"), ("bb", "22"))))])
    assert text == "T\n  line\n  name   n\n  ----  --\n  a      1\n  bb    22\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("65536", 65536),
        ("64KiB", 65536),
        ("64k", 65536),
        ("1.5 MiB", 1572864),
        ("10kB", 10000),
        ("65,536", 65536),
        ("64Ki", 65536),
        ("65536B", 65536),
        ("1,048,576 B", 1 << 20),
        ("2Mi", 2 << 20),
    ],
)
def test_sizes_are_read_with_units(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "64 parsecs",
        "0.3",
        "1e9",
        "65,53",
        "6,5536",
        "1,000,00",
        ",536",
        "64,5",
        "9999999999GiB",
        "9" * 400,
        "9" * 400 + "MB",
    ],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="bytes"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["64kb", "64KB", "64 Kb", "1.5mb", "2GB"])
def test_units_with_two_readings_are_questioned(text: str) -> None:
    with pytest.raises(RequestError, match=r"may mean .* or .* bytes; write .*iB or the bytes"):
        parse_bytes(text)


def test_lines_and_tables_fit_but_lines_to_paste_stay_whole() -> None:
    wide, command = "word " * 60, "modelplan fit --only plan " + "x" * 200
    table = Table(("name", ">n", "rule"), (("n" * 150, "1,000", "r" * 150), ("a", "2", "b")))
    lines = plain([Section("T" * 10, (wide, "\x1b[2J"), table, (command,))]).splitlines()
    assert lines[-1] == f"  {command}"
    assert max(map(len, lines[:-1])) <= WIDTH
    assert "1,000" in "".join(lines)
    assert not any("\x1b" in line for line in lines)


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(n, "buffer") for n in (0, 1, 18_692)] == ["0 buffers", "1 buffer", "18,692 buffers"]


def test_sizes_are_shown_in_both_units() -> None:
    assert human(100) == "100 B"
    assert human(1024**2) == "1.00 MiB (1,048,576 B)"


def test_an_unknown_suffix_is_refused_with_the_list() -> None:
    with pytest.raises(RequestError, match=r"no output '.doc' of a Plan; there are: .txt"):
        render(a_plan(), ".doc")


def test_the_csv_names_alignment_and_offset_only_where_there_are_any() -> None:
    assert problem_csv.write(graphs.problem([(8, 0, 2)])) == "id,lower,upper,size\nb0,0,2,8\n"
    assert str(render(a_plan(), ".csv")).splitlines()[0] == "id,lower,upper,size,alignment,offset"


def test_a_terminal_keeps_hanging_indents_and_colours_verdicts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    terminal.show([Section("T", ("capacity: does not fit, " + "so many words " * 8, "it fits"))])
    lines = capsys.readouterr().out.splitlines()
    assert [line.startswith("      ") for line in lines[2:4]] == [True, True]
    shown = terminal._verdict("does not fit; another fits")
    assert [(span.start, span.end, span.style) for span in shown.spans] == [(0, 12, "bold red"), (22, 26, "green")]
