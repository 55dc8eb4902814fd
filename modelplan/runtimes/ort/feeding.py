"""The values with which a session runs: given by name or in a file, by a rule, else drawn."""

import hashlib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelplan.primitives.errors import ModelError, RequestError
from modelplan.primitives.lazy_records import dataclass

#: The values of inputs, by their names; fewer than an input has are repeated.
Values = Mapping[str, Sequence[float]]
#: How an input is filled: the name of a row of `RULES`, and a number; of "numbers" all of them.
Rule = tuple[str, int | tuple[int, ...]]

#: The types of inputs, as ONNX Runtime calls them.
TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(bool)": np.bool_,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(int8)": np.int8,
    "tensor(uint64)": np.uint64, "tensor(uint32)": np.uint32, "tensor(uint16)": np.uint16, "tensor(uint8)": np.uint8,
}  # fmt: skip
#: What the inputs after the random ones consist of: one value each, of floats and of integers.
EXTREMES = ((0.0, "zero"), (100.0, "max"), (-100.0, "min"))


def _spread(number: int, count: int) -> NDArray[np.float64]:
    """Whole numbers that are as equal as may be and add up to `number`."""
    return np.full(count, number // max(count, 1)) + (np.arange(count) < number % max(count, 1))


#: What a rule makes of its number, or numbers, and of how many values there are.
RULES: dict[str, Callable[[Any, int], NDArray[Any]]] = {
    "fill": lambda number, count: np.full(count, number),
    "count": lambda number, count: np.arange(count) % number if number else np.arange(count),
    "first": lambda number, count: np.arange(count) < number,
    "first, others negative": lambda number, count: np.where(np.arange(count) < number, 1, -1),
    "sum": _spread,
    "numbers": lambda numbers, count: np.resize(np.array(numbers), count),
}
#: The rules in words.
_WORDS = {
    "fill": "all {}", "count": "0, 1, 2, ... below {}", "first": "{} ones, then zeros",
    "first, others negative": "{} ones, then -1", "sum": "whole numbers that add up to {}",
    "numbers": "{}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Feeds:
    """What inputs are fed with: `values` by name, arrays of the .npz file `path`, `rules` by name; others are drawn.

    `digest` is the SHA-256 of that file.
    """

    values: Values = field(default_factory=dict)
    path: str = ""
    digest: str = ""
    rules: Mapping[str, Rule] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The same as plain data, which decides what a run is fed with; a file counts by its content."""
        values = {name: list(numbers) for name, numbers in self.values.items()}
        return {
            "values": values,
            "digest": self.digest,
            "rules": {name: list(rule) for name, rule in self.rules.items()},
        }

    def described(self) -> str:
        """The rules in words; empty where there are none."""
        return "; ".join(f"{name}: {_rule_words(*rule)}" for name, rule in self.rules.items())


def _rule_words(name: str, number: int | Sequence[int]) -> str:
    if name == "count" and not number:
        return "0, 1, 2, ..."
    return _WORDS[name].format(number if isinstance(number, int) else list(number))


def feeds_of(values: Values, path: str) -> Feeds:
    """Feeds of given values and of the arrays in an .npz file; no file where the path is empty.

    Raises:
        RequestError: the file cannot be read, or an input is given twice.
    """
    if not path:
        return Feeds(values)
    both = sorted(set(values) & set(arrays_in(path)))
    if both:
        raise RequestError(f"--value {both[0]} is in {path} too")
    return Feeds(values, str(Path(path).resolve()), hashlib.sha256(Path(path).read_bytes()).hexdigest())


def arrays_in(path: str) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by their names.

    Raises:
        RequestError: there is no such file, or it holds something else.
    """
    try:
        content = Path(path).read_bytes()
        with np.load(BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except OSError as problem:
        raise RequestError(f"--feeds {path}: {problem.strerror or problem}") from None
    except (ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):
        raise RequestError(
            f"--feeds {path}: expected an .npz file of arrays of numbers, as numpy.savez writes"
        ) from None


def fed(inputs: Any, shapes: Mapping[str, Sequence[int]], number: int, feeds: Feeds) -> dict[str, NDArray[Any]]:
    """Inputs of the run `number`: drawn ones from 0 on, then extreme ones counted from -1 down; others as they are fed.

    Raises:
        ModelError: an input is no tensor of numbers.
    """
    given = arrays_in(feeds.path) if feeds.path else {}
    arrays = {}
    for position, value in enumerate(inputs):
        if value.name in given:
            arrays[value.name] = np.ascontiguousarray(given[value.name])
            continue
        if value.type not in TYPES:
            raise ModelError(f"input {value.name!r} is a {value.type}, expected a tensor of numbers")
        dtype: np.dtype[Any] = np.dtype(TYPES[value.type])
        shape = tuple(shapes[value.name])
        if value.name in feeds.values:
            arrays[value.name] = np.resize(np.array(feeds.values[value.name]).astype(dtype), shape)
        elif value.name in feeds.rules:
            array = ruled(feeds.rules[value.name], shape, dtype)
            arrays[value.name] = np.roll(array.reshape(-1), number).reshape(
                shape
            )  # other values of the same sum and count
        else:
            arrays[value.name] = _drawn(shape, dtype, number, position)
    return arrays


def ruled(rule: Rule, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array that a rule fills; what its type cannot hold is as near as may be."""
    name, number = rule
    array = np.asarray(RULES[name](number, prod(shape)), np.float64).reshape(shape)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        array = np.clip(array, float(limits.min), float(np.nextafter(limits.max, 0)))
    return array.astype(dtype)


def _drawn(shape: tuple[int, ...], dtype: np.dtype[Any], number: int, position: int) -> NDArray[Any]:
    random = np.random.default_rng([max(number, 0), position])
    if number < 0:
        return np.full(shape, _extreme(dtype, *EXTREMES[-1 - number]), dtype)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    if dtype.itemsize == 1 and dtype.kind != "b":
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return random.integers(0, 2, shape).astype(dtype)  # numbers of rows in a table, as a rule


def _extreme(dtype: np.dtype[Any], number: float, name: str) -> float:
    if dtype.kind == "f":
        return number
    if dtype.itemsize > 1 or dtype.kind == "b":
        return int(name == "max")
    limits = np.iinfo(dtype)
    return {"zero": 0, "max": limits.max, "min": limits.min}[name]


def rule_of(name: str, number: int | Sequence[int]) -> Rule:
    """The rule with that name and number, or numbers, as plain data has them."""
    return name, number if isinstance(number, int) else tuple(number)


def rules_for(extents: Sequence[int], constants: Sequence[int]) -> Iterator[Rule]:
    """Rules that may reach extents which depend on values, the likeliest first.

    `extents` are those to be reached, `constants` whole numbers in the model, such as one that an input is compared
    with or the rows of a table.
    """
    yield from (("fill", 1), ("fill", 0), ("count", 0))
    for extent in dict.fromkeys(n for n in extents if n > 0):
        yield from ((name, extent) for name in ("sum", "first", "first, others negative", "fill", "count"))
    for constant in dict.fromkeys(constants):
        yield "fill", constant
        if constant > 1:
            yield "count", constant
    yield from (("fill", 100), ("fill", -100))
