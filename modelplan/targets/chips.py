"""Chips by part number, whose letters code the flash and often the RAM, and boards that carry them.

Bytes, K = 1024. `modm` is modm-devices, made from the makers' own data bases, `st` a CMSIS header of ST (SRAM1_SIZE and
its like), `zephyr` a devicetree. A figure of modm alone is marked as secondary.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from modelplan.primitives.units import brief
from modelplan.targets.device import Device, Region

_K = 1024
#: Bytes of flash by the letter for it in the part number of an STM32, in KiB.
_FLASH = {"4": 16, "6": 32, "8": 64, "b": 128, "c": 256, "d": 384, "e": 512, "f": 768, "g": 1024, "h": 1536, "i": 2048,
          "j": 4096}  # fmt: skip
#: The kernels by core. `m33?` may have DSP instructions or not.
KERNELS_OF_CORES = {"m0": "cmsis-c", "m0+": "cmsis-c", "m3": "cmsis-c", "m4": "cmsis-dsp", "m7": "cmsis-dsp",
            "m33": "cmsis-dsp", "m33?": "cmsis-nn"}  # fmt: skip

#: Parts of STM32 (`/` and the letters of the flash where the RAM depends on it): core, regions, source. A region
#: without an address is `sram` at 0x20000000.
_STM32 = """
c011: m0+ 6K; modm stm32c0-11_31
c031 c051: m0+ 12K; st stm32c031xx.h, stm32c051xx.h
c071: m0+ 24K; st stm32c071xx.h
c091: m0+ 36K; st stm32c091xx.h
f030/46 f031 f038: m0 4K; modm stm32f0-30, -31, -38
f030/8 f051 f058: m0 8K; modm stm32f0-30, -51, -58
f030/c f091 f098: m0 32K; modm stm32f0-30, -91, -98
f042 f048 f070/6: m0 6K; modm stm32f0-42, -48, -70
f070/b f071 f072 f078: m0 16K; modm stm32f0-70 to -78
f100/46: m3 4K; modm stm32f1-00-4_6
f100/8b: m3 8K; modm stm32f1-00-8_b
f100/c: m3 24K; modm stm32f1-00-c_d_e
f100/de: m3 32K; modm stm32f1-00-c_d_e
f103/4: m3 6K; modm stm32f1-03-4_6
f103/6: m3 10K; modm stm32f1-03-4_6
f103/8b: m3 20K; zephyr dts/arm/st/f1/stm32f103Xb.dtsi, modm stm32f1-03-8_b
f103/c: m3 48K; modm stm32f1-03-c_d_e
f103/de f105 f107: m3 64K; modm stm32f1-03-c_d_e, -05_07
f103/fg: m3 96K; modm stm32f1-03-f_g
f205/efg f207 f215 f217: m3 128K; modm stm32f2-05, -07_15_17
f301 f302/68 f318: m4 16K; modm stm32f3-01, -02-6_8, -18_28
f302/b: m4 32K; modm stm32f3-02-b_c_d_e
f302/c: m4 40K; modm stm32f3-02-b_c_d_e
f302/de: m4 64K; modm stm32f3-02-b_c_d_e
f303/68 f328 f334: m4 12K ccm:4K@10000000; modm stm32f3-03-6_8, -18_28, -34
f303/b: m4 32K ccm:8K@10000000; modm stm32f3-03-b_c_d_e
f303/c f358: m4 40K ccm:8K@10000000; modm stm32f3-03-b_c_d_e, -58_98
f303/de f398: m4 64K ccm:16K@10000000; modm stm32f3-03-b_c_d_e, -58_98
f373/8: m4 16K; modm stm32f3-73_78
f373/b: m4 24K; modm stm32f3-73_78
f373/c f378: m4 32K; modm stm32f3-73_78
f401/bc: m4 64K; modm stm32f4-01_11
f401/de: m4 96K; zephyr dts/arm/st/f4/stm32f401Xe.dtsi
f405 f407 f415 f417: m4 128K ccm:64K@10000000; zephyr dts/arm/st/f4/stm32f407Xg.dtsi, modm stm32f4-05_07_15_17
f410: m4 32K; modm stm32f4-10
f411: m4 128K; zephyr dts/arm/st/f4/stm32f411Xe.dtsi
f412: m4 256K; zephyr dts/arm/st/f4/stm32f412Xg.dtsi
f413 f423: m4 320K; zephyr dts/arm/st/f4/stm32f413Xh.dtsi
f427 f429 f437 f439: m4 192K ccm:64K@10000000; zephyr dts/arm/st/f4/stm32f429Xi.dtsi
f446: m4 128K; zephyr dts/arm/st/f4/stm32f446Xe.dtsi
f469 f479: m4 320K ccm:64K@10000000; zephyr dts/arm/st/f4/stm32f469Xi.dtsi
f722 f723 f730 f732 f733: m7 192K@20010000 dtcm:64K; modm stm32f7-22_23_32_33, -30_50
f745 f746 f750 f756: m7 256K@20010000 dtcm:64K; zephyr dts/arm/st/f7/stm32f746Xg.dtsi
f765 f767 f768 f769 f777 f778 f779: m7 384K@20020000 dtcm:128K; modm stm32f7-65_67_68_69_77_78_79
g030 g031 g041: m0+ 8K; st stm32g030xx.h, modm stm32g0-31_41
g050 g051 g061: m0+ 18K; modm stm32g0-50, -51_61
g070 g071 g081: m0+ 32K; st stm32g071xx.h (with parity)
g0b0 g0b1 g0c1: m0+ 128K; st stm32g0b1xx.h (with parity)
g431 g441: m4 32K; zephyr dts/arm/st/g4/stm32g431Xb.dtsi
g471 g473 g474 g483 g484: m4 128K; zephyr dts/arm/st/g4/stm32g474Xe.dtsi
g491 g4a1: m4 112K; zephyr dts/arm/st/g4/stm32g491Xe.dtsi
h503: m33 32K; st stm32h503xx.h
h523 h533: m33 272K; st stm32h523xx.h
h562 h563 h573: m33 640K; st stm32h563xx.h
h723 h725 h730 h733 h735: m7 axi:320K@24000000 ahb:32K@30000000 sram4:16K@38000000 dtcm:128K; modm stm32h7-23_33, -25_35
h742: m7 axi:384K@24000000 ahb:48K@30000000 sram4:64K@38000000 dtcm:128K; modm stm32h7-42
h743 h745 h747 h750 h753 h755 h757: m7 axi:512K@24000000 ahb:288K@30000000 sram4:64K@38000000 dtcm:128K; zephyr \
dts/arm/st/h7/stm32h743.dtsi, stm32h747Xi_m7.dtsi, modm stm32h7-47_57
h7a3 h7b0 h7b3: m7 axi:1024K@24000000 ahb:128K@30000000 sram4:32K@38000000 dtcm:128K; modm stm32h7-b3
l010/4 l011 l021: m0+ 2K; modm stm32l0-10, -11_21
l010/68 l031 l041 l051 l052 l053 l062 l063: m0+ 8K; st stm32l053xx.h, modm stm32l0-10, -31_41
l010/b l071 l072 l073 l081 l082 l083: m0+ 20K; modm stm32l0-10, -71_72_73_81_82_83
l412 l422: m4 32K sram2:8K@10000000; st stm32l412xx.h
l431 l432 l433 l442 l443: m4 48K sram2:16K@10000000; st stm32l432xx.h
l451 l452 l462: m4 128K sram2:32K@10000000; st stm32l452xx.h
l471 l475 l476 l485 l486: m4 96K sram2:32K@10000000; st stm32l476xx.h, zephyr dts/arm/st/l4/stm32l476Xg.dtsi
l496 l4a6: m4 256K sram2:64K@10000000; st stm32l496xx.h, zephyr dts/arm/st/l4/stm32l496Xg.dtsi
l4p5 l4q5: m4 320K; st stm32l4p5xx.h, modm stm32l4-p5
l4r5 l4r7 l4r9 l4s5 l4s7 l4s9: m4 640K; st stm32l4r5xx.h, modm stm32l4-r5_r7_r9
l552 l562: m33 256K; st stm32l552xx.h
u031: m0+ 8K; st stm32u031xx.h
u073 u083: m0+ 32K; st stm32u073xx.h
u375 u385: m33 256K; st stm32u375xx.h
u535 u545: m33 256K sram4:16K@28000000; st stm32u535xx.h
u575 u585: m33 768K sram4:16K@28000000; st stm32u575xx.h
u595 u599 u5a5 u5a9: m33 2496K sram4:16K@28000000; st stm32u595xx.h
u5f7 u5f9 u5g7 u5g9: m33 3008K sram4:16K@28000000; st stm32u5f7xx.h
wb55: m4 192K; zephyr dts/arm/st/wb/stm32wb55Xg.dtsi (without what the radio's core shares)
wba52 wba54 wba55: m33 128K; st stm32wba52xx.h
wle5/c wl55/c: m4 64K; st stm32wle5xx.h
"""

#: Others, whose part numbers say all: core, regions, source.
_OTHERS = """
nrf52810 nrf52811: m4 24K; modm nrf52810, nrf52811
nrf52820: m4 32K; modm nrf52820
nrf52832/aa: m4 64K; zephyr dts/arm/nordic/nrf52832_qfaa.dtsi
nrf52832/ab: m4 32K; modm nrf52832
nrf52833: m4 128K; zephyr dts/arm/nordic/nrf52833_qiaa.dtsi
nrf5340: m33? 512K; zephyr dts/arm/nordic/nrf5340_cpuapp_qkaa.dtsi (the application core)
nrf54l15: m33? 188K; zephyr dts/vendor/nordic/nrf54l15.dtsi (68 KiB more are of its second core)
samd21/15: m0+ 4K; modm samd21
samd21/16: m0+ 8K; modm samd21
samd21/17: m0+ 16K; modm samd21
samd21/18: m0+ 32K; modm samd21
samd51/18: m4 128K; modm samd51_e51_e53_e54
samd51/19: m4 192K; zephyr dts/arm/atmel/samd5xx19.dtsi
samd51/20: m4 256K; modm samd51_e51_e53_e54
same51/18: m4 128K; modm samd51_e51_e53_e54
same51/19: m4 192K; modm samd51_e51_e53_e54
same51/20: m4 256K; modm samd51_e51_e53_e54
imxrt1062: m7 ram2:512K@20200000; PaulStoffregen/cores teensy4/imxrt1062_t41.ld (the 512 KiB before it hold code too)
"""

#: Boards as people call them, in lower case without hyphens and blanks; their chip, and where that is written. Of a
#: board whose name holds the chip's, as xiao-esp32s3 or stm32h747i-disco, nothing needs to be said.
_BOARDS = """
pico picow raspberrypipico: rp2040; zephyr boards/raspberrypi/rpi_pico
pico2 pico2w: rp2350; zephyr boards/raspberrypi/rpi_pico2
nano33ble nano33blesense arduinonano33ble arduinonano33blesense: nrf52840; zephyr boards/arduino/nano_33_ble
xiaoble: nrf52840; zephyr boards/seeed/xiao_ble
nanorp2040connect nanoconnect: rp2040; zephyr boards/arduino/nano_connect
portenta portentah7 giga gigar1 opta: stm32h747xi; zephyr boards/arduino/portenta_h7, giga_r1, opta
niclavision: stm32h747ai; zephyr boards/arduino/nicla_vision
niclasenseme: nrf52832qfaa; zephyr boards/arduino/nicla_sense_me
arduinozero nano33iot mkrzero xiao seeeduinoxiao: samd21g18a; zephyr boards/arduino/zero, seeed/seeeduino_xiao
featherm0: samd21g18a; zephyr boards/adafruit/feather_m0_basic_proto
featherm4 featherm4express: samd51j19a; zephyr boards/adafruit/feather_m4_express
itsybitsym4: samd51g19a; zephyr boards/adafruit/itsybitsy_m4_express
wioterminal: samd51p19a; zephyr boards/seeed/wio_terminal
microbit microbitv2: nrf52833; zephyr boards/bbc/microbit_v2
nrf52dk: nrf52832qfaa; zephyr boards/nordic/nrf52dk
bluepill: stm32f103c8; zephyr boards/others/stm32_min_dev
blackpill: stm32f411ce; zephyr boards/weact/blackpill_f411ce
stm32f4discovery stm32f4disco: stm32f407vg; zephyr boards/st/stm32f4_disco
discol475iot1 bl475eiot01a: stm32l475vg; zephyr boards/st/disco_l475_iot1
bu585iiot02a: stm32u585ai; zephyr boards/st/b_u585i_iot02a
teensy40 teensy4.0: imxrt1062; PaulStoffregen/cores teensy4/imxrt1062.ld
teensy41 teensy4.1: imxrt1062; PaulStoffregen/cores teensy4/imxrt1062_t41.ld
esp32p4: esp32-p4; zephyr boards/espressif/esp32p4_function_ev_board
corstone300: corstone-300; zephyr boards/arm/mps3
corstone320: corstone-320; zephyr boards/arm/mps4
wiseeye2 groveai: himax-we2; Himax SDK EPII_CM55M_APP_S
cortexm0plus: cortex-m0+; Arm
"""

#: The chip of each board, by the board's name as people call it.
BOARDS = {
    name: row.partition(": ")[2].partition(";")[0]
    for row in _BOARDS.strip().splitlines()
    for name in row.partition(": ")[0].split()
}


class _Chip(NamedTuple):
    """A part number as far as it codes the memory: `letters` are those behind it that this row is for, none for all."""

    name: str
    letters: tuple[str, ...]
    core: str
    regions: tuple[Region, ...]
    source: str

    @property
    def device(self) -> Device:
        """It as a device, called by what codes its memory."""
        name = self.name + "".join("xx"[: 1 + self.name.startswith("nrf")] + letter for letter in self.letters[:1])
        primary = any(source in self.source for source in ("zephyr", "ST's", "cores"))
        maker = {"stm": "ST ", "nrf": "Nordic ", "sam": "Microchip AT", "imx": "NXP "}[name[:3]]
        title = maker + name.upper().replace("NRF", "nRF").replace("IMX", "i.MX ")
        kernels, quality = KERNELS_OF_CORES[self.core], "P" if primary else "S"
        return Device(name, title, self.regions, self.source, quality, "cortex-m", kernels)


def _flash(letter: str) -> Region:
    return Region("flash", _FLASH[letter] * _K, 0x08000000, "nvm")


def _chips(table: str, before: str) -> Iterator[_Chip]:
    """The rows of a table, each once for every part that it names."""
    for row in table.replace("\\\n", "").strip().splitlines():
        names, _, facts = row.partition(": ")
        facts, _, source = facts.partition("; ")
        source = source.replace("modm ", "modm-devices ").replace("st stm", "ST's stm")
        core, *memory = facts.split()
        regions = tuple(map(_region, memory))
        for name in names.split():
            part, _, letters = name.partition("/")
            yield _Chip(before + part, tuple(letters if before else (letters,) * bool(letters)), core, regions, source)


def _region(word: str) -> Region:
    """A region as the tables write it: NAME:SIZE@BASE, SIZE@BASE or SIZE."""
    name, _, rest = word.rpartition(":")
    size, _, base = rest.partition("@")
    nbytes, kind = int(size.removesuffix("K")) * _K, "tcm" if name in ("ccm", "dtcm") else "ram"
    return Region(name or "sram", nbytes, int(base or "20000000", 16), kind)  # type: ignore[arg-type]


_ROWS = (*_chips(_STM32, "stm32"), *_chips(_OTHERS, ""))

#: A device for each part number that codes its memory, by name.
CHIPS: dict[str, Device] = {row.device.name: row.device for row in _ROWS}

#: Families of STM32 and the core that runs their programs.
STM32_FAMILIES: dict[str, str] = {}
for _row in _ROWS:
    if _family := re.match(r"stm32(wba|w[a-z]|[a-z]\d)", _row.name):
        STM32_FAMILIES.setdefault(_family[0], _row.core)


def chip_called(name: str) -> Device | None:
    """The chip that a part number or the name of a board holds, by its longest prefix; None where there is none.

    Where the letters that decide its memory are missing, it has none, and says which letters there are.

    >>> device = chip_called("NUCLEO-F446RE")
    >>> device.name, [region.size for region in device.regions]
    ('stm32f446re', [131072, 524288])
    """
    word = without_nucleo(name.lower())
    holds = [row for row in _ROWS if row.name in word]
    longest = max((len(row.name) for row in holds), default=0)
    rows = [row for row in holds if len(row.name) == longest]
    if not rows:
        return None
    behind = word.partition(rows[0].name)[2]
    if rows[0].name.startswith("stm32"):
        return _stm32_device(rows, re.split(r"[^a-z0-9]", behind)[0])
    meant = [row for row in rows if not row.letters or row.letters[0] in behind]
    return meant[0].device if meant else _undecided(rows)


def without_nucleo(name: str) -> str:
    """A name in lower case whose board says which STM32 it carries, as that chip's.

    >>> without_nucleo("nucleo-f446re")
    'stm32f446re'
    """
    return re.sub(r"^(?:nucleo|blackpill)[-_ ]?(?=[a-z]+\d)|^stm32[-_ ]", "stm32", name)


def _stm32_device(rows: Sequence[_Chip], behind: str) -> Device:
    """The part whose number goes on with the letters of its pins and of its flash, as far as they are given."""
    pins, letter = (behind[0], behind[1]) if len(behind) > 1 and behind[1] in _FLASH else ("", "")
    meant = [row for row in rows if not row.letters or letter in row.letters]
    if not meant or not (letter or len({row.regions for row in rows}) == 1):
        return _undecided(rows)
    name = meant[0].name + pins + letter
    regions = (*meant[0].regions, *([_flash(letter)] if letter else []))
    return replace(meant[0].device, name=name, title=f"ST {name.upper()}", regions=regions)


def _undecided(rows: Sequence[_Chip]) -> Device:
    """A chip without the letters that decide its memory."""
    sizes = (f"{brief(row.regions[0].size)} as {row.device.name}" for row in rows)
    missing = f"its RAM depends on the letters behind {rows[0].name}: {', '.join(sizes)}"
    return replace(rows[0]._replace(letters=(), regions=()).device, no_arena=missing)
