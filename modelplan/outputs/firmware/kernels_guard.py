"""Lines of C++ that stop a program whose TFLM has other kernels than a file is sized for.

A macro alone cannot: ESP-IDF, Arduino and Zephyr define CMSIS_NN and ESP_NN where the library is compiled and not where
the application is. So the linker is asked: TFLM's registrations of 8-bit kernels are functions of the library with
CMSIS-NN and inline elsewhere, Espressif's kernels each count their time in a variable of their own, and the scratch
functions of ESP-NN's kernels for the ESP32-S3 and P4 have its name. What a file needs is referred to; what it must not
have is a weak reference, of which `AddOps` asks whether it leads anywhere. All these are parts of kernels that the
model registers by itself. The paths of CMSIS-NN are told by the compiler's own macros. Releases have the same names.

Source: tflite-micro, micro/kernels/{conv,depthwise_conv,...}.h; espressif/esp-tflite-micro, kernels/esp_nn/*.cc;
CMSIS-NN, Internal/arm_nn_compiler.h.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.kernels import ALL
from modelplan.runtimes.tflm.kernels.own_kernels import library_of

#: Says in a program that its kernels are the right ones, whatever is found.
CHECKED = "MODELPLAN_KERNELS_CHECKED"

#: The operators with a kernel of CMSIS-NN whose 8-bit registration no other build of TFLM has as a function.
_CMSIS_NN = (
    "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SVDF", "AVERAGE_POOL_2D", "MAX_POOL_2D", "SOFTMAX", "ADD",
    "MUL", "UNIDIRECTIONAL_SEQUENCE_LSTM", "TRANSPOSE_CONV", "BATCH_MATMUL", "MAXIMUM", "MINIMUM", "PAD", "TRANSPOSE",
)  # fmt: skip
#: The variables of Espressif's kernels.
_ESP_NN = {
    "CONV_2D": "conv_total_time", "DEPTHWISE_CONV_2D": "dc_total_time", "FULLY_CONNECTED": "fc_total_time",
    "AVERAGE_POOL_2D": "pooling_total_time", "MAX_POOL_2D": "pooling_total_time", "SOFTMAX": "softmax_total_time",
    "ADD": "add_total_time", "MUL": "mul_total_time",
}  # fmt: skip
#: The functions of ESP-NN that only its kernels for one chip have.
_S3 = {
    "CONV_2D": "esp_nn_get_conv_scratch_size_esp32s3",
    "DEPTHWISE_CONV_2D": "esp_nn_get_depthwise_conv_scratch_size_esp32s3",
}
_P4 = {"CONV_2D": "esp_nn_get_conv_scratch_size_esp32p4"}
_GENERIC = "esp-nn-generic"
#: What the compiler says of the path that CMSIS-NN takes, and the option with which it takes it.
_PATHS = {
    "cmsis-c": (
        "!MODELPLAN_DSP && !MODELPLAN_HELIUM",
        "has no DSP instructions and no Helium, such as -mcpu=cortex-m3",
    ),
    "cmsis-dsp": ("MODELPLAN_DSP && !MODELPLAN_HELIUM", "has DSP instructions and no Helium, such as -mcpu=cortex-m4"),
    "cmsis-mve": ("MODELPLAN_HELIUM", "has Helium, such as -mcpu=cortex-m55"),
}
_FEATURES = """\
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#define MODELPLAN_HELIUM 1
#else
#define MODELPLAN_HELIUM 0
#endif
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP == 1
#define MODELPLAN_DSP 1
#else
#define MODELPLAN_DSP 0
#endif
"""


@dataclass(frozen=True, slots=True)
class KernelsGuard:
    """What stops a program with other kernels than `kernels`, for a model of operators `kinds`."""

    kernels: str
    kinds: frozenset[str]

    @property
    def family(self) -> str:
        """The macro of the library: CMSIS_NN or ESP_NN; empty for TFLM's own kernels and where all are meant."""
        return {"cmsis": "CMSIS_NN", "esp": "ESP_NN"}.get(self.kernels.partition("-")[0], "")

    @property
    def needed(self) -> tuple[str, ...]:
        """The symbols that the program must have."""
        if self.family == "CMSIS_NN":
            return _first(self._cmsis_nn)
        if self.family == "ESP_NN":
            return (*_first(self._esp_nn), *(() if self.kernels == _GENERIC else _first(self._of_chip)))
        return ()

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The symbols that the program must not have."""
        if self.kernels == "reference":
            return (*_first(self._cmsis_nn), *_first(self._esp_nn))
        return (*_first(self._of(_S3)), *_first(self._of(_P4))) if self.kernels == _GENERIC else ()

    @property
    def _name(self) -> str:
        """What a linker names where the symbol is missing."""
        return f"kSizedFor_{re.sub('[^0-9a-z]', '_', self.kernels)}_"

    @property
    def _cmsis_nn(self) -> list[str]:
        names = (f"Register_{kind}_INT8" for kind in _CMSIS_NN if kind in self.kinds)
        return [f"_ZN6tflite{len(name)}{name}Ev" for name in names]

    @property
    def _esp_nn(self) -> list[str]:
        return self._of(_ESP_NN)

    @property
    def _of_chip(self) -> list[str]:
        return self._of(_P4 if self.kernels.startswith("esp-nn-p4") else _S3)

    def _of(self, names: Mapping[str, str]) -> list[str]:
        return [name for kind, name in names.items() if kind in self.kinds]

    def macros(self) -> str:
        """Lines for the preprocessor; none where all libraries are meant."""
        if self.kernels == ALL:
            return ""
        lines = [
            f"#ifdef {macro}\n#error sized for {self.kernels} kernels; name those of this build by --kernels\n#endif"
            for macro in ("CMSIS_NN", "ESP_NN")
            if macro != self.family
        ]
        if self.kernels in _PATHS:
            holds, words = _PATHS[self.kernels]
            lines.append(f"{_FEATURES}#if !({holds})")
            lines.append(f"#error sized for {self.kernels} kernels: for a processor that {words}, or -D{CHECKED}")
            lines.append("#endif\n#undef MODELPLAN_HELIUM\n#undef MODELPLAN_DSP")
        if self.needed:
            lines.append(f"#if !defined(__ELF__) && !defined({self.family})\n#error {_how_to_say(self)}\n#endif")
        return "\n" + "\n".join([f"#ifndef {CHECKED}", *lines, "#endif"]) + "\n"

    def symbols(self) -> str:
        """Declarations at the scope of a namespace, of what the linker is asked."""
        if not self.needed and not self.forbidden:
            return ""
        lines = [
            f"// A program with other kernels than {self.kernels}, for which the file is sized, does not link or start:"
            if self.needed
            else f"// With other kernels than {self.kernels}, for which the file is sized, the program does not start:",
            f"// these are symbols of its library. {CHECKED} leaves the check out.",
        ]
        lines.append(f"#if defined(__ELF__) && !defined({CHECKED})")
        for number, name in enumerate(self.needed):
            lines.append(f'extern const char kNeeded{number}[] __asm__("{name}");')
            lines.append(f"__attribute__((used)) inline const char* const {self._name}{number} = kNeeded{number};")
        lines += [
            f'extern const char kForbidden{number}[] __asm__("{name}") __attribute__((weak));'
            for number, name in enumerate(self.forbidden)
        ]
        return "\n".join(["", *lines, "#endif"]) + "\n"

    def check(self, statement: str) -> str:
        """Statements of a function: what is needed is there, or the program does not link; what is not ends it."""
        if not self.needed and not self.forbidden:
            return ""
        lines = [f"#if defined(__ELF__) && !defined({CHECKED})"]
        lines += [f'  __asm__ volatile("" ::"r"(kNeeded{number}));' for number in range(len(self.needed))]
        lines += [
            f"  if (static_cast<const void*>(kForbidden{number}) != nullptr) {statement}"
            f"  // other kernels than {self.kernels}"
            for number in range(len(self.forbidden))
        ]
        return "\n".join([*lines, "#endif"]) + "\n"


def _first(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names[:1])


def _how_to_say(guard: KernelsGuard) -> str:
    """For compilers whose objects are not ELF files: the lines that say what the library is built with."""
    macro = guard.family
    return (
        f"sized for {guard.kernels} kernels: if TFLM is built with {macro}, say so to the program. CMake, Zephyr:"
        f" target_compile_definitions(app PRIVATE {macro}); ESP-IDF: target_compile_definitions(${{COMPONENT_LIB}}"
        f" PRIVATE {macro}); Arduino: build.extra_flags=-D{macro}; Make, STM32Cube: -D{macro}. Or -D{CHECKED}"
    )


def guard_of(kernels: str, kinds: Iterable[str]) -> KernelsGuard:
    """The guard for a model of operators `kinds` and a kernel library or several."""
    return KernelsGuard(library_of(kernels), frozenset(kinds))
