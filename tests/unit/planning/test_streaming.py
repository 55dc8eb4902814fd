"""Models that stream their weights: the time model against the simulator, the curve, and the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from sheets import texts_and_boxes

from modelplan import load, plan
from modelplan.checking.moves_simulator import simulate
from modelplan.cli import main
from modelplan.model import Graph, Plan
from modelplan.outputs.figures import stream_chart
from modelplan.outputs.reports.stream_report import sections_of
from modelplan.planning.memories.streaming import Link, Stream, point, stream_curve, stream_of, streamed, swapped
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import milliseconds

MODELS = Path(__file__).parents[3] / "models"
LINK = Link(1_000_000_000, 1e11, 20_000_000_000, 1000.0)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder of 6 layers whose weights are in a file that does not exist."""
    path = tmp_path_factory.mktemp("models") / "decoder.onnx"
    sizes = ("--layers", "6", "--width", "256", "--heads", "4", "--inner", "688", "--words", "512", "--past", "16")
    script = MODELS / "large_decoder.py"
    subprocess.run([sys.executable, script, "--out", path, *sizes], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def made(decoder: Path) -> Plan:
    graph = load(decoder)
    assert isinstance(graph, Graph)
    return plan(graph)


@pytest.fixture(scope="module")
def stream(made: Plan) -> Stream:
    return stream_of(made, LINK)


@pytest.mark.slow
def test_weights_are_counted_from_shapes_and_embeddings_by_their_rows(stream: Stream) -> None:
    layer = 4 * 256 * 256 + 3 * 256 * 688 + 2 * 256
    row, shapes = 2 * 256, 8 * (4 + 3)
    assert stream.weights == 2 * (6 * layer + 256 + 256 * 512) + row + shapes
    assert stream.largest == 2 * 256 * 688
    assert len(stream.rows) == 1


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.6, 0.9, 1.0])
def test_a_layout_takes_what_the_time_model_says(stream: Stream, share: float) -> None:
    memory = int(stream.least + share * (stream.most - stream.least))
    asked, layout = streamed(stream, memory)
    run = simulate(asked, layout)
    expected = point(stream, memory)
    assert run.seconds == pytest.approx(expected.seconds, rel=0.05)
    assert run.copied == pytest.approx(expected.streamed, rel=0.1)
    assert run.seconds >= max(stream.computing, run.copied / LINK.rate)
    assert max(stay.offset + int(asked.problem.size[stay.buffer]) for stay in layout.stays) <= memory


def test_more_memory_and_a_quicker_link_never_take_longer(made: Plan) -> None:
    found = stream_curve(made, [LINK, replace(LINK, rate=4 * LINK.rate)], points=9)
    for _, points in found.curves:
        assert all(a.seconds >= b.seconds for a, b in pairwise(points))
        assert all(a.needed >= b.needed for a, b in pairwise(points))
    assert all(a.seconds >= b.seconds for a, b in zip(found.curves[0][1], found.curves[1][1], strict=True))
    last = found.curves[0][1][-1]
    assert last.seconds == pytest.approx(found.computing, rel=0.1)
    assert last.streamed == 512


