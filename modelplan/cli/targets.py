"""Lists the devices that --target knows, or shows some in detail: regions, blocks, what is reserved, sources.

NAME is a device of the table, a part number (stm32f411ceu6), a board (nucleo-f446re, teensy41), FILE.toml, or
from:FILE[#PART] for a GNU ld script or map, a devicetree, a target file of probe-rs or a configuration of Vela.
"""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

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
from modelplan.targets.chips import CHIPS
from modelplan.targets.choosing import Wanted, chosen_block, device_of
from modelplan.targets.device import Device, blocks
from modelplan.targets.processors import PROCESSORS
from modelplan.targets.table import DEVICES, MICROCONTROLLERS

HEAD = """# Devices

Written by `modelplan targets --markdown docs/devices.md` from the table in `modelplan/targets/table.py`; do not edit.
[Targets](targets.md) says what counts and how a board of one's own is described.

Chips by part number, such as stm32f411ceu6, stand in `modelplan/targets/chips.py` with their sources: `modelplan
targets` lists them, `modelplan targets NAME` shows one.

P marks a primary source: a datasheet, a devicetree, a linker script, a vendor's documentation. S marks the table of
somebody else.
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="targets to show in detail, as --target takes them")
    parser.add_argument("--filter", metavar="WORD", help="only targets that have the word in a name, source or note")
    model_options.add_target_details(parser)
    parser.add_argument("--json", metavar="FILE", help="the targets as JSON; - for standard output")
    parser.add_argument("--markdown", metavar="FILE", help="the whole table as a page of the docs; - likewise")


def run(arguments: Namespace) -> int:
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
    """The devices of the table that have a word in one of their texts."""
    known = (*DEVICES.values(), *CHIPS.values(), *PROCESSORS.values())
    devices = [device for device in known if word is None or word.lower() in _text(device).lower()]
    if not devices:
        raise RequestError(f"--filter {word}: no target has that word; `modelplan targets` lists all")
    return devices


def _text(device: Device) -> str:
    regions = (f"{r.name} {r.kind} {r.note}" for r in device.regions)
    return " ".join((device.name, device.title, device.abi, device.kernels, device.source, device.note, *regions))


def _wanted(arguments: Namespace, name: str) -> Wanted:
    return wanted_device(model_options.target_options(arguments), name)


def shown(arguments: Namespace, devices: Sequence[Device]) -> list[Section]:
    """The table, or each device in detail; with --used also what is left of it."""
    if not arguments.names:
        groups = {
            "Microcontrollers": [d for d in devices if d.name in (*MICROCONTROLLERS, *CHIPS)],
            "Processors and families, whose memory --budget states": [d for d in devices if d.name in PROCESSORS],
        }
        listed = [device for group in groups.values() for device in group]
        groups["Accelerators and problem sets"] = [device for device in devices if device not in listed]
        return [table_section(title, group) for title, group in groups.items() if group]
    sections = []
    for name, device in zip(arguments.names, devices, strict=True):
        sections += device_sections(device)
        if arguments.used or "#" in name:
            sections.append(Section("For the arena", tuple(target_lines(chosen_block(_wanted(arguments, name))))))
    return sections


def as_json(device: Device) -> dict[str, object]:
    """The device with its blocks as an object."""
    free_blocks = [asdict(block) | {"usable": block.usable} for block in blocks(device)]
    block = usual_block(device)
    return asdict(device) | {"blocks": free_blocks, "arena": block.usable if block else None}


def guide() -> str:
    """The page docs/devices.md."""
    rows = "".join(map(_line, DEVICES.values()))
    head = "| target | device | largest block | ABI | kernels | source |\n|---|---|---:|---|---|---|\n"
    regions = "".join(
        f"\n### {', '.join(device.name for device in group)}\n\n{entry}"
        for entry, group in groupby(DEVICES.values(), key=_entry)
    )
    return f"{HEAD}\n## The table\n\n{head}{rows}\n## Regions\n{regions}"


def _line(device: Device) -> str:
    block = usual_block(device)
    size = f"{block.usable:,}" if block else "no figure"
    title = f"{device.title} (benchmark)" if device.benchmark else device.title
    cells = (device.name, title, size, device.abi, device.kernels, f"{device.quality}: {device.source}")
    return f"| {' | '.join(cells)} |\n"


def _entry(device: Device) -> str:
    """What is said of a device below its name."""
    facts = [text for text in (device.no_arena and f"no figure for an arena: {device.no_arena}", device.note) if text]
    lines = [f"* {text}\n" for text in facts]
    for region in device.regions:
        place = "" if region.base is None else f" at {region.base:#x}"
        about = "".join(f"; {fact}" for fact in region_facts(region))
        lines.append(f"* `{region.name}` ({region.kind}): {region.size:,} bytes{place}, {brief(region.size)}{about}\n")
    return "".join(lines)
