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

_INTEGERS = {"int8": 8, "uint8": 8, "int16": 16, "int32": 32}


def _words(variant: str) -> dict[str, str]:
    """What stands in the templates for a variant: the type of elements, and behind "_to_" that of results."""
    element, _, out = variant.partition("_to_")
    words = {} if variant == "bytes" else _type_words("element_t", "ELEMENT", element)
    words |= _type_words("out_t", "OUT", out or element) if words else {}
    sums = {"int8": "int32_t", "int16": "int64_t", "float": "float"}.get(element, "int32_t")
    scale = {"int64_t": "requantise_wide", "float": "requantise_float"}.get(sums, "requantise")
    weights = "float" if element == "float" else "int8_t"
    products = "float" if element == "float" else "int32_t"
    return {**words, "weight_t": weights, "product_t": products, "sum_t": sums, "requantise_sum": scale}


def _type_words(name: str, macro: str, dtype: str) -> dict[str, str]:
    if dtype == "float":
        return {name: "float"}
    limits = {f"{macro}_{end}": f"{dtype.upper()}_{end}" for end in ("MIN", "MAX")}
    return {name: f"{dtype}_t", f"{macro}_BITS": str(_INTEGERS[dtype]), **limits}


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
    words = _words(variant)
    text = re.sub(rf"\b(?:{'|'.join(words)})\b", lambda m: words[m[0]], text)
    return _aligned(text.replace("VARIANT", variant)), uses


def _aligned(text: str) -> str:
    """A text in which the second lines of long heads of functions stand below the first argument."""
    lines = text.split("\n")
    for i, line in enumerate(lines[1:], 1):
        head = lines[i - 1]
        if line.startswith("        ") and (head.startswith("static ") or lines[i - 2].startswith("static ")):
            place = head.index("(") + 1 if head.startswith("static ") else len(head) - len(head.lstrip())
            lines[i] = " " * place + line.lstrip()
    return "\n".join(lines)


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
