"""The command line: the only code that prints, writes what was asked for and exits."""

import gc
import os
import re
import sys
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from errno import ENAMETOOLONG
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from modelplan.cli.command_table import COMMANDS, GROUPS, MODES, MODULES, RENAMED, SPOKEN
from modelplan.primitives.copied_programs import allow_copied_programs
from modelplan.primitives.errors import did_you_mean
from modelplan.primitives.version import __version__

EXIT_CODES = """exit codes:
  0   done, and within the budget where one was given
  1   a budget failed: the model needs more, or its runtime would not run it
  2   the request cannot be understood or combined, or its output cannot be written
  3   the model or problem file cannot be read or is not supported
  4   a plan is invalid
  70  an internal error, which is a defect of modelplan"""


#: The exit code of an error that is a defect of modelplan.
INTERNAL_ERROR = 70
_LONGEST_REASON = 300
#: A variable of the environment with which an internal error shows where it comes from.
_DEBUG = "MODELPLAN_DEBUG"
#: How the address of something that is stored elsewhere begins.
_URL = re.compile(r"(https?|ftp|s3|gs|hf)://", re.IGNORECASE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    if arguments is None:
        gc.set_threshold(200_000, 50, 100)  # one command makes many objects and ends: collecting them is time lost
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] not in MODULES and _is_file(words[0]):
        words.insert(0, "analyze")
    known = words and words[0] in MODULES
    if arguments is None and known:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that few commands use
        allow_copied_programs()
    try:
        code = _closed_output() or _guarded(lambda: _run(words[0], words[1:]) if known else _top_level(words))
    except Exception as problem:
        if arguments is not None:
            raise
        code = _internal_error(problem)
    if arguments is None:
        gc.freeze()  # the interpreter ends: what is left need not be searched for garbage
    return code


def _is_file(word: str) -> bool:
    """Whether a word in the place of a command is a model: a file or folder, standard input, or a file's name."""
    there = os.path.exists(word)  # noqa: PTH110 -- Path.exists raises for a name that is too long
    return word == "-" or (not word.startswith("-") and (there or "." in word or "/" in word))


