"""Integer expressions as linker scripts, devicetrees and the C preprocessor write them: parsed, then evaluated.

Parsing and evaluating are two steps, so that the branch of `?:` that is not taken may hold what nobody defined.
"""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from modelplan.primitives.units import counted

#: A number, a name, or an operator or function with its operands.
Tree: TypeAlias = "int | str | tuple[str, tuple[Tree, ...]]"

#: What a name stands for, and what a function of the file's language yields for operands that are not evaluated yet.
Lookup: TypeAlias = Callable[[str], int]
Function: TypeAlias = tuple[int, Callable[..., int]]

_TOKEN = re.compile(
    r'\s*(?:(?P<name>[A-Za-z_.$][\w.$]*)|(?P<number>\d\w*)|(?P<text>"[^"]*")|(?P<sign><<|>>|<=|>=|==|!=|&&|\|\||.))',
    re.S,
)
_UNITS = {"k": 1024, "m": 1024**2}
#: Binary operators from the loosest to the tightest.
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
#: No address or size has more bits; a wider shift is a mistake or an attack.
_MOST_BITS = 64
#: Parentheses inside each other, signs in front of a value; more would exhaust the stack. So would terms in a row.
_DEEPEST, _MOST_TERMS = 60, 100
#: Bits of a value on the way; addresses have 64.
_MOST_VALUE_BITS = 256


class ExpressionError(ValueError):
    """The text is no expression, or has no value; says what was found."""


@dataclass(slots=True)
class _Reader:
    """The tokens of an expression and how many of them have been read."""

    tokens: Sequence[str]
    at: int = 0
    depth: int = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise ExpressionError(f"expected {expected or 'a value'}, found {token or 'the end'}")
        self.at += 1
        return token


def tokens_of(text: str) -> list[str]:
    """The tokens of a text: names, numbers, quoted text, operators.

    >>> tokens_of("0x1F000-(A<<2)")
    ['0x1F000', '-', '(', 'A', '<<', '2', ')']
    """
    return [match.group(match.lastgroup or 0) for match in _TOKEN.finditer(text.strip())]


def parse_expression(tokens: Sequence[str]) -> Tree:
    """The expression that all of the tokens are."""
    tree, end = parse_prefix(tokens, 0)
    if end < len(tokens):
        raise ExpressionError(f"expected the end, found {tokens[end]}")
    return tree


def parse_prefix(tokens: Sequence[str], start: int) -> tuple[Tree, int]:
    """The longest expression that starts at a token, and the first token after it."""
    reader = _Reader(tokens, start)
    return _choice(reader), reader.at


def _choice(reader: _Reader) -> Tree:
    reader.depth += 1
    if reader.depth > _DEEPEST:
        raise ExpressionError(f"more than {_DEEPEST} parentheses inside each other")
    tree = _binary(reader, 0)
    if reader.peek() == "?":
        reader.take()
        first = _choice(reader)
        reader.take(":")
        tree = ("?:", (tree, first, _choice(reader)))
    reader.depth -= 1
    return tree


def _binary(reader: _Reader, level: int) -> Tree:
    if level == len(_LEVELS):
        return _unary(reader)
    tree = _binary(reader, level + 1)
    count = 0
    while reader.peek() in _LEVELS[level]:
        sign, count = reader.take(), count + 1
        if count > _MOST_TERMS:
            raise ExpressionError(f"more than {_MOST_TERMS} terms in a row")
        tree = (sign, (tree, _binary(reader, level + 1)))
    return tree


def _unary(reader: _Reader) -> Tree:
    signs = []
    while reader.peek() in ("-", "+", "~", "!"):
        signs.append(reader.take())
        if len(signs) > _DEEPEST:
            raise ExpressionError(f"more than {_DEEPEST} signs in front of a value")
    tree = _value(reader)
    for sign in reversed(signs):
        tree = (f"{sign}x", (tree,))
    return tree


def _value(reader: _Reader) -> Tree:
    word = reader.take()
    if word == "(":
        tree = _choice(reader)
        reader.take(")")
        return tree
    if word[0].isdigit():
        return parse_number(word)
    if word[0] == '"':
        return word[1:-1]
    if not (word[0].isalpha() or word[0] in "_.$"):
        raise ExpressionError(f"expected a value, found {word}")
    if reader.peek() != "(":
        return word
    return (word, _operands(reader))


