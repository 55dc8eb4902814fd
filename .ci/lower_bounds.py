"""Prints what the package and its tests need at the lower bounds that pyproject.toml states, for `pip install -r`."""

from __future__ import annotations

import tomllib
from pathlib import Path

EXTRAS = ("browser", "completion", "cpsat", "fleet", "memories", "search", "targets", "tflm", "verify", "test")

project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())["project"]
extras = [requirement for extra in EXTRAS for requirement in project["optional-dependencies"][extra]]
for requirement in [*project["dependencies"], *extras]:
    if not requirement.startswith("modelplan["):
        print(requirement.replace(">=", "=="))
