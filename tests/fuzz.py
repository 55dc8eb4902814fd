"""Throws damaged files at a loader: `python tests/fuzz.py onnx|tflite --seconds 1800 [--keep FOLDER] FILE...`.

Each case runs under the promise of `load`: a Graph or a ModelError, in under 10 seconds and 1 GiB. Whatever breaks it
is written to FOLDER (default tests/regressions), and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
from pathlib import Path

import mutations

SECONDS, BYTES = 10, 1 << 30
_BATCH = 400


def promise(path: Path) -> str:
    """What broke, or nothing."""
    from modelplan import Graph, ModelError, load

    try:
        found = load(path)
    except ModelError as problem:
        return "" if "\n" not in str(problem) and str(path) in str(problem) else f"message: {str(problem)[:200]}"
    except BaseException as problem:  # noqa: BLE001
        return f"{type(problem).__name__}: {str(problem)[:200]}"
    return "" if isinstance(found, Graph) else f"a {type(found).__name__}"


def _limited(files: list[Path], seeds: range, suffix: str, note: Path) -> None:
    """One process works through some seeds; `note` holds the seed at hand, for when the process dies of it."""
    from modelplan.loaders import onnx, tflite  # noqa: F401  # what is imported does not count as the file's memory

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    for seed in seeds:
        target = note.with_suffix(suffix)
        source = files[seed % len(files)]
        target.write_bytes(mutations.case(seed, source.read_bytes(), suffix))
        note.write_text(f"{seed} {source.name}")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # time of this process, not of a busy machine
        broken = promise(target)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if broken:
            note.write_text(f"{seed} {source.name}: {broken}")
            os._exit(1)
    os._exit(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("format", choices=("onnx", "tflite"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--keep", type=Path, default=Path(__file__).parent / "regressions")
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    suffix, files = f".{arguments.format}", sorted(arguments.files)
    note = Path(os.environ.get("TMPDIR", "/tmp")) / f"fuzz-{os.getpid()}.note"
    end, failures, seed = time.monotonic() + arguments.seconds, 0, arguments.first
    while time.monotonic() < end:
        child = os.fork()
        if not child:
            _limited(files, range(seed, seed + _BATCH), suffix, note)
        _, status = os.waitpid(child, 0)
        if status == 0:
            seed += _BATCH
            continue
        failures += 1
        last = note.read_text()
        print(f"status {status}: {last}", flush=True)
        arguments.keep.mkdir(exist_ok=True)
        (arguments.keep / f"seed{last.split()[0]}{suffix}").write_bytes(note.with_suffix(suffix).read_bytes())
        seed = int(last.split()[0]) + 1
    print(f"{seed - arguments.first} cases from {len(files)} files, {failures} broke the promise")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
