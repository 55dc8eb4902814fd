"""What the file of the page promises without a browser: its policy, its size, its columns, its refusals."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import graphs
import numpy as np
import pytest
from commands import run

from modelplan import Options, Solution, Tensor, plan
from modelplan.answers import page_views as views
from modelplan.model import Buffer, Placement, Problem
from modelplan.outputs import render
from modelplan.outputs.page import columns, html_file

CHAIN = Path(__file__).resolve().parents[3] / "models" / "ds_cnn_kws.tflite"


def a_page(**options: object) -> str:
    made = plan(graphs.chain(), Options(**options))  # type: ignore[arg-type]
    return html_file.render(made).decode()


def data_of(html: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found
    document = json.loads(found[1])
    assert isinstance(document, dict)
    return document


def test_the_policy_names_each_script_by_its_hash_and_nothing_else() -> None:
    html = a_page()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    hashes = [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]
    assert len(scripts) == 3
    assert f"script-src {' '.join(hashes)};" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert "unsafe-eval" not in policy[1]
    assert not re.search(r"script-src[^;]*unsafe", policy[1])


def test_the_file_loads_nothing() -> None:
    html = a_page()
    markup = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", html, flags=re.DOTALL)
    assert not re.search(r"\b(src|href)\s*=\s*[\"'](?!#)", markup)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_a_name_that_closes_the_script_stays_data() -> None:
    graph = graphs.chain()
    name = "</script><script>alert(1)</script><!--"
    tensors = tuple(replace(t, name=name) if i == 0 else t for i, t in enumerate(graph.tensors))
    html = html_file.render(plan(replace(graph, name=name, tensors=tensors))).decode()
    assert "alert(1)</script>" not in html
    assert data_of(html)["title"] == name
    assert html.count("<script>") == 3


def test_a_thousand_buffers_take_less_than_two_megabytes() -> None:
    rows = [Buffer(f"model/block_{i // 10}/layer_{i}/output", 64 * (i % 50 + 1), i, i + 3) for i in range(1000)]
    problem = Problem.of(rows)
    solution = Solution(problem, Placement(np.zeros(1000, dtype=np.int64)))
    assert len(render(solution, ".html")) < 2_000_000


def test_columns_hold_what_the_plan_says() -> None:
    made = plan(graphs.chain(), Options(runtime="generic", alias="views", capacity=4096))
    found = columns.columns_of(views.page_of(made))
    view, graph = found["views"][0], found["graphs"][0]
    assert view["offset"] == made.placement.offsets.tolist()
    assert view["start"] == made.problem.start.tolist()
    assert view["capacity"] == 4096
    assert view["order"] == made.schedule.order
    named = [[graph["tensors"][t] for t in row[::2]] for row in view["members"]]
    assert named == [[made.graph.tensors[m.tensor].name for m in b.members] for b in made.problem]
    assert len(view["merges"]) == len(made.merges) > 0
    rule = view["rules"][view["merges"][0][3]]
    assert rule == made.merges[0].rule


def test_names_are_shown_as_they_can_be_read() -> None:
    assert columns.shown("a\u202eb\n\ud800") == "a\\u202eb\\n\\ud800"
    cut = columns.shown("x" * 500 + "end")
    assert cut.endswith("end")
    assert "(503 characters)" in cut
    assert len(cut) < 300


def test_views_that_are_the_same_are_shown_once() -> None:
    made = plan(graphs.chain())
    other = plan(graphs.chain(), Options(alias="none"))
    same, kept = views.distinct([views.view_of(made, "a", ""), views.view_of(made, "b", "")]), [made, other]
    assert [(v.name, v.twins) for v in same] == [("a", ("b",))]
    assert len(views.distinct([views.view_of(p, str(i), "") for i, p in enumerate(kept)])) == 2


def test_the_page_carries_the_library_and_the_wheel_its_licence() -> None:
    scripts = [(html_file._BOKEHJS / name).read_text(encoding="utf-8") for name in html_file._PARTS]
    assert all(script.encode() in html_file.render(plan(graphs.chain())) for script in scripts)
    assert "Copyright (c) Anaconda" in next(html_file._BOKEHJS.glob("LICENSE*")).read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", CHAIN, "--draw", "best=x.html"), "takes no name"),
        (("diff", CHAIN, CHAIN, "--draw", "x.htm"), "must end in .svg, .png, .pdf, .html"),
        (("fit", CHAIN, "--least", "-o", "y.tflite", "--draw", "x.htm"), ".html"),
        (("explain", CHAIN, "--draw", "x.htm"), ".html"),
        (("analyze", CHAIN, "--draw", "missing/x.html"), "no folder"),
    ],
)
def test_wrong_names_are_refused(words: tuple[object, ...], message: str, tmp_path: Path) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_tensors_without_memory_are_left_out() -> None:
    graph = graphs.chain()
    constant = Tensor("unused weights", (7,), "int8")
    found = columns.columns_of(views.page_of(plan(replace(graph, tensors=(*graph.tensors, constant)))))
    assert len(found["graphs"][0]["tensors"]) <= len(graph.tensors) + 1
