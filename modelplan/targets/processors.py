"""Processors, chips and families of chips that people name instead of a board: ABI and kernels follow, memory does not.

Sources of the kernels: the preprocessor conditions of CMSIS-NN (ARM_MATH_DSP, ARM_MATH_MVEI) and of ESP-NN
(CONFIG_IDF_TARGET_ESP32S3).
"""

from modelplan.targets.chips import CHIPS, KERNELS_OF_CORES, STM32_FAMILIES
from modelplan.targets.device import Device

#: Why nothing is said of the memory of an ESP32, and who knows.
ASK_ESP = (
    "what is free after start-up depends on the application and on what its radio runs; the chip says it:"
    " heap_caps_get_largest_free_block(MALLOC_CAP_8BIT)"
)

#: Name, what it is, the ABI, the kernel library, and boards of the table with such a processor.
_ROWS = (
    ("cortex-m0", "Arm Cortex-M0", "cortex-m", "cmsis-c", ""),
    ("cortex-m0+", "Arm Cortex-M0+", "cortex-m", "cmsis-c", "rp2040"),
    ("cortex-m3", "Arm Cortex-M3", "cortex-m", "cmsis-c", ""),
    ("cortex-m4", "Arm Cortex-M4", "cortex-m", "cmsis-dsp", "nrf52840, apollo3"),
    ("cortex-m7", "Arm Cortex-M7", "cortex-m", "cmsis-dsp", "stm32f746, stm32h743"),
    ("cortex-m33", "Arm Cortex-M33, with or without DSP instructions", "cortex-m", "cmsis-nn", "rp2350"),
    ("cortex-m52", "Arm Cortex-M52 with Helium", "cortex-m", "cmsis-mve", ""),
    ("cortex-m55", "Arm Cortex-M55 with Helium", "cortex-m", "cmsis-mve", "stm32n657, corstone-300"),
    ("cortex-m85", "Arm Cortex-M85 with Helium", "cortex-m", "cmsis-mve", "corstone-320"),
    ("esp32s2", "Espressif ESP32-S2", "xtensa", "esp-nn-generic", ""),
    ("esp32s3", "Espressif ESP32-S3, any module", "xtensa", "esp-nn@all", "esp32s3-n16r8"),
    *(
        (f"esp32{letters}", f"Espressif ESP32-{letters.upper()}", "riscv32", "esp-nn-generic", "")
        for letters in ("c2", "c3", "c5", "c6", "h2")
    ),
    ("nrf52", "Nordic nRF52", "cortex-m", "cmsis-dsp", "nrf52840"),
    ("nrf53", "Nordic nRF53", "cortex-m", "cmsis-nn", ""),
    *(
        (name, f"ST {name.upper()}", "cortex-m", KERNELS_OF_CORES[core], next(c for c in CHIPS if c.startswith(name)))
        for name, core in STM32_FAMILIES.items()
    ),
    ("stm32n6", "ST STM32N6", "cortex-m", "cmsis-mve", "stm32n657"),
)

#: The processors by name.
PROCESSORS: dict[str, Device] = {
    name: Device(
        name,
        title,
        (),
        "the condition by which the library chooses its kernels",
        abi=abi,
        kernels=kernels,
        no_arena=ASK_ESP
        if name.startswith("esp32")
        else f"a processor or family{f', not a chip such as {boards}' * bool(boards)}",
    )
    for name, title, abi, kernels, boards in _ROWS
}
