"""Lists the devices that --target knows, or shows some in detail: regions, blocks, what is reserved, sources.

NAME is a device of the table, FILE.toml, or from:FILE[#PART] for a GNU ld script or map, a devicetree, a target file
of probe-rs or a configuration of Vela.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from modelplan.cli import files, model_options, terminal
from modelplan.outputs.report import Section
from modelplan.outputs.reports.target_report import (
    SCHEMA,
    device_sections,
    region_facts,
    table_section,
    target_lines,
    usual_block,
)
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import brief
from modelplan.questions.target_request import wanted_device
from modelplan.targets.choosing import Wanted, chosen_block, device_of
from modelplan.targets.device import Device, blocks
from modelplan.targets.table import DEVICES

HEAD = """# Targets

Written by `modelplan targets --markdown docs/targets.md` from the table in `modelplan/targets/table.py`; do not edit.

A target is a device with its memory: `modelplan check MODEL --target NAME`. What counts is the largest contiguous
block of memory that a program writes, never the sum: regions whose addresses adjoin are one block unless a reserve
lies between. External memory counts only where it is chosen, as `NAME#REGION`. An arena starts at a multiple of 16
bytes. An accelerator's scratchpad counts where there is no other memory.

What is reserved is never a fact of a chip but the habit of its software; `--reserve REGION=BYTES` replaces it,
`REGION=BYTES@end` at the other end. The ABI and the kernels hold where `--abi` and `--kernels` are not given.

P marks a primary source: a datasheet, a devicetree, a linker script, a vendor's documentation. S marks the table of
somebody else. Where the size of a device's memory is not known, `analyze` gives the number and says why nothing tells
whether it fits; `check` refuses the device with the reason.

## From a file

Better than any table is what the project itself has:

* `from:memory.ld`: the `MEMORY` of a GNU ld script, with its expressions, `INCLUDE` and preprocessor.
  `--define NAME=VALUE` gives values to names that it leaves open, `--include DIR` says where included files lie.
  A region is memory that a program writes where its attributes hold `w`; one without attributes has to be chosen by
  `#REGION`. One whose name speaks of external memory (`ext`, `psram`, `sdram`, `ddr`, `qspi`, `hyper`) is external.
* `from:app.map`: the regions as ld evaluated them.
* `from:build/zephyr/zephyr.dts`: the memory nodes of a devicetree; a source works too where its includes are found.
* `from:STM32H7_Series.yaml#STM32H743ZI`: a part from a target file of probe-rs.
* `from:vela.ini#Dedicated_Sram_384KB`: a memory mode of the Ethos-U.
* `board.toml`: a device of one's own, with the fields of a region as `modelplan/targets/device.py` names them.

* A board or a family by the name that people use (`pico`, `stm32h7`, `cortex-m7`, `esp32c3`), in any case: ABI and
  kernels follow from it; the memory only where it is one board.

`--used app.elf` or `--used app.map` subtracts what the program occupies: the largest gap is what is left for the
arena. The arena's own symbol (`--arena-symbol`, by default `tensor_arena` where the program has it) counts as free,
and what the linker has put behind it without a gap moves up when it grows: then the arena's bytes and the free bytes
behind are one block. Where a section is at a fixed address right behind the arena, that is more than a link gives. A
map tells the size of the arena only of a program that was compiled with `-fdata-sections`. A stack or a heap without
a section is not seen; `--reserve` it. YAML and ELF files need `pip install 'modelplan[targets]'`.

An ELF file with symbols also tells the kernel library and the ABI, in place of the target's: CMSIS-NN by its functions
(`arm_convolve_s8`), with DSP instructions or Helium by the build attributes of the program; ESP-NN (`esp_nn_...`); or
TFLM's own kernels. Two libraries, ESP-NN of the ESP32-S3, whose version no symbol names, and functions that contradict
the attributes stand for all libraries. Kernels of a library that is not known here are named: no number is for them.
`--kernels` and `--abi` win.

```toml
name = "my-board"
abi = "cortex-m"
kernels = "cmsis-dsp"
[[region]]
name = "sram"
base = 0x20000000
size = 262144
reserved = 16384
reserved_for = "the radio"
```

