"""The options that every command about a model shares."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelplan.cli import placing_options
from modelplan.model.model_file import USUAL_ABI
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_memory
from modelplan.questions.budgets.project_defaults import project_defaults
from modelplan.questions.model_request import MEASURED_SECONDS
from modelplan.questions.option_files import JOINS
from modelplan.questions.target_request import TargetRequest, choose_target
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm import TFLM
from modelplan.runtimes.tflm.abi import ABI_NAMES, GROUPS
from modelplan.runtimes.tflm.kernels import KERNELS, spoken_kernels
from modelplan.runtimes.tflm.kernels.own_kernels import library_of, with_library, with_own

if TYPE_CHECKING:
    from modelplan.questions.model_request import Asked
    from modelplan.targets.choosing import Chosen

#: Fields of a `ModelRequest` that are called as the options are.
_SAME = (
    "runtime", "kernels", "abi", "schedule", "alias", "allocator", "alignment", "pad", "streams", "overlaps",
    "contiguous", "threads", "measure", "feeds",
)  # fmt: skip

#: Those of a session, which have numbers for defaults.
_SESSION = ("threads", "measure")

_ROWS = RUNTIMES.values()
_USUAL = ", ".join(f"{row.name} for .{row.default_for}" for row in _ROWS if row.default_for)
_OVERWRITING = " and ".join(row.name for row in _ROWS if row.sharing.overwrites)
_LIBRARIES = "; ".join(
    f"{row.name} has " + ", ".join(f"{library.name}: {library.explains}" for library in row.libraries)
    for row in _ROWS
    if len(row.libraries) > 1
)


def add_repeated(
    parser: ArgumentParser | _ArgumentGroup, name: str, metavar: str, words: str, dest: str | None = None
) -> None:
    """Adds an option that may be given several times: its values are a list, which is empty without it."""
    parser.add_argument(name, metavar=metavar, action="append", default=[], help=words, dest=dest)


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
    inside = f"; {JOINS}: the parts of joins and splits inside of the whole, without a copy"
    placing_options.add_contiguous(group, "tensors", inside)
    aliases = group.add_mutually_exclusive_group()
    aliases.add_argument(
        "--alias",
        metavar="MODE",
        help=f"runtime, none, views, safe or max (default: safe for {_OVERWRITING}, which overwrite by themselves, else"
        " views)",
    )
    aliases.add_argument("--no-alias", dest="alias", action="store_const", const="none", help="same as --alias none")


def add_sizing(parser: ArgumentParser) -> None:
    """Adds what a model file is planned with and sized for, on any runtime."""
    add_planning(parser)
    placing_options.add_allocator(parser, "the plan that the file carries for TFLM, which is also the default there")
    add_abi(parser, default=None)
    parser.add_argument(
        "--capacity",
        "--budget",
        metavar="BYTES",
        help="the memory there is, such as 64KiB (default: the block of the target)",
    )
    add_target(parser)
    add_session(parser)


def add_runtime(parser: ArgumentParser, title: str = "runtime") -> _ArgumentGroup:
    """Adds --dim and --shape for what the model leaves open, --runtime and --kernels for what it runs on."""
    group = parser.add_argument_group(title)
    add_repeated(
        group,
        "--dim",
        "SYMBOL=N",
        "an extent that the file leaves open; SYMBOL<=N plans for a bound; N may follow from others, as total=past+1;"
        " SYMBOL=LOW..HIGH or LOW..HIGH:STEP makes a table of `analyze`; repeatable",
    )
    add_repeated(
        group,
        "--shape",
        "TENSOR=N,N,...",
        "the shape of an input, such as images=1,3,640,640, or of another tensor that the file leaves open; repeatable",
    )
    add_repeated(
        group, "--value", "INPUT=N,...", "the value of an input that decides what runs, such as sr=16000; repeatable"
    )
    group.add_argument(
        "--runtime",
        metavar="NAME",
        help=f"{', '.join(RUNTIMES)} (default: {_USUAL})",
    )
    add_kernels(group, f"which kernels run; {_LIBRARIES} (default: the first)")
    return group


def add_kernels(parser: ArgumentParser | _ArgumentGroup, words: str, **more: Any) -> None:
    """Adds the choice of the kernel library, by a name as people say it, and kernels of the user's own."""
    if "choices" in more:
        more["choices"] = LibraryNames(more["choices"])
    parser.add_argument("--kernels", type=kernel_library, help=words, **{"metavar": "NAME"} | more)
    if "nargs" in more:  # a list of libraries, each of which states its own
        return
    add_repeated(
        parser,
        "--custom",
        "NAME=BYTES",
        "your own kernel for the custom operator NAME, and the arena that it asks for; repeatable",
    )


class LibraryNames(tuple[str, ...]):
    """Names of kernel libraries as the choices of an option: each also with the user's own kernels behind it."""

    __slots__ = ()

    def __contains__(self, word: object) -> bool:
        return super().__contains__(library_of(word) if isinstance(word, str) else word)


def kernels_of(arguments: Namespace) -> str | None:
    """The kernel library that the arguments name, with the user's own kernels; None where they name neither."""
    return with_own(getattr(arguments, "kernels", None), getattr(arguments, "custom", ()))


def build_of(arguments: Namespace, chosen: Chosen | None) -> tuple[str, str]:
    """The ABI and the kernel library that the arguments name, else the target's; the library is empty for none."""
    device = chosen.device if chosen else None
    abi = arguments.abi or (device.abi if device else "") or USUAL_ABI
    return abi, with_library(kernels_of(arguments), device.kernels if device else "")


def kernel_library(word: str) -> str:
    """The kernel library that --kernels names, as people say it."""
    name = spoken_kernels(word)
    if library_of(name) in KERNELS:
        return name
    from modelplan.targets.choosing import spoken_device  # here, since a right name needs no device

    if spoken_device(word):
        raise RequestError(f"--kernels {word}: that is a device; --target {word} knows its kernels")
    return name


