"""Several memories where they are obeyed: TFLM with two arenas, C arrays through a linker, and the command itself."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import run
from shared_memory import BUILDS, compiled, missing

from modelplan.cli import main
from modelplan.primitives import highs
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import load_tflite
from modelplan.runtimes.tflm.other_arenas import two_arenas

MODELS = Path(__file__).resolve().parents[2] / "models"
PROGRAM = Path(__file__).resolve().parents[1] / "support" / "two_arenas.cc"
#: Where two memories begin: those of a Cortex-M's SRAM and of an ESP32-S3's PSRAM.
SRAM, PSRAM = 0x20000000, 0x3C000000


def ran(program: str, model: Path, *words: str | int) -> dict[str, object]:
    """What the program says; nothing where TFLM stops in an assertion."""
    command = [*BUILDS[program].starter, str(compiled(program, "", PROGRAM)), str(model), *map(str, words)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout
    found: dict[str, object] = json.loads(said or '{"built": false}')
    return found


def check_two_arenas(program: str, model: Path) -> None:
    """Both arenas are just large enough in two memories, and the outputs are those of one arena."""
    build, file = BUILDS[program], load_tflite(model)
    found = two_arenas(file, build.abi, build.kernels)
    alone = ran(program, model, "one", SRAM, arena(file, build.abi, build.kernels).size())
    kept, free = found.persistent, found.non_persistent
    apart = ran(program, model, "two", PSRAM, kept, SRAM, free)
    assert alone["ok"]
    assert (apart["built"], apart["ok"], apart["overrun"]) == (True, True, False)
    assert apart["digest"] == alone["digest"]
    assert SRAM <= int(str(apart["input"])) < SRAM + free
    assert SRAM <= int(str(apart["output"])) < SRAM + free
    assert not ran(program, model, "two", PSRAM, kept - 16, SRAM, free)["built"]
    assert not ran(program, model, "two", PSRAM, kept, SRAM, free - 16)["built"]


@pytest.mark.parametrize("name", ["ds_cnn_kws", "resnet8", "unet_small"])
def test_tflm_runs_in_two_arenas_of_the_predicted_bytes(name: str) -> None:
    program = "host-reference"
    if reason := missing(program):
        pytest.skip(reason)
    check_two_arenas(program, MODELS / f"{name}.tflite")


@pytest.mark.parametrize("program", ["host-reference", "tflm-reference", "tflm-cmsis"])
def test_person_detect_has_its_two_arenas_in_two_memories(program: str, corpus: Path) -> None:
    if reason := missing(program):
        pytest.skip(reason)
    check_two_arenas(program, corpus / "tflite" / "person_detect.tflite")


# C arrays ------------------------------------------------------------------------------------------------------------

REGIONS = ("--region", "sram:24KiB@0x20000000", "--region", "psram:8MiB@0x3c000004,read=80MB/s,write=40MB/s,align=32",
           "--region", "flash:1MiB@0x08000000,read=8MB/s")  # fmt: skip
COMPILERS = {
    "arm-none-eabi-gcc": ("-mcpu=cortex-m4", "-mthumb", "-nostdlib", "-Wl,-Ttext=0x10000"),
    "gcc": ("-static", "-nostdlib", "-fno-pie", "-no-pie"),
}


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("ends", [(), ("--both-ends",)])
def test_the_linked_addresses_are_those_of_the_plan(compiler: str, ends: tuple[str, ...], tmp_path: Path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    model = MODELS / "ds_cnn_kws.tflite"
    outputs = "--header", tmp_path / "m.h", "--linker", tmp_path / "m.ld", "--csv", tmp_path / "m.csv"
    done = run("memories", model, *REGIONS, *ends, *outputs)
    assert done.returncode == 0, done.stderr
    macros = re.findall(r"^#define (MODELPLAN_\w+_(\d+)) ", (tmp_path / "m.h").read_text(), re.MULTILINE)
    table = ", ".join(name for name, _ in macros)
    source = f'#define MODELPLAN_MEMORIES_DEFINE\n#include "m.h"\nuint8_t* const where[] = {{{table}}};\n'
    (tmp_path / "m.c").write_text(source + "int bss;\nint _start(void) { return where[bss] != 0; }\n")
    words = [compiler, *COMPILERS[compiler], "-Wall", "-Werror", "-T", "m.ld", "m.c", "-o", "m.elf"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=100)
    linked = _pointers(tmp_path / "m.elf", len(macros))
    rows = list(csv.DictReader((tmp_path / "m.csv").read_text().splitlines()))
    planned = {i: int(row["address"], 16) for i, row in enumerate(rows)}
    assert len(macros) == len([row for row in rows if row["region"] != "flash"])
    assert linked == [planned[int(number)] for _, number in macros]


def _pointers(path: Path, count: int) -> list[int]:
    """The pointers of the table `where` in a program."""
    elffile = pytest.importorskip("elftools.elf.elffile")
    with path.open("rb") as file:
        elf = elffile.ELFFile(file)
        at = elf.get_section_by_name(".symtab").get_symbol_by_name("where")[0]["st_value"]
        width = elf.elfclass // 8
        home = next(s for s in elf.iter_sections() if s["sh_addr"] <= at < s["sh_addr"] + s["sh_size"])
        data = home.data()[at - home["sh_addr"] :]
    return [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(count)]


def test_executorch_has_ids_and_offsets_inside_of_its_memories(tmp_path: Path) -> None:
    done = run("memories", MODELS / "unet_small.tflite", *REGIONS[:4], "--runtime", "executorch", "--executorch",
               tmp_path / "e.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "e.json").read_text())
    sizes = document["non_const_buffer_sizes"]
    assert sizes[0] == 0
    assert {one["mem_id"] for one in document["tensors"]} == {1, 2}
    for one in document["tensors"] + document["copied_constants"]:
        assert one["mem_offset"] + one["allocated_memory"] <= sizes[one["mem_id"]]
        assert one["mem_offset"] == one["memory_offset_low"] + (one["memory_offset_high"] << 32)
        assert one["lifetime"][0] <= one["lifetime"][1]


@pytest.mark.slow
def test_tflm_s_arenas_are_put_where_operators_wait_least(tmp_path: Path) -> None:
    done = run(
        "memories", MODELS / "ds_cnn_kws.tflite", "--kernels", "reference", *REGIONS, "--arenas", tmp_path / "a.h",
        "--json", tmp_path / "m",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "a.h").read_text()
    found = two_arenas(load_tflite(MODELS / "ds_cnn_kws.tflite"))
    assert f'section(".sram"))) inline uint8_t non_persistent_arena[{found.non_persistent}]' in text
    assert f"persistent_arena[{found.persistent}]" in text
    arenas = json.loads((tmp_path / "m").read_text())["arenas"]
    assert [one["nbytes"] for one in arenas][:2] == [found.persistent, found.non_persistent]
    small = run("memories", MODELS / "ds_cnn_kws.tflite", "--region", "a:9KiB", "--region", "b:40KiB,rate=1MB/s",
                "--arenas", tmp_path / "b.h")  # fmt: skip
    assert (small.returncode, (tmp_path / "b.h").exists()) == (2, False)
    assert "fits in no region" in small.stderr


TIED = "id,lower,upper,size,list,position\nA,0,1,8,0,0\nB,0,1,8,0,1\n"
TT_METAL = "id,lower,upper,size,pin\nA,0,1,8192,\nB,0,3,16384,8192\nC,0,1,16384,\nD,1,3,8192,\nE,2,3,16384,\n"


def test_several_memories_in_one_word(tmp_path: Path) -> None:
    said = run("memories", MODELS / "ds_cnn_kws.tflite", "--memory", "16K+8M", "--csv", "-").stdout
    stated = run("memories", MODELS / "ds_cnn_kws.tflite", "--region", "sram:16KiB",
                 "--region", "psram:8MiB,rate=80MB/s", "--region", "flash:44KiB,read=100000GB/s", "--csv",
                 "-").stdout  # fmt: skip
    assert [row.split(",")[:5] for row in said.splitlines()] == [row.split(",")[:5] for row in stated.splitlines()]
    done = run("analyze", MODELS / "ds_cnn_kws.tflite", "--kernels", "cmsis-dsp", "--memory", "16KiB+8MiB")
    assert done.returncode == 0, done.stderr
    assert "capacity 16.00 KiB (16,384 B): does not fit" in done.stdout
    assert "two arenas (MicroAllocator::Create)" in done.stdout
    (command,) = [line for line in done.stdout.splitlines() if "modelplan memories" in line]
    assert run(*command.partition("  #")[0].split()[1:]).returncode == 0
    one = run("analyze", MODELS / "ds_cnn_kws.tflite", "--memory", "64KiB")
    assert one.stdout == run("analyze", MODELS / "ds_cnn_kws.tflite", "--budget", "64KiB").stdout


def test_fit_takes_two_memories_for_the_two_arenas(tmp_path: Path) -> None:
    out = tmp_path / "two.tflite"
    done = run("fit", MODELS / "resnet8.tflite", "--kernels", "cmsis-dsp", "--memory", "34KiB+64KiB", "-o", out)
    assert done.returncode == 0, done.stderr
    (command,) = [line for line in done.stdout.splitlines() if "modelplan memories" in line]
    arenas = run(*command.partition("  #")[0].split()[1:], cwd=tmp_path)
    assert arenas.returncode == 0, arenas.stderr
    assert re.search(r"non-persistent\s+\S+ KiB \([\d,]+ B\) in sram", arenas.stdout)
    assert "persistent_arena" in (tmp_path / "arenas.h").read_text()
    small = run("fit", MODELS / "resnet8.tflite", "--kernels", "cmsis-dsp", "--memory", "34KiB+4KiB", "-o", out)
    assert small.returncode == 1
    assert "the second memory has 4,096" in small.stderr


def test_a_table_of_buffers_in_several_memories(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TT_METAL)
    done = run("memories", "table.csv", "--memory", "32KiB+32KiB", "--csv", "-", "--draw", "x.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    places = {row.split(",")[0]: row.split(",")[4:6] for row in done.stdout.splitlines()[1:]}
    assert places["B"] == ["8192", "sram"]
    assert {place[1] for place in places.values()} == {"sram", "psram"}
    parts = run("memories", "table.csv", "--memory", "64KiB", "--largest", "24KiB", cwd=tmp_path)
    assert "table: 5 buffers in 3 memories" in parts.stdout


@pytest.mark.parametrize(
    ("table", "words", "code", "said"),
    [
        (TT_METAL, ("--memory", "16KiB+32KiB"), 1, "no choice of regions"),
        (TT_METAL, ("--memory", "64KiB", "--largest", "8KiB"), 1, "B of 16,384 bytes fits no memory: the largest has"),
        (TT_METAL, ("--memory", "1GiB", "--largest", "8KiB"), 2, "131,072 parts, expected at most 64"),
        (TT_METAL, ("--memory", "32KiB+"), 2, "cannot read ''"),
        (TT_METAL, ("--memory", "32+32KiB"), 2, "32 means 32 bytes"),
        (TT_METAL, ("--memory", "64KiB", "--json", "-"), 2, "is a table of buffers"),
        (TT_METAL, ("--largest", "8KiB"), 2, "--largest is of the memories"),
        (TIED, ("--memory", "1KiB+1KiB"), 2, "ties addresses of buffers"),
    ],
)  # fmt: skip
def test_a_table_that_no_memories_hold(
    tmp_path: Path, table: str, words: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "table.csv").write_text(table)
    done = run("memories", "table.csv", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_without_scipy_regions_are_chosen_by_prices_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TT_METAL)
    monkeypatch.setattr(highs, "is_there", lambda: False)
    for model in (str(tmp_path / "table.csv"), str(MODELS / "ds_cnn_kws.tflite"), str(MODELS / "resnet8.onnx")):
        assert main(["memories", model, "--memory", "32KiB+1MiB"]) == 0
    assert main(["memories", str(MODELS / "ds_cnn_kws.tflite"), "--memory", "32KiB+1MiB", "--method", "exact"]) == 2


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "no memories: name them by --memory 256KiB"),
        (("--region", "a:64KiB@0x1000", "--region", "b:64KiB@0x2000"), 2, "a at 0x1000..0x11000 and b at 0x2000..0x12"),
        (("--region", "a:64KiB", "--region", "a:1MiB"), 2, "two regions are called a"),
        (("--region", "a:64KiB,read=-1MB/s"), 2, "cannot read '-1MB/s' as bytes per second"),
        (("--region", "sram:64KiB", "--region", "psram:8MiB"), 2, "region psram (psram) states no rate"),
        (("--region", "a:4KiB"), 2, "of 8,000 bytes fits in no region that may hold it: a 4,096 (ram)"),
        (("--region", "a:20KiB"), 1, "the regions that are written have 20,480"),
        (("--region", "a:64KiB", "--region", "flash:4KiB,read=1MB/s"), 1, "weights do not fit in flash of 4,096"),
        (("--region", "a:64KiB", "--draw", "x.gif"), 2, "the name must end in .svg, .png, .pdf"),
        (("--region", "a:64KiB", "--linker", "x.ld"), 2, "region a has no address"),
        (("--region", "a:64KiB", "--header", ""), 2, "cannot write : it is a folder"),
        (("--region", "a:64KiB", "--macs-per-second", "-3"), 2, "expected more than 0"),
        (("--region", "a:64KiB", "--macs-per-second", "nan"), 2, "expected more than 0"),
        (("--region", "a:64KiB", "--seconds", "nan"), 2, "a budget cannot be negative, nor NaN"),
        (("--region", "a:64KiB", "--csv", "out.json"), 2, "out.json: two outputs go there"),
        (("--target", "no-such-board"), 2, "no-such-board"),
        (("--target", "nrf52840", "--region", "flash0:read=64MB/s", "--used", "x.elf"), 2, "--used"),
        (("--region", "a:64KiB,reach=npu", "--reader", "cpu"), 2, "fits in no region"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_named_and_nothing_is_written(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    planned = ("memories", MODELS / "ds_cnn_kws.tflite", "--kernels", "reference")
    done = run(*planned, *words, "--json", "out.json", cwd=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_saved_layout_is_verified_against_its_model(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    done = run("memories", MODELS / "ds_cnn_kws.tflite", "--target", "nrf52840", "--region", "flash0:read=64MB/s",
               "--json", path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert run("verify", path, "--model", MODELS / "ds_cnn_kws.tflite").returncode == 0
    other = run("verify", path, "--model", MODELS / "resnet8.tflite")
    assert (other.returncode, "was not made for" in other.stderr) == (4, True)
    text = path.read_text()
    document = json.loads(text)
    document["stays"][0]["offset"] += 8
    path.write_text(json.dumps(document))
    broken = run("verify", path)
    assert (broken.returncode, "expected a multiple of 16" in broken.stderr) == (4, True)
    for key, number in (("delta", 2**63), ("scratch", [-(2**63)])):  # numbers that no array holds
        document = json.loads(text)
        plan = document["plans"][0]["plan"]
        holder = plan["graph"]["ops"][0] if key == "scratch" else plan["problem"]["members"][0][0]
        assert key in holder
        holder[key] = number
        path.write_text(json.dumps(document))
        refused = run("verify", path)
        assert refused.returncode in (3, 4), refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_a_processor_has_no_memories_and_names_a_device_that_has() -> None:
    done = run("memories", MODELS / "ds_cnn_kws.tflite", "--target", "stm32h7")
    assert done.returncode == 2
    assert "stm32h7 is a processor, whose memories are not known" in done.stderr
    assert done.stderr.endswith("or a device such as stm32h743 by --target\n")
