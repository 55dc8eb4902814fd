"""Draws .tflite files with what TFLM does not know or reads otherwise, and compares predictions with TFLM itself.

    python tests/sweeps/odd_files.py [COUNT] [SEED]

Each file is a case of the sweep over operators, as it is or with one oddity: a custom operator, weights behind the
flatbuffer, a type that TFLM has not, weights without their zeros. A prediction is contradicted where it gives a number
to a file that TFLM refuses or reads otherwise, or refuses one that TFLM runs as it is meant.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tflm_models import Draw, Op, S, T, build, sweep
from tflm_sweep import CHANCE_OF_WHEEL, ask_wheel, differences

from modelplan.formats.tflite.flatbuffer_tables import MODEL, FrontTables
from modelplan.formats.tflite.tflite_tables import child, root_table, tables
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import read_tflite

_BUFFERS, _DATA = 4, 0
#: The fields of a buffer: a vector of bytes, or where they lie behind the flatbuffer and how many.
_BUFFER = (0, 8, 8)
_NAMES = ("Mine", "FlexErf", "FlexTensorListReserve", "DISPATCH_OP", "edgetpu-custom-op", "Convolution2DTransposeBias")
#: Types of the schema that TFLM's TfLiteTypeSizeOf does not know, and those that it knows and few kernels take.
_STRANGE = {"string": 5, "variant": 14, "bfloat16": 18, "int2": 19, "uint4": 20, "float64": 10, "complex64": 8}


class Odd(NamedTuple):
    """A file: what it is called, its bytes, and whether TFLM reads other values than it states."""

    case: str
    data: bytes
    misread: bool = False


def odd_files(count: int, seed: int = 0) -> Iterator[Odd]:
    """`count` files, the oddities in turn."""
    plain = list(sweep(1, seed + 1))
    draw = random.Random(seed)
    draw.shuffle(plain)
    makers: Sequence[Callable[[random.Random, str, bytes], Odd]] = (_as_it_is, _custom, _behind, _typed, _custom)
    for number in range(count):
        yield makers[number % len(makers)](draw, *plain[number % len(plain)])


def _as_it_is(_: random.Random, case: str, data: bytes) -> Odd:
    return Odd(case, data)


def _custom(draw: random.Random, case: str, data: bytes) -> Odd:
    """A chain of RELUs and custom operators."""
    shape = Draw(draw.randrange(1 << 30)).shape()
    kinds = [draw.choice(("RELU", "RELU", *_NAMES)) for _ in range(draw.randint(1, 5))]
    ops = tuple(Op(kind, (i,), (i + 1,), custom=kind != "RELU") for i, kind in enumerate(kinds))
    dtype = draw.choice(("int8", "float32"))
    chain = S((T(dtype, shape),) * (len(ops) + 1), ops, (0,), (len(ops),))
    return Odd(f"chain of {', '.join(kinds)}", build(chain))


def _behind(draw: random.Random, case: str, data: bytes) -> Odd:
    """The file with the values of its constants behind the flatbuffer."""
    moved = with_values_behind(data)
    return Odd(f"{case}, values behind", moved, misread=moved != data)


def _typed(draw: random.Random, case: str, data: bytes) -> Odd:
    """A RELU or an ADD of a type that TFLM may not have."""
    dtype = draw.choice(list(_STRANGE))
    kind = draw.choice(("RELU", "ADD"))
    tensors = (T("int8", Draw(draw.randrange(1 << 30)).shape()),) * 2
    op = Op(kind, (0, 0) if kind == "ADD" else (0,), (1,), table="AddOptions" if kind == "ADD" else "")
    return Odd(f"{kind} of {dtype}", _retyped(build(S(tensors, (op,), (0,), (1,))), _STRANGE[dtype]))


def _retyped(data: bytes, number: int) -> bytes:
    """The file with all int8 tensors of another type."""
    from modelplan.formats.tflite.tflite_tables import field

    changed = bytearray(data)
    subgraph = tables(data, root_table(data), 2)[0]
    for tensor in tables(data, subgraph, 0):
        at = field(data, tensor, 1)
        if at and data[at] == 9:
            changed[at] = number
    return bytes(changed)


def with_values_behind(data: bytes) -> bytes:
    """The file with the values of its buffers behind the flatbuffer, as files of more than 2 GiB have them."""
    values = [_content(data, table) for table in tables(data, root_table(data), _BUFFERS)]
    if not any(values):
        return data
    length = len(_pointing(data, values, 1 << 20))
    return _pointing(data, values, length) + b"".join(values)


def _content(data: bytes, buffer: int) -> bytes:
    at = child(data, buffer, _DATA)
    return data[at + 4 : at + 4 + int.from_bytes(data[at : at + 4], "little")] if at else b""


def _pointing(data: bytes, values: Sequence[bytes], start: int) -> bytes:
    """The flatbuffer whose buffers say that their values lie from `start` on, one behind the other."""
    front, places = FrontTables(data), []
    for content in values:
        places.append(front.table(_BUFFER, {1: start, 2: len(content)} if content else {}))
        start += len(content)
    return front.file(front.table(MODEL, {_BUFFERS: front.references(places)}, root_table(data)))


def contradictions(odd: Odd) -> list[str]:
    """Where the prediction is not what TFLM does."""
    predicted = arena(read_tflite(odd.data, odd.case), "wheel", "reference")
    if odd.misread:
        return [] if predicted.refusals else ["a number for values that TFLM does not find"]
    return list(differences(odd.case, predicted, ask_wheel(odd.data), CHANCE_OF_WHEEL))


def main() -> int:
    count, seed = (int(word) for word in (*sys.argv[1:3], *("300", "0")[len(sys.argv) - 1 :]))
    found: Counter[str] = Counter()
    for odd in odd_files(count, seed):
        lines = contradictions(odd)
        found["contradicted" if lines else "as predicted"] += 1
        for line in lines:
            print(f"{odd.case}: {line}")
    print(f"{count} files: {found['as predicted']} as predicted, {found['contradicted']} contradicted")
    return found["contradicted"] > 0


if __name__ == "__main__":
    sys.exit(main())
