"""The public names, their order of arguments, and that each is really there."""

from __future__ import annotations

import inspect
import pydoc
import re
import typing
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path

import pytest

import modelplan
from modelplan.cli import parser_of
from modelplan.cli.command_table import MODULES

PINNED = Path(__file__).parent / "golden" / "public_api.txt"
#: Characters that `help(modelplan)` prints at most.
MOST_HELP = 60_000

PUBLIC = [
    "Aliases",
    "AllocatorAnswers",
    "Analysis",
    "AnalyzeRequest",
    "BrokenPlanError",
    "Budget",
    "Buffer",
    "CLadder",
    "CheckRequest",
    "Chosen",
    "CompareRequest",
    "Curve",
    "Difference",
    "EsphomeArena",
    "EsphomeRequest",
    "ExplainRequest",
    "Explanation",
    "Findings",
    "FitCRequest",
    "FitOnnxRequest",
    "FitRequest",
    "Footprint",
    "Graph",
    "Kind",
    "Ladder",
    "LayoutCheck",
    "LayoutRequest",
    "Limits",
    "Member",
    "MemoriesRequest",
    "Merge",
    "ModelError",
    "ModelPlanError",
    "ModelRequest",
    "MovingPlan",
    "OnnxLadder",
    "Op",
    "Options",
    "PackRequest",
    "PackedFile",
    "Placement",
    "Plan",
    "Problem",
    "Progress",
    "Proof",
    "RecomputeRequest",
    "RegionPlan",
    "ReorderedFile",
    "RequestError",
    "Runtime",
    "Schedule",
    "SelfTest",
    "SelfTestRequest",
    "ShareRequest",
    "SharedPlan",
    "Solution",
    "SolveRequest",
    "SpillRequest",
    "StreamCurve",
    "StreamRequest",
    "SweepProgress",
    "SweepRequest",
    "TargetRequest",
    "TargetVerdicts",
    "Tensor",
    "VerifyRequest",
    "analysis_stages",
    "analyze",
    "buffers",
    "check",
    "check_budgets",
    "check_layout",
    "choose_target",
    "compare",
    "diff",
    "esphome_arena",
    "explain",
    "fit",
    "fit_c",
    "fit_onnx",
    "height",
    "keep_offsets",
    "load",
    "load_bound",
    "measure",
    "order",
    "pack",
    "place",
    "place_in_memories",
    "plan",
    "read",
    "recompute",
    "render",
    "reorder",
    "self_test",
    "share_memory",
    "show",
    "solve",
    "spill",
    "storages",
    "stream",
    "sweep",
    "table_of",
    "target_verdicts",
    "to_dataframe",
    "to_dict",
    "to_json",
    "verify",
]  # fmt: skip


def test_the_names_are_pinned() -> None:
    assert modelplan.__all__ == PUBLIC
    assert dir(modelplan) == [name for name in PUBLIC if name.islower()]


def test_help_is_readable_and_names_everything() -> None:
    """The table first, each function with its docstring, each record in a line; its own help has all fields."""
    text = pydoc.plain(pydoc.render_doc(modelplan))
    assert len(text) < MOST_HELP
    assert text.index("analyze(AnalyzeRequest)") < text.index("FUNCTIONS")
    assert not [name for name in PUBLIC if not re.search(rf"\b{name}\b", modelplan.__doc__ or "")]
    for name in PUBLIC:
        kind = getattr(modelplan, name)
        if inspect.isfunction(kind):
            assert (inspect.getdoc(kind) or "?").splitlines()[-1] in text, name
        elif is_dataclass(kind):
            own = pydoc.plain(pydoc.render_doc(kind))
            assert not [field.name for field in fields(kind) if not re.search(rf"\b{field.name}\b", own)], name


def test_every_name_resolves_and_is_documented() -> None:
    for name in PUBLIC:
        assert typing.cast("object", getattr(modelplan, name)).__doc__, name


def test_signatures_and_options_are_pinned(request: pytest.FixtureRequest) -> None:
    """A line that goes or changes breaks somebody's program: it needs a new major version (before 1.0 a minor one)."""
    found = "".join(f"{line}\n" for line in [*signatures(), *options()])
    if request.config.getoption("--update"):
        PINNED.write_text(found)
    assert PINNED.read_text() == found, "run pytest --update and read the difference"


def signatures() -> Iterator[str]:
    """Each public function with its arguments, each public type with its fields."""
    for name in PUBLIC:
        kind = getattr(modelplan, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            yield f"{name}, exit code {kind.exit_code}" if hasattr(kind, "exit_code") else name
        elif isinstance(kind, type) and issubclass(kind, Enum):
            yield f"{name}: {', '.join(member.value for member in kind)}"
        else:
            yield f"{name}{plain_signature(kind)}"


def plain_signature(function: Callable[..., object]) -> inspect.Signature:
    """The signature with ... for defaults that have no words of their own."""
    signature = inspect.signature(function)
    kept = [
        one if one.default in (inspect.Parameter.empty, ()) or isinstance(one.default, int | str | None)
        else one.replace(default=...)
        for one in signature.parameters.values()
    ]  # fmt: skip
    return signature.replace(parameters=kept)


def options() -> Iterator[str]:
    """Each command with its arguments."""
    for name in MODULES:
        parser = parser_of(name)
        yield from (f"{parser.prog} {words}".rstrip() for words in arguments_of(parser))


def arguments_of(parser: ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for name, inner in action.choices.items():
                yield from (f"{name} {words}" for words in arguments_of(inner))
        elif action.dest != "help":
            count = {None: "", 0: "", "?": "?", "*": "*", "+": "+"}.get(action.nargs, f"{{{action.nargs}}}")
            named = "|".join(action.option_strings) or action.metavar or action.dest
            choices = f" {','.join(map(str, action.choices))}" if action.choices else ""
            yield f"{named}{count}{choices}" + ("" if action.nargs == 0 or not action.option_strings else " VALUE")
