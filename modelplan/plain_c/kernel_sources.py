"""The C sources of kernels, which lie beside this file: for a type of elements, with the functions that they call.

A source is a template: `VARIANT` in its names, and types such as `element_t`, stand for those of the type. A comment on
its first line names the functions that it uses. What several sources have in common, fields and loops, is a part that
they include.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from zlib import crc32

from modelplan.plain_c.operator_calls.expressions import EXPRESSIONS, expression_of

_FOLDER = Path(__file__).with_name("kernels")
_USES = re.compile(r"\A/\* uses: (.*) \*/\n")
_PART = re.compile(r'^#include "(\w+\.part)"\n', re.MULTILINE)
_FIELD = re.compile(r"^    (?:const )?\w+ \*?(\w+);", re.MULTILINE)

#: What a variant calls of a library, of several functions with the same arguments.
_LIBRARY_FUNCTIONS = {
    "any": "arm_depthwise_conv_s8", "3x3": "arm_depthwise_conv_3x3_s8", "opt": "arm_depthwise_conv_s8_opt",
    "average": "arm_avgpool_s8", "max": "arm_max_pool_s8",
    "average_ansi": "esp_nn_avg_pool_s8_ansi", "max_ansi": "esp_nn_max_pool_s8_ansi",
}  # fmt: skip
#: The same for products of ESP-NN, by one scale and by one for each channel.
_ESP_PRODUCTS = {
    "tensor": {
        "FUNCTION": "esp_nn_fully_connected_s8_ansi", "SHIFT": "q->shift[0]", "MULTIPLIER": "q->multiplier[0]",
    },
    "channels": {
        "FUNCTION": "esp_nn_fully_connected_per_ch_s8_ansi", "SHIFT": "q->shift", "MULTIPLIER": "q->multiplier",
    },
}  # fmt: skip
#: What says of a variant how it computes, behind the type of its elements.
_SUFFIXES = re.compile(r"_(short|even|half|parts)$")
#: What a definition of a function begins with.
_HEADS = ("static ", "WITHIN ", "APART ")
#: A function: its head, the declarations that it begins with, and the rest.
_FUNCTION = re.compile(
    r"^((?:static|WITHIN|APART) [^;{]*\n{\n)"
    r"((?:    (?:const )?\w+ \*?(?:const )?\w+(?:\[\w+\])?(?: =[^\n]*)?;[^\n]*\n)*)"
    r"(.*?^}\n)",
    re.MULTILINE | re.DOTALL,
)
#: What every kernel is called with, whether it needs it or not.
_ROWS = ("rows", "above", "out_rows")
_INTEGERS = {"int8": 8, "uint8": 8, "int16": 16, "int32": 32, "uint32": 32, "int64": 64}


def _words(variant: str) -> dict[str, str]:
    """What stands in the templates for a variant: the type of elements, and behind "_to_" that of results.

    Behind "_by_" stands the type of the second operand, where that is another, and behind "x" how many operands there
    are. Sums of 16-bit numbers have 64 bits, or 32 where "_short" says so; "_even" ones are scaled as
    float32 does it. Weights of floats have 16 bits where "_half" says so, and their products are summed in parts where
    "_parts" does.
    """
    if variant in _ESP_PRODUCTS:
        return _ESP_PRODUCTS[variant]
    if variant in _LIBRARY_FUNCTIONS:
        return {"FUNCTION": _LIBRARY_FUNCTIONS[variant]}
    kind, computes, types = variant.partition("_of_")
    if computes and (expression := expression_of(kind.upper(), types.partition("_to_")[0])):
        words = _words(types)
        return {**words, "EXPRESSION": _with_words(expression.text, words)}
    whole, _, out = variant.partition("_to_")
    element, _, other = _SUFFIXES.sub("", whole).partition("_by_")
    element, _, count = element.partition("x")
    words = {} if variant == "bytes" else _type_words("element_t", "ELEMENT", element)
    words |= {} if variant == "bytes" else {"other_t": _type_words("other_t", "OTHER", other or element)["other_t"]}
    words |= _operand_words(words["element_t"], int(count)) if count else {}
    words |= _type_words("out_t", "OUT", out or element) if words else {}
    wide = whole == "int16"
    sums = {"sum_t": "int64_t" if wide else "int32_t", "sum_of": "long_sum" if wide else "wrapped_sum"}
    scale = {"requantise_sum": "requantise_wide" if wide else "requantise"}
    if whole.endswith("_even"):
        scale = dict.fromkeys(("requantise", "requantise_sum"), "rescale_even")
    if element == "float":
        half = whole.endswith("_half")
        weights = {"weight_t": "uint16_t" if half else "float", "weight_of": "half_number" if half else ""}
        return {**words, **weights, "product_t": "float", "sum_t": "float"}
    return {**words, **sums, **scale, "weight_t": "int8_t", "product_t": "int32_t"}


def _operand_words(ctype: str, count: int) -> dict[str, str]:
    names = [f"x{k}" for k in range(count)]
    operands = ", ".join(f"const {ctype} *{name}" for name in names)
    return {"OPERANDS": operands, "TERMS": ", ".join(names), "COUNT": str(count)}


def _type_words(name: str, macro: str, dtype: str) -> dict[str, str]:
    if dtype == "float":
        return {name: "float", f"{macro}_MIN": "-FLT_MAX", f"{macro}_MAX": "FLT_MAX"}
    if dtype == "bool":
        return {name: "uint8_t"}
    limits = {f"{macro}_{end}": f"{dtype.upper()}_{end}" for end in ("MIN", "MAX")}
    return {name: f"{dtype}_t", f"{macro}_BITS": str(_INTEGERS[dtype]), **limits}


def kernel_name(source: str, variant: str) -> str:
    """The function that a source defines."""
    return f"{source}_{variant}"


def _file(source: str, variant: str) -> Path:
    """The file of a source.

    A variant may have one of its own, or those of floats together, or those that differ in how they round or in the
    type of their results.
    """
    whole = variant.partition("_to_")[0]
    alike = "float" if variant.startswith("float") else whole.removesuffix("_even")
    names = (f"{source}_{name}" for name in (variant, whole, alike))
    return next(path for path in (_FOLDER / f"{name}.c" for name in (*names, source)) if path.exists())


@cache
def kernel_text(source: str, variant: str) -> tuple[str, tuple[str, ...]]:
    """The text of a source, and the sources that it uses: those with a variant as their file and "_VARIANT"."""
    text = _PART.sub(lambda m: (_FOLDER / m[1]).read_text(), _file(source, variant).read_text())
    text = _FUNCTION.sub(_with_unused, text)
    words = _words(variant)
    text = _with_words(text, words)
    uses: tuple[str, ...] = ()
    if match := _USES.match(text):
        uses = tuple(filter(None, match[1].split(", ")))
        text = text[match.end() :]
    return _aligned(re.sub(r";  +/\*", "; /*", text.replace("VARIANT", variant))), uses


def _with_unused(function: re.Match[str]) -> str:
    """A function that says which rows it leaves out, as compilers warn of arguments without a use."""
    head, declared, rest = function.groups()
    given = (name for name in _ROWS if f"int32_t {name}" in head)
    unused = (name for name in given if not re.search(rf"(?<!->)\b{name}\b", declared + rest))
    return "".join((head, declared, *(f"    (void){name};\n" for name in unused), rest))


def _with_words(text: str, words: dict[str, str]) -> str:
    return re.sub(rf"\b(?:{'|'.join(words)})\b", lambda m: words[m[0]], text)


def _aligned(text: str) -> str:
    """A text in which the second lines of long heads of functions stand below the first argument."""
    lines = text.split("\n")
    for i, line in enumerate(lines[1:], 1):
        head = lines[i - 1]
        if line.startswith("        ") and (head.startswith(_HEADS) or lines[i - 2].startswith(_HEADS)):
            place = head.index("(") + 1 if head.startswith(_HEADS) else len(head) - len(head.lstrip())
            lines[i] = " " * place + line.lstrip()
    return "\n".join(lines)


def takes_scratch(source: str, variant: str) -> bool:
    """Whether the last argument of a kernel is its working memory."""
    return "void *scratch" in kernel_text(source, variant)[0]


def parameter_names(source: str, variant: str) -> tuple[str, ...]:
    """The numbers that a kernel takes, in the order of their struct."""
    return _fields(source, variant, "params")


def table_names(source: str, variant: str) -> tuple[str, ...]:
    """The tables that a kernel takes, in the order of their struct."""
    return _fields(source, variant, "tables")


@cache
def _fields(source: str, variant: str, what: str) -> tuple[str, ...]:
    """The fields of a kernel's struct, in order; none where it has no such struct."""
    _, _, body = kernel_text(source, variant)[0].partition(f"struct {kernel_name(source, variant)}_{what} {{")
    return tuple(_FIELD.findall(body.partition("};")[0]))


