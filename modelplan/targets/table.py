"""The devices that are known by name, each with the source of its figures.

Bytes, K = 1024. A reserve is never a fact of a chip but the habit of its software, so it is a default that
`--reserve` replaces. A region whose figure is not one of an arena says why in `no_arena`.
"""

from modelplan.targets.device import Device, Region
from modelplan.targets.processors import ASK_ESP

_K, _M = 1024, 1024**2
_ZEPHYR, _PROBE_RS, _EXECUTORCH, _DORY = "zephyr ", "probe-rs ", "executorch ", "pulp-platform/dory "
_UP_TO = "the source says `up to`; how much of it is in one place depends on the part and its configuration"
_QNN_SCHEMA = _EXECUTORCH + "backends/qualcomm/serialization/qc_schema.py"
_VELA = "ethos-u-vela config_files/Arm/vela.ini"

#: Qualcomm chips: name, version of the Hexagon, MB of VTCM as the SDK counts them.
_HEXAGONS = (
    ("sm8350", "V68", 4),
    ("sm8450", "V69", 8),
    ("sm8475", "V69", 8),
    ("sm8550", "V73", 8),
    ("sm8650", "V75", 8),
    ("sm8750", "V79", 8),
    ("sm8850", "V81", 8),
    ("sm8845", "V81", 8),
    ("sa8295", "V68", 8),
    ("sa8797", "V81", 16),
    ("sa8255", "V73", 8),
    ("qcs9100", "V73", 8),
    ("ssg2115p", "V73", 2),
    ("ssg2125p", "V73", 2),
    ("sxr1230p", "V73", 2),
    ("sxr2230p", "V69", 8),
    ("sxr2330p", "V79", 8),
    ("sar2230p", "V81", 4),
    ("sw6100", "V81", 4),
    ("qcm6490", "V68", 2),
)

