"""Prints the script by which a shell completes commands, options and file names; it runs no Python when it completes.

bash   modelplan completion bash > ~/.local/share/bash-completion/completions/modelplan
zsh    modelplan completion zsh > "${fpath[1]}/_modelplan"
fish   modelplan completion fish > ~/.config/fish/completions/modelplan.fish
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from importlib import import_module
from typing import Any

from modelplan.cli import COMMANDS, files
from modelplan.errors import RequestError

SHELLS = ("bash", "zsh", "fish")
#: Words in the names of arguments that stand for files and for folders.
_FILES, _FOLDERS = ("MODEL", "FILE", "PROBLEM", "ORIGINAL", "OLD", "NEW", "CSV", "CONFIG"), ("DIR", "FOLDER")


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run(arguments: Namespace) -> int:
    """Runs the command."""
    try:
        import shtab
    except ImportError:
        raise RequestError("completion needs shtab: pip install 'modelplan[completion]'") from None
    files.write("-", shtab.complete(all_commands(shtab.FILE, shtab.DIRECTORY), shell=arguments.shell) + "\n")
    return 0


def all_commands(file: Any, folder: Any) -> ArgumentParser:
    """One parser for all commands; `file` and `folder` mark arguments that name one."""
    parser = ArgumentParser(prog="modelplan")
    parser.add_argument("-V", "--version", action="store_true", help="the version and the build")
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, promise in COMMANDS.items():
        command = commands.add_parser(name, help=promise.replace("%", "%%"))
        import_module(f"modelplan.cli.{name}").configure(command)
        _mark(command, file, folder)
    return parser


def _mark(parser: ArgumentParser, file: Any, folder: Any) -> None:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of its arguments
        if isinstance(action, _SubParsersAction):
            for inner in action.choices.values():
                _mark(inner, file, folder)
        elif _names(action, _FOLDERS):
            action.complete = folder  # type: ignore[attr-defined]
        elif _names(action, _FILES):
            action.complete = file  # type: ignore[attr-defined]


def _names(action: Action, words: tuple[str, ...]) -> bool:
    """Whether the argument's name says that it is one of these."""
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return any(word in metavar for word in words)
