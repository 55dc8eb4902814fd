"""Files that describe a device: every form reads right, and what has no value is refused by its line."""

from __future__ import annotations

import builtins
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import linking
import pytest

from modelplan import ModelError, ModelPlanError, RequestError
from modelplan.targets.choosing import Chosen, Reserve, Wanted, chosen_block, device_of
from modelplan.targets.device import Device
from modelplan.targets.device_files import read_probe_rs, read_vela_ini
from modelplan.targets.devicetree import read_devicetree
from modelplan.targets.linker_script import read_linker_script
from modelplan.targets.occupied import bears_name, read_map, read_occupied

DATA = Path(__file__).parents[2] / "data" / "targets"
BESIDE = (DATA / "beside",)
K, M = 1024, 1024**2


def regions(device: Device) -> dict[str, tuple[str, int | None, int]]:
    return {region.name: (region.kind, region.base, region.size) for region in device.regions}


def script(name: str, definitions: Mapping[str, str] | None = None) -> Device:
    return read_linker_script(str(DATA / name), definitions or {}, BESIDE)


def written(folder: Path, text: str, name: str = "x.ld") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


LINKER_SCRIPTS: list[tuple[str, dict[str, str], dict[str, tuple[str, int, int]]]] = [
    (
        "include_and_expression.ld",
        {},
        {
            "APP_ROM": ("nvm", 0x10000000, 256 * K),
            "APP_DATA": ("ram", 0x30000000, 256 * K),
            "SRAM": ("ram", 0x3401F000, 2 * M - 0x1F000),
        },
    ),
    (
        "preprocessed.ld.in",
        {},
        {
            "iram_seg": ("nvm", 0x40374000, 0x60000),
            "drom_seg": ("nvm", 0x3C000020, 0x1FFFFE0),
            "dram_seg": ("ram", 0x3FC88000, 341_760),
            "rtc_seg": ("ram", 0x600FE000, 0x2000 - 24),
            "extern_ram_seg": ("psram", 0x3C000020, 0x1FFFFE0),
        },
    ),
    (
        "include_in_memory.ld",
        {},
        {
            "FLASH": ("nvm", 0x10000000, 2 * M),
            "RAM": ("ram", 0x20000000, 256 * K),
            "SCRATCH_X": ("ram", 0x20040000, 4 * K),
            "SCRATCH_Y": ("ram", 0x20041000, 4 * K),
        },
    ),
    (
        "symbols.ld",
        {},
        {
            "FLASH": ("nvm", 0, M - 8 * K),
            "SETTINGS": ("nvm", M - 8 * K, 8 * K),
            "SHARED": ("ram", 0x20000000, 4 * K),
            "RAM": ("ram", 0x20001000, 124 * K),
        },
    ),
    ("defined_symbols.ld", {}, {"flash": ("nvm", 0x10000000, 64 * K), "ram": ("ram", 0x20000000, 32 * K)}),
    (
        "defined_symbols.ld",
        {"__ram": "0x20001000", "__ram_size": "3 * 4K"},
        {"flash": ("nvm", 0x10000000, 64 * K), "ram": ("ram", 0x20001000, 12 * K)},
    ),
    ("open_symbols.ld", {"_RAM_OFF": "0x20000000", "_RAM": "20K"}, {"ram": ("ram", 0x20000000, 20 * K)}),
    (
        "open_symbols.ld",
        {"_RAM_OFF": "0", "_RAM": "20K", "_ROM": "1M", "_ROM_OFF": "0x8000000"},
        {"ram": ("ram", 0, 20 * K), "rom": ("nvm", 0x8000000, M)},
    ),
]


@pytest.mark.parametrize(("name", "definitions", "expected"), LINKER_SCRIPTS)
def test_a_linker_script_reads_right(
    name: str, definitions: dict[str, str], expected: dict[str, tuple[str, int, int]]
) -> None:
    assert regions(script(name, definitions)) == expected


@pytest.mark.parametrize("name", ["symbols.ld", "defined_symbols.ld", "include_in_memory.ld", "no_attributes.ld"])
def test_the_linker_reads_the_same(tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copy(DATA / name, tmp_path))
    found = linking.memory_of(copy, linking.object_file(tmp_path), BESIDE)
    assert isinstance(found, Path), found
    assert regions(read_map(str(found))) == regions(script(name))


