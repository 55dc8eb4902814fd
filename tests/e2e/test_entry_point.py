"""Each command as the installed program, beside what `run` makes of the same words within the tests' process."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from commands import run, run_process

from modelplan.cli.command_table import MODULES

KWS = "ds_cnn_kws.tflite"
LINES = {
    "analyze": f"{KWS} --json -",
    "explain": f"{KWS} --seconds 0",
    "diff": f"{KWS} audio_1d.tflite",
    "compare": "small.csv --top 0",
    "reorder": f"{KWS} -o reordered.tflite",
    "check": f"{KWS} --budget 4KiB",
    "budget": "baseline -o nowhere/base.json",
    "fit": f"{KWS} --budget 64KiB --kernels reference -o fitting.tflite",
    "together": f"{KWS} audio_1d.tflite --in-turn ds_cnn_kws,audio_1d",
    "memories": f"{KWS} --region sram:64KiB --kernels reference",
    "spill": f"{KWS} --region sram:12KiB,rate=400MB/s --region psram:8MiB,rate=80MB/s",
    "esphome": "missing.json",
    "stream": "transformer_encoder.onnx --memory 2GiB --link 16GB/s --macs-per-second 1e13",
    "pack": f"{KWS} -o packed.tflite",
    "verify": KWS,
    "recompute": "transformer_encoder.onnx --max-macs 20%",
    "sweep": f"{KWS} -o results.csv",
    "report": "missing.parquet",
    "solve": "small.csv -o -",
    "schema": "plan",
    "help": "tflm",
    "completion": "bash",
    "allocators": "",
    "targets": "",
}
FAST = ("analyze", "solve")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in MODULES]
)
def test_the_program_does_what_the_command_does_in_process(name: str, models: Path, tmp_path: Path) -> None:
    for model in (KWS, "audio_1d.tflite", "transformer_encoder.onnx"):
        (tmp_path / model).symlink_to(models / model)
    (tmp_path / "small.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\nc,2,4,8\n")
    words = [name, *shlex.split(LINES[name])]
    within, program = run(*words, cwd=tmp_path), run_process(*words, cwd=tmp_path)
    assert program.returncode == within.returncode
    assert without_times(program.stdout) == without_times(within.stdout)
    assert program.stderr == within.stderr
    assert program.stdout or program.stderr


def without_times(text: str) -> str:
    return re.sub(r"[\d.]+ (m|u|µ)?s\b|\d\.\d{3,}", "TIME", text)
