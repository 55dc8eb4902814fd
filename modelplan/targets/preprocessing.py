"""The part of the C preprocessor that linker scripts and devicetrees use, with the place of every line kept.

`#include`, `#define` with and without arguments, `#undef`, and the conditionals. A file that is included and is not
there is an error that names it; so is a directive that is not understood.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from modelplan.formats.whole_files import read_text
from modelplan.primitives.errors import ModelError
from modelplan.targets.arithmetic import ExpressionError, evaluate, parse_expression, tokens_of

#: Files inside each other, macros inside each other, and the longest line that macros may make.
_DEEPEST, _LONGEST = 60, 100_000
#: Files that are read for one, however often each is included.
_MOST_FILES = 10_000
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*', re.S)
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\b\s*(.*)", re.S)
_DIRECTIVES = frozenset({
    "define", "undef", "include", "if", "ifdef", "ifndef", "elif", "else", "endif", "error", "warning", "pragma",
    "line",
})  # fmt: skip
_WORD = re.compile(r'"[^"]*"|[A-Za-z_]\w*|.', re.S)


class Line(NamedTuple):
    """A line of text and where it stands."""

    text: str
    path: str
    number: int

    @property
    def place(self) -> str:
        """The file and the line, as messages name them."""
        return f"{self.path}:{self.number}"


class Macro(NamedTuple):
    """What a name is replaced by; `parameters` is None for a name without arguments."""

    body: str
    parameters: tuple[str, ...] | None = None


@dataclass(slots=True)
class Preprocessor:
    """The state while files are read: macros, folders to look in, and which names a condition asked for in vain.

    A file whose name ends in `optional` may be missing, as it only defines names; it is kept in `missing`. `statement`
    is a line by which the file's own language includes another one, whose name is its first group.
    """

    folders: Sequence[Path] = ()
    macros: dict[str, Macro] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    optional: tuple[str, ...] = ()
    statement: re.Pattern[str] | None = None
    missing: list[str] = field(default_factory=list)
    depth: int = 0
    files: int = 0
    done: set[str] = field(default_factory=set)

    def lines(self, path: str) -> Iterator[Line]:
        """The lines of a file and of what it includes, with macros replaced."""
        if self.depth > _DEEPEST:
            raise ModelError(f"{path}: more than {_DEEPEST} files that include each other")
        if self.files > _MOST_FILES:
            raise ModelError(f"{path}: more than {_MOST_FILES:,} files are included")
        self.depth += 1
        self.files += 1
        taken: list[bool | None] = []  # for each open conditional: this branch, or None where an earlier one was taken
        line = Line("", path, 0)
        for line in logical_lines(read_text(path), path):
            match = _DIRECTIVE.fullmatch(line.text)
            if match and match[1] in _DIRECTIVES:
                yield from self._obey(match[1], match[2].strip(), line, taken)
            elif all(taken):
                text = self.expanded(line.text, line)
                if self.statement and (inclusion := self.statement.fullmatch(text)):
                    yield from self.lines(str(self.find(inclusion[1].strip('"'), line)))
                else:
                    yield line._replace(text=text)
        if taken:
            raise ModelError(f"{line.place}: an #if without its #endif")
        self.depth -= 1

    def _obey(self, word: str, rest: str, line: Line, taken: list[bool | None]) -> Iterator[Line]:
        if word in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
            self._branch(word, rest, line, taken)
        elif not all(taken):
            return
        elif word == "define":
            self._define(rest, line)
        elif word == "undef":
            self.macros.pop(rest, None)
        elif word == "include":
            yield from self.included(rest, line)
        elif word == "error":
            raise ModelError(f"{line.place}: #error {rest}")
        elif word == "pragma" and rest == "once":
            self.done.add(str(Path(line.path).resolve()))

    def included(self, name: str, line: Line) -> Iterator[Line]:
        """The lines of the file that an include names in quotes or angle brackets."""
        wanted = name.strip().strip('"<>')
        if wanted.endswith(self.optional) and not self.places(wanted, line):
            self.missing.append(wanted)
            return
        path = self.find(wanted, line)
        if str(path.resolve()) not in self.done:
            yield from self.lines(str(path))

    def find(self, name: str, line: Line) -> Path:
        """The file called `name`, beside the one that asks for it or in the folders.

        Raises:
            ModelError: there is none; names it and where it is asked for.
        """
        paths = self.places(name, line)
        if not paths:
            raise ModelError(
                f"{line.place}: {name} is included, and is neither beside the file nor in a folder of --include"
            )
        return paths[0]

    def places(self, name: str, line: Line) -> list[Path]:
        """Where a file of that name lies, the place that counts first."""
        folders = (Path(line.path).parent, *self.folders)
        return [folder / name for folder in folders if (folder / name).is_file()]

    def _define(self, rest: str, line: Line) -> None:
        match = re.fullmatch(r"([A-Za-z_]\w*)(?:\(([^)]*)\))?\s*(.*)", rest, re.S)
        if not match:
            raise ModelError(f"{line.place}: cannot read #define {rest}")
        parameters = None if match[2] is None else tuple(p.strip() for p in match[2].split(",") if p.strip())
        self.macros[match[1]] = Macro(match[3].strip(), parameters)
        self.unknown.discard(match[1])

    def _branch(self, word: str, rest: str, line: Line, taken: list[bool | None]) -> None:
        if word in ("if", "ifdef", "ifndef"):
            live = all(taken)
            taken.append(self._holds(word, rest, line) if live else None)
            return
        if not taken:
            raise ModelError(f"{line.place}: #{word} without #if")
        if word == "endif":
            taken.pop()
        elif taken[-1] is not False:
            taken[-1] = None
        elif all(taken[:-1]):
            taken[-1] = word == "else" or self._holds("if", rest, line)

    def _holds(self, word: str, rest: str, line: Line) -> bool:
        """Whether a condition is met; a name that stands for nothing counts as 0, as in C."""
        if word != "if":
            known = self._known(rest.split()[0] if rest else "")
            return known == (word == "ifdef")
        text = re.sub(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))", lambda m: str(int(self._known(m[1] or m[2]))), rest)
        try:
            tree = parse_expression(tokens_of(self.expanded(text, line)))
            return bool(evaluate(tree, self._zero))
        except ExpressionError as problem:
            raise ModelError(f"{line.place}: #if {rest}: {problem}") from None

    def _known(self, name: str) -> bool:
        if name not in self.macros:
            self.unknown.add(name)
        return name in self.macros

    def _zero(self, name: str) -> int:
        self.unknown.add(name)
        return 0

    def expanded(self, text: str, line: Line, hidden: frozenset[str] = frozenset()) -> str:
        """The text with macros replaced, those in what replaces them too; one does not replace itself."""
        if not self.macros or len(hidden) > _DEEPEST:
            return text
        words, pieces, at = _WORD.findall(text), [], 0
        while at < len(words):
            macro = self.macros.get(words[at]) if words[at] not in hidden else None
            arguments, after = _arguments(words, at + 1) if macro and macro.parameters is not None else ([], at + 1)
            if macro is None or arguments is None:
                pieces.append(words[at])
                at += 1
                continue
            given = [self.expanded(argument, line, hidden) for argument in arguments]
            pieces.append(self.expanded(_filled(words[at], macro, given, line), line, hidden | {words[at]}))
            at = after
            if sum(map(len, pieces)) > _LONGEST:
                raise ModelError(f"{line.place}: macros make the line longer than {_LONGEST:,} characters")
        return "".join(pieces)


def _arguments(words: Sequence[str], at: int) -> tuple[list[str] | None, int]:
    """The arguments in parentheses after a macro's name and where they end; None where there are none."""
    while at < len(words) and words[at].isspace():
        at += 1
    if at == len(words) or words[at] != "(":
        return None, at
    arguments, depth = [""], 0
    for index in range(at, len(words)):
        word = words[index]
        depth += (word == "(") - (word == ")")
        if depth == 0:
            return arguments, index + 1
        if word == "," and depth == 1:
            arguments.append("")
        elif index > at:
            arguments[-1] += word
    return None, at