def test_conditions_that_were_taken_as_not_defined_are_named() -> None:
    device = script("preprocessed.ld.in")
    remark, beside = device.remarks
    assert "stack and the heap are not subtracted" in beside
    assert "took as not defined: CONFIG_FIXED_SIZE, CONFIG_HALF; --define NAME=VALUE" in remark
    half = script("preprocessed.ld.in", {"CONFIG_HALF": "1", "CONFIG_WHOLE": "0"})
    assert regions(half)["dram_seg"][2] == 341_760 // 2
    assert regions(script("preprocessed.ld.in", {"CONFIG_FIXED_SIZE": "64K"}))["dram_seg"][2] == 64 * K


@pytest.mark.parametrize(
    ("words", "region", "reserved"),
    [
        ("_Min_Heap_Size = 0x200; _Min_Stack_Size = 0x1000;", "RAM", 0x1200),
        ("_estack = ORIGIN(DTCM) + LENGTH(DTCM); _Min_Stack_Size = 4K;", "DTCM", 4 * K),
        ("__StackTop = ORIGIN(RAM) + LENGTH(RAM); __StackLimit = __StackTop - 0x800;", "RAM", 0x800),
        ("__HEAP_SIZE = 1K; __STACK_SIZE = 1M;", "RAM", 64 * K),
        ("HEAP_SIZE = 0;", "", 0),
        ("_stack_size = SIZEOF(.stack);", "", 0),
    ],
)
def test_the_stack_and_the_heap_that_a_script_reserves_are_not_free(
    tmp_path: Path, words: str, region: str, reserved: int
) -> None:
    memory = "MEMORY { RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 64K DTCM (rwx) : ORIGIN = 0, LENGTH = 16K }"
    (tmp_path / "x.ld").write_text(f"{words}\n{memory}\n")
    device = read_linker_script(str(tmp_path / "x.ld"), {})
    assert {r.name: r.reserved for r in device.regions if r.reserved} == ({region: reserved} if reserved else {})
    assert bool(reserved) != any("the stack and the heap are not subtracted" in remark for remark in device.remarks)


def test_what_a_script_reserves_counts_once_where_the_program_has_a_section_for_it(tmp_path: Path) -> None:
    script, used = tmp_path / "x.ld", tmp_path / "x.map"
    script.write_text("_Min_Stack_Size = 4K;\nMEMORY { RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 64K }\n")
    for section, free in ((".data", 59 * K), ("._user_heap_stack", 63 * K)):
        used.write_text(f"Linker script and memory map\n\n{section}  0x20000000  0x400\n")
        assert chosen_block(Wanted(f"from:{script}", used=str(used))).budget == free
    used.write_text("Linker script and memory map\n\n.stack  0x20000000  0x400\n")
    asked = (Reserve("RAM", 2 * K),)
    assert chosen_block(Wanted(f"from:{script}", asked, used=str(used))).budget == 61 * K


def test_a_region_without_attributes_holds_an_arena_only_where_it_is_chosen() -> None:
    path = f"from:{DATA / 'no_attributes.ld'}"
    assert "SRAM: the script gives it no attributes" in chosen_block(Wanted(path)).unknown
    assert chosen_block(Wanted(f"{path}#SRAM")).budget == 8 * K


