"""Whether the modelplan that tests import is that of their checkout, with its compiled core."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

INSTALL = "pip install --no-build-isolation -e '.[test]'"


def wrong_install(checkout: Path) -> str:
    """What is wrong with the modelplan that is imported, in one line; empty where it is that of the checkout."""
    package = find_spec("modelplan")
    if package is None or package.origin is None:
        return f"modelplan is not installed: {INSTALL}"
    folder = Path(package.origin).parent
    if other := differing(folder, checkout / "modelplan"):
        return f"modelplan is imported from {folder}, where {other} is not that of this checkout: {INSTALL}"
    if find_spec("modelplan.primitives._core") is None:
        return f"modelplan is imported from {folder}, which has no compiled core: {INSTALL}, then `pytest`"
    return ""


def differing(one: Path, other: Path) -> str:
    """The first source file that one of two folders lacks, or has otherwise; empty where they are alike."""
    if one.resolve() == other.resolve():
        return ""
    mine, its = ({p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.py")} for folder in (one, other))
    return min((path.as_posix() for path in {*mine, *its} if mine.get(path) != its.get(path)), default="")
