"""Processors, chips and families of chips that people name instead of a board: ABI and kernels follow, memory does not.

Sources of the kernels: the preprocessor conditions of CMSIS-NN (ARM_MATH_DSP, ARM_MATH_MVEI) and of ESP-NN
(CONFIG_IDF_TARGET_ESP32S3).
"""

from __future__ import annotations

from modelplan.targets.device import Device

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
    ("esp32c3", "Espressif ESP32-C3", "riscv32", "esp-nn-generic", ""),
    ("esp32c6", "Espressif ESP32-C6", "riscv32", "esp-nn-generic", ""),
    ("nrf52", "Nordic nRF52", "cortex-m", "cmsis-dsp", "nrf52840"),
    ("nrf53", "Nordic nRF53", "cortex-m", "cmsis-nn", ""),
    ("stm32f4", "ST STM32F4", "cortex-m", "cmsis-dsp", ""),
    ("stm32f7", "ST STM32F7", "cortex-m", "cmsis-dsp", "stm32f746"),
    ("stm32h7", "ST STM32H7", "cortex-m", "cmsis-dsp", "stm32h743"),
    ("stm32l4", "ST STM32L4", "cortex-m", "cmsis-dsp", ""),
    ("stm32n6", "ST STM32N6", "cortex-m", "cmsis-mve", "stm32n657"),
    ("stm32u5", "ST STM32U5", "cortex-m", "cmsis-dsp", ""),
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
        no_arena=f"it names a processor or family, not a board{f' such as {boards}' if boards else ''}",
    )
    for name, title, abi, kernels, boards in _ROWS
}

#: Boards as people call them, and the device of the table that is on them.
BOARDS = {
    "pico": "rp2040", "picow": "rp2040", "raspberrypipico": "rp2040", "pico2": "rp2350", "pico2w": "rp2350",
    "nano33ble": "nrf52840", "arduinonano33ble": "nrf52840", "nano33blesense": "nrf52840", "xiaoble": "nrf52840",
    "esp32p4": "esp32-p4", "esp32wroom": "esp32", "corstone300": "corstone-300", "corstone320": "corstone-320",
    "wiseeye2": "himax-we2", "groveai": "himax-we2",
}  # fmt: skip
