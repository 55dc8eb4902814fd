"""What no plan of stages needs less than, beside plans that were placed."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from c_plans import random_stages
from random_cnns import branched_cnn, deep_cnn, random_cnn
from shares import few_first, share

from modelplan.formats import load_model
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.rows.row_graph import with_chains
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.plain_c.rows.stage_search import StageSearch
from modelplan.runtimes.tflm.file import load_tflite

FAR, MODELS = 1 << 60, Path(__file__).parents[3] / "models"


@pytest.mark.parametrize("draw", few_first([random_cnn, branched_cnn, deep_cnn]))
def test_no_stage_needs_more_than_its_plan(draw: object, tmp_path: Path) -> None:
    for seed in range(share(80)):
        path = tmp_path / "net.tflite"
        path.write_bytes(draw(seed))  # type: ignore[operator]
        model = CModel(load_model(str(path)), load_tflite(str(path)))
        program, _ = random_stages(model, random.Random(seed), pushed=False)
        assert program.choices
        if program.choices.repeats or program.choices.chains or program.choices.order:
            continue  # of another graph
        graph = StagedGraph(with_chains(model.rows, []), pushed=False)
        loads = [graph.load(choice, FAR) for choice in program.choices.stages]
        assert max(loads) <= program.nbytes, (seed, loads)


@pytest.mark.parametrize("draw", few_first([random_cnn, branched_cnn, deep_cnn]))
def test_stages_that_are_not_packed_would_not_be_chosen(draw: object, tmp_path: Path) -> None:
    for seed in range(share(60)):
        path = tmp_path / "net.tflite"
        path.write_bytes(draw(seed))  # type: ignore[operator]
        graph = StagedGraph(CModel(load_model(str(path)), load_tflite(str(path))).rows)
        for parts in (1, 8):
            search, all_packed = StageSearch(graph), StageSearch(graph)
            least, height = all_packed.least_load(parts), all_packed._height
            wanted = min(all_packed._least(parts, height, least, alone)[0] for alone in (1, None))
            chosen = search.stages(parts)
            assert max(search._height(choice, FAR, wanted) for choice in chosen) <= wanted, (seed, parts)


@pytest.mark.parametrize("name", few_first(["autoencoder", "mobilenet_v2_like", "inception_like"], 2))
def test_rows_are_parted_only_in_stages_that_need_it(name: str) -> None:
    path = str(MODELS / f"{name}.tflite")
    model = CModel(load_model(path), load_tflite(path))
    search = StageSearch(StagedGraph(model.rows))
    stages = search.stages(8)
    program = search.program(stages, search.least_load(8))
    assert program.choices
    parted = [stage for stage in program.choices.stages if stage.parts > 1]
    assert 0 < len(parted) < sum(stage.parts > 1 for stage in stages)
    assert all(search.graph.load(replace(stage, parts=1), FAR) > program.nbytes for stage in parted)


@pytest.mark.parametrize(("seed", "most"), [(28, 531), (84, 358), (92, 318), (212, 222), (340, 234)])
def test_windows_make_a_single_row_by_parts(seed: int, most: int, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(deep_cnn(seed))
    search = StageSearch(StagedGraph(CModel(load_model(str(path)), load_tflite(str(path))).rows))
    assert search.program(search.stages(8), search.least_load(8)).nbytes <= most


def test_operators_alone_by_whole_rows_are_tried_where_parts_do_not_lie_together(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(branched_cnn(345))
    search = StageSearch(StagedGraph(CModel(load_model(str(path)), load_tflite(str(path))).rows))
    parted = search.program(search.stages(8), search.least_load(8))
    assert (parted.nbytes, search.least_program(8).nbytes) == (1407, 1370)
