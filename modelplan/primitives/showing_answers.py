"""How answers show themselves: at most one screen, in words and, in a notebook, with a picture."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

#: Characters and lines of one screen.
_MOST, _LINES = 3600, 45
#: Characters of one field.
_FIELD = 70
#: How an answer is written in words and as HTML; empty where it has no such form. `modelplan` says them.
_forms: dict[str, Callable[[Any], str]] = {}


def show_with(words: Callable[[Any], str], html: Callable[[Any], str]) -> None:
    """Has answers shown by these functions, each of which gives an empty text for what it does not know."""
    _forms.update(words=words, html=html)


class Shown:
    """An answer whose repr is one screen of words."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _cut(_forms["words"](self)) if _forms and _forms["words"](self) else brief_repr(self)

    def _repr_html_(self) -> str | None:
        """What a notebook shows; None where there is no more than the words."""
        return (_forms["html"](self) if _forms else "") or None


def brief_repr(answer: object) -> str:
    """The fields of an answer in a line each, cut where they are long."""
    names = [field.name for field in fields(answer)] if is_dataclass(answer) else []
    lines = "".join(f"\n  {name}={_field(getattr(answer, name))}" for name in names)
    return _cut(f"<{type(answer).__name__}{lines}>")


def _field(value: object) -> str:
    if isinstance(value, (bytes, tuple, list, dict)) and len(value) > 1:
        return f"{len(value):,} {'bytes' if isinstance(value, bytes) else 'items'}"
    words = repr(value).replace("\n", " ")
    return words if len(words) <= _FIELD else f"{words[: _FIELD - 3]}..."


def _cut(words: str) -> str:
    lines = words.rstrip("\n").split("\n")
    kept = "\n".join(lines[:_LINES])[:_MOST]
    return kept if len(kept) == len("\n".join(lines)) else f"{kept}\n... render(answer, '.txt') has all of it"
