"""Whether answers depend on the machine: `python tests/sweeps/busy_machine.py MODEL...` asks on one core, on two, and
beside ten processes that do nothing but compute, and compares all that is written and said, byte by byte.

Asked are `fit --least`, `fit --runtime c` and `explain` of `--modelplan`. Exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: What is asked of a model: its path stands for "{}", its suffix for "SUFFIX".
COMMANDS = {
    "fit": ("fit", "{}", "--least", "-o", "outSUFFIX"),
    "c": ("fit", "{}", "--runtime", "c", "-o", "out.c"),
    "explain": ("explain", "{}", "--json", "out.json"),
}


def answer(program: str, model: Path, words: tuple[str, ...], cores: set[int], niceness: int) -> str:
    """The exit code, and a digest of the words and of each file."""

    def placed() -> None:
        os.sched_setaffinity(0, cores)
        os.nice(niceness)

    filled = [word.replace("{}", str(model)).replace("SUFFIX", model.suffix) for word in words]
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run([program, *filled], cwd=name, capture_output=True, preexec_fn=placed, check=False)
        digest = hashlib.sha256(done.stdout + done.stderr)
        for path in sorted(Path(name).iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
    return f"exit {done.returncode}, {digest.hexdigest()[:16]}"


@contextmanager
def busy(count: int, niceness: int) -> Iterator[None]:
    """So many processes that compute as long as this lasts."""
    spin = [sys.executable, "-c", f"import os; os.nice({niceness})\nwhile True: pass"]
    processes = [subprocess.Popen(spin) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--modelplan", default=str(Path(sys.executable).parent / "modelplan"), help="the program")
    parser.add_argument("--busy", type=int, default=10, help="processes beside it (default: %(default)s)")
    parser.add_argument("--nice", type=int, default=0, help="of them and of the command (default: %(default)s)")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    bad = 0
    for model in (path.resolve() for path in arguments.models):
        for name, words in COMMANDS.items():
            quiet = {f"on {count}": answer(arguments.modelplan, model, words, {*cores[:count]}, 0) for count in (1, 2)}
            with busy(arguments.busy, arguments.nice):
                loaded = answer(arguments.modelplan, model, words, {*cores[:2]}, arguments.nice)
            answers = {**quiet, "busy": loaded}
            equal = len({*answers.values()}) == 1
            bad += not equal
            print(
                f"{'equal' if equal else 'differs'}: {name} {model.name}: {answers if not equal else loaded}",
                flush=True,
            )
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