_MICROCONTROLLERS = (
    Device(
        "nrf52840",
        "Nordic nRF52840 (Arduino Nano 33 BLE Sense)",
        (
            Region("sram0", 262_144, 0x20000000, reserved=48 * _K, reserved_for="the SoftDevice, about 48 KiB"),
            Region("flash0", 1_048_576, 0x0, "nvm"),
        ),
        _ZEPHYR + "dts/arm/nordic/nrf52840_qiaa.dtsi; the reserve: mcufit boards.yaml",
        abi="cortex-m",
        kernels="cmsis-dsp",
    ),
    Device(
        "esp32",
        "Espressif ESP32 (LX6)",
        (
            Region("sram0", 180_736, 0x3FFB0000, no_arena=ASK_ESP),
            Region("psram", 4 * _M, 0x3F800000, "psram", note="4 MB is typical; the module decides"),
        ),
        _ZEPHYR + "dts/xtensa/espressif/esp32/esp32_common.dtsi",
        abi="xtensa",
        kernels="esp-nn-generic",
    ),
    Device(
        "esp32s3-n16r8",
        "Espressif ESP32-S3-WROOM N16R8 (LX7)",
        (
            Region(
                "sram",
                524_288,
                no_arena=ASK_ESP,
            ),
            Region("psram", 8_388_608, kind="psram"),
            Region("flash", 16 * _M, kind="nvm"),
        ),
        _ZEPHYR + "esp32s3_devkitc/doc, esp32s3_wroom_n16r8.dtsi",
        abi="xtensa",
        kernels="esp-nn@all",
    ),
    Device(
        "esp32-p4",
        "Espressif ESP32-P4",
        (Region("hp-sram", 768 * _K, no_arena=ASK_ESP),),
        "mcufit boards.yaml",
        "S",
        abi="riscv32",
        kernels="esp-nn-p4",
    ),
    Device(
        "rp2040",
        "Raspberry Pi RP2040",
        (
            Region("sram", 256 * _K, 0x20000000, note="four banks that take words in turn"),
            Region("scratch-x", 4 * _K, 0x20040000, bank_size=4 * _K),
            Region("scratch-y", 4 * _K, 0x20041000, bank_size=4 * _K),
        ),
        "docs.micropython.org rp2/general; product brief; pico-sdk rp2040/memmap_default.ld",
        abi="cortex-m",
        kernels="cmsis-c",
    ),
    Device(
        "rp2350",
        "Raspberry Pi RP2350, Arm cores",
        (Region("sram", 532_480, 0x20000000),),
        _PROBE_RS + "targets/RP235x.yaml; docs.micropython.org rp2/general",
        abi="cortex-m",
        kernels="cmsis-dsp",
    ),
    Device(
        "stm32f746",
        "ST STM32F746",
        (Region("sram0", 327_680, 0x20000000), Region("flash0", 1_048_576, 0x08000000, "nvm")),
        _ZEPHYR + "dts/arm/st/f7/stm32f746Xg.dtsi",
        abi="cortex-m",
        kernels="cmsis-dsp",
    ),
    Device(
        "stm32h743",
        "ST STM32H743",
        (
            Region("axi", 524_288, 0x24000000),
            Region("sram1", 131_072, 0x30000000),
            Region("sram2", 131_072, 0x30020000),
            Region("sram3", 32_768, 0x30040000),
            Region("sram4", 65_536, 0x38000000),
            Region("dtcm", 131_072, 0x20000000, "tcm"),
            Region("flash", 2_097_152, 0x08000000, "nvm"),
        ),
        _ZEPHYR + "dts/arm/st/h7/stm32h743.dtsi, stm32h743Xi.dtsi",
        abi="cortex-m",
        kernels="cmsis-dsp",
        note="the sum of 1,015,808 bytes lies in four places; the ITCM is not in these files",
    ),
    Device(
        "stm32n657",
        "ST STM32N6 with Neural-ART",
        (
            Region("axisram1", 1_048_576, 0x34000000),
            Region("axisram2", 511 * _K, 0x34180400),
            Region("npu-ram", 4 * 458_752, 0x34200000, "npu", bank_size=458_752, note="needs its clock and RIF set up"),
        ),
        _ZEPHYR + "dts/arm/st/n6/stm32n657X0.dtsi; board stm32n6570_dk",
        abi="cortex-m",
        kernels="cmsis-mve",
        note="the board's page calls 4.2 Mbytes contiguous; the devicetree leaves gaps, which are not counted here",
    ),
    Device(
        "apollo4p",
        "Ambiq Apollo4 Plus",
        (Region("ram", 2816 * _K, no_arena=f"2.75 MB with 384 kB of TCM in it: {_UP_TO}"),),
        "docs.zephyrproject.org apollo4p_evb",
        abi="cortex-m",
        kernels="cmsis-dsp",
    ),
    Device(
        "apollo3",
        "Ambiq Apollo3 Blue (SparkFun Edge)",
        (Region("sram", 393_216),),
        "docs.zephyrproject.org apollo3_evb",
        abi="cortex-m",
        kernels="cmsis-dsp",
    ),
    Device(
        "efr32mg24",
        "Silicon Labs EFR32MG24B220F1536",
        (Region("sram0", 262_144, 0x20000000), Region("flash0", 1_572_864, kind="nvm")),
        _ZEPHYR + "dts/arm/silabs/xg24/efr32mg24b220f1536im48.dtsi",
        abi="cortex-m",
        kernels="cmsis-dsp",
        note="kernels of the MVP accelerator are not among the libraries",
    ),
    Device(
        "corstone-300",
        "Arm MPS3 SSE-300 with Ethos-U55 or U65",
        (
            Region("itcm", 524_288, 0x10000000, "nvm", note="the linker script does not let programs write it"),
            Region("bram", 1_048_576, 0x11000000),
            Region("dtcm", 524_288, 0x30000000, "tcm"),
            Region("sram", 2_097_152, 0x31000000),
            Region("ddr", 0x60000000, 0x70000000, "psram"),
            Region("qspi", 8 * _M, 0x38000000, "nvm"),
        ),
        _EXECUTORCH + "examples/arm/executor_runner/Corstone-300.ld",
        abi="cortex-m",
        kernels="cmsis-mve",
    ),
    Device(
        "corstone-320",
        "Arm SSE-320 with Ethos-U85",
        (
            Region("bram", 2_097_152, 0x12000000),
            Region("dtcm", 32_768, 0x30000000, "tcm"),
            Region("sram", 4_194_304, 0x31000000),
            Region("ddr", 256 * _M, 0x70000000, "psram"),
            Region("qspi", 8 * _M, 0x38000000, "nvm"),
        ),
        _EXECUTORCH + "examples/arm/executor_runner/Corstone-320.ld",
        abi="cortex-m",
        kernels="cmsis-mve",
    ),
    Device(
        "alif-e8",
        "Alif Ensemble AE822, high-performance core",
        (
            Region("sram0", 4_194_304, 0x02000000),
            Region("sram1", 4_194_304, 0x02400000),
            Region("itcm", 262_144, 0x0, "tcm"),
            Region("dtcm", 1_048_576, 0x20000000, "tcm"),
            Region("mram", 5_767_168, kind="nvm"),
        ),
        _ZEPHYR + "dts/arm/alif/ensemble/ae822fa0e5597ls0.dtsi, common/ensemble_rtss_hp.dtsi",
        abi="cortex-m",
        kernels="cmsis-mve",
    ),
    Device(
        "max78000",
        "ADI MAX78000",
        (Region("sram", 131_072), Region("flash", 524_288, kind="nvm")),
        "docs.zephyrproject.org max78000evkit",
        abi="cortex-m",
        kernels="cmsis-dsp",
        note="the memory of the CNN accelerator is left out: no datasheet was read",
    ),
    Device(
        "gap8",
        "GreenWaves GAP8",
        (
            Region("l1", 64_000, kind="tcm", note="stacks of 3,500 and 3,400 bytes are taken from it"),
            Region("l2", 512_000),
            Region("l3", 8_000_000, kind="psram", note="HyperRAM"),
        ),
        _DORY + "PULP/GAP8/HW_description.json",
        abi="riscv32",
        note="decimal values, as DORY writes them",
    ),
    Device(
        "gap9",
        "GreenWaves GAP9",
        (
            Region("l1", 60_000, kind="tcm", note="what DORY uses; Deeploy runs with 128,000"),
            Region("l2", 1_536_000),
            Region("l3", 8_000_000, kind="psram"),
        ),
        _DORY + "PULP/GAP9/HW_description.json; Deeploy scripts",
        abi="riscv32",
    ),
    Device(
        "k210",
        "Kendryte K210",
        (
            Region("mem0", 4_194_304, 0x80000000),
            Region("mem1", 2_097_152, 0x80400000),
            Region("ai-sram", 2_097_152, 0x80600000, "npu", note="not readable while the KPU runs"),
        ),
        "kendryte-doc-datasheet en/003.md",
        note="a 64-bit RISC-V, for which no ABI is in the table",
    ),
    Device(
        "himax-we2",
        "Himax WiseEye2 HX6538 (Grove Vision AI V2)",
        (
            Region("app-rom", 262_144, 0x10000000, "nvm", note="the linker script does not let programs write it"),
            Region("app-data", 262_144, 0x30000000, "tcm"),
            Region("sram", 2_097_152, 0x34000000, reserved=126_976, reserved_for="the boot loaders"),
        ),
        "Himax SDK EPII_CM55M_APP_S/linker_script/gcc/TrustZone_S_ONLY.ld, device/inc/WE2_device_addr.h",
        abi="cortex-m",
        kernels="cmsis-mve",
    ),
    Device(
        "s32k344",
        "NXP S32K344",
        (
            Region("sram", 327_680),
            Region("itcm", 65_536, kind="tcm", dma=False),
            Region("dtcm", 131_072, kind="tcm", dma=False),
        ),
        "nano-ros#45 (report of a linker)",
        "S",
        abi="cortex-m",
        kernels="cmsis-dsp",
    ),
    Device(
        "imxrt1170",
        "NXP i.MX RT1170",
        (
            Region("tcm", 512 * _K, kind="tcm", bandwidth=8_000_000_000, no_arena=_UP_TO),
            Region("ocram", 2 * _M, bandwidth=2_000_000_000, no_arena=_UP_TO),
            Region(
                "hyperram",
                64 * _M,
                kind="psram",
                bandwidth=200_000_000,
                no_arena=_UP_TO,
                note="writes at half of it",
                write_bandwidth=100_000_000,
            ),
        ),
        "tflite-micro#1173",
        "S",
        abi="cortex-m",
        kernels="cmsis-dsp",
    ),
)

