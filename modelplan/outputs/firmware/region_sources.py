"""Layouts for firmware and runtimes: C arrays with a linker script, TFLM's two arenas, ExecuTorch's memory ids."""

import json
import re

from modelplan.answers.region_layout import Stay
from modelplan.answers.region_plan import RegionPlan, TflmArena
from modelplan.primitives.errors import RequestError
from modelplan.targets.device import Region


def c_header(region_plan: RegionPlan) -> str:
    """One array for each region that is written, in a section of the region's name, and each buffer's offset in it.

    One source file defines MODELPLAN_MEMORIES_DEFINE before it includes the header, and so has the arrays. Weights that
    are read in place, in memory that is not written, have no array: they are constants of the program.

    Raises:
        RequestError: the names of two regions differ in nothing that C takes.
    """
    lines = [
        f"// Made by {region_plan.made_by} for {_comment(region_plan.title)}.",
        "#ifndef MODELPLAN_MEMORIES_H_",
        "#define MODELPLAN_MEMORIES_H_",
        "",
        "#include <stdint.h>",
    ]
    names = [
        f"MODELPLAN_{_word(_name(region_plan, stay)).upper()[-60:].strip('_')}_{stay.buffer}"
        for stay in region_plan.layout.stays
    ]
    words = [_word(region.name) for region in region_plan.problem.regions]
    if len(set(words)) < len(words):
        raise RequestError(f"two regions have one name in C: {', '.join(words)}")
    for number, region in enumerate(region_plan.problem.regions):
        first, size = extent(region_plan, number)
        if region.kind == "nvm" or not size:
            continue
        array, align = f"modelplan_{_word(region.name)}", alignment(region_plan, number)
        lines += [
            "",
            f"// {region.name}: {size} bytes from "
            + (f"offset {first}" if region.base is None else f"{region.base + first:#x}"),
            f"extern uint8_t {array}[{size}];",
            "#ifdef MODELPLAN_MEMORIES_DEFINE",
            f'__attribute__((section(".{_word(region.name)}"), aligned({align}))) uint8_t {array}[{size}];',
            "#endif",
        ]
        lines += [
            f"#define {names[i]} ({array} + {stay.offset - first})  // {_comment(_name(region_plan, stay))}"
            for i, stay in enumerate(region_plan.layout.stays)
            if stay.region == number
        ]
    return "\n".join([*lines, "", "#endif  // MODELPLAN_MEMORIES_H_", ""])


def linker_sections(region_plan: RegionPlan) -> str:
    """The sections of `c_header` at the addresses of the regions, for GNU ld: given by -T, it adds to the usual script.

    Raises:
        RequestError: a region has no address.
    """
    sections, checks = [], []
    for number, region in enumerate(region_plan.problem.regions):
        first, size = extent(region_plan, number)
        if region.kind == "nvm" or not size:
            continue
        if region.base is None:
            raise RequestError(f"region {region.name} has no address; state it as {region.name}:{region.size}@0x...")
        name = _word(region.name)
        sections.append(f"  .{name} {region.base + first:#x} (NOLOAD) : {{ KEEP(*(.{name})) }}")
        least = f"SIZEOF(.{name}) <= {region.size - first}"
        checks.append(f'ASSERT({least}, "{name}: more than the region of {region.size} bytes")')
    lines = ["SECTIONS", "{", "  modelplan_here = .;", *sections, "  . = modelplan_here;", "}", "INSERT AFTER .bss;"]
    return "\n".join([f"/* Made by {region_plan.made_by}. */", *(lines if sections else ()), *checks, ""])


def extent(region_plan: RegionPlan, number: int) -> tuple[int, int]:
    """The offset and the size of the array that covers all stays in a region."""
    rows = region_plan.problem.problem
    stays = [stay for stay in region_plan.layout.stays if stay.region == number]
    first = min((stay.offset for stay in stays), default=0)
    return first, max((stay.offset + int(rows.size[stay.buffer]) for stay in stays), default=first) - first


def alignment(region_plan: RegionPlan, number: int) -> int:
    """The largest power of two, up to 4096, that the array's address and what its buffers need share."""
    rows, region = region_plan.problem.problem, region_plan.problem.regions[number]
    inside = [int(rows.alignment[stay.buffer]) for stay in region_plan.layout.stays if stay.region == number]
    needed = max([*inside, region.alignment], default=1)
    address = (region.base or 0) + extent(region_plan, number)[0]
    return min(needed, address & -address) if address else needed