@cache
def kernels_checksum() -> str:
    """A number that differs where kernels do, in C."""
    texts = [path.read_bytes() for path in (*sorted(_FOLDER.iterdir()), Path(__file__))]
    return f"0x{crc32(b''.join([*texts, repr(EXPRESSIONS).encode()])):08X}u"


def _guarded_name(source: str, variant: str) -> str:
    """What a source is called among those of all files."""
    file = _file(source, variant)
    return kernel_name(source, variant) if file.stem != source or "VARIANT" in file.read_text() else source


def all_sources(kernels: Iterable[tuple[str, str]]) -> list[str]:
    """The texts of kernels, given as source and variant, and of all that they use, each behind what it uses.

    Each stands in the first file that has it, where several are compiled as one.
    """
    texts: dict[tuple[str, str], str] = {}

    def add(source: str, variant: str) -> None:
        if (source, variant) not in texts:
            text, uses = kernel_text(source, variant)
            for name in uses:
                add(name.removesuffix("_VARIANT"), variant if name.endswith("_VARIANT") else "int8")
            guard = f"MODELPLAN_{_guarded_name(source, variant).upper()}"
            texts[source, variant] = f"#ifndef {guard}\n#define {guard}\n{text.rstrip()}\n#endif"

    for source, variant in sorted(set(kernels)):
        add(source, variant)
    return list(texts.values())
