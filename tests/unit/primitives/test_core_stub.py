"""`_core.pyi` says what the compiled module offers: the same names, parameters, defaults and attributes."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import get_args

import pytest

from modelplan.model import placement as types
from modelplan.planning.allocators import greedy
from modelplan.planning.allocators.systems import minimalloc, telamalloc
from modelplan.primitives import _core, number_types

STUB = ast.parse(Path(number_types.__file__).with_name("_core.pyi").read_text())
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
CONSTANTS = {
    node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
}


def parameters(header: str) -> list[tuple[str, str]]:
    """The parameters of a signature with their types and defaults; the type is empty where the module has no word."""
    header = re.sub(r"numpy\.ndarray\[dtype=float64[^]]*\]", "FloatArray", header)
    header = re.sub(r"numpy\.ndarray\[[^]]*\]", "IntArray", header).replace("modelplan.primitives._core.", "")
    arguments = ast.parse(f"{header.replace('collections.abc.Sequence', 'list')}: ...").body[0].args  # type: ignore[attr-defined]
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    found = [(a.arg, a.annotation, d) for a, d in zip(arguments.args, defaults, strict=True)]
    found += [(f"*{a.arg}", a.annotation, None) for a in arguments.kwonlyargs]
    return [(f"{name}={ast.unparse(d)}" if d else name, ast.unparse(t) if t else "") for name, t, d in found]


def bound(function: object) -> list[tuple[str, str]]:
    """The same of what nanobind made, which keeps the defaults apart from the text."""
    ((text, _, defaults),) = function.__nb_signature__  # type: ignore[attr-defined]
    return parameters(re.sub(r"\\(\d+)", lambda number: repr(defaults[int(number[1])]), text))


def assert_same(stub: ast.FunctionDef, function: object) -> None:
    stubbed, offered = parameters(f"def f({ast.unparse(stub.args)})"), bound(function)
    assert [name for name, _ in stubbed] == [name for name, _ in offered]
    for (_, mine), (_, its) in zip(stubbed, offered, strict=True):
        assert mine == its or "object" in its or not its


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_parameters_are_those_of_the_module(name: str) -> None:
    assert_same(FUNCTIONS[name], getattr(_core, name))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_attributes_are_those_of_the_module(name: str) -> None:
    members = {node.target.id for node in CLASSES[name].body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    members |= {n.name for n in CLASSES[name].body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}
    offered = vars(getattr(_core, name))
    assert members == {member for member in offered if not member.startswith("_")}
    for node in CLASSES[name].body:
        if isinstance(node, ast.FunctionDef):
            assert_same(node, offered[node.name])


def test_the_stub_names_all_that_there_is() -> None:
    offered = {name for name in dir(_core) if not name.startswith("_")}
    assert offered == {name for name in {*FUNCTIONS, *CLASSES, *CONSTANTS} if not name.startswith("_")}


def test_words_and_rules_are_those_of_python() -> None:
    assert get_args(types.Ended) == _core.ENDED
    stated = next(
        node for node in STUB.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_Ended"
    )
    assert ast.literal_eval(stated.value.slice) == _core.ENDED  # type: ignore[union-attr]
    assert tuple(greedy.GapRule) == _core.FITS
    assert tuple(inspect.signature(minimalloc.Rules).parameters) == _core.MINIMALLOC_RULES
    assert tuple(inspect.signature(telamalloc.TelamallocOptions).parameters)[:-2] == _core.TELAMALLOC_RULES


def test_every_way_to_end_is_explained() -> None:
    assert all(f'- "{word}": ' in (types.Placement.__doc__ or "") for word in get_args(types.Ended))
