"""Edits the text of a file with budgets: one number, or one budget more; comments and layout stay.

An edit is a change of one line, or lines at the end. The result is parsed again and has to differ from what was there
in nothing else; a layout in which it would is refused, and the file stays as it is.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from modelplan.primitives.errors import RequestError

#: Where a budget starts, as an own table, in modelplan.toml and in pyproject.toml.
_HEADERS = {"": r"\s*\[\[\s*budget\s*\]\]", "tool.modelplan.": r"\s*\[\[\s*tool\s*\.\s*modelplan\s*\.\s*budget\s*\]\]"}
#: A key with a number or a text on one line; what follows is a comment.
_LINE = r"""(\s*{key}\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*'|\d\w*)(\s*(?:\#.*)?)"""


def with_number(text: str, prefix: str, number: int, key: str, value: str) -> str:
    r"""The text in which `key` of the budget with that number, from 1, is `value`; `prefix` stands before `budget`.

    Raises:
        RequestError: the budget is not written as a table of its own with the key on one line.

    >>> with_number('[[budget]]\nmodel = "a.tflite"\narena = "1KiB"  # tight', "", 1, "arena", "2KiB")
    '[[budget]]\nmodel = "a.tflite"\narena = "2KiB"  # tight'
    """
    lines = text.splitlines(keepends=True)
    headers = [index for index, line in enumerate(lines) if re.match(_HEADERS[prefix], line)]
    if number <= len(headers):
        for index in range(headers[number - 1] + 1, len(lines)):
            line = lines[index].rstrip("\r\n")
            if line.lstrip().startswith("["):
                break
            if match := re.fullmatch(_LINE.format(key=key), line):
                ending = lines[index][len(line) :]
                lines[index] = f"{match[1]}{_toml(value)}{match[3]}{ending}"
                break
    edited = "".join(lines)
    wanted = tomllib.loads(text)
    _rows(wanted, prefix)[number - 1][key] = value
    if not _is(edited, wanted):
        raise RequestError(f'cannot set {key} of budget {number} in a file of this layout; write {key} = "{value}"')
    return edited


def with_budget(text: str, prefix: str, row: Mapping[str, str | Sequence[str]]) -> str:
    """The text with one budget more at its end.

    Raises:
        RequestError: the budgets are not written as tables of their own.
    """
    ending = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else ending if text.endswith("\n") else 2 * ending
    lines = [f"[[{prefix}budget]]", *(f"{key} = {_toml(value)}" for key, value in row.items())]
    edited = text + gap + "".join(f"{line}{ending}" for line in lines)
    wanted = tomllib.loads(text)
    _rows(wanted, prefix).append({key: value if isinstance(value, str) else list(value) for key, value in row.items()})
    if not _is(edited, wanted):
        raise RequestError(f"cannot add a budget to a file of this layout; write it as [[{prefix}budget]]")
    return edited


def _is(text: str, wanted: Mapping[str, object]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _rows(document: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The budgets of a document, in which they are made where there are none."""
    table = document
    for name in filter(None, prefix.split(".")):
        table = table.setdefault(name, {})
    rows: list[dict[str, Any]] = table.setdefault("budget", [])
    return rows


def _toml(value: str | Sequence[str]) -> str:
    """A text or a list of texts in TOML; its texts are JSON's, but for the delete character."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_toml, value))}]"
