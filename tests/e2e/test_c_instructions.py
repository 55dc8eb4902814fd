"""Plain C on a Cortex-M under qemu: so many instructions, and the outputs that it has everywhere."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from c_operators import Drawn, batch, drawn_single
from instruction_counting import (
    CORES,
    RISC_V,
    RISC_V_PROGRAMS,
    Count,
    compiler_version,
    counted,
    missing_programs,
    outputs_here,
)
from onnx_c_nodes import drawn, together
from shares import sample, share
from standalone_c import WARNINGS, apart, c_operators

from modelplan import FitCRequest, fit_c
from modelplan.plain_c.writing.c_source import CFiles, CNames, c_files
from modelplan.runtimes.tflm.file import read_tflite

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "instructions.csv"
#: The release of the compiler by which the counts in GOLDEN are.
RELEASE = "12.2"
MODELS = ("ds_cnn_kws.tflite", "mobilenet_v2_like.tflite", "resnet8.tflite", "quantised/resnet8_int8.onnx")
COUNTED = [(model, core) for model in MODELS for core in ("cortex-m4", "cortex-m55")]
COUNTED += [(model, core) for model in (MODELS[0], MODELS[-1]) for core in ("cortex-m3", "cortex-m0plus")]
MOST_CHANGE = 0.02
LEVELS = ("-O2", "-Os", "-O3")
ALL_CORES = {**CORES, "rv32imc": RISC_V}
#: Kernels that are written for instructions of some cores, and some that are not.
KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "CONCATENATION", "PAD", "ADD", "SUB")
COPIES = share(60)
#: The same of .onnx files, whose sums of codes are rounded otherwise.
CODED = ("convolution", "product", "flattened", "residual")


class Wide(Drawn):
    """Maps of so many channels that kernels compute some at once, and others one by one."""

    most_channels = 36


pytestmark = pytest.mark.skipif(bool(missing_programs()), reason=f"needs {', '.join(missing_programs())}")


@cache
def fitted(model: str) -> CFiles:
    interface = "int8" if model.endswith(".onnx") else "as-is"
    rung = fit_c(FitCRequest(str(ROOT / "models" / model), output="net.c", interface=interface)).chosen
    assert rung is not None
    return rung.files


def levels(core: str, first: int) -> Sequence[str]:
    """All levels of optimisation in `.ci/long`, elsewhere one: from core to core another, the first by its number."""
    turn = (list(ALL_CORES).index(core) + first) % len(LEVELS)
    return sample((*LEVELS[turn:], *LEVELS[:turn]))


@cache
def counted_model(model: str, core: str, level: str) -> Count:
    """A model on a core, compiled once for all tests."""
    files = fitted(model)
    with TemporaryDirectory() as folder:
        return counted(Path(folder), files.source, files.header, ALL_CORES[core], level)


@cache
def nodes_on_codes(kind: str) -> CFiles:
    """Drawn nodes of a kind, side by side in one network that is fitted once for all cores."""
    with TemporaryDirectory() as name:
        folder, seeds = Path(name), range(1, 4 * COPIES, 4)  # with signs, in QLinear operators
        together([drawn(kind, seed, folder, coded=True)[0] for seed in seeds], folder / "together.onnx")
        rung = fit_c(FitCRequest(str(folder / "together.onnx"), output="net.c", interface="int8")).chosen
        assert rung is not None
        return rung.files


def require(core: str) -> None:
    """Skips a test of a core whose compiler or emulator is not installed."""
    missing = missing_programs(RISC_V_PROGRAMS) if ALL_CORES[core] is RISC_V else []
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


def require_equal(folder: Path, files: CFiles, core: str, first: int) -> None:
    """Compares the outputs on a core with those on this machine."""
    wanted = outputs_here(folder, files.source, files.header)
    for level in levels(core, first):
        assert counted(folder, files.source, files.header, ALL_CORES[core], level).outputs == wanted, level


def recorded() -> dict[tuple[str, str], int]:
    with GOLDEN.open() as file:
        return {(row["model"], row["core"]): int(row["instructions"]) for row in csv.DictReader(file)}


@pytest.mark.slow
@pytest.mark.skipif(not missing_programs() and compiler_version() != RELEASE, reason=f"needs the compiler {RELEASE}")
def test_instructions_are_those_that_were_recorded(pytestconfig: pytest.Config) -> None:
    found = {}
    for model, core in COUNTED:
        found[model, core] = counted_model(model, core, LEVELS[0]).total
    if pytestconfig.getoption("--update"):
        rows = [f"{model},{core},{count}" for (model, core), count in found.items()]
        GOLDEN.write_text("\n".join(["model,core,instructions", *rows]) + "\n")
    known = recorded()
    assert known.keys() == found.keys()
    changed = [
        f"{model} on {core}: {found[model, core]:,} instructions, {known[model, core]:,} were recorded"
        for model, core in COUNTED
        if abs(found[model, core] / known[model, core] - 1) > MOST_CHANGE
    ]
    what = "say why in the commit, and record them: pytest tests/e2e/test_c_instructions.py -m slow --update"
    assert not changed, "; ".join([*changed, what])


@pytest.mark.slow
@pytest.mark.parametrize("core", ALL_CORES)
def test_networks_give_on_a_core_what_they_give_here(core: str, tmp_path: Path) -> None:
    require(core)
    for model in MODELS:
        wanted = outputs_here(tmp_path, fitted(model).source, fitted(model).header)
        for level in sample(LEVELS):
            assert counted_model(model, core, level).outputs == wanted, level


@pytest.mark.slow
@pytest.mark.parametrize("core", ALL_CORES)
def test_nodes_on_codes_give_on_a_core_what_they_give_here(core: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    require(core)
    for kind in CODED:
        require_equal(tmp_path, nodes_on_codes(kind), core, 1)


@pytest.mark.slow
@pytest.mark.parametrize("core", ALL_CORES)
def test_kernels_give_on_a_core_what_they_give_here(core: str, tmp_path: Path) -> None:
    require(core)
    singles = [drawn_single(drawn, kind) for drawn in (Drawn(54), Wide(54)) for kind in KINDS for _ in range(COPIES)]
    whole = [s for s in singles if "float32" not in {t.dtype for t in s.results}]  # of any bits these make no number
    model = read_tflite(batch(whole), "net.tflite")
    operators = c_operators(model)
    files = c_files(model, operators, apart(model, operators), CNames("net", "net.h"))
    require_equal(tmp_path, files, core, 2)
    of = ALL_CORES[core]
    compiler = [f"{of.tools}-gcc", *of.flags, *of.library, *WARNINGS, LEVELS[0], "-c", "net.c", "-o", "net.o"]
    subprocess.run(compiler, cwd=tmp_path, check=True)
