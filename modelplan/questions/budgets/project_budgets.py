"""Reads the file that states budgets: `[[budget]]` in modelplan.toml, `[[tool.modelplan.budget]]` in pyproject.toml."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path

from modelplan.answers.check_outcomes import Growth, Limits
from modelplan.primitives.errors import RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import parse_bytes
from modelplan.questions.budgets.project_defaults import DEFAULTS, OWN, SHARED, checked_defaults, stated_table

#: Keys of a budget that are options of `check`: those that hold one text, and those that hold one text or several.
ONE_TEXT = ("runtime", "abi", "kernels", "used", "arena-symbol", "feeds")
TEXTS = ("dim", "shape", "value", "reserve", "define", "include")
#: Those of them that may be stated for each model.
_PER_MODEL = ("dim", "shape", "value")
_TEXT = ("name", *ONE_TEXT)
_TEXTS = ("model", "target", *TEXTS)
_BYTES = ("arena", "head", "flash")
#: Keys of a budget in whose place the project's defaults stand where it has none of them.
_BUILT = {"target", "kernels", "abi", "runtime"}
KEYS = ("name", "model", "target", *_BYTES, "growth", *ONE_TEXT, *TEXTS)


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One budget as the file states it; `place` is how messages call it.

    `options` are those that `check` takes, by their names without dashes in front, each with its texts. `of_models` are
    those that are stated for single models, with the path or glob of these.
    """

    place: str
    name: str
    models: tuple[str, ...]
    targets: tuple[str, ...]
    limits: Limits
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of_models: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    def options_of(self, model: str) -> Mapping[str, tuple[str, ...]]:
        """The options that hold for one model, by its path relative to the file."""
        options = dict(self.options)
        for key, pattern, texts in self.of_models:
            if pattern == model or fnmatchcase(model, pattern):
                options[key] = (*options.get(key, ()), *texts)
        return options


@dataclass(frozen=True, slots=True)
class BudgetFile:
    """The budgets of a file, and the baseline that it names, empty where it names none."""

    path: Path
    rows: tuple[BudgetRow, ...]
    baseline: str = ""

    @property
    def prefix(self) -> str:
        """What stands before `budget` in the headers of the file."""
        return _prefix(self.path)


def found_upwards(start: Path) -> Path:
    """The file with budgets in `start` or in the nearest folder above.

    Raises:
        RequestError: there is none, or a folder has both.
    """
    for folder in (start, *start.parents):
        own, shared = folder / OWN, folder / SHARED
        shares = shared.is_file() and stated_table(shared) is not None
        if own.is_file() and shares:
            raise RequestError(f"{own} and [tool.modelplan] in {shared}: keep the budgets in one of them")
        if own.is_file() or shares:
            return own if own.is_file() else shared
    raise RequestError(f"no MODEL is named, and neither {OWN} nor a {SHARED} with [tool.modelplan] is here or above")


