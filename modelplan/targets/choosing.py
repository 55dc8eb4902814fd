"""From the words of `--target` to a device and the block of it that holds the arena."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.showing_answers import Shown
from modelplan.targets.device import (
    CLASSES,
    STACK,
    Bank,
    Block,
    Device,
    Interval,
    Region,
    banks_of,
    blocks,
    with_reserve,
)

#: What stands before a file of somebody else's format.
FROM = "from:"
_NEAR = 5


@dataclass(frozen=True, slots=True)
class Reserve:
    """Bytes of a region that something else takes, in place of what is reserved by default."""

    region: str
    size: int
    at: Literal["start", "end"] | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `--target` and the options beside it ask for."""

    text: str
    reserves: tuple[Reserve, ...] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    used: str | None = None
    arena_symbol: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Chosen(Shown):
    """A device, the block of it that counts, and what the program beside it takes of each region.

    `block` is None where no memory of the device has a known size and none was chosen; `unknown` says why. `symbol` and
    `arena` are the arena that the program has already; `grown` says that the block is that arena with the free bytes
    behind what follows it. `linked` says which kernels and ABI the program has, and how that was told. `words` are the
    options that asked for it, `origin` the file of a project that did, empty where the caller did.
    """

    device: Device
    block: Block | None
    used: str = ""
    taken: tuple[tuple[str, int], ...] = ()
    symbol: str = ""
    arena: Interval | None = None
    grown: bool = False
    unknown: str = ""
    linked: str = ""
    words: tuple[str, ...] = ()
    origin: str = ""

    @property
    def budget(self) -> int:
        """The bytes of the largest arena that the block holds.

        Raises:
            RequestError: it is not known.
        """
        if self.block is None:
            raise RequestError(f"{self.device.name} gives no figure for an arena: {self.unknown}")
        return self.block.usable

    @property
    def known_budget(self) -> int | None:
        """The same, or None where it is not known."""
        return self.block.usable if self.block else None

    @property
    def not_known(self) -> str:
        """Why it is not known whether a model fits, and how to say how much memory there is."""
        return f"whether it fits {self.device.name} is not known without --budget BYTES: {self.unknown}"

    @property
    def banks(self) -> tuple[Bank, ...]:
        """The banks of the block."""
        return banks_of(self.device, self.block) if self.block else ()

    @property
    def reserved(self) -> tuple[Region, ...]:
        """The regions of which something is reserved."""
        return tuple(region for region in self.device.regions if region.reserved)


def chosen_block(wanted: Wanted) -> Chosen:
    """The device that is asked for, and its block for the arena.

    Raises:
        RequestError: there is no such device, region or block; says what there is.
        ModelError: a file cannot be read.
    """
    device, part = device_of(wanted)
    if wanted.used is None:
        block, unknown = _block(device, part, blocks(device))
        return Chosen(device, block, unknown=unknown)
    from modelplan.targets.linked_kernels import linked_kernels
    from modelplan.targets.occupied import grown_arena, occupied_bytes, read_occupied

    occupied = read_occupied(wanted.used, wanted.arena_symbol)
    if occupied.stack:  # its sections hold what the script reserves
        for region in device.regions:
            device = with_reserve(device, region.name, 0) if region.reserved_for.startswith(STACK) else device
    taken = tuple(occupied_bytes(device, occupied))
    if not any(size for _, size in taken):
        raise RequestError(f"--used {wanted.used}: the program lies in no region of {device.name} that has an address")
    grown = grown_arena(device, occupied)
    free = (*blocks(device, occupied.intervals), *((grown,) if grown else ()))
    block, unknown = _block(device, part, free)
    linked = linked_kernels(wanted.used)
    if linked is not None:
        device = replace(device, kernels=linked.kernels or device.kernels, abi=linked.abi or device.abi)
    return Chosen(
        device,
        block,
        wanted.used,
        taken,
        occupied.symbol,
        occupied.arena,
        block is not None and block == grown,
        unknown,
        "" if linked is None else f"{device.kernels or 'all'}: {linked.reason}",
    )


def device_of(wanted: Wanted) -> tuple[Device, str]:
    """The device with its reserves, and the region that is chosen by `#NAME`, empty where none is.

    Raises:
        RequestError: there is no such device.
        ModelError: its file cannot be read.
    """
    name, _, part = wanted.text.partition("#")
    if name.startswith(FROM):
        device, part = _imported(name.removeprefix(FROM), part, wanted)
        device = replace(device, quality="")
    elif name.endswith(".toml"):
        device, part = _imported(name, part, wanted)
    else:
        device = known_device(name)
    try:
        for reserve in wanted.reserves:
            device = with_reserve(device, reserve.region, reserve.size, reserve.at)
    except ValueError as problem:
        raise RequestError(f"--reserve: {problem}") from None
    return device, part


