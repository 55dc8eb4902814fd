"""The table of file formats, and `load`, the only door to them: a Graph, a Problem or a ModelError, nothing else."""

from __future__ import annotations

import re
import stat
import struct
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

from modelplan.formats.dims import Dims, parsed
from modelplan.formats.unpacking import inner_suffix, is_wrapped
from modelplan.formats.whole_files import read_model, way_out
from modelplan.model import Graph, Problem
from modelplan.primitives.errors import ModelError, RequestError, did_you_mean
from modelplan.primitives.lazy_records import dataclass

if TYPE_CHECKING:
    from modelplan.formats.buffer_table import BufferTable
    from modelplan.formats.model_contents import Contents

_Loaded = TypeVar("_Loaded")


@dataclass(frozen=True, slots=True)
class Loader:
    """One row of the table. `module` is imported when a file of its kind is read; `matches` judges the first bytes.

    `table` says that the file holds buffers and no model.
    """

    suffix: str
    module: str
    what: str
    matches: Callable[[bytes], bool]
    table: bool = False


def _is_text(head: bytes) -> bool:
    return bool(head) and not any(byte < 9 or 13 < byte < 32 for byte in head)


def _is_tflite(head: bytes) -> bool:
    return head[4:8] == b"TFL3"


def _is_pte(head: bytes) -> bool:
    return head[4:6] == b"ET" and head[6:8].isdigit()


def _is_xla_dump(head: bytes) -> bool:
    return head.startswith(b"BufferAssignment:")


def _is_onnx(head: bytes) -> bool:
    """A protobuf message that starts with a field of ModelProto: no magic number exists."""
    return not _is_tflite(head) and not _is_text(head[:64]) and head[:1] in _ONNX_FIRST_BYTES


#: Field number and wire type of every ModelProto field, as the first byte on the wire.
_ONNX_FIRST_BYTES = [bytes([b]) for b in (0x08, 0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72, 0xA2, 0xCA, 0xD2)]

_LONGEST_MESSAGE = 20_000

LOADERS: dict[str, Loader] = {
    row.suffix: row
    for row in (
        Loader(".tflite", "modelplan.formats.tflite.tflite_graph", "a TFLite flatbuffer", _is_tflite),
        Loader(".onnx", "modelplan.formats.onnx.onnx_graph", "an ONNX protobuf", _is_onnx),
        Loader(".csv", "modelplan.formats.problem_csv", "a CSV table of buffers", _is_text, table=True),
        Loader(".pte", "modelplan.formats.executorch_program", "an ExecuTorch program", _is_pte, table=True),
        Loader(
            ".txt", "modelplan.formats.xla_dump", "a dump of XLA, NAME-buffer-assignment.txt", _is_xla_dump, table=True
        ),
    )
}


def load(
    path: str | Path, dims: Iterable[str] = (), shapes: Iterable[str] = (), values: Iterable[str] = ()
) -> Graph | Problem:
    """What the file `path` holds: a model as a Graph, buffers as a Problem.

    Args:
        path: the file; its suffix and its first bytes must agree.
        dims: extents that the file leaves open, each `SYMBOL=N` or, to plan for a bound, `SYMBOL<=N`.
        shapes: shapes of tensors whose extents the file leaves open, each `TENSOR=N,N,...`.
        values: values of inputs of an .onnx file that decide which branch runs or how large a tensor is, each
            `INPUT=N,...`; fewer numbers than the input has are repeated.

    Raises:
        RequestError: a binding that cannot be read or that nothing in the file asks for.
        ModelError: the file is missing, damaged or not supported; one line with the file, the place in it,
            what was found and what was expected.
    """
    return _loaded(Path(path), parsed(dims, shapes, values))


def _loaded(path: Path, asked: Dims) -> Graph | Problem:
    """What the file holds, with what `asked` binds of it."""
    row = _row(path)
    if row.table:
        asked.check_used(())
        return load_table(path).problem
    loaded = _read(path, row, lambda module: module.read(path, asked))
    assert isinstance(loaded, Graph)
    object.__setattr__(loaded, "source", str(path))  # `replace` would check the whole graph once more
    return loaded


def load_model(
    path: str | Path,
    dims: Iterable[str] = (),
    shapes: Iterable[str] = (),
    values: Iterable[str] = (),
    types: Mapping[str, bytes] | None = None,
) -> Graph:
    """The model in the file `path`; a problem is a RequestError that names the commands for it.

    `types` are those of computed values of an .onnx file for which neither it nor its reader has one.
    """
    asked = parsed(dims, shapes, values)
    asked.types.update(types or {})
    loaded = _loaded(Path(path), asked)
    if isinstance(loaded, Problem):
        raise RequestError(f"{path} holds a problem, not a model; use `modelplan solve` or `modelplan compare`")
    return loaded


def load_as_run(
    path: str | Path, dims: Iterable[str] = (), shapes: Iterable[str] = (), values: Iterable[str] = ()
) -> Graph:
    """The graph of an .onnx file with every node as an operator, those too that only constants feed.

    So a session runs it that optimizes nothing.

    Raises:
        ModelError: with every node as an operator an extent is not known, or the file is damaged.
    """
    from modelplan.formats.onnx.onnx_graph import read_unfolded

    try:
        return read_unfolded(Path(path), parsed(dims, shapes, values))
    except (ValueError, TypeError, OverflowError, RecursionError, OSError) as problem:
        raise ModelError(_one_line(f"{path}: {problem}")) from None


