"""Golden vectors of the greedy planners, and what `place` refuses."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import graphs
import pytest

from modelplan import RequestError, height, place
from modelplan.planning import allocators

CHAIN = [(16, 0, 1), (8, 1, 2), (64, 2, 3), (32, 3, 4), (8, 4, 5)]
COMPLEX = [
    (32, 0, 1), (32, 1, 4), (8, 2, 5), (16, 3, 5), (8, 4, 5), (64, 5, 7), (8, 6, 8), (8, 7, 8), (16, 8, 9),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "alignment", "offsets", "total"),
    [
        (CHAIN, 1, [0, 64, 0, 64, 0], 96),
        (CHAIN, 128, [0, 128, 0, 128, 0], 160),
        (COMPLEX, 1, [0, 32, 80, 64, 88, 0, 64, 72, 0], 96),
    ],
)
def test_tflite_greedy_by_size(
    rows: list[tuple[int, int, int]], alignment: int, offsets: list[int], total: int
) -> None:
    problem = graphs.problem([(s, a, b + 1) for s, a, b in rows], alignment=[alignment] * len(rows))
    placement = place(problem, "tflite-greedy-by-size")
    assert placement.offsets.tolist() == offsets
    assert height(problem, placement) == total


def test_tflm_greedy_places_later_of_equal_sizes_first() -> None:
    rows = [(10, 0, 1), (20, 1, 2), (30, 2, 3), (40, 3, 4), (50, 0, 1)]
    assert place(graphs.inclusive(rows), "tflm-greedy").offsets.tolist() == [50, 70, 40, 0, 0]
    assert height(graphs.inclusive(rows), place(graphs.inclusive(rows), "tflm-greedy")) == 90
    rows = [(100, 0, 1), (50, 2, 3), (20, 1, 2)]
    assert height(graphs.inclusive(rows), place(graphs.inclusive(rows), "tflm-greedy")) == 120
    assert place(graphs.inclusive([(8, 0, 0), (8, 0, 0)]), "tflm-greedy").offsets.tolist() == [8, 0]


def test_an_unknown_allocator_is_refused_with_the_names() -> None:
    with pytest.raises(RequestError, match="no allocator 'nope'; there are: best, modelplan, naive"):
        place(graphs.problem([]), "nope")


def test_a_demand_that_an_allocator_cannot_honour_is_refused() -> None:
    with pytest.raises(RequestError, match="'naive' does not honour pins"):
        place(graphs.problem([(8, 0, 1)], pin=[16]), "naive")


def test_a_capacity_is_a_question() -> None:
    problem = graphs.problem([(8, 0, 1), (8, 0, 1)], capacity=10)
    assert height(problem, place(problem)) == 16


def test_the_table_names_every_row_of_every_module() -> None:
    folder = Path(str(allocators.__file__)).parent
    files = [path for path in folder.rglob("*.py") if "\nROWS" in path.read_text() and path.stem != "__init__"]
    with_rows = {".".join(path.relative_to(folder).with_suffix("").parts) for path in files}
    assert with_rows == {module for module, _ in allocators.ROWS_OF}
    for module in with_rows:
        rows = import_module(f"modelplan.planning.allocators.{module}").ROWS
        named = [name for other, names in allocators.ROWS_OF for name in names.split() if other == module]
        assert sorted(variant.name for row in rows for variant in row.variants) == sorted(named), module
    assert all(name == row.name for name, row in allocators.ALLOCATORS.items())
    assert len(allocators.ALLOCATORS) == len(list(allocators.ALLOCATORS)) == len(set(allocators.ALLOCATORS))


def test_a_row_is_imported_when_it_is_used() -> None:
    code = (
        "import sys; from modelplan import Buffer, Problem, place; place(Problem.of([Buffer('a', 8, 0, 1)]));"
        "print(sorted(m.rpartition('.')[2] for m in sys.modules if m.startswith('modelplan.planning.allocators.')))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['allocator_rows', 'solver', 'tied_buffers']"


@pytest.mark.parametrize("name", [row.name for row in allocators.ALLOCATORS.values() if "overlaps" in row.honours])
def test_a_fact_that_is_told_twice_counts_once(name: str) -> None:
    """`place` has every answer refereed: adding up the two would put the buffers too close."""
    if name == "cp-sat":
        pytest.importorskip("ortools")
    facts = [(0, 1, 5), (0, 1, 5), (1, 2, 3), (1, 2, 1)]
    problem = graphs.problem([(8, 0, 2), (8, 0, 2), (4, 1, 3)], overlaps=facts)
    assert height(problem, place(problem, name)) >= 8
