"""The options that every command about a model shares."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from modelplan.formats.files import read_text
from modelplan.model import Budget, Graph, Overlap, Progress
from modelplan.planning import allocators
from modelplan.primitives.byte_counts import parse_bytes
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm.abi import ABI_NAMES, GROUPS

if TYPE_CHECKING:
    from modelplan.planning.pipeline import Options
    from modelplan.questions.alternatives import Target
    from modelplan.targets.choosing import Chosen, Reserve, Wanted

#: The allocator that takes the offsets that the file already has.
FROM_FILE = "file"
#: No microcontroller has addresses of 64 bits.
USUAL_ABI = "32"
#: Longest number of streams; a longer one is the name of a file.
_MOST_DIGITS = 9

_ROWS = RUNTIMES.values()
_USUAL = ", ".join(f"{row.name} for .{row.default_for}" for row in _ROWS if row.default_for)
_OVERWRITING = " and ".join(row.name for row in _ROWS if row.sharing.overwrites)
_LIBRARIES = "; ".join(
    f"{row.name} has " + ", ".join(f"{library.name}: {library.explains}" for library in row.libraries)
    for row in _ROWS
    if len(row.libraries) > 1
)


#: What --contiguous takes in place of a file.
JOINS = "joins"


def add_planning(parser: ArgumentParser) -> None:
    """Adds what decides how a model becomes buffers."""
    group = add_runtime(parser, "planning")
    group.add_argument("--schedule", metavar="NAME", help="file, list, dfs, merge, beam, best or exact (default: best)")
    group.add_argument("--alignment", type=int, metavar="N", help="bytes (default: the runtime's)")
    group.add_argument("--pad", choices=("tensor", "arena"), help="what is rounded up to the alignment")
    group.add_argument(
        "--streams",
        metavar="N|FILE",
        help="run ops on N streams, or as FILE assigns them in lines `op,stream`; what may run at once shares no bytes",
    )
    add_overlaps(group)
    add_contiguous(group, "tensors", f"; {JOINS}: the parts of joins and splits inside of the whole, without a copy")
    aliases = group.add_mutually_exclusive_group()
    aliases.add_argument(
        "--alias",
        metavar="MODE",
        help=f"runtime, none, views, safe or max (default: safe for {_OVERWRITING}, which overwrite by themselves, else"
        " views)",
    )
    aliases.add_argument("--no-alias", dest="alias", action="store_const", const="none", help="same as --alias none")


def add_runtime(parser: ArgumentParser, title: str = "runtime") -> _ArgumentGroup:
    """Adds --dim and --shape for what the model leaves open, --runtime and --kernels for what it runs on."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="SYMBOL=N",
        help="an extent that the file leaves open; SYMBOL<=N plans for a bound; repeatable",
    )
    group.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="TENSOR=N,N,...",
        help="the shape of an input, such as images=1,3,640,640, or of another tensor that the file leaves open;"
        " repeatable",
    )
    group.add_argument(
        "--runtime",
        metavar="NAME",
        help=f"{', '.join(RUNTIMES)} (default: {_USUAL})",
    )
    group.add_argument(
        "--kernels",
        metavar="NAME",
        help=f"which kernels run; {_LIBRARIES} (default: the first)",
    )
    return group


def add_abi(parser: ArgumentParser | _ArgumentGroup, default: str | None = USUAL_ABI) -> None:
    """Adds the choice of the ABI for which a whole arena is sized; `default` is None where a target may name it."""
    parser.add_argument(
        "--abi",
        metavar="NAME",
        default=default,
        help=f"for which target the whole arena is sized: {', '.join(ABI_NAMES)};"
        f" {' and '.join(GROUPS)} hold on all targets with so many bits"
        f" (default: {default or f'that of --target, else {USUAL_ABI}'})",
    )


def add_capacity(parser: ArgumentParser) -> None:
    """Adds the memory there is, in place of a target's block."""
    parser.add_argument(
        "--capacity", metavar="BYTES", help="the memory there is, such as 64KiB (default: the block of the target)"
    )


def add_target(parser: ArgumentParser) -> None:
    """Adds the choice of a device, whose largest free block is the memory there is."""
    group = parser.add_argument_group("target")
    group.add_argument(
        "--target",
        metavar="NAME|FILE",
        help="a device of `modelplan targets`, a device in FILE.toml, or from:FILE[#PART]: a GNU ld script or map, a"
        " devicetree, a target of probe-rs, an .ini of Vela; its largest free block counts, or that of #REGION",
    )
    add_target_details(group)


def add_target_details(group: ArgumentParser | _ArgumentGroup) -> None:
    """Adds what says more about a target."""
    group.add_argument(
        "--reserve",
        metavar="REGION=BYTES[@end]",
        action="append",
        default=[],
        help="bytes at the start or end of a region that are not free, in place of the default; repeatable",
    )
    group.add_argument(
        "--used", metavar="FILE", help="an ELF file or a map of GNU ld: what the program occupies is not free"
    )
    group.add_argument(
        "--arena-symbol", metavar="NAME", help="the arena in that program, which is free (default: tensor_arena)"
    )
    group.add_argument(
        "--define", metavar="NAME=VALUE", action="append", default=[], help="a name that FILE leaves open; repeatable"
    )
    group.add_argument(
        "--include", metavar="DIR", action="append", default=[], help="where files lie that FILE includes; repeatable"
    )


