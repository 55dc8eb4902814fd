"""Records behave as Python's dataclasses do, and compile no method that nobody looked up."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, field
from functools import cached_property
from typing import Any

import pytest

from modelplan.primitives import lazy_records

#: One definition, as Python's dataclass and as this one.
BODY = '''
@dataclass(frozen=True, slots={slots})
class Base:
    """Fields with and without defaults."""

    size: int
    names: tuple[str, ...] = ()
    found: list[int] = field(default_factory=list)
    hidden: int = field(default=3, repr=False, compare=False)
    fixed: int = field(default=4, init=False)
    kept: list[int] = field(default_factory=list, init=False, compare=False)
    after: int = field(init=False)
    _: KW_ONLY
    late: str = "x"
    needed: float

    def __post_init__(self):
        object.__setattr__(self, "after", self.size + 1)


@dataclass(frozen=True, slots={slots})
class Derived(Base):
    """One that adds a field."""

    more: int = 7


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Same:
    """One that is equal to itself alone."""

    size: int = 0

    @cached_property
    def twice(self):
        return 2 * self.size


@dataclass(frozen=True)
class Own:
    """One with methods of its own."""

    size: int

    def __eq__(self, other):
        return True

    def __repr__(self):
        return "own"


@dataclass
class Open:
    """One whose fields change."""

    size: int = 0
'''


def defined(decorator: Any, slots: bool) -> dict[str, Any]:
    names: dict[str, Any] = {"dataclass": decorator, "field": field, "KW_ONLY": KW_ONLY, "__name__": __name__}
    names["cached_property"] = cached_property
    exec("from __future__ import annotations\n" + BODY.format(slots=slots), names)
    return names


@pytest.mark.parametrize("slots", [False, True])
def test_behaves_as_a_dataclass(slots: bool) -> None:
    theirs, ours = defined(dataclasses.dataclass, slots), defined(lazy_records.dataclass, slots)
    for name in ("Base", "Derived", "Same", "Own", "Open"):
        assert str(inspect.signature(ours[name])) == str(inspect.signature(theirs[name]))
        assert ours[name].__match_args__ == theirs[name].__match_args__
    for kind in ("Base", "Derived"):
        shown = []
        for names in (theirs, ours):
            record = names[kind](1, ("a",), needed=0.5)
            assert record == names[kind](1, ("a",), needed=0.5, late="x") != names[kind](2, ("a",), needed=0.5)
            assert record == copy.copy(record) == copy.deepcopy(record) == dataclasses.replace(record, size=1)
            assert record.found is not names[kind](1, ("a",), needed=0.5).found
            assert hasattr(record, "__dict__") is not slots
            with pytest.raises(FrozenInstanceError):
                record.size = 2
            with pytest.raises(FrozenInstanceError):
                del record.size
            with pytest.raises(TypeError, match=rf"{kind}.__init__\(\) missing 1 required keyword-only"):
                names[kind](1)
            shown.append((repr(record), dataclasses.asdict(record)))
        assert shown[0] == shown[1]


def test_compares_and_hashes_as_it_is_told() -> None:
    names = defined(lazy_records.dataclass, False)
    same, own = names["Same"](size=2), names["Own"](1)
    assert same != names["Same"](size=2)
    assert hash(same) != hash(names["Same"](size=2))
    assert same.twice == 4
    assert own == names["Own"](2)
    assert repr(own) == "own"
    assert hash(own) == hash(names["Own"](1)) != hash(names["Own"](2))
    assert names["Open"]().__eq__(names["Open"]())
    assert names["Open"].__hash__ is None
    assert len({names["Derived"](1, needed=1.0, found=()), names["Derived"](1, needed=1.0, found=())}) == 1


@lazy_records.dataclass(frozen=True, slots=True)
class Sent:
    """What goes to another process."""

    size: int


def test_is_pickled_with_slots() -> None:
    assert pickle.loads(pickle.dumps(Sent(3))) == Sent(3)


def test_compiles_what_is_looked_up_alone() -> None:
    kind = defined(lazy_records.dataclass, True)["Base"]
    waiting = {name for name, method in vars(kind).items() if isinstance(method, lazy_records._Later)}
    assert waiting == {"__init__", "__repr__", "__eq__", "__hash__"}
    repr(kind(1, needed=1.0))
    assert {name for name, method in vars(kind).items() if isinstance(method, lazy_records._Later)} == {
        "__eq__",
        "__hash__",
    }