For `memories`, `spill` and `stream` a region may state `read_bandwidth`, `write_bandwidth` (bytes per second) and
`latency_ns`, and a table `[dma]` the engine: `channels`, `depth` (copies under way), `bandwidth`, `latency_ns`.
"""


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="targets to show in detail, as --target takes them")
    parser.add_argument("--filter", metavar="WORD", help="only targets that have the word in a name, source or note")
    model_options.add_target_details(parser)
    parser.add_argument("--json", metavar="FILE", help="the targets as JSON; - for standard output")
    parser.add_argument("--markdown", metavar="FILE", help="the whole table as a page of the docs; - likewise")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    files.check_outputs([arguments.json, arguments.markdown], [])
    if arguments.markdown:
        files.write(arguments.markdown, guide())
    devices = named(arguments) if arguments.names else filtered(arguments.filter)
    if arguments.json:
        document = {"schema": SCHEMA, "targets": [as_json(device) for device in devices]}
        files.write(arguments.json, json.dumps(document, indent=1) + "\n")
    if "-" in (arguments.json, arguments.markdown) or (arguments.markdown and not arguments.names):
        return 0
    terminal.show(shown(arguments, devices))
    return 0


def named(arguments: Namespace) -> list[Device]:
    """The devices that are asked for, read from their files where they are not of the table."""
    if arguments.filter:
        raise RequestError("--filter is for the table; the targets are named already")
    return [device_of(_wanted(arguments, name))[0] for name in arguments.names]


def filtered(word: str | None) -> list[Device]:
    """The devices of the table that have a word in one of their texts.

    Raises:
        RequestError: none has it, or it is asked of no device.
    """
    found = [device for device in DEVICES.values() if word is None or word.lower() in _text(device).lower()]
    if not found:
        raise RequestError(f"--filter {word}: no target has that word; `modelplan targets` lists all")
    return found


def _text(device: Device) -> str:
    regions = (f"{r.name} {r.kind} {r.note}" for r in device.regions)
    return " ".join((device.name, device.title, device.abi, device.kernels, device.source, device.note, *regions))


def _wanted(arguments: Namespace, name: str) -> Wanted:
    return wanted_device(model_options.target_options(arguments), name)


def shown(arguments: Namespace, devices: Sequence[Device]) -> list[Section]:
    """The table, or each device in detail; with --used also what is left of it."""
    if not arguments.names:
        return [table_section(devices)]
    found = []
    for name, device in zip(arguments.names, devices, strict=True):
        found += device_sections(device)
        if arguments.used or "#" in name:
            found.append(Section("For the arena", tuple(target_lines(chosen_block(_wanted(arguments, name))))))
    return found


def as_json(device: Device) -> dict[str, Any]:
    """The device with its blocks as an object."""
    found = [asdict(block) | {"usable": block.usable} for block in blocks(device)]
    block = usual_block(device)
    return asdict(device) | {"blocks": found, "arena": block.usable if block else None}


def guide() -> str:
    """The page docs/targets.md."""
    rows = "".join(map(_line, DEVICES.values()))
    head = "| target | device | largest block | ABI | kernels | source |\n|---|---|---:|---|---|---|\n"
    return f"{HEAD}\n## The table\n\n{head}{rows}\n## Regions\n{''.join(map(_entry, DEVICES.values()))}"


def _line(device: Device) -> str:
    block = usual_block(device)
    size = f"{block.usable:,}" if block else "no figure"
    title = f"{device.title} (benchmark)" if device.benchmark else device.title
    cells = (device.name, title, size, device.abi, device.kernels, f"{device.quality}: {device.source}")
    return f"| {' | '.join(cells)} |\n"


def _entry(device: Device) -> str:
    facts = [text for text in (device.no_arena and f"no figure for an arena: {device.no_arena}", device.note) if text]
    lines = [f"* {text}\n" for text in facts]
    for region in device.regions:
        place = "" if region.base is None else f" at {region.base:#x}"
        about = "".join(f"; {fact}" for fact in region_facts(region))
        lines.append(f"* `{region.name}` ({region.kind}): {region.size:,} bytes{place}, {brief(region.size)}{about}\n")
    return f"\n### {device.name}\n\n{''.join(lines)}"
