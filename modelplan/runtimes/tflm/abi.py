"""The ABIs for which TFLM's structures have sizes, and the size of a C structure under one of them.

A structure is described by its members in their order; each ABI gives the members' sizes and alignments. Sizes that
differ between targets so follow from one description.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeAlias

from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass

#: A structure: its members' kinds in order. "int32*5" is an array; a tuple inside is a structure of its own.
Struct: TypeAlias = "tuple[str | Struct, ...]"


@dataclass(frozen=True, slots=True)
class Abi:
    """One target's rules: bytes of an address and of an enum, and how its TFLM was built.

    `compression` is the build option USE_TFLM_COMPRESSION, `recording` says that the allocator keeps records, `later`
    that TFLM is two months newer than the sources that the tables follow, and `options` are what it parses beyond them.
    """

    name: str
    pointer: int
    enum: int
    note: str
    compression: bool = False
    recording: bool = False
    later: bool = False
    options: tuple[tuple[str, Struct], ...] = ()

    def __hash__(self) -> int:
        return hash(self.name)


#: The ABIs by name.
ABIS: dict[str, Abi] = {
    a.name: a
    for a in (
        Abi("cortex-m", 4, 1, "bare-metal Arm, where compilers store enums in one byte"),
        Abi("xtensa", 4, 4, "ESP32 and ESP32-S3"),
        Abi("riscv32", 4, 4, "32-bit RISC-V, ESP32-C3 among them"),
        Abi("arm-linux", 4, 4, "32-bit Arm under Linux"),
        Abi("x86-64", 8, 4, "64-bit hosts: x86-64 and 64-bit Arm"),
        Abi(
            "wheel",
            8,
            4,
            "the PyPI wheel tflite-micro on x86-64",
            compression=True,
            recording=True,
            later=True,
            options=(("FULLY_CONNECTED", ("pointer*2",)),),
        ),
    )
}

#: Names that stand for several ABIs: the arena holds on each of them.
GROUPS: dict[str, tuple[str, ...]] = {"32": ("cortex-m", "xtensa"), "64": ("x86-64", "wheel")}


#: What --abi takes.
ABI_NAMES = (*GROUPS, *ABIS)


def find_abis(name: str | int) -> tuple[Abi, ...]:
    """The ABI called `name`, or those that `32` or `64` stands for.

    Raises:
        RequestError: there is no such name; the message lists them.
    """
    name = str(name)
    if name not in ABIS and name not in GROUPS:
        raise RequestError(f"no ABI {name!r}; there are: {', '.join(ABI_NAMES)}")
    return tuple(ABIS[n] for n in GROUPS.get(name, (name,)))


class StructLayout(NamedTuple):
    """Bytes of a structure and what its address must be a multiple of."""

    size: int
    alignment: int


_FIXED = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int": 4, "float": 4, "int64": 8, "double": 8}


@cache
def layout(struct: Struct, abi: Abi) -> StructLayout:
    """Size and alignment of `struct`: each member at the next multiple of its size, the whole a multiple of the widest.

    A structure without members has no size: it stands for what is not allocated.
    """
    size, widest = 0, 1
    for member in struct:
        element_size, alignment, count = _member(member, abi)
        if not count:
            continue
        size = -(-size // alignment) * alignment + element_size * count
        widest = max(widest, alignment)
    return StructLayout(-(-size // widest) * widest, widest)


def _member(member: str | Struct, abi: Abi) -> tuple[int, int, int]:
    """Size and alignment of one element, and how many there are."""
    if isinstance(member, tuple):
        return (*layout(member, abi), 1)
    kind, _, count = member.partition("*")
    if kind == "compressed":  # an index that only builds with USE_TFLM_COMPRESSION have
        return 4, 4, int(count or 1) if abi.compression else 0
    sizes = {"pointer": abi.pointer, "size": abi.pointer, "enum": abi.enum}
    size = sizes[kind] if kind in sizes else _FIXED[kind]
    return size, size, int(count or 1)
