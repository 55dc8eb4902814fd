"""What every request takes: paths, sizes in words, lists for tuples; and what a wrong type is told."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from os import PathLike, fspath
from typing import Any, Concatenate, ParamSpec, TypeVar

from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_memory

#: Fields that are bytes, which may be given as "64KiB".
_BYTES = ("capacity", "budget", "max_flash", "memory")
#: The types of fields that are checked, and what is expected there in words.
_EXPECTED: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "True or False"),
    "tuple[str, ...]": ((tuple,), "texts in a tuple or list"),
}


class SettledRequest:
    """A question as frozen fields, which are settled once they are given: see `settled`."""

    __slots__ = ()

    def __init_subclass__(cls, **more: Any) -> None:
        """Explains the fields of the classes below too, which `help` would not show."""
        super().__init_subclass__(**more)
        for base in cls.__mro__[1:]:
            lines = (base.__doc__ or "").partition("    Args:\n")[2].rstrip().splitlines()
            if issubclass(base, SettledRequest) and lines and cls.__doc__ and lines[0] not in cls.__doc__:
                head = "" if "    Args:\n" in cls.__doc__ else "\n\n    Args:"
                cls.__doc__ = f"{cls.__doc__.rstrip()}{head}\n" + "\n".join(lines) + "\n    "

    def __post_init__(self) -> None:
        """Puts what was given into the form that its field has."""
        for field in fields(self):  # type: ignore[arg-type]
            given = getattr(self, field.name)
            settled = self.settled(field.name, str(field.type), given)
            if settled is not given:
                object.__setattr__(self, field.name, settled)

    def settled(self, name: str, kind: str, given: Any) -> Any:
        """A field as its type asks: a path as text, bytes in words as a number, a text or a list as a tuple.

        Raises:
            RequestError: names the field, what was given and what is expected.
        """
        if isinstance(given, PathLike) and kind.startswith("str"):
            given = fspath(given)
        if name in _BYTES and isinstance(given, str) and kind.startswith("int"):
            given = parse_memory(given)
        if kind.startswith("tuple[") and isinstance(given, (str, PathLike, list)):
            given = tuple(given) if isinstance(given, list) else (given,)
        types, words = _EXPECTED.get(kind.removesuffix(" | None"), ((), ""))
        absent = given is None and kind.endswith("| None")
        if types and not absent and (not isinstance(given, types) or (isinstance(given, bool) and bool not in types)):
            words += ", or bytes in words such as '64KiB'" if name in _BYTES else ""
            raise RequestError(f"{type(self).__name__}: {name} is {_shown(given)}, expected {words}")
        return given


def _shown(given: object) -> str:
    words = repr(given)
    return words if len(words) <= 60 else f"{words[:57]}..."


_Asked = TypeVar("_Asked")
_More = ParamSpec("_More")
_Answer = TypeVar("_Answer")


def answers_paths(
    kind: type[_Asked],
) -> Callable[
    [Callable[Concatenate[_Asked, _More], _Answer]],
    Callable[Concatenate[_Asked | str | PathLike[str], _More], _Answer],
]:
    """A decorator of functions that answer a request: they take the path of a file in its place too."""

    def decorate(
        function: Callable[Concatenate[_Asked, _More], _Answer],
    ) -> Callable[Concatenate[_Asked | str | PathLike[str], _More], _Answer]:
        @wraps(function)
        def answer(request: _Asked | str | PathLike[str], /, *more: _More.args, **named: _More.kwargs) -> _Answer:
            return function(as_request(kind, request, function.__name__), *more, **named)

        answer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return answer

    return decorate


def as_request(kind: type[_Asked], given: object, function: str) -> _Asked:
    """A request of a kind: as it is, or about the file of a path.

    Raises:
        RequestError: it is something else; says what was expected.
    """
    if isinstance(given, kind):
        return given
    if isinstance(given, (str, PathLike)):
        return kind(fspath(given))  # type: ignore[call-arg]
    raise RequestError(f"{function}: found {_shown(given)}, expected {_article(kind)} {kind.__name__} or a path")


def _article(kind: type) -> str:
    return "an" if kind.__name__[0] in "AEIO" else "a"
