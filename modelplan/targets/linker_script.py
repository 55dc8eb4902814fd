"""Reads the regions in the `MEMORY` blocks of a GNU ld script.

Origins and lengths are evaluated as ld does: numbers with K and M, arithmetic, symbols that the script assigns,
ORIGIN() and LENGTH() of other regions. `INCLUDE` and the C preprocessor's directives are followed. What has no value
is an error that names the file and the line.

What the script reserves for the stack and the heap (`_Min_Stack_Size`, `__HEAP_SIZE` and their like, or from
`__StackLimit` to the top of the stack) is not free; where it says nothing of them, a remark does.

A region is memory that a program writes where its attributes hold `w`, and is not where they lack it. A region without
attributes says nothing about that, so that it holds no arena unless it is chosen by name. A name that speaks of
external memory keeps a region from being taken for memory on the chip.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.targets.arithmetic import (
    ExpressionError,
    Function,
    Tree,
    evaluate,
    parse_expression,
    parse_prefix,
    tokens_of,
)
from modelplan.targets.device import STACK, Device, Region, linked_kind
from modelplan.targets.preprocessing import Line, Macro, Preprocessor

_INCLUDE = re.compile(r'\s*INCLUDE\s+("[^"]+"|[^\s;]+)\s*;?\s*')
_ORIGINS, _LENGTHS = ("ORIGIN", "org", "o"), ("LENGTH", "len", "l")
#: Symbols for the bytes of the stack or the heap, and for where the stack begins.
_RESERVES = re.compile(r"_*(?:min_)?(?:main_)?(?:stack|heap)_?size_*", re.IGNORECASE)
_STACK_TOPS = ("_estack", "__StackTop", "__stack_top", "_stack_top", "__stack", "_sstack")
#: Names that a remark lists.
_NAMED = 6
#: Symbols that are defined by each other in a chain; more would exhaust the stack.
_MOST_ASKED = 60
_NO_ATTRIBUTES = "the script gives it no attributes, so that nothing says whether a program may write it"


@dataclass(frozen=True, slots=True)
class _Declared:
    """A region as the script declares it, not evaluated."""

    name: str
    attributes: str | None
    origin: Tree
    length: Tree
    place: str


@dataclass(slots=True)
class _Script:
    """What a script says about memory: its regions, and the symbols that it assigns outside of SECTIONS."""

    regions: dict[str, _Declared] = field(default_factory=dict)
    symbols: dict[str, Tree] = field(default_factory=dict)
    ambiguous: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def lookup(self, name: str) -> int:
        if name in self.ambiguous:
            raise ExpressionError(f"{name} is assigned more than once; --define {name}=VALUE says which value counts")
        if name == ".":
            raise ExpressionError("the location counter has no value here")
        if name not in self.symbols:
            raise ExpressionError(f"{name} is not defined; --define {name}=VALUE gives it a value")
        return self._once(name, self.symbols[name])

    def known_value(self, name: str) -> int | None:
        """The value of a symbol; None where the script gives it none that is constant."""
        try:
            return self.lookup(name)
        except ExpressionError:
            self.asked.clear()
            return None

    def part(self, word: str, operand: Tree) -> int:
        """ORIGIN or LENGTH of a region."""
        if not isinstance(operand, str) or operand not in self.regions:
            raise ExpressionError(f"{word}({operand}): there is no such region")
        region = self.regions[operand]
        return self._once(f"{word}({operand})", region.origin if word == "ORIGIN" else region.length)

    def _once(self, name: str, tree: Tree) -> int:
        if name in self.asked:
            raise ExpressionError(f"{name} is defined by itself")
        if len(self.asked) > _MOST_ASKED:
            raise ExpressionError(f"{name} is defined by more than {_MOST_ASKED} others, each by the next")
        if name not in self.known:
            self.asked.append(name)
            self.known[name] = self.value(tree)
            self.asked.pop()
        return self.known[name]

    def value(self, tree: Tree) -> int:
        return evaluate(tree, self.lookup, self.functions())

    def functions(self) -> dict[str, Function]:
        """What ld calls by name in an expression."""
        value = self.value
        return {
            "ORIGIN": (1, lambda region: self.part("ORIGIN", region)),
            "LENGTH": (1, lambda region: self.part("LENGTH", region)),
            "DEFINED": (1, lambda name: int(not isinstance(name, str) or name in self.symbols)),
            "ABSOLUTE": (1, value),
            "MIN": (2, lambda a, b: min(value(a), value(b))),
            "MAX": (2, lambda a, b: max(value(a), value(b))),
            "ALIGN": (2, lambda address, alignment: _aligned(value(address), value(alignment))),
        }


def _aligned(address: int, alignment: int) -> int:
    if alignment <= 0:
        raise ExpressionError(f"ALIGN to {alignment} bytes")
    return -(-address // alignment) * alignment


def read_linker_script(path: str, definitions: Mapping[str, str], folders: Sequence[Path] = ()) -> Device:
    """The regions of a linker script; `definitions` gives values to names that it leaves open.

    Raises:
        ModelError: names the file, the line, and what has no value or cannot be read.
    """
    macros = {name: Macro(f"({value})") for name, value in definitions.items()}
    reader = Preprocessor(folders, macros, statement=_INCLUDE)
    words: list[tuple[str, Line]] = []
    for line in reader.lines(path):
        words += [(token, line) for token in tokens_of(line.text)]
    script = parse_script(words)
    if not script.regions:
        raise ModelError(f"{path}: no MEMORY block with a region in it; is it a GNU ld script?")
    regions = tuple(_region(script, declared) for declared in script.regions.values())
    regions, remarks = _without_stack(script, regions)
    return Device(Path(path).name, "GNU ld script", regions, path, remarks=(*_remarks(reader, regions), *remarks))


def _without_stack(script: _Script, regions: tuple[Region, ...]) -> tuple[tuple[Region, ...], tuple[str, ...]]:
    """The regions with what the script reserves for the stack and the heap, or a remark that it reserves nothing."""
    sizes = {name: size for name in script.symbols if _RESERVES.fullmatch(name) and (size := script.known_value(name))}
    tops = [top for name in _STACK_TOPS if (top := script.known_value(name))]
    limit = script.known_value("__StackLimit")
    if not sizes and tops and limit and limit < tops[0]:
        sizes = {"__StackLimit": tops[0] - limit}
    usable = [region for region in regions if region.kind in ("ram", "tcm") and not region.no_arena]
    if not sizes or not usable:
        missing = "the stack and the heap are not subtracted: the script reserves none; --reserve REGION=BYTES does"
        return regions, (missing,) * bool(usable)
    held = [r for r in usable if tops and r.base is not None and 0 < tops[0] - r.base <= r.size]
    of = held[0] if held else max(usable, key=lambda r: r.size)  # the largest where nothing says in which they lie
    taken, words = min(sum(sizes.values()), of.size), f"{STACK} ({', '.join(sizes)})"
    kept = replace(of, reserved=taken, reserved_for=words, reserved_at="end")
    return tuple(kept if region is of else region for region in regions), ()


def _remarks(reader: Preprocessor, regions: Sequence[Region]) -> tuple[str, ...]:
    remarks = [f"region {r.name} is not counted: {r.no_arena}; choose it by #{r.name}" for r in regions if r.no_arena]
    if reader.unknown:
        names = sorted(reader.unknown)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        taken = f"{', '.join(names[:_NAMED])}{more}"
        remarks.append(f"conditions of the preprocessor took as not defined: {taken}; --define NAME=VALUE defines one")
    return tuple(remarks)


def parse_script(words: Sequence[tuple[str, Line]]) -> _Script:
    """The MEMORY blocks and the assignments outside of braces."""
    script, tokens, at, depth = _Script(), [word for word, _ in words], 0, 0
    while at < len(tokens):
        word = tokens[at]
        if depth == 0 and word == "MEMORY" and tokens[at + 1 : at + 2] == ["{"]:
            at = _memory(words, tokens, at + 2, script)
        elif depth == 0 and _assigns(tokens, at):
            at = _assignment(tokens, at, script)
        else:
            depth += (word == "{") - (word == "}")
            at += 1
    return script


def _assigns(tokens: Sequence[str], at: int) -> bool:
    following = tokens[at + 1 : at + 3]
    name = tokens[at][0].isalpha() or tokens[at][0] in "_$"
    return name and (
        following[:1] == ["="] or (len(following) == 2 and following[0] in "+-*/&|" and following[1] == "=")
    )


def _assignment(tokens: Sequence[str], at: int, script: _Script) -> int:
    """Stores one assignment; one without a constant value is an error only where a region uses it."""
    name, plain = tokens[at], tokens[at + 1] == "="
    try:
        tree, end = parse_prefix(tokens, at + (2 if plain else 3))
    except ExpressionError:
        return at + 2
    if name in script.symbols or not plain:
        script.ambiguous.add(name)
    script.symbols[name] = tree
    return end


def _memory(words: Sequence[tuple[str, Line]], tokens: Sequence[str], at: int, script: _Script) -> int:
    """Stores the regions of one MEMORY block; returns where it ends."""
    while tokens[at : at + 1] != ["}"]:
        if at >= len(tokens):
            raise ModelError(f"{words[-1][1].place}: MEMORY has no end")
        place = words[at][1].place
        try:
            region, at = _declaration(tokens, at, place)
        except ExpressionError as problem:
            raise ModelError(f"{place}: cannot read the region {tokens[at]}: {problem}") from None
        if region.name in script.regions:
            other = script.regions[region.name].place
            raise ModelError(f"{place}: two regions are called {region.name}; the first stands at {other}")
        script.regions[region.name] = region
    return at + 1


def _declaration(tokens: Sequence[str], at: int, place: str) -> tuple[_Declared, int]:
    name, attributes = tokens[at].strip('"'), None
    at += 1
    if tokens[at : at + 1] == ["("]:
        end = at
        while end < len(tokens) and tokens[end] != ")":
            end += 1
        attributes = "".join(tokens[at + 1 : end])
        at = end + 1
    at = _expect(tokens, at, (":",))
    at = _expect(tokens, _expect(tokens, at, _ORIGINS), ("=",))
    origin, at = parse_prefix(tokens, at)
    at = at + 1 if tokens[at : at + 1] == [","] else at
    at = _expect(tokens, _expect(tokens, at, _LENGTHS), ("=",))
    length, at = parse_prefix(tokens, at)
    return _Declared(name, attributes, origin, length, place), at


def _expect(tokens: Sequence[str], at: int, words: Sequence[str]) -> int:
    token = tokens[at] if at < len(tokens) else "the end"
    if token not in words:
        raise ExpressionError(f"expected {words[0]}, found {token}")
    return at + 1


def _region(script: _Script, declared: _Declared) -> Region:
    try:
        base, size = script.value(declared.origin), script.value(declared.length)
        no_arena = _NO_ATTRIBUTES if declared.attributes is None else ""
        return Region(declared.name, size, base, linked_kind(declared.name, declared.attributes), no_arena=no_arena)
    except (ExpressionError, ValueError, TypeError) as problem:
        raise ModelError(f"{declared.place}: region {declared.name}: {problem}") from None


def constant(text: str) -> int:
    """The value of an expression without names, as `--define` takes it.

    Raises:
        ExpressionError: it has none.
    """

    def unknown(name: str) -> int:
        raise ExpressionError(f"{name} is a name, expected a number")

    return evaluate(parse_expression(tokens_of(text)), unknown)
