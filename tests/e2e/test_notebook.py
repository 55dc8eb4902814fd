"""Plans in notebooks: what a cell shows, and the notebook of the documentation run as it stands."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import graphs
import pytest

import modelplan
from modelplan import RequestError, plan
from modelplan.outputs.notebook import html_of

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


class Elements(HTMLParser):
    """The tags of a piece of HTML with their attributes, and its text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_plan_shows_its_figures_and_its_map() -> None:
    answer = plan(graphs.chain())
    found = Elements(html_of(answer))
    assert "drawn: planned activations 64 B" in found.text
    (image,) = [attributes for tag, attributes in found.tags if tag == "img"]
    assert str(image["src"]).startswith("data:image/svg+xml;base64,")
    assert image["alt"] == "map of drawn"
    assert repr(answer).startswith("<Plan of 'drawn': 3 ops")
    assert len(repr(answer)) < 120


def test_hostile_names_stay_text() -> None:
    graph = graphs.chain()
    name = "</td><script>alert(1)</script>\x1b\u202e"
    hostile = replace(graph, name=name, tensors=tuple(replace(t, name=name) for t in graph.tensors))
    found = Elements(html_of(plan(hostile)))
    assert {tag for tag, _ in found.tags} <= {"div", "p", "b", "br", "table", "tr", "th", "td", "img"}
    assert "<script>" in found.text
    assert "\x1b" not in found.text
    assert all(key in ("style", "alt", "src") for _, attributes in found.tags for key in attributes)


def test_a_large_plan_is_shown_as_pixels() -> None:
    wide = graphs.graph(
        "\n".join(f"x -> y{i} : RELU" for i in range(400)), dict.fromkeys(["x", *(f"y{i}" for i in range(400))], 16),
        inputs="x", outputs=" ".join(f"y{i}" for i in range(400)),
    )  # fmt: skip
    content = html_of(plan(wide))
    assert len(content) < 700_000
    assert "and 395 more" in Elements(content).text


def test_show_needs_a_notebook_and_a_figure_that_there_is() -> None:
    answer = plan(graphs.chain())
    with pytest.raises(RequestError, match="show needs a notebook"):
        modelplan.show(answer)
    with pytest.raises(RequestError, match="cannot tell what to draw"):
        modelplan.show(answer, ".jpg")


def test_the_notebook_of_the_documentation_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing = [name for name in ("nbclient", "nbformat", "ipykernel") if find_spec(name) is None]
    if missing and not os.environ.get("MODELPLAN_DOCS"):  # CI installs the extra and says so
        pytest.skip(f"not installed: {', '.join(missing)}; pip install 'modelplan[docs]'")
    import nbclient
    import nbformat

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    (tmp_path / "models").symlink_to(ROOT / "models")  # in ROOT the sources would shadow what is installed
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call,unused-ignore]
    assert not any(cell.get("outputs") for cell in notebook.cells), "the stored notebook holds no results"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [out.data for cell in code for out in cell.outputs if "data" in out]
    images = [kind for data in shown for kind in re.findall(r'alt="(\w+) of', data.get("text/html", ""))]
    assert images == ["map", "reuse", "lifetimes", "map", "curve"]
    heights, table = [data["text/plain"] for data in shown if data["text/plain"].startswith("{")]
    assert re.fullmatch(r"\{'none': \d+, 'views': \d+, 'safe': \d+\}", heights)
    assert "'offset': [96, 0, 96, 64]" in table
