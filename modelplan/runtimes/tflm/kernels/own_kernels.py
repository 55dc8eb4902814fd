"""Kernels of the user's own for custom operators, stated behind a library's name: `esp-nn+NAME=BYTES+NAME=BYTES`.

So whatever names a library carries them along: requests, plans, and files that say what their plan was made for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from modelplan.primitives.byte_counts import parse_bytes
from modelplan.primitives.errors import RequestError


def library_of(kernels: str) -> str:
    """The name of the library without the kernels that are added to it.

    >>> library_of("esp-nn+MyFilter=64"), library_of("+MyFilter=64"), library_of("all")
    ('esp-nn', '', 'all')
    """
    return kernels.partition("+")[0]


def own_part(kernels: str) -> str:
    """What stands behind the library's name; empty where no kernel is added.

    >>> own_part("esp-nn+MyFilter=64")
    '+MyFilter=64'
    """
    return kernels[len(library_of(kernels)) :]


def with_library(kernels: str | None, library: str) -> str:
    """The name of a library with the kernels that are added to it; `library` is that of one where none is named.

    >>> with_library(None, "all"), with_library("+MyFilter=64", "all"), with_library("esp-nn", "all")
    ('all', 'all+MyFilter=64', 'esp-nn')
    """
    named = kernels or ""
    return (library_of(named) or library) + own_part(named)


def own_kernels(kernels: str) -> Mapping[str, int]:
    """The bytes of arena that the user's kernel of each custom operator asks for, by the operator's name.

    Raises:
        RequestError: a part that is not NAME=BYTES, or an operator that is named twice.

    >>> own_kernels("all+MyFilter=64+Other=1KiB")
    {'MyFilter': 64, 'Other': 1024}
    """
    sizes: dict[str, int] = {}
    for part in own_part(kernels).split("+")[1:]:
        name, given, size = part.rpartition("=")
        if not given or not name:
            raise RequestError(f"custom kernel {part!r}: expected NAME=BYTES, such as MyFilter=4KiB")
        if name in sizes:
            raise RequestError(f"custom kernel {name!r} is stated twice")
        sizes[name] = parse_bytes(size)
    return sizes


def with_own(kernels: str | None, stated: Iterable[str]) -> str | None:
    """The name of a library (None: the usual one) with the kernels that are `stated` as NAME=BYTES.

    Raises:
        RequestError: one that cannot be read.

    >>> with_own("esp-nn", ["MyFilter=64"]), with_own(None, ["MyFilter=64"]), with_own(None, [])
    ('esp-nn+MyFilter=64', '+MyFilter=64', None)
    """
    named = (kernels or "") + "".join(f"+{part}" for part in stated)
    own_kernels(named)  # refuses what cannot be read
    return named or kernels
