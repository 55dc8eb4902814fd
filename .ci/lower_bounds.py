"""Prints what the package and its tests need at the lower bounds that pyproject.toml states, for `pip install -r`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())["project"]


def requirements(extra: str) -> Iterator[str]:
    """What an extra needs, those that it names included."""
    for requirement in project["optional-dependencies"][extra]:
        if named := re.fullmatch(r"modelplan\[(.*)\]", requirement):
            for other in named[1].split(","):
                yield from requirements(other)
        else:
            yield requirement


for requirement in [*project["dependencies"], *requirements("test-all")]:
    print(requirement.replace(">=", "=="))
