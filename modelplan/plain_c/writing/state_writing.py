"""Writes what a network remembers as C: its memory, and the function that gives it its first values."""

from collections.abc import Iterator

from modelplan.plain_c.kernel_records import StateReference, const_table
from modelplan.plain_c.operator_calls.state_layout import StateLayout
from modelplan.plain_c.writing.c_text import comment, table_text

_ALIGNED = {2: "int16_t", 4: "int32_t", 8: "int64_t"}


def state_memory(layout: StateLayout, prefix: str) -> list[str]:
    """The definitions of the memory and of its first values."""
    size, state = f"{prefix.upper()}_STATE_BYTES", f"{prefix}_state"
    lines = ["/* What is kept from one run to the next, and whether it has its first values. */"]
    if layout.alignment == 1:
        lines += [f"static int8_t {state}[{size}];", f"#define STATE {state}"]
    else:
        kind = _ALIGNED[layout.alignment]
        lines += ["static union {", f"    int8_t bytes[{size}];", f"    {kind} aligned;", f"}} {state};"]
        lines += [f"#define STATE {state}.bytes"]
    lines.append(f"static uint8_t {prefix}_is_set;")
    texts = ["\n".join(lines)]
    for initial, name in _tables(layout, prefix).items():
        values = [b - 256 if b > 127 else b for b in initial]
        texts.append(table_text(name, const_table("first", "int8_t", values)))
    return texts


def _tables(layout: StateLayout, prefix: str) -> dict[bytes, str]:
    """First values that are not all the same byte, and the names of their tables."""
    initials = dict.fromkeys(place.initial for place in layout.places.values())
    several = [initial for initial in initials if not _is_uniform(initial)]
    return {initial: f"{prefix}_first_{number}" for number, initial in enumerate(several)}


def _is_uniform(content: bytes) -> bool:
    return content == content[:1] * len(content)


def reset_function(layout: StateLayout, prefix: str) -> str:
    """The function that sets the first values."""
    return "\n".join([f"void {prefix}_reset(void)", "{", *_settings(layout, prefix), f"    {prefix}_is_set = 1u;", "}"])


def _settings(layout: StateLayout, prefix: str) -> Iterator[str]:
    tables = _tables(layout, prefix)
    for place in layout.places.values():
        if not place.nbytes:
            continue
        yield f"    /* {comment(place.title)} */"
        if _is_uniform(place.initial):
            yield f"    (void)memset(STATE + {place.offset}, {place.initial[0]}, {place.nbytes});"
        else:
            yield f"    (void)memcpy(STATE + {place.offset}, {tables[place.initial]}, {place.nbytes});"


def state_pointer(reference: StateReference) -> str:
    """A pointer to what a network remembers."""
    place = f"STATE + {reference.offset}"
    return place if reference.ctype == "int8_t" else f"({reference.ctype} *)(void *)({place})"