def _filled(name: str, macro: Macro, arguments: Sequence[str], line: Line) -> str:
    """A macro's body with its arguments substituted."""
    if macro.parameters is None:
        return macro.body
    if len(arguments) != len(macro.parameters) and not (macro.parameters == () and not "".join(arguments).strip()):
        raise ModelError(f"{line.place}: {name}() has {len(macro.parameters)} arguments, found {len(arguments)}")
    given: Mapping[str, str] = dict(zip(macro.parameters, (argument.strip() for argument in arguments), strict=False))
    pasted = re.sub(r"\s*##\s*", "##", macro.body)
    return "".join(given.get(word, word) for word in _WORD.findall(pasted)).replace("##", "")


def logical_lines(text: str, path: str) -> Iterator[Line]:
    """The lines of a text without its comments; one that ends in a backslash goes on in the next."""
    plain = _COMMENT.sub(_blank, text)
    held, start = "", 1
    for number, line in enumerate(plain.split("\n"), 1):
        if not held:
            start = number
        held += line.rstrip("\r")
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        yield Line(held, path, start)
        held = ""
    if held:
        yield Line(held, path, start)


def _blank(match: re.Match[str]) -> str:
    """Quoted text as it is; of a comment only its line ends."""
    return match[0] if match[0][0] == '"' else " " + "\n" * match[0].count("\n")
