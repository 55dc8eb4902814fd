"""Bytes, times and counts as people write them, a number with a unit, and as they read them.

They read KiB or MiB with the byte count beside it, and whose height a figure is.
"""

import math
import re

from modelplan.primitives.errors import RequestError

_UNITS = {"": 1, "b": 1} | {
    unit: 1024**power for power, letter in enumerate("kmg", 1) for unit in (letter, f"{letter}i", f"{letter}ib")
}
#: Units that some take for a power of ten and others for a power of two.
_AMBIGUOUS = {"kb": 1, "mb": 2, "gb": 3}
#: No memory is smaller.
_LEAST_BARE = 1024


def parse_bytes(text: str) -> int:
    """The bytes in `text`: a number with an optional unit, KiB being 1024 and kB 1000; a bare K or Ki is KiB.

    Commas may stand between thousands.

    Raises:
        RequestError: what was found and what was expected; for KB, MB and GB both readings.

    >>> parse_bytes("64KiB"), parse_bytes("65,536")
    (65536, 65536)
    """
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text) if re.match(r"\s*\d{1,3}(,\d{3})+(?![\d,])", text) else text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", plain)
    unit = match[2].lower() if match else ""
    if not match or unit not in _UNITS.keys() | _AMBIGUOUS.keys():
        raise RequestError(f"cannot read {text!r} as bytes; expected a number like 65536, 64KiB or 1.5MiB")
    size = float(match[1]) * _UNITS.get(unit, 1000)
    if size >= 2**62 or size != int(size):
        raise RequestError(f"{text[:40]!r} is not a whole number of bytes below 2^62")
    if unit in _AMBIGUOUS and match[2] != "kB":
        power = _AMBIGUOUS[unit]
        readings = f"{float(match[1]) * 1000**power:,.0f} or {float(match[1]) * 1024**power:,.0f} bytes"
        raise RequestError(f"{text!r} may mean {readings}; write {match[1]}{match[2][0].upper()}iB or the bytes")
    return int(size)


def parse_memory(text: str) -> int:
    """The bytes in `text`, the size of a memory: a bare number below 1024 is refused, since it is a slip for KiB.

    >>> parse_memory("64B")
    64
    """
    size = parse_bytes(text)
    if size < _LEAST_BARE and text.strip().isdecimal():
        raise RequestError(f"{text} means {text} bytes; write {text}KiB, or {text}B where so little is meant")
    return size


#: Units of a rate; by convention those of a rate in kB, MB and GB are powers of ten.
_RATES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def parse_rate(text: str) -> int:
    """The bytes per second in `text`: MB/s is a million of them, MiB/s is 1,048,576.

    Raises:
        RequestError: what was found and what was expected; also for a rate of 0.

    >>> parse_rate("80MB/s")
    80000000
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)/s\s*", text)
    if not match or match[2].lower() not in _RATES:
        raise RequestError(f"cannot read {text!r} as bytes per second; expected a number like 80MB/s or 1.5GiB/s")
    rate = float(match[1]) * _RATES[match[2].lower()]
    if not 1 <= rate < 2**62:
        raise RequestError(f"{text[:40]!r} is not a rate of at least 1 byte per second and below 2^62")
    return round(rate)


def parse_nanoseconds(text: str) -> float:
    """The nanoseconds in `text`, a number with ns, us, ms or s.

    Raises:
        RequestError: what was found and what was expected.

    >>> parse_nanoseconds("1.5us")
    1500.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s)\s*", text)
    if not match or not math.isfinite(float(match[1])):
        raise RequestError(f"cannot read {text!r} as a time; expected a number like 100ns or 1.5us")
    return float(match[1]) * _TIMES[match[2]]


def parse_share(text: str) -> float:
    """A share from 0 on, written as a percentage or as a number.

    Raises:
        RequestError: it is neither, below 0, or without end.

    >>> parse_share("10%"), parse_share("0.1")
    (0.1, 0.1)
    """
    try:
        fraction = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        fraction = -1.0
    if not 0 <= fraction < float("inf"):
        raise RequestError(f"cannot read {text!r} as a share; expected a number like 10% or 0.1")
    return fraction


def rounded_up(size: int, unit: int) -> int:
    """The least multiple of `unit` that is not below `size`."""
    return -(-size // unit) * unit


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


def milliseconds(seconds: float) -> str:
    """A time as people read it.

    >>> milliseconds(0.01234567)
    '12.346 ms'
    """
    return f"{seconds * 1e3:,.3f} ms"


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "buffer"), counted(18692, "buffer"), counted(2, "copy")
    ('1 buffer', '18,692 buffers', '2 copies')
    """
    several = f"{noun[:-1]}ies" if noun.endswith(("ory", "opy")) else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else several}"


def stand_in(found_by: str, own_height: int | None) -> str:
    """Whose height is shown in place of a search's own, and what its own is; nothing without a name.

    >>> stand_in("first-fit-size", None)
    "no solution of its own: first-fit-size's height shown"
    """
    if not found_by:
        return ""
    own = "no solution of its own" if own_height is None else f"its own best is {own_height:,} B"
    return f"{own}: {found_by}'s height shown"


def steps_words(start: int, end: int) -> str:
    """The steps from `start` until before `end`, as people read them.

    >>> steps_words(3, 5), steps_words(3, 4), steps_words(3, 3)
    ('3 to 4', '3', 'none')
    """
    if end <= start:
        return "none"
    return f"{start:,}" if end == start + 1 else f"{start:,} to {end - 1:,}"