def known_device(name: str) -> Device:
    """The device of the table, the board or the processor called `name`, in any case and with or without hyphens.

    Raises:
        RequestError: there is none; lists the names that are near.
    """
    from modelplan.runtimes.tflm.kernels import KERNELS, spoken_kernels
    from modelplan.targets.chips import BOARDS, CHIPS
    from modelplan.targets.processors import PROCESSORS
    from modelplan.targets.table import DEVICES

    device = spoken_device(name)
    if device is not None:
        return device
    lower = {known.lower(): known for known in (*DEVICES, *PROCESSORS, *BOARDS, *CHIPS)}
    near = [known for word, known in lower.items() if name and name.lower() in word]
    near += [known for known in PROCESSORS if _spoken(known).removeprefix("stm32") in _spoken(name)]
    near += [lower[word] for word in get_close_matches(name.lower(), lower, _NEAR, 0.5) if lower[word] not in near]
    hint = f"near are: {', '.join(near[:_NEAR])}" if near else "`modelplan targets` lists them"
    if spoken_kernels(name) in KERNELS:
        raise RequestError(f"--target {name}: that is a kernel library; --kernels {name} takes it, --target a board")
    if Path(name).is_file():
        raise RequestError(f"no target {name!r}; that is a file; did you mean {FROM}{name}?")
    raise RequestError(
        f"no target {name!r}; {hint}; for a board that is not listed give its linker script or devicetree as"
        f" {FROM}FILE, or its processor such as cortex-m4 with the bytes as --capacity or --budget"
    )


def spoken_device(name: str) -> Device | None:
    """The device that people call so: of the table, a processor, a board, or the chip whose name is in it.

    None where there is none.
    """
    from modelplan.targets.chips import BOARDS, chip_called, without_nucleo
    from modelplan.targets.processors import PROCESSORS
    from modelplan.targets.table import DEVICES

    named = {_spoken(known): device for known, device in (*PROCESSORS.items(), *DEVICES.items())}
    called = BOARDS.get(_spoken(name)) or without_nucleo(name.lower())
    device = named.get(_spoken(called)) or chip_called(called)
    if device is not None or not called.isascii():
        return device
    return next((named[word] for word in sorted(named, key=len, reverse=True) if _holds(_spoken(called), word)), None)


def _holds(name: str, chip: str) -> bool:
    """Whether a name holds the whole name of a chip or family: no digit of it goes on behind, no other ESP32 is meant.

    >>> _holds("xiaoesp32s3", "esp32s3"), _holds("nrf5284", "nrf52"), _holds("esp32c9", "esp32")
    (True, False, False)
    """
    family = re.match(r"stm32|esp32|nrf|rp2|gap", chip)
    behind = name.partition(chip)[2]
    other = r"[a-z]\d(?!.*wd)" if chip == "esp32" else r"$^" if chip.startswith("stm32") else r"\d"
    return bool(family) and chip in name and not re.match(other, behind)


def _spoken(name: str) -> str:
    """A name without what people leave out: case, hyphens, underscores, blanks."""
    return name.lower().translate(str.maketrans("", "", "-_ "))


def _imported(path: str, part: str, wanted: Wanted) -> tuple[Device, str]:
    """The device in a file, read as its name asks, and the region that is chosen of it."""
    suffix = Path(path).suffix.lower()
    if suffix == ".toml":
        from modelplan.targets.device_files import read_toml

        return read_toml(path), part
    if suffix in (".yaml", ".yml"):
        from modelplan.targets.device_files import read_probe_rs

        variant, _, region = part.partition("/")
        return read_probe_rs(path, variant), region
    if suffix == ".ini":
        from modelplan.targets.device_files import read_vela_ini

        return read_vela_ini(path, part), ""
    if suffix in (".dts", ".dtsi", ".overlay"):
        from modelplan.targets.devicetree import read_devicetree

        return read_devicetree(path, wanted.definitions, wanted.folders), part
    if suffix == ".map":
        from modelplan.targets.occupied import read_map

        return _with_named_region(read_map(path), part), part
    from modelplan.targets.linker_script import read_linker_script

    return _with_named_region(read_linker_script(path, wanted.definitions, wanted.folders), part), part


def _with_named_region(device: Device, part: str) -> Device:
    """The device with the explicitly named region marked usable, whatever its attributes say."""
    regions = tuple(replace(r, no_arena="") if r.name == part and r.kind != "nvm" else r for r in device.regions)
    return replace(device, regions=regions)


def _block(device: Device, part: str, free_blocks: Sequence[Block]) -> tuple[Block | None, str]:
    """The block that counts: the largest on the chip, else of the accelerator; or the largest in the chosen region.

    Where nothing is known of the size of a memory that could hold an arena, there is no block, and a text says why.
    """
    names = [region.name for region in device.regions]
    if part and part not in names:
        raise RequestError(f"{device.name} has no region {part!r}; there are: {', '.join(names) or 'none'}")
    inside = [b for b in free_blocks if (part in b.regions if part else b.memory != "external") and b.usable]
    if inside:
        rank = list(CLASSES)
        return min(inside, key=lambda block: (rank.index(block.memory), -block.usable)), ""
    reason = _reason(device, part)
    unknown = any(region.no_arena and region.kind not in ("nvm", "npu") for region in device.regions)
    processor = not device.regions and device.abi
    if part or not (processor or (unknown and not device.no_arena)):
        raise RequestError(f"{device.name} gives no figure for an arena: {reason}")
    return None, reason


def _reason(device: Device, part: str) -> str:
    """Why a device or one of its regions has no block for an arena."""
    if device.no_arena:
        return device.no_arena
    regions = [region for region in device.regions if not part or region.name == part]
    why = [f"{region.name}: {region.no_arena}" for region in regions if region.no_arena]
    why += [f"{region.name} is not written while a model runs" for region in regions if part and region.kind == "nvm"]
    external = [r.name for r in device.regions if r.kind == "psram" and not r.no_arena and not part]
    why += [f"external memory has to be chosen, as {device.name}#{name}" for name in external]
    return "; ".join(why) or "all of it is reserved or taken"
