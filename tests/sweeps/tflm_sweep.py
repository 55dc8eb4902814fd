"""Compares the predicted arena of many small models with TFLM itself, and prints where they differ.

    python tests/sweeps/tflm_sweep.py --measure [--count 12] [--kernels wheel,...] [--kit FOLDER] [--only CONV_2D]

TFLM is the wheel `tflite-micro`, or the programs of a measuring kit: a folder with a program `tflm-NAME` or
`host-NAME` for each set of kernels that takes `MODEL --arena BYTES --probe --runs 1 --inputs FILE`, started under
qemu-arm where they are for Arm. The folder is given by --kit or MODELPLAN_TFLM_KIT.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import wheel_process
from tflm_models import AnyRank, Case, Draw, sweep
from wheel_process import value

from modelplan.primitives.answering import ask_isolated
from modelplan.runtimes.tflm.arena import BUFFERS, EVAL_TENSORS, QUANTIZATIONS, TENSORS, VARIABLES, Arena, arena
from modelplan.runtimes.tflm.file import read_tflite

#: Programs of the kit by the name of their kernels, with the ABI and the kernels that they stand for.
KIT = {
    "reference": ("tflm-reference", "xtensa", "reference"),
    "reference-m": ("tflm-reference-m", "cortex-m", "reference"),
    "cmsis": ("tflm-cmsis", "cortex-m", "cmsis-dsp"),
    "cmsis-c": ("tflm-cmsis-c", "cortex-m", "cmsis-c"),
    "cmsis-mve": ("tflm-cmsis-mve", "cortex-m", "cmsis-mve"),
    "espnn": ("tflm-espnn", "xtensa", "esp-nn@1.2.3"),
    "espnn-1.1.0": ("tflm-espnn-1.1.0", "xtensa", "esp-nn@1.1.0"),
    "espnn-esp32": ("tflm-espnn-esp32", "xtensa", "esp-nn-generic"),
    "host-reference": ("host-reference", "x86-64", "reference"),
    "host-cmsis-c": ("host-cmsis-c", "x86-64", "cmsis-c"),
}
#: The arena in which a model is asked for at all, and how far above the least arena a prediction may lie.
_LARGE = 1 << 20
SLACK = 64
#: Kernels that keep buffers while they hold temporary tensors. TFLM does not check the ones against the others, so it
#: may run in arenas in which they overlap; the predicted arena keeps them apart.
APART = ("BATCH_MATMUL", "UNIDIRECTIONAL_SEQUENCE_LSTM")

#: Rows of the tail that TFLM's recording allocator counts too.
RECORDED = (EVAL_TENSORS, TENSORS, QUANTIZATIONS, BUFFERS, VARIABLES)

_WHEEL, _SECONDS = (wheel_process.__file__,), 600
_PART = re.compile(r"Arena allocation (head|tail) (\d+) bytes")


@dataclass(frozen=True)
class Answer:
    """What TFLM says: head and tail, both 0 for a model that it refuses; and if an arena of some size is enough.

    `asked` are the bytes that it requests, without alignment, by row of the tail, where that is known.
    """

    head: int
    tail: int
    enough: Callable[[int], bool]
    asked: Mapping[str, int] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        """Whether TFLM does not run the model."""
        return not self.tail


def ask_wheel(data: bytes) -> Answer:
    """The wheel's answer."""
    ran, log = ask_isolated(_WHEEL, (data, _LARGE), _SECONDS)
    parts = {name: int(size) for name, size in _PART.findall(log)} if ran else {}
    return Answer(
        parts.get("head", 0), parts.get("tail", 0), lambda size: bool(ask_isolated(_WHEEL, (data, size), _SECONDS)[0])
    )


def ask_kit(folder: Path, program: str, data: bytes) -> Answer:
    """The answer of one of the kit's programs."""
    said = _ran(folder / program, data, _LARGE)
    rows = said.get("recording", {}).get("rows", {})
    asked = {name: int(row["requested"]) for name, row in rows.items() if name in RECORDED}
    return Answer(
        said.get("head", 0), said.get("tail", 0), lambda size: bool(_ran(folder / program, data, size)), asked
    )


def _ran(program: Path, data: bytes, size: int) -> dict[str, Any]:
    """What a program prints of a model that it runs in an arena of `size` bytes; nothing if it does not run."""
    with tempfile.TemporaryDirectory() as box:
        Path(box, "model").write_bytes(data)
        Path(box, "in").write_bytes(_inputs(data))
        done = start(program, box, "--arena", str(size), "--runs", "1")
    try:
        said: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    except ValueError:
        return {}
    return said if said.get("invoke") == "ok" and not said.get("arena_overrun") else {}


