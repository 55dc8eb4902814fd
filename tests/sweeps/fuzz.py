"""Throws damaged files at the commands: `python tests/sweeps/fuzz.py KIND --cases 20000 [--keep FOLDER] [FILE...]`.

KIND is tflite, onnx, csv, json, overlaps, streams or header. Every case goes through the commands that read such a
file, and `load` where it is a model. The promise: an exit code of 0 to 4, one line on an error, no exception, in under
10 seconds of computing and 1 GiB. What breaks it is written to FOLDER (default tests/regressions), and the exit code
is 1. Without a FILE, small files of the kind are made first.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mutations

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
import tflite_models

SECONDS, BYTES = 10, 1 << 30
_BATCH = 200


def promise(path: Path) -> str:
    """What broke the promise of `load`, or nothing."""
    from modelplan import Graph, ModelError, load

    try:
        found = load(path)
    except ModelError as problem:
        return "" if "\n" not in str(problem) and str(path) in str(problem) else f"message: {str(problem)[:200]}"
    except BaseException as problem:  # noqa: BLE001
        return f"{type(problem).__name__}: {str(problem)[:200]}"
    return "" if isinstance(found, Graph) else f"a {type(found).__name__}"


def command_promise(words: Sequence[str]) -> str:
    """What broke the promise of a command line, or nothing."""
    from modelplan.cli import main

    errors = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            code = main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException as problem:  # noqa: BLE001
        return f"{' '.join(words)}: {type(problem).__name__}: {str(problem)[:200]}"
    lines = errors.getvalue().splitlines()
    if code not in range(5):
        return f"{' '.join(words)}: exit code {code}"
    if any(not line.isprintable() for line in lines) or (code >= 2 and len(lines) != 1):
        return f"{' '.join(words)}: exit code {code} with {errors.getvalue()[:200]!r}"
    return ""


@dataclass(frozen=True)
class Kind:
    """One kind of file: its suffix, the files to damage, and the command lines for a case, given a work folder."""

    suffix: str
    make: Callable[[Path], list[Path]]
    commands: Callable[[str, Path], list[list[str]]]


def _tflite_files(folder: Path) -> list[Path]:
    from modelplan.cli import main

    made = {
        "branching": tflite_models.branching(),
        "looping": tflite_models.looping(),
        "nested": tflite_models.nested(3),
        "while": tflite_models.nested(2, "WHILE"),
    }
    paths = []
    for name, content in made.items():
        paths.append(folder / f"{name}.tflite")
        paths[-1].write_bytes(content)
        packed = folder / f"{name}_packed.tflite"
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["pack", str(paths[-1]), "-o", str(packed), "--force"]) == 0
        paths.append(packed)
    return paths


def _onnx_files(_: Path) -> list[Path]:
    import onnx

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    models = Path(__file__).parents[2] / "models"
    return [models / "decoder_kv.onnx", models / "resnet8.onnx", light / "light_squeezenet.onnx"]


def _written(folder: Path, options: dict[str, Sequence[str]]) -> list[Path]:
    """The files that `analyze` and `pack` write for a small model, by name."""
    from modelplan.cli import main

    model = folder / "model.tflite"
    model.write_bytes(tflite_models.branching())
    paths = []
    for name, words in options.items():
        paths.append(folder / name)
        with contextlib.redirect_stdout(io.StringIO()):
            assert main([words[0], str(model), *words[1:], str(paths[-1])]) == 0
    return paths


def _csv_files(folder: Path) -> list[Path]:
    plain = folder / "plain.csv"
    plain.write_text("id,lower,upper,size\na,0,3,4\nb,1,9,4\nc,3,9,12\n")
    fuller = folder / "fuller.csv"
    fuller.write_text("buffer,start,end,size,alignment,pin,kind\na,0,3,4,2,,tensor\nb,1,9,4,,8,scratch\n")
    return [plain, fuller, *_written(folder, {"plan.csv": ("analyze", "--csv")})]


def _text_files(folder: Path, rows: dict[str, str]) -> list[Path]:
    _written(folder, {})
    for name, text in rows.items():
        (folder / name).write_text(text)
    return [folder / name for name in rows]


def _with_model(command: Sequence[str], case: str, folder: Path, option: str) -> list[str]:
    return [*command, str(folder / "model.tflite"), option, case]


KINDS = {
    "tflite": Kind(".tflite", _tflite_files, lambda case, folder: [
        ["check", case, "--budget", "20KiB"],
        ["pack", case, "-o", str(folder / "out.tflite"), "--kernels", "reference", "--shim", str(folder / "out.h")],
        ["verify", case, "--quick"],
    ]),
    "onnx": Kind(".onnx", _onnx_files, lambda case, folder: [
        ["analyze", case, "--schedule", "file", "--dim", "batch=1"],
        ["check", case, "--budget", "20KiB"],
    ]),
    "csv": Kind(".csv", _csv_files, lambda case, folder: [
        ["solve", case],
        ["verify", case, "--quick", "--model", str(folder / "model.tflite")],
    ]),
    "json": Kind(".json", lambda folder: _written(folder, {
        "views.json": ("analyze", "--json"), "max.json": ("analyze", "--alias", "max", "--json"),
        "streams.json": ("analyze", "--streams", "2", "--alias", "none", "--json"),
    }), lambda case, folder: [
        ["verify", case, "--quick"], ["verify", case, "--quick", "--model", str(folder / "model.tflite")],
    ]),
    "overlaps": Kind(".csv", lambda folder: _text_files(folder, {
        "a.csv": "output,input,bytes\ny,x,48\n", "b.csv": "output,input,bytes\nout,z,16\nout,y,4\n"
    }), lambda case, folder: [
        _with_model(["analyze"], case, folder, "--overlaps"),
    ]),
    "streams": Kind(".txt", lambda folder: _text_files(folder, {
        "a.txt": "op,stream\n0,0\n1,1\n2,0\n", "b.txt": "0,5\n1,5\n2,6\n"
    }), lambda case, folder: [
        _with_model(["analyze", "--alias", "none"], case, folder, "--streams"),
    ]),
    "header": Kind(".h", lambda folder: [
        *_written(folder, {"plan.h": ("pack", "-o", str(folder / "out.tflite"), "--kernels", "reference", "--shim")})
    ], lambda case, folder: [
        ["verify", case, "--quick", "--model", str(folder / "model.tflite")],
    ]),
}  # fmt: skip


def broken(kind: Kind, case: Path, folder: Path) -> str:
    """What broke the promises for the file `case`, or nothing."""
    found = promise(case) if kind.suffix in (".tflite", ".onnx") else ""
    lines = iter(kind.commands(str(case), folder))
    while not found and (words := next(lines, None)):
        found = command_promise(words)
    return found


def _limited(kind: Kind, files: list[Path], seeds: range, folder: Path) -> None:
    """One process works through some seeds; the file `note` holds the seed at hand, for when the process dies of it."""
    from modelplan.formats.tflite import tflite_graph as tflite  # noqa: F401
    from modelplan.planning import pipeline  # noqa: F401  # what is imported does not count as the file's memory

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    note, case = folder / "note", folder / f"case{kind.suffix}"
    for seed in seeds:
        source = files[seed % len(files)]
        case.write_bytes(mutations.case(seed, source.read_bytes(), kind.suffix))
        note.write_text(f"{seed} {source.name}")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # time of this process, not of a busy machine
        found = broken(kind, case, folder)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if found:
            note.write_text(f"{seed} {source.name}: {found}")
            os._exit(1)
    os._exit(0)


def run(kind: Kind, files: list[Path], seeds: range, folder: Path, end: float, keep: Path) -> tuple[int, int]:
    """Works through the seeds until `end` (of time.monotonic); returns how many were done and how many broke."""
    seed, failures = seeds.start, 0
    while seed < seeds.stop and time.monotonic() < end:
        child = os.fork()
        if not child:
            _limited(kind, files, range(seed, min(seed + _BATCH, seeds.stop)), folder)
        _, status = os.waitpid(child, 0)
        if status == 0:
            seed = min(seed + _BATCH, seeds.stop)
            continue
        failures += 1
        last = (folder / "note").read_text()
        print(f"status {status}: {last}", flush=True)
        keep.mkdir(exist_ok=True)
        (keep / f"seed{last.split()[0]}{kind.suffix}").write_bytes((folder / f"case{kind.suffix}").read_bytes())
        seed = int(last.split()[0]) + 1
    return seed - seeds.start, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--keep", type=Path, default=Path(__file__).parents[1] / "regressions")
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    kind, first = KINDS[arguments.kind], arguments.first
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = kind.make(folder)
        files = sorted(arguments.files) or made
        seeds = range(first, first + arguments.cases)
        done, failures = run(kind, files, seeds, folder, time.monotonic() + arguments.seconds, arguments.keep)
    print(f"{done} cases from {len(files)} files, {failures} broke the promise")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
