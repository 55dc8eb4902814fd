"""Damage done to files on purpose: bytes of any file, words of texts, meanings of models that still parse."""

from __future__ import annotations

import gzip
import random
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import onnx
import tflite

#: Files that hold no text; models have damage of their own.
BINARY = (".elf", ".npz")
NUMBERS = (0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
EXTENTS = (0, 1, -1, 7, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))

Damage = Callable[[random.Random, bytearray], None]


def flip(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def number(rng: random.Random, data: bytearray) -> None:
    """Overwrites four bytes with a number that counts and offsets trip over."""
    at = rng.randrange(max(len(data) - 3, 1)) & ~rng.choice((0, 3))
    value = rng.choice((*NUMBERS, len(data), len(data) - at, rng.randrange(2**32)))
    data[at : at + 4] = struct.pack("<I", value & 0xFFFFFFFF)


def cut(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def drop(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randrange(1, 64)]


def repeat(rng: random.Random, data: bytearray) -> None:
    at, to = rng.randrange(len(data)), rng.randrange(len(data))
    data[to:to] = data[at : at + rng.randrange(1, 256)]


DAMAGES: tuple[Damage, ...] = (flip, flip, number, number, number, cut, drop, repeat)


def damaged(rng: random.Random, content: bytes) -> bytes:
    """`content` with a few bytes changed, moved or lost; never empty."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        rng.choice(DAMAGES)(rng, data)
        data = data or bytearray(b"\0")
    return bytes(data)


def twisted(rng: random.Random, content: bytes) -> bytes:
    """An ONNX file that still parses but means something else."""
    model = onnx.load_model_from_string(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        rng.choice(TWISTS)(rng, model)
    other: bytes = model.SerializeToString()
    return other


def _names(model: onnx.ModelProto) -> list[str]:
    graph = model.graph
    return [n for node in graph.node for n in (*node.input, *node.output)] + [v.name for v in graph.input] + ["", "?"]


def rewire(rng: random.Random, model: onnx.ModelProto) -> None:
    """A node reads or writes another name: cycles, two producers, nothing at all."""
    node = rng.choice(model.graph.node) if model.graph.node else None
    ends = rng.choice((node.input, node.output)) if node else ()
    if ends:
        ends[rng.randrange(len(ends))] = rng.choice(_names(model))


def retype(rng: random.Random, model: onnx.ModelProto) -> None:
    if model.graph.node:
        kinds = [schema.name for schema in onnx.defs.get_all_schemas()]
        rng.choice(model.graph.node).op_type = rng.choice(kinds)


def resize(rng: random.Random, model: onnx.ModelProto) -> None:
    """An extent of an input, a value or an initialiser becomes zero, negative or enormous."""
    graph = model.graph
    value = rng.choice((*graph.input, *graph.output, *graph.value_info, *graph.initializer, graph))
    if isinstance(value, onnx.TensorProto) and value.dims:
        value.dims[rng.randrange(len(value.dims))] = rng.choice(EXTENTS)
    elif isinstance(value, onnx.ValueInfoProto) and value.type.tensor_type.shape.dim:
        rng.choice(value.type.tensor_type.shape.dim).dim_value = rng.choice(EXTENTS)


def reattribute(rng: random.Random, model: onnx.ModelProto) -> None:
    owners = [node for node in model.graph.node if node.attribute]
    if not owners:
        return
    attribute = rng.choice(rng.choice(owners).attribute)
    if attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(EXTENTS)
    elif attribute.HasField("i"):
        attribute.i = rng.choice(EXTENTS)
    elif attribute.HasField("t"):
        attribute.t.data_type = rng.randrange(32)
    else:
        attribute.name = rng.choice(("axis", "value", "body", "then_branch", ""))


def lose(rng: random.Random, model: onnx.ModelProto) -> None:
    graph = model.graph
    field = rng.choice((graph.node, graph.input, graph.output, graph.initializer, graph.value_info, model.opset_import))
    if field:
        del field[rng.randrange(len(field))]


def double(rng: random.Random, model: onnx.ModelProto) -> None:
    graph = model.graph
    field = rng.choice((graph.node, graph.input, graph.output, graph.initializer))
    if field:
        field.append(rng.choice(field))


def revalue(rng: random.Random, model: onnx.ModelProto) -> None:
    """A small integer initialiser, such as a target shape, holds another number."""
    found = [t for t in model.graph.initializer if t.data_type == 7 and len(t.raw_data) in range(8, 65)]
    if found:
        tensor = rng.choice(found)
        data = bytearray(tensor.raw_data)
        at = 8 * rng.randrange(len(data) // 8)
        data[at : at + 8] = struct.pack("<q", rng.choice(EXTENTS))
        tensor.raw_data = bytes(data)


def version(rng: random.Random, model: onnx.ModelProto) -> None:
    if model.opset_import:
        rng.choice(model.opset_import).version = rng.choice((*range(29), -1, 2**40))


TWISTS = (rewire, rewire, retype, resize, resize, reattribute, reattribute, lose, double, revalue, revalue, version)


def misread(rng: random.Random, content: bytes) -> bytes:
    """A TFLite file whose tables hold, but whose operators, tensors and subgraphs mean something else."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        field, vector, form, values = rng.choice(_fields(rng, tflite.Model.GetRootAs(content, 0)))
        table, slot = field
        if not table.Offset(slot) or (vector and not table.VectorLen(table.Offset(slot))):
            continue
        at = table.Offset(slot) + table.Pos
        if vector:
            at = table.Vector(table.Offset(slot)) + 4 * rng.randrange(table.VectorLen(table.Offset(slot)))
        struct.pack_into(form, data, at, rng.choice(values))
    return bytes(data)


def _fields(rng: random.Random, model: tflite.Model) -> list[tuple[tuple[Any, int], bool, str, Sequence[int]]]:
    """Fields of a subgraph, an operator, a tensor and an operator code: table and slot, whether a vector, values."""
    graph = model.Subgraphs(rng.randrange(model.SubgraphsLength()))
    tensors, codes = range(-2, graph.TensorsLength() + 2), range(model.OperatorCodesLength() + 1)
    rows: list[tuple[tuple[Any, int], bool, str, Sequence[int]]] = [
        ((graph._tab, 6), True, "<i", tensors), ((graph._tab, 8), True, "<i", tensors),
    ]  # fmt: skip
    if graph.OperatorsLength():
        op = graph.Operators(rng.randrange(graph.OperatorsLength()))
        rows += [((op._tab, 6), True, "<i", tensors), ((op._tab, 8), True, "<i", tensors)] * 2
        rows += [((op._tab, 4), False, "<I", codes), ((op._tab, 10), False, "B", range(128))]
    if graph.TensorsLength():
        tensor = graph.Tensors(rng.randrange(graph.TensorsLength()))
        extents = (0, 1, -1, 7, 2**16, 2**31 - 1, -(2**31))
        rows += [((tensor._tab, 4), True, "<i", extents)] * 2
        rows += [
            ((tensor._tab, 6), False, "B", range(20)),
            ((tensor._tab, 8), False, "<I", range(model.BuffersLength() + 1)),
        ]
    if model.OperatorCodesLength():
        code = model.OperatorCodes(rng.randrange(model.OperatorCodesLength()))
        rows += [((code._tab, 10), False, "<i", range(210)), ((code._tab, 4), False, "B", range(128))]
    return rows


#: What takes the place of a number, name or cell in a text.
WORDS = (
    "0", "1", "-1", "7", "1e9", "2147483647", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "9" * 25, "9" * 6000, "NaN", "null", "true", "\"\"", "", "x", "\u0663", "[]", "{}",
    "\x1b[31m", "}", "//", "\"", ",", "\n",
)  # fmt: skip


def retyped(rng: random.Random, content: bytes) -> bytes:
    """A text with some of its words or lines replaced, repeated, exchanged or lost."""
    text = content.decode("utf-8", "replace")
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        pattern = rng.choice((r"-?\w+", r"-?\d+", r"[^\n]*\n", r"[^,\n]+", r"\"[^\"]*\"|[\]\[{}]"))
        found = list(re.finditer(pattern, text))
        if not found:
            continue
        at, other = rng.choice(found), rng.choice(found)
        word = rng.choice((rng.choice(WORDS), rng.choice(WORDS), other[0], at[0] * 2, str(rng.randrange(2**33))))
        text = text[: at.start()] + word + text[at.end() :]
    return text.encode("utf-8", "surrogatepass")


def case(seed: int, content: bytes, suffix: str) -> bytes:
    """The damaged file of one seed: the same on every machine."""
    rng = random.Random(seed)
    if suffix.endswith(".gz"):
        inner = case(seed, gzip.decompress(content), suffix.removesuffix(".gz"))
        return gzip.compress(inner, mtime=0) if rng.random() < 0.5 else damaged(rng, content)
    if suffix == ".tflite" and rng.random() < 0.4:
        return misread(rng, content)
    if suffix in BINARY:
        return damaged(rng, content)
    if suffix not in (".onnx", ".tflite") and rng.random() < 0.8:
        return retyped(rng, content)
    if suffix == ".onnx" and rng.random() < 0.6:
        return twisted(rng, content)
    return damaged(rng, content)
