"""Devices from files that state their memory: TOML, a memory mode of Vela, a target file of probe-rs (YAML).

In TOML somebody wrote down fields, `[[region]]` for each region and `[dma]` for its engine. Vela is the compiler of the
Ethos-U.
"""

from collections.abc import Callable, Mapping
from configparser import ConfigParser, Error
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from modelplan.formats.whole_files import read_text, read_toml_table
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.targets.device import Device, Dma, Kind, Region, is_external

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
        regions = tuple(_toml_region(path, table) for table in tables)
        return Device(**facts, regions=regions, dma=None if engine is None else _engine(path, engine))
    except ValueError as problem:
        raise ModelError(f"{path}: {problem}") from None


def _toml_region(path: str, table: Mapping[str, object]) -> Region:
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


_MODE = "Memory_Mode."


def read_vela_ini(path: str, mode: str) -> Device:
    """The SRAM that one memory mode gives to the NPU; the only mode where none is named.

    Raises:
        ModelError: the file is not such a file, or the mode states no size.
        RequestError: no mode, or one of several, has to be named.
    """
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(read_text(path), path)
    except Error as problem:
        raise ModelError(f"{path}: {' '.join(str(problem).split())}") from None
    modes = [name.removeprefix(_MODE) for name in parser.sections() if name.startswith(_MODE)]
    if not modes:
        raise ModelError(f"{path}: no section [{_MODE}NAME]; is it a configuration of Vela?")
    name = mode.removeprefix(_MODE) or (modes[0] if len(modes) == 1 else "")
    if name not in modes:
        wanted = f"no memory mode {name!r}" if name else f"{len(modes)} memory modes"
        raise RequestError(f"{path} has {wanted}; choose one by #NAME: {', '.join(modes)}")
    settings = inherited(parser, _MODE + name, path)
    return _device(path, name, settings)


def inherited(parser: ConfigParser, section: str, path: str) -> dict[str, str]:
    """The settings of a section with those that it inherits.

    Raises:
        ModelError: a section that is inherited is missing or inherits itself.
    """
    chain = [section]
    while "inherit" in parser[chain[-1]]:
        above = parser[chain[-1]]["inherit"]
        if above not in parser or above in chain:
            raise ModelError(f"{path}: [{chain[-1]}] inherits {above}, which is missing or inherits it")
        chain.append(above)
    return {key: value for link in reversed(chain) for key, value in parser[link].items() if key != "inherit"}


def _device(path: str, mode: str, settings: dict[str, str]) -> Device:
    areas = ", ".join(f"{area} in {settings.get(f'{area}_mem_area', '?')}" for area in ("const", "arena", "cache"))
    text = settings.get("arena_cache_size")
    if text is None:
        raise ModelError(f"{path}: [{_MODE}{mode}] states no arena_cache_size ({areas}): the size is the board's")
    if not text.isdecimal():
        raise ModelError(f"{path}: [{_MODE}{mode}] arena_cache_size is {text!r}, expected bytes")
    try:
        region = Region("sram", int(text), kind="npu", note=areas)
    except ValueError as problem:
        raise ModelError(f"{path}: [{_MODE}{mode}] {problem}") from None
    return Device(mode, f"Ethos-U, memory mode {mode}", (region,), path, note=f"{areas}")


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
        regions = tuple(_yaml_region(path, name, entry) for entry in entries if entry["kind"] in _KINDS)
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


def _yaml_region(path: str, variant: str, entry: dict[str, Any]) -> Region:
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