ONE = "MEMORY {{ RAM (rwx) : ORIGIN = {}, LENGTH = {} }}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SECTIONS { }", "x.ld: no MEMORY block"),
        ("int main(void) { return 0; }", "no MEMORY block"),
        ("", "no MEMORY block"),
        (ONE.format(0, 0), "x.ld:1: region RAM: region RAM has 0 bytes"),
        (ONE.format(0, "1K - 2K"), "x.ld:1: region RAM: region RAM has -1024 bytes"),
        (ONE.format("0 - 4", 8), "starts at -4"),
        ("\n\n" + ONE.format("BASE", 8), "x.ld:3: region RAM: BASE is not defined; --define BASE=VALUE"),
        (ONE.format(0, "1K / 0"), "a division by zero"),
        (ONE.format(0, "1 << 200"), "cannot be shifted by 200"),
        (ONE.format(0, "(0 - 1) < 2 ? 8 : 16"), "-1 and 2 cannot be compared"),
        (ONE.format(0, "FOO(3)"), r"FOO\(\) is not understood"),
        (ONE.format(0, "DEFINED()"), r"DEFINED\(\) of 0 operands, expected 1"),
        (ONE.format(0, "MIN(3)"), r"MIN\(\) of 1 operand, expected 2"),
        (ONE.format(0, "0x" + "9" * 4000), "a value of more than 256 bits"),
        (ONE.format(0, "12Q"), "cannot read 12Q as a number"),
        (ONE.format(0, "089"), "cannot read 089 as a number"),
        (ONE.format(0, "(1"), r"expected \), found }"),
        (ONE.format(0, "("), "cannot read the region"),
        (ONE.format(0, "LENGTH(ROM)"), r"LENGTH\(ROM\): there is no such region"),
        (ONE.format(0, "LENGTH(RAM)"), r"LENGTH\(RAM\) is defined by itself"),
        (ONE.format(0, "LENGTH()"), "region RAM"),
        (ONE.format(0, "A") + " A = B; B = A;", "A is defined by itself"),
        (ONE.format(0, "A") + " A = 1; A = 2;", "A is assigned more than once; --define A=VALUE"),
        (ONE.format(0, "A") + " A = 1; A += 2;", "A is assigned more than once"),
        (ONE.format(0, "A") + " A = . + 4;", "the location counter has no value here"),
        ("MEMORY { RAM (rwx) : ORIGIN = 0, LENGTH = 8", "x.ld:1: MEMORY has no end"),
        ("MEMORY { RAM (rwx) ORIGIN = 0, LENGTH = 8 }", "expected :, found ORIGIN"),
        ("MEMORY { RAM : LENGTH = 8 }", "expected ORIGIN, found LENGTH"),
        ("MEMORY { RAM", "cannot read the region RAM"),
        (
            "MEMORY {\nRAM (rw) : ORIGIN = 0, LENGTH = 8\nRAM (rw) : ORIGIN = 8, LENGTH = 8\n}",
            "x.ld:3: two regions are called RAM; the first stands at .*x.ld:2",
        ),
        ("INCLUDE other.ld", "x.ld:1: other.ld is included, and is neither beside"),
        ("/* a\n b */\n#include <there.h>", "x.ld:3: there.h is included"),
        ('#include "x.ld"', "files that include each other"),
        ("INCLUDE x.ld", "files that include each other"),
        ("#if 1\n" + ONE.format(0, 8), "an #if without its #endif"),
        ("#endif", "#endif without #if"),
        ("#else", "#else without #if"),
        ("#if (\n#endif", "#if"),
        ("#if A(1)\n#endif", r"A\(\) is not understood"),
        ("#error not this board", "x.ld:1: #error not this board"),
        ("#define 3", "cannot read #define 3"),
        ("#define F(a, b) a\nF(1)", r"x.ld:2: F\(\) has 2 arguments, found 1"),
        ("#define A B B B B\n#define B C C C C\n#define C " + "D " * 40000 + "\nA", "longer than 100,000"),
        (
            "".join(f"#define A{i} A{i + 1}\n" for i in range(5000)) + ONE.format(0, "A0"),
            "x.ld:5001: region RAM: A61 ",
        ),
        (ONE.format(0, "(" * 5000 + "1" + ")" * 5000), "more than 60 parentheses"),
    ],
)
def test_a_script_that_cannot_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        read_linker_script(written(tmp_path, text), {})


def test_a_file_that_is_no_text_or_is_missing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.ld").write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(ModelError, match=r"x.ld: not text"):
        read_linker_script(str(tmp_path / "x.ld"), {})
    for name in ("a.ld", "a.dts", "a.yaml", "a.ini", "a.map"):
        with pytest.raises(ModelPlanError, match=f"{name}: No such file"):
            chosen_block(Wanted(f"from:{tmp_path / name}"))


BOARD = DATA / "zephyr" / "dts" / "arm" / "acme" / "board.dts"


