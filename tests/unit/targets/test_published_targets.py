"""Linker scripts, devicetrees and target files as vendors publish them: each reads right or is refused by its line.

`tests/data/targets/SOURCES.md` says where each is from. They lie in the corpus, not in this repository.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from modelplan import ModelPlanError
from modelplan.targets.choosing import Wanted, chosen_block, device_of

DATA = Path(__file__).parents[2] / "data" / "targets"
#: File, the bytes of the block for an arena, and the regions in it with their bytes.
READ = [line.split() for line in (DATA / "published.txt").read_text().splitlines()]

#: File, and what the refusal says.
REFUSED = [
    ("executorch/generic-no-memory.ld", "no MEMORY block with a region in it"),
    ("libopencm3/linker.ld.S", r"linker.ld.S:33: region ram: _RAM_OFF is not defined; --define _RAM_OFF=VALUE"),
    ("nrfx/nrf_common.ld", "no MEMORY block"),
    ("zephyr/dts/arm/nordic/nrf52840.dtsi", "no enabled memory node"),
    ("probe-rs/RP235x.yaml", "2 variants; choose one by #NAME: RP235x, RP235x_riscv"),
    ("probe-rs/STM32H7_Series.yaml", "STM32H723VE, STM32H723VG, .* and 117 more"),
    ("probe-rs/nRF52_Series.yaml#nRF52", "no variant 'nRF52'; .* nRF52"),
    ("vela/vela.ini", "6 memory modes; choose one by #NAME: Sram_Only"),
    ("vela/vela.ini#Sram_Only", "states no arena_cache_size"),
]

#: Files that are refused until the folder with what they include is named, and the line that asks for it.
INCLUDING = [
    ("himax/TrustZone_S_ONLY.ld", r"TrustZone_S_ONLY.ld:1: WE2_device_addr.h is included"),
    ("pico-rp2040/memmap_default.ld", r"memmap_default.ld:26: pico_flash_region.ld is included"),
    ("idf-esp32s3/memory.ld.in", r"memory.ld.in:14: sdkconfig.h is included"),
]


@pytest.fixture(scope="module")
def published(corpus: Path) -> Path:
    folder = corpus / "targets"
    if not folder.is_dir():
        pytest.skip(f"no published target files at {folder}; tests/data/targets/SOURCES.md says where they are from")
    return folder


def wanted(folder: Path, name: str, *, include: bool = True) -> Wanted:
    return Wanted(f"from:{folder / name}", folders=(folder / "beside",) if include else ())


@pytest.mark.parametrize("row", READ, ids=[row[0] for row in READ])
def test_a_published_file_reads_right(published: Path, row: list[str]) -> None:
    name, block, *regions = row
    device, _ = device_of(wanted(published, name))
    assert {r.name: r.size for r in device.regions} == dict(zip(regions[::2], map(int, regions[1::2]), strict=True))
    assert chosen_block(wanted(published, name)).budget == int(block)


@pytest.mark.parametrize(("name", "said"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_published_file_without_an_answer_is_refused(published: Path, name: str, said: str) -> None:
    with pytest.raises(ModelPlanError, match=said):
        chosen_block(wanted(published, name))


@pytest.mark.parametrize(("name", "said"), INCLUDING, ids=[row[0] for row in INCLUDING])
def test_a_missing_include_is_asked_for_by_its_line(published: Path, name: str, said: str) -> None:
    with pytest.raises(ModelPlanError, match=said):
        chosen_block(wanted(published, name, include=False))
