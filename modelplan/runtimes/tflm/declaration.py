"""The arena that a .tflite file needs on TFLM as the firmware must declare it, part by part."""

import shlex
from collections.abc import Iterator

from modelplan.model import LibraryNeed, Part, Requirement
from modelplan.primitives.errors import ModelError
from modelplan.runtimes.tflm.abi import ABIS
from modelplan.runtimes.tflm.arena import MARGIN, RELEASE, VERSION, Arena, arena, builds, largest_arena
from modelplan.runtimes.tflm.decoding import (
    arena_beside_region,
    arena_beside_unpacked,
    decode_region,
    unpacking_region,
)
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import is_group
from modelplan.runtimes.tflm.kernels.own_kernels import library_of, own_kernels
from modelplan.runtimes.tflm.lut_weights import metadata_damage
from modelplan.runtimes.tflm.refused_operators import refusal_lines, remedy_lines

#: The name under which firmware declares the size of its arena.
MACRO = "TENSOR_ARENA_SIZE"


def required_arena(content: bytes, name: str, abi: str, kernels: str) -> Requirement:
    """What TFLM needs to allocate and run the .tflite file `name`, with the offline plan that it carries.

    A file that TFLM could not hold is a requirement with a refusal.
    """
    try:
        return requirement_of(read_tflite(content, name), abi, kernels)
    except ModelError as problem:
        return Requirement(0, 0, (), _basis(abi, None, kernels), MACRO, (str(problem),))


def requirement_of(model: FileModel, abi: str, kernels: str) -> Requirement:
    """The same for a file that has been read, with the plan in `model`.

    Raises:
        RequestError: no such ABI or kernel library.
        ModelError: the plan does not fit the model, or subgraphs call each other in a circle.
    """
    libraries = {library.name: library.note for _, library in builds(abi, kernels)}
    arenas = [arena(model, abi, library) for library in libraries]
    whole = largest_arena(arenas)
    each = (
        LibraryNeed(
            library_of(own.kernels),
            libraries[own.kernels],
            own.size(),
            own.head,
            own.tail,
            refusal_lines(own.refusals),
        )
        for own in arenas
    )
    return Requirement(
        whole.size(),
        whole.head,
        tuple(_parts(whole)),
        _basis(abi, whole, kernels),
        MACRO,
        refusal_lines(whole.refusals),
        remedy_lines(whole.refusals),
        whole.kernels,
        tuple(each) if is_group(kernels) else (),
        tuple(_remarks(model, abi, kernels, whole)),
        estimate=_estimate(model, whole, kernels),
        guessed=whole.guessed,
    )


def _estimate(model: FileModel, whole: Arena, kernels: str) -> str:
    """What of the arena nobody has measured: kernels of the user's own; empty where there are none."""
    margin = sum(row.used for row in whole.rows if row.name == MARGIN)
    if whole.guessed:
        named = ", ".join(whole.guessed)
        return (
            f"estimate: the sizes of {named} are not known, {margin:,} bytes stand in for what their kernels ask for;"
            f" say it by --custom {shlex.quote(whole.guessed[0])}=BYTES"
        )
    kinds = {op.kind for subgraph in model.subgraphs for op in subgraph.ops if op.custom}
    stated = [f"{size:,} bytes for each {kind}" for kind, size in own_kernels(kernels).items() if kind in kinds]
    return f"estimate: as stated, your own kernels ask for {', '.join(stated)}" if stated else ""


def _remarks(model: FileModel, abi: str, kernels: str, whole: Arena) -> Iterator[str]:
    """Where operators unpack weights, and what the arena is where that is memory of their own."""
    if model.compressed and not metadata_damage(model):
        yield (
            "compressed weights: sized for TFLM built with USE_TFLM_COMPRESSION, by its sources and measured on x86-64;"
            " other builds ignore the metadata and compute with the indices"
        )
        if not model.decodes:
            region, rest = unpacking_region(model), arena_beside_unpacked(model, abi, whole.kernels).size()
            yield (
                f"kernels unpack weights into the arena; with SetDecompressionMemory into {region} bytes elsewhere"
                f" (aligned to 16) the arena is {rest}"
            )
    if not model.decodes:
        return
    if region := decode_region(model):
        rest = arena_beside_region(model, abi, kernels).size()
        yield (
            f"TFLM_DECODE unpacks weights into the arena; with SetDecompressionMemory into {region} bytes elsewhere"
            f" (aligned to 16) the arena is {rest}"
        )
    else:
        yield "TFLM_DECODE unpacks weights into the arena; SetDecompressionMemory is not for a model in this order"


def kept_by_operator(content: bytes, name: str, abi: str, kernels: str) -> tuple[int, ...]:
    """The bytes of the tail that are each operator's own, for the first subgraph; none where TFLM could not hold it."""
    try:
        model = read_tflite(content, name)
        return arena(model, abi, kernels).kept[: len(model.subgraphs[0].ops)]
    except ModelError:
        return ()


def _parts(whole: Arena) -> Iterator[Part]:
    """What adds up to the arena: the planned head, the tail by TFLM's rows, and what planning takes beyond both."""
    yield Part("head: activations and scratch, planned", whole.head)
    for row in whole.rows:
        yield Part(f"tail: {row.name}", row.used, row.count, row.trust)
    planning = max(whole.planning - whole.total, 0)
    if planning:
        yield Part("more while TFLM prepares and plans", planning)
    yield Part("rounded up to 16 bytes", whole.size() - whole.total - planning)


def _basis(abi: str, whole: Arena | None, kernels: str) -> str:
    """For which builds of TFLM the arena is enough, and by which sources."""
    most = whole.abi if whole else abi
    release = f"TFLM {VERSION}" if most in ABIS and ABIS[most].later else RELEASE
    library = f"{library_of(kernels)} kernels"
    if is_group(kernels) and whole and not whole.refusals:
        library += f" ({library_of(whole.kernels)} needs most)"
    return f"ABI {abi}, {library}, {release}"