def test_a_devicetree_reads_right() -> None:
    device = read_devicetree(str(BOARD), {})
    assert regions(device) == {
        "sram0": ("ram", 0x20000000, 256 * K),
        "sram1": ("ram", 0x20040000, 64 * K),
        "shared": ("ram", 0x50008000, 2 * K),
        "psram": ("psram", 0x60000000, 8 * M),
        "flash0": ("nvm", 0, M),
    }
    assert device.title == "Acme board"
    assert device.remarks == ("/reserved-memory keeps 4,096 bytes at 0x2003f000",)
    assert chosen_block(Wanted(f"from:{BOARD}")).budget == 252 * K
    assert chosen_block(Wanted(f"from:{BOARD}#psram")).budget == 8 * M


ROOT = "/ {{ #address-cells = <{}>; #size-cells = <{}>; {} }};"
SRAM = 'sram: memory@0 {{ compatible = "mmio-sram"; reg = <{}>; }};'


def tree(body: str, wide: tuple[int, int] = (1, 1)) -> str:
    return ROOT.format(*wide, body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (tree(SRAM.format("0x1 0x0 0x0 0x100"), (2, 2)), {"sram": ("ram", 1 << 32, 256)}),
        (tree(SRAM.format("0x1 0x20 0x100"), (2, 1)), {"sram": ("ram", (1 << 32) + 32, 256)}),
        (tree(SRAM.format("0 64 128 32")), {"sram-0": ("ram", 0, 64), "sram-1": ("ram", 128, 32)}),
        (tree(SRAM.format("0>, <64")), {"sram": ("ram", 0, 64)}),
        (tree('m@8 { device_type = "memory"; reg = <8 (1 << (2 + 3))>; };'), {"m@8": ("ram", 8, 32)}),
        (tree('m { compatible = "x,itcm"; reg = <0 8>; };'), {"m": ("tcm", 0, 8)}),
        (tree('s: sdram@0 { device_type = "memory"; reg = <0 8>; };'), {"s": ("psram", 0, 8)}),
        (tree(SRAM.format("0 8")) + '&sram { /delete-property/ status; status = "okay"; };', {"sram": ("ram", 0, 8)}),
        (tree(SRAM.format("0 8") + '"; }"' * 0) + "/* } */ // }", {"sram": ("ram", 0, 8)}),
        ("/dts-v1/; /memreserve/ 0 8; " + tree(SRAM.format("0 N")), {"sram": ("ram", 0, 8)}),
    ],
)
def test_forms_of_a_devicetree(tmp_path: Path, text: str, expected: dict[str, tuple[str, int, int]]) -> None:
    assert regions(read_devicetree(written(tmp_path, text, "x.dts"), {"N": "8"})) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no enabled memory node"),
        (tree(SRAM.format("0 8")) + '&sram { status = "disabled"; };', "no enabled memory node"),
        (tree(SRAM.format("0 8")) + "/delete-node/ &sram;", "no enabled memory node"),
        (tree(SRAM.format("0 8 9")), "x.dts:1: reg has 3 cells"),
        (tree(SRAM.format("0 SIZE")), "x.dts:1: SIZE is not defined; --define SIZE=VALUE"),
        ("#include <sizes.h>\n" + tree(SRAM.format("0 SIZE")), "it may stand in sizes.h, which is missing"),
        ("#include <soc.dtsi>\n" + tree(SRAM.format("0 8")), "x.dts:1: soc.dtsi is included"),
        ('/include/ "soc.dtsi"\n', "x.dts:1: soc.dtsi is included"),
        ("/ { " + SRAM.format("0 8") + " };", "does not say its #address-cells"),
        (tree(SRAM.format("0 0")), "x.dts:1: region sram has 0 bytes"),
        (tree(SRAM.format("0 (4 - 8)")), "region sram has -4 bytes"),
        (tree(SRAM.format("0 8")) + "&other { };", "there is no node &other; is the file that defines it missing"),
        (tree(SRAM.format("0 8") + SRAM.replace("@0", "@1").format("8 8")), "two regions are called sram"),
        ("/ { a = <1>", "has no end"),
        ("/ { ", "the node / has no end"),
        ("a = <1>;", "the property a stands outside of a node"),
        ("a { };", "the node a stands outside of the root"),
        ("}", "x.dts:1: cannot read '}'"),
        ("/ { \n ) };", "x.dts:2: cannot read"),
        ("/ { " + "a { " * 100, "more than 60 nodes"),
        (tree('soc { #address-cells = <1>; #size-cells = <1>; ranges = <0 64 8>; ' + SRAM.format("8 8") + " };"),
         "the ranges of soc do not hold the address 0x8"),
    ],
)  # fmt: skip
def test_a_devicetree_that_cannot_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        read_devicetree(written(tmp_path, text, "x.dts"), {})


