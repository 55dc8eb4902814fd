"""Devices in words: a table of them, one in detail, and which block of one was taken for the arena."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import brief, counted, human
from modelplan.targets.choosing import Chosen
from modelplan.targets.device import Block, Device, Dma, Region, blocks

#: The version of the JSON document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1

#: What a program takes beside what a linker places.
_UNSEEN = "a stack or heap without a section of its own is not in it; --reserve it"
_QUALITY = {"P": " (primary)", "S": " (secondary)"}


def usual_block(device: Device) -> Block | None:
    """The block that counts where no region is chosen; None for a device without a figure for an arena."""
    return next((block for block in blocks(device) if block.memory != "external" and block.usable), None)


def target_lines(chosen: Chosen) -> list[str]:
    """Which block of which target is meant, what is reserved of it, and what the program beside it occupies."""
    device, block = chosen.device, chosen.block
    origin = f" ({chosen.origin})" if chosen.origin else ""
    if block is None:
        lines = [f"target    {device.name}{origin}: no verdict without --budget BYTES: {chosen.unknown}"]
        lines += [
            f"memory    {device.name}#{free_block.regions[0]} has {human(free_block.usable)}"
            for free_block in blocks(device)
            if free_block.usable
        ]
    else:
        lines = [f"target    {device.name}{origin}: {human(block.usable)} in one block, {_where(block)}"]
    if device.benchmark:
        lines.append("benchmark the capacity of a set of problems, not a figure of a device")
    lines += [f"reserved  {_reserved(region)}" for region in chosen.reserved]
    if chosen.used:
        taken = ", ".join(f"{name} {brief(size)}" for name, size in chosen.taken if size) or "nothing of it"
        lines.append(f"used      {chosen.used} occupies {taken}; {_UNSEEN}")
    if chosen.linked:
        lines.append(f"kernels   {chosen.linked}")
    if chosen.arena:
        size = human(chosen.arena.end - chosen.arena.start)
        grows = "; a larger one moves what follows it into the free bytes behind" if chosen.grown else ""
        lines.append(f"arena     its symbol {chosen.symbol} of {size} counts as free{grows}")
    return [*lines, *(f"note      {remark}" for remark in device.remarks)]


def target_facts(chosen: Chosen) -> dict[str, object]:
    """The target and its block as an object."""
    return {
        "name": chosen.device.name,
        "budget": chosen.known_budget,
        "block": asdict(chosen.block) if chosen.block else None,
        "benchmark": chosen.device.benchmark,
        "reserved": {region.name: region.reserved for region in chosen.reserved},
        "used": dict(chosen.taken),
        "arena_symbol": chosen.symbol,
        "kernels": chosen.device.kernels,
        "abi": chosen.device.abi,
    }


def table_section(title: str, devices: Sequence[Device]) -> Section:
    """A line for each device; of devices that follow each other and differ in their names alone one line for all."""
    headings = ("target", ">one block", "kernels", "device")
    alike = groupby(devices, key=lambda device: (device.regions, device.kernels or device.name))
    return Section(title, (), Table(headings, tuple(_row(list(group)) for _, group in alike)))


def _row(alike: Sequence[Device]) -> tuple[str, ...]:
    device = alike[0]
    block = usual_block(device)
    held = "".join(f"; {brief(r.reserved)} reserved" for r in device.regions if r.reserved)
    others = f"; also {', '.join(other.name.removeprefix('stm32') for other in alike[1:])}" if len(alike) > 1 else ""
    title = f"{device.title} (benchmark)" if device.benchmark else device.title
    return device.name, brief(block.usable) if block else "", device.kernels, f"{title}{held}{others}"


def device_sections(device: Device) -> list[Section]:
    """One device with its regions and blocks."""
    facts = {
        "ABI": device.abi,
        "kernels": device.kernels,
        "DMA": "" if device.dma is None else engine_words(device.dma),
        "source": device.source + _QUALITY.get(device.quality, ""),
        "note": device.note,
        "no arena": device.no_arena,
        "benchmark": "its capacity is that of a set of problems" if device.benchmark else "",
    }
    lines = [f"{name:9} {value}" for name, value in facts.items() if value]
    lines += [f"note      {remark}" for remark in device.remarks]
    regions = Table(("region", "kind", "base", ">bytes", "about it"), tuple(map(_region_row, device.regions)))
    sections = [Section(f"{device.name}: {device.title}", tuple(lines), regions if device.regions else None)]
    rows = tuple((f"{b.usable:,}", b.memory, _where(b)) for b in blocks(device))
    usual = usual_block(device)
    say = (f"an arena gets {human(usual.usable)}",) if usual else ("no block is taken for an arena by default",)
    return [
        *sections,
        Section("Contiguous free blocks", say, Table((">bytes", "memory", "where"), rows) if rows else None),
    ]


def engine_words(engine: Dma) -> str:
    """What an engine does, in words.

    >>> engine_words(Dma(2, 4, 100_000_000))
    '2 channels, 4 copies queued, 0.1 GB/s'
    """
    rate = f", {engine.bandwidth / 1e9:g} GB/s" if engine.bandwidth else ""
    wait = f", {engine.latency_ns:g} ns" if engine.latency_ns else ""
    return f"{counted(engine.channels, 'channel')}, {counted(engine.depth, 'copy')} queued{rate}{wait}"


def _region_row(region: Region) -> tuple[str, ...]:
    base = "" if region.base is None else f"{region.base:#010x}"
    return region.name, region.kind, base, f"{region.size:,}", "; ".join(region_facts(region))


def region_facts(region: Region) -> list[str]:
    """What else is known of a region."""
    facts = [
        _reserved(region) if region.reserved else "",
        f"no arena: {region.no_arena}" if region.no_arena else "",
        f"banks of {region.bank_size:,} bytes" if region.bank_size else "",
        f"allocated in units of {region.granularity:,} bytes" if region.granularity > 1 else "",
        "allocated in powers of two" if region.power_of_two else "",
        f"read by {', '.join(region.readable_by)}" if region.readable_by else "",
        "not reached by DMA" if region.dma is False else "",
        f"{region.bandwidth / 1e9:g} GB/s" if region.bandwidth else "",
        f"{region.read_bandwidth / 1e9:g} GB/s read" if region.read_bandwidth else "",
        f"{region.write_bandwidth / 1e9:g} GB/s written" if region.write_bandwidth else "",
        f"{region.latency_ns:g} ns" if region.latency_ns else "",
        f"{region.latency} cycles" if region.latency else "",
        region.note,
    ]
    return [fact for fact in facts if fact]


def _reserved(region: Region) -> str:
    why = f" for {region.reserved_for}, by default; --reserve {region.name}=BYTES replaces it"
    asked = " as asked"
    what = asked if region.reserved_for == "as asked" else why if region.reserved_for else " by its file"
    return f"{human(region.reserved)} at the {region.reserved_at} of {region.name}{what}"


def _where(block: Block) -> str:
    place = "" if block.start is None else f" at {block.start:#x}"
    return f"in {' and '.join(block.regions)}{place}" + ("" if block.memory == "on chip" else f" ({block.memory})")
