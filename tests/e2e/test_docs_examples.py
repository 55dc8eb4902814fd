"""The worked examples of docs/ run as they stand: every block after `<!-- run -->`, in an empty folder with models/."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import modelplan
from modelplan.cli import parser_of
from modelplan.cli.command_table import MODULES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
EXAMPLES = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"<!-- run -->\n```sh\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.slow
@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_runs(block: str, tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", block]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    named = re.findall(r"--(?:draw|json|csv|overlay) (\S+)", block)
    assert not [name for name in named if not list(tmp_path.glob(f"{Path(name).stem}*"))]


def test_there_are_examples_and_no_mark_is_lost() -> None:
    marks = sum(page.read_text().splitlines().count("<!-- run -->") for page in PAGES)
    assert marks == len(EXAMPLES) >= 8


def test_no_page_is_too_long_to_be_read_at_once() -> None:
    words = {page.name: len(page.read_text().split()) for page in PAGES}
    assert {name: count for name, count in words.items() if count > 2500} == {}


def test_every_page_stands_in_the_site() -> None:
    listed = re.findall(r"^ +- .*: (\S+\.md)$|^  - .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(name for pair in listed for name in pair if name) == [page.name for page in PAGES]


def test_the_repository_that_hosts_the_site_is_one_variable() -> None:
    hook = runpy.run_path(str(ROOT / ".ci" / "docs_hooks.py"))["on_page_markdown"]
    config = {"extra": {"repository": "acme/modelplan"}}
    for page in PAGES:
        place = SimpleNamespace(file=SimpleNamespace(src_uri="x.md"))
        text = hook(page.read_text(), place, SimpleNamespace(src_uris=[]), config=config)
        assert "OWNER/" not in text, page.name
    assert "MODELPLAN_REPOSITORY, OWNER/modelplan" in (ROOT / "mkdocs.yml").read_text()


def test_the_site_embeds_the_pages_that_it_copies_and_no_others() -> None:
    """Another build may draw pages into docs/ while this one runs."""
    hook = runpy.run_path(str(ROOT / ".ci" / "docs_hooks.py"))["on_page_markdown"]
    page = SimpleNamespace(file=SimpleNamespace(src_uri="pages.md"))
    files = SimpleNamespace(src_uris={"pages.md": None, "index.md": None, "pages/b.html": None, "pages/a.html": None})
    frames = re.findall(r"\[Open it alone\]\((.*?)\)|<iframe src=\"(.*?)\"", hook("# Pages", page=page, files=files))
    assert frames == [("pages/a.html", ""), ("", "pages/a.html"), ("pages/b.html", ""), ("", "pages/b.html")]
    del files.src_uris["pages/a.html"], files.src_uris["pages/b.html"]
    assert hook("# Pages", page=page, files=files).endswith("This build has none.\n")


def test_the_api_page_has_every_public_name() -> None:
    shown = re.findall(r"^::: modelplan\.[\w.]*?(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert sorted(shown) == sorted(modelplan.__all__)


def test_the_site_loads_nothing_from_outside_and_its_search_finds_every_option(tmp_path: Path) -> None:
    missing = [name for name in ("mkdocs", "material", "mkdocstrings") if find_spec(name) is None]
    if missing and not os.environ.get("MODELPLAN_DOCS"):  # CI installs the extra and says so
        pytest.skip(f"not installed: {', '.join(missing)}; pip install 'modelplan[docs]'")
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    built = sorted(tmp_path.glob("*.html"))
    assert {page.stem for page in PAGES} <= {page.stem for page in built}
    for page in built:
        loaded = re.findall(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"?([^\"\s>]+)", page.read_text())
        assert loaded
        assert not [link for link in loaded if re.match(r"(?:https?:)?//", link)], page
    assert "A memory plan of" in (tmp_path / "api.html").read_text()
    index = (tmp_path / "search" / "search_index.json").read_text()
    options = {
        option for command in MODULES for action in parser_of(command)._actions for option in action.option_strings
    }
    assert len(options) > 100
    assert [option for option in sorted(options) if option not in index] == []
