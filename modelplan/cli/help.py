"""Shows a page of the manual, a word of its glossary, or the options of a command; without a topic what there is."""

import re
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from modelplan.cli import files, terminal
from modelplan.cli.command_table import COMMANDS, MODULES, SPOKEN
from modelplan.outputs.report import Section, Table
from modelplan.primitives import _core
from modelplan.primitives.errors import RequestError, did_you_mean

#: Where the build puts the pages, and the clone that the package may be run from, whose own pages are newer.
_BUILT, _CLONE = Path(_core.__file__).parents[1] / "pages", Path(__file__).parents[2]


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", nargs="*", help="a page, a word or a command (default: the list)")


def run(arguments: Namespace) -> int:
    topic, pages = " ".join(arguments.topic), topics()
    words = glossary(pages["glossary"].read_text(encoding="utf-8"))
    changes = changes_of(pages["explain"].read_text(encoding="utf-8"))
    if not topic:
        terminal.show([list_of(pages)])
    elif topic in pages:
        show_page(pages[topic].read_text(encoding="utf-8"))
    elif topic in MODULES:
        if topic in words:
            show_page(f"{words[topic]}\n")
        arguments.parser_of(topic).print_help()
    elif topic.startswith("--") and (named := commands_of_option(topic, arguments.parser_of)):
        show_option(*named, arguments.parser_of)
    elif entries := [*changes.get(topic.lower(), ()), *meant_entries(topic.lower(), words)]:
        show_page("\n".join(entries))
    elif topic.lower() not in SPOKEN and (named := commands_of_option(topic, arguments.parser_of)):
        show_option(*named, arguments.parser_of)
    else:
        if topic.lower() in SPOKEN:
            raise RequestError(f"no topic {topic!r}; did you mean `modelplan {SPOKEN[topic.lower()]}`?")
        options = (option for name in COMMANDS for option in options_of(arguments.parser_of(name)))
        known = {*pages, *COMMANDS, *words, *changes, *(option.removeprefix("--") for option in options)}
        meant = did_you_mean(topic, known) or "; `modelplan help` lists the topics"
        raise RequestError(f"no topic {topic!r}{meant}")
    return 0


def commands_of_option(topic: str, parser_of: Callable[[str], ArgumentParser]) -> tuple[str, list[str]] | None:
    """The option that a topic names, with or without its hyphens, and the commands that have it; None where none has.

    Cost: all commands are imported.
    """
    option = f"--{topic.strip().lower().removeprefix('--').replace(' ', '-')}"
    commands = [name for name in COMMANDS if option in options_of(parser_of(name))]
    return (option, commands) if commands else None


def options_of(parser: ArgumentParser) -> dict[str, str]:
    """The options of a command that are told of, each with what it says."""
    actions = parser._actions  # noqa: SLF001 - argparse has no other list of its arguments
    shown = (action for action in actions if action.help != SUPPRESS)
    return {option: str(action.help) for action in shown for option in action.option_strings if option[:2] == "--"}


def show_option(option: str, commands: Sequence[str], parser_of: Callable[[str], ArgumentParser]) -> None:
    """Prints what an option says, and the commands that have it."""
    said = options_of(parser_of(commands[0]))[option].replace("%%", "%")
    names = ", ".join(f"`modelplan {name}`" for name in commands)
    show_page(f"## {option}\n\n{said}\n\nAn option of {names}.\n")


def glossary(page: str) -> dict[str, str]:
    """The entries of the glossary by their words in lower case, each with its heading."""
    entries = page.split("\n## ")[1:]
    return {entry.partition("\n")[0].lower(): f"## {entry.strip()}\n" for entry in entries}


def changes_of(page: str) -> dict[str, list[str]]:
    """An entry for each change in the table of the page on `explain`, by its name in lower case."""
    table = page.partition("\n| change |")[2].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    return {name.lower(): [f"## {name}\n\n{what}; cost: {cost}\n"] for name, what, cost in rows}


def meant_entries(topic: str, words: dict[str, str]) -> list[str]:
    """The entry of a word, in the singular or plural too; of a phrase those of the words in it.

    >>> meant_entries("abi 32", {"abi": "## ABI"})
    ['## ABI']
    """
    within = [word for word in words if re.search(rf"\b{re.escape(word.removesuffix('s'))}s?\b", topic)]
    longest = [word for word in within if not any(word in other and word != other for other in within)]
    return [words[topic]] if topic in words else [words[word] for word in longest]


def topics() -> dict[str, Path]:
    """The pages by topic."""
    pages = _CLONE / "docs" if (_CLONE / "CMakeLists.txt").is_file() else _BUILT
    return {path.stem: path for path in sorted(pages.glob("*.md"))}


def list_of(pages: dict[str, Path]) -> Section:
    """The list of pages, each with its title."""
    titles = {name: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for name, path in pages.items()}
    lines = ("`modelplan help TOPIC` shows a page; `modelplan COMMAND --help` the options of a command.",)
    return Section("Pages", lines, Table(("topic", "title"), tuple(titles.items())))


def show_page(page: str) -> None:
    """Prints a page: formatted by rich on a terminal, plain elsewhere."""
    if sys.stdout.isatty():  # without colours where NO_COLOR says so, which rich reads itself
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(page))
    else:
        files.write("-", page)
