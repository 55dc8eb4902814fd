"""Imports point only against the flow of data; nanobind stays behind one door; start-up stays light."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from modelplan.cli import command_table
from modelplan.outputs import OUTPUTS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "modelplan"
#: Files side by side in a folder, its `__init__` included.
MOST_FILES = 40
#: Lines of the page about the architecture.
ONE_SCREEN = 75

#: The rooms of the package, from the ground up: a module imports from its own room and from those before it.
ROOMS = (
    "primitives",
    "model",
    "ops",
    "formats",
    "runtimes",
    "targets",
    "answers",
    "checking",
    "planning",
    "rewriting",
    "plain_c",
    "questions",
    "outputs",
    "cli",
)


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    """The name by which a source file is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """A source file's syntax tree, breadth first; the file itself stands at the front."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def top_level(path: Path) -> list[ast.stmt]:
    return nodes(path)[0].body  # type: ignore[attr-defined,no-any-return]


#: A text that may name a module: "modelplan.a.b" or "modelplan.a.b:function".
TEXT_NAME = re.compile(r"modelplan(\.\w+)+(:\w+)?")
MODULES = {dotted(path): path for path in sources()}


@cache
def named(module: str) -> set[str]:
    """Every dotted name that a module imports, or that one of its texts holds, such as an argument of `import_module`.

    Blocks for type checking and imports inside of functions count like all others. A text with a hole, such as
    f"modelplan.cli.{name}", stands for every module that it can name.
    """
    found: set[str] = set()
    for node in nodes(MODULES[module]):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and TEXT_NAME.fullmatch(node.value):
            found |= {name for name in [node.value.partition(":")[0]] if home(name) != "modelplan"}
        elif isinstance(node, ast.JoinedStr) and (prefix := fixed_prefix(node, module)):
            found |= {name for name in MODULES if name.startswith(prefix)}
    return found


def fixed_prefix(text: ast.JoinedStr, module: str) -> str:
    """How the names begin that an f-string makes: "modelplan." and more, or nothing."""
    first, *others = text.values
    if isinstance(first, ast.FormattedValue):
        return f"{module}." if others and isinstance(first.value, ast.Name) and first.value.id == "__name__" else ""
    assert isinstance(first, ast.Constant)
    return str(first.value) if str(first.value).startswith("modelplan.") and "/" not in str(first.value) else ""


def home(name: str) -> str:
    """The module that a dotted name belongs to; empty where it is none of the package's."""
    parts = name.split(".")
    return next((head for n in range(len(parts), 0, -1) if (head := ".".join(parts[:n])) in MODULES), "")


@cache
def imports() -> nx.DiGraph[str]:
    """Which module imports which."""
    gc.disable()  # all syntax trees stay
    pairs = {(module, home(name)) for module in MODULES for name in named(module)}
    gc.freeze()
    gc.enable()
    return nx.DiGraph((a, b) for a, b in pairs if b not in ("", a))


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def rooms(path: Path) -> set[str]:
    """The rooms of everything that a source file imports."""
    return {room_of(home(name)) for name in named(dotted(path)) if home(name)}


def folded(graph: nx.DiGraph[str], depth: int) -> nx.DiGraph[str]:
    """The same imports between folders of a depth; modules that lie above it stand for themselves."""

    def folder(module: str) -> str:
        parts = module.split(".")
        inside = parts if MODULES[module].name == "__init__.py" else parts[:-1]
        return ".".join(inside[:depth]) if len(inside) >= depth else module

    return nx.DiGraph((folder(a), folder(b)) for a, b in graph.edges if folder(a) != folder(b))


def circles(graph: nx.DiGraph[str]) -> list[list[str]]:
    return [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1]


def test_every_module_lies_in_a_room() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}
    assert {room_of(name) for name in MODULES} - {"", "__main__"} == set(ROOMS)


def test_unit_tests_lie_in_folders_named_as_the_rooms() -> None:
    unit = ROOT / "tests" / "unit"
    assert {path.parent.name for path in unit.glob("*/test_*.py")} <= set(ROOMS)
    outside = {"test_contributing.py", "test_equal_plans.py", "test_packaging.py"}
    assert {path.name for path in unit.glob("test_*.py")} <= outside, "of what lies outside of the package"


def test_imports_point_downwards() -> None:
    upwards = [
        f"{a} imports {b}"
        for a, b in imports().edges
        if room_of(a) in ROOMS and (b == "modelplan" or ROOMS.index(room_of(b)) > ROOMS.index(room_of(a)))
    ]
    assert not upwards


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 9])
def test_no_modules_and_no_folders_import_each_other_in_a_circle(depth: int) -> None:
    assert len(imports()) > 350
    assert not circles(folded(imports(), depth + 1))


