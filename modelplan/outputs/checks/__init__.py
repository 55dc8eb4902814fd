"""What `check` found out, in the formats that people and continuous integration read."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from modelplan.answers.check_outcomes import Findings

#: The version of the JSON document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1

#: Formats, and the module and function that write each; the module is imported when it is used.
FORMATS = {
    "text": ("report", "plain_text"),
    "json": ("size_limit", "json_rows"),
    "markdown": ("markdown", "pull_request_comment"),
    "junit": ("junit", "junit_document"),
    "github": ("github", "workflow_commands"),
}


def formatted(findings: Findings, name: str) -> str:
    """The findings in one of the formats."""
    module, function = FORMATS[name]
    return cast("str", getattr(import_module(f"modelplan.outputs.checks.{module}"), function)(findings))
