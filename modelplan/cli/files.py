"""Writing files: whole or not at all, `-` for standard output."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from modelplan.formats.whole_files import way_out
from modelplan.primitives.errors import ModelError, RequestError


def check_outputs(outputs: Iterable[str | None], inputs: Iterable[str], *, force: bool | None = None) -> None:
    """Checks, before any work is done, that outputs can be written: each to a place of its own that is no input.

    `force` is the command's option to put an output in the place of an input; None where it has no such option.
    """
    sources = [Path(path) for path in inputs if Path(path).exists()]
    named = [output for output in outputs if output is not None]
    for output in named:
        if named.count(output) > 1 and not (Path(output).exists() and not Path(output).is_file()):
            raise RequestError(f"{'standard output' if output == '-' else output}: two outputs go there")
        if output == "-":
            continue
        if Path(output).is_dir():
            raise RequestError(f"cannot write {output}: it is a folder")
        if not Path(output).parent.is_dir():
            raise RequestError(f"cannot write {output}: there is no folder {Path(output).parent}")
        if not force and Path(output).exists() and any(Path(output).samefile(source) for source in sources):
            raise RequestError(f"{output} is the input" + ("; --force replaces it" if force is not None else ""))


def models_of(paths: Sequence[str]) -> list[str]:
    """The files and, of each folder, the .tflite and .onnx files in it and below, sorted."""
    models: list[str] = []
    for path in paths:
        inside = _models_in(Path(path)) if Path(path).is_dir() and not way_out(path) else [path]
        if not inside:
            raise ModelError(f"{path}: a folder without .tflite or .onnx files")
        models += inside
    return models


def _models_in(folder: Path) -> list[str]:
    return sorted(str(file) for kind in ("*.tflite", "*.onnx") for file in folder.rglob(kind) if file.is_file())


def check_suffix(output: str, suffix: str) -> None:
    """Refuses to write a model under the name of another kind of file; `-`, devices and pipes have no kind."""
    path = Path(output)
    if output != "-" and path.suffix.lower() != suffix and (path.is_file() or not path.exists()):
        raise RequestError(f"{output}: expected a name that ends in {suffix}")


def write(path: str, content: str | bytes) -> None:
    """Puts `content` into the file `path` in one step, so that an interruption leaves no half of it.

    A device or pipe is written to as it is.

    Raises:
        RequestError: the place cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    if path == "-":
        sys.stdout.buffer.write(data)
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(target.resolve(), data)
    except OSError as problem:
        raise RequestError(f"cannot write {path}: {problem.strerror}") from None


def make_folder(path: Path) -> None:
    """Makes the folder and those that it lies in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise RequestError(f"cannot make the folder {path}: {problem.strerror}") from None


def _replace(target: Path, data: bytes) -> None:
    import tempfile  # with what it imports it takes as long as all of the command line

    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(draft).chmod(0o666 & ~mask)
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
