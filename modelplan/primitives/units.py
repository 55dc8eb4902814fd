"""Bytes as people read them, KiB or MiB with the byte count beside it, times, counts, and whose height a figure is."""


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
    several = f"{noun[:-1]}ies" if noun.endswith(("ory", "opy")) else f"{noun}s"
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
