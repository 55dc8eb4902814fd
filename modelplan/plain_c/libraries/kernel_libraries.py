"""The libraries that plain C can call: their operators, what a source includes of them, and which one it includes."""

from collections.abc import Mapping

from modelplan.plain_c.kernel_records import COperator
from modelplan.plain_c.libraries.cmsis_calls import (
    CMSIS_HEADER,
    CMSIS_OTHER_PATH,
    CMSIS_PATHS,
    cmsis_includes,
    cmsis_operators,
    faster_operators,
)
from modelplan.plain_c.libraries.esp_calls import ESP_HEADER, ESP_INCLUDES, ESP_NN, esp_operators
from modelplan.runtimes.tflm.file import FileModel

Operators = Mapping[int, COperator]


def library_operators(model: FileModel, operators: Operators, kernels: str) -> tuple[Operators, Operators]:
    """The operators with calls of a library, and those that are faster where there is memory to spare.

    What reads constants alone stays as it is.
    """
    reading = {index: operator for index, operator in operators.items() if operator.operands}
    if kernels in CMSIS_PATHS:
        return {**operators, **cmsis_operators(model, reading, kernels)}, faster_operators(model, reading, kernels)
    return {**operators, **(esp_operators(model, reading) if kernels == ESP_NN else {})}, {}


def library_includes(kernels: str) -> list[str]:
    """What a source that calls a library includes of it."""
    if kernels in CMSIS_PATHS:
        return [cmsis_includes(kernels)]
    return [ESP_INCLUDES] if kernels == ESP_NN else []


def stated_kernels(source: str) -> str:
    """The library that a source of a network calls, or "portable"."""
    if ESP_HEADER in source:
        return ESP_NN
    if CMSIS_HEADER not in source:
        return "portable"
    return next((name for name, (_, path) in CMSIS_OTHER_PATH.items() if f"CMSIS-NN with {path}" in source), "cmsis-nn")
