"""What no plan of stages needs less than, beside plans that were placed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from c_plans import random_stages
from random_cnns import branched_cnn, deep_cnn, random_cnn
from shares import share

from modelplan.formats import load_model
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.rows.row_graph import with_chains
from modelplan.plain_c.rows.stage_plan import StagedGraph
from modelplan.runtimes.tflm.file import load_tflite

FAR = 1 << 60


@pytest.mark.parametrize("draw", [random_cnn, branched_cnn, deep_cnn])
def test_no_stage_needs_more_than_its_plan(draw: object, tmp_path: Path) -> None:
    for seed in range(share(80)):
        path = tmp_path / "net.tflite"
        path.write_bytes(draw(seed))  # type: ignore[operator]
        model = CModel(load_model(str(path)), load_tflite(str(path)))
        program, _ = random_stages(model, random.Random(seed), pushed=False)
        assert program.choices
        if program.choices.repeats or program.choices.chains:
            continue  # of another graph
        graph = StagedGraph(with_chains(model.rows, []), pushed=False)
        loads = [graph.load(choice, FAR) for choice in program.choices.stages]
        assert max(loads) <= program.nbytes, (seed, loads)