_ACCELERATORS = (
    *(
        Device(
            f"ethos-u-{mode.lower().replace('_', '-')}",
            f"Ethos-U, Vela's memory mode {mode}",
            () if size is None else (Region("sram", size, kind="npu", note="beside an arena in the memory behind it"),),
            f"{_VELA} 5.2.0",
            no_arena="" if size else "the memory mode states no size: it is the board's, and the arena with it",
        )
        for mode, size in (
            ("Sram_Only", None),
            ("Shared_Sram", None),
            ("Dedicated_Sram", None),
            ("Dedicated_Sram_256KB", 262_144),
            ("Dedicated_Sram_384KB", 393_216),
            ("Dedicated_Sram_512KB", 524_288),
        )
    ),
    Device(
        "edgetpu",
        "Coral Edge TPU",
        (
            Region(
                "sram",
                8 * _M,
                kind="npu",
                no_arena="it caches weights and holds no activations; models that are compiled together share it",
            ),
        ),
        "coral.ai/docs/edgetpu/compiler; the size: medium.com/@ilyakavalerov",
        "S",
    ),
    *(
        Device(
            f"hexagon-{chip}",
            f"Qualcomm {chip.upper()}, Hexagon {version}",
            (Region("vtcm", megabytes * _M, kind="npu", note="the schema's MB taken as MiB"),),
            _QNN_SCHEMA,
        )
        for chip, version, megabytes in _HEXAGONS
    ),
    *(
        Device(
            f"dla-{name}",
            f"NVIDIA DLA of {name.capitalize()}",
            (Region("sram", size, kind="npu", granularity=4096, power_of_two=True, note=note),),
            "docs.nvidia.com TensorRT: Customizing DLA Memory Pools",
            note="a pool is a power of two of at least 4 KiB; the limit holds for each subnetwork",
        )
        for name, size, note in (("orin", _M, "for each core"), ("xavier", 4 * _M, "shared by the cores"))
    ),
    *(
        Device(
            f"nvdla-{name}",
            f"NVDLA nv_{name}, convolution buffer",
            (Region("cbuf", banks * bank, kind="npu", granularity=bank, bank_size=bank),),
            f"nvdla/hw spec/defs/nv_{name}.spec",
            note=f"{banks} banks of {bank:,} bytes; a bank is the unit of allocation",
        )
        for name, banks, bank in (("small", 32, 4 * _K), ("large", 16, 32 * _K))
    ),
    Device(
        "minimalloc-1MiB",
        "the public MiniMalloc problems",
        (Region("scratchpad", _M, kind="npu"),),
        "google/minimalloc benchmarks/challenging (*.1048576.csv)",
        benchmark=True,
        note="a benchmark: its capacity is that of the problem set; no figure of the chip is public",
    ),
)

#: Names of the microcontrollers among the devices.
MICROCONTROLLERS = tuple(device.name for device in _MICROCONTROLLERS if device.abi)

#: The devices by name.
DEVICES: dict[str, Device] = {device.name: device for device in (*_MICROCONTROLLERS, *_ACCELERATORS)}