def test_the_test_sees_hidden_imports() -> None:
    edges = imports().edges
    assert ("modelplan.model.problem", "modelplan.primitives") in edges, "the compiled core, which lies there"
    assert ("modelplan.cli", "modelplan.cli.analyze") in edges, "a text with a hole"
    assert ("modelplan.checking.verifier.litert", "modelplan.checking.verifier.litert_process") in edges, "a text"
    assert ("modelplan.planning.allocators", "modelplan.planning.allocators.systems.xla") in edges, "{__name__}"


def test_no_folder_is_crowded() -> None:
    counts = Counter(path.parent for path in sources())
    assert not {str(folder.relative_to(ROOT)): n for folder, n in counts.items() if n > MOST_FILES}


def test_the_architecture_page_names_every_room_in_a_line_and_every_part_of_the_core() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    names = {f"| `{room}/` | " for room in ROOMS}
    names |= {f"`core/{p.name}/`" for p in (ROOT / "core").iterdir() if p.is_dir()}
    stems = {p.stem for p in (ROOT / "core").glob("*.[ch]pp")}
    names |= {f"`core/{stem}`" if not stem.startswith("bindings") else "`core/bindings*`" for stem in stems}
    assert not {name for name in names if name not in page}
    assert len(page.splitlines()) <= ONE_SCREEN


def test_no_public_class_name_stands_for_two_things() -> None:
    classes = Counter(
        node.name
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, count in classes.items() if count > 1]


#: Words that name nothing in the package, and what to say in their place.
INSTEAD = {
    "beside": "what it is: neighbours, sides",
    "clocked": "the figure: steps, seconds",
    "course": "history, trajectory",
    "foreign": "what it is: new, forbidden, of another domain",
    "gathered": "collected, or the operator: gather, im2col",
    "go_on": "the condition: within_budget",
    "ground": "background, base",
    "kicked": "perturbed",
    "looped": "the noun: loop, iterations",
    "realised": "computed, allocated",
    "searched": "search, or what it returns",
    "stand": "placement, state",
    "stands": "position, fitting",
    "stands_of": "states_of",
    "stepped": "subgradient_step, or the verb",
    "stranger": "what it is: new, no such operator",
    "told": "message, words, annotations",
}
#: Names in the schemas of files and runtimes, which spell quantisation in their own way.
SCHEMA_NAMES = ("quantization", "quantizations", "quantize", "dequantize", "quantized_multiplier")
#: Words that nothing is called: they fit anything.
PLACEHOLDERS = {"found", "made", "once", "one"}


def test_names_say_what_they_stand_for() -> None:
    names, places = set[str](), set[str]()
    for path in sources():
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                places.add(node.id)
            elif isinstance(node, ast.arg):
                places.add(node.arg)
    words = {name: name.lower().lstrip("_") for name in names | places}
    assert not {f"{name}: say {INSTEAD[word]}" for name, word in words.items() if word in INSTEAD}
    assert not {name for name in words if name.lower() in PLACEHOLDERS}
    assert not {name for name, word in words.items() if re.search("quantiz", word) and word not in SCHEMA_NAMES}


#: Words that mean one thing, what to say for what they were once said for as well, and where that lies.
ONE_IDEA = {
    "region": ("a memory; a run of operators in stripes is a stretch", ("rewriting", "plain_c", "checking/verifier")),
    "stretch": ("a run of operators in stripes; else: span", ("planning", "runtimes", "targets", "model")),
}


@pytest.mark.parametrize("word", ONE_IDEA)
def test_a_word_means_one_thing_in_names_and_texts(word: str) -> None:
    means, elsewhere = ONE_IDEA[word]
    files = [path for room in elsewhere for path in (PACKAGE / room).rglob("*.py")]
    assert files
    assert not [str(path) for path in files if re.search(word, path.read_text(), re.IGNORECASE)], f"{word}: {means}"


def test_frozen_classes_are_defined_by_the_decorator_whose_methods_wait() -> None:
    usual = [
        dotted(path)
        for path in sources()
        if "@dataclass(frozen=True" in path.read_text() and "from dataclasses import dataclass" in path.read_text()
    ]
    assert not usual, "import dataclass from modelplan.primitives.lazy_records"


