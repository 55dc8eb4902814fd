"""The plan that a C source states as data: proved, and its text compared; a fault in either is caught."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from c_plans import random_stages
from random_cnns import random_cnn
from shares import share
from tflm_models import Op, S, T, build

from modelplan.cli import main
from modelplan.formats import load_model
from modelplan.model.c_program import StageChoice
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.rows.placing_rows import placed_program
from modelplan.plain_c.rows.row_graph import RowGraph, with_chains
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.plain_c.rows.tile_search import chains_between
from modelplan.plain_c.stated_plan import stated_program, stated_verdict
from modelplan.plain_c.writing.c_source import CFiles, CNames, c_files, c_sizes
from modelplan.primitives.version import __version__
from modelplan.runtimes.tflm.file import load_tflite

MODELS = Path(__file__).resolve().parents[3] / "models"
FORMS = {
    "tables": (4, 1, False), "parts of rows, handed over": (3, 3, True), "loops": (1, 1, False), "tiles": (2, 3, False),
}  # fmt: skip


@cache
def written(form: str) -> tuple[CModel, CFiles]:
    """A network whose first operators run together."""
    fused, parts, pushed = FORMS[form]
    path = str(MODELS / "ds_cnn_kws.tflite")
    model = CModel(load_model(path), load_tflite(path))
    chains = [next(c for c in chains_between(model.rows, 0, 4) if c.width == 2)] if form == "tiles" else []
    graph = StagedGraph(with_chains(model.rows, chains), pushed)
    stages = [StageChoice(0, fused, parts)]
    stages += [StageChoice(i, i + 1, 1, bool(i % 2)) for i in range(fused, len(graph.rows.order))]
    program = placed_program(graph, stages, 100)
    return model, c_files(model.file, model.operators, program, CNames("net", "net.h"))


def outcome(form: str, source: str | None = None, header: str | None = None) -> str:
    model, files = written(form)
    return stated_verdict(model, source or files.source, header or files.header).outcome


def choices(source: str) -> dict[str, Any]:
    """The data of a plan."""
    place = re.search(r"`modelplan verify`:\n(.*?)\*/", source, re.DOTALL)
    assert place
    stated: dict[str, Any] = json.loads(place[1].replace("*", " "))
    return stated


def restated(source: str, data: object) -> str:
    """A source with other data."""
    return source[: source.index("/* The plan, for")] + f"/* The plan, for `modelplan verify`:\n{json.dumps(data)}*/"


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_proved_from_its_data(form: str) -> None:
    model, files = written(form)
    assert stated_verdict(model, files.source, files.header).details.endswith(" bytes")
    _, program = stated_program(model, files.source)
    assert c_files(model.file, model.operators, program, CNames("net", "net.h")).header == files.header
    assert outcome(form, re.sub(r"/\* [^A-Z].*?\*/", "/* said otherwise */", files.source)) == "ok"
    assert outcome(form, restated(files.source, choices(files.source))) == "ok"
    assert len(files.source[files.source.index("/* The plan, for") :]) < len(files.source) / 100


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_number_of_a_source_matters(form: str) -> None:
    source = written(form)[1].source
    blank = re.sub(r"/\*.*?\*/", lambda m: " " * len(m[0]), source, flags=re.DOTALL)
    numbers, behind = list(re.finditer(r"(?<![\w.])\d+\b", blank)), source.index("/* op 0 ")
    draw = random.Random(1)
    for number in draw.sample(numbers, 3) + draw.sample([m for m in numbers if m.start() > behind], 9):
        name = re.search(r"(NET_AT_\d+) = $", source[: number.start()])
        if number[0] == "0" or (name and source.count(name[1]) == 1):
            continue  # all addresses of this value are counted
        text = f"{source[: number.start()]}{int(number[0]) - 1}{source[number.end() :]}"
        assert outcome(form, text) != "ok", source[number.start() - 80 : number.end()]


FAULTS = {
    "an offset one element closer": ("tables", r"(NET_AT_\d+ = )([1-9]\d*)"),
    "a counted address one element closer": ("loops", r"(int32_t at\[\d+\] = \{\d+, )(\d+)"),
    "a row too few": ("loops", r"(; n < )(\d+)"),
    "a row too few that is read": ("loops", r"(\(&net_op_0, &q, RAM \+ NET_AT_0, /\* rows \*/ )(\d+)"),
    "a shift of too few bytes": ("tables", r"(\{\d+, 0, 0, 0, \{\d+, \d+, )(\d+)"),
    "rows above off by one": ("tables", r"(\{\d+, \d+, )([1-9])"),
    "a step of a row's parts": ("parts of rows, handed over", r"(\{0, \d+, \d+, \d+, \d+, )(\d+)"),
    "a tile a column too narrow": ("tiles", r"(\{1, \d+, \d+, \d+, \d+, \d+, \d+, )(\d+)"),
    "a tile that begins a column before": ("tiles", r"(\{1, \d+, \d+, \d+, \d+, \d+, )([1-9])"),
    "a part of a tile": ("tiles", r"(\{0, \d+, \d+, \d+, \d+, )(\d+)"),
    "a first row that does not arrive": ("parts of rows, handed over", r"(net_progress\.at\[1\] = )(\d+)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_text_is_named_with_its_line(fault: str) -> None:
    form, place = FAULTS[fault]
    model, files = written(form)
    number = re.search(place, files.source)
    assert number
    text = f"{files.source[: number.start(2)]}{int(number[2]) - 1}{files.source[number.end(2) :]}"
    line, verdict = files.source.count("\n", 0, number.start(2)) + 1, stated_verdict(model, text, files.header)
    assert verdict.outcome == "unproved"
    assert verdict.details == (
        f"the source is not what its plan gives: line {line} has {int(number[2]) - 1} where {number[2]} belongs"
    )


@pytest.mark.parametrize("form", FORMS)
def test_values_that_lie_elsewhere_are_named_without_running(form: str) -> None:
    model, files = written(form)
    data, faults = choices(files.source), []
    for value in range(len(data["bases"])):
        bases = [base + 1 if v == value else base for v, base in enumerate(data["bases"])]
        verdict = stated_verdict(model, restated(files.source, {**data, "bases": bases}), files.header)
        touched = f"NET_AT_{model.rows.values[value].tensors[0]} " in files.source
        assert (verdict.outcome == "ok") <= (not touched), verdict
        faults += [verdict.details] if verdict.outcome == "broken" else []
    assert len(faults) > len(data["bases"]) / 3
    assert any(re.match(r"op \d+ .*: (byte \d+ of .* is not at|writes)", fault) for fault in faults), faults
    assert (
        stated_verdict(model, restated(files.source, {**data, "bytes": data["bytes"] - 1}), files.header).outcome
        == "broken"
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda data: data["stages"].pop(), "no plan of this model: the stages do not hold every operator once"),
        (lambda data: data["stages"].append([0, 1, 1, 0]), "do not hold every operator once"),
        (lambda data: data["stages"][0].pop(), "its plan cannot be read"),
        (lambda data: data["bases"].pop(), "values"),
        (lambda data: data["bases"].insert(0, -1), "-1 is no number from 0 on"),
        (lambda data: data["bases"].insert(0, 1.5), "1.5 is no number from 0 on"),
        (lambda data: data["chains"].append([[0, 1], 1000]), "tiles of operators that make none"),
        (lambda data: data["chains"].append(data["chains"][0]), "tiles of operators that make none"),
        (lambda data: data["spare"].append([3, 0]), "working memory is kept for operators that need none"),
        (lambda data: data.update(bytes=1 << 40), "its buffer has"),
        (lambda data: data.pop("pushed"), "its plan cannot be read: 'pushed'"),
    ],
)  # fmt: skip
def test_data_that_is_no_plan_is_refused(change: Callable[[dict[str, Any]], object], fault: str) -> None:
    model, files = written("tiles")
    data = choices(files.source)
    change(data)
    verdict = stated_verdict(model, restated(files.source, data), files.header)
    assert verdict.outcome == "unproved"
    assert fault in verdict.details


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_no_data_is_believed(form: str) -> None:
    model, files = written(form)
    draw, outcomes = random.Random(len(form)), list[str]()
    for _ in range(share(120)):
        text = json.dumps(choices(files.source))
        numbers = list(re.finditer(r"\d+", text))
        number = draw.choice(numbers)
        other = draw.choice((0, 1, 2, int(number[0]) + 1, max(int(number[0]) - 1, 0), draw.randrange(40_000)))
        data = json.loads(f"{text[: number.start()]}{other}{text[number.end() :]}")
        outcomes.append(stated_verdict(model, restated(files.source, data), files.header).outcome)
        if outcomes[-1] == "ok":
            same = c_files(model.file, *stated_program(model, restated(files.source, data)), CNames("net", "net.h"))
            assert re.sub(r"/\*.*?\*/", "", same.source, flags=re.DOTALL) == re.sub(
                r"/\*.*?\*/", "", files.source, flags=re.DOTALL
            )
    assert {"broken", "unproved"} <= set(outcomes)


def test_another_release_is_named() -> None:
    model, files = written("loops")
    old = files.source.replace(f"modelplan {__version__}", "modelplan 0.0.1", 1)
    assert stated_verdict(model, old, files.header).outcome == "ok"
    again = "; modelplan 0.0.1 wrote it: write it again with `fit`"
    without = stated_verdict(model, old[: old.index("/* The plan, for")], files.header)
    assert (without.outcome, without.details) == ("unproved", f"it states no plan{again}")
    assert stated_verdict(model, old.replace("+ p->out_zero", "- p->out_zero", 1), files.header).details.endswith(again)


def reshaped(folder: Path) -> CModel:
    """A map that is computed with rows of 24 bytes and read with rows of 48."""
    options = {"FilterHeight": 3, "FilterWidth": 3, "StrideH": 1, "StrideW": 1, "Padding": 0}
    tensors = T("int8", (1, 8, 6, 4)), T("int8", (1, 8, 6, 4)), T("int8", (1, 4, 12, 4)), T("int8", (1, 4, 12, 4))
    new_shape = T("int32", (4,), [1, 4, 12, 4])
    ops = (
        Op("MAX_POOL_2D", (0,), (1,), options, "Pool2DOptions"),
        Op("RESHAPE", (1, 4), (2,), {}, "ReshapeOptions"),
        Op("MAX_POOL_2D", (2,), (3,), options, "Pool2DOptions"),
    )
    path = folder / "reshaped.tflite"
    path.write_bytes(build(S((*tensors, new_shape), ops, (0,), (3,))))
    return CModel(load_model(str(path)), load_tflite(str(path)))


@pytest.mark.parametrize("fused", [1, 2])
def test_a_reshape_that_changes_what_a_row_is_is_caught(
    fused: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = reshaped(tmp_path)

    def written() -> CFiles:
        stages = [StageChoice(0, fused), *(StageChoice(i, i + 1) for i in range(fused, 2))]
        program = placed_program(StagedGraph(model.rows), stages, 100)
        return c_files(model.file, model.operators, program, CNames("net", "net.h"))

    right = written()
    assert stated_verdict(model, right.source, right.header).outcome == "ok"
    shape = RowGraph.shape
    with monkeypatch.context() as patch:
        patch.setattr(RowGraph, "shape", lambda rows, tensor: shape(rows, 1 if tensor == 2 else tensor))
        wrong = written()
        verdict = stated_verdict(model, wrong.source, wrong.header)
    assert wrong.source != right.source
    assert stated_verdict(model, wrong.source, wrong.header).outcome == "broken"
    assert verdict.outcome == "broken"
    assert verdict.details.startswith("op 2 MAX_POOL_2D")


def test_a_buffer_that_is_too_small_and_another_kernel_are_caught() -> None:
    _, files = written("loops")
    size = re.search(r"NET_RAM_BYTES (\d+)", files.header)
    assert size
    assert outcome("loops", header=files.header.replace(size[1], str(int(size[1]) - 1))) == "unproved"
    assert outcome("loops", files.source.replace("+ p->out_zero", "- p->out_zero", 1)) == "unproved"
    assert outcome("loops", "int main(void) { return 0; }") == "unproved"


def test_random_stages_are_read_back(tmp_path: Path) -> None:
    for seed in range(12):
        path = tmp_path / "net.tflite"
        path.write_bytes(random_cnn(seed))
        model, draw = CModel(load_model(str(path)), load_tflite(str(path))), random.Random(seed)
        program, operators = random_stages(model, draw, pushed=seed % 2 == 1)
        files = c_files(model.file, operators, program, CNames("net", "net.h"))
        verdict = stated_verdict(model, files.source, files.header)
        assert verdict.outcome == "ok", (seed, verdict.details)


def test_inputs_and_outputs_of_another_type_are_read_from_the_header(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, path = str(corpus / "camera" / "blazeface_front_128.tflite"), tmp_path / "net.c"
    words = ["fit", model, "--runtime", "c", "--without", "overlaps,rows,parts", "-o", str(path)]
    assert main([*words, "--interface", "int8"]) == 0
    assert "const int8_t *net_output_0(void);" in path.with_suffix(".h").read_text()
    assert main(["verify", model, "--against", str(path), "--quick"]) == 0
    assert "the program converts its ends to int8" in " ".join(capsys.readouterr().out.split())
    path.write_text(path.read_text().replace("+ p->out_zero", "- p->out_zero"))
    assert main(["verify", model, "--against", str(path), "--quick"]) == 4


def test_verify_names_the_fault_and_what_is_not_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, files = written("loops")
    path, model = tmp_path / "net.c", str(MODELS / "ds_cnn_kws.tflite")
    path.write_text(files.source)
    (tmp_path / "net.h").write_text(files.header)
    assert main(["verify", model, "--against", str(path), "--quick"]) == 0
    path.write_text(files.source.replace("NET_AT_30 = ", "NET_AT_30 = 1"))
    assert main(["verify", model, "--against", str(path), "--quick"]) == 4
    path.write_text(files.source.replace("(void)rows;", "rows++;"))
    capsys.readouterr()
    assert main(["verify", model, "--against", str(path), "--quick"]) == 4
    assert re.search(
        r"is not proved equal to .*: the source is not what its plan gives: line \d+ has", capsys.readouterr().err
    )


@pytest.mark.parametrize("form", FORMS)
def test_sizes_without_text_are_those_of_the_text(form: str) -> None:
    model, files = written(form)
    operators, program = stated_program(model, files.source)
    sizes = c_sizes(model.file, operators, program)
    found = re.findall(r"^static const (u?int(?:8|16|32)_t|float) (\w+)\[(\d+)\](\[3\])?", files.source, re.MULTILINE)
    width = {"float": 4, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4}
    tables = sum(width[ctype] * int(count) * (3 if three else 1) for ctype, _, count, three in found)
    steps = re.findall(r"^static const struct net_step_\d+ \w+\[(\d+)\]", files.source, re.MULTILINE)
    assert bool(steps) == (form != "loops")
    rest = sizes.tables - tables  # the steps, each of at least 8 bytes
    assert rest == 0 if not steps else rest >= 8 * sum(map(int, steps))
    progress = sizes.ram - program.nbytes
    assert (progress > 0) == ("} net_progress;" in files.source)


@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_a_source_of_another_model_says_of_which(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, files = written("loops")
    (tmp_path / "net.c").write_text(files.source)
    (tmp_path / "net.h").write_text(files.header)
    other = tmp_path / "other.tflite"
    other.write_bytes(build(S((T(kind, (1, 4)), T(kind, (1, 4))), (Op("RELU", (0,), (1,)),), (0,), (1,))))
    assert main(["verify", str(other), "--against", str(tmp_path / "net.c"), "--quick"]) == 4
    assert "it was written of ds_cnn_kws.tflite" in capsys.readouterr().err
