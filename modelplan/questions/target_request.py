"""The device that a question is asked for: its name and what says more about it, read into a device and a block."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest, answers_paths
from modelplan.primitives.units import parse_bytes

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen, Reserve, Wanted


@dataclass(frozen=True, slots=True)
class TargetRequest(SettledRequest):
    """A device and what says more about it, each as the option of the same name takes it.

    Args:
        name: a device of `modelplan targets`, a device in FILE.toml, or from:FILE[#PART]; None: no device.
        reserve: bytes that are not free: REGION=BYTES, REGION=BYTES@start or REGION=BYTES@end.
        used: an ELF file or a map of GNU ld: what the program occupies is not free.
        arena_symbol: the arena in that program, which is free.
        define: names that the file leaves open: NAME=VALUE.
        include: folders of files that the file includes.
        origin: the file of a project that states the name; empty where the caller does.
    """

    name: str | None = None
    reserve: tuple[str, ...] = ()
    used: str | None = None
    arena_symbol: str | None = None
    define: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    origin: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The options and their values that ask for it."""
        single = {"--target": self.name, "--used": self.used, "--arena-symbol": self.arena_symbol}
        repeated = {"--reserve": self.reserve, "--define": self.define, "--include": self.include}
        named = [(option, value) for option, value in single.items() if value is not None]
        named += [(option, value) for option, values in repeated.items() for value in values]
        return tuple(word for pair in named for word in pair)


@answers_paths(TargetRequest)
def choose_target(request: TargetRequest) -> Chosen | None:
    """The device that is asked for and the block of its memory that holds the arena; None without a name.

    Args:
        request: the device.

    Raises:
        RequestError: there is no such target, or an option needs one.
        ModelError: its file cannot be read.
    """
    if request.name is None:
        given = [name for name in ("reserve", "used", "arena_symbol", "define", "include") if getattr(request, name)]
        if given:
            raise RequestError(f"--{given[0].replace('_', '-')} says more about a target; name one by --target")
        return None
    if request.arena_symbol and not request.used:
        raise RequestError("--arena-symbol names a symbol in the program of --used, which is missing")
    from modelplan.targets.choosing import chosen_block

    return replace(chosen_block(wanted_device(request, request.name)), words=request.words, origin=request.origin)


def wanted_device(request: TargetRequest, name: str) -> Wanted:
    """The device `name` with all that the request says besides.

    Raises:
        RequestError: an option cannot be read.
    """
    from modelplan.targets.choosing import Wanted

    return Wanted(
        name,
        tuple(map(_reserve, request.reserve)),
        dict(map(_definition, request.define)),
        tuple(map(Path, request.include)),
        request.used,
        request.arena_symbol,
    )


def _reserve(text: str) -> Reserve:
    from modelplan.targets.choosing import Reserve

    region, given, size = text.rpartition("=")
    size, place, end = size.partition("@")
    sides: dict[str, Literal["start", "end"]] = {"start": "start", "end": "end"}
    if not given or not region or (place and end not in sides):
        raise RequestError(f"--reserve {text}: expected REGION=BYTES, REGION=BYTES@start or REGION=BYTES@end")
    return Reserve(region, parse_bytes(size), sides.get(end))


def _definition(text: str) -> tuple[str, str]:
    from modelplan.targets.arithmetic import ExpressionError
    from modelplan.targets.linker_script import constant

    name, given, value = text.partition("=")
    try:
        constant(value if given else "1")
    except ExpressionError as problem:
        raise RequestError(f"--define {text}: {problem}") from None
    if not name.isidentifier():
        raise RequestError(f"--define {text}: expected NAME=VALUE")
    return name, value if given else "1"
