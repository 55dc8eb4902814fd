"""Reads whole files; a file that cannot be read is a ModelError that names it."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from modelplan.formats.unpacking import is_wrapped, read_wrapped
from modelplan.primitives.errors import ModelError


def read_bytes(path: str | Path) -> bytes:
    """The content of the file."""
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise ModelError(f"{path}: {problem.strerror}") from None


def read_model(path: str | Path) -> bytes:
    """The bytes of the model in the file, also of one inside of a gzip file, C source or standard input."""
    if not is_wrapped(path):
        return read_bytes(path)
    try:
        return read_wrapped(path)
    except OSError as problem:
        raise ModelError(f"{path}: {problem.strerror}") from None


def read_text(path: str | Path) -> str:
    """The content of the file, decoded as UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ModelError(f"{path}: not text: {problem.reason}") from None


def read_toml_tables(path: str | Path) -> dict[str, Any]:
    """The document in a TOML file."""
    import tomllib

    try:
        return tomllib.loads(read_text(path))
    except RecursionError:
        raise ModelError(f"{path}: not TOML: too many brackets inside each other") from None
    except ValueError as problem:
        raise ModelError(f"{path}: not TOML: {str(problem).partition(';')[0]}") from None


def fingerprint(content: Any) -> str:
    """The SHA-256 of a file's bytes in hexadecimal, which a plan keeps of the model that it was made for."""
    return sha256(content).hexdigest()