def test_a_layout_beyond_the_plot_is_told_in_words(made: Plan, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    found = stream_curve(made, [LINK], points=3)
    run = simulate(*streamed(stream, stream.most))
    for chosen, start in ((stream.most, "ring: "), (8 << 30, f"in 8192.00 MiB {milliseconds(run.seconds)}: ")):
        texts, _ = texts_and_boxes(stream_chart.draw, replace(found, chosen=chosen, simulated=run), monkeypatch)
        assert f"{start}a layout with addresses, replayed" in texts


@pytest.mark.slow
def test_more_memory_never_takes_longer_where_its_own_windows_are_slower() -> None:
    graph = load(MODELS / "unet_small.tflite")
    assert isinstance(graph, Graph)
    link = Link(1_000_000_000, 1e13)
    answer = plan(graph)
    found = stream_curve(answer, [link], points=60)
    points = found.curves[0][1]
    alone = [point(stream_of(answer, link), one.memory).seconds for one in points]
    assert any(a < b for a, b in pairwise(alone))
    assert all(a.seconds >= b.seconds for a, b in pairwise(points))
    assert all(one.seconds <= own for one, own in zip(points, alone, strict=True))
    assert (points[-1].streamed, points[-1].needed) == (0, 0.0)
    assert points[0].needed == float("inf")
    text = " ".join(line for section in sections_of(found) for line in section.lines)
    assert "needed -: no rate is enough" in text


def test_the_needed_rate_is_enough_and_less_is_not(made: Plan, stream: Stream) -> None:
    memory = (stream.least + stream.most) // 2
    needed = point(stream, memory).needed
    for factor, enough in ((1.01, True), (0.9, False)):
        other = stream_of(made, replace(LINK, rate=int(needed * factor)))
        assert (point(other, memory).seconds <= stream.computing * 1.0101) is enough


@pytest.mark.slow
def test_below_the_least_memory_activations_wait_on_the_host(stream: Stream) -> None:
    with pytest.raises(RequestError, match=f"the least is {stream.least:,}"):
        point(stream, stream.least - 1)
    asked, found = swapped(stream, stream.least - stream.activations // 2)
    assert simulate(asked, found.layout).seconds == pytest.approx(found.seconds)
    assert any(stay.region == 1 and asked.home[stay.buffer] < 0 for stay in found.layout.stays)


@pytest.mark.slow
def test_the_command_says_what_two_memories_take(decoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "stream",
        str(decoder),
        "--memory",
        "3MiB",
        "--link",
        "1GB/s",
        "--link",
        "4GB/s",
        "--macs-per-second",
        "1e11",
    ]
    assert main([*words, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [curve["rate"] for curve in found["curves"]] == [10**9, 4 * 10**9]
    assert found["chosen"]["seconds"] > found["computing"]
    assert main(words) == 0
    assert "One run in 3.00 MiB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["--memory", "1KiB"], 2, "step"),
        (["--macs-per-second", "0"], 2, "expected more than 0"),
        (["--link", "fast"], 2, "cannot read 'fast' as bytes per second"),
        (["--points", "1"], 2, "--points is 1, expected from 2"),
        (["--draw", "curve.txt"], 2, "the name must end in"),
    ],
)
def test_the_command_refuses(
    decoder: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, reason: str
) -> None:
    assert main(["stream", str(decoder), "--link", "1GB/s", "--macs-per-second", "1e11", *words]) == code
    assert reason in capsys.readouterr().err


REGIONS = [
    "--region", "sram:32KiB,rate=400MB/s", "--region", "psram:1MiB,read=80MB/s,write=40MB/s",
    "--region", "flash:1MiB,read=50MB/s,kind=nvm",
]  # fmt: skip


@pytest.mark.slow
def test_the_command_spills_and_writes_what_moves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(MODELS / "resnet8.tflite")
    files = [str(tmp_path / name) for name in ("a.json", "a.csv", "a.svg", "a.png")]
    words = ["--json", files[0], "--csv", files[1], "--draw", files[2], "--draw", files[3]]
    assert main(["spill", model, *REGIONS, "--dma", "channels=2,queue=4,rate=100MB/s,latency=1us", *words]) == 0
    text = capsys.readouterr().out
    assert "from psram to sram" in text
    found = json.loads(Path(files[0]).read_text())
    assert {copy["to"] for copy in found["copies"]} == {"sram", "psram"} or {c["to"] for c in found["copies"]} == {
        "sram"
    }
    assert found["times"]["seconds"] >= found["times"]["floor"]
    assert Path(files[1]).read_text().count("\n") == len(found["stays"]) + 1
    assert Path(files[2]).read_bytes().startswith(b"<?xml")


BOARD = """
[dma]
channels = 2
depth = 4
bandwidth = 100_000_000
latency_ns = 1000.0
[[region]]
name = "sram"
size = 32_768
bandwidth = 400_000_000
[[region]]
name = "psram"
size = 1_048_576
kind = "psram"
read_bandwidth = 80_000_000
write_bandwidth = 40_000_000
[[region]]
name = "flash"
size = 1_048_576
kind = "nvm"
read_bandwidth = 50_000_000
"""


@pytest.fixture
def board(tmp_path: Path) -> str:
    """A device with the memories of `REGIONS` and an engine."""
    (tmp_path / "board.toml").write_text(BOARD)
    return str(tmp_path / "board.toml")


def times_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> float:
    """The seconds of a run as the command finds them."""
    assert main([*words, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    seconds: float = (found["times"] if "times" in found else found["chosen"])["seconds"]
    return seconds


@pytest.mark.slow
def test_a_target_states_memories_and_engine(board: str, capsys: pytest.CaptureFixture[str]) -> None:
    engine = "channels=2,queue=4,rate=100MB/s,latency=1us"
    command = ["spill", str(MODELS / "resnet8.tflite")]
    target = [*command, "--target", board]
    assert times_of(target, capsys) == times_of([*command, *REGIONS, "--dma", engine], capsys)
    assert times_of([*target, "--dma", "none"], capsys) == times_of([*command, *REGIONS], capsys)
    assert times_of([*target, "--dma", "channels=1"], capsys) == times_of(
        [*command, *REGIONS, "--dma", engine.replace("=2", "=1")], capsys
    )
    slow = times_of([*target, "--region", "psram:read=1MB/s"], capsys)
    assert slow > times_of(target, capsys)


@pytest.mark.slow
def test_a_target_states_what_a_model_streams_through(
    board: str, decoder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["stream", str(decoder), "--macs-per-second", "1e11"]
    link = ["--link", "100MB/s", "--latency", "1us", "--queue", "4"]
    stated = [*command, *link, "--memory-rate", "80MB/s", "--memory", "1MiB"]
    assert times_of([*command, "--target", f"{board}#psram"], capsys) == times_of(stated, capsys)
    assert main(command) == 2
    assert "--link RATE, or a --target whose DMA engine states one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "no memories: name them by --memory 256KiB"),
        (["--target", "no-such-board"], "no target 'no-such-board'"),
        (["--target", "esp32s3-n16r8"], "region psram (psram), region flash (nvm) state no rate"),
        (["--target", "nrf52840", "--region", "flash0:rate=64MB/s", "--used", "x.elf"], "--used finds a free block"),
        (["--region", "a:64KiB", "--copied-only", "a"], "--copied-only names all regions"),
        (["--region", "a:64KiB", "--json", "x.json", "--csv", "x.json"], "x.json: two outputs go there"),
        (["--region", "a:64KiB", "--json", "-", "--csv", "-"], "standard output: two outputs go there"),
        (["--region", "a:64KiB", "--json", "."], "cannot write .: it is a folder"),
        (["--region", "a:64KiB", "--seconds", "nan"], "--seconds is nan"),
        (["--region", "a:64KiB@0x100", "--region", "b:64KiB@0x200"], "regions a at 0x100..0x10100 and b"),
        (["--region", "a:64KiB,latency=nans"], "cannot read 'nans' as a time"),
        (["--region", "a:64KiB,reach=npu", "--reader", "cpu"], "fits in no region"),
    ],
)
def test_the_command_says_what_a_target_lacks(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spill", str(MODELS / "resnet8.tflite"), *words]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--region", "sram:1KiB"], "fits in no region that may hold it: sram 1,024"),
        (["--region", "a:64KiB", "--region", "a:64KiB"], "two regions are called a"),
        (["--region", "a:64KiB", "--copied-only", "b"], "--copied-only b: there is no such region"),
        (["--region", "a:64KiB", "--dma", "width=4"], "--dma: found 'width=4'"),
        (["--region", "a:64KiB", "--dma", "channels=0"], "channels is '0', expected a number from 1"),
        (["--region", "a:64KiB,read=-1MB/s"], "read"),
        (
            ["--region", "a:64KiB", "--region", "b:8MiB,kind=psram,rate=1MB/s", "--copied-only", "b"],
            "a has 65,536 bytes for it; b is for copies, operators do not reach it; flash is not written during a run",
        ),
        (["--region", "a:64KiB", "--draw", "map.gif"], "the name must end in"),
    ],
)
def test_the_command_names_what_is_wrong(capsys: pytest.CaptureFixture[str], words: list[str], reason: str) -> None:
    large = "operators do not reach it" in reason
    model, flash = "mobilenet_v2_like.tflite" if large else "resnet8.tflite", "flash:8MiB,read=50MB/s,kind=nvm"
    assert main(["spill", str(MODELS / model), *words, "--region", flash]) == 2
    assert reason in capsys.readouterr().err
