"""A device as its memory regions, and the contiguous blocks that an arena can use in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

from modelplan.primitives.lazy_records import dataclass

#: What a region is. `psram` is any external RAM, `nvm` what is not written while a model runs, `npu` the scratchpad of
#: an accelerator.
Kind = Literal["ram", "tcm", "psram", "nvm", "npu"]
#: More channels, or copies in the queue, no engine has.
MOST_CHANNELS = 9999
#: A block lies in memory of one class; the first class of which a device has a block holds its arena.
CLASSES: dict[str, tuple[Kind, ...]] = {"on chip": ("ram", "tcm"), "accelerator": ("npu",), "external": ("psram",)}
#: An arena starts at a multiple of so many bytes.
ARENA_ALIGNMENT = 16
#: What a linker script reserves; a linked program with sections for it has it in them.
STACK = "the stack and the heap of the script"
#: What names of memory outside of the chip hold.
_EXTERNAL = re.compile(r"psram|sdram|ddr|qspi|spiram|hyper|(?:^|_)ext")


class Interval(NamedTuple):
    """The addresses in [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Region:
    """A range of memory: `size` bytes from `base`, which is None where no source gives the address.

    `reserved` bytes at its start or end are taken by default, for `reserved_for`. `granularity` is the unit of an
    allocation, `bank_size` the bytes of a bank, None too where the banks take words in turn and none has a range of its
    own; `power_of_two` says that an allocation must be one. `no_arena` is the
    reason why no arena can be budgeted here; empty where it can. `dma` says whether DMA masters reach it, None that
    no source tells. `bandwidth` is in bytes per second, `latency` in cycles.
    """

    name: str
    size: int
    base: int | None = None
    kind: Kind = "ram"
    reserved: int = 0
    reserved_for: str = ""
    reserved_at: Literal["start", "end"] = "start"
    granularity: int = 1
    bank_size: int | None = None
    readable_by: tuple[str, ...] = ()
    dma: bool | None = None
    bandwidth: int | None = None
    latency: int | None = None
    power_of_two: bool = False
    no_arena: str = ""
    note: str = ""
    read_bandwidth: int | None = None
    write_bandwidth: int | None = None
    latency_ns: float | None = None
    alignment: int = 1

    def __post_init__(self) -> None:
        """Checks what one region alone can know."""
        if not self.name:
            raise ValueError("a region has no name")
        if self.size <= 0:
            raise ValueError(f"region {self.name} has {self.size} bytes, expected more than 0")
        if self.base is not None and self.base < 0:
            raise ValueError(f"region {self.name} starts at {self.base}, expected an address of 0 or more")
        if not 0 <= self.reserved <= self.size:
            raise ValueError(f"region {self.name} has {self.size} bytes, of which {self.reserved} cannot be reserved")
        if self.kind not in get_args(Kind):
            raise ValueError(f"region {self.name} is of kind {self.kind!r}; there are: {', '.join(get_args(Kind))}")
        if self.reserved_at not in ("start", "end"):
            raise ValueError(f"region {self.name} is reserved at {self.reserved_at!r}, expected start or end")
        if self.granularity < 1:
            raise ValueError(f"region {self.name} has a granularity of {self.granularity}, expected 1 or more")
        if self.bank_size is not None and self.bank_size < 1:
            raise ValueError(f"region {self.name} has banks of {self.bank_size} bytes, expected 1 or more")
        self._check_speed()

    def _check_speed(self) -> None:
        for name in ("bandwidth", "read_bandwidth", "write_bandwidth"):
            rate = getattr(self, name)
            if rate is not None and rate <= 0:
                raise ValueError(f"region {self.name} has a {name} of {rate} bytes/s, expected more than 0")
        for name in ("latency", "latency_ns"):
            wait = getattr(self, name)
            if wait is not None and not 0 <= wait < float("inf"):
                raise ValueError(f"region {self.name} has a {name} of {wait}, expected 0 or more")
        if self.alignment < 1 or self.alignment & self.alignment - 1:
            raise ValueError(f"region {self.name} has an alignment of {self.alignment}, expected a power of two")

    def seconds(self, read: int, written: int) -> float:
        """How long an operator waits for `read` and `written` bytes of one operand that lies here.

        >>> Region("psram", 8 << 20, read_bandwidth=80_000_000).seconds(read=8000, written=0)
        0.0001
        """
        wait = (self.latency_ns or 0.0) * 1e-9
        reads = wait + read / (self.read_bandwidth or self.bandwidth or float("inf")) if read else 0.0
        writes = wait + written / (self.write_bandwidth or self.bandwidth or float("inf")) if written else 0.0
        return reads + writes

    @property
    def end(self) -> int | None:
        """The address behind the last byte; None without an address."""
        return None if self.base is None else self.base + self.size

    @property
    def kept(self) -> Interval | None:
        """The addresses that are reserved; None where nothing is, or where the region has no address."""
        if self.base is None or not self.reserved:
            return None
        start = self.base if self.reserved_at == "start" else self.base + self.size - self.reserved
        return Interval(start, start + self.reserved)


@dataclass(frozen=True, slots=True)
class Dma:
    """The engine that copies between memories while operators run.

    `channels` copies run at the same time; none: the processor copies, and nothing else runs meanwhile. `depth` copies
    may be issued and not complete; the processor waits before it issues one more. `bandwidth` is in bytes per second
    (None: as the memories allow), `latency_ns` what a copy takes before its first byte.
    """

    channels: int = 0
    depth: int = 1
    bandwidth: int | None = None
    latency_ns: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.channels <= MOST_CHANNELS or not 1 <= self.depth <= MOST_CHANNELS:
            raise ValueError(
                f"a DMA engine of {self.channels} channels and a queue of {self.depth}, expected from 0 and from 1"
                f" to {MOST_CHANNELS}"
            )
        if self.bandwidth is not None and self.bandwidth <= 0:
            raise ValueError(f"a DMA engine of {self.bandwidth} bytes/s, expected more than 0")
        if not 0 <= self.latency_ns < float("inf"):
            raise ValueError(f"a DMA engine with a latency of {self.latency_ns} ns, expected 0 or more")


@dataclass(frozen=True, slots=True)
class Device:
    """A board, a chip or an accelerator: its memory, and for which ABI and kernels its programs are built.

    `quality` is P where `source` is a primary one (datasheet, devicetree, linker script, vendor's documentation), S
    for a table of somebody else. `dma` is the engine that copies between the regions, None where the source names none.
    `no_arena` says why there is no figure for an arena; empty where a region has one.
    `taken` are addresses that the file which describes the device keeps for something else; `remarks` are what a
    reader of the figures has to know about how the file was read.
    """

    name: str
    title: str
    regions: tuple[Region, ...]
    source: str
    quality: str = "P"
    abi: str = ""
    kernels: str = ""
    benchmark: bool = False
    no_arena: str = ""
    note: str = ""
    taken: tuple[Interval, ...] = ()
    remarks: tuple[str, ...] = ()
    dma: Dma | None = None

    def __post_init__(self) -> None:
        """Checks that the regions have names of their own."""
        names = [region.name for region in self.regions]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two regions are called {twice[0]}")


class Bank(NamedTuple):
    """A bank, and where it begins: bytes from the start of the arena, below 0 where it begins before it."""

    name: str
    start: int


@dataclass(frozen=True, slots=True)
class Block:
    """Contiguous free bytes: from `start`, None without an address, through `regions` in the order of addresses."""

    size: int
    start: int | None
    regions: tuple[str, ...]
    memory: str
    granularity: int = 1
    power_of_two: bool = False

    @property
    def usable(self) -> int:
        """The bytes of the largest arena that can be allocated in it.

        >>> Block(100_000, 0x20000004, ("sram",), "on chip").usable
        99988
        >>> Block(100_000, None, ("pool",), "accelerator", 4096, power_of_two=True).usable
        65536
        """
        lost = 0 if self.start is None else -self.start % ARENA_ALIGNMENT
        return allocatable(self.size - lost, self.granularity, power_of_two=self.power_of_two)


def allocatable(size: int, granularity: int, *, power_of_two: bool) -> int:
    """The largest allocation of at most `size` bytes in units of `granularity`, or in powers of two alone."""
    whole = max(size, 0) // granularity * granularity
    return 1 << whole.bit_length() - 1 if power_of_two and whole else whole


def banks_of(device: Device, block: Block) -> tuple[Bank, ...]:
    """The banks that an arena at the start of a block can reach, in the order of addresses; none if it is only one.

    A region without banks counts as one.

    >>> pool = Device("npu", "NPU", (Region("pool", 100, reserved=24, bank_size=50),), "none")
    >>> banks_of(pool, blocks(pool)[0])
    (Bank(name='pool bank 0', start=-24), Bank(name='pool bank 1', start=26))
    """
    first = 0 if block.start is None else block.start + -block.start % ARENA_ALIGNMENT
    regions = [region for region in device.regions if region.name in block.regions]
    banks = sorted((bank for region in regions for bank in _banks(region, first)), key=lambda bank: bank.start)
    ends = [*(bank.start for bank in banks[1:]), block.size]
    reached = tuple(bank for bank, end in zip(banks, ends, strict=True) if end > 0 and bank.start < block.size)
    return reached if len(reached) > 1 else ()


def _banks(region: Region, first: int) -> Iterator[Bank]:
    """The banks of a region, counted from the address `first`, or from its first free byte where it has no address."""
    held = region.reserved if region.reserved_at == "start" else 0
    base = -held if region.base is None else region.base - first
    step = region.bank_size or region.size
    for number, at in enumerate(range(0, region.size, step)):
        yield Bank(f"{region.name} bank {number}" if step < region.size else region.name, base + at)


def is_external(name: str) -> bool:
    """Whether a region's name speaks of memory outside of the chip, which is never the usual place of an arena.

    >>> is_external("extern_ram_seg"), is_external("DDR"), is_external("dram0_0_seg")
    (True, True, False)
    """
    return _EXTERNAL.search(name.lower()) is not None


def linked_kind(name: str, attributes: str | None) -> Kind:
    """What a linker's attributes and a name say of a region; `!` inverts those that follow it.

    >>> linked_kind("RAM", "rwx"), linked_kind("flash", "rx!w"), linked_kind("EXTRAM", "rw")
    ('ram', 'nvm', 'psram')
    """
    kept, _, inverted = (attributes or "w").lower().partition("!")
    if "w" not in kept or "w" in inverted:
        return "nvm"
    return "psram" if is_external(name) else "ram"


def blocks(device: Device, taken: Sequence[Interval] = ()) -> tuple[Block, ...]:
    """The contiguous free blocks of the writable regions, the largest first within each class of memory.

    Regions that adjoin or overlap are one block unless a reserve or an interval of `taken` lies between.
    """
    kept = [region.kept for region in device.regions if region.kept is not None]
    free_blocks: list[Block] = []
    for memory, kinds in CLASSES.items():
        usable = [r for r in device.regions if r.kind in kinds and not r.no_arena]
        rules = dict.fromkeys((r.granularity, r.power_of_two) for r in usable)
        own = [b for rule in rules for b in _merged(usable, memory, rule, [*kept, *device.taken, *taken])]
        free_blocks += sorted(own, key=lambda block: (-block.usable, block.start or 0))
    return tuple(free_blocks)


def _merged(regions: Iterable[Region], memory: str, rule: tuple[int, bool], taken: list[Interval]) -> Iterator[Block]:
    """The free blocks of the regions under one rule of allocation."""
    own = [region for region in regions if (region.granularity, region.power_of_two) == rule]
    for region in own:
        if region.base is None and region.size > region.reserved:
            yield Block(region.size - region.reserved, None, (region.name,), memory, *rule)
    placed = sorted((r.base, r.base + r.size, r.name) for r in own if r.base is not None)
    for gap in without((Interval(start, end) for start, end, _ in placed), taken):
        names = tuple(name for start, end, name in placed if start < gap.end and gap.start < end)
        yield Block(gap.end - gap.start, gap.start, names, memory, *rule)


def _union(intervals: Iterable[Interval]) -> list[Interval]:
    """The intervals merged and in order, without empty ones."""
    merged: list[Interval] = []
    for interval in sorted(interval for interval in intervals if interval.start < interval.end):
        if merged and interval.start <= merged[-1].end:
            merged[-1] = Interval(merged[-1].start, max(merged[-1].end, interval.end))
        else:
            merged.append(interval)
    return merged


def without(intervals: Iterable[Interval], taken: Iterable[Interval]) -> Iterator[Interval]:
    """The parts of the intervals outside of the addresses that are taken, joined and in their order."""
    occupied = _union(taken)
    for start, end in _union(intervals):
        for interval in occupied:
            if interval.end <= start or interval.start >= end:
                continue
            if interval.start > start:
                yield Interval(start, interval.start)
            start = interval.end
        if start < end:
            yield Interval(start, end)


def with_reserve(device: Device, region: str, size: int, at: Literal["start", "end"] | None = None) -> Device:
    """The device with `size` bytes of a region reserved in place of what is by default.

    Raises:
        ValueError: there is no such region, or it has fewer bytes.
    """
    if region not in [device_region.name for device_region in device.regions]:
        names = ", ".join(device_region.name for device_region in device.regions)
        raise ValueError(f"{device.name} has no region {region!r}; there are: {names}")
    changed = tuple(
        replace(device_region, reserved=size, reserved_for="as asked", reserved_at=at or device_region.reserved_at)
        if device_region.name == region
        else device_region
        for device_region in device.regions
    )
    return replace(device, regions=changed)