def add_session(parser: ArgumentParser) -> None:
    """Adds how a session of ONNX Runtime is sized."""
    group = parser.add_argument_group("sessions of ONNX Runtime")
    group.add_argument(
        "--measure",
        type=float,
        metavar="SECONDS",
        help="how long a session may be measured before it is predicted; 0: always predicted"
        f" (default: {MEASURED_SECONDS:g})",
    )
    group.add_argument("--threads", type=int, metavar="N", help="intra-op threads of the session (default: 1)")
    add_feeds(group)


def add_feeds(group: ArgumentParser | _ArgumentGroup) -> None:
    """Adds the file with the inputs of the session that is measured."""
    group.add_argument(
        "--feeds",
        metavar="FILE.npz",
        help="arrays by the names of inputs, as numpy.savez writes, for the runs that are measured; others are drawn,"
        " or chosen to reach the extents that are planned",
    )


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
    add_repeated(
        group,
        "--reserve",
        "REGION=BYTES[@end]",
        "bytes at the start or end of a region that are not free, in place of the default; repeatable",
    )
    group.add_argument(
        "--used", metavar="FILE", help="an ELF file or a map of GNU ld: what the program occupies is not free"
    )
    group.add_argument(
        "--arena-symbol", metavar="NAME", help="the arena in that program, which is free (default: tensor_arena)"
    )
    add_repeated(group, "--define", "NAME=VALUE", "a name that FILE leaves open; repeatable")
    add_repeated(group, "--include", "DIR", "where files lie that FILE includes; repeatable")


def target_options(arguments: Namespace) -> TargetRequest:
    """The target that the arguments name, with what says more about it."""
    return TargetRequest(
        getattr(arguments, "target", None),
        tuple(arguments.reserve),
        arguments.used,
        arguments.arena_symbol,
        tuple(arguments.define),
        tuple(arguments.include),
        getattr(arguments, "origin", "") and getattr(arguments, "origin_file", ""),
    )


def take_defaults(arguments: Namespace) -> None:
    """Fills in the target, the kernels and the ABI that the project's file states, where the command line names none.

    Files for ONNX Runtime have no use for them, nor has another runtime for the kernels of TFLM.
    """
    named = [getattr(arguments, name, None) for name in ("target", "targets", "kernels", "region", "memory")]
    single = [getattr(arguments, name, None) for name in ("model", "source")]
    paths = [*(getattr(arguments, "models", None) or ()), *filter(None, single)]
    for_tflm = paths and all(".tflite" in path.lower() or Path(path).is_dir() for path in paths)
    if any(named) or not for_tflm or getattr(arguments, "runtime", None) not in (None, TFLM.name):
        return
    defaults = project_defaults(Path.cwd())
    taken = {key: value for key, value in defaults.values.items() if hasattr(arguments, key)}
    for key, value in taken.items():
        setattr(arguments, key, kernel_library(value) if key == "kernels" else value)
    if hasattr(arguments, "targets") and "target" in defaults.values:
        arguments.targets, arguments.kernels = [defaults.values["target"]], None
    arguments.origin_file = defaults.path
    stated = ", ".join(value if key == "target" else f"{key} {value}" for key, value in taken.items())
    arguments.origin = f"{stated} as {defaults.path} says" if taken else ""


def given_words(arguments: Namespace) -> tuple[str, ...]:
    """The options that name the device, the kernels and the ABI, as they were given."""
    named = [(f"--{name}", getattr(arguments, name, None)) for name in ("kernels", "abi")]
    build = tuple(word for option, value in named if value is not None for word in (option, value))
    return (*target_options(arguments).words, *build, *stated_words(arguments))


def stated_words(arguments: Namespace) -> tuple[str, ...]:
    """The options that state the user's own kernels, as they were given."""
    return tuple(word for stated in arguments.custom for word in ("--custom", stated))


def chosen_target(arguments: Namespace) -> Chosen | None:
    """The target that the arguments name; None where they name none."""
    return choose_target(target_options(arguments))


def target_lines(chosen: Chosen) -> list[str]:
    """Lines that name the target and the block of its memory that is meant."""
    from modelplan.outputs.reports import target_report  # here, so that a command without a target does not wait for it

    return target_report.target_lines(chosen)


def target_facts(chosen: Chosen | None) -> dict[str, object]:
    """The target for a JSON document, under the key `target`; nothing without a target."""
    if chosen is None:
        return {}
    from modelplan.outputs.reports import target_report

    return {"target": target_report.target_facts(chosen)}


def request_of(kind: type[Asked], arguments: Namespace, path: str, target: Chosen | None = None, **more: Any) -> Asked:
    """The request about the model file `path` that the arguments make; `more` are the fields that its kind adds."""
    capacity = getattr(arguments, "capacity", None)
    shared: dict[str, Any] = {name: getattr(arguments, name, None) for name in _SAME}
    shared = {name: value for name, value in shared.items() if value is not None or name not in _SESSION}
    shared["kernels"] = kernels_of(arguments)
    shared["dims"], shared["shapes"] = tuple(arguments.dim), tuple(arguments.shape)
    shared["values"] = tuple(arguments.value)
    shared["capacity"] = None if capacity is None else parse_memory(capacity)
    return kind(path, target=target, origin=getattr(arguments, "origin", ""), **shared, **more)


def add_overlaps(parser: ArgumentParser | _ArgumentGroup) -> None:
    """Adds the caller's own overlaps."""
    parser.add_argument(
        "--overlaps",
        metavar="FILE",
        help="outputs that may run into an input of their op: lines `output,input,bytes` under such a head",
    )
