"""Which kernel library of TFLM a linked program has, told by the functions and the build attributes of its ELF file.

Only what the file shows counts. Where it shows two libraries, or one without its variant, all libraries hold.
"""

import io
import re
from typing import Any

from modelplan.formats.whole_files import read_bytes
from modelplan.primitives.errors import ModelError
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.kernels import ALL
from modelplan.targets.occupied import DAMAGE

_CMSIS_NN = re.compile(
    r"arm_(?:convolve|depthwise_conv|fully_connected|batch_matmul|avgpool|max_pool|softmax|elementwise|maximum|minimum|"
    r"svdf|lstm|transpose|pad|vector_sum|nn)_\w+"
)
_ESP_NN = re.compile(r"esp_nn_\w+")
#: Libraries whose scratch is not known here.
_STRANGE = {
    "Cadence's library (xa_nn_...)": re.compile(r"xa_nn_\w+"),
    "Synopsys' MLI library": re.compile(r"mli_krn_\w+"),
}
#: Kernels that only builds without an optimised library have under these names.
_REFERENCE = re.compile(r"_ZN6tflite12_GLOBAL__N_1L?(?:8(ConvEval)|17(DepthwiseConvEval)|18(FullyConnectedEval))E\w+")
#: What CMSIS-NN's convolutions call with DSP instructions alone, and without Helium alone.
_DSP_ONLY = "arm_s8_to_s16_unordered_with_offset"
_NOT_HELIUM = {"arm_nn_mat_mult_kernel_s8_s16", "arm_nn_mat_mult_kernel_row_offset_s8_s16"}
#: Values of Tag_CPU_arch: ARMv7E-M, which has DSP instructions, and those after which another attribute says so.
_ARMV7E_M, _ARMV8_M_BASE, _ARMV8_1_M = 13, 16, 21
_PROFILE_M, _SMALL_ENUMS = ord("M"), 1
_ABIS = {"EM_XTENSA": "xtensa", "EM_RISCV": "riscv32", "EM_X86_64": "x86-64"}


@dataclass(frozen=True, slots=True)
class LinkedKernels:
    """The kernel library and the ABI of a program, and how they are told; empty where nothing in it does."""

    kernels: str
    reason: str
    abi: str


def linked_kernels(path: str) -> LinkedKernels | None:
    """What the ELF file tells; None for a file of another kind, such as a map, which names no instructions.

    Raises:
        ModelError: the file cannot be read.
        RequestError: pyelftools is not installed.
    """
    content = read_bytes(path)
    if content[:4] != b"\x7fELF":
        return None
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(content))
        names = _functions(elf)
        attributes = _attributes(elf)
        machine = elf["e_machine"]
    except (ELFError, *DAMAGE) as problem:
        raise ModelError(f"{path}: not a whole ELF file: {problem}") from None
    cortex_m = attributes.get("TAG_CPU_ARCH_PROFILE"), attributes.get("TAG_ABI_ENUM_SIZE")
    abi = "cortex-m" if cortex_m == (_PROFILE_M, _SMALL_ENUMS) else _ABIS.get(machine, "")
    return LinkedKernels(*library_of(names, attributes), abi)


def _functions(elf: Any) -> set[str]:
    table = elf.get_section_by_name(".symtab")
    if table is None:
        return set()
    defined = (symbol for symbol in table.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF")
    return {symbol.name for symbol in defined if symbol["st_info"]["type"] == "STT_FUNC"}


def _attributes(elf: Any) -> dict[str, Any]:
    """The build attributes of an Arm program, merged by the linker from all that it consists of."""
    section = elf.get_section_by_name(".ARM.attributes")
    if section is None:
        return {}
    return {
        attribute.tag: attribute.value
        for part in section.iter_subsections()
        for level in part.iter_subsubsections()
        for attribute in level.iter_attributes()
    }


def library_of(functions: set[str], attributes: dict[str, Any]) -> tuple[str, str]:
    """The kernel library by names of functions and Arm build attributes, and the reason; empty where nothing tells."""
    if not functions:
        return "", "it has no symbols that name its functions"
    cmsis, esp = ({name for name in functions if known.fullmatch(name)} for known in (_CMSIS_NN, _ESP_NN))
    strange = [library for library, known in _STRANGE.items() if any(map(known.fullmatch, functions))]
    if strange:
        return ALL, f"it has {strange[0]}, whose scratch is not known: no number here is enough for it"
    if cmsis and esp:
        return ALL, f"it has CMSIS-NN ({min(cmsis)}) and ESP-NN ({min(esp)})"
    if cmsis:
        return _cmsis_path(functions, min(cmsis), attributes)
    if esp:
        return _esp_chip(esp)
    own = sorted(match[match.lastindex or 0] for match in map(_REFERENCE.fullmatch, functions) if match)
    if own:
        return "reference", f"it has TFLM's own kernels ({own[0]}) and no library's"
    return "", "no function of CMSIS-NN, of ESP-NN or of TFLM's own kernels is among its symbols"


def _esp_chip(functions: set[str]) -> tuple[str, str]:
    for suffix, chip, kernels in (("_esp32s3", "ESP32-S3", "esp-nn@all"), ("_esp32p4", "ESP32-P4", "esp-nn-p4")):
        if own := sorted(name for name in functions if name.endswith(suffix)):
            return kernels, f"it has ESP-NN of the {chip} ({own[0]}), of a version that it does not tell"
    return "esp-nn-generic", f"it has ESP-NN without functions of a chip ({min(functions)})"


def _cmsis_path(functions: set[str], example: str, attributes: dict[str, Any]) -> tuple[str, str]:
    """Which of its three paths CMSIS-NN was compiled in: as the attributes say, unless its functions say otherwise."""
    arch, convolves, packed = attributes.get("TAG_CPU_ARCH", 0), "arm_convolve_s8" in functions, _DSP_ONLY in functions
    newer = arch > _ARMV8_M_BASE and attributes.get("TAG_DSP_EXTENSION", 0)
    has = f"it has CMSIS-NN ({example})"
    if attributes.get("TAG_CPU_ARCH_PROFILE", 0) != _PROFILE_M:
        return ALL, f"{has}, for a processor that is no Cortex-M"
    if attributes.get("TAG_MVE_ARCH", 0):
        path, agrees, why = "mve", not functions & _NOT_HELIUM, "Helium"
    elif arch == _ARMV7E_M or newer:
        path, agrees, why = "dsp", packed or not (convolves or arch >= _ARMV8_1_M), "DSP instructions"
    else:
        path, agrees, why = "c", not packed, "a core without DSP instructions"
    if not agrees:
        return ALL, f"{has}, but not the functions that go with {why}"
    return f"cmsis-{path}", f"{has}, and is built for {why}"
