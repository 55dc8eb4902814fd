"""The C sources of kernels, which lie beside this file: for a type of elements, with the functions that they call.

A source is a template: `VARIANT` in its names, and types such as `element_t`, stand for those of the type. A comment on
its first line names the functions that it uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("kernels")
_USES = re.compile(r"\A/\* uses: (.*) \*/\n")
_FIELD = re.compile(r"^    (?:const )?\w+ \*?(\w+);", re.MULTILINE)

_INT8 = {
    "element_t": "int8_t", "out_t": "int8_t", "weight_t": "int8_t", "product_t": "int32_t", "sum_t": "int32_t",
    "ELEMENT_MIN": "INT8_MIN", "OUT_MIN": "INT8_MIN", "OUT_MAX": "INT8_MAX", "OUT_BITS": "8",
}  # fmt: skip
_INT16_OUT = {"out_t": "int16_t", "OUT_MIN": "INT16_MIN", "OUT_MAX": "INT16_MAX", "OUT_BITS": "16"}
#: What stands in the templates for each variant.
VARIANTS: dict[str, dict[str, str]] = {
    "int8": _INT8,
    "int8_int16": _INT8 | _INT16_OUT,
    "bytes": {},
}


def kernel_name(source: str, variant: str) -> str:
    """The function that a source defines."""
    return f"{source}_{variant}"


@cache
def kernel_text(source: str, variant: str) -> tuple[str, tuple[str, ...]]:
    """The text of a source, and the sources that it uses: those with a variant as their file and "_VARIANT"."""
    text = (_FOLDER / f"{source}.c").read_text()
    uses: tuple[str, ...] = ()
    if match := _USES.match(text):
        uses = tuple(match[1].split(", "))
        text = text[match.end() :]
    words = VARIANTS[variant]
    text = re.sub(r"\b(?:{})\b".format("|".join(words or ["element_t"])), lambda m: words[m[0]], text)
    return text.replace("VARIANT", variant), uses


@cache
def parameter_names(source: str, variant: str) -> tuple[str, ...]:
    """The fields of a kernel's struct, in order."""
    text = kernel_text(source, variant)[0]
    body = text[text.index(f"struct {kernel_name(source, variant)}_params {{") :]
    return tuple(_FIELD.findall(body[: body.index("};")]))


def all_sources(kernels: Iterable[tuple[str, str]]) -> list[str]:
    """The texts of kernels, given as source and variant, and of all that they use, each behind what it uses."""
    texts: dict[tuple[str, str], str] = {}

    def add(source: str, variant: str) -> None:
        if (source, variant) not in texts:
            text, uses = kernel_text(source, variant)
            for name in uses:
                add(name.removesuffix("_VARIANT"), variant if name.endswith("_VARIANT") else "int8")
            texts[source, variant] = text

    for source, variant in sorted(set(kernels)):
        add(source, variant)
    return list(texts.values())
