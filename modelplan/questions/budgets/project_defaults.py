"""What a project says once for every command: `target`, `kernels` and `abi` in [tool.modelplan] or modelplan.toml."""

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from modelplan.formats.whole_files import read_toml_table
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass

#: The file that holds nothing but what modelplan reads, and the one that many tools share.
OWN, SHARED = "modelplan.toml", "pyproject.toml"
#: The keys of a project that every command reads.
DEFAULTS = ("target", "kernels", "abi")


@dataclass(frozen=True, slots=True)
class ProjectDefaults:
    """The values by their keys, and the file that states them; empty where no file does."""

    path: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


def project_defaults(start: Path) -> ProjectDefaults:
    """The defaults of the file in `start` or in the nearest folder above that has something for modelplan.

    Raises:
        RequestError: the file is not TOML, or a value is not text.
    """
    for folder in (start, *start.parents):
        for name in (OWN, SHARED):
            path = folder / name
            if path.is_file() and (name == OWN or b"tool.modelplan" in path.read_bytes()):
                return ProjectDefaults(os.path.relpath(path), checked_defaults(path, stated_table(path) or {}))
    return ProjectDefaults()


def checked_defaults(path: Path, table: Mapping[str, object]) -> dict[str, str]:
    """The defaults of a table, each of which is text."""
    values: dict[str, str] = {}
    for key in DEFAULTS:
        value = table.get(key, "")
        if not isinstance(value, str):
            raise RequestError(f"{path}: {key} is {value!r}, expected text")
        if value:
            values[key] = value
    return values


def stated_table(path: Path) -> dict[str, object] | None:
    """What a file holds for modelplan; None where it holds nothing.

    Raises:
        RequestError: it cannot be read, or is not TOML.
    """
    document = _parsed(path)
    table = _shared_table(document) if path.name == SHARED else document
    return table if isinstance(table, dict) else None


def _parsed(path: Path) -> dict[str, object]:
    try:
        return read_toml_table(path)
    except ModelError as problem:
        wrong = str(problem).startswith(f"{path}: not TOML")
        raise RequestError(f"{problem}" if wrong else f"cannot read {problem}") from None


def _shared_table(document: Mapping[str, object]) -> object:
    """What pyproject.toml holds for modelplan; None where it holds nothing."""
    tool = document.get("tool")
    return tool.get("modelplan") if isinstance(tool, dict) else None
