"""Regions as a caller states them: what is read, and what is refused by name."""

from __future__ import annotations

import pytest

from modelplan.primitives.errors import RequestError
from modelplan.targets.device import Region
from modelplan.targets.stated_regions import check_regions, parse_region


def test_a_region_is_read_with_all_that_it_can_say() -> None:
    text = "psram:8MiB@0x3c000000,read=80MB/s,write=40MB/s,latency=1.5us,align=64,kind=psram,dma=no,reach=cpu+dma"
    assert parse_region(text) == Region(
        "psram", 8 << 20, 0x3C000000, "psram", read_bandwidth=80_000_000, write_bandwidth=40_000_000,
        latency_ns=1500.0, alignment=64, dma=False, readable_by=("cpu", "dma"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"), [("sram0", "ram"), ("psram", "psram"), ("flash0", "nvm"), ("dtcm", "tcm"), ("ocram", "ram")]
)
def test_the_name_tells_the_kind(name: str, kind: str) -> None:
    assert parse_region(f"{name}:64KiB").kind == kind


def test_a_region_of_a_target_is_changed_and_keeps_the_rest() -> None:
    known = Region("hyper", 64 << 20, 0x90000000, "psram", bandwidth=200_000_000)
    changed = parse_region("hyper:read=300MB/s", [known])
    assert (changed.size, changed.base, changed.read_bandwidth) == (64 << 20, 0x90000000, 300_000_000)
    assert parse_region("hyper:1MiB,write=1MB/s", [known]).size == 1 << 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sram", "expected NAME:SIZE"),
        (":64KiB", "expected NAME:SIZE"),
        ("sram:", "no size"),
        ("sram:-5", "cannot read '-5' as bytes"),
        ("sram:0", "0 bytes, expected more than 0"),
        ("sram:64KB", "may mean"),
        ("sram:64KiB@home", "'home' is no address"),
        ("sram:64KiB@-4", "starts at -4"),
        ("sram:64KiB,read=-80MB/s", "read: cannot read '-80MB/s' as bytes per second"),
        ("sram:64KiB,read=0MB/s", "at least 1 byte per second"),
        ("sram:64KiB,read=80MB", "bytes per second"),
        ("sram:64KiB,latency=5", "as a time"),
        ("sram:64KiB,align=3", "alignment of 3, expected a power of two"),
        ("sram:64KiB,kind=fast", "kind 'fast'; there are"),
        ("sram:64KiB,dma=maybe", "expected yes or no"),
        ("sram:64KiB,reed=80MB/s", "did you mean read?"),
        ("sram:64KiB,read=1MB/s,read=2MB/s", "read is given twice"),
        ("sram:64KiB,reserve=128KiB", "cannot be reserved"),
        ("sram:read=1MB/s", "cannot read 'read=1MB/s' as bytes"),
    ],
)
def test_what_cannot_be_a_region_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(RequestError, match="--region") as caught:
        parse_region(text)
    assert words in str(caught.value)
    assert text in str(caught.value)


def test_regions_that_overlap_or_share_a_name_are_refused_with_their_addresses() -> None:
    one, other = parse_region("a:64KiB@0x1000"), parse_region("b:64KiB@0x10fff")
    with pytest.raises(RequestError, match=r"a at 0x1000..0x11000 and b at 0x10fff..0x20fff overlap"):
        check_regions([one, other])
    with pytest.raises(RequestError, match="two regions are called a"):
        check_regions([one, parse_region("a:1MiB")])
    check_regions([one, parse_region("b:64KiB@0x11000"), parse_region("c:1MiB")])


def test_time_follows_bandwidth_of_the_direction_and_latency() -> None:
    region = parse_region("psram:8MiB,read=80MB/s,write=40MB/s,latency=100ns")
    assert region.seconds(8000, 0) == pytest.approx(100e-6 + 100e-9)
    assert region.seconds(0, 4000) == pytest.approx(100e-6 + 100e-9)
    assert region.seconds(8000, 4000) == pytest.approx(200e-6 + 200e-9)
    assert region.seconds(0, 0) == 0
    assert Region("sram", 1024).seconds(10**9, 10**9) == 0
    assert Region("one", 1024, bandwidth=1000).seconds(500, 500) == 1.0


@pytest.mark.parametrize(
    "facts", [{"bandwidth": -1}, {"read_bandwidth": 0}, {"write_bandwidth": -5}, {"latency_ns": -1.0}, {"latency": -1},
              {"latency_ns": float("inf")}, {"alignment": 0}]
)  # fmt: skip
def test_a_region_refuses_facts_that_cannot_be(facts: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="region r has"):
        Region("r", 1024, **facts)  # type: ignore[arg-type]
