"""Reads a memory mode of a configuration file of Vela, the compiler of the Ethos-U."""

from __future__ import annotations

from configparser import ConfigParser, Error

from modelplan.formats.files import read_text
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.targets.device import Device, Region

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
