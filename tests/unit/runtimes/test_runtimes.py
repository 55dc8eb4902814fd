"""The table of runtimes is complete: a row that lacks something is told by name."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import graphs
import pytest

from modelplan import Graph, Options, RequestError, Runtime, load, plan, read, render, runtimes
from modelplan.formats import LOADERS
from modelplan.planning.aliasing.rules import MODES
from modelplan.planning.allocators import ALLOCATORS
from modelplan.runtimes import RUNTIMES

PACKAGE = Path(__file__).parents[3] / "modelplan"
NET = graphs.graph("x -> a : RELU\na -> y : ADD", dict.fromkeys("xay", 16), inputs="x", outputs="y")


def lacking(row: Runtime) -> list[str]:
    """What a row of the table has to say and does not, by name."""
    sharing, shared = row.sharing, {*row.sharing.views, *row.sharing.overwrites, *row.sharing.proved}
    sequential = any(library.sequential for library in row.libraries)
    named = {
        "allocator: a row of ALLOCATORS": row.allocator in ALLOCATORS,
        "alignment: at least 1": row.alignment >= 1,
        "source": row.source,
        "sharing: which operators leave their input's bytes as they are, or overwrite them": shared,
        "sharing.source": sharing.source,
        "sharing.front_to_back: needs a library that is sequential": sequential or not sharing.front_to_back,
        "libraries: names": len(set(row.library_names)) == len(row.libraries) > 0,
        "libraries: what each explains": all(library.explains for library in row.libraries),
        "scratch: what separates several kernel libraries": row.scratch or len(row.libraries) == 1,
    }
    return [name for name, said in named.items() if not said]


@pytest.mark.parametrize("row", RUNTIMES.values(), ids=lambda row: row.name)
def test_every_row_says_all_of_its_runtime(row: Runtime) -> None:
    assert lacking(row) == []


def test_an_empty_row_is_told_what_it_lacks() -> None:
    empty = Runtime("new", 0, "tensor", "arena", "", "")
    assert [name.split(":")[0] for name in lacking(empty)] == [
        "allocator", "alignment", "source", "sharing", "sharing.source"
    ]  # fmt: skip


def test_every_file_of_the_folder_is_a_row() -> None:
    files = {path.stem for path in (PACKAGE / "runtimes").iterdir() if path.stem[:2] != "__"}
    assert files == RUNTIMES.keys()


@pytest.mark.parametrize("form", [row.suffix[1:] for row in LOADERS.values() if not row.table])
def test_every_format_has_one_usual_runtime(form: str) -> None:
    assert [row.name for row in RUNTIMES.values() if row.default_for == form] == [runtimes.runtime(None, form).name]


@pytest.mark.parametrize("row", RUNTIMES.values(), ids=lambda row: row.name)
@pytest.mark.parametrize("mode", MODES)
def test_every_runtime_plans_with_each_of_its_libraries(row: Runtime, mode: str) -> None:
    for library in row.libraries:
        made = plan(NET, Options(row.name, alias=mode, kernels=library.name))
        assert made.runtime.library is library
        assert read(str(render(made, ".json"))).runtime == made.runtime


@pytest.mark.parametrize("row", RUNTIMES.values(), ids=lambda row: row.name)
def test_unknown_kernels_are_refused_with_the_list(row: Runtime) -> None:
    with pytest.raises(RequestError, match=f"runtime {row.name}: no kernels 'neon'; there are: {row.usual_kernels}"):
        plan(NET, Options(row.name, kernels="neon"))


@pytest.mark.slow
def test_nobody_else_knows_a_runtime_by_name() -> None:
    """A feature that depends on the runtime reads a field of its record."""
    allowed = {
        ("planning/aliasing/__init__.py", "generic"),  # whose facts hold where the caller names no runtime
    }
    found = set()
    for path in PACKAGE.rglob("*.py"):
        home = path.relative_to(PACKAGE)
        if home.parts[0] != "runtimes":
            words = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
            named = (word for word in words if isinstance(word, str) and word in RUNTIMES and len(word) > 1)
            found |= {(home.as_posix(), word) for word in named}  # one letter is no evidence
    assert found == allowed


def test_a_graph_of_another_format_is_refused_by_its_name() -> None:
    with pytest.raises(RequestError, match="no runtime for graphs of the format 'mlir'; there are: tflite, onnx"):
        plan(replace(NET, format="mlir"))  # type: ignore[arg-type]


def test_plain_c_has_scratch_of_kernels_that_it_calls_alone(corpus: Path) -> None:
    graph = load(corpus / "tflite" / "keyword_scrambled.tflite")
    assert isinstance(graph, Graph)
    svdf = next(op for op in graph.ops if op.kind == "SVDF")
    sizes = [RUNTIMES[name].scratch(graph, svdf, "cmsis-dsp") for name in ("tflm", "c")]  # type: ignore[misc]
    assert (bool(sizes[0]), sizes[1]) == (True, ())
