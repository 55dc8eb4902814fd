"""`dataclass` as Python's, but a method of a frozen class is compiled when it is first looked up.

A command defines some 270 records, makes objects of half of them and compares or shows few. Python compiles six methods
of each as it is defined, which takes a quarter of a start.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING
from functools import partial
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

#: Methods that wait, and the option that each is for; without `__init__` there is no record.
_OPTIONS = {"__repr__": "repr", "__eq__": "eq", "__hash__": "unsafe_hash"}


class _Absent:
    """Stands for a value that a field's factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


class _Later:
    """A method of a class that takes its place when it is looked up."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        setattr(self._owner, self._name, _compiled(self._owner, self._name))
        return vars(self._owner)[self._name].__get__(instance, kind)


def _compiled(owner: Any, name: str) -> Callable[..., Any]:
    if name == "__init__":
        return _initialiser(owner)
    fields = [(field.name, field.type, field) for field in dataclasses.fields(owner)]
    wanted: dict[str, Any] = {option: name == method for method, option in _OPTIONS.items()}
    described = {"__doc__": name}  # else Python would write down the signature, which takes longest
    record: Any = dataclasses.make_dataclass(owner.__name__, fields, init=False, namespace=described, **wanted)
    method: Callable[..., Any] = vars(record)[name]
    return method


def _initialiser(owner: Any) -> Callable[..., None]:
    """`__init__`, of which a field's default stands in the names that it sees as `_` and the field."""
    names: dict[str, Any] = {"put": object.__setattr__, "absent": _Absent()}
    takes, keywords, body = ["self"], ["*"], []
    fields = dataclasses.fields(owner)
    for field in fields:
        name, default = field.name, f"_{field.name}"
        taken = value = name
        alone = ""
        if field.default is not MISSING:
            names[default], taken, alone = field.default, f"{name}={default}", default
        elif field.default_factory is not MISSING:
            names[default], taken, alone = field.default_factory, f"{name}=absent", f"{default}()"
            value = f"{alone} if {name} is absent else {name}"
        if field.init:
            (keywords if field.kw_only else takes).append(taken)
        if written := value if field.init else alone:
            slot = getattr(owner, name, None)
            if isinstance(slot, MemberDescriptorType):
                names[f"__put_{name}"] = slot.__set__  # which need not look for the field
                body.append(f"__put_{name}(self, {written})")
            else:
                body.append(f"put(self, {name!r}, {written})")
    if hasattr(owner, "__post_init__"):
        body.append("self.__post_init__()")
    listed = ", ".join(takes + (keywords if len(keywords) > 1 else []))
    exec(f"def __init__({listed}):\n " + "\n ".join(body or ["pass"]), names)  # noqa: S102 - its own fields
    method: Callable[..., None] = names["__init__"]
    method.__qualname__ = f"{owner.__qualname__}.__init__"
    method.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return method


def _refuse(_: object, name: str, *__: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(record: Any) -> list[object]:
    return [getattr(record, field.name) for field in dataclasses.fields(record)]


def _restore(record: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(record), state, strict=True):
        object.__setattr__(record, field.name, value)


def _record(plain: type, *, eq: bool = True, slots: bool = False, **options: bool) -> Any:
    """A class as a frozen dataclass whose methods wait."""
    own = vars(plain)
    waiting = ["__init__", *["__repr__"] * options.pop("repr", True), *["__eq__", "__hash__"] * eq]
    later = [name for name in waiting if own.get(name) is None]
    cls: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, **options)(plain)
    for name in later:
        setattr(cls, name, _Later(cls, name))
    cls.__setattr__ = cls.__delattr__ = _refuse
    if slots and "__getstate__" not in own:
        cls.__getstate__, cls.__setstate__ = _state, _restore
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, **options):
        """As `dataclasses.dataclass`, which stands for it where types are checked."""
        decorate = partial(_record, **options) if frozen else dataclasses.dataclass(**options)
        return decorate(cls) if cls else decorate
