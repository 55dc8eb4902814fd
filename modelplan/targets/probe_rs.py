"""Reads the memory of a part from a target file of probe-rs (YAML)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from modelplan.formats.files import read_text
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.targets.device import Device, Kind, Region, is_external

INSTALL = "pip install 'modelplan[targets]'"
#: Variants that a message names.
_NAMED = 12


def read_probe_rs(path: str, variant: str) -> Device:
    """The regions of one variant of a target file; the only one where none is named.

    Raises:
        ModelError: the file is not such a file.
        RequestError: no variant, or one of several, has to be named; PyYAML is missing.
    """
    document = _document(path)
    variants = {str(mapping.get("name")): mapping for mapping in document["variants"] if isinstance(mapping, dict)}
    if not variant and len(variants) > 1:
        raise RequestError(f"{path} has {len(variants)} variants; choose one by #NAME: {_list(variants)}")
    name = variant or next(iter(variants), "")
    if name not in variants:
        near = get_close_matches(variant, variants, 5, 0.5)
        there = f"near are: {', '.join(near)}" if near else f"there are: {_list(variants)}"
        raise RequestError(f"{path} has no variant {variant!r}; {there}")
    entries = variants[name].get("memory_map")
    if not isinstance(entries, list):
        raise ModelError(f"{path}: variant {name}: there is no memory_map")
    if not all(isinstance(entry, dict) and "kind" in entry for entry in entries):
        raise ModelError(f"{path}: variant {name}: an entry of memory_map has no kind, such as !Ram")
    try:
        regions = tuple(_region(path, name, entry) for entry in entries if entry["kind"] in _KINDS)
        return Device(name, f"{name} as probe-rs knows it", regions, path)
    except ValueError as problem:
        raise ModelError(f"{path}: variant {name}: {problem}") from None


#: What probe-rs calls a range; another kind, such as that of a ROM, holds no arena.
_KINDS: dict[str, Kind] = {"Ram": "ram", "Nvm": "nvm"}


def _list(variants: Mapping[str, object]) -> str:
    names = list(variants)
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _document(path: str) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise RequestError(f"{path}: reading YAML needs PyYAML: {INSTALL}") from None

    def tagged(loader: Any, tag: str, node: Any) -> dict[str, Any]:
        """Of a tag like !Ram its name."""
        held = loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else {}
        return {**held, "kind": tag}

    reader: Any = type("TaggedLoader", (yaml.SafeLoader,), {})  # a class of its own: the tags are those of this format
    reader.add_multi_constructor("!", tagged)
    construct: Callable[..., Any] = yaml.load
    try:
        document = construct(read_text(path), Loader=reader)
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        raise ModelError(f"{path}: not YAML: {' '.join(str(problem).split())}") from None
    if not isinstance(document, dict) or not isinstance(document.get("variants"), list):
        raise ModelError(f"{path}: no list of variants; is it a target file of probe-rs?")
    return document


def _region(path: str, variant: str, entry: dict[str, Any]) -> Region:
    place = entry.get("range")
    if not isinstance(place, dict) or not all(isinstance(place.get(end), int) for end in ("start", "end")):
        raise ModelError(f"{path}: variant {variant}: a {entry['kind']} region has no range with start and end")
    cores = entry.get("cores") or []
    if not isinstance(cores, list):
        raise ModelError(f"{path}: variant {variant}: the cores of a {entry['kind']} region are no list")
    start, end = place["start"], place["end"]
    if not 0 <= start <= end <= 1 << 64:
        raise ModelError(f"{path}: variant {variant}: the range of a {entry['kind']} region is no range of 64 bits")
    name = str(entry.get("name") or f"{entry['kind']}@{start:#x}")
    access = entry.get("access")
    kind: Kind = "nvm" if isinstance(access, dict) and access.get("write") is False else _KINDS[entry["kind"]]
    if kind == "ram" and is_external(name):
        kind = "psram"
    alias = "it is a second address of other memory" if entry.get("is_alias") else ""
    return Region(name, end - start, start, kind, no_arena=alias, readable_by=tuple(map(str, cores)))
