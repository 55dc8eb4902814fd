"""Regions as a caller states them: `psram:8MiB@0x3c000000,read=80MB/s,write=40MB/s,kind=psram`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import combinations
from typing import Any

from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_bytes, parse_memory, parse_nanoseconds, parse_rate
from modelplan.targets.device import Region, is_external

#: Bytes per second of octal PSRAM at 80 MHz, which every memory behind the first is taken for.
USUAL_RATE = 80_000_000
#: Parts that a memory is cut into by its largest allocation.
_MOST_PARTS = 64
_YES_NO = {"yes": True, "no": False}
#: What may follow the size, each with the field that it sets and how its value is read.
KEYS: dict[str, tuple[str, Callable[[str], object]]] = {
    "read": ("read_bandwidth", parse_rate),
    "write": ("write_bandwidth", parse_rate),
    "rate": ("bandwidth", parse_rate),
    "latency": ("latency_ns", parse_nanoseconds),
    "align": ("alignment", parse_bytes),
    "reserve": ("reserved", parse_bytes),
    "kind": ("kind", str),
    "dma": ("dma", lambda text: _YES_NO[text]),
    "reach": ("readable_by", lambda text: tuple(text.split("+"))),
}


def parse_region(text: str, known: Sequence[Region] = ()) -> Region:
    """The region that `text` states: NAME:SIZE[@BASE][,KEY=VALUE]..., or what it changes of the one of `known`.

    The size may be left out where `known` has a region of that name. The kind of a region that says none is `psram`
    where its name speaks of external memory, `nvm` where it speaks of flash, `tcm` where of a TCM, else `ram`.

    Raises:
        RequestError: names the text, what was found in it, and what was expected.

    >>> parse_region("psram:8MiB@0x3c000000,read=80MB/s").read_bandwidth
    80000000
    """
    name, colon, rest = text.partition(":")
    first, *pairs = rest.split(",")
    given = {region.name: region for region in known}.get(name)
    if not name.strip() or not colon or set(name) & set(",=@ \t"):
        raise RequestError(f"--region {text}: expected NAME:SIZE[@BASE][,KEY=VALUE]..., like sram:256KiB@0x20000000")
    facts: dict[str, Any] = {}
    if "=" in first and given is not None:
        pairs.insert(0, first)
    else:
        facts = _extent(text, first)
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if key not in KEYS or not equals:
            near = get_close_matches(key, KEYS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise RequestError(f"--region {text}: no key {key!r}; there are: {', '.join(KEYS)}{hint}")
        field, reading = KEYS[key]
        if field in facts:
            raise RequestError(f"--region {text}: {key} is given twice")
        try:
            facts[field] = reading(value)
        except RequestError as problem:
            raise RequestError(f"--region {text}: {key}: {problem}") from None
        except KeyError:
            raise RequestError(f"--region {text}: {key} is {value!r}, expected yes or no") from None
    try:
        return replace(given, **facts) if given is not None else Region(**{"name": name, "kind": _kind(name)} | facts)
    except ValueError as problem:
        raise RequestError(f"--region {text}: {problem}") from None


def parse_memories(text: str, largest: str | None = None) -> tuple[Region, ...]:
    """The memories that `256KiB+8MiB` states, the fastest first: the others are external, with their usual rate.

    A memory of which no allocation may have more than `largest` bytes is cut into parts of that size.

    Raises:
        RequestError: what was found, and what was expected.

    >>> [(region.name, region.size) for region in parse_memories("64KiB+1MiB", "512KiB")]
    [('sram', 65536), ('psram 1', 524288), ('psram 2', 524288)]
    """
    regions: list[Region] = []
    most = None if largest is None else parse_memory(largest)
    for number, words in enumerate(text.split("+")):
        try:
            size = parse_memory(words)
        except RequestError as problem:
            raise RequestError(f"--memory {text}: {problem}; several memories as 256KiB+8MiB") from None
        first = Region("sram", size)
        more = Region(f"psram{number if number > 1 else ''}", size, kind="psram", bandwidth=USUAL_RATE)
        regions += _parts(more if number else first, most or size)
    return tuple(regions)


def _parts(region: Region, most: int) -> list[Region]:
    """A region in parts of at most so many bytes."""
    if region.size <= most:
        return [region]
    count = -(-region.size // most)
    if count > _MOST_PARTS:
        raise RequestError(f"--largest cuts {region.name} into {count:,} parts, expected at most {_MOST_PARTS}")
    sizes = [most] * (count - 1) + [region.size - most * (count - 1)]
    return [replace(region, name=f"{region.name} {number}", size=size) for number, size in enumerate(sizes, 1)]


def _extent(text: str, words: str) -> dict[str, int]:
    """The size and, behind an @, the address."""
    size, at, base = words.partition("@")
    if not size:
        raise RequestError(f"--region {text}: no size; expected NAME:SIZE[@BASE], like sram:256KiB")
    try:
        facts = {"size": parse_bytes(size)}
        if at:
            facts["base"] = int(base, 0)
    except ValueError:
        raise RequestError(f"--region {text}: {base!r} is no address; expected one like 0x20000000") from None
    except RequestError as problem:
        raise RequestError(f"--region {text}: {problem}") from None
    return facts


def _kind(name: str) -> str:
    lower = name.lower()
    if is_external(lower):
        return "psram"
    if any(word in lower for word in ("flash", "mram", "rom", "nvm")):
        return "nvm"
    return "tcm" if "tcm" in lower else "ram"


def check_regions(regions: Sequence[Region]) -> None:
    """Returns only if no two regions have one name or common addresses."""
    for region, other in combinations(regions, 2):
        if region.name == other.name:
            raise RequestError(f"two regions are called {region.name}")
        if region.base is None or other.base is None or region.end is None or other.end is None:
            continue
        if region.base < other.end and other.base < region.end:
            raise RequestError(
                f"regions {region.name} at {region.base:#x}..{region.end:#x} and {other.name} at"
                f" {other.base:#x}..{other.end:#x} overlap"
            )
