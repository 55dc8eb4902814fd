"""Whether two checkouts answer alike: `python tests/sweeps/equal_plans.py OLD NEW` plans every model file by both.

OLD and NEW are folders that hold a `modelplan` with its compiled core. Compared are the words of `analyze` and the plan
in JSON, byte by byte, of models/, of $MODELPLAN_CORPUS and of the files that are named besides.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("MODELPLAN_CORPUS", ROOT.parent / "shared" / "corpus"))

#: Prints a line for each file: exit code, digest of what was printed and of the plan, path. An editable installation
#: would find its own checkout first, and so compare it with itself.
RUN = """
import contextlib, hashlib, io, pathlib, sys, tempfile
sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in type(one).__module__]
import modelplan
assert modelplan.__file__.startswith(sys.argv[1]), f"{modelplan.__file__} is not in {sys.argv[1]}"
from modelplan.cli import main
for path in sys.argv[2:]:
    with tempfile.TemporaryDirectory() as folder:
        plan, words = pathlib.Path(folder, "plan.json"), io.StringIO()
        with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words):
            code = main(["analyze", path, "--json", str(plan)])
        written = plan.read_bytes() if plan.exists() else b""
        print(code, hashlib.sha256(words.getvalue().encode() + written).hexdigest(), path, flush=True)
"""


def answers(checkout: str, models: list[str]) -> list[str]:
    folder = str(Path(checkout).resolve())
    environment = os.environ | {"PYTHONPATH": folder}
    command = [sys.executable, "-P", "-c", RUN, folder, *models]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def main(old: str, new: str, *more: str) -> int:
    found = [path for folder in (ROOT / "models", CORPUS) for path in folder.rglob("*")]
    models = [*sorted(str(path) for path in found if path.suffix in (".tflite", ".onnx")), *more]
    pairs = list(zip(answers(old, models), answers(new, models), strict=True))
    for before, after in pairs:
        if before != after:
            print(f"old {before}\nnew {after}")
    differing = sum(before != after for before, after in pairs)
    print(f"{len(pairs)} files, {differing} answered differently")
    return min(differing, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