def test_a_part_of_probe_rs_reads_right() -> None:
    path = str(DATA / "parts.yaml")
    device = read_probe_rs(path, "ACME1")
    assert regions(device) == {
        "BANK": ("nvm", 0x8000000, M),
        "DTCM": ("ram", 0x20000000, 128 * K),
        "Ram@0x24000000": ("ram", 0x24000000, 512 * K),
        "ALIAS": ("ram", 0x34000000, M),
        "ROM": ("nvm", 0x40000000, M),
    }
    assert chosen_block(Wanted(f"from:{path}#ACME1")).budget == 512 * K
    assert chosen_block(Wanted(f"from:{path}#ACME1/DTCM")).budget == 128 * K
    for variant, said in (
        ("", "2 variants; choose one by #NAME: ACME1, ACME2"),
        ("ACME", "no variant 'ACME'; near are: ACME"),
        ("Z", "there are: ACME1, ACME2"),
    ):
        with pytest.raises(RequestError, match=said):
            read_probe_rs(path, variant)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not YAML"),
        ("a: !!python/object:os.system x", "not YAML"),
        ("[1]", "no list of variants"),
        ("variants: [{name: A}]", "variant A: there is no memory_map"),
        ("variants: [{name: A, memory_map: [!Ram {}]}]", "a Ram region has no range"),
        ("variants: [{name: A, memory_map: [!Ram {range: {start: 8, end: 8}}]}]", "has 0 bytes"),
        ("variants: [{name: A, memory_map: [!Ram {range: {start: 8, end: x}}]}]", "no range with start and end"),
        ("variants: [{name: A, memory_map: [{range: 3}]}]", "variant A: an entry of memory_map has no kind"),
        ("variants: [3]", "no variant"),
    ],
)
def test_a_target_file_that_cannot_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ModelPlanError, match=said):
        read_probe_rs(written(tmp_path, text, "x.yaml"), "")


def test_a_memory_mode_of_vela_reads_right() -> None:
    path = str(DATA / "modes.ini")
    assert chosen_block(Wanted(f"from:{path}#Dedicated_384")).budget == 393_216
    assert read_vela_ini(path, "Memory_Mode.Dedicated_384").note == "const in Axi1, arena in Axi1, cache in Axi0"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("", "", r"no section \[Memory_Mode.NAME\]"),
        ("a=1", "", "File contains no section headers"),
        ("[Memory_Mode.A]\n[Memory_Mode.B]\n", "", "2 memory modes; choose one by #NAME: A, B"),
        ("[Memory_Mode.A]\n", "C", "no memory mode 'C'; choose one by #NAME: A"),
        ("[Memory_Mode.A]\n", "", r"\[Memory_Mode.A\] states no arena_cache_size .*: the size is the board's"),
        ("[Memory_Mode.A]\narena_cache_size=many\n", "", "is 'many', expected bytes"),
        ("[Memory_Mode.A]\narena_cache_size=0\n", "", "region sram has 0 bytes"),
        ("[Memory_Mode.A]\ninherit=Memory_Mode.B\n", "", "inherits Memory_Mode.B, which is missing"),
        ("[Memory_Mode.A]\ninherit=Memory_Mode.A\n", "", "inherits Memory_Mode.A, which is missing or inherits it"),
    ],
)
def test_a_memory_mode_that_cannot_be_read_is_refused(tmp_path: Path, text: str, mode: str, said: str) -> None:
    with pytest.raises(ModelPlanError, match=said):
        read_vela_ini(written(tmp_path, text, "x.ini"), mode)


@pytest.mark.parametrize(
    ("module", "target", "used"),
    [("yaml", f"from:{DATA / 'parts.yaml'}#ACME2", None), ("elftools", "rp2040", "app.elf")],
)
def test_a_missing_reader_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, target: str, used: str | None
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.split(".")[0] == module:
            raise ImportError(name)
        return real(name, *rest, **named)

    (tmp_path / "app.elf").write_bytes(b"\x7fELF")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RequestError, match=r"pip install 'modelplan\[targets\]'"):
        chosen_block(Wanted(target, used=str(tmp_path / used) if used else None))


