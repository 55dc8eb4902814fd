"""The kernel libraries that TFLM is built with, and what their operators take from the arena.

Each library is one module with a table of operators, and one row or more here: a row for each version or variant
that asks for other sizes. An operator's entry says which options TFLM parses for it, what it keeps, and what its
Prepare function requests, in the order of TFLM's sources; the arena follows from performing that.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache, partial
from itertools import zip_longest

from modelplan.model import Graph, Op
from modelplan.ops.op_facts import Lead
from modelplan.primitives.errors import RequestError, did_you_mean
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.abi import ABIS
from modelplan.runtimes.tflm.kernels import cmsis_nn, esp_nn, reference
from modelplan.runtimes.tflm.kernels.calls import Call, Operand, Refusal, Subgraph
from modelplan.runtimes.tflm.kernels.cmsis_nn_overlap import cmsis_nn_leads
from modelplan.runtimes.tflm.kernels.esp_nn_overlap import GENERIC_LEADS, S3_LEADS, VECTOR_KINDS
from modelplan.runtimes.tflm.kernels.own_kernels import library_of, own_kernels, own_part
from modelplan.runtimes.tflm.kernels.preparation import (
    SCRATCH,
    Operator,
    Others,
    Preparation,
    PreparationEvent,
    check_types,
    keep_own,
    prepare_operator,
)

__all__ = [
    "ALL", "KERNELS", "LIBRARIES", "LIBRARY_GROUPS", "Call", "KernelSet", "Operand", "Operator", "Others",
    "Preparation", "Refusal", "Subgraph", "check_types", "find_libraries", "find_library", "is_group", "most_scratch",
    "prepare_operator", "requested", "scratch_sizes", "shared_leads", "spoken_kernels",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelSet:
    """One set of kernels: its operators by name, the release of the sources that they follow, and what it is for.

    `abis` are the ABIs of the chips that it is for. `plain` says that all its kernels are TFLM's own: loops that finish
    one element of their output after the other, front to back. `leads` are those of the operators for which it has
    other kernels; None where their order is not known, and then nothing is known of the set. `aligned` are the
    operators whose maps must lie at multiples of the arena's alignment.
    """

    name: str
    operators: Mapping[str, Operator] = field(repr=False)
    release: str
    note: str
    abis: tuple[str, ...]
    plain: bool = False
    leads: Mapping[str, Lead] | None = field(default=None, repr=False)
    aligned: frozenset[str] = frozenset()


_TFLM = "tflite-micro of August 2026"
_CMSIS = "CMSIS-NN of June 2026"
_ARM, _ESPRESSIF = ("cortex-m", "arm-linux"), ("xtensa", "riscv32")


def _cmsis_nn(name: str, path: cmsis_nn.Path, note: str) -> KernelSet:
    return KernelSet(name, cmsis_nn.operators(path), _CMSIS, note, _ARM, leads=cmsis_nn_leads(path))


def _esp_nn(name: str, operators: Mapping[str, Operator], release: str, leads: Mapping[str, Lead] | None) -> KernelSet:
    return KernelSet(
        name, operators, f"ESP-NN {release}", "ESP-NN on the ESP32-S3", _ESPRESSIF, leads=leads, aligned=VECTOR_KINDS
    )


#: The releases of ESP-NN that ask for other sizes on the ESP32-S3, newest first.
_ESP_NN = (
    _esp_nn("esp-nn@1.2.3", esp_nn.V1_2_3, "1.2.3", S3_LEADS),
    _esp_nn("esp-nn@1.2.1", esp_nn.V1_2_1, "1.2.1 and 1.2.2", None),
    _esp_nn("esp-nn@1.2.0", esp_nn.V1_2_0, "1.2.0", None),
    _esp_nn("esp-nn@1.1.0", esp_nn.V1_1_0, "1.0.0 to 1.1.2", None),
)


def _esp32_p4(name: str, operators: Mapping[str, Operator], release: str) -> KernelSet:
    return KernelSet(name, operators, f"ESP-NN {release}", "ESP-NN on the ESP32-P4", ("riscv32",), aligned=VECTOR_KINDS)


#: The same on the ESP32-P4, of which no kernel was executed here: `all` leaves it out.
_ESP32_P4 = (
    _esp32_p4("esp-nn-p4@1.2.3", esp_nn.P4_1_2_3, "1.2.3"),
    _esp32_p4("esp-nn-p4@1.1.0", esp_nn.P4_1_1_0, "1.1.0 to 1.2.2"),
)

#: The libraries by name. `esp-nn` is the newest ESP-NN here; a name with a version stays with that version.
LIBRARIES: dict[str, KernelSet] = {
    k.name: k
    for k in (
        KernelSet("reference", reference.OPERATORS, _TFLM, "TFLM's own kernels", tuple(ABIS), plain=True, leads={}),
        _cmsis_nn("cmsis-c", cmsis_nn.C, "CMSIS-NN in plain C: Cortex-M0, M3"),
        _cmsis_nn("cmsis-dsp", cmsis_nn.DSP, "CMSIS-NN with DSP instructions: Cortex-M4, M7, M33"),
        _cmsis_nn("cmsis-mve", cmsis_nn.MVE, "CMSIS-NN with Helium: Cortex-M52, M55, M85"),
        replace(_ESP_NN[0], name="esp-nn"),
        *_ESP_NN,
        KernelSet(
            "esp-nn-generic",
            esp_nn.GENERIC,
            "ESP-NN 1.0.0 to 1.2.3",
            "ESP-NN on chips without kernels of their own",
            _ESPRESSIF,
            leads=GENERIC_LEADS,
        ),
        *_ESP32_P4,
    )
}

#: Stands for each of the libraries but those of the ESP32-P4: what is enough and right with all of them.
ALL = "all"
#: Names that stand for several libraries, without those that are another by another name.
LIBRARY_GROUPS: dict[str, tuple[str, ...]] = {
    ALL: tuple(library.name for library in LIBRARIES.values() if library.name != "esp-nn" and library not in _ESP32_P4),
    "cmsis-nn": ("cmsis-c", "cmsis-dsp", "cmsis-mve"),
    "esp-nn@all": tuple(library.name for library in _ESP_NN),
    "esp-nn-p4": tuple(library.name for library in _ESP32_P4),
}
#: All names of libraries, and of several together.
KERNELS = (*LIBRARY_GROUPS, *LIBRARIES)
#: How people and other tools call them.
_SPOKEN = {"cmsis": "cmsis-nn", "cmsisnn": "cmsis-nn", "espnn": "esp-nn", "esp": "esp-nn", "ref": "reference"}
_SPOKEN |= {"helium": "cmsis-mve", "mve": "cmsis-mve", "cmsis-helium": "cmsis-mve", "esp-nn-s3": "esp-nn"}
#: Releases without sizes of their own, and the one whose sizes they have.
_SPOKEN |= {f"esp-nn@{release}": "esp-nn@1.1.0" for release in ("1.0.0", "1.0.1", "1.0.2", "1.1", "1.1.1", "1.1.2")}
_SPOKEN |= {"esp-nn@1.2.2": "esp-nn@1.2.1"}


def spoken_kernels(name: str) -> str:
    """The name of the library that somebody calls `name`: in any case, with `_` or without `-`; else `name` itself.

    >>> spoken_kernels("CMSIS_NN"), spoken_kernels("espnn"), spoken_kernels("nothing")
    ('cmsis-nn', 'esp-nn', 'nothing')
    """
    said = library_of(name)
    word = said.lower().replace("_", "-").replace(" ", "-")
    meant = _SPOKEN | {known: known for known in KERNELS}
    plain = {spoken.replace("-", ""): known for spoken, known in meant.items()}
    library = _SPOKEN.get(word, word)
    return (library if library in KERNELS else plain.get(word.replace("-", ""), said)) + own_part(name)


def is_group(name: str) -> bool:
    """Whether a name stands for several libraries."""
    return library_of(name) in LIBRARY_GROUPS


@lru_cache(maxsize=64)
def find_library(name: str) -> KernelSet:
    """The library called `name`, with the user's own kernels that are stated behind its name.

    Raises:
        RequestError: there is none; the message lists the names, or the variants of the library that was meant.
    """
    if name in LIBRARIES:
        return LIBRARIES[name]
    if own := own_kernels(name):
        library = find_library(library_of(name))
        operators = {kind: Operator(prepare=partial(keep_own, size), exact=False) for kind, size in own.items()}
        if known := sorted(operators.keys() & library.operators.keys()):
            raise RequestError(f"custom kernel {known[0]!r}: TFLM has a kernel for it, whose sizes are known")
        return replace(library, name=name, operators={**library.operators, **operators})
    if name == ALL:
        raise RequestError(f"kernels {name!r} are several libraries, expected one of: {', '.join(LIBRARIES)}")
    family = name.partition("-")[0].partition("@")[0]
    variants = [f"{k.name} ({k.note}: {k.release})" for k in LIBRARIES.values() if k.name.partition("-")[0] == family]
    if variants:
        raise RequestError(f"kernels {name!r} come in variants: {'; '.join(variants)}")
    meant = did_you_mean(name, KERNELS) or f"; there are: {', '.join(KERNELS)}"
    raise RequestError(f"no kernels {name!r}{meant}")


def find_libraries(name: str) -> tuple[KernelSet, ...]:
    """The library called `name`, or those that it stands for."""
    if is_group(name):
        return tuple(find_library(library + own_part(name)) for library in LIBRARY_GROUPS[library_of(name)])
    return (find_library(name),)


def shared_leads(libraries: Sequence[KernelSet]) -> Mapping[str, Lead] | None:
    """The leads that hold with each of several libraries that have kernels for the same operators, else None."""
    known = [library.leads for library in libraries if library.leads is not None]
    if len(known) < len(libraries) or any(leads.keys() != known[0].keys() for leads in known):
        return None
    return {kind: partial(_shared_lead, [leads[kind] for leads in known]) for kind in known[0]}


def _shared_lead(leads: Sequence[Lead], graph: Graph, op: Op, operand: int) -> int | None:
    """The largest of the leads of an operand, None where one of `leads` allows no overlap."""
    bytes_ahead = [lead(graph, op, operand) for lead in leads]
    known = [ahead for ahead in bytes_ahead if ahead is not None]
    return max(known) if len(known) == len(bytes_ahead) else None


def most_scratch(of_libraries: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Requests for scratch in which those of each library find room: the largest of each, then the second largest."""
    largest_first = (sorted(sizes, reverse=True) for sizes in of_libraries)
    return tuple(map(max, zip_longest(*largest_first, fillvalue=0)))


def scratch_sizes(call: Call, kernels: str = "reference", pointer: int = 8) -> tuple[int, ...]:
    """The bytes that the kernel of `call` requests, unpadded and in its order; nothing for most operators.

    `pointer` is the size of an address in bytes. For an operator that TFLM would refuse, what its kernel requests
    before it gives up.
    """
    if is_group(kernels):
        return most_scratch(scratch_sizes(call, library.name, pointer) for library in find_libraries(kernels))
    operator = find_library(kernels).operators.get(call.kind)
    if operator is None:
        return ()
    preparation = Preparation(call)
    with suppress(Refusal):  # what was requested until then is the answer
        prepare_operator(operator, preparation)
    return requested(preparation.events, pointer)


def requested(events: Iterable[PreparationEvent], pointer: int) -> tuple[int, ...]:
    """The bytes of each request for scratch, where an address has `pointer` bytes."""
    abi = ABIS["x86-64" if pointer > ABIS["xtensa"].pointer else "xtensa"]
    return tuple([event.bytes(abi) for event in events if event.sort == SCRATCH])
