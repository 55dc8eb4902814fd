"""Prints the script by which a shell completes commands, options, names and files; it runs no Python when it completes.

bash   modelplan completion bash > ~/.local/share/bash-completion/completions/modelplan
zsh    modelplan completion zsh > "${fpath[1]}/_modelplan"
fish   modelplan completion fish > ~/.config/fish/completions/modelplan.fish
"""

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from modelplan.cli import files
from modelplan.cli.command_table import COMMANDS
from modelplan.cli.help import topics
from modelplan.planning import schedulers
from modelplan.planning.aliasing.rules import MODES
from modelplan.planning.allocators import ALLOCATORS
from modelplan.primitives.errors import RequestError
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm.abi import ABI_NAMES
from modelplan.targets.table import DEVICES

SHELLS = ("bash", "zsh", "fish")
#: Words in the names of arguments that stand for files and for folders.
_FILES, _FOLDERS = ("MODEL", "FILE", "PROBLEM", "ORIGINAL", "OLD", "NEW", "CSV", "CONFIG"), ("DIR", "FOLDER")


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run(arguments: Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise RequestError("completion needs shtab: pip install 'modelplan[completion]'") from None
    # In fish: the library has no way to say names and files there.
    device: dict[str, object] = {"choices": list(DEVICES)}
    if arguments.shell == "bash":
        device = {"choices": [*DEVICES, shtab.Choice("file")]}
    elif arguments.shell == "zsh":
        device = {"complete": {"zsh": f"{{compadd - {' '.join(DEVICES)}; _files}}"}}
    parser = all_commands(arguments.parser_of, shtab, device)
    files.write("-", shtab.complete(parser, shell=arguments.shell) + "\n")
    return 0


def all_commands(
    parser_of: Callable[..., ArgumentParser], shtab: ModuleType, device: Mapping[str, object]
) -> ArgumentParser:
    """One parser for all commands, whose arguments tell `shtab` what they name; `device` is how they tell a device."""
    parser = ArgumentParser(prog="modelplan")
    parser.add_argument("-V", "--version", action="store_true", help="the version and the build")
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, promise in COMMANDS.items():
        parents = [parser_of(name, add_help=False)]
        command = commands.add_parser(name, help=promise.replace("%", "%%"), parents=parents)
        _mark(command, shtab, device, _known(name))
    return parser


def _known(command: str) -> dict[str, Sequence[str]]:
    """The choices of an argument that its parser does not check itself."""
    libraries = tuple(dict.fromkeys(name for row in RUNTIMES.values() for name in row.library_names))
    known: dict[str, Sequence[str]] = {
        "abi": ABI_NAMES,
        "alias": tuple(MODES),
        "allocator": tuple(ALLOCATORS),
        "kernels": libraries,
        "runtime": tuple(RUNTIMES),
        "schedule": schedulers.names(),
        "topic": tuple(sorted({*topics(), *COMMANDS})),
    }
    plural = {f"{name}s": known[name] for name in ("allocator", "runtime", "schedule")} if command == "sweep" else {}
    return known | plural


def _mark(
    parser: ArgumentParser, shtab: ModuleType, device: Mapping[str, object], known: Mapping[str, Sequence[str]]
) -> None:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of its arguments
        if isinstance(action, _SubParsersAction):
            for inner in action.choices.values():
                _mark(inner, shtab, device, known)
        elif action.choices is not None:
            continue
        elif action.dest in ("target", "targets") or (action.dest == "names" and action.metavar == "NAME"):
            for name, value in device.items():
                setattr(action, name, value)
        elif action.dest in known and action.nargs != 0:
            action.choices = known[action.dest]
        elif _names(action, _FOLDERS):
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif _names(action, _FILES):
            action.complete = shtab.FILE  # type: ignore[attr-defined]


def _names(action: Action, words: tuple[str, ...]) -> bool:
    """Whether the argument is called by one of these names."""
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return any(word in metavar for word in words)
