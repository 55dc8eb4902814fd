"""Hooks of mkdocs: links that leave docs/ become plain text, two pages are filled when the site is built, and the
repository that hosts this, `extra.repository` of mkdocs.yml, stands for its placeholder.

`pages.md` embeds the pages that were drawn, `options.md` gets the help of every command.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from modelplan.cli import parser_of
from modelplan.cli.command_table import COMMANDS, MODES

#: What the pages write for the account and the repository.
PLACEHOLDER = "OWNER/modelplan"


def on_page_markdown(markdown: str, page: Any, files: Any, config: Any = None, **_: Any) -> str:
    """The text of a page as the site shows it. `files` are those that this build copies: a page drawn later is none."""
    if page.file.src_uri == "pages.md":
        drawn = [PurePosixPath(name) for name in sorted(files.src_uris) if name.startswith("pages/")]
        markdown += "".join(map(embedded, drawn)) or "\nThis build has none.\n"
    if page.file.src_uri == "options.md":
        markdown += "".join(map(helped, [*COMMANDS, *(mode.module for mode in MODES if not mode.first)]))
    if config is not None:
        markdown = markdown.replace(PLACEHOLDER, config["extra"]["repository"])
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]+\)", r"`\1`", markdown)


def helped(command: str) -> str:
    """A heading, and what `--help` of a command prints."""
    parser = parser_of(command)
    return f"\n## {parser.prog}\n\n```text\n{parser.format_help()}```\n"


def embedded(path: PurePosixPath) -> str:
    """A heading, a link and a frame for a page."""
    frame = f'<iframe src="{path}" title="{path.stem}" style="width:100%;height:80vh;border:0"></iframe>'
    return f"\n## {path.stem}\n\n[Open it alone]({path})\n\n{frame}\n"