def chosen_target(arguments: Namespace) -> Chosen | None:
    """The target that the arguments name; None where they name none.

    Raises:
        RequestError: there is no such target, or an option needs one.
        ModelError: its file cannot be read.
    """
    details = {
        "--reserve": arguments.reserve,
        "--used": arguments.used,
        "--arena-symbol": arguments.arena_symbol,
        "--define": arguments.define,
        "--include": arguments.include,
    }
    if arguments.target is None:
        given = [name for name, value in details.items() if value]
        if given:
            raise RequestError(f"{given[0]} says more about a target; name one by --target")
        return None
    if arguments.arena_symbol and not arguments.used:
        raise RequestError("--arena-symbol names a symbol in the program of --used, which is missing")
    from modelplan.targets.choosing import chosen_block

    return chosen_block(wanted_target(arguments))


def wanted_target(arguments: Namespace) -> Wanted:
    """What the options ask for, read.

    Raises:
        RequestError: one of them cannot be read.
    """
    from modelplan.targets.choosing import Wanted

    return Wanted(
        arguments.target,
        tuple(map(_reserve, arguments.reserve)),
        dict(map(_definition, arguments.define)),
        tuple(map(Path, arguments.include)),
        arguments.used,
        arguments.arena_symbol,
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


def on_target(arguments: Namespace, chosen: Chosen | None, graph: Graph | None = None) -> Namespace:
    """The arguments with the ABI and the kernels of the target where they name none.

    The kernels of a target count for a runtime that has them; which one runs a model follows from `graph`.

    Raises:
        RequestError: an ABI was named for a runtime that sizes no arena.
    """
    abi, kernels = arguments.abi, arguments.kernels
    device = chosen.device if chosen else None
    if graph is not None:
        from modelplan import runtimes

        runtime = runtimes.runtime(arguments.runtime, graph.format)
        if abi and runtime.requires is None:
            raise RequestError(f"--abi {abi}: runtime {runtime.name} sizes no arena for a target")
        if device is not None and kernels is None:
            kernels = device.kernels if device.kernels in runtime.library_names else None
    return Namespace(
        **vars(arguments) | {"abi": abi or (device.abi if device else "") or USUAL_ABI, "kernels": kernels}
    )


def target_lines(chosen: Chosen | None) -> list[str]:
    """Which block of which target counts, in words; nothing without a target."""
    if chosen is None:
        return []
    from modelplan.outputs.reports import target_report  # here, so that a command without a target does not wait for it

    return target_report.target_lines(chosen)


def target_facts(chosen: Chosen | None) -> dict[str, Any]:
    """The same for a JSON document, under the key `target`; nothing without a target."""
    if chosen is None:
        return {}
    from modelplan.outputs.reports import target_report

    return {"target": target_report.target_facts(chosen)}


def with_capacity(arguments: Namespace, chosen: Chosen | None) -> Namespace:
    """The arguments with the target's block as capacity where they state none."""
    if chosen is None or getattr(arguments, "capacity", None) is not None:
        return arguments
    return Namespace(**vars(arguments) | {"capacity": str(chosen.budget)})


def target_of(arguments: Namespace, graph: Graph) -> Target:
    """The runtime and ABI that the arguments name for a model."""
    from modelplan.planning.pipeline import Options, configured_runtime
    from modelplan.questions.alternatives import Target

    alignment, pad = getattr(arguments, "alignment", None), getattr(arguments, "pad", None)
    options = Options(arguments.runtime, kernels=arguments.kernels, alignment=alignment, pad=pad)
    runtime = configured_runtime(graph, options)
    named = {"--runtime": arguments.runtime, "--kernels": arguments.kernels, "--alignment": alignment, "--pad": pad}
    words = [word for name, value in named.items() if value is not None for word in (name, str(value))]
    bound = [("--dim", dim) for dim in arguments.dim] + [("--shape", shape) for shape in arguments.shape]
    return Target(runtime, arguments.abi, (*words, *(word for pair in bound for word in pair)))


def add_overlaps(parser: ArgumentParser | _ArgumentGroup) -> None:
    """Adds the caller's own overlaps."""
    parser.add_argument(
        "--overlaps",
        metavar="FILE",
        help="outputs that may run into an input of their op: lines `output,input,bytes` under such a head",
    )


def add_contiguous(parser: ArgumentParser | _ArgumentGroup, what: str, more: str = "") -> None:
    """Adds the lists of what has to stand side by side."""
    parser.add_argument(
        "--contiguous",
        metavar="FILE",
        help=f"{what} that stand side by side in this order: names separated by commas, one list a line{more}",
    )


def add_allocator(parser: ArgumentParser, stored: str = "") -> None:
    """Adds the choice of the allocator; `stored` says of what in the file `file` takes the offsets, empty: none."""
    from_file = f"; {FROM_FILE}: {stored}" if stored else ""
    parser.add_argument(
        "--allocator",
        metavar="NAME",
        help=f"see `modelplan allocators`{from_file} (default: {allocators.DEFAULT})",
    )


def add_budget(parser: ArgumentParser) -> None:
    """Adds how long a search may run."""
    parser.add_argument("--steps", type=int, metavar="N", help="a budget that gives the same answer everywhere")
    parser.add_argument("--seconds", type=float, metavar="S", help="a deadline")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="2 is as far as it goes (default: 1)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of whatever is drawn at random (default: 0)")


