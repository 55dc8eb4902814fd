"""What TFLM's arena would be if TFLM's tool compressed the weights: a TFLM_DECODE in front of each reader of them."""

import re
from collections.abc import Mapping
from dataclasses import replace

from modelplan.formats.tflite.tflite_file import UNQUANTISED
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.decoding import arena_beside_region, decode_region
from modelplan.runtimes.tflm.file import DECODE, FileModel, FileOp, FileTensor

#: The type uint8, of codes and tables.
_UINT8 = 3
#: The header in front of each table.
_HEADER = 16
#: Numbers of schemes: values from a table, which has at most so many, and a bit for each element that is not zero.
_TABLE, _PRUNED, _MOST_VALUES = 0, 2, 128


@dataclass(frozen=True, slots=True)
class DecodedArena:
    """The arena of a file with compressed weights, and with memory of its own for what is unpacked, of `region` bytes.

    `region` is 0 where there can be no such memory.
    """

    arena: int
    region: int
    with_region: int


def arena_of_compressed(
    model: FileModel, small: Mapping[int, int], how: str, abi: str, kernels: str
) -> DecodedArena | None:
    """The arena with the constants `small`, each of so many bytes, compressed as `how` says.

    None where TFLM has no such operator, or would not run the compressed file.
    """
    scheme = _scheme(how)
    if scheme is None or len(model.subgraphs) > 1 or model.compressed or not small:
        return None
    file = with_decoded(replace(model, plan=()), small, scheme)
    whole, region = arena(file, abi, kernels), decode_region(file)
    if whole.refusals:
        return None
    return DecodedArena(whole.size(), region, arena_beside_region(file, abi, kernels).size() if region else 0)


def _scheme(how: str) -> int | None:
    """The number of the scheme, None where TFLM has none."""
    palette = re.fullmatch(r"palette([0-9]+)", how)
    if palette:
        return _TABLE if int(palette[1]) <= _MOST_VALUES else None
    return _PRUNED if how.startswith("sparse") else None


def with_decoded(model: FileModel, small: Mapping[int, int], scheme: int) -> FileModel:
    """The file in which each operator that reads one of these constants has an operator in front that unpacks all."""
    main = model.subgraphs[0]
    header = bytes((scheme, 1)).ljust(_HEADER, b"\0")
    tensors, ops = list(main.tensors), list[FileOp]()
    packed = {t: replace(_bytes(tensors[t], nbytes), content=tensors[t].content) for t, nbytes in small.items()}
    table = _bytes(FileTensor("table", _UINT8, (), 0, constant=True, variable=False), _HEADER)
    tables = {t: len(tensors) + number for number, t in enumerate(small)}
    tensors += [replace(table, content=(len(model.data), _HEADER))] * len(tables)
    for op in main.ops:
        fresh = {}
        for t in op.reads:
            if t in small:
                fresh[t] = len(tensors)
                tensors.append(replace(main.tensors[t], constant=False, content=(0, 0)))
        if fresh:
            sources = tuple(number for t in fresh for number in (t, tables[t]))
            ops.append(FileOp(DECODE, sources, tuple(fresh.values()), custom=True))
        ops.append(replace(op, inputs=tuple(fresh.get(t, t) for t in op.inputs)))
    for t, packed_tensor in packed.items():
        tensors[t] = packed_tensor
    changed = replace(main, tensors=tuple(tensors), ops=tuple(ops))
    return replace(model, data=model.data + header, subgraphs=(changed,))


def _bytes(tensor: FileTensor, nbytes: int) -> FileTensor:
    return replace(tensor, type=_UINT8, shape=(nbytes,), nbytes=nbytes, quantization=UNQUANTISED)