def test_no_function_bears_the_name_of_a_module() -> None:
    stages = [p for p in sources() if p.parent.name != "cli"]  # commands are named for the verbs they run
    modules = {p.stem for p in stages} | {p.parent.name for p in stages}
    public = {
        (p.name, node.name)
        for p in sources()
        for node in top_level(p)
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    clashes = {(file, name) for file, name in public if name in modules and Path(file).stem != name}
    assert not clashes


#: Files of one name on purpose: twins of two formats or runtimes, the verifier's facts and the planner's, a command.
TWINS = {
    "cmsis_nn", "elementwise", "esp_nn", "greedy", "interface", "interpreter_process", "ladder",
    "layers", "measuring", "moving", "onnx", "reading", "report", "safe_overlap", "tflite", "writing",
}  # fmt: skip


def test_a_file_s_name_stands_once() -> None:
    stems = Counter(path.stem for path in sources() if path.stem != "__init__")
    assert {stem for stem, count in stems.items() if count > 1} == TWINS


def test_only_the_bindings_know_nanobind() -> None:
    others = [p for p in (ROOT / "core").rglob("*.[ch]pp") if not p.name.startswith("bindings")]
    assert others
    assert not [p.name for p in others if "nanobind" in p.read_text()]


def test_parts_of_the_core_use_each_other_in_no_circle() -> None:
    core = ROOT / "core"
    texts = {path.relative_to(core).with_suffix(""): "" for path in core.rglob("*.[ch]pp")}
    for path in core.rglob("*.[ch]pp"):
        texts[path.relative_to(core).with_suffix("")] += path.read_text()
    binders = {name: part for part, text in texts.items() for name in re.findall(r"^void (bind_\w+)\(.*{$", text, re.M)}
    uses: nx.DiGraph[str] = nx.DiGraph()
    for part, text in texts.items():
        used = {str(Path(name).with_suffix("")) for name in re.findall(r'^#include "(.*)\.hpp"', text, re.M)}
        used |= {str(binders[name]) for name in re.findall(r"\b(bind_\w+)\(", text)}
        uses.add_edges_from((str(part), other) for other in used if other != str(part))
    assert len(binders) == 10
    assert ("bindings_module", "bindings_solver") in uses.edges
    assert not circles(uses)


def test_the_referee_shares_no_code_with_what_it_checks() -> None:
    text = (ROOT / "core" / "referee.cpp").read_text() + (ROOT / "core" / "referee.hpp").read_text()
    includes = {line.split()[1] for line in text.splitlines() if line.startswith("#include")}
    assert all(name.startswith("<") or name == '"referee.hpp"' for name in includes)
    assert rooms(PACKAGE / "checking" / "referee.py") <= {"", "primitives", "model"}


def test_the_verifier_shares_no_code_with_planning() -> None:
    for path in (PACKAGE / "checking").rglob("*.py"):
        assert not rooms(path) & {"planning", "rewriting", "plain_c", "ops", "questions"}, path.name
        assert "modelplan.model.bounds" not in map(home, named(dotted(path))), path.name


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
        for node in top_level(path)
        if isinstance(node, ast.FunctionDef) and node.name == name and path.stem != "__init__"
        if node.args.args and ast.unparse(node.args.args[0].annotation or ast.Constant(None)) == argument
    }


def test_every_command_and_every_renderer_stands_in_its_table() -> None:
    assert defining("cli", "run", "Namespace") == set(command_table.MODULES)
    made = {row.make.rpartition(".")[2] for row in OUTPUTS}
    assert {
        f"{path.stem}:draw"
        for path in (PACKAGE / "outputs" / "figures").glob("*.py")
        if "\ndef draw(" in path.read_text()
    } <= made
    assert {f"{stem}:render" for stem in defining("outputs", "render", "Plan")} <= made


def test_outputs_import_no_planner() -> None:
    for path in (PACKAGE / "outputs").rglob("*.py"):
        planners = {"modelplan.planning.pipeline", "modelplan.planning.schedulers", "modelplan.planning.allocators"}
        assert not planners & set(map(home, named(dotted(path)))), path.name


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from modelplan.cli import main; main(['--version'])"
        " if False else main([]); print([m for m in ('numpy','networkx','onnx','tflite','matplotlib','rich')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_first_answer_does_not_import_what_it_does_not_use() -> None:
    slow = (
        "networkx",
        "matplotlib",
        "onnx",
        "rich",
        "subprocess",
        "importlib.metadata",
        "modelplan.checking.verifier.rewrites.proving",
        "modelplan.formats.onnx.onnx_open",
        "modelplan.questions.fed_inputs",
        "modelplan.plain_c.stated_plan",
        "modelplan.rewriting.striped_tflite.building",
        "modelplan.runtimes.ort.feeding",
        "numpy.ma",
    )
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