SCRIPT = """
MEMORY { FLASH (rx) : ORIGIN = 0x08000000, LENGTH = 256K
 RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 64K
 RAM2 (rwx) : ORIGIN = 0x30000000, LENGTH = 32K }
ENTRY(main)
SECTIONS {
 .text : { *(.text*) *(.rodata*) } > FLASH
 .data : { *(.data*) } > RAM AT> FLASH
 .bss : { *(.bss*) *(COMMON) } > RAM
 ._user_heap_stack : { . = ALIGN(8); . = . + 0x400; } > RAM
 .a_section_with_a_very_long_name : { . = . + 100; } > RAM2
}
"""
SOURCE = """
__attribute__((aligned(16))) static unsigned char NAME[SIZE];
static unsigned char other[3001]; unsigned table[16] = {1, 2, 3}; static unsigned char late[77];
int main(void) { NAME[3] = 1; other[2] = NAME[5]; late[1] = other[7]; return table[2] + late[2]; }
"""


def program(size: int, name: str = "tensor_arena") -> str:
    return SOURCE.replace("NAME", name).replace("SIZE", str(size))


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    assert linking.link(tmp_path, SCRIPT, program(20_000)) == ""
    return tmp_path


def left(folder: Path, used: str, symbol: str | None = None, part: str = "") -> Chosen:
    return chosen_block(Wanted(f"from:{folder / 'app.ld'}{part}", used=str(folder / used), arena_symbol=symbol))


def test_the_map_and_the_elf_file_give_the_same(linked: Path) -> None:
    by_elf, by_map = left(linked, "app.elf"), left(linked, "app.map")
    assert by_elf.budget == by_map.budget > 20_000
    assert (by_elf.arena, by_elf.taken, by_elf.block) == (by_map.arena, by_map.taken, by_map.block)
    assert by_elf.symbol == "tensor_arena"
    for part in ("#RAM", "#RAM2"):
        assert left(linked, "app.elf", part=part).budget == left(linked, "app.map", part=part).budget
    assert left(linked, "app.elf", part="#RAM2").budget == 32 * K - 112  # 100 bytes, and an arena starts at 16
    assert read_occupied(str(linked / "app.elf")).intervals == read_occupied(str(linked / "app.map")).intervals


def test_an_arena_of_what_is_left_links_and_one_step_more_does_not(linked: Path, tmp_path: Path) -> None:
    room = left(linked, "app.elf").budget
    assert linking.link(tmp_path, SCRIPT, program(room)) == ""
    assert "overflowed by 16 bytes" in linking.link(tmp_path, SCRIPT, program(room + 16))


def test_what_is_left_does_not_depend_on_the_arena_there_is(linked: Path, tmp_path: Path) -> None:
    room = left(linked, "app.elf").budget
    for size in (16, 4096, room):
        assert linking.link(tmp_path, SCRIPT, program(size)) == ""
        assert left(tmp_path, "app.elf").budget == left(tmp_path, "app.map").budget == room


def test_the_map_lists_the_regions_that_the_script_declares(linked: Path) -> None:
    assert regions(read_map(str(linked / "app.map"))) == regions(read_linker_script(str(linked / "app.ld"), {}))


def test_an_arena_by_another_name(tmp_path: Path) -> None:
    assert linking.link(tmp_path, SCRIPT, program(20_000, "my_memory")) == ""
    without = left(tmp_path, "app.elf")
    assert (without.symbol, without.arena) == ("", None)
    named = left(tmp_path, "app.elf", "my_memory")
    assert named.budget == left(tmp_path, "app.map", "my_memory").budget == without.budget // 16 * 16 + 20_000
    for used in ("app.elf", "app.map"):
        with pytest.raises(RequestError, match=r"--arena-symbol nothing: .* has no such symbol"):
            left(tmp_path, used, "nothing")


def test_a_program_for_another_device_is_refused(linked: Path) -> None:
    with pytest.raises(RequestError, match="the program lies in no region of apollo3 that has an address"):
        chosen_block(Wanted("apollo3", used=str(linked / "app.elf")))


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"hello", "neither an ELF file nor a map"), (b"\x7fELF", "not a whole ELF file"), (b"", "neither an ELF file")],
)
def test_a_file_that_is_no_program_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "app").write_bytes(content)
    with pytest.raises(ModelError, match=said):
        chosen_block(Wanted("rp2040", used=str(tmp_path / "app")))


