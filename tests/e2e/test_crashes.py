"""Files on which an earlier build hung, printed a traceback or was wrong: every command ends with an exit code."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import COMMAND

FOLDER = Path(os.environ.get("MODELPLAN_CORPUS", Path(__file__).parents[3] / "shared" / "corpus")) / "crashes"
FILES = sorted(FOLDER.iterdir()) if FOLDER.is_dir() else []
#: Seconds of computing, which a busy machine does not change.
SECONDS = 10
MODEL = Path(__file__).parents[2] / "models" / "ds_cnn_kws.tflite"

COMMANDS: dict[str, Callable[[Path, Path], list[list[object]]]] = {
    ".tflite": lambda file, out: [
        ["analyze", file, "--json", out / "plan.json"],
        ["check", file, "--budget", "20KiB"],
        ["pack", file, "-o", out / "packed.tflite", "--alias", "safe"],
        ["verify", file, "--quick"],
    ],
    ".onnx": lambda file, out: [["analyze", file, "--json", out / "plan.json"], ["check", file, "--budget", "1KiB"]],
    ".json": lambda file, out: [["verify", file, "--quick"], ["verify", file, "--quick", "--model", MODEL]],
    ".streams": lambda file, out: [["analyze", MODEL, "--alias", "none", "--streams", file]],
    ".ov": lambda file, out: [["analyze", MODEL, "--overlaps", file]],
}


def test_there_are_files(corpus: Path) -> None:
    assert FILES == sorted((corpus / "crashes").iterdir()) != []
    assert {file.suffix for file in FILES} <= COMMANDS.keys()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_command_ends_with_an_exit_code(file: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    for words in COMMANDS[file.suffix](file, tmp_path):
        done = subprocess.run(  # no thread runs here
            [COMMAND, *map(str, words)], capture_output=True, text=True, timeout=300, check=False, preexec_fn=limit
        )
        assert 0 <= done.returncode <= 4, (words, done.stderr)
        assert "Traceback" not in done.stderr
        assert done.returncode < 2 or len(done.stderr.splitlines()) == 1
