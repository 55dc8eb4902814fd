"""Reads which addresses a linked program occupies, from its ELF file or from the map that GNU ld writes beside it.

The symbol of the arena itself counts as free: what is left for the arena is what the program leaves without it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modelplan.formats.whole_files import read_bytes, read_text
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.targets.device import ARENA_ALIGNMENT, Block, Device, Interval, Region, blocks, linked_kind, without

if TYPE_CHECKING:
    from elftools.elf.sections import Section, Symbol

INSTALL = "pip install 'modelplan[targets]'"
#: The symbol that counts as the arena where none is named and the program has it.
ARENA_SYMBOL = "tensor_arena"
#: What pyelftools raises where a table of a damaged file points nowhere.
DAMAGE = (ValueError, KeyError, AttributeError, OverflowError, IndexError, TypeError)
#: Sections without a place in memory; a map does not say which these are.
_NOT_LOADED = re.compile(
    r"\.(?:debug|stab|comment|line|note\.GNU-stack|xt\.|xtensa\.info|tbss|gnu\.(?:attributes|warning|lto|debuglto)|"
    r"(?:ARM|riscv|mips|arc)\.attributes|symtab|strtab|shstrtab)"
)
#: A hole between two sections below this size comes from the alignment of the second.
_HOLE = 64
_OUTPUT = re.compile(r"^([^\s*(][^\s]*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s+load address 0x[0-9a-f]+)?\s*$", re.M)
_INPUT = re.compile(r"^ (\.\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+\S", re.M)
_CONTENT = "Linker script and memory map"
_MEMORY = re.compile(r"^(\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:[ \t]+([a-z!]+))?[ \t]*$", re.M)


@dataclass(frozen=True, slots=True)
class Occupied:
    """The addresses that a program occupies without its arena.

    `symbol` and `arena` are the arena in it. `follows` is the end of what the linker has put behind the arena without a
    gap: it moves up when the arena grows. `stack` says that the stack or the heap has a section among them.
    """

    path: str
    intervals: tuple[Interval, ...]
    symbol: str = ""
    arena: Interval | None = None
    follows: int = 0
    stack: bool = False


def read_occupied(path: str, symbol: str | None = None) -> Occupied:
    """What a program occupies; `symbol` is its arena, by default `tensor_arena` where the program has it.

    Raises:
        ModelError: the file is neither an ELF file nor a map of GNU ld.
        RequestError: the program has no such symbol, or the file does not tell its size.
    """
    content = read_bytes(path)
    wanted = symbol or ARENA_SYMBOL
    named, arenas = _from_elf(content, path, wanted) if content[:4] == b"\x7fELF" else _from_map(path, wanted)
    sections, stack = [place for _, place in named], any(re.search("stack|heap", name, re.I) for name, _ in named)
    if symbol and not arenas:
        raise RequestError(f"--arena-symbol {symbol}: {path} has no such symbol")
    if len(arenas) > 1:
        raise RequestError(f"{path} has {len(arenas)} symbols {wanted}; name one by --arena-symbol")
    intervals = tuple(without(sections, arenas))
    if not arenas:
        return Occupied(path, intervals, stack=stack)
    return Occupied(path, intervals, wanted, arenas[0], _end_of_run(sections, arenas[0].end), stack)


def _end_of_run(sections: Sequence[Interval], end: int) -> int:
    """The end of the sections that lie behind an address one after the other, but for what aligns each."""
    for start, stop in sorted(sections):
        if start < end + _HOLE and stop > end:
            end = stop
    return end


def bears_name(symbol: str, wanted: str) -> bool:
    """Whether a symbol is `wanted`, plain or inside of a mangled C++ name.

    >>> bears_name("_ZN12_GLOBAL__N_112tensor_arenaE", "tensor_arena"), bears_name("my_tensor_arena", "tensor_arena")
    (True, False)
    """
    mangled = rf"_Z(?:N.*(?<![1-9]){len(wanted)}{re.escape(wanted)}E|L?{len(wanted)}{re.escape(wanted)})"
    within = rf"_ZN(?:\d+\w+?)?{len(wanted)}{re.escape(wanted)}E"
    return symbol == wanted or re.fullmatch(f"{mangled}|{within}", symbol) is not None


def _from_elf(content: bytes, path: str, wanted: str) -> tuple[list[tuple[str, Interval]], list[Interval]]:
    """The sections that have a place in memory, and the arenas."""
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise RequestError(f"{path}: reading ELF files needs pyelftools: {INSTALL}") from None
    try:
        elf = ELFFile(io.BytesIO(content))
        if elf["e_type"] == "ET_REL":
            raise ModelError(f"{path}: an object file that is not linked has no addresses")
        rows = filter(_in_memory, elf.iter_sections())
        sections = [(row.name, _place(row["sh_addr"], row["sh_size"])) for row in rows]
        table: Any = elf.get_section_by_name(".symtab")
        named = [symbol for symbol in table.iter_symbols() if _is_arena(symbol, wanted)] if table else []
        arenas = {_place(symbol["st_value"], symbol["st_size"]) for symbol in named}
    except (ELFError, *DAMAGE) as problem:
        raise ModelError(f"{path}: not a whole ELF file: {problem}") from None
    if not sections:
        raise ModelError(f"{path}: no section has a place in memory; is it linked?")
    return sections, sorted(arenas)


def _in_memory(section: Section) -> bool:
    """Whether a section is allocated; what each thread has of its own without content takes no addresses."""
    allocated, of_threads = section["sh_flags"] & 0x2, section["sh_flags"] & 0x400
    return bool(allocated and section["sh_size"] and not (of_threads and section["sh_type"] == "SHT_NOBITS"))


def _place(start: int, size: int) -> Interval:
    return Interval(start, start + size)


def _is_arena(symbol: Symbol, wanted: str) -> bool:
    kind: str = symbol["st_info"]["type"]
    return kind == "STT_OBJECT" and symbol["st_size"] > 0 and bears_name(symbol.name, wanted)


def _from_map(path: str, wanted: str) -> tuple[list[tuple[str, Interval]], list[Interval]]:
    """The same from a map: the arena must have an input section of its own, as -fdata-sections makes it."""
    _, marker, body = read_text(path).partition(_CONTENT)
    if not marker:
        raise ModelError(f"{path}: neither an ELF file nor a map of GNU ld ({_CONTENT!r} is not in it)")
    outputs = [(name, _hex(path, start, size)) for name, start, size in _OUTPUT.findall(body)]
    sections = [row for row in outputs if row[1].end > row[1].start and not _NOT_LOADED.match(row[0])]
    inputs = [(name, _hex(path, start, size)) for name, start, size in _INPUT.findall(body)]
    arenas = {
        place
        for name, place in inputs
        if place.end > place.start
        and any(bears_name(part, wanted) for part in name.split("."))
        and any(interval.start <= place.start < interval.end for _, interval in sections)
    }
    bare = re.search(rf"^\s+0x[0-9a-f]+\s+{re.escape(wanted)}$", body, re.M)
    if bare and not arenas:
        raise RequestError(
            f"{path} has the symbol {wanted} but not its size; give the ELF file, or compile with -fdata-sections"
        )
    return sections, sorted(arenas)


def _hex(path: str, start: str, size: str) -> Interval:
    place = _place(int(start, 16), int(size, 16))
    if place.end > 1 << 64:
        raise ModelError(f"{path}: 0x{start[:40]} and 0x{size[:40]} are no range of 64-bit addresses")
    return place


def read_map(path: str) -> Device:
    """The regions that a map lists under `Memory Configuration`, as ld evaluated them.

    Raises:
        ModelError: the file is no map, or lists no regions.
    """
    head, marker, _ = read_text(path).partition(_CONTENT)
    _, listed, rows = head.partition("Memory Configuration")
    if not marker or not listed:
        raise ModelError(f"{path}: no `Memory Configuration`; is it a map of GNU ld?")
    regions = [_mapped_region(path, *row) for row in _MEMORY.findall(rows) if row[0] != "*default*" and int(row[2], 16)]
    if not regions:
        raise ModelError(f"{path}: its `Memory Configuration` has no region: the linker script declares none")
    try:
        return Device(path.rpartition("/")[2], "map of GNU ld", tuple(regions), path)
    except ValueError as problem:
        raise ModelError(f"{path}: {problem}") from None


def _mapped_region(path: str, name: str, start: str, size: str, attributes: str) -> Region:
    base, end = _hex(path, start, size)
    no_arena = "" if attributes else "the map shows no attributes for it"
    return Region(name, end - base, base, linked_kind(name, attributes), no_arena=no_arena)


def grown_arena(device: Device, occupied: Occupied) -> Block | None:
    """The arena of a relinked program: the present one and the free bytes behind its section.

    None without an arena, or where no free bytes follow.
    """
    arena = occupied.arena
    if arena is None:
        return None
    gaps = blocks(device, (*occupied.intervals, arena))
    behind = next((gap for gap in gaps if gap.start == occupied.follows), None)
    if behind is None:
        return None
    growth = behind.size // ARENA_ALIGNMENT * ARENA_ALIGNMENT  # so that what follows keeps its alignment
    return replace(behind, size=arena.end - arena.start + growth, start=arena.start)


def occupied_bytes(device: Device, occupied: Occupied) -> Sequence[tuple[str, int]]:
    """For each region of a device the bytes that the program occupies."""
    by_region = []
    for region in device.regions:
        if region.base is not None:
            inside = [
                min(interval.end, region.base + region.size) - max(interval.start, region.base)
                for interval in occupied.intervals
            ]
            by_region.append((region.name, sum(size for size in inside if size > 0)))
    return by_region
