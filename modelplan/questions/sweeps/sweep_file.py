"""The table of a sweep from words: a TOML file, options of the command line, names checked before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from modelplan import runtimes
from modelplan.formats.dims import parsed, parsed_values
from modelplan.formats.whole_files import read_toml_table
from modelplan.planning import allocators, schedulers
from modelplan.planning.aliasing.rules import MODES
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.questions.sweeps.run_table import USUAL, OpenInputs, RunBlock, RunTable
from modelplan.runtimes.tflm.kernels.own_kernels import library_of
from modelplan.targets.choosing import Wanted, chosen_block
from modelplan.targets.table import DEVICES

#: What a table may state, by the names of the options, each with one text or several.
KEYS = ("models", "targets", "runtimes", "kernels", "schedules", "alias", "allocators", "dim", "shape", "value")
#: What a file leaves open; a table may state it for single models.
_OPEN = KEYS[-3:]
#: The word that stands for every name there is.
ALL = "all"

Words = Mapping[str, tuple[str, ...]]


def read_sweep(path: Path) -> dict[str, tuple[str, ...]]:
    """The words of a .toml file; paths and globs of models are relative to it.

    Raises:
        RequestError: names the file and the key that cannot be read.
    """
    document = _document(path)
    document.pop("inputs", None)
    words = _texts(document, KEYS, f"{path}: ")
    if "models" in words:
        words["models"] = tuple(str(file) for pattern in words["models"] for file in _matched(path, pattern))
    return words


def read_inputs(path: Path) -> dict[str, Words]:
    """What a .toml file says of the inputs of single models, by path: the tables `[inputs."MODEL"]`.

    Raises:
        RequestError: names the file and the key that cannot be read.
    """
    tables = _document(path).get("inputs", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise RequestError(f'{path}: inputs is {tables!r}, expected tables [inputs."MODEL"]')
    words = {name: _texts(table, _OPEN, f"{path}: inputs: {name}: ") for name, table in tables.items()}
    return {str(file): texts for name, texts in words.items() for file in _matched(path, name)}


def _document(path: Path) -> dict[str, Any]:
    try:
        return read_toml_table(path)
    except ModelError as problem:
        raise RequestError(f"cannot read {problem}") from None


def _texts(table: Mapping[str, Any], known: Collection[str], where: str) -> dict[str, tuple[str, ...]]:
    """The texts of a table in TOML, each key with one text or several."""
    words: dict[str, tuple[str, ...]] = {}
    for key, value in table.items():
        if key not in known:
            raise RequestError(f"{where}{key}: no such key; there are: {', '.join(known)}")
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise RequestError(f"{where}{key} is {value!r}, expected text or a list of texts")
        words[key] = tuple(texts)
    return words


def _matched(path: Path, pattern: str) -> list[Path]:
    """The files that a path or glob of a table names."""
    if (path.parent / pattern).exists() or Path(pattern).is_absolute():
        return [path.parent / pattern]
    paths = sorted(file for file in path.parent.glob(pattern) if file.is_file())
    if not paths:
        raise RequestError(f"{path}: models: {pattern}: no such file, and no file matches")
    return paths


def table_of(words: Words, inputs: Mapping[str, Words] | None = None) -> RunTable:
    """The table that words ask for; `all` stands for every name that there is.

    `inputs` are the words `dim`, `shape` and `value` of single models, by path, beside those for all models.

    Raises:
        RequestError: a name that does not exist, an extent that is no number, or no model; says what there is.
    """
    models = _distinct(words.get("models", ()))
    if not models:
        raise RequestError("no models: name .tflite and .onnx files, or a .toml file with `models`")
    for path in inputs or ():
        if path not in models:
            raise RequestError(f"inputs: {path} is none of the models of the table")
    # `all` is every library in turn here, `default` what is enough for all of them.
    names = dict.fromkeys(name for row in runtimes.RUNTIMES.values() for name in row.library_names)
    libraries = [name for name in names if name != ALL]
    return RunTable(
        models,
        tuple(_blocks(words.get("targets", ()))),
        _names(words, "runtimes", runtimes.RUNTIMES),
        _names(words, "kernels", libraries),
        _names(words, "schedules", schedulers.names()),
        _names(words, "alias", MODES),
        _names(words, "allocators", allocators.ALLOCATORS),
        *_open(words),
        {path: _open(own) for path, own in (inputs or {}).items()},
    )


def _open(words: Words) -> OpenInputs:
    """What words say of inputs; what no model could take is refused before any runs."""
    open_inputs = OpenInputs(*(_distinct(words.get(key, ())) for key in _OPEN))
    parsed(open_inputs.dims, open_inputs.shapes)
    parsed_values(open_inputs.values)
    return open_inputs


def _names(words: Words, key: str, known: Collection[str]) -> tuple[str, ...]:
    asked = words.get(key, (USUAL,))
    for name in asked:
        if library_of(name) not in known and name not in (USUAL, ALL):
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
