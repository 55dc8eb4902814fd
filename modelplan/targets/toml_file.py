"""Reads a device that somebody wrote down in TOML: its fields, `[[region]]` for each region, `[dma]` for its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from modelplan.formats.files import read_toml_table
from modelplan.primitives.errors import ModelError
from modelplan.targets.device import Device, Dma, Region

#: Fields of a device that a file may state; `region` holds the regions.
_DEVICE = ("name", "title", "source", "quality", "abi", "kernels", "note")
_TYPES: dict[str, type] = {"int": int, "int | None": int, "str": str, "bool": bool, "bool | None": bool}
_TYPES |= {"float": float, "float | None": float}


def read_toml(path: str) -> Device:
    """The device in a file.

    Raises:
        ModelError: names the file and the key or region that cannot be read.
    """
    document = read_toml_table(path)
    tables = document.pop("region", None)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ModelError(f"{path}: no [[region]]")
    engine = document.pop("dma", None)
    if engine is not None and not isinstance(engine, dict):
        raise ModelError(f"{path}: dma = {engine!r}; expected a table [dma]")
    facts: dict[str, Any] = {"name": Path(path).stem, "title": Path(path).stem, "source": path}
    for key, value in document.items():
        if key not in _DEVICE or not isinstance(value, str):
            raise ModelError(f"{path}: {key} = {value!r}; expected text for one of: {', '.join(_DEVICE)}")
        facts[key] = value
    try:
        regions = tuple(_region(path, table) for table in tables)
        return Device(**facts, regions=regions, dma=None if engine is None else _engine(path, engine))
    except ValueError as problem:
        raise ModelError(f"{path}: {problem}") from None


def _region(path: str, table: Mapping[str, object]) -> Region:
    for key in ("name", "size"):
        if key not in table:
            raise ModelError(f"{path}: region {table.get('name', '?')} has no {key}")
    return Region(**_checked(path, f"region {table['name']}", Region, table))


def _engine(path: str, table: Mapping[str, object]) -> Dma:
    if table.get("channels", 1) == 0:
        raise ModelError(f"{path}: dma: channels is 0; leave [dma] out where the processor copies")
    return Dma(**{"channels": 1} | _checked(path, "dma", Dma, table))


def _checked(path: str, what: str, kind: type, table: Mapping[str, object]) -> dict[str, Any]:
    """The fields of a record that a table states, each of the type that it has to be."""
    known = {field.name: str(field.type) for field in fields(kind)}
    for key, value in table.items():
        if key not in known:
            raise ModelError(f"{path}: {what}: no field {key!r}; there are: {', '.join(known)}")
        expected = _TYPES.get(known[key], list if known[key].startswith("tuple") else str)
        if type(value) is not expected and not (expected is float and type(value) is int):
            raise ModelError(f"{path}: {what}: {key} is {value!r}, expected {expected.__name__}")
    return {key: tuple(map(str, value)) if isinstance(value, list) else value for key, value in table.items()}
