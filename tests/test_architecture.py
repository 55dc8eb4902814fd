"""Imports point only against the flow of data; nanobind stays behind one door; start-up stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

from modelplan.cli import COMMANDS
from modelplan.outputs import OUTPUTS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "modelplan"

#: A module may import from its own layer and from those before it. Of several names that fit the longest counts.
LAYERS = [
    ["errors", "dtypes", "byte_counts"],
    ["types", "_core"],
    ["bounds", "highs", "ops"],
    ["loaders"],
    ["runtimes", "targets", "rewriting.flatbuffer", "rewriting.protobuf"],
    ["referee", "aliasing", "saved_plan"],
    ["lifetimes", "streams", "verifier"],
    ["schedulers", "allocators", "session_blocks"],
    ["rewriting.reordering"],
    [
        "explaining.findings",
        "differences.findings",
        "budgets.findings",
        "together.shared_plan",
        "fleets.findings",
        "recomputing.findings",
    ],
    ["memories.region_layout"],
    ["memories.region_plan", "memories.findings"],
    ["outputs"],
    ["pipeline"],
    ["rewriting"],
    ["explaining", "differences", "together", "memories", "recomputing"],
    ["budgets", "fleets"],
    ["cli"],
    ["__main__"],
]
LAYER_OF = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def layer_of(module: str) -> int:
    """The layer of a dotted name below `modelplan`; -1 for a name that is no module's."""
    parts = module.split(".")
    return next((LAYER_OF[name] for n in range(len(parts), 0, -1) if (name := ".".join(parts[:n])) in LAYER_OF), -1)


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imported(tree: ast.Module) -> set[str]:
    """Dotted name below `modelplan` of everything that the module imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("modelplan."):
            found |= {f"{node.module}.{alias.name}".removeprefix("modelplan.") for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("modelplan.") for a in node.names if a.name.startswith("modelplan.")}
    return found


def rooms(tree: ast.Module) -> set[str]:
    """First component of everything that the module imports."""
    return {name.split(".")[0] for name in imported(tree)}


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_backwards(path: Path) -> None:
    home = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    if home == "__init__":
        return
    assert layer_of(home) >= 0, f"{home} has no layer; add it to LAYERS"
    late = {name for name in imported(ast.parse(path.read_text())) if layer_of(name) > layer_of(home)}
    assert not late, f"{path.name} imports from a later stage: {late}"


def import_graph() -> nx.DiGraph[str]:
    """The modules of the package and which imports which, deferred imports too; the root only names what there is."""
    modules = {".".join(p.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): p for p in sources()}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, path in modules.items():
        for target in imported(ast.parse(path.read_text())):
            home = target if target in modules else target.rpartition(".")[0]
            if "__init__" not in (name, home) and home in modules:
                graph.add_edge(name, home)
    return graph


def test_no_modules_and_no_rooms_import_each_other_in_a_circle() -> None:
    modules = import_graph()
    assert len(modules) > 100
    layers = {name: name.split(".")[0] for name in modules}
    rooms_graph: nx.DiGraph[str] = nx.DiGraph(
        (layers[a], layers[b]) for a, b in modules.edges if layers[a] != layers[b]
    )
    for graph in (modules, rooms_graph):
        assert not [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1]


def test_the_architecture_page_lists_every_room_and_every_part_of_the_core() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    packages = [p.parent for p in PACKAGE.rglob("*/__init__.py")]
    names = {f"`{p.relative_to(PACKAGE)}/`" for p in packages}
    names |= {f"`{p.name}`" for p in PACKAGE.glob("*.py") if p.stem != "__init__"}
    names |= {f"`core/{p.name}/`" for p in (ROOT / "core").iterdir() if p.is_dir()}
    stems = {p.stem for p in (ROOT / "core").glob("*.[ch]pp")}
    names |= {f"`core/{stem}`" if not stem.startswith("bindings") else "`core/bindings*`" for stem in stems}
    assert not {name for name in names if name not in page}


def test_no_function_bears_the_name_of_a_module() -> None:
    stages = [p for p in sources() if p.parent.name != "cli"]  # commands are named for the verbs they run
    modules = {p.stem for p in stages} | {p.parent.name for p in stages}
    public = {
        (p.name, node.name)
        for p in sources()
        for node in ast.parse(p.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    clashes = {(file, name) for file, name in public if name in modules and Path(file).stem != name}
    assert not clashes


def test_only_the_bindings_know_nanobind() -> None:
    others = [p for p in (ROOT / "core").rglob("*.[ch]pp") if not p.name.startswith("bindings")]
    assert others
    assert not [p.name for p in others if "nanobind" in p.read_text()]


def test_the_referee_shares_no_code_with_what_it_checks() -> None:
    text = (ROOT / "core" / "referee.cpp").read_text() + (ROOT / "core" / "referee.hpp").read_text()
    includes = {line.split()[1] for line in text.splitlines() if line.startswith("#include")}
    assert all(name.startswith("<") or name == '"referee.hpp"' for name in includes)
    assert rooms(ast.parse((PACKAGE / "referee.py").read_text())) <= {"_core", "errors", "types"}


def test_the_verifier_shares_no_code_with_planning() -> None:
    planning = {"lifetimes", "aliasing", "ops", "schedulers", "allocators", "pipeline", "rewriting", "bounds"}
    for path in (PACKAGE / "verifier").rglob("*.py"):
        assert not rooms(ast.parse(path.read_text())) & planning, path.name


def test_the_verifier_s_loops_share_no_code_with_planning() -> None:
    files = list((ROOT / "core" / "verifier").iterdir())
    assert files
    for path in files:
        own = {f'"{path.stem}.hpp"'} if path.suffix == ".cpp" else set()
        includes = {line.split()[1] for line in path.read_text().splitlines() if line.startswith("#include")}
        assert {name for name in includes if not name.startswith("<")} == own, path.name


def defining(room: str, name: str, argument: str) -> set[str]:
    """The modules of a room whose function `name` has a first parameter of the type `argument`."""
    return {
        path.stem
        for path in (PACKAGE / room).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == name and path.stem != "__init__"
        if node.args.args and ast.unparse(node.args.args[0].annotation or ast.Constant(None)) == argument
    }


def test_every_command_and_every_renderer_stands_in_its_table() -> None:
    assert defining("cli", "run", "Namespace") == set(COMMANDS)
    rows = {(row.module.rpartition(".")[2], row.function) for row in OUTPUTS.values()}
    assert {(stem, name) for name in ("render", "svg", "png") for stem in defining("outputs", name, "Plan")} == rows


def test_outputs_import_no_planner() -> None:
    for path in (PACKAGE / "outputs").rglob("*.py"):
        assert not rooms(ast.parse(path.read_text())) & {"pipeline", "schedulers", "allocators"}, path.name


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from modelplan.cli import main; main(['--version'])"
        " if False else main([]); print([m for m in ('numpy','networkx','onnx','tflite','matplotlib','rich')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_first_answer_does_not_import_what_it_does_not_use() -> None:
    slow = ("networkx", "matplotlib", "onnx", "rich", "subprocess", "modelplan.verifier.rewrites.proving", "numpy.ma")
    code = (
        "import sys; from modelplan.cli import main; main(['analyze', 'models/ds_cnn_kws.tflite']);"
        f" print([m for m in {slow} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_without_a_target_does_not_load_the_targets() -> None:
    code = (
        "import sys; from modelplan.cli import main; main(['check', 'models/ds_cnn_kws.tflite', '--budget', '1MiB']);"
        " print([m for m in sys.modules if m.startswith('modelplan.targets')])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
