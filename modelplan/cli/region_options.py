"""The options of commands that place a model in several memories: regions, the target that has them, its DMA engine."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.cli import model_options
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import parse_nanoseconds, parse_rate, rounded_up
from modelplan.questions.target_request import wanted_device

if TYPE_CHECKING:
    from modelplan.targets.device import Device, Dma, Region


def add_regions(parser: ArgumentParser) -> None:
    """Adds --region, and --target with what says more about it."""
    parser.add_argument(
        "--region", metavar="NAME:SIZE...", action="append", default=[],
        help="a memory, like sram:256KiB@0x20000000 or psram:8MiB,read=80MB/s,write=40MB/s; repeatable, fastest first",
    )  # fmt: skip
    add_memory(parser, "the memories in one word, the fastest first, as 256KiB+8MiB")
    parser.add_argument(
        "--largest", metavar="BYTES", help="no allocation of those memories has more bytes: each is cut into such parts"
    )
    parser.add_argument(
        "--target", metavar="NAME|FILE", help="the regions of a device of `modelplan targets`, or a file"
    )
    model_options.add_target_details(parser.add_argument_group("target"))


def add_memory(parser: ArgumentParser | _ArgumentGroup, words: str) -> None:
    """Adds --memory, which states one memory or several in one word."""
    rate = "the others with the usual rate of octal PSRAM, 80MB/s"
    parser.add_argument("--memory", metavar="BYTES[+BYTES]", help=f"{words}; {rate}")


#: What is said of the flash of a microcontroller, which --memory does not name.
IN_PLACE = "holds the model file, which is read in place"


def with_flash(memories: tuple[Region, ...], paths: Sequence[str]) -> tuple[Region, ...]:
    """The memories, and for .tflite files the flash that holds them, which counts as no slower than the first."""
    from modelplan.targets.device import Region

    if not paths or not all(path.lower().endswith(".tflite") and Path(path).is_file() for path in paths):
        return memories
    nbytes = sum(Path(path).stat().st_size for path in paths)
    return (*memories, Region("flash", rounded_up(max(nbytes, 1), 4096), kind="nvm", note=IN_PLACE))


#: What a region's rate usually is, by its kind: octal PSRAM at 80 MHz, quad SPI flash at 80 MHz.
_USUAL_RATES = {"psram": "read=80MB/s,write=80MB/s", "nvm": "read=40MB/s"}


def add_reader(parser: ArgumentParser | _ArgumentGroup) -> None:
    """Adds the choice of the processor that runs the operators."""
    parser.add_argument("--reader", metavar="NAME", default="", help="what runs the operators, for regions with reach=")


def target_device(arguments: Namespace) -> Device | None:
    """The device that --target names; None without one."""
    if arguments.target is None:
        return None
    from modelplan.targets.choosing import device_of

    if arguments.used:
        raise RequestError("--used finds a free block for one arena; for several memories state --reserve REGION=BYTES")
    return device_of(wanted_device(model_options.target_options(arguments), arguments.target))[0]


def _no_memories(target: str | None) -> str:
    """What is missing where neither the target nor the caller names a memory."""
    from modelplan.targets.table import DEVICES

    if target is None:
        return "no memories: name them by --memory 256KiB+8MiB, --region NAME:SIZE... or --target NAME"
    boards = [name for name in DEVICES if name.startswith(target.lower())]
    near = f", or a device such as {boards[0]} by --target" if boards else ""
    return f"{target} is a processor, whose memories are not known: --memory 256KiB+8MiB or --region states them{near}"


def regions_of(arguments: Namespace, device: Device | None) -> tuple[Region, ...]:
    """The regions of the device as the caller changes them, then those that the caller adds."""
    from modelplan.targets.stated_regions import check_regions, parse_memories, parse_region

    known: tuple[Region, ...] = () if device is None else device.regions
    if arguments.memory and device:
        raise RequestError("--memory states the memories; --target has its own, which --region changes")
    if arguments.largest and not arguments.memory:
        raise RequestError("--largest is of the memories that --memory states")
    if arguments.memory:
        known = with_flash(parse_memories(arguments.memory, arguments.largest), getattr(arguments, "models", ()))
    stated = [parse_region(text, known) for text in arguments.region]
    names = [region.name for region in stated]
    regions = (*({r.name: r for r in stated}.get(region.name, region) for region in known),
               *(r for r in stated if r.name not in {region.name for region in known}))  # fmt: skip
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RequestError(f"two regions are called {twice}")
    if not regions:
        raise RequestError(_no_memories(arguments.target))
    check_regions(regions)
    slow = [
        region
        for region in regions
        if region.kind in _USUAL_RATES and not (region.read_bandwidth or region.bandwidth or region.note == IN_PLACE)
    ]
    if slow and len(regions) > 1:
        which = ", ".join(f"region {region.name} ({region.kind})" for region in slow)
        options = " ".join(f"--region {region.name}:{region.size},{_USUAL_RATES[region.kind]}" for region in slow)
        raise RequestError(
            f"{which} {'states' if len(slow) == 1 else 'state'} no rate, so nothing says what an access costs; usual"
            f" for octal PSRAM and quad SPI flash: {options}"
        )
    return regions


def engine_of(text: str | None, device: Device | None) -> Dma | None:
    """The engine that `--dma` states, what it leaves out being the device's; without --dma that of the device.

    None, also for `--dma none`, says that the processor copies.
    """
    known = None if device is None else device.dma
    if text is None or text == "none":
        return known if text is None else None
    from modelplan.targets.device import Dma

    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or key not in ("channels", "queue", "rate", "latency") or key in given:
            raise RequestError(f"--dma: found {part!r}, expected channels=, queue=, rate= or latency=, each once")
        given[key] = value
    engine = known or Dma(channels=1)
    for key, field in (("channels", "channels"), ("queue", "depth")):
        value = given.get(key, str(getattr(engine, field)))
        if not value.isdecimal() or not 1 <= int(value[:5]) <= 9999:
            raise RequestError(f"--dma: {key} is {value!r}, expected a number from 1 to 9999")
        engine = replace(engine, **{field: int(value)})
    if "rate" in given:
        engine = replace(engine, bandwidth=parse_rate(given["rate"]))
    return replace(engine, latency_ns=parse_nanoseconds(given["latency"])) if "latency" in given else engine
