"""Kernels of the user's own for custom operators, stated behind a library's name: `esp-nn+NAME=BYTES+NAME=BYTES`.

So whatever names a library carries them along: requests, plans, and files that say what their plan was made for.
"""

from collections.abc import Iterable, Mapping

from modelplan.primitives.errors import RequestError, did_you_mean
from modelplan.primitives.units import parse_bytes

#: How the kinds of custom operators begin in a graph.
_CUSTOM = "CUSTOM:"


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

    Kernels that are added to `library` stay, where the first name does not state them otherwise.

    >>> with_library(None, "all"), with_library("+MyFilter=64", "all"), with_library("esp-nn", "all")
    ('all', 'all+MyFilter=64', 'esp-nn')
    >>> with_library("+MyFilter=64", "all+MyFilter=16+Other=8")
    'all+MyFilter=64+Other=8'
    """
    named = kernels or ""
    own = {**own_kernels(library), **own_kernels(named)}
    return (library_of(named) or library_of(library)) + "".join(f"+{name}={size}" for name, size in own.items())


def check_stated(kernels: str, kinds: Iterable[str]) -> None:
    """Checks that each stated kernel is for a custom operator of the model, whose operators are of `kinds`.

    A model without custom operators takes any: several models may be asked about at once.

    Raises:
        RequestError: one that is for none of them.
    """
    custom = {kind.removeprefix(_CUSTOM) for kind in kinds if kind.startswith(_CUSTOM)}
    for name in own_kernels(kernels) if custom else ():
        if name not in custom:
            meant = did_you_mean(name, custom) or f"; it has: {', '.join(sorted(custom))}"
            raise RequestError(f"--custom {name}: the model has no such operator{meant}")


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
