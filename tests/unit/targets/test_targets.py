"""Devices: what every row of the table has to say, and which block of a device holds an arena."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from modelplan import ModelError, RequestError
from modelplan.cli import main
from modelplan.runtimes.tflm.abi import ABIS
from modelplan.runtimes.tflm.kernels import KERNELS
from modelplan.targets.chips import BOARDS, CHIPS, STM32_FAMILIES
from modelplan.targets.choosing import Reserve, Wanted, chosen_block, known_device
from modelplan.targets.device import Block, Device, Dma, Interval, Region, banks_of, blocks, with_reserve
from modelplan.targets.device_files import read_toml
from modelplan.targets.processors import PROCESSORS
from modelplan.targets.table import DEVICES

K = 1024


def device(*regions: Region, **facts: object) -> Device:
    return replace(Device("board", "a board", regions, "here"), **facts)  # type: ignore[arg-type]


def usable(*regions: Region, taken: tuple[Interval, ...] = ()) -> list[tuple[int, tuple[str, ...]]]:
    return [(block.usable, block.regions) for block in blocks(device(*regions), taken)]


def lacking(row: Device) -> list[str]:
    """What a row of the table has to say and does not, by name."""
    named = {
        "title": row.title,
        "source": row.source,
        "quality: P or S": row.quality in ("P", "S"),
        "abi: one of those in runtimes/tflm/abi.py": not row.abi or row.abi in ABIS,
        "kernels: one of those of TFLM": not row.kernels or row.kernels in KERNELS,
        "regions, or no_arena: why there is no figure": row.regions or row.no_arena,
        "reserved_for: what a reserve is for": all(r.reserved_for for r in row.regions if r.reserved),
        "note: that a benchmark is one": not row.benchmark or "benchmark" in row.note,
    }
    return [name for name, said in named.items() if not said]


def test_every_row_says_all_of_its_device() -> None:
    rows = (*DEVICES.values(), *CHIPS.values())
    assert {row.name: found for row in rows if (found := lacking(row))} == {}


def test_an_empty_row_is_told_what_it_lacks() -> None:
    empty = Device("new", "", (), "", "?", "z80", "fast")
    assert [name.split(":")[0].split(",")[0] for name in lacking(empty)] == [
        "title", "source", "quality", "abi", "kernels", "regions"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("nrf52840", 262_144 - 49_152),
        ("nucleo_f446re", 128 * K),
        ("STM32F401CCU6", 64 * K),
        ("stm32f401re", 96 * K),
        ("stm32f746g-disco", 320 * K),
        ("nrf52832_qfaa", 64 * K),
        ("samd51j19a", 192 * K),
        ("feather-m4", 192 * K),
        ("teensy4.1", 512 * K),
        ("rp2040", 270_336),
        ("rp2350", 532_480),
        ("stm32f746", 327_680),
        ("stm32h743", 524_288),
        ("corstone-300", 2_097_152),
        ("corstone-320", 4_194_304),
        ("alif-e8", 8_388_608),
        ("k210", 6_291_456),
        ("himax-we2", 1_970_176),
        ("s32k344", 327_680),
        ("ethos-u-dedicated-sram-384kb", 393_216),
        ("hexagon-sm8350", 4 * K * K),
        ("dla-orin", K * K),
        ("nvdla-small", 131_072),
        ("nvdla-large", 524_288),
        ("minimalloc-1MiB", 1_048_576),
        ("esp32s3-n16r8#psram", 8_388_608),
        ("stm32h743#sram2", 294_912),
        ("corstone-300#ddr", 0x60000000),
    ],
)
def test_the_block_that_counts(name: str, size: int) -> None:
    assert chosen_block(Wanted(name)).budget == size


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("edgetpu", "caches weights and holds no activations"),
        ("edgetpu#sram", "caches weights"),
        ("ethos-u-shared-sram", "states no size"),
        ("nrf52840#flash0", "flash0 is not written while a model runs"),
        ("nrf52840#sram9", "no region 'sram9'; there are: sram0, flash0"),
        ("nrf5284", "no target 'nrf5284'; near are: nrf52840"),
        ("STM32", "near are: stm32f746, stm32h743, stm32n657"),
        ("esp32c9", "near are: esp32c"),
        ("stm32l151", "no target"),
        ("", "`modelplan targets` lists them"),
    ],
)
def test_what_gives_no_figure_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(RequestError, match=reason):
        chosen_block(Wanted(name))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("esp32s3-n16r8", "heap_caps_get_largest_free_block.*external memory has to be chosen, as esp32s3-n16r8#psram"),
        ("esp32-p4", "what is free after start-up depends on the application"),
        ("stm32f401", "letters behind stm32f401: 64.00 KiB as stm32f401xb, 96.00 KiB as stm32f401xd"),
        ("samd51", "128.00 KiB as samd51x18"),
        ("imxrt1170", "up to"),
        ("apollo4p", "up to"),
    ],
)
def test_a_device_whose_memory_is_not_known_is_chosen_but_has_no_budget(name: str, reason: str) -> None:
    chosen = chosen_block(Wanted(name))
    assert re.search(reason, chosen.unknown)
    assert chosen.block is None
    assert chosen.known_budget is None
    assert chosen.banks == ()
    with pytest.raises(RequestError, match="gives no figure for an arena"):
        _ = chosen.budget


def test_regions_that_adjoin_are_one_block_and_the_largest_counts() -> None:
    low, high, apart = Region("low", 64 * K, 0), Region("high", 32 * K, 64 * K), Region("apart", 90 * K, 0x100000)
    assert usable(high, apart, low) == [(96 * K, ("low", "high")), (90 * K, ("apart",))]
    assert usable(low, Region("far", 32 * K, 64 * K + 16)) == [(64 * K, ("low",)), (32 * K, ("far",))]


def test_regions_that_overlap_count_once() -> None:
    whole, part = Region("whole", 64 * K, 0), Region("part", 32 * K, 48 * K)
    assert usable(whole, part) == [(80 * K, ("whole", "part"))]


def test_a_reserve_between_two_regions_keeps_them_apart() -> None:
    low, high = Region("low", 64 * K, 0), Region("high", 32 * K, 64 * K, reserved=K)
    assert usable(low, high) == [(64 * K, ("low",)), (31 * K, ("high",))]
    assert usable(low, replace(high, reserved_at="end")) == [(95 * K, ("low", "high"))]
    assert usable(Region("all", K, 0, reserved=K), low.__class__("b", 16, K)) == [(16, ("b",))]


def test_a_region_without_an_address_is_a_block_of_its_own() -> None:
    assert usable(Region("a", 100), Region("b", 200, reserved=50)) == [(150, ("b",)), (100, ("a",))]
    assert usable(Region("a", 100, reserved=100)) == []


def test_external_memory_and_accelerators_do_not_join_the_chip() -> None:
    regions = Region("ram", K, 0), Region("ext", 8 * K, K, "psram"), Region("npu", 4 * K, 9 * K, "npu")
    found = blocks(device(*regions, Region("rom", 64 * K, 0x10000, "nvm")))
    assert [(block.memory, block.usable) for block in found] == [
        ("on chip", K), ("accelerator", 4 * K), ("external", 8 * K)
    ]  # fmt: skip


def test_what_is_taken_cuts_a_block() -> None:
    ram = Region("ram", 64 * K, 0x1000)
    assert usable(ram, taken=(Interval(0x1000 + 10 * K, 0x1000 + 20 * K), Interval(0, 0x1800))) == [
        (44 * K, ("ram",)), (8 * K, ("ram",))
    ]  # fmt: skip
    assert usable(ram, taken=(Interval(0, 1 << 30),)) == []
    assert [b.usable for b in blocks(device(ram, taken=(Interval(0x1000, 0x2000),)))] == [60 * K]


def test_an_arena_starts_at_a_multiple_of_16_bytes_and_takes_whole_units() -> None:
    assert Block(100, 0x20000001, ("ram",), "on chip").usable == 85
    assert Block(8, 0x20000001, ("ram",), "on chip").usable == 0
    assert Block(10_000, None, ("cbuf",), "accelerator", 4096).usable == 8192
    assert Block(10_000, None, ("pool",), "accelerator", 4096, power_of_two=True).usable == 8192
    assert Block(13_000, None, ("pool",), "accelerator", 4096, power_of_two=True).usable == 8192
    assert Block(4_000, None, ("pool",), "accelerator", 4096, power_of_two=True).usable == 0


def test_a_reserve_replaces_the_default() -> None:
    assert chosen_block(Wanted("nrf52840", (Reserve("sram0", 0),))).budget == 262_144
    assert chosen_block(Wanted("alif-e8", (Reserve("sram1", K),))).budget == 4_194_304
    assert chosen_block(Wanted("alif-e8", (Reserve("sram1", K, "end"),))).budget == 8_388_608 - K
    for region, size, said in (("sram9", 1, "no region 'sram9'"), ("sram0", 1 << 20, "cannot be reserved")):
        with pytest.raises(RequestError, match=said):
            chosen_block(Wanted("nrf52840", (Reserve(region, size),)))
    with pytest.raises(RequestError, match="all of it is reserved"):
        chosen_block(Wanted("nrf52840", (Reserve("sram0", 262_144),)))
    with pytest.raises(ValueError, match="no region 'x'"):
        with_reserve(known_device("rp2350"), "x", 1)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"size": 0}, "region a has 0 bytes"),
        ({"size": -1}, "region a has -1 bytes"),
        ({"base": -4}, "starts at -4"),
        ({"reserved": 101}, "of which 101 cannot be reserved"),
        ({"reserved": -1}, "of which -1 cannot be reserved"),
        ({"kind": "rom"}, "kind 'rom'; there are: ram, tcm"),
        ({"reserved_at": "middle"}, "'middle', expected start or end"),
        ({"granularity": 0}, "granularity of 0"),
        ({"name": ""}, "no name"),
    ],
)
def test_a_region_that_cannot_be_is_refused(facts: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Region(**{"name": "a", "size": 100} | facts)  # type: ignore[arg-type]


def test_two_regions_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two regions are called a"):
        device(Region("a", 1), Region("a", 2))


def test_a_device_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    path.write_text(
        'abi = "cortex-m"\nkernels = "cmsis-dsp"\n[[region]]\nname = "sram"\nbase = 0x20000000\nsize = 262144\n'
        'reserved = 16384\nreserved_for = "the radio"\n[[region]]\nname = "ext"\nsize = 8388608\nkind = "psram"\n'
        'readable_by = ["cpu", "dma"]\ndma = true\nbandwidth = 200000000\n'
    )
    chosen = chosen_block(Wanted(str(path)))
    assert (chosen.budget, chosen.device.name, chosen.device.abi) == (245_760, "board", "cortex-m")
    assert chosen_block(Wanted(f"{path}#ext")).budget == 8_388_608
    assert read_toml(str(path)).regions[1].readable_by == ("cpu", "dma")


def test_the_dma_engine_of_a_device_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "board.toml"
    path.write_text(
        "[dma]\nchannels = 2\ndepth = 4\nbandwidth = 100000000\nlatency_ns = 1000\n"
        '[[region]]\nname = "sram"\nsize = 1024\nread_bandwidth = 80000000\n'
    )
    assert read_toml(str(path)).dma == Dma(2, 4, 100_000_000, 1000)
    assert main(["targets", str(path)]) == 0
    assert "DMA       2 channels, 4 copies queued, 0.1 GB/s, 1000 ns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dma = 1\n[[region]]\nname = 'a'\nsize = 1\n", r"dma = 1; expected a table \[dma\]"),
        ("[dma]\nchannels = 0\n[[region]]\nname = 'a'\nsize = 1\n", "channels is 0; leave"),
        ("[dma]\nchannels = -1\n[[region]]\nname = 'a'\nsize = 1\n", "a DMA engine of -1 channels"),
        ("[dma]\nbandwidth = 0\n[[region]]\nname = 'a'\nsize = 1\n", "a DMA engine of 0 bytes/s"),
        ("[dma]\nlatency_ns = nan\n[[region]]\nname = 'a'\nsize = 1\n", "a latency of nan ns"),
        ("[dma]\nrate = '1MB/s'\n[[region]]\nname = 'a'\nsize = 1\n", "dma: no field 'rate'"),
        ("[dma]\ndepth = 2.0\n[[region]]\nname = 'a'\nsize = 1\n", "depth is 2.0, expected int"),
        ("name = ", "not TOML"),
        ('name = "x"', r"no \[\[region\]\]"),
        ("region = 1", r"no \[\[region\]\]"),
        ("[[region]]\nname = 'a'\n", "region a has no size"),
        ("[[region]]\nsize = 1\n", r"region \? has no name"),
        ("[[region]]\nname = 'a'\nsize = '64K'\n", "size is '64K', expected int"),
        ("[[region]]\nname = 'a'\nsize = true\n", "size is True, expected int"),
        ("[[region]]\nname = 'a'\nsize = 1\nspeed = 2\n", "no field 'speed'"),
        ("[[region]]\nname = 'a'\nsize = 0\n", "region a has 0 bytes"),
        ("[[region]]\nname = 'a'\nsize = 1\n[[region]]\nname = 'a'\nsize = 1\n", "two regions are called a"),
        ("regions = 1\n[[region]]\nname = 'a'\nsize = 1\n", "region"),
    ],
)
def test_a_toml_file_that_cannot_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "board.toml").write_text(text)
    with pytest.raises(ModelError, match=said):
        read_toml(str(tmp_path / "board.toml"))


def test_the_table_is_printed_and_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--filter", "espressif"]) == 0
    out = capsys.readouterr().out
    assert "esp32s3-n16r8" in out
    assert "rp2040" not in out
    assert main(["targets", "himax-we2", "imxrt1170"]) == 0
    out = capsys.readouterr().out
    for said in ("0x34000000", "126,976", "--reserve sram=BYTES", "8 GB/s", "no block is taken"):
        assert said in out
    assert main(["targets", "--filter", "zilog"]) == 2
    assert main(["targets", "rp2040", "--filter", "rp"]) == 2


def test_banks_are_counted_from_the_start_of_the_arena() -> None:
    parts = (Region("a", 64, 0x1000, reserved=40, bank_size=32), Region("b", 48, 0x1040), Region("far", 32, 0x9000))
    device = Device("chip", "a chip", parts, "none")
    [block, *_] = blocks(device)
    assert (block.start, block.regions) == (0x1028, ("a", "b"))
    assert banks_of(device, block) == (("a bank 1", -16), ("b", 16))
    assert banks_of(device, blocks(device)[1]) == ()
    with pytest.raises(ValueError, match="banks of 0 bytes"):
        Region("c", 64, bank_size=0)


@pytest.mark.parametrize(
    ("spoken", "device", "kernels"),
    [
        ("Pico", "rp2040", "cmsis-c"), ("RP2040", "rp2040", "cmsis-c"), ("nano_33_ble", "nrf52840", "cmsis-dsp"),
        ("stm32h743", "stm32h743", "cmsis-dsp"), ("ESP32-P4", "esp32-p4", "esp-nn-p4"),
        ("ESP32-S3", "esp32s3", "esp-nn@all"),
        ("cortex_m7", "cortex-m7", "cmsis-dsp"), ("STM32H7", "stm32h7", "cmsis-dsp"),
        ("esp32c3", "esp32c3", "esp-nn-generic"), ("xiao-esp32s3", "esp32s3", "esp-nn@all"),
        ("esp32-s3-devkitc-1", "esp32s3", "esp-nn@all"), ("cortex-m0plus", "cortex-m0+", "cmsis-c"),
        ("STM32F407VGT6", "stm32f407vg", "cmsis-dsp"), ("nucleo-n657x0", "stm32n657", "cmsis-mve"),
        ("nucleo-u575zi-q", "stm32u575zi", "cmsis-dsp"), ("stm32h747i-disco", "stm32h747", "cmsis-dsp"),
        ("portenta", "stm32h747xi", "cmsis-dsp"), ("nrf54l15", "nrf54l15", "cmsis-nn"),
        ("stm32f499", "stm32f4", "cmsis-dsp"), ("adafruit-feather-rp2040", "rp2040", "cmsis-c"),
    ],
)  # fmt: skip
def test_devices_have_the_names_that_people_use(spoken: str, device: str, kernels: str) -> None:
    found = known_device(spoken)
    assert (found.name, found.kernels) == (device, kernels)


def test_a_processor_gives_abi_and_kernels_but_no_memory() -> None:
    for row in PROCESSORS.values():
        assert row.abi in ABIS
        assert row.kernels in KERNELS
        chosen = chosen_block(Wanted(row.name))
        assert chosen.block is None
        assert re.search("processor or family|free after start-up", chosen.unknown)
    assert set(STM32_FAMILIES) < set(PROCESSORS)
    for boards in (row.no_arena.partition("such as ")[2].split(", ") for row in PROCESSORS.values()):
        assert set(filter(None, boards)) <= set(DEVICES) | set(CHIPS)
    for name, near in (("stm32h", "stm32h"), ("nrf5284", "nrf52")):
        with pytest.raises(RequestError, match=f"near are: {near}.*as from:FILE, or its processor"):
            known_device(name)


@pytest.mark.parametrize("board", BOARDS)
def test_every_board_names_a_chip_that_is_known(board: str) -> None:
    found = known_device(board)
    assert found.name[:6] == BOARDS[board][:6]
    assert found.kernels
    assert found.regions or "cortex" in found.name


def test_every_chip_is_found_by_its_own_name_and_has_its_memory() -> None:
    for name, row in CHIPS.items():
        found = known_device(name)
        memory = tuple(region for region in found.regions if region.kind != "nvm")
        assert name in DEVICES or (found.kernels, memory) == (row.kernels, row.regions[: len(memory)]), name
        assert memory
