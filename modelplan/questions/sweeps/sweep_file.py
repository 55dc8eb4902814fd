"""The table of a sweep from words: a TOML file, options of the command line, names checked before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from modelplan import runtimes
from modelplan.formats.dims import parsed
from modelplan.formats.files import read_toml_tables
from modelplan.planning import allocators, schedulers
from modelplan.planning.aliasing.rules import MODES
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.questions.sweeps.run_table import USUAL, RunBlock, RunTable
from modelplan.targets.choosing import Wanted, chosen_block
from modelplan.targets.table import DEVICES

#: What a table may state, by the names of the options, each with one text or several.
KEYS = ("models", "targets", "runtimes", "kernels", "schedules", "alias", "allocators", "dim", "shape")
#: The word that stands for every name there is.
ALL = "all"

Words = Mapping[str, tuple[str, ...]]


def read_sweep(path: Path) -> dict[str, tuple[str, ...]]:
    """The words of a .toml file; paths and globs of models are relative to it.

    Raises:
        RequestError: names the file and the key that cannot be read.
    """
    try:
        document = read_toml_tables(path)
    except ModelError as problem:
        raise RequestError(f"cannot read {problem}") from None
    words: dict[str, tuple[str, ...]] = {}
    for key, value in document.items():
        if key not in KEYS:
            raise RequestError(f"{path}: {key}: no such key; there are: {', '.join(KEYS)}")
        found = value if isinstance(value, list) else [value]
        if not found or not all(isinstance(one, str) and one for one in found):
            raise RequestError(f"{path}: {key} is {value!r}, expected text or a list of texts")
        words[key] = tuple(found)
    if "models" in words:
        words["models"] = tuple(str(file) for pattern in words["models"] for file in _matched(path, pattern))
    return words


def _matched(path: Path, pattern: str) -> list[Path]:
    """The files that a path or glob of a table names."""
    if (path.parent / pattern).exists() or Path(pattern).is_absolute():
        return [path.parent / pattern]
    paths = sorted(file for file in path.parent.glob(pattern) if file.is_file())
    if not paths:
        raise RequestError(f"{path}: models: {pattern}: no such file, and no file matches")
    return paths


def table_of(words: Words) -> RunTable:
    """The table that words ask for; `all` stands for every name that there is.

    Raises:
        RequestError: a name that does not exist, an extent that is no number, or no model; says what there is.
    """
    models = _distinct(words.get("models", ()))
    if not models:
        raise RequestError("no models: name .tflite and .onnx files, or a .toml file with `models`")
    parsed(words.get("dim", ()), words.get("shape", ()))  # what no model could take is refused before any runs
    # `all` is every library in turn here, `default` what is enough for all of them.
    names = dict.fromkeys(name for row in runtimes.RUNTIMES.values() for name in row.library_names)
    libraries = [name for name in names if name != ALL]
    return RunTable(
        models,
        tuple(_blocks(words.get("targets", ()))),
        _names(words, "runtimes", runtimes.RUNTIMES),
        _names(words, "kernels", libraries),
        _names(words, "schedules", schedulers.SCHEDULERS),
        _names(words, "alias", MODES),
        _names(words, "allocators", allocators.ALLOCATORS),
        _distinct(words.get("dim", ())),
        _distinct(words.get("shape", ())),
    )


def _names(words: Words, key: str, known: Collection[str]) -> tuple[str, ...]:
    asked = words.get(key, (USUAL,))
    for name in asked:
        if name not in known and name not in (USUAL, ALL):
            raise RequestError(f"{key}: no {name!r}; there are: {', '.join((*known, USUAL, ALL))}")
    return tuple(known) if ALL in asked else _distinct(asked)


def _blocks(asked: Iterable[str]) -> Iterable[RunBlock]:
    """The block of each target; of `all`, of each device in the table that gives a figure."""
    for name in _distinct(asked):
        if name != ALL:
            yield _block(name)
            continue
        for device in DEVICES:
            try:
                yield _block(device)
            except RequestError:  # this device says why in `modelplan targets`
                continue


def _block(name: str) -> RunBlock:
    chosen = chosen_block(Wanted(name))
    return RunBlock(name, chosen.budget, chosen.device.abi, chosen.device.kernels)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