def _operands(reader: _Reader) -> tuple[Tree, ...]:
    reader.take("(")
    operands: list[Tree] = []
    while reader.peek() != ")":
        if operands:
            reader.take(",")
        operands.append(_choice(reader))
    reader.take(")")
    return tuple(operands)


def parse_number(word: str) -> int:
    """A number: decimal, hexadecimal after 0x or before H, octal after 0, times 1024 or 1024² before K or M.

    >>> [parse_number(word) for word in ("320K", "0x1f", "010", "20h", "2M", "64UL")]
    [327680, 31, 8, 32, 2097152, 64]
    """
    text = word.lower()
    if re.fullmatch(r"(?:0x[0-9a-f]+|\d+)u?l?l?", text):
        return _plain_number(text.rstrip("ul"))
    if re.fullmatch(r"(?:0x[0-9a-f]+|\d+)[km]", text):
        return _plain_number(text[:-1]) * _UNITS[text[-1]]
    if re.fullmatch(r"[0-9a-f]+h", text):
        return int(text[:-1], 16)
    raise ExpressionError(f"cannot read {word} as a number")


def _plain_number(text: str) -> int:
    octal = len(text) > 1 and text[0] == "0" and text[1] != "x"
    try:
        return int(text, 8) if octal else int(text, 0)
    except ValueError:
        raise ExpressionError(f"cannot read {text} as a number") from None


def evaluate(tree: Tree, lookup: Lookup, functions: dict[str, Function] | None = None) -> int:
    """The value of the expression.

    Args:
        tree: what `parse_expression` made.
        lookup: the value of a name; raises ExpressionError for one that has none.
        functions: what the language of the file calls by name, each with the number of its operands.
    """

    def value(operand: Tree) -> int:
        return evaluate(operand, lookup, functions)

    if isinstance(tree, int):
        return _bounded(tree)
    if isinstance(tree, str):
        return lookup(tree)
    sign, operands = tree
    if sign == "?:":
        return value(operands[1] if value(operands[0]) else operands[2])
    if sign in ("&&", "||"):
        first = bool(value(operands[0]))
        return int(first if first == (sign == "||") else bool(value(operands[1])))
    if sign in _UNARY and len(operands) == 1:
        return _UNARY[sign](value(operands[0]))
    if sign in _BINARY:
        return _bounded(_BINARY[sign](value(operands[0]), value(operands[1])))
    count, function = (functions or {}).get(sign, (-1, None))
    if function is None:
        raise ExpressionError(f"{sign}() is not understood")
    if len(operands) != count:
        raise ExpressionError(f"{sign}() of {counted(len(operands), 'operand')}, expected {count}")
    return function(*operands)


def _bounded(value: int) -> int:
    if value.bit_length() > _MOST_VALUE_BITS:
        raise ExpressionError(f"a value of more than {_MOST_VALUE_BITS} bits")
    return value


def _divided(a: int, b: int) -> int:
    if b == 0:
        raise ExpressionError("a division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shifted(a: int, b: int) -> int:
    if a < 0 or not -_MOST_BITS <= b <= _MOST_BITS:
        raise ExpressionError(f"{a} cannot be shifted by {b} bits")
    return a << b if b >= 0 else a >> -b


def _comparison(holds: Callable[[int, int], bool]) -> Callable[[int, int], int]:
    """A comparison of numbers of which none is negative: linkers take them as unsigned, the preprocessor does not."""

    def compared(a: int, b: int) -> int:
        if a < 0 or b < 0:
            raise ExpressionError(f"{a} and {b} cannot be compared without a doubt about the sign")
        return int(holds(a, b))

    return compared


_UNARY: dict[str, Callable[[int], int]] = {
    "-x": operator.neg,
    "+x": operator.pos,
    "~x": operator.invert,
    "!x": lambda a: int(not a),
}
_BINARY: dict[str, Callable[[int, int], int]] = {
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": _comparison(operator.lt),
    ">": _comparison(operator.gt),
    "<=": _comparison(operator.le),
    ">=": _comparison(operator.ge),
    "<<": _shifted,
    ">>": lambda a, b: _shifted(a, -b),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": lambda a, b: a - b * _divided(a, b),
}