def read_budgets(path: Path, *, may_be_empty: bool = False) -> BudgetFile:
    """The budgets in a file.

    Raises:
        RequestError: names the file, the budget and the key that cannot be read.
    """
    table = stated_table(path)
    if table is None:
        raise RequestError(f"{path}: no table [tool.modelplan]")
    prefix, known = _prefix(path), ("budget", "baseline", *DEFAULTS)
    for key in sorted(table.keys() - set(known)):
        there = ", ".join(f"{prefix}{name}" for name in known)
        raise RequestError(f"{path}: {prefix}{key}: no such key; there are: {there}")
    defaults = checked_defaults(path, table)
    baseline = table.get("baseline", "")
    if not isinstance(baseline, str):
        raise RequestError(f"{path}: {prefix}baseline is {baseline!r}, expected text: a .json file or a git revision")
    rows = table.get("budget", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RequestError(f"{path}: {prefix}budget has to be an array of tables, [[{prefix}budget]]")
    if not rows and not may_be_empty:
        raise RequestError(
            f"{path}: no budget; state one as [[{prefix}budget]], or run `modelplan check --write budgets MODEL`"
        )
    rows = [row if _BUILT & row.keys() else defaults | row for row in rows]
    return BudgetFile(path, tuple(_row(path, number, row) for number, row in enumerate(rows, 1)), baseline)


def _prefix(path: Path) -> str:
    return "tool.modelplan." if path.name == SHARED else ""


def _row(path: Path, number: int, table: Mapping[str, object]) -> BudgetRow:
    name = table.get("name")
    place = f"{path}: budget {number}" + (f" {name!r}" if isinstance(name, str) else "")
    for key in table:
        if key not in KEYS:
            raise RequestError(f"{place}: {key}: no such key; there are: {', '.join(KEYS)}")
    of_models = tuple(_of_models(place, table))
    single = {key for key, _, _ in of_models}
    texts = {key: _texts(place, key, table[key]) for key in (*_TEXT, *_TEXTS) if key in table and key not in single}
    limits = _limits(place, table)
    if "model" not in texts:
        raise RequestError(f"{place}: no model")
    if limits == Limits() and "target" not in texts:
        raise RequestError(f"{place}: no limit; state one of target, arena, head, flash, growth")
    name, models, targets = (texts.pop(key, ()) for key in ("name", "model", "target"))
    return BudgetRow(place, "".join(name), models, targets, limits, texts, of_models)


def _of_models(place: str, table: Mapping[str, object]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The options that a budget states in a table by model."""
    for key in _PER_MODEL:
        stated = table.get(key)
        if isinstance(stated, dict):
            if not stated:
                raise RequestError(f"{place}: {key} names no model")
            yield from ((key, pattern, _texts(place, f"{key}.{pattern}", texts)) for pattern, texts in stated.items())


def _texts(place: str, key: str, value: object) -> tuple[str, ...]:
    several = key.partition(".")[0] in _TEXTS
    texts = value if several and isinstance(value, list) else [value]
    expected = "text or a list of texts" if several else "text"
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise RequestError(f"{place}: {key} is {value!r}, expected {expected}")
    return tuple(texts)


def _limits(place: str, table: Mapping[str, object]) -> Limits:
    sizes = {key: _size(place, key, table[key]) for key in _BYTES if key in table}
    growth = table.get("growth")
    if growth is not None and (isinstance(growth, bool) or not isinstance(growth, int | str)):
        raise RequestError(f"{place}: growth is {growth!r}, expected bytes such as '1KiB' or a share such as '5%'")
    try:
        return Limits(**sizes, growth=None if growth is None else parse_growth(str(growth)))
    except RequestError as problem:
        raise RequestError(f"{place}: growth: {problem}") from None


def _size(place: str, key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise RequestError(f"{place}: {key} is {value!r}, expected bytes such as '64KiB'")
    try:
        return parse_bytes(str(value))
    except RequestError as problem:
        raise RequestError(f"{place}: {key}: {problem}") from None


def parse_growth(text: str) -> Growth:
    """The growth that `text` allows: bytes as `parse_bytes` reads them, or a share such as 5%.

    Raises:
        RequestError: it is neither.

    >>> parse_growth("2.5%").allowed(1000), parse_growth("1KiB").allowed(1000)
    (25, 1024)
    """
    share = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%\s*", text)
    if share:
        return Growth(text.strip(), share=Fraction(share[1]) / 100)
    try:
        return Growth(text.strip(), parse_bytes(text))
    except RequestError as problem:
        raise RequestError(f"{problem}, or a share such as 5%") from None


def matched(file: BudgetFile, row: BudgetRow) -> Iterator[tuple[Path, str]]:
    """The models of a budget: path and the path relative to the folder of the file, in order of their names.

    Raises:
        RequestError: a pattern is not relative to the file, or matches nothing.
    """
    folder = file.path.parent
    models: dict[str, Path] = {}
    for pattern in row.models:
        if Path(pattern).is_absolute():
            raise RequestError(f"{row.place}: model {pattern}: expected a path or glob relative to the file")
        paths = _paths(folder, pattern)
        if not paths:
            raise RequestError(f"{row.place}: model {pattern}: no such file, and no file matches")
        models |= {path.relative_to(folder).as_posix(): path for path in paths}
    for key, pattern, _ in row.of_models:
        if not any(pattern == model or fnmatchcase(model, pattern) for model in models):
            raise RequestError(f"{row.place}: {key}: {pattern} is none of its models: {', '.join(sorted(models))}")
    yield from ((path, key) for key, path in sorted(models.items()))


def _paths(folder: Path, pattern: str) -> list[Path]:
    """The files that a path or glob names; what exists under exactly that name is meant, whatever characters it has."""
    if (folder / pattern).exists():
        return [folder / pattern]
    try:
        return [path for path in folder.glob(pattern) if path.is_file()]
    except ValueError:
        return []
