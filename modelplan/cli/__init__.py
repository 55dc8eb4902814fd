"""The command line: the only code that prints, writes files and exits."""

from __future__ import annotations

import gc
import os
import sys
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from modelplan.cli.command_table import COMMANDS

EXIT_CODES = """exit codes:
  0  done, and within the budget where one was given
  1  a budget failed: the model needs more, or its runtime would not run it
  2  the request cannot be understood or combined, or its output cannot be written
  3  the model or problem file cannot be read or is not supported
  4  a plan is invalid
  70 an error of modelplan itself; please report it"""


#: The exit code of an error that modelplan did not raise on purpose: EX_SOFTWARE of sysexits.h.
_OWN_ERROR = 70


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    if arguments is None:
        gc.set_threshold(200_000, 50, 100)  # one command makes many objects and ends: collecting them is time lost
    words = list(sys.argv[1:] if arguments is None else arguments)
    known = words and words[0] in COMMANDS
    code = _closed_output() or _guarded(lambda: _run(words[0], words[1:]) if known else _top_level(words))
    if arguments is None:
        gc.freeze()  # the interpreter ends: what is left need not be searched for garbage
    return code


class _Parser(ArgumentParser):
    """A parser whose error messages have their control characters escaped, and whose help may fail to be written."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Writes the message; argparse itself passes over a full disk in silence."""
        if message:
            (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        """Ends the program with the escaped message."""
        from modelplan.outputs.report import printable

        super().error(printable(message))


def _run(name: str, words: Sequence[str]) -> int:
    if name != "analyze" or not any(word.startswith("--out") for word in words):
        return _ran(name, words, Namespace(parser_of=parser_of))
    # What draws takes as long to import as the command itself: a process of its own does that from the start.
    from modelplan.primitives.copied_processes import prepared

    drawing = partial(import_module, "modelplan.cli.drawing")
    with prepared(lambda: drawing().prepare(), lambda asked: drawing().draw_all(asked)) as begin:
        return _ran(name, words, Namespace(drawing=iter([begin])))


def _ran(name: str, words: Sequence[str], known: Namespace) -> int:
    arguments = parser_of(name).parse_args(words, known)
    code: int = import_module(f"modelplan.cli.{name}").run(arguments)
    return code


def parser_of(name: str, *, add_help: bool = True) -> ArgumentParser:
    """The parser of the command `name`."""
    command = import_module(f"modelplan.cli.{name}")
    parser = _Parser(
        prog=f"modelplan {name}",
        description=command.__doc__,
        formatter_class=RawDescriptionHelpFormatter,
        add_help=add_help,
    )
    command.configure(parser)
    return parser


class _ShowVersion(Action):
    """Prints the version and the build."""

    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        from modelplan.cli.version import version_lines

        sys.stdout.write("\n".join(version_lines()) + "\n")
        parser.exit()


def _top_level(words: Sequence[str]) -> int:
    commands = "\n".join(f"  {name:12} {promise}" for name, promise in COMMANDS.items())
    parser = _Parser(
        prog="modelplan",
        usage="modelplan COMMAND ...",
        description="Plan the memory of neural networks before they meet the device.",
        epilog=f"commands (each with its own --help):\n{commands}\n\n{EXIT_CODES}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action=_ShowVersion, nargs=0, help="the version and the build")
    if not words:
        parser.print_help()
        return 0
    parser.parse_known_args(words[:1] if words[0].startswith("-") else [])
    sys.stderr.write(f"modelplan: no command {words[0]!r}; there are: {', '.join(COMMANDS)}\n")
    return 2


def _guarded(run: Callable[[], int]) -> int:
    """Turns the errors that modelplan raises on purpose into one line and an exit code."""
    from modelplan.primitives.errors import ModelPlanError

    try:
        code = _flushed(run)
    except ModelPlanError as problem:
        from modelplan.outputs.report import printable

        sys.stderr.write(f"modelplan: {printable(str(problem))}\n")
        return problem.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("modelplan: interrupted\n")
        return 130
    except BrokenPipeError:
        # The reader left (`modelplan ... | head`); point stdout elsewhere so that the exit flush stays quiet.
        _discard_output()
        return 141
    except OSError as problem:
        # A place that cannot be written, such as standard output on a full disk; files have messages of their own.
        _discard_output()
        sys.stderr.write(f"modelplan: cannot write the output: {problem.strerror}\n")
        return 2
    except Exception as problem:  # noqa: BLE001 - no error of ours may read as a budget that failed
        import traceback

        traceback.print_exc()
        sys.stderr.write(f"modelplan: an error of modelplan itself, please report it: {type(problem).__name__}\n")
        return _OWN_ERROR
    return code


def _closed_output() -> int:
    """The exit code where standard output is closed; messages go nowhere where standard error is."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the program ends
    if sys.stdout is None:
        sys.stderr.write("modelplan: cannot write the output: standard output is closed\n")
        return 2
    return 0


def _flushed(run: Callable[[], int]) -> int:
    """The exit code of `run` once all that it printed is written, also where the parser ends the program."""
    try:
        return run()
    finally:
        sys.stdout.flush()


def _discard_output() -> None:
    """Points standard output elsewhere, so that the flush when Python ends does not fail too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
