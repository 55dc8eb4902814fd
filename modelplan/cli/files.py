"""Writing files: whole or not at all, `-` for standard output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from modelplan.errors import RequestError


def write(path: str, content: str | bytes) -> None:
    """Puts `content` into the file `path` in one step, so that an interruption leaves no half of it.

    Raises:
        RequestError: the place cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    if path == "-":
        sys.stdout.buffer.write(data)
        return
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, data)
    except OSError as problem:
        raise RequestError(f"cannot write {path}: {problem.strerror}") from None


def _replace(target: Path, data: bytes) -> None:
    import tempfile  # with what it imports it takes as long as all of the command line

    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(draft).chmod(0o666 & ~_umask())
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
