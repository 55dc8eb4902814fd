"""Instructions that plain C executes on a Cortex-M, counted by a plugin of qemu: exact, and the same each time."""

from __future__ import annotations

import re
import shutil
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("counting")
PROGRAMS = ("gcc", "arm-none-eabi-gcc", "qemu-system-arm")
#: What counts on RISC-V need beside them.
RISC_V_PROGRAMS = ("riscv64-unknown-elf-gcc", "qemu-system-riscv32")
_AN386 = ("mps2-an386", {"code_at": "0x400", "code_size": "4095K", "data_at": "0x20000000", "data_size": "4M"})
_AN547 = ("mps3-an547", {"code_at": "0x70000000", "code_size": "64M", "data_at": "0x74000000", "data_size": "64M"})
_VIRT = ("virt", {"code_at": "0x80000000", "code_size": "32M", "data_at": "0x82000000", "data_size": "32M"})
_ARM_LIBRARY = ("--specs=nano.specs", "--specs=nosys.specs")
_SOFT = ("-mthumb", "-mfloat-abi=soft")
_FPU = ("-mthumb", "-mfloat-abi=softfp", "-mfpu=fpv4-sp-d16")


@dataclass(frozen=True, slots=True)
class Core:
    """A core by its flags, and the board that runs it: one of qemu's and where its memories are."""

    flags: tuple[str, ...]
    board: tuple[str, Mapping[str, str]] = _AN386
    tools: str = "arm-none-eabi"
    emulator: str = "qemu-system-arm"
    library: tuple[str, ...] = _ARM_LIBRARY


#: Code for lesser cores runs on a Cortex-M4 too, instruction by instruction as there.
CORES = {
    "cortex-m0plus": Core(("-mcpu=cortex-m0plus", *_SOFT)),
    "cortex-m3": Core(("-mcpu=cortex-m3", *_SOFT)),
    "cortex-m4": Core(("-mcpu=cortex-m4", *_FPU)),
    "cortex-m55": Core(("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"), _AN547),
}
#: A RISC-V core with multiplications and short instructions, as the ESP32-C3 has.
RISC_V = Core(
    ("-march=rv32imc", "-mabi=ilp32", "-mcmodel=medany"), _VIRT, "riscv64-unknown-elf", "qemu-system-riscv32",
    ("--specs=picolibc.specs", "-Wl,--no-relax"),
)  # fmt: skip


@dataclass(frozen=True)
class Count:
    """Instructions of one invocation by function, the most first, and a hash of all outputs."""

    functions: Mapping[str, int]
    outputs: str

    @property
    def total(self) -> int:
        """All instructions."""
        return sum(self.functions.values())


def missing_programs(programs: Sequence[str] = PROGRAMS) -> list[str]:
    """The programs that a count needs and that are not installed."""
    return [name for name in programs if not shutil.which(name)]


def compiler_version() -> str:
    """The release of the compiler for Arm, by which counts go: "12.2"."""
    done = _run(["arm-none-eabi-gcc", "-dumpfullversion"])
    return ".".join(done.split(".")[:2])


def counted(
    folder: Path, source: str, header: str, core: str | Core, level: str = "-O2", more: Sequence[str] = ()
) -> Count:
    """The count of a network, compiled in a folder with `more` sources, libraries and options."""
    (folder / "net.c").write_text(source)
    (folder / "net.h").write_text(header)
    plugin, program = folder / "plugin.so", folder / "net.elf"
    if not plugin.exists():
        _run(["gcc", "-shared", "-fPIC", "-O2", str(FOLDER / "plugin.c"), "-o", str(plugin)])
    of = core if isinstance(core, Core) else CORES[core]
    machine, memories = of.board
    _run([
        f"{of.tools}-gcc", *of.flags, level, "-std=c99", "-ffunction-sections", f"-I{folder}",
        *_ends(header), str(FOLDER / "main.c"), str(FOLDER / "start.c"), str(folder / "net.c"), *more,
        "-nostartfiles", *of.library, "-Wl,--gc-sections",
        *(f"-Wl,--defsym={name}={value}" for name, value in memories.items()), "-T", str(FOLDER / "memory.ld"),
        "-lm", "-o", str(program),
    ])  # fmt: skip
    symbols = _symbols(program, of.tools)
    named = {name: address for address, name in symbols}
    counts = folder / "counts"
    counts.unlink(missing_ok=True)
    ends = f"first={named['counted_from']:x},last={named['counted_to']:x}"
    machines = ["-M", machine, "-display", "none", "-semihosting-config", "enable=on,target=native"]
    machines += ["-bios", "none"] if of.tools == RISC_V.tools else []
    plugged = ["-plugin", f"{plugin},{ends},into={counts}"]
    printed = _run([of.emulator, *machines, "-kernel", str(program), *plugged])
    return Count(_by_function(counts.read_text(), symbols), printed.strip())


def outputs_here(folder: Path, source: str, header: str) -> str:
    """The hash of the outputs on this machine."""
    (folder / "net.c").write_text(source)
    (folder / "net.h").write_text(header)
    files = [str(FOLDER / "main.c"), str(FOLDER / "here.c"), str(folder / "net.c")]
    _run(["gcc", "-O2", f"-I{folder}", *_ends(header), *files, "-lm", "-o", str(folder / "here")])
    return _run([str(folder / "here")]).strip()


def _ends(header: str) -> list[str]:
    """The definitions of the program's inputs and outputs, as the header declares them."""
    names = re.findall(r" \*net_((?:input|output)\w*)\(void\)", header)
    inputs, outputs = (
        " ".join(f"{call}(net_{n}(), NET_{n.upper()}_BYTES);" for n in names if n.startswith(end))
        for call, end in (("draw", "input"), ("look_at", "output"))
    )
    return [f"-DINPUTS={inputs}", f"-DOUTPUTS={outputs}"]


def _symbols(program: Path, tools: str) -> list[tuple[int, str]]:
    """The functions of a program by their address."""
    lines = (line.split() for line in _run([f"{tools}-nm", str(program)]).splitlines())
    return sorted((int(words[0], 16) & ~1, words[2]) for words in lines if len(words) == 3 and words[1] in "tTwW")


def _by_function(text: str, symbols: Sequence[tuple[int, str]]) -> dict[str, int]:
    starts, counts = [address for address, _ in symbols], Counter[str]()
    for line in text.splitlines():
        address, times = line.split()
        counts[symbols[bisect_right(starts, int(address, 16)) - 1][1]] += int(times)
    for end in ("counted_from", "counted_to", "main"):
        counts.pop(end, None)
    return dict(counts.most_common())


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ends with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout + done.stderr