def tflm_header(region_plan: RegionPlan) -> str:
    """TFLM's two arenas as arrays in sections of their regions, and the allocator on them.

    Raises:
        RequestError: TFLM does not run the model, or an arena fits in no region.
    """
    tflm_arenas = {arena.name: arena for arena in region_plan.arenas}
    if not tflm_arenas or any(arena.region < 0 for arena in region_plan.arenas[:2]):
        raise RequestError("no two arenas: TFLM does not run the model, or an arena fits in no region")
    kept, free = tflm_arenas["persistent"], tflm_arenas["non-persistent"]

    def array(name: str, arena: TflmArena) -> str:
        section = _word(_region(region_plan, arena).name)
        return f'alignas(16) __attribute__((section(".{section}"))) inline uint8_t {name}[{arena.nbytes}];'

    return f"""\
// Made by {region_plan.made_by} for {_comment(region_plan.title)}.
#ifndef MODELPLAN_TWO_ARENAS_H_
#define MODELPLAN_TWO_ARENAS_H_

#include <cstdint>

#include "tensorflow/lite/micro/micro_allocator.h"

namespace modelplan {{

// In {_region(region_plan, kept).name}: {kept.holds}.
{array("persistent_arena", kept)}
// In {_region(region_plan, free).name}: {free.holds}.
{array("non_persistent_arena", free)}

inline tflite::MicroAllocator* CreateAllocator() {{
  return tflite::MicroAllocator::Create(persistent_arena, sizeof(persistent_arena), non_persistent_arena,
                                        sizeof(non_persistent_arena));
}}

}}  // namespace modelplan

#endif  // MODELPLAN_TWO_ARENAS_H_
"""


def _region(region_plan: RegionPlan, arena: TflmArena) -> Region:
    return region_plan.problem.regions[arena.region]


def executorch_ids(plan: RegionPlan) -> str:
    """The layout in ExecuTorch's terms: memory ids from 1, their sizes, and for each tensor an id and an offset.

    `non_const_buffer_sizes` is the field of an ExecutionPlan: item 0 is reserved, item n is the size of memory n, which
    the runtime is given as one of its planned buffers. Constants have no memory id there; those that lie in a memory
    that is written stand under `copied_constants`.
    """
    sizes, ids, memories = [0], dict[int, int](), []
    for number, region in enumerate(plan.problem.regions):
        first, size = extent(plan, number)
        if region.kind != "nvm":
            ids[number] = len(sizes)
            sizes.append(first + size)
            memories.append({"mem_id": ids[number], "region": region.name, "base": region.base, "size": first + size})
    tensors: list[dict[str, object]] = []
    constants: list[dict[str, object]] = []
    for stay in plan.layout.stays:
        owner, kind = plan.owners[stay.buffer]
        if stay.region not in ids:
            continue
        rows = plan.problem.problem
        members = rows.members[stay.buffer] if rows.members else ()
        graph = plan.plans[owner].graph
        named = [(graph.tensors[m.tensor].name, m.delta, graph.tensors[m.tensor].nbytes) for m in members]
        for name, delta, size in named or [(rows.names[stay.buffer], 0, int(rows.size[stay.buffer]))]:
            offset = stay.offset + delta
            entry = {"name": name, "mem_id": ids[stay.region], "mem_offset": offset, "allocated_memory": size,
                     "memory_offset_low": offset & 0xFFFFFFFF, "memory_offset_high": offset >> 32,
                     "lifetime": [stay.start, stay.end - 1]}  # fmt: skip
            (constants if kind == "weights" else tensors).append(entry)
    document = {"made_by": plan.made_by, "memories": memories, "non_const_buffer_sizes": sizes, "tensors": tensors,
                "copied_constants": constants}  # fmt: skip
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _name(region_plan: RegionPlan, stay: Stay) -> str:
    return region_plan.problem.problem.names[stay.buffer]


def _word(text: str) -> str:
    """`text` as a part of a C identifier."""
    return re.sub(r"[^0-9a-zA-Z]+", "_", text).strip("_") or "x"


def _comment(text: str) -> str:
    """`text` where nothing in it ends or continues a comment."""
    return re.sub(r"[^ -~]|\\", "?", text)