def as_graph(given: Graph | str | PathLike[str]) -> Graph:
    """A graph as it is, or that of the file whose path is given.

    Raises:
        ModelError: as `load`.
        RequestError: it is neither.
    """
    if isinstance(given, (str, PathLike)):
        return load_model(fspath(given))
    if not isinstance(given, Graph):
        raise RequestError(f"found {type(given).__name__} {given!r:.60}, expected a Graph of `load` or a model's path")
    return given


def load_table(path: str | Path, part: str = "") -> BufferTable:
    """The problem in the file `path`, with the offsets that it states.

    Args:
        path: a table of buffers as .csv, an ExecuTorch program, or a buffer assignment dumped by XLA.
        part: which memory of a program, or which allocation of a dump, where there are several.

    Raises:
        RequestError: the file holds a model, has no such part, or several where none is named.
        ModelError: as `load`.
    """
    path = Path(path)
    row = _row(path)
    if not row.table:
        raise RequestError(f"{path} holds a model, not a problem; use `modelplan analyze`")
    table: BufferTable = _read(path, row, lambda module: module.read_table(path, part))
    return table


def is_table(path: str | Path) -> bool:
    """Whether the suffix of the file is that of a table of buffers."""
    return _row(Path(path)).table


def _read(path: Path, row: Loader, read: Callable[[ModuleType], _Loaded]) -> _Loaded:
    """What `read` reads with the loader's module, after a look at the first bytes; its errors on one line."""
    head = _head(path)
    if not row.matches(head):
        raise ModelError(f"{path}: found {_description(head)}, expected {row.what}")
    try:
        return read(import_module(row.module))
    except ModelError as problem:
        problem.args = (_one_line(str(problem)),)
        raise
    except (ValueError, OSError) as problem:
        raise ModelError(_one_line(f"{path}: {problem}")) from None


#: The modules that read what a graph leaves out.
_CONTENTS = {"onnx": "modelplan.formats.onnx.onnx_contents", "tflite": "modelplan.formats.tflite.tflite_contents"}


def read_contents(content: bytes, path: str, graph: Graph) -> Contents:
    """What the model file `path` with these bytes says beside the graph that was read from it.

    Raises:
        ModelError: a part of the file that the graph does not need is damaged.
    """
    module = import_module(_CONTENTS[graph.format])
    try:
        contents = module.read_contents_of(content, graph)
    except (struct.error, IndexError, KeyError, TypeError, AttributeError, ValueError, OverflowError) as problem:
        raise ModelError(f"{path}: values, options or quantisation: {' '.join(str(problem).split())[:300]}") from None
    return cast("Contents", contents)


def _one_line(message: str) -> str:
    """The message on one line and of bounded length, whatever the names in the file are."""
    line = " ".join(message.splitlines())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]} ..."


def _row(path: Path) -> Loader:
    suffix = inner_suffix(path)
    if suffix not in LOADERS or (is_wrapped(path) and LOADERS[suffix].table):
        _refuse(path, f"the suffix {suffix!r}" if suffix else "no suffix")
    return LOADERS[suffix]


def _refuse(path: Path, description: str) -> NoReturn:
    """Says what the file is and which conversion leads here, or only what was expected."""
    if path.exists() and not path.is_file() and not path.is_dir():
        description = "a device or pipe"
    kind = way_out(path)
    raise ModelError(
        f"{_as_typed(path)}: {kind}" if kind else f"{path}: found {description}, expected one of {', '.join(LOADERS)}"
    )


def _as_typed(path: Path) -> str:
    """The path; of the two slashes of a URL a Path keeps one."""
    return re.sub(r"^([a-z0-9]+):/(?!/)", r"\1://", str(path))


def _head(path: Path) -> bytes:
    """The first bytes of a regular, non-empty file; anything else could hang or hold nothing."""
    if is_wrapped(path):
        return read_model(path)[:256]
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            _refuse(path, "a directory, expected a file")
        if not stat.S_ISREG(mode):
            raise ModelError(f"{path}: found a device or pipe, expected a file")
        with path.open("rb") as file:
            head = file.read(256)
    except FileNotFoundError as problem:
        kind = way_out(path) or f"{problem.strerror}{did_you_mean(path.name, _models_beside(path))}"
        raise ModelError(f"{_as_typed(path)}: {kind}") from None
    except (OSError, ValueError) as problem:
        raise ModelError(f"{path}: {getattr(problem, 'strerror', None) or problem}") from None
    if not head:
        raise ModelError(f"{path}: the file is empty")
    return head


def _models_beside(path: Path) -> list[str]:
    """The names of the models in the folder in which `path` would be."""
    try:
        return [file.name for file in path.parent.iterdir() if file.suffix.lower() in LOADERS]
    except OSError:
        return []


def _description(head: bytes) -> str:
    for row in LOADERS.values():
        if row.suffix != ".csv" and row.matches(head):
            return row.what
    if head.startswith(b"version https://git-lfs."):
        return "a pointer of Git LFS, which `git lfs pull` replaces by the file"
    return "text" if _is_text(head) else f"bytes that start {head[:8].hex(' ')}"
