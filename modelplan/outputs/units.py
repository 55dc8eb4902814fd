"""Bytes as people read them, KiB or MiB with the byte count beside it, counts, and whose height a figure is."""

import re

from modelplan.errors import RequestError

_UNITS = {"": 1, "b": 1, "k": 1024, "kib": 1024, "m": 1024**2, "mib": 1024**2, "g": 1024**3, "gib": 1024**3}
#: Units that some take for a power of ten and others for a power of two.
_AMBIGUOUS = {"kb": 1, "mb": 2, "gb": 3}


def human(size: int) -> str:
    """`size` in the largest unit that keeps it above one, and in bytes.

    >>> human(55296)
    '54.00 KiB (55,296 B)'
    """
    short = brief(size)
    return f"{short} ({size:,} B)" if abs(size) >= 1024 else short


def brief(size: int) -> str:
    """`size` in the largest unit that keeps it above one.

    >>> brief(55296)
    '54.00 KiB'
    """
    for unit, scale in (("MiB", 1024**2), ("KiB", 1024)):
        if abs(size) >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size:,} B"


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "buffer"), counted(18692, "buffer")
    ('1 buffer', '18,692 buffers')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def stand_in(found_by: str, own_height: int | None) -> str:
    """Whose height is shown in place of a search's own, and what its own is; nothing without a name.

    >>> stand_in("first-fit-size", None)
    "no solution of its own: first-fit-size's height shown"
    """
    if not found_by:
        return ""
    own = "no solution of its own" if own_height is None else f"its own best is {own_height:,} B"
    return f"{own}: {found_by}'s height shown"


def parse_bytes(text: str) -> int:
    """The bytes in `text`: a number with an optional unit, KiB being 1024 and kB 1000; a bare K is KiB.

    Raises:
        RequestError: what was found and what was expected; for KB, MB and GB both readings.

    >>> parse_bytes("64KiB")
    65536
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    unit = match[2].lower() if match else ""
    if not match or unit not in _UNITS.keys() | _AMBIGUOUS.keys():
        raise RequestError(f"cannot read {text!r} as bytes; expected a number like 65536, 64KiB or 1.5MiB")
    if unit in _AMBIGUOUS and match[2] != "kB":
        power = _AMBIGUOUS[unit]
        readings = f"{float(match[1]) * 1000**power:,.0f} or {float(match[1]) * 1024**power:,.0f} bytes"
        raise RequestError(f"{text!r} may mean {readings}; write {match[1]}{match[2][0].upper()}iB or the bytes")
    size = float(match[1]) * _UNITS.get(unit, 1000)
    if size != int(size) or size >= 2**62:
        raise RequestError(f"{text!r} is not a whole number of bytes below 2^62")
    return int(size)
