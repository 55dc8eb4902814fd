"""The installed command, run as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).parent / "modelplan")


def run(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """One command line; a traceback is a failure whatever the test asks."""
    done = subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120, cwd=cwd, check=False
    )
    assert "Traceback" not in done.stderr
    return done
