"""Every picture of the README and of docs/ is drawn by the command that stands beside it, and shows today's plan.

`pictures.txt` holds, for each picture, what was drawn and the digests of the plan and of the file. Pixels differ a
little between versions of matplotlib; plans do not, so the plan is compared exactly and the pixels roughly.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from modelplan.cli import main

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "pictures.txt"
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "gallery.md")]

#: The columns of a plan that a figure draws.
DRAWN = ("id", "lower", "upper", "size", "offset")

#: The share of pixels that another version of matplotlib may draw otherwise; a plan of other heights changes 25 %.
TOLERANCE = 0.05


def pictures() -> dict[Path, str]:
    """The picture files that pages show, below the root, each with the command that draws it."""
    found = {}
    for page in PAGES:
        text = page.read_text()
        commands = dict(
            re.findall(r"`modelplan ((?:analyze|together|memories|recompute|stream) [^`]* --(?:draw|out) (\S+))`", text)
        )
        drawn = {picture: command for command, picture in commands.items()}
        for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
            picture = (page.parent / link).resolve().relative_to(ROOT)
            found[picture] = drawn.get(str(picture), "")
    return found


def redraw(command: str, picture: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """Runs the command of a picture in `folder`; returns the new file, and the line of `pictures.txt` for its plan."""
    (folder / "models").symlink_to(ROOT / "models")
    (folder / picture).parent.mkdir(parents=True)
    monkeypatch.chdir(folder)
    if "large_decoder.onnx" in command:
        script = ROOT / "models" / "large_decoder.py"
        subprocess.run([sys.executable, script, "--layers", "16", "--out", "large_decoder.onnx"], check=True)
    if "stateful_svdf.tflite" in command:
        pytest.importorskip("ai_edge_litert")
        script = ROOT / "models" / "stateful_svdf.py"
        subprocess.run([sys.executable, script, "--out", "stateful_svdf.tflite"], check=True)
    if command.startswith("recompute "):
        return folder / picture, redraw_curve(command)
    words = command.split()
    moves = words[0] == "stream" or "--spill" in words
    assert main([*words, "--csv", "plan.csv"]) == 0
    with Path("plan.csv").open() as file:
        rows = [[row[column] for column in (row if moves else DRAWN)] for row in csv.DictReader(file)]
    return folder / picture, f"{len(rows)} buffers, plan {hashlib.sha256(repr(rows).encode()).hexdigest()[:16]}"


def redraw_curve(command: str) -> str:
    """Runs a command that draws a curve of a model, which is made first; returns what stands for its points."""
    name = command.split()[1].removesuffix(".onnx")
    maker = ROOT / "models" / ("onnx_training.py" if name.endswith("_step") else "onnx_nets.py")
    subprocess.run([sys.executable, maker, "--out", ".", "--only", name], check=True, capture_output=True)
    assert main([*command.split(), "--out", "curve.json"]) == 0
    points = json.loads(Path("curve.json").read_text())["points"]
    rows = [(point["height"], point["work"]) for point in points]
    return f"{len(rows)} points, curve {hashlib.sha256(repr(rows).encode()).hexdigest()[:16]}"


def test_every_picture_is_named_with_its_command() -> None:
    shown = pictures()
    assert shown
    assert not [str(picture) for picture, command in shown.items() if not command]
    stored = {path.relative_to(ROOT) for path in (ROOT / "docs" / "images").iterdir()}
    assert stored == set(shown)


@pytest.mark.slow
@pytest.mark.parametrize("picture", pictures(), ids=str)
def test_a_picture_shows_the_present_plan(
    picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    new, plan = redraw(pictures()[picture], picture, tmp_path, monkeypatch)
    lines = dict(line.split(": ", 1) for line in GOLDEN.read_text().splitlines())
    if request.config.getoption("--update"):
        shutil.copy(new, ROOT / picture)
    file = hashlib.sha256((ROOT / picture).read_bytes()).hexdigest()[:16]
    if request.config.getoption("--update"):
        lines[str(picture)] = f"{plan}, file {file}"
        GOLDEN.write_text("".join(f"{name}: {line}\n" for name, line in sorted(lines.items())))
    assert lines.get(str(picture)) == f"{plan}, file {file}", "run: pytest tests/golden/test_pictures.py --update"
    assert differing(new, ROOT / picture) <= TOLERANCE


def differing(one: Path, other: Path) -> float:
    """The share of pixels that differ by more than a quarter in some colour; 1 where the sizes differ."""
    left, right = (imread(path)[..., :3] for path in (one, other))
    return float((np.abs(left - right).max(axis=2) > 0.25).mean()) if left.shape == right.shape else 1.0