def test_an_object_file_that_is_not_linked_is_refused(tmp_path: Path) -> None:
    path = linking.object_file(tmp_path)
    with pytest.raises(ModelPlanError, match="is not linked"):
        chosen_block(Wanted("rp2040", used=str(path)))


def test_a_map_that_does_not_tell_the_size_of_the_arena_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.map").write_text(
        "Memory Configuration\n\nName Origin Length Attributes\nRAM 0x20000000 0x1000 xrw\n\n"
        "Linker script and memory map\n\n.bss            0x20000000      0x800\n .bss           0x20000000"
        "      0x800 a.o\n                0x20000010                tensor_arena\n"
    )
    with pytest.raises(RequestError, match="has the symbol tensor_arena but not its size; give the ELF file"):
        chosen_block(Wanted(f"from:{tmp_path / 'app.map'}", used=str(tmp_path / "app.map")))


def test_names_as_cpp_writes_them() -> None:
    for symbol in ("tensor_arena", "_ZL12tensor_arena", "_ZN12_GLOBAL__N_112tensor_arenaE", "_ZN4tiny12tensor_arenaE"):
        assert bears_name(symbol, "tensor_arena"), symbol
    for symbol in ("my_tensor_arena", "tensor_arena_size", "_ZL17tensor_arena_size", "_ZL15my_tensor_arena"):
        assert not bears_name(symbol, "tensor_arena"), symbol


def test_a_device_is_asked_for_once(tmp_path: Path) -> None:
    path = written(tmp_path, ONE.format(0, "64K"))
    assert device_of(Wanted(f"from:{path}#RAM"))[1] == "RAM"
    with pytest.raises(RequestError, match="no region 'ROM'; there are: RAM"):
        chosen_block(Wanted(f"from:{path}#ROM"))


def test_damaged_files_are_refused_by_their_place(tmp_path: Path) -> None:
    twice = "Memory Configuration\n\nRAM 0x0 0x10 xrw\nRAM 0x20 0x10 xrw\n\nLinker script and memory map\n"
    with pytest.raises(ModelError, match=r"x\.map: two regions are called RAM"):
        read_map(written(tmp_path, twice, "x.map"))
    long = "9" * 6000
    for rows, body in ((f"RAM 0x0 0x{long} xrw", ""), ("RAM 0x0 0x10 xrw", f"\n.bss 0x0 0x{long}\n")):
        table = f"Memory Configuration\n\n{rows}\n\nLinker script and memory map\n{body}"
        path = written(tmp_path, table, "x.map")
        with pytest.raises(ModelError, match=r"x\.map: 0x0 and 0x9{40} are no range of 64-bit addresses"):
            chosen_block(Wanted(f"from:{path}", used=path))
    for cells, reason in (("", "#address-cells has no value"), ("<0>", "reg has 2 cells, expected a multiple of 0")):
        tree = f"/dts-v1/; / {{ #address-cells = {cells or '<>'}; #size-cells = <0>; m@0 {{ reg = <0 1>; "
        tree += 'compatible = "mmio-sram"; }; };'
        with pytest.raises(ModelError, match=rf"x\.dts:.*{reason}"):
            read_devicetree(written(tmp_path, tree, "x.dts"), {}, ())
    listed = (DATA / "parts.yaml").read_text().replace("access: {write: false}", "access: [1]")
    assert read_probe_rs(written(tmp_path, listed, "x.yaml"), "ACME1").regions
    cores = (DATA / "parts.yaml").read_text().replace("cores: [main]", "cores: true")
    with pytest.raises(ModelError, match="cores of a Nvm region are no list"):
        read_probe_rs(written(tmp_path, cores, "x.yaml"), "ACME1")
    parts = (DATA / "parts.yaml").read_text().replace("0x20020000", "9" * 5000)
    with pytest.raises(ModelError):
        read_probe_rs(written(tmp_path, parts, "x.yaml"), "ACME1")
    with pytest.raises(ModelError, match="no range of 64 bits"):
        read_probe_rs(written(tmp_path, parts.replace("9" * 5000, "0x" + "9" * 50), "x.yaml"), "ACME1")
