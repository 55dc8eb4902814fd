"""The example of docs/explain.md is what the command prints."""

from __future__ import annotations

import re

import pytest
from documented import ROOT, printed_as_shown

PAGE = ROOT / "docs" / "explain.md"
EXAMPLE = re.compile(r"(## Example\n\n```sh\nmodelplan ([^\n]*)\n```\n\n```text\n)(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_the_example_is_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pytestconfig: pytest.Config
) -> None:
    monkeypatch.chdir(ROOT)
    assert printed_as_shown(PAGE, EXAMPLE, capsys, update=pytestconfig.getoption("--update"))
