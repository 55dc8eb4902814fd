"""Reads a device that somebody wrote down in TOML: the fields of `Device`, and a table `[[region]]` for each region."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from modelplan.errors import ModelError
from modelplan.loaders.files import read_text
from modelplan.targets.device import Device, Region

#: Fields of a device that a file may state; `region` holds the regions.
_DEVICE = ("name", "title", "source", "quality", "abi", "kernels", "note")
_TYPES: dict[str, type] = {"int": int, "int | None": int, "str": str, "bool": bool, "bool | None": bool}
_TYPES["float | None"] = float


def read_toml(path: str) -> Device:
    """The device in a file.

    Raises:
        ModelError: names the file and the key or region that cannot be read.
    """
    try:
        found = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as problem:
        raise ModelError(f"{path}: not TOML: {problem}") from None
    tables = found.pop("region", None)
    if not isinstance(tables, list) or not tables or not all(isinstance(one, dict) for one in tables):
        raise ModelError(f"{path}: no [[region]]")
    facts: dict[str, Any] = {"name": Path(path).stem, "title": Path(path).stem, "source": path}
    for key, value in found.items():
        if key not in _DEVICE or not isinstance(value, str):
            raise ModelError(f"{path}: {key} = {value!r}; expected text for one of: {', '.join(_DEVICE)}")
        facts[key] = value
    try:
        return Device(**facts, regions=tuple(_region(path, one) for one in tables))
    except ValueError as problem:
        raise ModelError(f"{path}: {problem}") from None


def _region(path: str, table: dict[str, Any]) -> Region:
    known = {one.name: str(one.type) for one in fields(Region)}
    for key in ("name", "size"):
        if key not in table:
            raise ModelError(f"{path}: region {table.get('name', '?')} has no {key}")
    for key, value in table.items():
        if key not in known:
            raise ModelError(f"{path}: region {table['name']}: no field {key!r}; there are: {', '.join(known)}")
        expected = _TYPES.get(known[key], list if known[key].startswith("tuple") else str)
        if type(value) is not expected and not (expected is float and type(value) is int):
            raise ModelError(f"{path}: region {table['name']}: {key} is {value!r}, expected {expected.__name__}")
    given: dict[str, Any] = {
        key: tuple(map(str, value)) if isinstance(value, list) else value for key, value in table.items()
    }
    return Region(**given)