def start(
    program: Path, box: str, *words: str, inputs: bool = True, seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """Starts a program in folder `box`, which holds `model` and its inputs `in`; without `inputs` it draws them."""
    listed = ["model", *words, *(("--inputs", "in") if inputs else ())]
    emulators = {"tflm-cmsis-mve": "qemu-system-arm"}
    if program.name.startswith("host-"):
        command = [str(program), *listed]
    elif program.name in emulators:
        arguments = "".join(f",arg={word}" for word in ("tflm", *listed))
        command = ["qemu-system-arm", "-M", "mps3-an547", "-display", "none", "-serial", "none", "-monitor", "none",
                   "-kernel", str(program), "-semihosting-config", "enable=on,target=native" + arguments]  # fmt: skip
    else:
        emulator = shutil.which("qemu-arm-static") or shutil.which("qemu-arm") or "qemu-arm"
        command = [emulator, "-cpu", "cortex-a7", str(program), *listed]
    return subprocess.run(
        command, cwd=box, capture_output=True, text=True, errors="replace", check=False, timeout=seconds
    )


def _inputs(data: bytes) -> bytes:
    """The bytes of all inputs, filled like the wheel's."""
    main = read_tflite(data, "model").subgraphs[0]
    kinds = {0: "f4", 2: "i4", 3: "u1", 4: "i8", 6: "?", 7: "i2", 9: "i1", 12: "u8", 15: "u4"}
    tensors = [main.tensors[t] for t in main.inputs]
    return b"".join(np.full(t.elements, value(kinds[t.type]), kinds[t.type]).tobytes() for t in tensors) or b"\0"


#: Reasons of refusals where a kernel reads or writes beyond an operand: whether TFLM runs the model is chance.
CHANCE = ("where its kernel reads extent", "the bias is int32", "writes beyond its output")
#: Those of the wheel, which is built without assertions: some zero points are checked by nothing else.
CHANCE_OF_WHEEL = (*CHANCE, "a zero point of", "has zero point")


def differences(case: str, predicted: Arena, answer: Answer, chance: Sequence[str] = CHANCE) -> Iterator[str]:
    """Where a prediction is not what TFLM does, but for refusals by `chance`; nothing if it is."""
    if answer.refused or predicted.refusals:
        if not predicted.refusals:
            yield "TFLM refuses it"
        elif not answer.refused and not any(reason in predicted.refusals[0].reason for reason in chance):
            yield f"TFLM runs it: {predicted.refusals[0].reason}"
        return
    if (predicted.head, predicted.tail) != (answer.head, answer.tail):
        yield f"head {predicted.head} for {answer.head}, tail {predicted.tail} for {answer.tail}"
    asked = {row.name: row.asked for row in predicted.rows}
    for name, found in answer.asked.items():
        if asked.get(name, 0) != found:
            yield f"{name}: requests {asked.get(name, 0)} bytes, TFLM {found}"
    if not answer.enough(predicted.least):
        yield f"TFLM fails with the least arena, {predicted.least}"
    elif not case.startswith(APART) and all(
        answer.enough(predicted.least - less) for less in range(16, SLACK + 17, 16)
    ):
        yield f"{predicted.least} is more than {SLACK} bytes above the least arena"


def kit_folder(given: str | None = None) -> Path | None:
    """The folder with the kit's programs, None where there is none."""
    named = given or os.environ.get("MODELPLAN_TFLM_KIT")
    return Path(named).resolve() if named else None


def _cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """The models that the options name."""
    return sweep(arguments.count, arguments.seed, AnyRank if arguments.ranks else Draw)


def _measure(name: str, folder: Path | None, arguments: argparse.Namespace) -> int:
    """Compares the sweep with one set of kernels; returns the number of differences."""
    program, abi, kernels = KIT.get(name, ("", "wheel", "reference"))
    found: Counter[str] = Counter()
    for case, data in _cases(arguments):
        if arguments.only and case.partition("-")[0] not in arguments.only.split(","):
            continue
        predicted = arena(read_tflite(data, case), abi, kernels)
        answer = ask_kit(folder, program, data) if program and folder else ask_wheel(data)
        different = list(differences(case, predicted, answer, CHANCE if program else CHANCE_OF_WHEEL))
        found["refused" if answer.refused else "run"] += 1
        found["different"] += bool(different)
        for line in different:
            print(f"{name}: {case}: {line}")
            if arguments.keep:
                Path(arguments.keep, f"{name}-{case}.tflite").write_bytes(data)
    print(f"{name}: {found['run']} run, {found['refused']} refused by TFLM, {found['different']} predicted otherwise")
    return found["different"]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="ask TFLM; else the names of the models are printed")
    parser.add_argument("--count", type=int, default=12, help="models of each operator and type")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", action="store_true", help="operands of 0 to 6 dimensions, for any operator")
    parser.add_argument("--kernels", default="wheel", help=f"of wheel, {', '.join(KIT)}")
    parser.add_argument("--kit", help="folder of the measuring programs (default: $MODELPLAN_TFLM_KIT)")
    parser.add_argument("--only", help="operators, separated by commas")
    parser.add_argument("--keep", help="folder for the models that differ")
    arguments = parser.parse_args()
    if not arguments.measure:
        print(*(name for name, _ in _cases(arguments)), sep="\n")
        return 0
    folder, names = kit_folder(arguments.kit), arguments.kernels.split(",")
    unknown = [
        n for n in names if n != "wheel" and (n not in KIT or folder is None or not (folder / KIT[n][0]).exists())
    ]
    if unknown:
        parser.error(f"no program for {', '.join(unknown)}; give --kit or MODELPLAN_TFLM_KIT")
    return int(sum(_measure(name, folder, arguments) for name in names) > 0)


if __name__ == "__main__":
    sys.exit(main())