def budget_of(arguments: Namespace, progress: Callable[[Progress], None] | None = None) -> Budget:
    """The budget from the parsed arguments."""
    try:
        limits = arguments.steps, arguments.seconds, arguments.seed, arguments.threads
        return Budget(*limits, progress=progress)
    except ValueError as problem:
        raise RequestError(str(problem)) from None


def options_of(arguments: Namespace, graph: Graph | None = None) -> Options:
    """The pipeline's options from the parsed arguments; `graph` is needed to read a file of streams.

    Raises:
        RequestError: an option that cannot be read or that the plan in the file does not allow.
    """
    from modelplan.planning.pipeline import (
        Options,  # here, so that a problem from a table does not wait for the models' stages
    )

    capacity = getattr(arguments, "capacity", None)
    allocator = getattr(arguments, "allocator", None) or allocators.DEFAULT
    stored = allocator == FROM_FILE
    offsets = _offsets_of(arguments.model) if stored else ()
    if stored and arguments.schedule not in (None, "file"):
        raise RequestError(f"--schedule {arguments.schedule}: the plan in a file holds for the order of the file only")
    return Options(
        runtime=arguments.runtime,
        schedule=arguments.schedule or ("file" if stored else "best"),
        alias=arguments.alias,
        allocator="tflm-greedy" if stored else allocator,
        offsets=offsets,
        alignment=arguments.alignment,
        pad=arguments.pad,
        kernels=arguments.kernels,
        capacity=None if capacity is None else parse_bytes(capacity),
        streams=_streams_of(getattr(arguments, "streams", None), graph),
        overlaps=overlaps_of(arguments.overlaps, graph),
        contiguous=_contiguous_of(getattr(arguments, "contiguous", None), graph),
        joins=getattr(arguments, "contiguous", None) == JOINS,
    )


def _offsets_of(path: str) -> tuple[int, ...]:
    """The plan that a .tflite file carries for TFLM, which places the rest around it.

    Raises:
        RequestError: the file carries none.
    """
    from modelplan.runtimes.tflm.file import load_tflite
    from modelplan.runtimes.tflm.planner import METADATA, read_plan

    found = read_plan(load_tflite(path)) if path.endswith(".tflite") else None
    if found is None:
        raise RequestError(f"--allocator {FROM_FILE}: {path} carries no plan ({METADATA})")
    return found


def _streams_of(value: str | None, graph: Graph | None) -> int | tuple[int, ...] | None:
    """A number of streams, or the streams that a file assigns."""
    if value is None:
        return None
    if value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        return int(value)
    if graph is None:
        raise RequestError("a file of streams needs one model")
    from modelplan.planning.streams import parse_streams

    return parse_streams(_text(value, "--streams"), graph, value)


def _contiguous_of(path: str | None, graph: Graph | None) -> tuple[tuple[int, ...], ...]:
    """The lists of tensors in the file; nothing without one."""
    if path is None or path == JOINS:
        return ()
    if graph is None:
        raise RequestError("a file of contiguous lists needs one model")
    return lists_of(path, [tensor.name for tensor in graph.tensors])


def lists_of(path: str, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The contiguous lists in the file, by the number of each name.

    Raises:
        RequestError: it cannot be read.
        ModelError: a line of it does not fit the names.
    """
    from modelplan.formats.tensor_lists import parse_lists

    return parse_lists(_text(path, "--contiguous"), names, path)


def overlaps_of(path: str | None, graph: Graph | None) -> tuple[Overlap, ...]:
    """What the file declares; nothing without one.

    Raises:
        RequestError: it cannot be read, or is given for more than one model.
        ModelError: a line of it does not fit the model.
    """
    if path is None:
        return ()
    if graph is None:
        raise RequestError("a file of overlaps needs one model")
    from modelplan.planning.aliasing.declared import parse_overlaps

    return parse_overlaps(_text(path, "--overlaps"), graph, path)


def _text(path: str, option: str) -> str:
    """The file that the caller named; one that cannot be read is the request's fault."""
    try:
        return read_text(path)
    except ModelError as problem:
        raise RequestError(f"{option}: cannot read {problem}") from None