class _Parser(ArgumentParser):
    """A parser whose error messages have their control characters escaped, and whose help may fail to be written."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Writes the message; argparse itself passes over a full disk in silence."""
        if message:
            (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        """Ends the program with the escaped message in one line, and where the options stand."""
        from modelplan.outputs.report import printable

        known = [option for option in self._option_string_actions if option.startswith("--")]
        unknown = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
        values = [m.value for m in MODES if unknown and (self.prog, unknown[0]) == (f"modelplan {m.command}", m.option)]
        meant = did_you_mean(unknown[0], known) if message.startswith("unrecognized") and unknown else ""
        meant = f"; {unknown[0]} takes {' or '.join(values)}" if any(values) else meant
        self.exit(2, f"{self.prog}: {printable(message)}{meant or f'; see {self.prog} --help'}\n")


def _run(name: str, words: Sequence[str]) -> int:
    _refuse_urls(words)
    if name != "analyze" or not any(word.startswith("--out") for word in words):
        return _ran(name, words, Namespace(parser_of=parser_of))
    # What draws takes as long to import as the command itself: a process of its own does that from the start.
    from modelplan.primitives.copied_processes import prepared

    drawing = partial(import_module, "modelplan.cli.figure_processes")
    with prepared(lambda: drawing().prepare(), lambda asked: drawing().draw_all(asked)) as begin:
        return _ran(name, words, Namespace(drawing=iter([begin])))


def _refuse_urls(words: Sequence[str]) -> None:
    """Checks that no word is a URL, of which nothing is read."""
    after = zip(("", *words), words, strict=False)
    url = next((word for option, word in after if option != "--scheduler" and _URL.match(word)), None)
    if url is not None:
        from modelplan.formats.whole_files import way_out
        from modelplan.primitives.errors import ModelError

        raise ModelError(f"{url}: {way_out(url)}")


def _ran(name: str, words: Sequence[str], known: Namespace) -> int:
    module, words = _mode(name, words)
    if name in RENAMED and sys.stderr.isatty():
        now = " or ".join(f"`modelplan {mode.name}`" for mode in MODES if mode.module == name)
        sys.stderr.write(f"modelplan: `{name}` is {now} now; the old name goes with the next release\n")
    arguments = parser_of(module).parse_args(words, known)
    if hasattr(arguments, "kernels"):
        import_module("modelplan.cli.model_options").take_defaults(arguments)
    code: int = import_module(f"modelplan.cli.{module}").run(arguments)
    return code


def _mode(name: str, words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The module that runs a command with these words, and the words that it takes: an option may choose another."""
    for mode in (mode for mode in MODES if mode.command == name):
        for chosen in mode.spellings:
            for at in range(len(words) - len(chosen) + 1):
                if tuple(words[at : at + len(chosen)]) == chosen:
                    return mode.module, [*mode.first, *words[:at], *words[at + len(chosen) :]]
    return name, words


def parser_of(name: str, *, add_help: bool = True) -> ArgumentParser:
    """The parser of the command `name`, or of the mode whose module is `name`."""
    command = import_module(f"modelplan.cli.{name}")
    modes = [mode for mode in MODES if mode.module == name]
    parser = _Parser(
        prog=f"modelplan {modes[0].program if modes else name}",
        epilog="\n".join(["modes, each with --help:", *modes_of(name)]) if modes_of(name) else None,
        description=command.__doc__,
        formatter_class=RawDescriptionHelpFormatter,
        add_help=add_help,
    )
    command.configure(parser)
    return parser


def modes_of(name: str) -> list[str]:
    """A line for each option of a command that has options of its own."""
    return [f"  {mode.name.partition(' ')[2]:18} {mode.promise}" for mode in MODES if mode.command == name]


class _ShowVersion(Action):
    """Prints the version and the build."""

    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        sys.stdout.write("\n".join(version_lines()) + "\n")
        parser.exit()


def version_lines() -> Iterator[str]:
    """The version; compiler, ABI and platform of the core; Python; the git revision where it is known."""
    import platform
    import sysconfig

    from modelplan.primitives import _core

    yield f"modelplan {__version__}"
    abi = "abi3" if _core.STABLE_ABI else f"cp{sys.version_info[0]}{sys.version_info[1]}"
    yield f"core: {_core.COMPILER}, {abi}, {sysconfig.get_platform()}"
    yield f"python: {platform.python_implementation()} {platform.python_version()}"
    if _core.REVISION:
        yield f"revision: {_core.REVISION}"


def _top_level(words: Sequence[str]) -> int:
    commands = "\n\n".join(
        "\n".join([f"{title}:", *(f"  {name:11} {promise}" for name, promise in group.items())])
        for title, group in GROUPS.items()
    )
    parser = _Parser(
        prog="modelplan",
        usage="modelplan MODEL | modelplan COMMAND ...",
        description="Plan the memory of neural networks before they meet the device.",
        epilog=f"{commands}\n\n`modelplan COMMAND --help` lists the options of a command.\n\n{EXIT_CODES}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action=_ShowVersion, nargs=0, help="the version and the build")
    if not words:
        parser.print_help()
        return 0
    parser.parse_known_args(words[:1] if words[0].startswith("-") else [])
    spoken = SPOKEN.get(words[0].lower())
    meant = f"; did you mean `modelplan {spoken}`?" if spoken else did_you_mean(words[0], COMMANDS)
    meant = meant or f"; there are: {', '.join(COMMANDS)}"
    sys.stderr.write(f"modelplan: no command {words[0]!r}{meant}\n")
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
        if problem.errno == ENAMETOOLONG:
            from modelplan.outputs.report import folded

            sys.stderr.write(f"modelplan: {folded(str(problem.filename))}: {problem.strerror}\n")
            return 2
        # A place that cannot be written, such as standard output on a full disk; files have messages of their own.
        _discard_output()
        sys.stderr.write(f"modelplan: cannot write the output: {problem.strerror}\n")
        return 2
    return code


def _internal_error(problem: Exception) -> int:
    """Says in a line what went wrong where; the exit code is one of its own, so that it reads as no answer."""
    from traceback import extract_tb, format_exception

    from modelplan.outputs.report import printable

    frame = extract_tb(problem.__traceback__)[-1]
    what = f"{type(problem).__name__}: {problem}"[:_LONGEST_REASON]
    sys.stderr.write(
        f"modelplan: internal error, {Path(frame.filename).name}:{frame.lineno}: {printable(what)}; please report it"
        f" with the model; {_DEBUG}=1 shows more\n"
    )
    if os.environ.get(_DEBUG):
        sys.stderr.writelines(format_exception(problem))
    return INTERNAL_ERROR


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
