"""Allocators and schedulers of other packages, found by the entry points that these declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from modelplan.primitives.errors import ModelPlanError, RequestError

if TYPE_CHECKING:
    from importlib import metadata

ALLOCATORS, SCHEDULERS = "modelplan.allocators", "modelplan.schedulers"


@cache
def installed(group: str) -> Mapping[str, metadata.EntryPoint]:
    """The entry points of a group by name. Cost: a look at every package that is installed, once."""
    from importlib import metadata  # here, since few ask for what other packages have

    return {entry.name: entry for entry in metadata.entry_points(group=group)}


def package_of(entry: metadata.EntryPoint) -> str:
    """The package that declares an entry point, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def loaded(entry: metadata.EntryPoint) -> Any:
    """What an entry point stands for.

    Raises:
        RequestError: it cannot be imported; the message names the package.
    """
    try:
        return entry.load()
    except Exception as problem:
        raise RequestError(
            f"{entry.name!r} of {package_of(entry)} cannot be loaded: {type(problem).__name__}: {problem}"
        ) from problem


def guarded(entry: metadata.EntryPoint, run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, whose errors name the package that it comes from; those of modelplan itself pass."""

    def call(*arguments: Any) -> Any:
        try:
            return run(*arguments)
        except ModelPlanError:
            raise
        except Exception as problem:
            raise RequestError(
                f"{entry.name!r} of {package_of(entry)} failed: {type(problem).__name__}: {problem}"
            ) from problem

    return call
