"""What commands promise in print, and what the commands that they print deliver."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Runs a command line (without the program's name) in a folder and returns what it prints.
Runner = Callable[[Sequence[str], Path], str]

#: Options of a command that its result is sized with.
_SIZING = ("--target", "--kernels", "--abi", "--reserve", "--used", "--define", "--include", "--arena-symbol")


@dataclass(frozen=True, slots=True)
class Promise:
    """What was printed: `most` bytes are needed behind the commands; `said` is the line."""

    said: str
    most: int
    commands: tuple[str, ...]


def promises(printed: str, before: int | None = None) -> list[Promise]:
    """The promises in what `analyze` (that a model needs `before`), `check` or `fit` printed, without folded lines.

    A figure is that of the lines `N bytes less: ...` and `N bytes: ...` with commands below. Where words stand below
    them too, somebody has to do what no command does.
    """
    found, lines = list[Promise](), printed.splitlines()
    for at, line in enumerate(lines):
        figure = re.match(r"  ([\d,]+) bytes( less)?: ", line)
        if figure is None:
            continue
        below = [text[4:] for text in _below(lines[at + 1 :])]
        number = int(figure[1].replace(",", ""))
        if below and all(text.startswith("modelplan ") for text in below):
            most = number if not figure[2] else (before or 0) - number
            found.append(Promise(line.strip(), most, tuple(part for text in below for part in text.split(" && "))))
    return found


def _below(lines: Sequence[str]) -> Iterator[str]:
    """The lines that stand further in than a change."""
    for line in lines:
        if not line.startswith("    "):
            return
        yield line


def arena_of(printed: str) -> int | None:
    """The bytes that `analyze` says have to be declared; None where it says nothing of the kind."""
    found = re.search(r"#define TENSOR_ARENA_SIZE (\d+)", printed)
    return int(found[1]) if found else None


def delivered(promise: Promise, folder: Path, run: Runner) -> int | None:
    """The bytes that are needed behind the commands of a promise, run in `folder` as they were printed.

    None where they are of something that is not sized by itself: a planner in a header, another runtime.
    """
    said, words = "", list[str]()
    for command in promise.commands:
        words = shlex.split(command)[1:]
        said = run(words, folder)
    if "--shim" in words:
        return None
    if "--runtime" in words:
        ram = re.search(r"^\s*RAM .*?([\d,]+) B\b", said, re.MULTILINE)
        return int(ram[1].replace(",", "")) if ram and words[0] == "fit" else None
    if words[0] != "fit":
        return arena_of(said)
    sizing = [word for at, option in enumerate(words) if option in _SIZING for word in (option, words[at + 1])]
    return arena_of(run([words[words.index("-o") + 1], *sizing], folder))
