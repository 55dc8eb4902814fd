"""The public names, their order of arguments, and that each is really there."""

from __future__ import annotations

import inspect
import typing

import modelplan

PUBLIC = [
    "Aliases",
    "BrokenPlanError",
    "Budget",
    "Buffer",
    "Difference",
    "Footprint",
    "Graph",
    "Kind",
    "Ladder",
    "Member",
    "Merge",
    "ModelError",
    "ModelPlanError",
    "Op",
    "Options",
    "Placement",
    "Plan",
    "Problem",
    "Progress",
    "RequestError",
    "Runtime",
    "Schedule",
    "SharedPlan",
    "Tensor",
    "buffers",
    "check",
    "diff",
    "fit",
    "height",
    "load",
    "load_bound",
    "measure",
    "order",
    "place",
    "plan",
    "read",
    "render",
    "share_memory",
    "show",
    "storages",
]  # fmt: skip

ARGUMENTS = {
    "load": ["path", "dims", "shapes"],
    "storages": ["graph", "mode", "runtime", "swap"],
    "order": ["graph", "aliases", "runtime", "name", "budget"],
    "buffers": ["graph", "order", "aliases", "runtime", "capacity"],
    "place": ["problem", "name", "budget"],
    "check": ["problem", "placement"],
    "show": ["plan", "figure"],
    "plan": [
        "graph",
        "options",
        "budget",
        "runtime",
        "schedule",
        "alias",
        "allocator",
        "alignment",
        "pad",
        "capacity",
        "streams",
        "precedences",
        "kernels",
        "offsets",
        "overlaps",
    ],
    "measure": ["graph", "options", "budget"],
    "diff": ["old", "new", "runtime", "kernels", "abi"],
    "share_memory": [
        "models",
        "in_turn",
        "pipelines",
        "keep",
        "runtime",
        "alias",
        "allocator",
        "abi",
        "kernels",
        "budget",
    ],
    "render": ["plan", "suffix"],
    "read": ["text", "name"],
    "height": ["problem", "placement"],
    "load_bound": ["problem"],
}


def test_the_names_are_pinned() -> None:
    assert modelplan.__all__ == PUBLIC
    assert dir(modelplan) == PUBLIC


def test_every_name_resolves_and_is_documented() -> None:
    for name in PUBLIC:
        assert typing.cast("object", getattr(modelplan, name)).__doc__, name


def test_the_arguments_are_pinned() -> None:
    found = {name: list(inspect.signature(getattr(modelplan, name)).parameters) for name in ARGUMENTS}
    assert found == ARGUMENTS
