"""Reads whole files; a file that cannot be read is a ModelError that names it."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any

from modelplan.formats.unpacking import STANDARD_INPUT, standard_input, unwrapped
from modelplan.primitives.errors import ModelError

if TYPE_CHECKING:
    from mmap import mmap


def read_bytes(path: str | Path) -> bytes:
    """The content of the file.

    Raises:
        ModelError: there is none, it cannot be read, or it is a device or pipe, which need not end.
    """
    try:
        mode = Path(path).stat().st_mode
        if not S_ISREG(mode) and not S_ISDIR(mode):
            raise ModelError(f"{path}: found a device or pipe, expected a file")
        return Path(path).read_bytes()
    except OSError as problem:
        raise ModelError(f"{path}: {problem.strerror}") from None


def read_model(path: str | Path) -> bytes:
    """The bytes of the model in the file, also of one inside of a gzip file, C source or standard input."""
    if str(path) == STANDARD_INPUT:
        return standard_input()
    return unwrapped(path, read_bytes(path))


def read_text(path: str | Path) -> str:
    """The content of the file, decoded as UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ModelError(f"{path}: not text: {problem.reason}") from None


def read_toml_table(path: str | Path) -> dict[str, Any]:
    """The document in a TOML file.

    Raises:
        ModelError: names the file and what is wrong with it.
    """
    import tomllib

    text = read_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ModelError(f"{path}: not TOML: brackets too deep inside each other") from None
    except tomllib.TOMLDecodeError as problem:
        raise ModelError(f"{path}: not TOML: {problem}") from None
    except ValueError:
        raise ModelError(f"{path}: not TOML: a number has too many digits") from None


def fingerprint(content: bytes | mmap) -> str:
    """The SHA-256 of a file's bytes in hexadecimal, which a plan keeps of the model that it was made for."""
    return sha256(content).hexdigest()
