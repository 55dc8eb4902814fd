"""Throws damaged files at the commands: `python tests/sweeps/fuzz.py KIND --cases 20000 [--keep FOLDER] [FILE...]`.

KIND is a row of `KINDS`: a kind of file that the program reads. Every case goes through the commands that read such a
file, and `load` where it is a model. The promise: an exit code of 0 to 4, one line on an error, no exception, in under
10 seconds of computing and 1 GiB. What breaks it is written to FOLDER (default tests/regressions), and the exit code
is 1. Without a FILE, small files of the kind are made first.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import mutations
import numpy as np

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

    output, errors = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException as problem:  # noqa: BLE001
        return f"{' '.join(words)}: {type(problem).__name__}: {str(problem)[:200]}"
    lines = errors.getvalue().splitlines()
    if code not in range(5):
        return f"{' '.join(words)}: exit code {code}"
    judged = "not judged" not in output.getvalue()  # a model without a verdict stands in the report
    if any(not line.isprintable() for line in lines) or (code >= 2 and judged and len(lines) != 1):
        return f"{' '.join(words)}: exit code {code} with {errors.getvalue()[:200]!r}"
    return ""


@dataclass(frozen=True)
class Kind:
    """One kind of file: its suffix, the files to damage, and the command lines for a case, given a work folder."""

    suffix: str
    make: Callable[[Path], list[Path]]
    commands: Callable[[str, Path], list[list[str]]]
    loads: bool = False


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


def _wrapped(folder: Path, name: str, wrap: Callable[[bytes], bytes]) -> list[Path]:
    """The small .tflite files inside of something else."""
    paths = []
    for model in _tflite_files(folder):
        paths.append(folder / f"{model.stem}{name}")
        paths[-1].write_bytes(wrap(model.read_bytes()))
    return paths


def _as_c(content: bytes) -> bytes:
    numbers = ", ".join(f"{byte:#04x}" for byte in content)
    return f"// a model\nalignas(16) const unsigned char model[] = {{ {numbers} }};\nint length = 9;\n".encode()


def _target_files(suffix: str) -> Callable[[Path], list[Path]]:
    """Files of tests/data/targets, and of the words that those have in common."""

    def make(folder: Path) -> list[Path]:
        _written(folder, {})
        found = [path for path in DATA.rglob(f"*{suffix}") if path.is_file()]
        return sorted(found) + _text_files(folder, {f"own{suffix}": _TARGETS[suffix]} if suffix in _TARGETS else {})

    return make


def _arrays(folder: Path) -> list[Path]:
    np.savez(folder / "plan.npz", offsets=np.arange(5), sizes=np.arange(5))
    return [folder / "plan.npz"]


def _manifests(folder: Path) -> list[Path]:
    rows = {
        "a.json": {"type": "micro", "model": "model.tflite", "micro": {"tensor_arena_size": 26080}},
        "b.json": {"model": "model.tflite", "version": 2, "micro": {"probability_cutoff": 0.9, "tensor_arena_size": 1}},
    }
    return _text_files(folder, {name: json.dumps(document, indent=1) for name, document in rows.items()})


def _saved(words: Sequence[str], name: str) -> Callable[[Path], list[Path]]:
    """The file `name` that a command writes for the small model."""

    def make(folder: Path) -> list[Path]:
        from modelplan.cli import main

        _text_files(folder, {"a.toml": _BUDGETS["a.toml"]})
        with contextlib.redirect_stdout(io.StringIO()):
            assert main([word.replace("FOLDER", str(folder)) for word in words]) == 0
        return [folder / name]

    return make


def _for_target(case: str, folder: Path) -> list[list[str]]:
    target = case if case.endswith(".toml") else f"from:{case}"
    small = ["--kernels", "reference", "--seconds", "0"]
    return [["targets", target], _with_model(["check", *small], target, folder, "--target")]


def _with_script(make: Callable[[Path], list[Path]]) -> Callable[[Path], list[Path]]:
    """The files, and beside them a linker script, own.ld."""

    def make_both(folder: Path) -> list[Path]:
        _text_files(folder, {"own.ld": _TARGETS[".ld"]})
        return make(folder)

    return make_both


def _programs(_: Path) -> list[Path]:
    """A small library of the package itself."""
    from modelplan.primitives.allocation_trace import LIBRARY

    return [LIBRARY]


def _for_program(case: str, folder: Path) -> list[list[str]]:
    script = f"from:{folder / 'own.ld'}"
    return [["targets", script, "--used", case], ["targets", script, "--used", case, "--arena-symbol", "arena"]]


def _for_name(case: str, folder: Path) -> list[list[str]]:
    """Commands with the text of the case as the name of kernels, a target, an ABI and a runtime."""
    name = os.fsdecode(Path(case).read_bytes()).replace("\0", "")
    model = ["check", str(folder / "model.tflite"), "--budget=20KiB"]
    return [[*model, f"--{option}={name}"] for option in ("kernels", "target", "abi", "runtime")]


DATA = Path(__file__).resolve().parents[1] / "data" / "targets"
_TARGETS = {
    ".ld": "MEMORY\n{\n  FLASH (rx) : ORIGIN = 0x08000000, LENGTH = 1024K\n"
    "  RAM (xrw) : ORIGIN = 0x20000000, LENGTH = (64K << 2) - DEFINED(x) ? 1 : 2 * (3 + ~0x10)\n}\n",
    ".dts": "/dts-v1/;\n/ { #address-cells = <1>; #size-cells = <1>;\n chosen { zephyr,sram = &sram0; };\n"
    ' sram0: memory@20000000 { compatible = "mmio-sram"; reg = <0x20000000 (64 * 1024)>; };\n'
    ' flash0: flash@8000000 { compatible = "soc-nv-flash"; reg = <0x8000000 0x100000>; };\n};\n',
    ".map": "Memory Configuration\n\nName             Origin             Length             Attributes\n"
    "FLASH            0x08000000         0x00100000         xr\n"
    "RAM              0x20000000         0x00040000         xrw\n"
    "*default*        0x00000000         0xffffffff\n\nLinker script and memory map\n\n"
    ".text           0x08000000      0x400\n .text.main     0x08000000       0x40 main.o\n"
    ".bss            0x20000000     0x1000\n .bss.arena     0x20000000      0x800 main.o\n"
    "                0x20000000                arena\n",
    ".toml": 'name = "mine"\nabi = "cortex-m"\nkernels = "cmsis-dsp"\n[[region]]\nname = "sram"\nbase = 0x20000000\n'
    'size = 262144\nreserved = 16384\nreserved_for = "the radio"\n[dma]\nchannels = 2\ndepth = 4\n',
}
_NAMES = {"a.txt": "cmsis-dsp", "b.txt": "esp32s3-n16r8#sram", "c.txt": "from:own.ld#RAM", "d.txt": "xtensa"}
_BUDGETS = {
    "a.toml": '[[budget]]\nmodel = "model.tflite"\narena = "16KiB"\nhead = 100\nflash = "1MiB"\n',
    "b.toml": '[[budget]]\nname = "x"\nmodel = "*.tflite"\ntarget = "nrf52840"\ngrowth = "5%"\n'
    '[[budget]]\nmodel = "model.tflite"\nkernels = "cmsis-dsp"\nabi = "cortex-m"\narena = 4096\n',
}
_SWEEPS = {
    "a.toml": 'models = "*.tflite"\ntargets = ["nrf52840", "rp2040"]\nkernels = "all"\nalias = ["views", "safe"]\n',
    "b.toml": 'models = ["model.tflite"]\nruntimes = "litert"\nschedules = ["best", "file"]\ndim = ["n=4"]\n'
    '[inputs."model.tflite"]\nshape = ["x=1,2"]\nvalue = "x=3"\n',
}


def _with_model(command: Sequence[str], case: str, folder: Path, option: str) -> list[str]:
    return [*command, str(folder / "model.tflite"), option, case]


KINDS = {
    "tflite": Kind(".tflite", _tflite_files, lambda case, folder: [
        ["check", case, "--budget", "20KiB"],
        ["pack", case, "-o", str(folder / "out.tflite"), "--kernels", "reference", "--shim", str(folder / "out.h")],
        ["verify", case, "--quick"],
    ], loads=True),
    "onnx": Kind(".onnx", _onnx_files, lambda case, folder: [
        ["analyze", case, "--schedule", "file", "--dim", "batch=1"],
        ["check", case, "--budget", "20KiB"],
    ], loads=True),
    "gz": Kind(".tflite.gz", lambda folder: _wrapped(folder, ".tflite.gz", gzip.compress), lambda case, folder: [
        ["check", case, "--budget", "20KiB", "--kernels", "reference"],
    ], loads=True),
    "c-array": Kind(".cc", lambda folder: _wrapped(folder, ".cc", _as_c), lambda case, folder: [
        ["check", case, "--budget", "20KiB", "--kernels", "reference"],
    ], loads=True),
    "stdin": Kind(".tflite", _tflite_files, lambda case, folder: [
        ["check", "-", "--budget", "20KiB", "--kernels", "reference"],
    ]),
    "stdin-onnx": Kind(".onnx", _onnx_files, lambda case, folder: [
        ["check", "-", "--budget", "20KiB", "--measure", "0"],
    ]),
    "npz": Kind(".npz", _arrays, lambda case, folder: [
        ["check", case, "--budget", "20KiB"], ["verify", case, "--quick"],
    ]),
    "budgets": Kind(".toml", lambda folder: _text_files(folder, _BUDGETS), lambda case, folder: [
        ["check", "--config", case, "--seconds", "0"],
    ]),
    "sweep": Kind(".toml", lambda folder: _text_files(folder, _SWEEPS), lambda case, folder: [
        ["sweep", case, "-o", str(folder / "rows.parquet")],
    ]),
    "board": Kind(".toml", _target_files(".toml"), _for_target),
    "linker": Kind(".ld", _target_files(".ld"), _for_target),
    "devicetree": Kind(".dts", _target_files(".dts"), _for_target),
    "map": Kind(".map", _with_script(_target_files(".map")),
        lambda case, folder: [*_for_target(case, folder), *_for_program(case, folder)]),
    "elf": Kind(".elf", _with_script(_programs), _for_program),
    "vela": Kind(".ini", _target_files(".ini"), lambda case, folder: [["targets", f"from:{case}#Dedicated_384"]]),
    "probe-rs": Kind(".yaml", _target_files(".yaml"), lambda case, folder: [["targets", f"from:{case}#ACME1"]]),
    "esphome": Kind(".json", _manifests, lambda case, folder: [
        ["esphome", case, "--check"], ["esphome", case, "-o", str(folder / "out.json")],
    ]),
    "baseline": Kind(".json", _saved(
        ("check", "--write", "baseline", "--config", "FOLDER/a.toml", "-o", "FOLDER/base.json"), "base.json"
    ), lambda case, folder: [
        _with_model(["check", "--growth", "0", "--kernels", "reference"], case, folder, "--baseline"),
    ]),
    "layout": Kind(".json", _saved(
        ("memories", "FOLDER/model.tflite", "--region", "sram:4KiB,rate=400MB/s", "--json", "FOLDER/layout.json"),
        "layout.json",
    ), lambda case, folder: [_with_model(["check"], case, folder, "--layout")]),
    "names": Kind(".txt", lambda folder: _text_files(folder, _NAMES), _for_name),
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
    from modelplan.formats.unpacking import standard_input

    found = promise(case) if kind.loads else ""
    lines = iter(kind.commands(str(case), folder))
    while not found and (words := next(lines, None)):
        standard_input.cache_clear()
        with mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(case.read_bytes()))):
            found = command_promise(words)
    return found


def _prepared() -> None:
    """Imports what does not count as the file's memory, and keeps `sweep` from starting a cluster."""
    from modelplan.formats.tflite import tflite_graph as tflite  # noqa: F401
    from modelplan.planning import pipeline  # noqa: F401
    from modelplan.primitives.errors import RequestError

    def refuse(*_: object) -> None:
        raise RequestError("a cluster is not started here")

    mock.patch("modelplan.cli.sweep.sweep", refuse).start()


def _limited(kind: Kind, files: list[Path], seeds: range, folder: Path) -> None:
    """One process works through some seeds; the file `note` holds the seed at hand, for when the process dies of it."""
    _prepared()
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
            note.write_text(f"{seed} {source.name}: {found}", errors="backslashreplace")
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
        _prepared()
        for file in files:
            broken(kind, file, folder)  # undamaged, so that each batch starts with the modules that it uses
        seeds = range(first, first + arguments.cases)
        done, failures = run(kind, files, seeds, folder, time.monotonic() + arguments.seconds, arguments.keep)
    print(f"{done} cases from {len(files)} files, {failures} broke the promise")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
