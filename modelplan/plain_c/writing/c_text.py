"""Pieces of C: numbers, tables, comments and names."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from modelplan.plain_c.kernel_records import ConstTable
from modelplan.primitives.errors import ModelError

_WIDTH = 116
_LEAST = {"int32_t": "(-2147483647 - 1)", "int64_t": "(-INT64_C(9223372036854775807) - 1)"}


def number(value: float, ctype: str) -> str:
    """A number of a C type as a literal.

    >>> number(-128, "int8_t"), number(0.1, "float"), number(-2**31, "int32_t"), number(-math.inf, "float")
    ('-128', '0.100000001f', '(-2147483647 - 1)', '-INFINITY')
    """
    if ctype == "float":
        return _float(float(value))
    whole = int(value)
    bits = int(re.sub(r"\D", "", ctype) or 32)
    if whole == -(2 ** (bits - 1)) and ctype in _LEAST:
        return _LEAST[ctype]
    if bits == 64:
        return f"INT64_C({whole})" if whole >= 0 else f"-INT64_C({-whole})"
    return str(whole)


def check_numbers(numbers: npt.ArrayLike) -> None:
    """Checks that C has a literal for each of the numbers, whose bits that of a NaN would leave open."""
    odd = np.ravel(numbers)[np.isnan(np.ravel(numbers))]
    if odd.size:
        raise ModelError(f"a constant is {odd[0]}, which C has no literal for")


def _float(value: float) -> str:
    check_numbers(value)
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = f"{value:.9g}"
    return f"{text}f" if re.search(r"[.e]", text) else f"{text}.0f"


def comment(text: str) -> str:
    """A text as it may stand in a comment."""
    plain = text.encode("ascii", "backslashreplace").decode().replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"[\x00-\x1f\x7f]", " ", plain).replace("??", "? ?").rstrip("\\")[:160]


def identifier(text: str) -> str:
    """A text as a name in C.

    >>> identifier("my-net 2"), identifier("2d"), identifier("int")
    ('my_net_2', 'net_2d', 'net_int')
    """
    name = re.sub(r"\W+", "_", text.encode("ascii", "replace").decode()).strip("_").lower()
    return name if re.match(r"[a-z]", name) and name not in _RESERVED else f"net_{name}".rstrip("_")


def filled(items: Iterable[object], indent: str = "    ") -> Iterator[str]:
    """Items in lines, with a comma behind each."""
    text = ",\n".join(map(str, items))
    text += ",\n" if text else ""
    start, room = 0, _WIDTH - len(indent)
    while start < len(text):
        end = 1 + max(text.rfind("\n", start, start + room), text.find("\n", start))
        line = text[start:end].replace("\n", " ").rstrip()
        yield indent + (line if end < len(text) else line.rstrip(","))
        start = end


def table_text(name: str, table: ConstTable) -> str:
    """The definition of a table."""
    body = _table_body(table.ctype, table.numbers.dtype.str, table.numbers.tobytes())
    return f"static const {table.ctype} {name}[{max(table.numbers.size, 1)}] = {{\n{body or '    0'}\n}};"


@lru_cache(maxsize=512)
def _table_body(ctype: str, dtype: str, content: bytes) -> str:
    """The lines of a table, which the plans of a model have in common."""
    if ctype in ("int8_t", "uint8_t"):
        words = [str(v) for v in np.arange(256, dtype=np.uint8).view(dtype).tolist()]
        text = ", ".join(map(words.__getitem__, content))
        return "\n".join(f"    {line}" for line in re.findall(rf"(.{{1,{_WIDTH - 6}}}(?:,|$))(?: |$)", text))
    values = np.frombuffer(content, dtype).tolist()
    return "\n".join(filled(values if ctype == "int16_t" else (number(v, ctype) for v in values)))


def aligned_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of words, each column as wide as its widest word; the last column is not padded."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(w.rjust(n) for w, n in zip(row[:-1], widths[:-1], strict=True)) + "  " + row[-1] for row in rows]


_RESERVED = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "bool", "catch", "class",
    "delete", "explicit", "export", "false", "friend", "mutable", "namespace", "new", "operator", "private", "public",
    "template", "this", "throw", "true", "try", "typename", "using", "virtual", "and", "or", "not", "xor", "main",
))  # fmt: skip
